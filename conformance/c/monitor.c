/* SPDX-License-Identifier: BSD-2-Clause */
/* Monitors: what they see, and when (S-MON). */
#include "attach.h"
#include "monitor.h"

/* ---- S-MON-1: what can be monitored ---- */

static void
targets(void)
{
	static const uint64_t kinds[] = {
		NR_MONITOR_RX, NR_MONITOR_TX, MONITOR_BOTH, NR_ZCOPY_MON,
		NR_ZCOPY_MON | NR_MONITOR_RX,
	};
	struct watched vale = watched_vale(), pipe = watched_pipe();
	size_t i;

	for (i = 0; i < COUNT(kinds); i++) {
		check_call(monitor_try(vale.name, kinds[i]), 0, "a VALE port");
		check_call(monitor_try(pipe.name, kinds[i]), 0, "a master");
		check_call(monitor_try(own("c$}1"), kinds[i]), 0, "a slave");
	}
}

static void
errors(void)
{
	struct port slave;

	check_call(monitor_try(own("vale$:t"), NR_MONITOR_RX), EINVAL,
		   "a VALE port that nobody uses");
	check_call(monitor_try(own("c${1"), NR_MONITOR_RX), EINVAL,
		   "a pipe that nobody uses");
	check_call(monitor_try(own("vale$:t"), NR_ZCOPY_MON), EINVAL,
		   "the same, zero-copy");
	check_call(monitor_try("nosuchif0", NR_MONITOR_RX), ENXIO,
		   "no such interface");
	check_call(monitor_try("vale", NR_MONITOR_RX), ENOMEM,
		   "a malformed name");
	check_call(monitor_try(own("vale$:lo"), NR_MONITOR_RX), EINVAL,
		   "an interface not attached");
	check_call(monitor_try("{1", NR_MONITOR_RX), EINVAL,
		   "a pipe without parent");
	check(!port_exists(own("vale$:t")), "no port is left");
	slave = port_open(own("c$}1"));
	check_call(monitor_try(own("c${1"), NR_MONITOR_RX), EINVAL,
		   "an end of a pipe whose other end is used");
	port_close(&slave);
}

static void
idle_interface(void)
{
	struct port nic;

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	check_call(monitor_try(own("n$"), NR_MONITOR_RX), EINVAL,
		   "an interface that nobody uses");
	nic = port_open(own("n$"));
	check_call(monitor_try(own("n$"), NR_MONITOR_RX), 0, "one in use");
	port_close(&nic);
}

static void
exclusive_target(void)
{
	struct port target = port_open_flags(own("vale$:t"), NR_EXCLUSIVE),
		    peer = port_open(own("vale$:p")), monitor, second;

	monitor = monitor_open(own("vale$:t"), MONITOR_BOTH);
	second = monitor_open(own("vale$:t"), MONITOR_BOTH | NR_EXCLUSIVE);
	send_frames(&peer, 1, 1);
	monitor_has(&monitor, 1, 1, "an exclusive port");
	monitor_has(&second, 1, 1, "an exclusive monitor beside another");
	check(take_frames(&target, 1, 1), "the target");
}

static void
persistent_by_both_names(void)
{
	const char *name = persistent(), *there = on(1, name);
	struct port target, peer, one, two;

	require(attach(there) == 0, "VALE_ATTACH");
	target = port_open(name);
	peer = port_open(on(1, "x"));
	one = monitor_open(name, NR_MONITOR_RX);
	/* The original cannot find this name once the port is bound. */
	check_call(monitor_try(there, NR_MONITOR_RX), 0, "by its full name");
	two = monitor_open(name, NR_MONITOR_TX);
	send_frames(&peer, 1, 2);
	send_frames(&target, 5, 3);
	monitor_has(&one, 1, 2, "rx");
	monitor_has(&two, 5, 3, "tx");
	check(take_frames(&target, 1, 2) && take_frames(&peer, 5, 3),
	      "both ports");

	/* It would stay, and its daemon with it. */
	port_close(&target);
	port_close(&one);
	port_close(&two);
	require(detach(there) == 0, "VALE_DETACH");
	require(delif(name) == 0, "VALE_DELIF");
}

