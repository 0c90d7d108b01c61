/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POLL: waiting is syncing. A poll tells the port how far the program has come,
 * as a sync does, and returns when the program has something to do: packets to
 * take, or slots to fill. Every call that waits does the same.
 */
#include "case.h"
#include "request.h"
#include "waits.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define SLOTS	16

/* What the one sends, the other receives. */
struct pair {
	struct port from, to;
};

static struct pair
pipe_pair(void)
{
	struct pair pair;

	pair.from = port_open_slots(own("p${1"), SLOTS);
	pair.to = port_open(own("p$}1"));
	return pair;
}

static struct pair
switch_pair(void)
{
	struct pair pair;

	pair.from = port_open(own("vale$:a"));
	pair.to = port_open(own("vale$:b"));
	return pair;
}

static struct pair (*const pairs[])(void) = { pipe_pair, switch_pair };

static void
pair_close(struct pair *pair)
{
	port_close(&pair->to);
	port_close(&pair->from);
}

static void
check_events(int got, int expected, const char *call, const char *text)
{
	if (got == expected)
		check(1, "%s: %s", call, text);
	else
		check(0, "%s: %s (events 0x%x, expected 0x%x)", call, text,
		      (unsigned)got, (unsigned)expected);
}

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

/* An epoll set that lives on. */
static void
an_epoll_set(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 }, got[4];
	int epoll = epoll_create1(0);

	event.events = EPOLLIN;
	event.data.u64 = 0x1111111122222222;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event), 0,
		   "EPOLL_CTL_ADD");
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event),
		   EEXIST, "EPOLL_CTL_ADD again");
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.from.fd, &event),
		   ENOENT, "EPOLL_CTL_MOD of another");
	event.data.u64 = 2;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.from.fd, &event), 0,
		   "EPOLL_CTL_ADD of another");
	check_number(epoll_wait(epoll, got, 4, 0), 0, "nothing");
	port_send(&pair.from, broadcast, mac_of(1), 42);
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 1, "one");
	check(got[0].data.u64 == 0x1111111122222222 &&
	      got[0].events == EPOLLIN, "with its data");
	event.events = EPOLLOUT;
	event.data.u64 = 99;
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event), 0,
		   "EPOLL_CTL_MOD");
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 99 && got[0].events == EPOLLOUT,
	      "asks for something else");
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.from.fd, &event), 0,
		   "EPOLL_CTL_MOD of the other");
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 2, "both");
	check_number(epoll_wait(epoll, got, 1, PATIENCE_MS), 1,
		     "no more than there is room for");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.to.fd, NULL), 0,
		   "EPOLL_CTL_DEL");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.to.fd, NULL), ENOENT,
		   "EPOLL_CTL_DEL again");
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 99, "the other one is left");
	port_close(&pair.from);
	check_number(epoll_wait(epoll, got, 4, 0), 0,
		     "a closed descriptor is out by itself");
	check_call(epoll_wait(epoll, got, 0, 0), EINVAL, "room for none");
}

static void
an_epoll_event_once(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int epoll = epoll_create1(0);

	event.events = EPOLLIN | EPOLLONESHOT;
	require(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "EPOLLONESHOT: once");
	check_number(epoll_wait(epoll, &event, 1, 0), 0, "and no more");
	event.events = EPOLLIN | EPOLLONESHOT;
	require(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_MOD");
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "until it is armed again");
}

static void
epoll_waits_for_nanoseconds(void)
{
	struct pair pair = pipe_pair();
	const struct wait_call *call = &newest_wait_call;

	check_events(wait_one(call, pair.to.fd, POLLIN, 0), 0, call->name,
		     "nothing to take");
	check_events(wait_one(call, pair.to.fd, POLLOUT, PATIENCE_MS), POLLOUT,
		     call->name, "slots to fill");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_events(wait_one(call, pair.to.fd, POLLIN, PATIENCE_MS), POLLIN,
		     call->name, "a packet");
}

