/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parameters of netmap's module, as programs read them in sysfs: what the
 * region and the daemon have, by open and by streams; none can be written. They,
 * and the device, look to stat and access as they would with the module.
 */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <net/netmap.h>

#define FOLDER	"/sys/module/netmap/parameters/"

static char name[128];

static const char *
path(const char *parameter)
{
	snprintf(name, sizeof(name), FOLDER "%s", parameter);
	return name;
}

/* The number in a file, or -1. */
static long long
by_open(const char *parameter)
{
	char text[32], again[32];
	int fd = open(path(parameter), O_RDONLY);
	ssize_t got, reread;

	if (fd == -1)
		return -1;
	got = read(fd, text, sizeof(text) - 1);
	reread = pread(fd, again, sizeof(again), 0);
	if (got <= 0 || got != reread || text[got - 1] != '\n' ||
	    memcmp(text, again, (size_t)got) != 0) {
		close(fd);
		return -1;
	}
	text[got] = '\0';
	if (write(fd, "1", 1) != -1 || errno != EBADF)
		check(0, "%s can be written where it was opened to be read",
		      parameter);
	close(fd);
	return atoll(text);
}

static long long
by_stream(const char *parameter)
{
	long long number = -1;
	FILE *file = fopen(path(parameter), "r");

	if (!file)
		return -1;
	if (fscanf(file, "%lld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

/* What the global region has, by the request that tells. */
static void
pools(struct nmreq_pools_info *info)
{
	struct nmreq_header hdr;
	int fd = open("/dev/netmap", O_RDWR);

	memset(&hdr, 0, sizeof(hdr));
	memset(info, 0, sizeof(*info));
	info->nr_mem_id = 1;
	strcpy(hdr.nr_name, "valec20:any");
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = NETMAP_REQ_POOLS_INFO_GET;
	hdr.nr_body = (uintptr_t)info;
	check_call(ioctl(fd, NIOCCTRL, &hdr), 0, "POOLS_INFO_GET");
	close(fd);
}

/* What the stat family says a path is, or 0. */
static void
check_type(const char *of, mode_t type, int permissions)
{
	struct stat st[3];
	struct stat64 st64;
	struct statx stx;
	size_t i;

	memset(st, 0, sizeof(st));
	check_call(stat(of, &st[0]), 0, "stat");
	check_call(lstat(of, &st[1]), 0, "lstat");
	check_call(fstatat(AT_FDCWD, of, &st[2], AT_SYMLINK_NOFOLLOW), 0,
		   "fstatat");
	for (i = 0; i < 3; i++)
		check(st[i].st_mode == (type | (mode_t)permissions),
		      "%s: mode %o by call %zu", of, st[i].st_mode, i);
	check_call(stat64(of, &st64), 0, "stat64");
	check(st64.st_mode == st[0].st_mode, "%s: stat64", of);
	check_call(statx(AT_FDCWD, of, 0, STATX_BASIC_STATS, &stx), 0,
		   "statx");
	check(stx.stx_mode == st[0].st_mode, "%s: statx", of);
	check_call(access(of, F_OK), 0, of);
	check_call(access(of, R_OK), 0, of);
	check_call(faccessat(AT_FDCWD, of, R_OK, AT_EACCESS), 0, of);
	check_call(euidaccess(of, R_OK), 0, of);
	check_call(eaccess(of, R_OK), 0, of);
}

static void
look(void)
{
	static const char *const absent[] = {
		FOLDER "nosuch", FOLDER "buf_size/", FOLDER "../nosuch",
		"/sys/module/netmaps", "/dev/netmap2", "", "/",
	};
	struct stat st;
	size_t i;

	check_type(FOLDER "buf_size", S_IFREG, 0444);
	check_type(FOLDER "fwd", S_IFREG, 0444);
	check_type(FOLDER, S_IFDIR, 0755);
	check_type("/sys/module/netmap", S_IFDIR, 0755);
	check_type("/dev/netmap", S_IFCHR, 0666);
	check_call(stat(FOLDER "buf_size", &st), 0, "stat");
	check_number(st.st_size, 4096, "bytes, as sysfs shows");
	check_call(access(FOLDER "buf_size", X_OK), EACCES, "no program");
	check_call(access("/dev/netmap", R_OK | W_OK), 0, "the device");
	for (i = 0; i < 5; i++)
		check(stat(absent[i], &st) == -1 && access(absent[i], F_OK) == -1,
		      "there is no %s", absent[i]);
	check_call(stat(absent[5], &st), ENOENT, "no path");
	check_call(stat(absent[6], &st), 0, "a path of the program's own");
}

int
main(void)
{
	static const char *const refused[] = {
		"buf_size", "buf_curr_size", "fwd", "priv_buf_num",
	};
	struct nmreq_pools_info info;
	size_t i;

	pools(&info);
	const struct {
		const char *parameter;
		long long value;
	} cases[] = {
		{ "if_size", info.nr_if_pool_objsize },
		{ "if_num", info.nr_if_pool_objtotal },
		{ "ring_size", info.nr_ring_pool_objsize },
		{ "ring_curr_num", info.nr_ring_pool_objtotal },
		{ "buf_size", info.nr_buf_pool_objsize },
		{ "buf_curr_size", info.nr_buf_pool_objsize },
		{ "buf_curr_num", info.nr_buf_pool_objtotal },
		{ "priv_buf_size", 2048 }, { "fwd", 0 }, { "no_pendintr", 1 },
		{ "max_bridges", 64 }, { "generic_ringsize", 1024 },
		{ "no_timestamp", 0 }, { "txsync_retry", 0 },
	};
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_number(by_open(cases[i].parameter), cases[i].value,
			     cases[i].parameter);
		check_number(by_stream(cases[i].parameter), cases[i].value,
			     cases[i].parameter);
	}
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		check_call(open(path(refused[i]), O_WRONLY), EACCES,
			   "opened to be written");
		check_call(open(path(refused[i]), O_RDWR | O_TRUNC), EACCES,
			   "opened for both");
		errno = 0;
		check(fopen(path(refused[i]), "w") == NULL && errno == EACCES,
		      "a stream to write %s", refused[i]);
	}
	look();
	check_call(open(path("nosuch"), O_RDONLY), ENOENT, "no parameter");
	check_call(open(path("buf_size2"), O_RDONLY), ENOENT, "longer");
	check(fopen(path("nosuch"), "r") == NULL, "no stream either");
	return check_failures != 0;
}