/* ---- S-MON-2: rings ---- */

static void
rings(void)
{
	struct nmreq_register reg = register_all();
	struct port target, copy, zcopy;

	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 3;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 128;
	target = port_open_as(own("vale$:t"), reg);
	copy = monitor_open(own("vale$:t"), MONITOR_BOTH);
	check(copy.reg.nr_tx_rings == 1 && copy.reg.nr_rx_rings == 3,
	      "1 tx and 3 rx rings (got %u and %u)", copy.reg.nr_tx_rings,
	      copy.reg.nr_rx_rings);
	check(copy.reg.nr_tx_slots == 64 && copy.reg.nr_rx_slots == 128,
	      "the target's slots (got tx %u, rx %u)", copy.reg.nr_tx_slots,
	      copy.reg.nr_rx_slots);
	check(copy.reg.nr_host_tx_rings == 0 &&
	      copy.reg.nr_host_rx_rings == 0, "no host rings");
	zcopy = monitor_open(own("vale$:t"), NR_ZCOPY_MON);
	check(zcopy.reg.nr_tx_rings == 1 && zcopy.reg.nr_rx_rings == 3,
	      "the same for zero-copy");
	check_number(zcopy.reg.nr_flags,
		     NR_ZCOPY_MON | NR_MONITOR_TX | NR_MONITOR_RX,
		     "NR_ZCOPY_MON means both directions");
	check_number(copy.reg.nr_flags, MONITOR_BOTH, "flags as asked");
	port_close(&target);
}

static void
slots_within_limits(void)
{
	static const uint32_t asked[][2] = {
		{ 1, 1 }, { 16, 16 }, { 4096, 4096 }, { 4097, 4096 },
	};
	struct watched pair = watched_vale();
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct port monitor = monitor_open_slots(pair.name,
			NR_MONITOR_RX, asked[i][0]);

		check_number(monitor.reg.nr_rx_slots, asked[i][1],
			     "rx slots");
		port_close(&monitor);
	}
}

/* Ring i of the monitor has what rings i of the target send and receive. */
static void
ring_by_ring(void)
{
	struct nmreq_register reg = register_all();
	struct port target, monitor, one;
	uint32_t i;

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	reg.nr_tx_slots = reg.nr_rx_slots = 64;
	target = port_open_as(own("vale$:t"), reg);
	monitor = monitor_open(own("vale$:t"), NR_MONITOR_TX);
	reg = register_all();
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_ringid = 2;
	reg.nr_flags = NR_MONITOR_TX;
	one = port_open_as(own("vale$:t"), reg);
	for (i = 0; i < 3; i++)
		ring_put_frame(NETMAP_TXRING(target.nifp, i), broadcast,
			       mac_of(1), i, 60, 60);
	port_txsync(&target);
	port_rxsync(&monitor);
	port_rxsync(&one);
	for (i = 0; i < 3; i++) {
		static struct packet packet;
		struct netmap_ring *rx = NETMAP_RXRING(monitor.nifp, i);

		check(nm_ring_space(rx) == 1 && ring_take(rx, &packet) &&
		      packet_sequence(&packet) == i, "ring %u", i);
	}
	check((void *)NETMAP_RXRING(one.nifp, 0) == (void *)one.nifp,
	      "a monitor of one ring has no other");
	check_number(nm_ring_space(NETMAP_RXRING(one.nifp, 2)), 1,
		     "and sees what its own carries");
}