/* The kernel's own rule for EPOLLET: told when it comes, not while it lasts. */
static void
an_epoll_event_by_its_edge(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int epoll = epoll_create1(0);

	event.events = EPOLLIN | EPOLLET;
	require(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1, "EPOLLET");
	check_number(epoll_wait(epoll, &event, 1, 0), 0, "not told again");
	port_send(&pair.from, broadcast, mac_of(1), 2);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "another packet is told");
}

static void
an_epoll_set_within_a_set(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int inner = epoll_create1(0);
	size_t c;

	event.events = EPOLLIN;
	require(epoll_ctl(inner, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	for (c = 0; c < WAIT_CALLS; c++) {
		check_events(wait_one(&wait_calls[c], inner, POLLIN, 0), 0,
			     wait_calls[c].name, "nothing in the inner set");
		port_send(&pair.from, broadcast, mac_of(1), 1);
		if (wait_one(&wait_calls[c], inner, POLLIN, PATIENCE_MS) !=
		    POLLIN) {
			check(0, "%s: a packet", wait_calls[c].name);
			return;
		}
		check_number(port_take(&pair.to), 1, "the packet");
		port_rxsync(&pair.to);
		port_txsync(&pair.from);
	}
}

/* ---- S-POLL-2: when a wait transmits ---- */

/* Whether the one packet put into the ring was sent; it is taken anyhow. */
static int
was_sent(const struct pair *pair)
{
	struct netmap_ring *rx = port_rx(&pair->to);
	int sent;

	/* A switch delivers soon; what was not sent never comes. */
	wait_events(pair->to.fd, POLLIN, 200);
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

/* ---- S-POLL-6: errors ---- */

/* Of a call that has no errors, all that was asked for. */
static void
check_error(const struct wait_call *call, int fd, short events,
	    const char *text)
{
	int got = wait_one(call, fd, events, PATIENCE_MS);

	if (call->has_error)
		check(got >= 0 && got & POLLERR, "%s: %s (events 0x%x)",
		      call->name, text, (unsigned)got);
	else
		check_events(got, events, call->name, text);
}

static void
errors_of_unbound_descriptors(void)
{
	static const short events[] = { POLLIN, POLLOUT, POLLIN | POLLOUT };
	int fd = device_open();
	size_t c, e;

	for (c = 0; c < WAIT_CALLS; c++)
		for (e = 0; e < COUNT(events); e++)
			check_error(&wait_calls[c], fd, events[e], "unbound");
}

static void
errors_of_indices(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct pair pair = pipe_pair();
		struct netmap_ring *tx = port_tx(&pair.from);
		struct netmap_ring *rx = port_rx(&pair.to);

		rx->cur = SLOTS + 3;
		check_error(call, pair.to.fd, POLLIN, "rx cur");
		check(rx->head == 0 && rx->cur == 0, "the ring was reset");
		check_events(wait_one(call, pair.to.fd, POLLIN, 0), 0,
			     call->name, "and is of use");
		tx->head = SLOTS;
		check_error(call, pair.from.fd, POLLOUT, "tx head");
		check(tx->head == 0 && tx->cur == 0, "the ring was reset");
		check_events(wait_one(call, pair.from.fd, POLLOUT, 0),
			     POLLOUT, call->name, "and is of use");
		tx->head = tx->cur = SLOTS + 9;
		check_error(call, pair.from.fd, POLLIN,
			    "tx head, in a wait for input");
		rx->head = SLOTS;
		check_events(wait_one(call, pair.to.fd, POLLOUT, 0), POLLOUT,
			     call->name, "rx head, in a wait for room");
		pair_close(&pair);
	}
}

static void
errors_of_other_rings_indices(void)
{
	struct port quiet = port_open_flags(own("p${1"), NR_NO_TX_POLL);

	port_tx(&quiet)->head = 5000;
	check_number(wait_events(quiet.fd, POLLIN, 0), 0,
		     "NR_NO_TX_POLL: tx rings are not looked at");
	check_number(wait_events(quiet.fd, POLLOUT, 0) & POLLERR, POLLERR,
		     "until a wait asks for room");
}

static void
errors_of_csb_mode(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_opt_csb csb;
	char *mem = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = device_open();
	size_t c;

	memset(&csb, 0, sizeof(csb));
	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	csb.csb_atok = (uintptr_t)mem;
	csb.csb_ktoa = (uintptr_t)(mem + 2048);
	reg.nr_flags = NR_EXCLUSIVE;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&csb), 0, "REGISTER with CSB");
	for (c = 0; c < WAIT_CALLS; c++)
		check_error(&wait_calls[c], fd, POLLIN | POLLOUT, "CSB mode");
}

