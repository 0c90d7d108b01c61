/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes: ends that come and go, and that wait (S-PIPE-8, 10). */
#include "pipe.h"

/* ---- S-PIPE-8: ends that come and go ---- */

static void
peer_not_open(void)
{
	struct port master = port_open(own("c${1")), slave;
	uint32_t all = port_tx(&master)->num_slots - 1;

	send_frames(&master, 0, all);
	check_number(tx_room(&master), 0, "n-1 slots wait for the peer");
	check_number(wait_events(master.fd, POLLIN | POLLOUT, 0), 0,
		     "no event, no hang-up");
	slave = port_open(own("c$}1"));
	check(take_frames(&slave, 0, all), "it gets them all");
	port_rxsync(&slave);
	check_number(tx_room(&master), all, "all released");
}

static void
peer_comes_back(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t all = port_tx(&ends.master)->num_slots - 1;

	send_frames(&ends.master, 0, 5);
	send_frames(&ends.slave, 50, 4);
	check(take_frames(&ends.slave, 0, 2), "2 of 5 before");
	port_rxsync(&ends.slave);
	port_close(&ends.slave);
	check_number(wait_events(ends.master.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "what it sent can be read, no hang-up is signalled");
	check(take_frames(&ends.master, 50, 4), "all of it");
	send_frames(&ends.master, 5, 15);
	check_number(tx_room(&ends.master), all - 18, "sending goes on");
	ends.slave = port_open(own("c$}1"));
	check_number(rx_count(&ends.slave), 18, "18 are there");
	check(take_frames(&ends.slave, 2, 18), "in order");
	port_rxsync(&ends.slave);
	check_works(&ends.master, &ends.slave);
}

/* Indices are the pair's, not the descriptor's. */
static void
reopened_in_the_middle(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t i;

	for (i = 0; i < 20; i++) {
		send_frames(&ends.master, i * 10, 10);
		if (!take_frames(&ends.slave, i * 10, 10))
			break;
		port_rxsync(&ends.slave);
		if (i % 2) {
			port_close(&ends.slave);
			ends.slave = port_open(own("c$}1"));
		} else {
			port_close(&ends.master);
			ends.master = port_open(own("c${1"));
		}
	}
	check_number(i, 20, "rounds, with an end reopened after each");
}

static void
both_closed(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends = pipe_open();

	send_frames(&ends.master, 7, 3);
	port_close(&ends.master);
	check(take_frames(&ends.slave, 7, 1), "the last frames of a sender");
	port_close(&ends.slave);
	reg.nr_tx_slots = 64;
	ends.master = port_open_as(own("c${1"), reg);
	check_number(ends.master.reg.nr_tx_slots, 64, "a new pair");
	check_number(rx_count(&ends.master), 0, "is empty");
	check_number(tx_room(&ends.master), 63, "both ways");
}

/* The peer is another process, which dies. */
static void
peer_dies(void)
{
	struct port master = port_open(own("c${1")), slave;
	int status;
	pid_t child;

	send_frames(&master, 0, 10);
	child = forked();
	if (child == 0) {
		slave = port_open(own("c$}1"));
		if (take_frames(&slave, 0, 4))
			port_rxsync(&slave);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &status, 0);
	check(WIFSIGNALED(status), "the peer is dead");
	check_number(tx_room(&master), 1023 - 6, "what it released");
	slave = port_open(own("c$}1"));
	check(take_frames(&slave, 4, 6), "the rest");
}

/* ---- S-PIPE-10: who is woken ---- */

/* Runs act in another process once this one is asleep. */
static pid_t
meanwhile(void (*act)(const struct pipe_ends *), const struct pipe_ends *ends)
{
	int self = getpid();
	pid_t child = forked();

	if (child == 0) {
		require(soon(thread_sleeps, &self), "it sleeps");
		act(ends);
		_exit(0);
	}
	return child;
}

static void
send_one(const struct pipe_ends *ends)
{
	port_send(&ends->master, mac_of(2), mac_of(1), 77);
}

static void
release_one(const struct pipe_ends *ends)
{
	port_rxsync(&ends->slave);
	ring_advance(port_rx(&ends->slave), 1);
	port_rxsync(&ends->slave);
}

static void
wakes_receiver(void)
{
	struct pipe_ends ends = pipe_open();
	pid_t child = meanwhile(send_one, &ends);

	check_number(wait_events(ends.slave.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "a receiver is woken");
	check_number(port_take(&ends.slave), 77, "by the frame");
	check_child(child, "the sender");
}

static void
wakes_sender(void)
{
	struct pipe_ends ends = pipe_open();
	pid_t child;

	send_frames(&ends.master, 0, 1023);
	child = meanwhile(release_one, &ends);
	check_number(wait_events(ends.master.fd, POLLOUT, PATIENCE_MS),
		     POLLOUT, "a sender is woken");
	check_number(nm_ring_space(port_tx(&ends.master)), 1, "by one slot");
	check_child(child, "the receiver");
}

/* Several descriptors of one end share its rings. */
static void
several_descriptors(void)
{
	struct pipe_ends ends = pipe_open();
	struct port second = port_open(own("c$}1"));

	send_frames(&ends.master, 0, 6);
	check(take_frames(&ends.slave, 0, 3), "three through the first");
	port_rxsync(&ends.slave);
	check(take_frames(&second, 3, 3), "three through the second");
	port_rxsync(&second);
	check_number(tx_room(&ends.master), 1023, "all released");
	port_close(&second);
	check_works(&ends.master, &ends.slave);
}

static void
each_waiter_is_woken(void)
{
	struct pipe_ends ends = pipe_open();
	int status[3] = { 1, 1, 1 }, ready[2], i;
	pid_t child[3];
	char byte;

	require(pipe(ready) == 0, "pipe");
	for (i = 0; i < 3; i++) {
		child[i] = forked();
		if (child[i] == 0) {
			struct port own_end = port_open(own("c$}1"));

			require(write(ready[1], "", 1) == 1, "ready");
			_exit(!(wait_events(own_end.fd, POLLIN,
					    PATIENCE_MS) & POLLIN));
		}
	}
	for (i = 0; i < 3; i++)
		require(read(ready[0], &byte, 1) == 1, "ready");
	send_one(&ends);
	for (i = 0; i < 3; i++)
		waitpid(child[i], &status[i], 0);
	check(!status[0] && !status[1] && !status[2],
	      "three processes that wait on one end");
}

static const struct test_case cases[] = {
	{ "S-PIPE-8", "the peer is not open yet", peer_not_open },
	{ "S-PIPE-8", "the peer comes back", peer_comes_back },
	{ "S-PIPE-8", "either end reopened", reopened_in_the_middle },
	{ "S-PIPE-8", "both closed", both_closed },
	{ "S-PIPE-8", "the peer dies", peer_dies },
	{ "S-PIPE-10", "a receiver", wakes_receiver },
	{ "S-PIPE-10", "a sender", wakes_sender },
	{ "S-PIPE-10", "several descriptors of one end",
	  several_descriptors },
	{ "S-PIPE-10", "several waiters", each_waiter_is_woken },
};

CHAPTER(cases)