static void
flag_of_sent_slots(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, MONITOR_BOTH);
	struct netmap_slot *slot;

	send_frames(&pair.target, 1, 1);
	slot = port_peek(&monitor);
	check(slot && slot->flags & NS_TXMON, "sent: NS_TXMON");
	check(take_frames(&monitor, 1, 1), "the frame");
	send_frames(&pair.peer, 2, 1);
	slot = port_peek(&monitor);
	check(slot && !(slot->flags & NS_TXMON), "received: no NS_TXMON");
	check(take_frames(&monitor, 2, 1), "the frame");
}

static void
flag_of_zero_copy(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	struct netmap_slot *slot;

	send_frames(&pair.target, 1, 1);
	slot = port_peek(&monitor);
	check(slot && slot->flags & NS_TXMON, "sent: NS_TXMON");
	check(take_frames(&monitor, 1, 1), "the frame");
	send_frames(&pair.peer, 2, 1);
	check(take_frames(&pair.target, 2, 1), "received by the target");
	slot = port_peek(&monitor);
	check(slot && !(slot->flags & NS_TXMON), "received: no NS_TXMON");
	check(take_frames(&monitor, 2, 1), "the frame");
}

/* ---- S-MON-3: monitors do not transmit ---- */

static void
no_transmission(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, MONITOR_BOTH);
	struct netmap_ring *tx = port_tx(&monitor);
	uint32_t tail = tx->tail;

	check_call(ioctl(monitor.fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	ring_put_frame(tx, broadcast, mac_of(1), 1, 60, 60);
	check_call(ioctl(monitor.fd, NIOCTXSYNC, NULL), 0,
		   "NIOCTXSYNC with a frame");
	check_number(tx->tail, tail, "no slot comes back");
	port_rxsync(&pair.peer);
	port_rxsync(&pair.target);
	check(nm_ring_empty(port_rx(&pair.peer)) &&
	      nm_ring_empty(port_rx(&pair.target)), "nobody gets it");
	check_number(wait_events(monitor.fd, POLLOUT, 0), POLLERR,
		     "POLLERR for POLLOUT");
}

static void
waits_for_input(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, NR_MONITOR_RX);

	check_number(wait_events(monitor.fd, POLLIN, 0), 0, "nothing yet");
	send_frames(&pair.peer, 1, 1);
	check_number(wait_events(monitor.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "POLLIN with a frame");
	check(take_frames(&monitor, 1, 1), "the frame");
}

/* ---- S-MON-4: copies ---- */

static void
copy_rx_of(struct watched pair)
{
	struct port monitor = monitor_open(pair.name, NR_MONITOR_RX);

	send_frames(&pair.peer, 1, 5);
	monitor_has(&monitor, 1, 5, "on arrival, before the owner looks");
	check(take_frames(&pair.target, 1, 5), "the owner gets them as well");
	monitor_has(&monitor, 0, 0, "each only once");
	send_frames(&pair.target, 10, 3);
	check(take_frames(&pair.peer, 10, 3), "the owner sends");
	port_txsync(&pair.target);
	monitor_has(&monitor, 0, 0, "not what is sent");
	check(monitor.reg.nr_mem_id != pair.target.reg.nr_mem_id,
	      "a region of its own");
}

static void
copy_tx_of(struct watched pair)
{
	struct port monitor = monitor_open(pair.name, NR_MONITOR_TX);

	send_frames(&pair.target, 1, 5);
	monitor_has(&monitor, 1, 5, "when the owner syncs");
	check(take_frames(&pair.peer, 1, 5), "the peer gets them as well");
	port_txsync(&pair.target);
	monitor_has(&monitor, 0, 0, "each only once");
	send_frames(&pair.peer, 10, 3);
	check(take_frames(&pair.target, 10, 3), "the owner receives");
	monitor_has(&monitor, 0, 0, "not what is received");
}

static void
copy_both_of(struct watched pair)
{
	struct port monitor = monitor_open(pair.name, MONITOR_BOTH);

	send_frames(&pair.target, 1, 2);
	send_frames(&pair.peer, 3, 2);
	monitor_has(&monitor, 1, 4, "both directions, in order");
	check(take_frames(&pair.peer, 1, 2) && take_frames(&pair.target, 3, 2),
	      "both ends");
	port_txsync(&pair.target);
	monitor_has(&monitor, 0, 0, "each only once");
}

static void copy_rx_vale(void) { copy_rx_of(watched_vale()); }
static void copy_tx_vale(void) { copy_tx_of(watched_vale()); }
static void copy_both_vale(void) { copy_both_of(watched_vale()); }
static void copy_rx_pipe(void) { copy_rx_of(watched_pipe()); }
static void copy_tx_pipe(void) { copy_tx_of(watched_pipe()); }
static void copy_both_pipe(void) { copy_both_of(watched_pipe()); }

/* Before transmission: a sync that the target's peer has not seen. */
static void
copy_tx_of_full_pipe(void)
{
	struct watched pair = watched_pipe();
	struct port monitor = monitor_open(pair.name, NR_MONITOR_TX);

	send_frames(&pair.target, 0, 1023);
	monitor_has(&monitor, 0, 1023, "all of a ring, not read by the peer");
	check_number(nm_ring_space(port_tx(&pair.target)), 0,
		     "the sender is as full as without a monitor");
}

static void
copy_fragments(void)
{
	static struct packet packet;
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, MONITOR_BOTH);

	ring_put_frame(port_tx(&pair.target), broadcast, mac_of(1), 5, 300,
		       100);
	port_txsync(&pair.target);
	check(port_take_packet(&monitor, &packet) && packet.slots == 3 &&
	      packet_sequence(&packet) == 5, "sent in three slots");
	ring_put_frame(port_tx(&pair.peer), broadcast, mac_of(1), 6, 300,
		       100);
	port_txsync(&pair.peer);
	check(port_take_packet(&monitor, &packet) && packet.slots == 3 &&
	      packet_sequence(&packet) == 6, "received in three slots");
}