static void
errors_of_monitors(void)
{
	struct port port = port_open(own("vale$:a"));
	struct port monitor = port_open_flags(own("vale$:a"), NR_MONITOR_RX);
	size_t c;

	check(port.fd >= 0, "a target");
	for (c = 0; c < WAIT_CALLS; c++)
		check_error(&wait_calls[c], monitor.fd, POLLOUT,
			    "a monitor cannot send");
}

/* ---- S-POLL-7: waking ---- */

struct waiter {
	const struct wait_call *call;
	int fd;
	short events;
	int tid, got;
};

static void *
wait_in_a_thread(void *argument)
{
	struct waiter *waiter = (struct waiter *)argument;

	__atomic_store_n(&waiter->tid, (int)syscall(SYS_gettid),
			 __ATOMIC_RELEASE);
	waiter->got = wait_one(waiter->call, waiter->fd, waiter->events,
			       2 * PATIENCE_MS);
	return NULL;
}

static int
waiter_sleeps(const void *argument)
{
	const struct waiter *waiter = (const struct waiter *)argument;
	int tid = __atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE);

	return tid != 0 && thread_sleeps(&tid);
}

/* A thread that waits, and is asleep when this returns. */
static pthread_t
start_waiting(struct waiter *waiter, const struct wait_call *call, int fd,
	      short events)
{
	pthread_t thread;

	waiter->call = call;
	waiter->fd = fd;
	waiter->events = events;
	waiter->tid = waiter->got = 0;
	require(pthread_create(&thread, NULL, wait_in_a_thread, waiter) == 0,
		"a thread");
	require(soon(waiter_sleeps, waiter), "the thread sleeps");
	return thread;
}

static void
check_woken(pthread_t thread, const struct waiter *waiter, const char *text)
{
	pthread_join(thread, NULL);
	check_events(waiter->got, waiter->events, waiter->call->name, text);
}

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

/*
 * A program on a switch never has to wait for room. A sync says how far all is
 * taken. A poll does not wait for that where there is room: the worker of a
 * switch here goes on beside its senders, and they would stand still for each
 * other.
 */
static void
a_switch_takes_all_at_once(void)
{
	struct pair pair = switch_pair();
	struct netmap_ring *tx = port_tx(&pair.from);
	uint32_t i;
	int room = 1, taken = 1;

	for (i = 0; i < 3000; i++) {
		uint32_t count = 1 + i % 700;

		if (count > nm_ring_space(tx))
			count = nm_ring_space(tx);
		ring_advance(tx, count);
		room &= wait_events(pair.from.fd, POLLOUT, 0) == POLLOUT &&
			nm_ring_space(tx) > 0;
		if (i % 2 == 0)
			continue;
		port_txsync(&pair.from);
		taken &= tx->tail == (tx->head + tx->num_slots - 1) %
			tx->num_slots;
	}
	check(room, "there is room after every wait");
	check(taken, "tail is one behind head after every sync");
}

/* ---- sets, signals, numbers ---- */

