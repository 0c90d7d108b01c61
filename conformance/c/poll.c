/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POLL: waiting is syncing. A poll tells the port how far the program has come,
 * as a sync does, and returns when the program has something to do: packets to
 * take, or slots to fill. Every call that waits does the same (S-POLL-1 to 5).
 */
#include "pair.h"
#include "waits.h"

/* ---- S-POLL-1: events ---- */

static void
bits_of_events(void)
{
	static const struct {
		short wanted, got;
	} rows[] = {
		{ POLLIN, POLLIN }, { POLLRDNORM, POLLRDNORM },
		{ POLLIN | POLLRDNORM, POLLIN | POLLRDNORM },
		{ POLLOUT, POLLOUT }, { POLLWRNORM, POLLWRNORM },
		{ POLLOUT | POLLWRNORM, POLLOUT | POLLWRNORM },
		{ POLLIN | POLLOUT, POLLIN | POLLOUT },
		{ 0, 0 }, { POLLPRI, 0 }, { POLLRDBAND | POLLWRBAND, 0 },
		{ POLLRDHUP, 0 },
		{ POLLPRI | POLLIN, POLLIN },
	};
	struct pair pair = pipe_pair();
	size_t i, c;

	port_send(&pair.from, broadcast, mac_of(1), 1);
	for (i = 0; i < COUNT(rows); i++)
		for (c = 0; c < WAIT_CALLS; c++) {
			if (!wait_calls[c].has_error)
				continue;
			check_events(wait_one(&wait_calls[c], pair.to.fd,
					      rows[i].wanted, 0), rows[i].got,
				     wait_calls[c].name, line("0x%x",
				     (unsigned)rows[i].wanted));
		}
}

static void
each_direction_by_itself(void)
{
	size_t p, c;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();

		for (c = 0; c < WAIT_CALLS; c++) {
			const struct wait_call *call = &wait_calls[c];
			int fd = pair.to.fd;

			check_events(wait_one(call, fd, POLLIN, 0), 0,
				     call->name, "nothing to take");
			check_events(wait_one(call, fd, POLLIN, 1), 0,
				     call->name, "for a while");
			check_events(wait_one(call, fd, POLLOUT, 0), POLLOUT,
				     call->name, "slots to fill");
			check_events(wait_one(call, fd, POLLIN | POLLOUT,
					      PATIENCE_MS), POLLOUT,
				     call->name, "one of both");
			port_send(&pair.from, broadcast, mac_of(1), 5);
			check_events(wait_one(call, fd, POLLIN, PATIENCE_MS),
				     POLLIN, call->name, "a packet");
			check_events(wait_one(call, fd, POLLIN | POLLOUT, 0),
				     POLLIN | POLLOUT, call->name, "both");
			check_number(port_take(&pair.to), 5, "the packet");
			check_events(wait_one(call, fd, POLLIN, 0), 0,
				     call->name, "taken");
			port_txsync(&pair.from);
		}
		pair_close(&pair);
	}
}

static void
what_is_not_taken_is_told_again(void)
{
	struct pair pair = pipe_pair();
	size_t c;
	int turn;

	port_send(&pair.from, broadcast, mac_of(1), 5);
	for (c = 0; c < WAIT_CALLS; c++)
		for (turn = 0; turn < 3; turn++)
			check_events(wait_one(&wait_calls[c], pair.to.fd,
					      POLLIN, PATIENCE_MS), POLLIN,
				     wait_calls[c].name, "again");
}

/* ---- S-POLL-2: when a wait transmits ---- */

/* Whether the one packet put into the ring was sent; it is taken anyhow. */
static int
was_sent(const struct pair *pair)
{
	struct netmap_ring *rx = port_rx(&pair->to);
	int sent;

	/* What was not sent never comes. */
	wait_events(pair->to.fd, POLLIN, PATIENCE_MS);
	sent = nm_ring_space(rx);
	port_txsync(&pair->from);
	require(port_take(&pair->to) != -1, "the packet");
	port_rxsync(&pair->to);
	port_txsync(&pair->from);
	return sent == 1;
}

static void
waiting_transmits(void)
{
	static const short events[] = { POLLIN, POLLOUT, 0, POLLPRI };
	size_t p, c, e;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();

		for (c = 0; c < WAIT_CALLS; c++)
			for (e = 0; e < COUNT(events); e++) {
				/* select cannot ask for nothing. */
				if (!wait_calls[c].has_error && e > 1)
					continue;
				port_put(&pair.from, broadcast, mac_of(1), 1);
				wait_one(&wait_calls[c], pair.from.fd,
					 events[e], 0);
				check(was_sent(&pair), "%s: events 0x%x",
				      wait_calls[c].name, (unsigned)events[e]);
			}
		pair_close(&pair);
	}
}

