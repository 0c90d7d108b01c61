/*
 * A file system in user space that stops answering, of an ordinary user: what closes a descriptor of its file, or the
 * last one where it caches writes, waits until this program ends. The daemon is made to do so, by a child: this process
 * has none of its files open, which would hold itself up.
 *
 *   stuck_fuse direct SOCKET FOLDER   sends a descriptor of the file with a request, and others until the user is behind
 *   stuck_fuse queued SOCKET FOLDER   sends one in the queue of the socket for an answer, to a daemon that stands still
 *                                     until it says "sent"; then has REFUSED connections refused
 *
 * It says "skip: WHY" where the machine does not let its users mount such a file system.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* More than a daemon closes in the background before it stops. */
enum { ADMITTED = 200, REFUSED = 3000, MOST = 252 };

static int fuse;
/* The file system tells the child that it holds up the daemon. */
static int news[2];

static void fail(const char *what)
{
	printf("not ok: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void skip(const char *what)
{
	printf("skip: %s: %s\n", what, strerror(errno));
	exit(0);
}

static void answer(unsigned long long unique, int error, const void *data, size_t length)
{
	char bytes[512];
	struct fuse_out_header header = { .len = sizeof header + length, .error = error, .unique = unique };

	memcpy(bytes, &header, sizeof header);
	if (length)
		memcpy(bytes + sizeof header, data, length);
	if (write(fuse, bytes, header.len) < 0)
		fail("an answer");
}

static struct fuse_attr attributes(unsigned long long inode)
{
	struct fuse_attr attr = { .ino = inode, .nlink = 1, .blksize = 4096 };

	attr.mode = inode == 1 ? S_IFDIR | 0755 : S_IFREG | 0666;
	attr.size = inode == 1 ? 0 : 4096;
	return attr;
}

static void got_stuck(void)
{
	if (write(news[1], "", 1) < 0)
		fail("a pipe");
}

static void serve(int is_direct)
{
	static char bytes[1 << 17];

	for (;;) {
		struct fuse_in_header header;

		if (read(fuse, bytes, sizeof bytes) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			fail("the file system");
		}
		memcpy(&header, bytes, sizeof header);
		switch (header.opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = { .major = 7, .minor = 31, .max_write = 4096, .max_readahead = 4096 };

			out.flags = FUSE_WRITEBACK_CACHE | FUSE_BIG_WRITES;
			answer(header.unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = { .nodeid = 2, .generation = 1, .attr_valid = 1000, .entry_valid = 1000 };

			out.attr = attributes(2);
			answer(header.unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_GETATTR:
		case FUSE_SETATTR: {
			struct fuse_attr_out out = { .attr_valid = 1000, .attr = attributes(header.nodeid) };

			answer(header.unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = { .fh = 1 };

			answer(header.unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_FLUSH:
			if (is_direct)
				got_stuck();
			else
				answer(header.unique, 0, NULL, 0);
			break;
		case FUSE_WRITE:
			got_stuck();
			break;
		case FUSE_INTERRUPT:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
			break;
		case FUSE_RELEASE:
			answer(header.unique, 0, NULL, 0);
			break;
		default:
			answer(header.unique, -ENOSYS, NULL, 0);
		}
	}
}

static int connected(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		fail("connect");
	return fd;
}

/* A message that is no request, with descriptors. */
static int send_fds(int socket, const int *fds, int count)
{
	union {
		char bytes[CMSG_SPACE(MOST * sizeof(int))];
		struct cmsghdr header;
	} control = { .bytes = { 0 } };
	char text[2] = { 7, 36 };
	struct iovec part = { text, sizeof text };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control };

	message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return (int)sendmsg(socket, &message, MSG_NOSIGNAL);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		skip(path);
	close(fd);
}

/* Has a file system of its own at FOLDER, in namespaces of its own. */
static void mount_own(const char *folder)
{
	char text[128];
	unsigned int uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		skip("a user namespace");
	write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "0 %u 1", uid);
	write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof text, "0 %u 1", gid);
	write_file("/proc/self/gid_map", text);
	fuse = open("/dev/fuse", O_RDWR);
	if (fuse < 0)
		skip("/dev/fuse");
	snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("stuck", folder, "fuse", 0, text) < 0)
		skip("mount");
}

static void await_stuck(void)
{
	char byte;

	if (read(news[0], &byte, 1) != 1)
		fail("the file system has gone");
	printf("stuck\n");
	fflush(stdout);
}

static void direct(const char *file, const int *sockets)
{
	int fds[MOST], null = open("/dev/null", O_RDONLY), i;

	fds[0] = open(file, O_RDONLY);
	if (fds[0] < 0 || null < 0)
		fail("a file");
	fds[1] = null;
	if (send_fds(sockets[0], fds, 2) < 0)
		fail("a message");
	await_stuck();
	for (i = 0; i < MOST; i++)
		fds[i] = null;
	for (i = 1; i <= 4; i++)
		if (send_fds(sockets[i], fds, MOST) < 0)
			fail("a further message");
	printf("behind\n");
	fflush(stdout);
}

static void queued(const char *file, const char *socket, int first)
{
	static char bytes[4096] = { 1 };
	int one = open(file, O_RDWR), other = open(file, O_RDWR), pair[2], i;
	int admitted = 0;

	if (one < 0 || other < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		fail("a file");
	if (send_fds(pair[0], &one, 1) < 0)
		fail("a message");
	close(one);
	if (write(other, bytes, sizeof bytes) != sizeof bytes)
		fail("a write");
	if (send_fds(first, &pair[1], 1) < 0)
		fail("a request");
	close(pair[1]);
	/* The daemon, which stood still, has the last descriptor of that open file, in a socket. */
	printf("sent\n");
	fflush(stdout);
	await_stuck();
	while (admitted < ADMITTED) {
		connected(socket);
		admitted++;
	}
	for (i = 0; i < REFUSED; i++) {
		int fd = connected(socket);

		/* Why, and the end. */
		while (recv(fd, bytes, sizeof bytes, 0) > 0)
			;
		close(fd);
	}
	printf("refused\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int sockets[5], is_direct, i;
	char file[256];

	if (argc != 4)
		return 2;
	is_direct = !strcmp(argv[1], "direct");
	for (i = 0; i < 5; i++)
		sockets[i] = connected(argv[2]);
	mount_own(argv[3]);
	snprintf(file, sizeof file, "%s/x", argv[3]);
	fflush(stdout);
	if (pipe(news) < 0)
		fail("a pipe");
	switch (fork()) {
	case -1:
		fail("fork");
		break;
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fuse);
		if (is_direct)
			direct(file, sockets);
		else
			queued(file, argv[2], sockets[0]);
		for (;;)
			pause();
	default:
		for (i = 0; i < 5; i++)
			close(sockets[i]);
		serve(is_direct);
	}
}