static void
sets_of_all_kinds(void)
{
	enum { VALE, PIPE, MASTER, UNBOUND, UNIX_PIPE, SOCKET, EVENT, KINDS };
	struct pair vale = switch_pair(), pipes = pipe_pair();
	int unix_pipe[2], sockets[2], event = eventfd(0, 0);
	size_t c;
	int i;

	require(pipe(unix_pipe) == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 &&
		event >= 0, "ordinary descriptors");
	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct wanted set[KINDS] = {
			{ vale.to.fd, POLLIN, 0 }, { pipes.to.fd, POLLIN, 0 },
			{ pipes.from.fd, POLLIN | POLLOUT, 0 },
			{ device_open(), POLLIN, 0 },
			{ unix_pipe[0], POLLIN, 0 },
			{ sockets[0], POLLIN | POLLOUT, 0 },
			{ event, POLLIN, 0 },
		};

		check_number(call->wait(set, KINDS, PATIENCE_MS, NULL), 3,
			     "an unbound one, and two with room");
		check_events(set[UNBOUND].got, call->has_error ? POLLERR :
			     POLLIN, call->name, "the unbound one");
		check_events(set[MASTER].got, POLLOUT, call->name, "a port");
		check_events(set[SOCKET].got, POLLOUT, call->name, "a socket");
		close(set[UNBOUND].fd);

		/* One at a time, all others silent. */
		set[MASTER].events = set[SOCKET].events = POLLIN;
		set[UNBOUND].fd = vale.from.fd;
		check_number(call->wait(set, KINDS, 0, NULL), 0, "silence");
		for (i = 0; i < KINDS; i++) {
			uint64_t number = 1;

			if (i == MASTER || i == UNBOUND)
				continue;
			if (i == VALE)
				port_send(&vale.from, broadcast, mac_of(1), 1);
			else if (i == PIPE)
				port_send(&pipes.from, broadcast, mac_of(1), 1);
			else
				require(write(i == UNIX_PIPE ? unix_pipe[1] :
					      i == SOCKET ? sockets[1] : event,
					      &number, sizeof(number)) ==
					sizeof(number), "write");
			check_number(call->wait(set, KINDS, PATIENCE_MS, NULL),
				     1, line("%s: one", call->name));
			check_events(set[i].got, POLLIN, call->name,
				     line("number %d", i));
			if (i == VALE || i == PIPE)
				port_take(i == VALE ? &vale.to : &pipes.to);
			else
				require(read(set[i].fd, &number,
					     sizeof(number)) ==
					sizeof(number), "read");
		}
		port_rxsync(&pipes.to);
		port_txsync(&pipes.from);
	}
}

static void
odd_members_of_a_poll_set(void)
{
	struct pair pair = pipe_pair();
	int closed = dup(pair.to.fd);
	struct pollfd set[5] = {
		{ -1, POLLIN, 7 }, { closed, POLLIN, 7 },
		{ pair.to.fd, POLLIN, 7 }, { pair.to.fd, POLLOUT, 7 },
		{ pair.to.fd, POLLIN | POLLOUT, 7 },
	};

	close(closed);
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(poll(set, 5, PATIENCE_MS), 4, "four answers");
	check_number(set[0].revents, 0, "a negative number is left out");
	check_number(set[1].revents, POLLNVAL, "a closed one is invalid");
	check_number(set[2].revents, POLLIN, "the same port");
	check_number(set[3].revents, POLLOUT, "three times");
	check_number(set[4].revents, POLLIN | POLLOUT, "as asked");
	check_number(poll(NULL, 0, 0), 0, "an empty set");
}