static void
no_tx_poll(void)
{
	struct nmreq_register reg = register_all();
	struct pair pair;
	size_t c;

	reg.nr_flags = NR_NO_TX_POLL;
	pair.from = port_open_as(own("p${1"), reg);
	pair.to = port_open(own("p$}1"));
	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		uint32_t before = port_rx(&pair.to)->tail;

		port_put(&pair.from, broadcast, mac_of(1), 7);
		check_events(wait_one(call, pair.from.fd, POLLIN, 0), 0,
			     call->name, "NR_NO_TX_POLL: POLLIN");
		port_rxsync(&pair.to);
		check_number(port_rx(&pair.to)->tail, before,
			     "does not transmit");
		check_events(wait_one(call, pair.from.fd, POLLOUT, 0), POLLOUT,
			     call->name, "NR_NO_TX_POLL: POLLOUT");
		check_number(port_take(&pair.to), 7, "does");
		port_rxsync(&pair.to);
		port_txsync(&pair.from);
	}
}

static void
waiting_transmits_on_all_rings(void)
{
	static const short events[] = { POLLIN, POLLOUT };
	struct nmreq_register reg = register_all();
	struct pair pair;
	uint32_t sent = 0, i;
	size_t e;

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	pair.from = port_open_as(own("p${1"), reg);
	pair.to = port_open(own("p$}1"));
	for (e = 0; e < COUNT(events); e++) {
		for (i = 0; i < 3; i++)
			ring_advance(NETMAP_TXRING(pair.from.nifp, i), 2);
		sent += 2;
		wait_events(pair.from.fd, events[e], 0);
		port_rxsync(&pair.to);
		for (i = 0; i < 3; i++)
			check_number(NETMAP_RXRING(pair.to.nifp, i)->tail,
				     sent, line("ring %u", i));
	}
}

/* ---- S-POLL-3 and S-POLL-4: readiness ---- */

static void
room_to_send(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct pair pair = pipe_pair();
		struct netmap_ring *tx = port_tx(&pair.from);
		int fd = pair.from.fd;

		check_events(wait_one(call, fd, POLLOUT, 0), POLLOUT,
			     call->name, "an empty ring");
		ring_advance(tx, SLOTS - 2);
		check_events(wait_one(call, fd, POLLOUT, 0), POLLOUT,
			     call->name, "one slot left");
		ring_advance(tx, 1);
		check_events(wait_one(call, fd, POLLOUT, 0), 0, call->name,
			     "none");
		check_events(wait_one(call, fd, POLLOUT, 5), 0, call->name,
			     "for a while");
		port_rxsync(&pair.to);
		ring_advance(port_rx(&pair.to), 1);
		port_rxsync(&pair.to);
		check_events(wait_one(call, fd, POLLOUT, PATIENCE_MS), POLLOUT,
			     call->name, "one came back");
		check_number(nm_ring_space(tx), 1, "poll shows it");
		tx->cur = tx->tail;
		check_events(wait_one(call, fd, POLLOUT, 0), 0, call->name,
			     "cur at tail: one more is wanted");
		check_number(nm_ring_space(tx), 1, "and the one is still there");
		ring_advance(port_rx(&pair.to), 1);
		port_rxsync(&pair.to);
		check_events(wait_one(call, fd, POLLOUT, PATIENCE_MS), POLLOUT,
			     call->name, "it came back");
		pair_close(&pair);
	}
}

static void
room_in_one_of_two_rings(void)
{
	struct nmreq_register reg = register_all();
	struct port from, to, other;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	reg.nr_tx_slots = reg.nr_rx_slots = SLOTS;
	from = port_open_as(own("p${1"), reg);
	to = port_open(own("p$}1"));
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_ringid = 0;
	other = port_open_as(own("p${1"), reg);
	ring_advance(NETMAP_TXRING(from.nifp, 0), SLOTS - 1);
	check_number(wait_events(from.fd, POLLOUT, 0), POLLOUT,
		     "one of two rings is full");
	check_number(wait_events(other.fd, POLLOUT, 0), 0,
		     "which is all that another descriptor has bound");
	ring_advance(NETMAP_TXRING(from.nifp, 1), SLOTS - 1);
	check_number(wait_events(from.fd, POLLOUT, 0), 0, "both are full");
	port_rxsync(&to);
	ring_advance(NETMAP_RXRING(to.nifp, 1), 1);
	port_rxsync(&to);
	check_number(wait_events(from.fd, POLLOUT, PATIENCE_MS), POLLOUT,
		     "the second one has a slot");
	check_number(wait_events(other.fd, POLLOUT, 0), 0, "not the first");
}

static void
a_direction_that_is_not_bound(void)
{
	struct port in = port_open_flags(own("vale$:a"), NR_RX_RINGS_ONLY);
	struct port out = port_open_flags(own("vale$:b"), NR_TX_RINGS_ONLY);

	check_number(wait_events(in.fd, POLLOUT, 0), 0,
		     "nothing to fill without tx rings");
	check_number(wait_events(out.fd, POLLIN, 0), 0,
		     "nothing to take without rx rings");
	check_number(wait_events(out.fd, POLLIN | POLLOUT, 0), POLLOUT,
		     "but the other direction");
}