static void
copy_memory(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, NR_MONITOR_RX);

	check_number(monitor.reg.nr_memsize, 8478720,
		     "size of its region (S-MEM-7)");
}

/* ---- S-MON-5: zero-copy ---- */

/*
 * The ring where the swap shows, for good: from a pipe, NS_BUF_CHANGED goes on
 * to the sender with the slot (S-PIPE-9).
 */
static void
zero_copy_rx_of(struct watched pair, const struct netmap_ring *owner)
{
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	struct netmap_ring *rx = port_rx(&pair.target);
	uint32_t before, at;

	check_number(monitor.reg.nr_mem_id, pair.target.reg.nr_mem_id,
		     "the target's region");
	send_frames(&pair.peer, 1, 5);
	monitor_has(&monitor, 0, 0, "not before the owner has read");
	port_rxsync(&pair.target);
	monitor_has(&monitor, 0, 0, "not before the owner has released");
	at = rx->head;
	before = rx->slot[at].buf_idx;
	check(port_take(&pair.target) == 1 && port_take(&pair.target) == 2,
	      "the owner takes two");
	monitor_has(&monitor, 0, 0, "not before the owner syncs");
	port_rxsync(&pair.target);
	port_rxsync(&monitor);
	check(nm_ring_space(port_rx(&monitor)) == 2 &&
	      port_rx(&monitor)->slot[port_rx(&monitor)->head].buf_idx ==
	      before, "the buffer itself");
	monitor_has(&monitor, 1, 2, "then those two");
	check(owner->slot[at].buf_idx != before &&
	      owner->slot[at].flags & NS_BUF_CHANGED,
	      "the owner has another, with NS_BUF_CHANGED");
	check(take_frames(&pair.target, 3, 3), "the owner takes the others");
	monitor_has(&monitor, 3, 3, "and they are seen");
}

static void
zero_copy_rx_vale(void)
{
	struct watched pair = watched_vale();

	zero_copy_rx_of(pair, port_rx(&pair.target));
}

