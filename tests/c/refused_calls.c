/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that the kernel refuses change nothing: after each, a descriptor is what it was, and so are
 * its mapping and its place in an epoll set.
 */
#define _GNU_SOURCE
#include "check.h"
#include "port.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>

#define NONE	(-1)

int close_range(unsigned, unsigned, int);

static int own, set, plain, other_set, unused;
static void *memory, *interface;
static size_t size;
/* The compiler is not to see that it is none. */
static void *volatile nowhere;
static struct epoll_event event;

/* No number is left for another descriptor while the call is made. */
#define WITHOUT_NUMBERS(call)	(limit_numbers(1), result = (call), error = errno, limit_numbers(0), errno = error, result)

static void
limit_numbers(int on)
{
	static struct rlimit before;
	struct rlimit none;

	if (on) {
		getrlimit(RLIMIT_NOFILE, &before);
		none = before;
		none.rlim_cur = 0;
		setrlimit(RLIMIT_NOFILE, &none);
	} else {
		setrlimit(RLIMIT_NOFILE, &before);
	}
}

static int
failed(void *at)
{
	return at == MAP_FAILED ? -1 : 0;
}

/* Whether all is as it was. */
static int
is_unchanged(void)
{
	struct pollfd wanted = { own, POLLOUT, 0 };

	return ioctl(own, NIOCTXSYNC, NULL) == 0 && poll(&wanted, 1, 0) == 1 && wanted.revents == POLLOUT &&
	    epoll_wait(set, &event, 1, 0) == 1 && event.data.fd == own &&
	    ((volatile struct netmap_if *)interface)->ni_tx_rings == 1;
}

#define REFUSED(call, expected) do {						\
	int got = (call), why = errno;						\
	check(got == -1 && why == (expected), "%s: %d %s", #call, got,	\
	    got == -1 ? strerror(why) : "done");				\
	check(is_unchanged(), "%s: nothing has changed", #call);		\
} while (0)

int
main(int argc, char **argv)
{
	struct timespec bad_time = { 0, -1 };
	struct epoll_event wanted = { .events = EPOLLOUT };
	struct port port;
	int result, error, value = 0, ends[2];
	fd_set some;

	if (argc < 2)
		return 2;
	port = port_open(argv[1]);
	own = port.fd;
	memory = port.mem;
	interface = port.nifp;
	size = port.reg.nr_memsize;
	set = epoll_create1(0);
	other_set = epoll_create1(0);
	plain = pipe(ends) == 0 ? ends[0] : -1;
	wanted.data.fd = own;
	check(own >= 0 && set >= 0 && other_set >= 0 && plain >= 0, "all is open");
	check_number(epoll_ctl(set, EPOLL_CTL_ADD, own, &wanted), 0, "it is in a set");
	check(is_unchanged(), "a wait finds it");
	unused = 1000;

	REFUSED(close(NONE), EBADF);
	REFUSED(close(unused), EBADF);
	REFUSED(close_range((unsigned)own, (unsigned)own, 0x80), EINVAL);
	REFUSED(close_range((unsigned)own + 1, (unsigned)own, 0), EINVAL);
	REFUSED(close_range(0, ~0U, 0x80), EINVAL);

	REFUSED(dup(unused), EBADF);
	REFUSED(WITHOUT_NUMBERS(dup(own)), EMFILE);
	REFUSED(WITHOUT_NUMBERS(dup(set)), EMFILE);
	REFUSED(dup2(unused, own), EBADF);
	REFUSED(dup2(unused, set), EBADF);
	REFUSED(dup2(own, NONE), EBADF);
	REFUSED(dup3(own, own, 0), EINVAL);
	REFUSED(dup3(plain, own, 0x40), EINVAL);
	REFUSED(dup3(own, set, 0x40), EINVAL);
	REFUSED(fcntl(own, F_DUPFD, NONE), EINVAL);
	REFUSED(fcntl(own, F_DUPFD_CLOEXEC, INT32_MAX), EINVAL);
	REFUSED(WITHOUT_NUMBERS(fcntl(own, F_DUPFD, 0)), EINVAL);
	REFUSED(fcntl(unused, F_DUPFD, own), EBADF);
	REFUSED(fcntl(own, 9999, 0), EINVAL);

	REFUSED(WITHOUT_NUMBERS(open("/dev/null", O_RDONLY)), EMFILE);
	REFUSED(WITHOUT_NUMBERS(open("/dev/netmap", O_RDWR)), EMFILE);
	REFUSED(WITHOUT_NUMBERS(socket(AF_UNIX, SOCK_STREAM, 0)), EMFILE);
	REFUSED(WITHOUT_NUMBERS(epoll_create1(0)), EMFILE);
	REFUSED(epoll_create1(0x77), EINVAL);

	REFUSED(epoll_ctl(set, EPOLL_CTL_ADD, own, &wanted), EEXIST);
	REFUSED(epoll_ctl(set, EPOLL_CTL_MOD, own, NULL), EFAULT);
	REFUSED(epoll_ctl(set, 77, own, &wanted), EINVAL);
	REFUSED(epoll_ctl(set, EPOLL_CTL_DEL, plain, NULL), ENOENT);
	REFUSED(epoll_ctl(other_set, EPOLL_CTL_DEL, own, NULL), ENOENT);
	REFUSED(epoll_ctl(other_set, EPOLL_CTL_MOD, own, &wanted), ENOENT);
	REFUSED(epoll_ctl(plain, EPOLL_CTL_ADD, own, &wanted), EINVAL);
	REFUSED(epoll_ctl(unused, EPOLL_CTL_DEL, own, NULL), EBADF);
	REFUSED(epoll_ctl(set, EPOLL_CTL_ADD, set, &wanted), EINVAL);
	REFUSED(epoll_wait(set, &event, 0, 0), EINVAL);
	REFUSED(epoll_pwait2(set, &event, 1, &bad_time, NULL), EINVAL);
	REFUSED(epoll_wait(set, nowhere, 1, 0), EFAULT);

	REFUSED(munmap((char *)memory + 1, size), EINVAL);
	REFUSED(munmap(memory, 0), EINVAL);
	REFUSED(failed(mremap(memory, size, size, 0x80)), EINVAL);
	REFUSED(failed(mremap((char *)memory + 1, size, size, MREMAP_MAYMOVE)), EINVAL);
	REFUSED(failed(mmap(memory, size, PROT_READ, MAP_SHARED | MAP_FIXED, unused, 0)), EBADF);
	REFUSED(failed(mmap(memory, size, PROT_READ, MAP_FIXED, plain, 0)), EINVAL);
	REFUSED(failed(mmap(memory, size, PROT_READ, MAP_FIXED, own, 0)), EINVAL);
	REFUSED(failed(mmap((char *)memory + 1, size, PROT_READ, MAP_SHARED | MAP_FIXED, own, 0)), EINVAL);
	REFUSED(mprotect((char *)memory + 1, size, PROT_NONE), EINVAL);

	REFUSED(setsockopt(unused, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), EBADF);
	REFUSED(bind(unused, NULL, 0), EBADF);
	FD_ZERO(&some);
	FD_SET(own, &some);
	REFUSED(select(NONE, &some, NULL, NULL, NULL), EINVAL);
	REFUSED(pselect(own + 1, NULL, &some, NULL, &bad_time, NULL), EINVAL);
	REFUSED(poll(nowhere, 1, 0), EFAULT);
	return 0;
}