static void
packets_to_take(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct pair pair = pipe_pair();
		struct netmap_ring *rx = port_rx(&pair.to);
		int fd = pair.to.fd, i;

		for (i = 0; i < 3; i++)
			port_send(&pair.from, broadcast, mac_of(1),
				  (uint32_t)i);
		check_number(rx->tail, 0, "nothing is seen before a sync");
		check_events(wait_one(call, fd, POLLOUT, 0), POLLOUT,
			     call->name, "a wait for room");
		check_number(rx->tail, 0, "receives nothing");
		check_events(wait_one(call, fd, POLLIN, 0), POLLIN, call->name,
			     "3 packets");
		check_number(rx->tail, 3, "are all there");
		rx->cur = 2;
		check_events(wait_one(call, fd, POLLIN, 0), POLLIN, call->name,
			     "cur behind the last");
		rx->cur = rx->tail;
		check_events(wait_one(call, fd, POLLIN, 0), 0, call->name,
			     "cur at tail: new ones are wanted");
		check_events(wait_one(call, fd, POLLIN, 5), 0, call->name,
			     "for a while");
		port_txsync(&pair.from);
		check_number(nm_ring_space(port_tx(&pair.from)), SLOTS - 4,
			     "nothing was released");
		port_send(&pair.from, broadcast, mac_of(1), 3);
		check_events(wait_one(call, fd, POLLIN, PATIENCE_MS), POLLIN,
			     call->name, "a new one");
		check(rx->head == 0 && rx->tail == 4, "all 4 are there");
		rx->head = rx->cur = 2;
		check_events(wait_one(call, fd, POLLIN, 0), POLLIN, call->name,
			     "2 of them");
		port_txsync(&pair.from);
		check_number(nm_ring_space(port_tx(&pair.from)), SLOTS - 3,
			     "a wait releases, as a sync does");
		pair_close(&pair);
	}
}

static void
packets_in_one_of_two_rings(void)
{
	struct nmreq_register reg = register_all();
	struct port from, to, other;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	from = port_open_as(own("p${1"), reg);
	to = port_open(own("p$}1"));
	reg.nr_mode = NR_REG_ONE_NIC;
	other = port_open_as(own("p$}1"), reg);
	ring_advance(NETMAP_TXRING(from.nifp, 1), 1);
	port_txsync(&from);
	check_number(wait_events(other.fd, POLLIN, 0), 0, "not in ring 0");
	check_number(NETMAP_RXRING(to.nifp, 1)->tail, 0,
		     "which is all that was received");
	check_number(wait_events(to.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "in ring 1");
	check_number(NETMAP_RXRING(to.nifp, 1)->tail, 1, "is a packet");
}

/* What came between the bind and the first wait is not lost. */
static void
packets_before_the_first_wait(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);

	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(port_take(&port), 1, "the first frame");
	cable_send(&cable, broadcast, mac_of(1), 2);
	check_number(port_take(&port), 2, "and the next");
}

static void
do_rx_poll_does_nothing(void)
{
	struct pair pair;

	pair.from = port_open(own("p${1"));
	pair.to = port_open_flags(own("p$}1"), NR_DO_RX_POLL);
	check(pair.to.reg.nr_flags == NR_DO_RX_POLL, "NR_DO_RX_POLL");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(wait_events(pair.to.fd, POLLOUT, 0), POLLOUT,
		     "a wait for room");
	check_number(port_rx(&pair.to)->tail, 0, "receives nothing");
	check_number(port_take(&pair.to), 1, "a wait for input does");
}

static const struct test_case cases[] = {
	{ "S-POLL-1", "bits of events", bits_of_events },
	{ "S-POLL-1", "each direction by itself", each_direction_by_itself },
	{ "S-POLL-1", "what is not taken is told again",
	  what_is_not_taken_is_told_again },
	{ "S-POLL-2", "waiting transmits", waiting_transmits },
	{ "S-POLL-2", "NR_NO_TX_POLL", no_tx_poll },
	{ "S-POLL-2", "waiting transmits on all rings",
	  waiting_transmits_on_all_rings },
	{ "S-POLL-3", "room to send", room_to_send },
	{ "S-POLL-3", "room in one of two rings", room_in_one_of_two_rings },
	{ "S-POLL-3", "a direction that is not bound",
	  a_direction_that_is_not_bound },
	{ "S-POLL-4", "packets to take", packets_to_take },
	{ "S-POLL-4", "packets in one of two rings",
	  packets_in_one_of_two_rings },
	{ "S-POLL-4", "packets before the first wait",
	  packets_before_the_first_wait },
	{ "S-POLL-5", "NR_DO_RX_POLL does nothing", do_rx_poll_does_nothing },
};

CHAPTER(cases)