static void
zero_copy_rx_pipe(void)
{
	struct watched pair = watched_pipe();

	zero_copy_rx_of(pair, port_tx(&pair.peer));
}

static void
zero_copy_tx_vale(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	struct netmap_ring *tx = port_tx(&pair.target);
	uint32_t before = tx->slot[0].buf_idx;

	send_frames(&pair.target, 1, 3);
	port_rxsync(&monitor);
	check_number(port_rx(&monitor)->slot[0].buf_idx, before,
		     "the buffer itself");
	monitor_has(&monitor, 1, 3, "at once");
	check(tx->slot[0].buf_idx != before &&
	      tx->slot[0].flags & NS_BUF_CHANGED,
	      "the owner has another, with NS_BUF_CHANGED");
	check(take_frames(&pair.peer, 1, 3), "the peer gets them as well");
}

static void
zero_copy_tx_pipe(void)
{
	struct watched pair = watched_pipe();
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);

	send_frames(&pair.target, 1, 5);
	monitor_has(&monitor, 0, 0, "not before the peer has read");
	check(take_frames(&pair.peer, 1, 2), "the peer reads two");
	monitor_has(&monitor, 0, 0, "not before the sender syncs");
	port_txsync(&pair.target);
	monitor_has(&monitor, 1, 2, "then those two");
	check(take_frames(&pair.peer, 3, 3), "the peer reads the others");
	port_txsync(&pair.target);
	monitor_has(&monitor, 3, 3, "and they are seen");
	check_number(nm_ring_space(port_tx(&pair.target)), 1023,
		     "all slots are free");
}

/* The swapped buffers are the ports' own afterwards: all goes on. */
static void
zero_copy_for_long(void)
{
	struct watched pair = watched_pipe();
	struct port monitor = monitor_open_slots(pair.name, NR_ZCOPY_MON, 64);
	uint32_t i;

	for (i = 0; i < 300; i++) {
		send_frames(&pair.target, i * 20, 20);
		if (!take_frames(&pair.peer, i * 20, 20))
			break;
		port_txsync(&pair.target);
		if (!take_frames(&monitor, i * 20, 20))
			break;
	}
	check_number(i, 300, "rounds");
}

/* ---- S-MON-6: a monitor that is slow ---- */

static void
short_ring(uint64_t kind)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open_slots(pair.name, kind, 16);
	uint32_t i;

	send_frames(&pair.peer, 0, 40);
	for (i = 0; i < 40; i++)
		if (port_take(&pair.target) != i)
			break;
	port_rxsync(&pair.target);
	check_number(i, 40, "the owner gets all");
	port_rxsync(&monitor);
	check_number(nm_ring_space(port_rx(&monitor)), 15,
		     "as many as there is room for");
	send_frames(&pair.peer, 40, 5);
	check(take_frames(&pair.target, 40, 5), "and goes on");
	monitor_has(&monitor, 25, 15, "the last of the batch, nothing of the "
		    "next");
	send_frames(&pair.peer, 50, 5);
	check(take_frames(&pair.target, 50, 5), "once more");
	monitor_has(&monitor, 50, 5, "with room again");
}

static void short_ring_copy(void) { short_ring(NR_MONITOR_RX); }
static void short_ring_zero_copy(void) { short_ring(NR_ZCOPY_MON); }

static void
short_ring_tx(void)
{
	struct watched pair = watched_vale();
	struct port monitor =
		monitor_open_slots(pair.name, NR_MONITOR_TX, 16);

	send_frames(&pair.target, 0, 40);
	check_number(nm_ring_space(port_tx(&pair.target)), 1023,
		     "the sender is not held up");
	check(take_frames(&pair.peer, 0, 40), "the peer gets all");
	monitor_has(&monitor, 25, 15, "the last of the batch");
}

/* ---- S-MON-7: several ---- */

