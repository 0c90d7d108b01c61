/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A handler of a signal calls functions that POSIX lets it call, with descriptors of the kernel's
 * and with one of ours, while the program allocates, and while it changes epoll sets. A handler
 * that waited for what it has interrupted would wait for ever, and one that allocates beside an
 * allocation that it has interrupted spoils the heap.
 */
#include "check.h"
#include "port.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#define SIGNALS	400

static struct port port;
static int ends[2];
/* An epoll set with our descriptor in it. */
static int kept;
static volatile sig_atomic_t handled, bad;

/* Calls of the allocator within a handler, which may have interrupted it. */
static __thread volatile sig_atomic_t within;
static volatile sig_atomic_t allocated;

/* Glibc's allocator, which those stand in front of. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

void *
malloc(size_t bytes)
{
	allocated += within;
	return __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
	allocated += within;
	return __libc_calloc(count, bytes);
}

void *
realloc(void *memory, size_t bytes)
{
	allocated += within;
	return __libc_realloc(memory, bytes);
}

void
free(void *memory)
{
	allocated += within && memory;
	__libc_free(memory);
}

static void
again(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 500 } };

	setitimer(ITIMER_REAL, &soon, NULL);
}

static void
on_alarm(int signal)
{
	struct pollfd ours[2] = { { port.fd, POLLOUT, 0 }, { ends[0], POLLIN, 0 } };
	struct pollfd kernels = { ends[0], POLLIN, 0 };
	struct epoll_event event = { .events = EPOLLOUT };
	struct timeval now = { 0, 0 };
	int before = errno, copy, set;
	struct stat status;
	char byte = 1;
	fd_set some;

	(void)signal;
	within = 1;
	bad |= write(ends[1], &byte, 1) != 1;
	bad |= poll(&kernels, 1, 0) != 1 || kernels.revents != POLLIN;
	bad |= poll(ours, 2, 0) != 2 || ours[0].revents != POLLOUT;
	FD_ZERO(&some);
	FD_SET(port.fd, &some);
	bad |= select(port.fd + 1, NULL, &some, NULL, &now) != 1;
	bad |= read(ends[0], &byte, 1) != 1;
	bad |= (copy = dup(ends[0])) < 0 || dup2(ends[1], copy) != copy || close(copy) != 0;
	bad |= (copy = fcntl(ends[0], F_DUPFD, 100)) < 0 || close(copy) != 0;
	bad |= (copy = dup(port.fd)) < 0 || close(copy) != 0;
	bad |= (set = epoll_create1(0)) < 0;
	bad |= epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) != 0;
	bad |= epoll_ctl(set, EPOLL_CTL_ADD, port.fd, &event) != 0;
	bad |= epoll_wait(set, &event, 1, 0) != 1 || event.events != EPOLLOUT;
	bad |= epoll_ctl(set, EPOLL_CTL_DEL, port.fd, NULL) != 0 || close(set) != 0;
	bad |= epoll_wait(kept, &event, 1, 0) != 1 || event.events != EPOLLOUT;
	bad |= (copy = open("/dev/null", O_RDONLY)) < 0 || fstat(copy, &status) != 0 || close(copy) != 0;
	bad |= (copy = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 || close(copy) != 0;
	within = 0;
	errno = before;
	handled++;
	again();
}

/* What a program does beside: most handlers interrupt the allocator. */
static void
allocate(void)
{
	void *parts[64];
	size_t at;

	for (at = 0; at < sizeof(parts) / sizeof(parts[0]); at++)
		parts[at] = malloc(8 + at % 16 * 16);
	while (at-- > 0)
		free(parts[at]);
}

/* Or the list of sets that have descriptors of ours in them. */
static void
change_sets(void)
{
	struct epoll_event event = { .events = EPOLLOUT };
	int set = epoll_create1(0);

	epoll_ctl(set, EPOLL_CTL_ADD, port.fd, &event);
	epoll_wait(set, &event, 1, 0);
	epoll_ctl(set, EPOLL_CTL_DEL, port.fd, NULL);
	close(set);
}

/* Or what the handler calls, with the same descriptor. */
static void
synchronise(void)
{
	struct pollfd wanted = { port.fd, POLLIN, 0 };

	ioctl(port.fd, NIOCTXSYNC, NULL);
	ioctl(port.fd, NIOCRXSYNC, NULL);
	poll(&wanted, 1, 0);
}

/* Or the loader. */
static void
look_up(void)
{
	check(dlsym(RTLD_DEFAULT, "no_such_function") == NULL, "there is none");
}

int
main(int argc, char **argv)
{
	static void (*const beside[])(void) = { look_up, allocate, change_sets, synchronise };
	struct epoll_event event = { .events = EPOLLOUT };
	size_t at;

	if (argc < 2)
		return 2;
	port = port_open(argv[1]);
	check_number(pipe(ends), 0, "a pipe");
	kept = epoll_create1(0);
	check_number(epoll_ctl(kept, EPOLL_CTL_ADD, port.fd, &event), 0, "a member");
	signal(SIGALRM, on_alarm);
	again();
	for (at = 0; at < sizeof(beside) / sizeof(beside[0]); at++) {
		handled = 0;
		while (handled < (beside[at] == look_up ? 1 : SIGNALS))
			beside[at]();
	}
	signal(SIGALRM, SIG_IGN);
	check_number(bad, 0, "what a handler calls");
	check_number(allocated, 0, "a handler does not allocate");
	port_close(&port);
	return 0;
}
