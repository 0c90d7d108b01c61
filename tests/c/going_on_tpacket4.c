/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program of AF_PACKET V4 sees of the end of its daemon, and how it goes
 * on: with another socket.
 * usage: going_on_tpacket4 INTERFACE
 */
#include "tpacket4.h"

#include <signal.h>

#define NUMBER_AT 42

/* Prints what has come, and gives the frames back. */
static void
show(struct v4 *v4)
{
	struct tpacket4_desc desc;
	uint32_t number;

	while (get(&v4->rx, &desc)) {
		require(desc.error == 0, "received without error");
		memcpy(&number, data_of(v4, &desc) + NUMBER_AT, sizeof number);
		printf("got %u\n", number);
		put(&v4->rx, frame_of(desc.idx, 0, 0));
	}
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct v4 v4;
	int revents, polls, signal;
	sigset_t signals;

	require(argc == 2, "usage: going_on_tpacket4 INTERFACE");
	/* It says that there is a daemon again. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	v4 = v4_open(argv[1]);
	fill(&v4, 0, DESCS);
	printf("ready\n");
	fflush(stdout);
	do {
		revents = await(&v4, POLLIN, -1);
		show(&v4);
	} while (revents == POLLIN);
	check_number(revents, POLLERR, "poll tells the end");
	for (polls = 0; polls < 3; polls++)
		check_number(await(&v4, POLLIN, -1), POLLERR, "and does not wait any more");
	put(&v4.tx, frame_of(DESCS, 60, 0));
	check_call(sendto(v4.fd, NULL, 0, 0, NULL, 0), ENETDOWN, "a send that waits");
	v4_close(&v4);
	printf("ended\n");
	fflush(stdout);
	sigwait(&signals, &signal);
	v4 = v4_open(argv[1]);
	fill(&v4, 0, DESCS);
	printf("again\n");
	fflush(stdout);
	check_number(await(&v4, POLLIN, PATIENCE_MS), POLLIN, "packets");
	show(&v4);
	v4_close(&v4);
	return check_result();
}
