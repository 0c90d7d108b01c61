/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that closes all numbers that it does not know: its ports go on,
 * and files that it opens later stay open when it lets go of a port. So they
 * do where few descriptors are allowed.
 *
 * usage: closed_numbers SWITCH [LIMIT]
 */
#include "port.h"

#include <sys/resource.h>

#define FILES	40

static int
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void
open_files(int files[FILES])
{
	int i;

	for (i = 0; i < FILES; i++)
		require((files[i] = open("/", O_RDONLY | O_DIRECTORY)) >= 0,
			"open");
}

/* How many are open, which are closed then. */
static int
close_files(const int files[FILES])
{
	int i, count = 0;

	for (i = 0; i < FILES; i++)
		count += is_open(files[i]) && close(files[i]) == 0;
	return count;
}

static void
close_each(int first)
{
	int fd, last = (int)sysconf(_SC_OPEN_MAX);

	for (fd = first; fd < last && fd < 4096; fd++)
		close(fd);
}

static void
close_by_range(int first)
{
	require(close_range((unsigned)first, ~0U, 0) == 0, "close_range");
}

static const struct way {
	const char *name;
	void (*close)(int first);
} ways[] = {
	{ "close", close_each },
	{ "close_range", close_by_range },
	{ "closefrom", closefrom },
};

/* The program closes all that is beside its ports. */
static void
check_others(const char *vale, const struct way *way)
{
	struct port a = port_open(name_of(vale, "a"));
	struct port b = port_open(name_of(vale, "b"));
	int files[FILES], i;

	/* Close by each other, with the numbers of the library around them. */
	a.fd = dup2(a.fd, 20);
	b.fd = dup2(b.fd, 21);
	close_each(3 + 19);
	way->close(22);
	for (i = 3; i < 20; i++)
		close(i);
	open_files(files);
	for (i = 0; i < 3; i++) {
		port_send(&a, broadcast, mac_of(1), (uint32_t)i);
		check_number(port_take(&b), i, way->name);
		port_rxsync(&b);
	}
	port_close(&a);
	port_close(&b);
	check_number(close_files(files), FILES, "files stay open");
	check(!port_exists(name_of(vale, "a")), "the port is gone");
}

/* Of a port it keeps the mapping alone. */
static void
check_mapping(const char *vale, const struct way *way)
{
	struct port port = port_open(name_of(vale, "a"));
	int files[FILES];

	way->close(3);
	check(!is_open(port.fd), "%s: the port's number is closed", way->name);
	open_files(files);
	check(port_exists(name_of(vale, "a")), "a mapping keeps the port");
	munmap(port.mem, port.reg.nr_memsize);
	check_number(close_files(files), FILES, "files stay open");
	check(!port_exists(name_of(vale, "a")), "the port is gone");
}

/* Every number is another file by now. */
static void
check_taken(const char *vale)
{
	struct rlimit limit;
	struct port port = port_open(name_of(vale, "a"));
	int fd, last, taken = 0, left = 0;

	require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	last = limit.rlim_cur < 600 ? (int)limit.rlim_cur : 600;
	for (fd = 3; fd < last; fd++)
		taken += fd == port.fd || dup2(STDIN_FILENO, fd) == fd;
	check_number(taken, last - 3, "dup2 takes all numbers");
	munmap(port.mem, port.reg.nr_memsize);
	close(port.fd);
	for (fd = 3; fd < last; fd++)
		left += fd != port.fd && is_open(fd);
	check_number(left, last - 4, "what is there stays open");
	for (fd = 3; fd < last; fd++)
		close(fd);
	check(!port_exists(name_of(vale, "a")), "the port is gone");
}

int
main(int argc, char **argv)
{
	const char *vale = argc > 1 ? argv[1] : "valeClosed";
	size_t i;

	if (argc > 2) {
		rlim_t most = (rlim_t)atoi(argv[2]);
		struct rlimit limit = { most, most };

		require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	}
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		check_others(vale, &ways[i]);
		check_mapping(vale, &ways[i]);
	}
	check_taken(vale);
	return check_result();
}