static void
several_copies(void)
{
	struct watched pair = watched_vale();
	struct port rx = monitor_open(pair.name, NR_MONITOR_RX),
		    tx = monitor_open(pair.name, NR_MONITOR_TX),
		    both = monitor_open(pair.name, MONITOR_BOTH),
		    more = monitor_open(pair.name, NR_MONITOR_RX);

	send_frames(&pair.peer, 1, 3);
	send_frames(&pair.target, 4, 3);
	monitor_has(&rx, 1, 3, "rx");
	monitor_has(&more, 1, 3, "rx again");
	monitor_has(&tx, 4, 3, "tx");
	monitor_has(&both, 1, 6, "both");
	check(take_frames(&pair.target, 1, 3) && take_frames(&pair.peer, 4, 3),
	      "both ends");
	port_close(&rx);
	send_frames(&pair.peer, 10, 3);
	monitor_has(&more, 10, 3, "when another has gone");
	monitor_has(&both, 10, 3, "when another has gone");
	check(take_frames(&pair.target, 10, 3), "the owner");
}

/* Each sees what the one before it has released. */
static void
chain_of_zero_copies(void)
{
	struct watched pair = watched_vale();
	struct port first = monitor_open(pair.name, NR_ZCOPY_MON),
		    second = monitor_open(pair.name, NR_ZCOPY_MON),
		    *near, *next;

	send_frames(&pair.peer, 1, 4);
	check(take_frames(&pair.target, 1, 4), "the owner");
	port_rxsync(&first);
	port_rxsync(&second);
	/* Which of the two is nearer to the target is nobody's promise. */
	near = nm_ring_empty(port_rx(&first)) ? &second : &first;
	next = near == &first ? &second : &first;
	check(nm_ring_space(port_rx(near)) == 4 &&
	      nm_ring_empty(port_rx(next)), "one of the two sees them");
	check(take_frames(near, 1, 2), "it releases two");
	monitor_has(next, 1, 2, "the other sees those two");
	check(take_frames(near, 3, 2), "it releases the others");
	monitor_has(next, 3, 2, "the other sees them");
}

static void
chain_loses_a_link(void)
{
	struct watched pair = watched_vale();
	struct port monitor[3];
	int left;

	monitor[0] = monitor_open(pair.name, NR_ZCOPY_MON);
	monitor[1] = monitor_open(pair.name, NR_ZCOPY_MON);
	monitor[2] = monitor_open(pair.name, NR_ZCOPY_MON);
	port_close(&monitor[1]);
	send_frames(&pair.peer, 1, 4);
	check(take_frames(&pair.target, 1, 4), "the owner");
	port_rxsync(&monitor[0]);
	left = nm_ring_empty(port_rx(&monitor[0])) ? 0 : 2;
	check(take_frames(&monitor[2 - left], 1, 4), "one of the others");
	monitor_has(&monitor[left], 1, 4, "and the last");
	port_close(&monitor[2 - left]);
	send_frames(&pair.peer, 5, 4);
	check(take_frames(&pair.target, 5, 4), "the owner");
	monitor_has(&monitor[left], 5, 4, "alone");
}

static void
copies_beside_zero_copies(void)
{
	struct watched pair = watched_vale();
	struct port zero = monitor_open(pair.name, NR_ZCOPY_MON),
		    copy = monitor_open(pair.name, MONITOR_BOTH);

	send_frames(&pair.peer, 1, 3);
	monitor_has(&copy, 1, 3, "the copy at once");
	monitor_has(&zero, 0, 0, "the other not yet");
	check(take_frames(&pair.target, 1, 3), "the owner");
	monitor_has(&zero, 1, 3, "the other");
	monitor_has(&copy, 0, 0, "the copy once");
}

/* ---- S-MON-8: the target goes ---- */

