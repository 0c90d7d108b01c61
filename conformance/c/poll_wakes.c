/* SPDX-License-Identifier: BSD-2-Clause */
/* POLL: who waits is woken (S-POLL-7). */
#include "pair.h"
#include "waiter.h"

static void
a_packet_wakes(void)
{
	size_t p, c;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();

		for (c = 0; c < WAIT_CALLS; c++) {
			struct waiter waiter;
			pthread_t thread = start_waiting(
				&waiter, &wait_calls[c], pair.to.fd, POLLIN);

			port_send(&pair.from, broadcast, mac_of(1), 3);
			check_woken(thread, &waiter, "a packet");
			check_number(port_take(&pair.to), 3, "the packet");
			port_rxsync(&pair.to);
			port_txsync(&pair.from);
		}
		pair_close(&pair);
	}
}

static void
a_packet_of_another_process_wakes(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		struct pair pair = switch_pair();
		int self = getpid();
		pid_t child = forked();

		if (child == 0) {
			require(soon(thread_sleeps, &self), "it sleeps");
			port_send(&pair.from, broadcast, mac_of(1), 3);
			_exit(0);
		}
		check_events(wait_one(&wait_calls[c], pair.to.fd, POLLIN,
				      PATIENCE_MS), POLLIN,
			     wait_calls[c].name, "a packet");
		check_child(child, "the sender");
		pair_close(&pair);
	}
}

static void
a_slot_released_wakes(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		struct pair pair = pipe_pair();
		struct waiter waiter;
		pthread_t thread;

		ring_advance(port_tx(&pair.from), SLOTS - 1);
		port_txsync(&pair.from);
		thread = start_waiting(&waiter, &wait_calls[c], pair.from.fd,
				       POLLOUT);
		port_rxsync(&pair.to);
		ring_advance(port_rx(&pair.to), 1);
		port_rxsync(&pair.to);
		check_woken(thread, &waiter, "a slot");
		pair_close(&pair);
	}
}

static void
a_wait_for_input_of_the_other_wakes(void)
{
	struct pair pair = pipe_pair();
	struct waiter waiter;
	pthread_t thread = start_waiting(&waiter, &wait_calls[0], pair.to.fd,
					 POLLIN);

	port_put(&pair.from, broadcast, mac_of(1), 1);
	check_number(wait_events(pair.from.fd, POLLIN, 0), 0,
		     "the sender only waits");
	check_woken(thread, &waiter, "which sends");
}

static void
every_waiter_is_woken(void)
{
	size_t p;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();
		struct port second = port_open(own(p ? "vale$:b" : "p$}1"));
		struct waiter waiters[3];
		pthread_t threads[3];
		int i, fds[3] = { pair.to.fd, pair.to.fd, second.fd };

		for (i = 0; i < 3; i++)
			threads[i] = start_waiting(&waiters[i],
						   &wait_calls[(size_t)i],
						   fds[i], POLLIN);
		port_send(&pair.from, broadcast, mac_of(1), 1);
		for (i = 0; i < 3; i++)
			check_woken(threads[i], &waiters[i],
				    "one packet, three waiters");
		port_close(&second);
		pair_close(&pair);
	}
}

static void
an_interface_wakes(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);
	size_t c;

	port_rxsync(&port);
	for (c = 0; c < WAIT_CALLS; c++) {
		struct waiter waiter;
		pthread_t thread = start_waiting(&waiter, &wait_calls[c],
						 port.fd, POLLIN);

		cable_send(&cable, broadcast, mac_of(1), (uint32_t)c);
		check_woken(thread, &waiter, "a frame");
		check_number(port_take(&port), (long long)c, "the frame");
	}
}

static void
the_host_wakes(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_register reg = register_all();
	int stack = packet_socket(cable.near);
	char frame[FRAME_SIZE];
	struct waiter waiter;
	struct port port;
	pthread_t thread;

	reg.nr_mode = NR_REG_NIC_SW;
	port = port_open_as(cable.near, reg);
	thread = start_waiting(&waiter, &wait_calls[0], port.fd, POLLIN);
	frame_fill(frame, sizeof(frame), broadcast, mac_of(1), 1);
	require(send(stack, frame, sizeof(frame), 0) == FRAME_SIZE, "send");
	check_woken(thread, &waiter, "a packet of the host's stack");
}

static void
monitors_wake(void)
{
	struct pair pair = switch_pair();
	struct port monitor = port_open_flags(own("vale$:b"), NR_MONITOR_RX);
	struct waiter waiter;
	pthread_t thread = start_waiting(&waiter, &wait_calls[0], monitor.fd,
					 POLLIN);

	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_woken(thread, &waiter, "what its target receives");
}

/* Polls and sends, and syncs each second time; the least room that a sync left. */
static uint32_t
least_room(struct port *port, uint32_t syncs)
{
	struct netmap_ring *tx = port_tx(port);
	uint32_t i, least = tx->num_slots;
	int room = 1;

	for (i = 0; i < 2 * syncs; i++) {
		uint32_t count = 1 + i % 700;

		if (count > nm_ring_space(tx))
			count = nm_ring_space(tx);
		ring_advance(tx, count);
		room &= wait_events(port->fd, POLLOUT, 0) == POLLOUT &&
			nm_ring_space(tx) > 0;
		if (i % 2 == 0)
			continue;
		port_txsync(port);
		if (nm_ring_space(tx) < least)
			least = nm_ring_space(tx);
	}
	check(room, "there is room after every wait");
	return least;
}

/*
 * A program on a switch never has to wait for room. A sync says how far all is
 * taken. A poll does not wait for that where there is room: the worker of a
 * switch here goes on beside its senders, and they would stand still for each
 * other. Nor does a sync behind 1024 others without a pause.
 */
static void
a_switch_takes_all_at_once(void)
{
	struct pair pair = switch_pair();
	uint32_t slots = port_tx(&pair.from)->num_slots;

	check_number(least_room(&pair.from, 1000), slots - 1,
		     "tail is one behind head after every sync");
	check(least_room(&pair.from, 3000) >= slots / 4,
	      "a quarter of the ring is free after every sync without a pause");
}

static const struct test_case cases[] = {
	{ "S-POLL-7", "a packet wakes", a_packet_wakes },
	{ "S-POLL-7", "a packet of another process wakes",
	  a_packet_of_another_process_wakes },
	{ "S-POLL-7", "a slot released wakes", a_slot_released_wakes },
	{ "S-POLL-7", "another one's wait wakes",
	  a_wait_for_input_of_the_other_wakes },
	{ "S-POLL-7", "every waiter is woken", every_waiter_is_woken },
	{ "S-POLL-7", "an interface wakes", an_interface_wakes },
	{ "S-POLL-7", "the host wakes", the_host_wakes },
	{ "S-POLL-7", "monitors wake", monitors_wake },
	{ "S-POLL-7", "a switch takes all at once",
	  a_switch_takes_all_at_once },
};

CHAPTER(cases)
