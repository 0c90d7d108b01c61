/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that has functions of libc's names itself, as a user-level network
 * stack has. It is linked with a trap under each of these names; what it calls
 * itself are the functions behind its own, as such a stack does.
 *
 * usage: own_names SENDER RECEIVER
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <unistd.h>

#include <net/netmap.h>
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

enum { FRAMES = 300, LENGTH = 60, PATIENCE_MS = 20000 };

/* What the kernel does, without a function of any name. */
static long
kernel(long number, long a, long b, long c)
{
	long result;
#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(result)
	    : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	result = x0;
#endif
	return result;
}

#include <sys/syscall.h>

static void
say(const char *text)
{
	kernel(SYS_write, 2, (long)text, (long)strlen(text));
}

static void
stop(const char *what, const char *name)
{
	say(what);
	say(name);
	say("\n");
	for (;;)
		kernel(SYS_exit_group, 70, 0, 0);
}

/* Where every function of the program's own ends that has one of libc's names. */
void own_function(const char *name);
void
own_function(const char *name)
{
	stop("the program's own function was called: ", name);
}

/* The function behind the program's own. */
static void *
next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL)
		stop("there is no ", name);
	return found;
}

#define CALL(result, name, types, args)                          \
	do {                                                     \
		int(*call) types;                                \
		void *found = next(#name);                       \
		memcpy(&call, &found, sizeof(call));             \
		result = call args;                              \
	} while (0)

static void
require(int holds, const char *what)
{
	if (!holds)
		stop("not ok: ", what);
}

struct port {
	int fd;
	struct netmap_if *nifp;
	void *memory;
	size_t size;
};

static struct port
port_open(const char *name)
{
	void *(*map)(void *, size_t, int, int, int, off_t);
	void *found = next("mmap");
	struct nmreq_register reg;
	struct nmreq_header header;
	struct port port;
	int done;

	memcpy(&map, &found, sizeof(map));
	memset(&reg, 0, sizeof(reg));
	memset(&header, 0, sizeof(header));
	header.nr_version = NETMAP_API;
	header.nr_reqtype = NETMAP_REQ_REGISTER;
	header.nr_body = (uintptr_t)&reg;
	/* `netmap:` is said in front of interfaces by people, not by programs. */
	if (strncmp(name, "netmap:", 7) == 0)
		name += 7;
	strncpy(header.nr_name, name, sizeof(header.nr_name) - 1);
	reg.nr_mode = NR_REG_ALL_NIC;
	CALL(port.fd, open, (const char *, int, ...), ("/dev/netmap", O_RDWR));
	require(port.fd >= 0, "open");
	CALL(done, ioctl, (int, unsigned long, ...), (port.fd, NIOCCTRL, &header));
	require(done == 0, "NIOCCTRL");
	port.size = reg.nr_memsize;
	port.memory = map(NULL, port.size, PROT_READ | PROT_WRITE, MAP_SHARED, port.fd, 0);
	require(port.memory != MAP_FAILED, "mmap");
	port.nifp = NETMAP_IF(port.memory, reg.nr_offset);
	return port;
}

static void
port_close(struct port *port)
{
	int done;

	CALL(done, munmap, (void *, size_t), (port->memory, port->size));
	require(done == 0, "munmap");
	CALL(done, close, (int), (port->fd));
	require(done == 0, "close");
}

static int
wait_for(struct port *port, short events, int turn)
{
	struct pollfd fd = { .fd = port->fd, .events = events };
	struct epoll_event event = { .events = (uint32_t)events };
	int done, set;

	switch (turn % 3) {
	case 0:
		CALL(done, poll, (struct pollfd *, nfds_t, int), (&fd, 1, PATIENCE_MS));
		return done == 1;
	case 1: {
		struct timeval time = { PATIENCE_MS / 1000, 0 };
		fd_set one, none;

		FD_ZERO(&one);
		FD_ZERO(&none);
		FD_SET(port->fd, &one);
		CALL(done, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *),
		    (port->fd + 1, events == POLLIN ? &one : &none,
			events == POLLOUT ? &one : &none, NULL, &time));
		return done == 1;
	}
	default:
		CALL(set, epoll_create1, (int), (0));
		require(set >= 0, "epoll_create1");
		CALL(done, epoll_ctl, (int, int, int, struct epoll_event *),
		    (set, EPOLL_CTL_ADD, port->fd, &event));
		require(done == 0, "epoll_ctl");
		CALL(done, epoll_wait, (int, struct epoll_event *, int, int),
		    (set, &event, 1, PATIENCE_MS));
		require(done == 1, "epoll_wait");
		CALL(done, close, (int), (set));
		return done == 0;
	}
}

static void
fill(char *frame, int number)
{
	memset(frame, 0x33, 12);
	frame[12] = 0x08;
	frame[13] = 0x01;
	for (int i = 14; i < LENGTH; i++)
		frame[i] = (char)(number * 7 + i);
}

/* One frame, each time by another way to wait. */
static void
cross(struct port *from, struct port *to, int number)
{
	struct netmap_ring *tx = NETMAP_TXRING(from->nifp, 0);
	struct netmap_ring *rx = NETMAP_RXRING(to->nifp, 0);
	char frame[LENGTH];
	int done;

	fill(frame, number);
	if (nm_ring_empty(tx))
		require(wait_for(from, POLLOUT, number), "there is room");
	memcpy(NETMAP_BUF(tx, tx->slot[tx->head].buf_idx), frame, LENGTH);
	tx->slot[tx->head].len = LENGTH;
	tx->head = tx->cur = nm_ring_next(tx, tx->head);
	CALL(done, ioctl, (int, unsigned long, ...), (from->fd, NIOCTXSYNC, NULL));
	require(done == 0, "NIOCTXSYNC");
	for (;;) {
		struct netmap_slot *slot;
		int ours;

		if (nm_ring_empty(rx)) {
			require(wait_for(to, POLLIN, number), "the frame arrives");
			CALL(done, ioctl, (int, unsigned long, ...), (to->fd, NIOCRXSYNC, NULL));
			require(done == 0, "NIOCRXSYNC");
			continue;
		}
		slot = &rx->slot[rx->head];
		/* An interface's own stack may have something to say in between. */
		ours = slot->len >= LENGTH &&
		    memcmp(NETMAP_BUF(rx, slot->buf_idx), frame, LENGTH) == 0;
		rx->head = rx->cur = nm_ring_next(rx, rx->head);
		if (ours)
			return;
	}
}

int
main(int argc, char **argv)
{
	struct port sender, receiver;
	int copy, done;
	char byte;

	require(argc == 3, "usage: own_names SENDER RECEIVER");
	sender = port_open(argv[1]);
	receiver = port_open(argv[2]);
	for (int i = 0; i < FRAMES; i++)
		cross(&sender, &receiver, i);

	CALL(copy, dup, (int), (sender.fd));
	require(copy >= 0, "dup");
	port_close(&sender);
	sender.fd = copy;
	CALL(done, ioctl, (int, unsigned long, ...), (copy, NIOCTXSYNC, NULL));
	require(done == 0, "the copy of a descriptor syncs");
	CALL(done, fcntl, (int, int, ...), (copy, F_GETFL));
	require(done >= 0 && (done & O_ACCMODE) == O_RDWR, "F_GETFL");
	CALL(done, read, (int, void *, size_t), (copy, &byte, 1));
	require(done == -1 && errno == EINVAL, "the device cannot be read");
	CALL(done, close, (int), (copy));
	require(done == 0, "close");
	/* The other is open when the program ends. */
	printf("ok\n");
	return 0;
}