static void
bad_calls(void)
{
	struct port port = port_open(own("vale$:a"));
	struct pollfd one = { port.fd, POLLIN, 0 };
	volatile nfds_t many = (nfds_t)1 << 30;	/* the kernel has 32 bits */
	struct timespec bad = { 0, 1000000000 };
	struct timeval bad_time = { -1, 0 };
	int closed = dup(port.fd);
	fd_set set;

	close(closed);
	check_call(poll(&one, many, 0), EINVAL, "poll of too many");
	check_call(ppoll(&one, 1, &bad, NULL), EINVAL, "ppoll, no such time");
	FD_ZERO(&set);
	FD_SET(port.fd, &set);
	check_call(select(-1, &set, NULL, NULL, NULL), EINVAL, "select of -1");
	check_call(select(port.fd + 1, &set, NULL, NULL, &bad_time), EINVAL,
		   "select, no such time");
	FD_SET(closed, &set);
	check_call(select((closed > port.fd ? closed : port.fd) + 1, &set,
			  NULL, NULL, NULL), EBADF, "select of a closed one");
}

static long
milliseconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1000 +
		(now.tv_nsec - from->tv_nsec) / 1000000;
}

static void
timeouts(void)
{
	struct port port = port_open(own("vale$:a"));
	struct timeval time = { 0, 20000 };
	struct timespec before;
	fd_set set;
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		clock_gettime(CLOCK_MONOTONIC, &before);
		check_events(wait_one(&wait_calls[c], port.fd, POLLIN, 20), 0,
			     wait_calls[c].name, "nothing came");
		check(milliseconds_since(&before) >= 20,
		      "%s: not before its time", wait_calls[c].name);
	}
	FD_ZERO(&set);
	FD_SET(port.fd, &set);
	check_number(select(port.fd + 1, &set, NULL, NULL, &time), 0,
		     "select");
	check(time.tv_sec == 0 && time.tv_usec == 0,
	      "leaves the time that was left");
}

static volatile sig_atomic_t signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

static void
handle_signal(int number, int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	action.sa_flags = flags;
	sigaction(number, &action, NULL);
}

/* A signal ends a wait, whatever its handler's flags say. */
static void
a_signal_ends_a_wait(void)
{
	static const int flags[] = { 0, SA_RESTART };
	size_t p, c, f;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();

		for (c = 0; c < WAIT_CALLS; c++)
			for (f = 0; f < COUNT(flags); f++) {
				int self = getpid();
				pid_t child;

				handle_signal(SIGUSR1, flags[f]);
				child = forked();
				if (child == 0) {
					require(soon(thread_sleeps, &self),
						"it sleeps");
					kill(self, SIGUSR1);
					_exit(0);
				}
				check_call(wait_one(&wait_calls[c],
						    pair.to.fd, POLLIN,
						    2 * PATIENCE_MS), EINTR,
					   wait_calls[c].name);
				check_child(child, "the killer");
			}
		pair_close(&pair);
	}
}

static void
a_mask_holds_during_the_wait(void)
{
	struct port port = port_open(own("vale$:a"));
	sigset_t blocked, open_mask, now;
	size_t c;

	handle_signal(SIGUSR1, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &open_mask);
	sigdelset(&open_mask, SIGUSR1);
	for (c = 0; c < WAIT_CALLS; c++) {
		struct wanted set[1] = { { port.fd, POLLIN, 0 } };
		const struct wait_call *call = &wait_calls[c];

		if (!call->takes_mask)
			continue;
		signals = 0;
		raise(SIGUSR1);
		check_number(call->wait(set, 1, 5, NULL), 0,
			     line("%s: blocked", call->name));
		check_number(call->wait(set, 1, 5, &blocked), 0,
			     line("%s: blocked by the mask", call->name));
		check_number(signals, 0, "no signal yet");
		check_call(call->wait(set, 1, PATIENCE_MS, &open_mask), EINTR,
			   line("%s: let in", call->name));
		check_number(signals, 1, "one signal");
		sigprocmask(SIG_BLOCK, NULL, &now);
		check_number(sigismember(&now, SIGUSR1), 1,
			     "the mask is as before");
	}
}