static void
target_goes_of(struct watched pair, uint64_t kind)
{
	struct port monitor = monitor_open(pair.name, kind);

	send_frames(&pair.peer, 1, 2);
	check(take_frames(&pair.target, 1, 2), "the owner");
	monitor_has(&monitor, 1, 2, "while it is there");
	port_close(&pair.target);
	check_call(ioctl(monitor.fd, NIOCRXSYNC, NULL), 0,
		   "NIOCRXSYNC when it is gone");
	check(wait_events(monitor.fd, POLLIN, PATIENCE_MS) & POLLERR,
	      "POLLERR when it is gone");
	pair.target = port_open(pair.name);
	send_frames(&pair.peer, 5, 2);
	check(take_frames(&pair.target, 5, 2), "the target is back");
	port_rxsync(&monitor);
	check(nm_ring_empty(port_rx(&monitor)), "nothing more is delivered");
}

static void target_goes_copy(void)
{
	target_goes_of(watched_vale(), NR_MONITOR_RX);
}

static void target_goes_zero_copy(void)
{
	target_goes_of(watched_vale(), NR_ZCOPY_MON);
}

static void target_goes_pipe(void)
{
	target_goes_of(watched_pipe(), NR_MONITOR_RX);
}

/* Monitors come and go in any order; the target never notices. */
static void
any_order(void)
{
	struct watched pair = watched_vale();
	struct port one, two, second;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		one = monitor_open(pair.name, NR_MONITOR_RX);
		two = monitor_open(pair.name, NR_ZCOPY_MON);
		second = port_open(pair.name);
		send_frames(&pair.peer, i * 10, 4);
		check(take_frames(&pair.target, i * 10, 4), "the owner");
		monitor_has(&one, i * 10, 4, "the copy");
		monitor_has(&two, i * 10, 4, "the other");
		if (i & 1)
			port_close(&one);
		port_close(&second);
		port_close(&two);
		if (!(i & 1))
			port_close(&one);
		send_frames(&pair.peer, 100, 4);
		check(take_frames(&pair.target, 100, 4), "without monitors");
	}
	one = monitor_open(pair.name, NR_ZCOPY_MON);
	port_close(&pair.target);
	port_close(&one);
	pair.target = port_open(pair.name);
	send_frames(&pair.peer, 200, 4);
	check(take_frames(&pair.target, 200, 4), "a new target");
}

/* ---- interfaces ---- */

static void
copy_of_interface(void)
{
	struct cable cable;
	struct port nic, rx, tx;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	nic = port_open(own("n$"));
	rx = monitor_open(own("n$"), NR_MONITOR_RX);
	tx = monitor_open(own("n$"), NR_MONITOR_TX);
	check(rx.reg.nr_host_rx_rings == nic.reg.nr_host_rx_rings,
	      "host rings as the target has");
	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(port_take(&nic), 1, "the owner receives");
	check_number(port_take(&rx), 1, "the monitor too");
	port_send(&nic, broadcast, mac_of(2), 2);
	check_number(port_take(&tx), 2, "the other monitor");
	check_number(cable_take(&cable), 2, "the far end");
	monitor_has(&rx, 0, 0, "not what is sent");
	monitor_has(&tx, 0, 0, "not what is received");
}

static void
zero_copy_of_interface(void)
{
	struct cable cable;
	struct netmap_slot *slot;
	struct port nic, monitor;
	uint32_t i, buffer, same = 0;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	nic = port_open(own("n$"));
	monitor = monitor_open(own("n$"), NR_ZCOPY_MON);
	check_number(monitor.reg.nr_mem_id, nic.reg.nr_mem_id, "one region");
	for (i = 0; i < 50; i++) {
		cable_send(&cable, broadcast, mac_of(1), i);
		slot = port_peek(&nic);
		buffer = slot ? slot->buf_idx : 0;
		if (port_take(&nic) != i)
			break;
		port_rxsync(&nic);
		slot = port_peek(&monitor);
		same += slot && slot->buf_idx == buffer;
		if (port_take(&monitor) != i)
			break;
		port_rxsync(&monitor);
	}
	check_number(i, 50, "received, released, seen");
	check_number(same, 50, "in the very buffers");
}

