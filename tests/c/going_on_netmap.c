/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a netmap program sees of the end of its daemon, and how it goes on: it
 * reads what lies in its ring, and registers again on a new descriptor.
 * usage: going_on_netmap PORT poll|sync
 */
#include "port.h"

#include <signal.h>
#include <unistd.h>

#define NUMBER_AT 42

static void
show(struct netmap_ring *ring)
{
	for (; !nm_ring_empty(ring); ring_advance(ring, 1)) {
		struct netmap_slot *slot = &ring->slot[ring->head];
		uint32_t number;

		memcpy(&number, NETMAP_BUF(ring, slot->buf_idx) + NUMBER_AT, sizeof number);
		printf("got %u\n", number);
		fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	struct port port;
	int syncs, revents, polls, signal;
	sigset_t signals;

	require(argc == 3, "usage: going_on_netmap PORT HOW");
	/* It says that there is a daemon again. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	port = port_open(argv[1]);
	printf("ready\n");
	fflush(stdout);
	if (strcmp(argv[2], "poll") == 0) {
		do {
			revents = wait_events(port.fd, POLLIN, -1);
			show(port_rx(&port));
		} while (revents == POLLIN);
		check_number(revents, POLLERR, "poll tells the end");
		for (polls = 0; polls < 3; polls++)
			check_number(wait_events(port.fd, POLLIN | POLLOUT, -1), POLLERR,
				     "and does not wait any more");
	} else {
		for (syncs = 0; ioctl(port.fd, NIOCRXSYNC, NULL) == 0; syncs++) {
			show(port_rx(&port));
			/* The daemon lives as long as the test wants. */
			if (syncs % 64 == 0)
				usleep(100);
		}
		check_call(-1, EIO, "a sync tells the end");
	}
	show(port_rx(&port));
	check_call(ioctl(port.fd, NIOCRXSYNC, NULL), EIO, "NIOCRXSYNC");
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EIO, "NIOCTXSYNC");
	port_close(&port);
	printf("ended\n");
	fflush(stdout);
	sigwait(&signals, &signal);
	port = port_open(argv[1]);
	printf("again\n");
	fflush(stdout);
	require(wait_events(port.fd, POLLIN, PATIENCE_MS) == POLLIN, "packets");
	show(port_rx(&port));
	port_close(&port);
	return check_result();
}
