/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that succeed leave errno alone, as system calls do.
 *
 * usage: errno_kept PORT
 */
#define _GNU_SOURCE
#include "check.h"
#include "port.h"
#include <net/if.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define MARK	12345

/* The call succeeds, and errno is what it was. */
#define KEPT(call)							\
	do {								\
		long done;						\
									\
		errno = MARK;						\
		done = (long)(call);					\
		if (done == -1)						\
			check(0, "%s (%s)", #call, strerror(errno));	\
		else							\
			check(errno == MARK, "%s (errno %d)", #call,	\
			      errno);					\
	} while (0)

static struct pollfd one;
static struct timeval soon = { 0, 1000 };
static struct timespec moment = { 0, 1000000 };
static struct epoll_event event;

static fd_set *
set_of(int fd)
{
	static fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return &set;
}

static void
devices(const char *name)
{
	struct nmreq_header hdr;
	struct nmreq_register reg;
	struct stat attributes;
	int fd, copy, set;
	void *memory;

	memset(&hdr, 0, sizeof(hdr));
	memset(&reg, 0, sizeof(reg));
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = NETMAP_REQ_REGISTER;
	snprintf(hdr.nr_name, sizeof(hdr.nr_name), "%s", name);
	hdr.nr_body = (uintptr_t)&reg;
	reg.nr_mode = NR_REG_ALL_NIC;

	KEPT(stat("/dev/netmap", &attributes));
	KEPT(access("/dev/netmap", R_OK | W_OK));
	KEPT(fd = open("/dev/netmap", O_RDWR));
	KEPT(ioctl(fd, NIOCCTRL, &hdr));
	KEPT(memory = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0));
	KEPT(ioctl(fd, NIOCTXSYNC, NULL));
	KEPT(ioctl(fd, NIOCRXSYNC, NULL));
	one.fd = fd;
	one.events = POLLIN | POLLOUT;
	KEPT(poll(&one, 1, 0));
	one.events = POLLIN;
	KEPT(poll(&one, 1, 1));
	KEPT(ppoll(&one, 1, &moment, NULL));
	KEPT(select(fd + 1, set_of(fd), NULL, NULL, &soon));
	KEPT(pselect(fd + 1, set_of(fd), NULL, NULL, &moment, NULL));
	KEPT(set = epoll_create1(0));
	event.events = EPOLLIN;
	KEPT(epoll_wait(set, &event, 1, 0));
	KEPT(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	event.events = EPOLLIN;
	KEPT(epoll_wait(set, &event, 1, 0));
	KEPT(epoll_wait(set, &event, 1, 1));
	KEPT(epoll_pwait(set, &event, 1, 1, NULL));
	event.events = EPOLLOUT;
	KEPT(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
	KEPT(epoll_wait(set, &event, 1, 1));
	one.fd = set;
	KEPT(poll(&one, 1, 1));
	KEPT(copy = dup(set));
	KEPT(close(copy));
	KEPT(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
	KEPT(close(set));
	KEPT(fcntl(fd, F_GETFL));
	KEPT(copy = dup(fd));
	KEPT(fcntl(copy, F_SETFD, FD_CLOEXEC));
	KEPT(close(copy));
	KEPT(copy = fcntl(fd, F_DUPFD, 100));
	KEPT(dup2(fd, 100));
	KEPT(close(100));
	KEPT(mprotect(memory, 4096, PROT_READ));
	KEPT(munmap(memory, reg.nr_memsize));
	KEPT(close(fd));
}

static void
others(void)
{
	char byte = 0;
	struct iovec vector = { &byte, 1 };
	struct msghdr message;
	int ends[2], plain, child;

	memset(&message, 0, sizeof(message));
	message.msg_iov = &vector;
	message.msg_iovlen = 1;
	KEPT(plain = open("/dev/null", O_RDWR));
	KEPT(write(plain, &byte, 1));
	KEPT(read(plain, &byte, 1));
	KEPT(close(plain));
	KEPT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	KEPT(send(ends[0], &byte, 1, 0));
	KEPT(recv(ends[1], &byte, 1, 0));
	KEPT(sendmsg(ends[0], &message, 0));
	KEPT(recvmsg(ends[1], &message, 0));
	KEPT(writev(ends[0], &vector, 1));
	KEPT(readv(ends[1], &vector, 1));
	one.fd = ends[1];
	KEPT(poll(&one, 1, 1));
	KEPT(select(ends[1] + 1, set_of(ends[1]), NULL, NULL, &soon));
	KEPT(close(ends[0]));
	KEPT(close(ends[1]));
	KEPT(if_nametoindex("lo"));
	errno = MARK;
	child = fork();
	if (child == 0)
		_exit(errno != MARK);
	check(errno == MARK, "fork");
	KEPT(waitpid(child, &ends[0], 0));
	check_number(ends[0], 0, "in a child of fork");
}

int
main(int argc, char **argv)
{
	require(argc == 2, "usage: errno_kept PORT");
	/* What is done once, and again. */
	devices(argv[1]);
	devices(argv[1]);
	others();
	return check_result();
}