static void
host_rings_of_interface(void)
{
	struct nmreq_register reg = register_all();
	struct cable cable, stack;
	struct port nic, monitor;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	stack = stack_of(cable.near);
	reg.nr_mode = NR_REG_NIC_SW;
	nic = port_open_as(own("n$"), reg);
	reg.nr_mode = NR_REG_SW;
	reg.nr_flags = NR_MONITOR_RX;
	monitor = port_open_as(own("n$"), reg);
	check_number(monitor.reg.nr_host_rx_rings, 1, "a host ring");
	cable_send(&stack, broadcast, mac_of(1), 1);
	/* Of an interface, on arrival or when the owner syncs. */
	check(wait_events(nic.fd, POLLIN, PATIENCE_MS) & POLLIN,
	      "a frame of the host's");
	check(wait_events(monitor.fd, POLLIN, PATIENCE_MS) & POLLIN,
	      "for the monitor as well");
}

static const struct test_case cases[] = {
	{ "S-MON-1", "targets", targets },
	{ "S-MON-1", "errors", errors },
	{ "S-MON-1", "an idle interface", idle_interface },
	{ "S-MON-1", "exclusive targets", exclusive_target },
	{ "S-MON-1", "a persistent port", persistent_by_both_names },
	{ "S-MON-2", "rings", rings },
	{ "S-MON-2", "slots within limits", slots_within_limits },
	{ "S-MON-2", "ring by ring", ring_by_ring },
	{ "S-FLAGS-NS_TXMON", "of copies", flag_of_sent_slots },
	{ "S-FLAGS-NS_TXMON", "without a copy", flag_of_zero_copy },
	{ "S-MON-3", "nothing is transmitted", no_transmission },
	{ "S-MON-3", "waiting for input", waits_for_input },
	{ "S-MON-4", "rx of a VALE port", copy_rx_vale },
	{ "S-MON-4", "tx of a VALE port", copy_tx_vale },
	{ "S-MON-4", "both of a VALE port", copy_both_vale },
	{ "S-MON-4", "rx of a pipe", copy_rx_pipe },
	{ "S-MON-4", "tx of a pipe", copy_tx_pipe },
	{ "S-MON-4", "both of a pipe", copy_both_pipe },
	{ "S-MON-4", "tx of a pipe that is full", copy_tx_of_full_pipe },
	{ "S-MON-4", "packets of several slots", copy_fragments },
	{ "S-MON-4", "memory of its own", copy_memory },
	{ "S-MON-4", "an interface", copy_of_interface },
	{ "S-MON-5", "rx of a VALE port", zero_copy_rx_vale },
	{ "S-MON-5", "rx of a pipe", zero_copy_rx_pipe },
	{ "S-MON-5", "tx of a VALE port", zero_copy_tx_vale },
	{ "S-MON-5", "tx of a pipe", zero_copy_tx_pipe },
	{ "S-MON-5", "for long", zero_copy_for_long },
	{ "S-MON-5", "an interface", zero_copy_of_interface },
	{ "S-MON-6", "a short ring of copies", short_ring_copy },
	{ "S-MON-6", "a short ring without copies", short_ring_zero_copy },
	{ "S-MON-6", "a short ring, tx", short_ring_tx },
	{ "S-MON-7", "several copies", several_copies },
	{ "S-MON-7", "a chain", chain_of_zero_copies },
	{ "S-MON-7", "a chain that loses a link", chain_loses_a_link },
	{ "S-MON-7", "both kinds", copies_beside_zero_copies },
	{ "S-MON-8", "copies", target_goes_copy },
	{ "S-MON-8", "without copies", target_goes_zero_copy },
	{ "S-MON-8", "a pipe", target_goes_pipe },
	{ "S-MON-8", "closed in any order", any_order },
	{ "S-MON-2", "host rings", host_rings_of_interface },
};

CHAPTER(cases)
