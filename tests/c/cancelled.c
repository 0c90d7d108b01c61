/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits are points where a thread can be cancelled, as POSIX has it: for a
 * port alone, and with descriptors of the kernel's. A cancelled wait leaves
 * nothing behind: the port works, and goes when it is closed.
 *
 * usage: cancelled SWITCH
 */
#include "port.h"
#include "cancel.h"

#include <sys/epoll.h>
#include <sys/select.h>

#define TIMES	100

static int own, other[2], set;
static const char *kind;

static void *
wait_for_ever(void *unused)
{
	struct pollfd fds[2] = { { own, POLLIN, 0 }, { other[0], POLLIN, 0 } };
	struct epoll_event event;
	fd_set readable;

	(void)unused;
	FD_ZERO(&readable);
	FD_SET(own, &readable);
	if (!strcmp(kind, "poll"))
		poll(fds, 1, -1);
	else if (!strcmp(kind, "poll of both"))
		poll(fds, 2, -1);
	else if (!strcmp(kind, "ppoll"))
		ppoll(fds, 1, NULL, NULL);
	else if (!strcmp(kind, "select"))
		select(own + 1, &readable, NULL, NULL, NULL);
	else if (!strcmp(kind, "pselect"))
		pselect(own + 1, &readable, NULL, NULL, NULL, NULL);
	else if (!strcmp(kind, "epoll_wait"))
		epoll_wait(set, &event, 1, -1);
	else if (!strcmp(kind, "epoll_pwait"))
		epoll_pwait(set, &event, 1, -1, NULL);
	return NULL;
}

int
main(int argc, char **argv)
{
	static const char *const kinds[] = { "poll", "poll of both", "ppoll",
		"select", "pselect", "epoll_wait", "epoll_pwait" };
	const char *name = argc > 1 ? argv[1] : "valeCancel";
	struct epoll_event event = { .events = EPOLLIN };
	struct port port = port_open(name_of(name, "a"));
	struct port sender = port_open(name_of(name, "b"));
	size_t i;

	own = port.fd;
	require(pipe(other) == 0, "pipe");
	require((set = epoll_create1(0)) >= 0
		&& epoll_ctl(set, EPOLL_CTL_ADD, own, &event) == 0
		&& epoll_ctl(set, EPOLL_CTL_ADD, other[0], &event) == 0,
		"an epoll set");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int cancelled;

		kind = kinds[i];
		for (cancelled = 0; cancelled < TIMES; cancelled++) {
			pthread_t thread;

			require(!pthread_create(&thread, NULL, wait_for_ever,
				NULL), "pthread_create");
			require(is_cancelled(thread, cancelled,
				PATIENCE_MS / 1000 + 1),
				"%s: all threads are cancelled", kind);
		}
		port_send(&sender, broadcast, mac_of(1), (uint32_t)i);
		check_number(port_take(&port), (long long)i, kind);
		port_rxsync(&port);
	}
	close(set);
	port_close(&port);
	check(!port_exists(name_of(name, "a")), "the port goes");
	port_close(&sender);
	return check_result();
}