static void
a_pending_signal_and_a_packet(void)
{
	struct pair pair = pipe_pair();
	sigset_t blocked, open_mask;
	size_t c;

	handle_signal(SIGUSR1, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &open_mask);
	port_send(&pair.from, broadcast, mac_of(1), 1);
	for (c = 0; c < WAIT_CALLS; c++) {
		struct wanted set[1] = { { pair.to.fd, POLLIN, 0 } };

		if (!wait_calls[c].takes_mask)
			continue;
		raise(SIGUSR1);
		check_number(wait_calls[c].wait(set, 1, PATIENCE_MS,
						&open_mask), 1,
			     line("%s: what is ready comes first",
				  wait_calls[c].name));
		sigprocmask(SIG_SETMASK, &open_mask, NULL);
		sigprocmask(SIG_BLOCK, &blocked, NULL);
	}
}

/* Numbers that do not fit into an fd_set. */
static void
high_numbers(void)
{
	static const int numbers[] = { 1023, 1024, 1500, 4000 };
	struct pair pair = pipe_pair();
	struct rlimit limit;
	size_t i, c;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < WAIT_FDS)
		skip("may not open so many files");
	limit.rlim_cur = WAIT_FDS;
	require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	for (i = 0; i < COUNT(numbers); i++) {
		int high = dup2(pair.to.fd, numbers[i]);

		check_number(high, numbers[i], "dup2");
		check_call(ioctl(high, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
		for (c = 0; c < WAIT_CALLS; c++) {
			const struct wait_call *call = &wait_calls[c];
			struct wanted set[2] = {
				{ pair.from.fd, POLLIN, 0 },
				{ high, POLLIN | POLLOUT, 0 },
			};

			if (!check_number(call->wait(set, 2, 1000, NULL), 1,
					  line("%s: fd %d", call->name, high)))
				continue;
			check_events(set[1].got, POLLOUT, call->name, "room");
			port_send(&pair.from, broadcast, mac_of(1), 1);
			set[1].events = POLLIN;
			check_number(call->wait(set, 2, PATIENCE_MS, NULL), 1,
				     "a packet");
			check_number(port_take(&pair.to), 1, "the packet");
			port_rxsync(&pair.to);
			port_txsync(&pair.from);
		}
		close(high);
	}
}

static const struct test_case cases[] = {
	{ "S-POLL-1", "bits of events", bits_of_events },
	{ "S-POLL-1", "each direction by itself", each_direction_by_itself },
	{ "S-POLL-1", "what is not taken is told again",
	  what_is_not_taken_is_told_again },
	{ "S-POLL-1", "an epoll set", an_epoll_set },
	{ "S-POLL-1", "an epoll event once", an_epoll_event_once },
	{ "S-POLL-1", "an epoll event by its edge",
	  an_epoll_event_by_its_edge },
	{ "S-POLL-1", "epoll_pwait2", epoll_waits_for_nanoseconds },
	{ "S-POLL-1", "an epoll set within a set", an_epoll_set_within_a_set },
	{ "S-POLL-1", "sets of all kinds", sets_of_all_kinds },
	{ "S-POLL-1", "odd members of a poll set", odd_members_of_a_poll_set },
	{ "S-POLL-1", "bad calls", bad_calls },
	{ "S-POLL-1", "timeouts", timeouts },
	{ "S-POLL-1", "a signal ends a wait", a_signal_ends_a_wait },
	{ "S-POLL-1", "a mask holds during the wait",
	  a_mask_holds_during_the_wait },
	{ "S-POLL-1", "a pending signal and a packet",
	  a_pending_signal_and_a_packet },
	{ "S-POLL-1", "high numbers", high_numbers },
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
	{ "S-POLL-6", "unbound descriptors", errors_of_unbound_descriptors },
	{ "S-POLL-6", "wrong indices", errors_of_indices },
	{ "S-POLL-6", "wrong indices that are not looked at",
	  errors_of_other_rings_indices },
	{ "S-POLL-6", "CSB mode", errors_of_csb_mode },
	{ "S-POLL-6", "monitors", errors_of_monitors },
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
