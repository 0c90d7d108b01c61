/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flags of slots, by the kind of port (S-FLAGS). NS_TXMON is a matter of
 * monitors, NS_NO_LEARN of switches: they are in those chapters.
 */
#include "extra.h"
#include "netns.h"
#include "packet.h"
#include "request.h"

static struct packet packet;

/* A switch's port and another, or an interface and its cable. */
struct link {
	struct port port, peer;
	struct cable cable;
	int is_nic;
};

static struct link
link_vale(void)
{
	struct link link;

	memset(&link, 0, sizeof(link));
	link.port = port_open_extra(own("vale$:a"), 4);
	link.peer = port_open_extra(own("vale$:b"), 4);
	return link;
}

static struct link
link_nic(void)
{
	struct link link;

	netns_own();
	memset(&link, 0, sizeof(link));
	link.is_nic = 1;
	link.cable = cable_new(own("n$"), own("f$"), 1);
	link.port = port_open_extra(link.cable.near, 4);
	return link;
}

static long long
link_take(const struct link *link)
{
	if (link->is_nic)
		return cable_take(&link->cable);
	return port_take(&link->peer);
}

static void
link_send_back(const struct link *link, uint32_t sequence)
{
	if (link->is_nic)
		cable_send(&link->cable, broadcast, mac_of(2), sequence);
	else
		port_send(&link->peer, broadcast, mac_of(2), sequence);
}

/* Sends a frame with these flags from the slot at head; tells which it was. */
static struct netmap_slot *
link_send(const struct link *link, uint32_t sequence, uint16_t flags)
{
	struct netmap_ring *tx = port_tx(&link->port);
	struct netmap_slot *slot = &tx->slot[tx->head];

	port_put(&link->port, broadcast, mac_of(1), sequence);
	slot->flags = flags;
	port_txsync(&link->port);
	return slot;
}

/* ---- NS_BUF_CHANGED ---- */

static void
changed_tx(struct link link)
{
	struct netmap_ring *tx = port_tx(&link.port);
	struct netmap_slot *slot = &tx->slot[tx->head];
	uint32_t before = slot->buf_idx, extra;

	extra = slot->buf_idx = extra_take(&link.port, tx);
	check(link_send(&link, 1, NS_BUF_CHANGED) == slot, "a replaced buffer");
	check_number(link_take(&link), 1, "is what is sent");
	check(!(slot->flags & NS_BUF_CHANGED), "the sync clears the flag");
	check_number(slot->buf_idx, extra, "and leaves the buffer");
	check(memcmp(NETMAP_BUF(tx, before), NETMAP_BUF(tx, extra), 60) != 0,
	      "the buffer that was there is not touched");
}

static void changed_tx_vale(void) { changed_tx(link_vale()); }
static void changed_tx_nic(void) { changed_tx(link_nic()); }

/* A buffer taken out of the ring is the program's, however long it keeps it. */
static void
changed_rx(struct link link)
{
	struct netmap_ring *rx = port_rx(&link.port);
	uint32_t taken, i, rounds = rx->num_slots + 10;
	struct netmap_slot *slot;

	link_send_back(&link, 77);
	slot = port_peek(&link.port);
	require(slot != NULL, "a frame");
	taken = slot->buf_idx;
	slot->buf_idx = extra_take(&link.port, rx);
	slot->flags |= NS_BUF_CHANGED;
	ring_advance(rx, 1);
	port_rxsync(&link.port);
	check(!(slot->flags & NS_BUF_CHANGED), "the sync clears the flag");
	for (i = 0; i < rounds; i++) {
		link_send_back(&link, i);
		if (port_take(&link.port) != i)
			break;
		port_rxsync(&link.port);
	}
	check_number(i, rounds, "frames after it, more than the ring has");
	check(frame_is_intact(NETMAP_BUF(rx, taken), FRAME_SIZE) &&
	      frame_sequence(NETMAP_BUF(rx, taken)) == 77,
	      "the frame taken out is still there");
	extra_give(&link.port, rx, taken);
}

static void changed_rx_vale(void) { changed_rx(link_vale()); }
static void changed_rx_nic(void) { changed_rx(link_nic()); }

static void
changed_on_a_pipe(void)
{
	struct port one = port_open_extra(own("p${1"), 1),
		    two = port_open(own("p$}1"));
	struct netmap_ring *tx = port_tx(&one);
	uint32_t extra = extra_take(&one, tx), own_buffer = tx->slot[0].buf_idx;

	tx->slot[0].buf_idx = extra;
	port_put(&one, broadcast, mac_of(1), 1);
	tx->slot[0].flags = NS_BUF_CHANGED;
	port_txsync(&one);
	require(port_peek(&two) != NULL, "a frame");
	check(!(tx->slot[0].flags & NS_BUF_CHANGED), "cleared at the sender");
	check(port_rx(&two)->slot[0].flags & NS_BUF_CHANGED &&
	      port_rx(&two)->slot[0].buf_idx == extra,
	      "the receiver sees buffer and flag");
	extra_give(&one, tx, own_buffer);
}

/* ---- NS_REPORT ---- */

static void
report_on_a_nic(void)
{
	struct link link = link_nic();
	struct netmap_slot *slot = link_send(&link, 1, NS_REPORT);

	check_number(link_take(&link), 1, "a frame");
	port_txsync(&link.port);
	check(!(slot->flags & NS_REPORT), "the flag is cleared");
	check_number(nm_ring_space(port_tx(&link.port)),
		     port_tx(&link.port)->num_slots - 1,
		     "its slot comes back");
}

static void
report_elsewhere(void)
{
	struct link link = link_vale();
	struct port one = port_open(own("p${1")), two = port_open(own("p$}1"));

	link_send(&link, 1, NS_REPORT);
	require(port_take_packet(&link.peer, &packet), "a frame");
	check(packet_sequence(&packet) == 1 && packet_is_marked(&packet),
	      "does nothing on a switch");
	port_put(&one, broadcast, mac_of(1), 2);
	port_tx(&one)->slot[0].flags = NS_REPORT;
	port_txsync(&one);
	check_number(nm_ring_space(port_tx(&one)),
		     port_tx(&one)->num_slots - 2,
		     "a pipe's slot comes back when the peer releases it");
	check_number(port_take(&two), 2, "and not before");
}

/* ---- NS_FORWARD ---- */

static void
forward_elsewhere(void)
{
	struct link link = link_vale();
	struct netmap_ring *rx = port_rx(&link.peer);

	rx->flags |= NR_FORWARD;
	link_send(&link, 1, NS_FORWARD);
	require(port_peek(&link.peer) != NULL, "a frame");
	check_number(rx->slot[rx->head].flags, 1 << NS_PORT_SHIFT,
		     "does not travel through a switch");
	rx->slot[rx->head].flags |= NS_FORWARD;
	ring_advance(rx, 1);
	port_rxsync(&link.peer);
	port_rxsync(&link.port);
	check(nm_ring_empty(port_rx(&link.port)),
	      "and forwards nothing from there");
	link_send(&link, 2, 0);
	check_number(port_take(&link.peer), 2, "the port goes on");
}

static void
forward_on_tx(void)
{
	struct link link = link_nic();

	port_tx(&link.port)->flags |= NR_FORWARD;
	link_send(&link, 1, NS_FORWARD);
	check_number(link_take(&link), 1, "a tx slot is sent all the same");
}

/* ---- NS_INDIRECT ---- */

static void
put_indirect(struct netmap_ring *ring, const void *at, uint32_t length)
{
	struct netmap_slot *slot = &ring->slot[ring->head];

	slot->ptr = (uintptr_t)at;
	slot->len = (uint16_t)length;
	slot->flags = NS_INDIRECT;
	ring_advance(ring, 1);
}

static void
indirect_on_a_switch(void)
{
	static uint8_t memory[2 * FRAME_SIZE];
	struct link link = link_vale();
	struct netmap_ring *tx = port_tx(&link.port);

	frame_fill(NETMAP_BUF(tx, tx->slot[0].buf_idx), FRAME_SIZE, broadcast,
		   mac_of(1), 9);
	frame_fill(memory + 3, FRAME_SIZE, broadcast, mac_of(1), 1);
	put_indirect(tx, memory + 3, FRAME_SIZE);
	port_txsync(&link.port);
	check(port_take_packet(&link.peer, &packet) &&
	      packet_sequence(&packet) == 1, "the frame at ptr");
	check_number(packet.slot[0].flags, 1 << NS_PORT_SHIFT,
		     "copied: the receiver has no NS_INDIRECT");
	/* The flag is a matter of each slot, each time. */
	link_send(&link, 2, 0);
	check_number(port_take(&link.peer), 2, "the next from its buffer");
}

/* The address is one of the process that syncs. */
static void
indirect_in_a_child(void)
{
	uint8_t *memory = (uint8_t *)malloc(FRAME_SIZE);
	struct link link = link_vale();
	pid_t child;

	frame_fill(memory, FRAME_SIZE, broadcast, mac_of(1), 1);
	put_indirect(port_tx(&link.port), memory, FRAME_SIZE);
	child = forked();
	if (child == 0) {
		frame_fill(memory, FRAME_SIZE, broadcast, mac_of(1), 2);
		_exit(ioctl(link.port.fd, NIOCTXSYNC, NULL) != 0);
	}
	check_child(child, "a child syncs");
	check_number(port_take(&link.peer), 2, "what is there in the child");
}

static void
indirect_elsewhere(void)
{
	static uint8_t memory[FRAME_SIZE];
	struct link link = link_vale();
	struct netmap_ring *rx = port_rx(&link.port);
	struct port one = port_open(own("p${1")), two = port_open(own("p$}1"));
	uint32_t i;

	/* An rx slot: all of them, for the frame goes into one of those. */
	for (i = 0; i < rx->num_slots; i++) {
		rx->slot[i].ptr = (uintptr_t)memory;
		rx->slot[i].flags = NS_INDIRECT;
	}
	link_send_back(&link, 1);
	check_number(port_take(&link.port), 1, "an rx slot has its buffer");
	check(memory[0] == 0 && memory[FRAME_SIZE - 1] == 0,
	      "what ptr points to is not written");

	frame_fill(memory, FRAME_SIZE, broadcast, mac_of(1), 3);
	port_put(&one, broadcast, mac_of(1), 2);
	port_tx(&one)->slot[0].ptr = (uintptr_t)memory;
	port_tx(&one)->slot[0].flags = NS_INDIRECT;
	port_txsync(&one);
	check(port_peek(&two) && port_rx(&two)->slot[0].flags == NS_INDIRECT &&
	      port_rx(&two)->slot[0].ptr == (uintptr_t)memory,
	      "a pipe carries it like any flag");
	check_number(port_take(&two), 2, "with the buffer");
}

static void
indirect_on_a_nic(void)
{
	static uint8_t memory[FRAME_SIZE];
	struct link link = link_nic();

	frame_fill(memory, FRAME_SIZE, broadcast, mac_of(1), 2);
	port_put(&link.port, broadcast, mac_of(1), 1);
	port_tx(&link.port)->slot[0].ptr = (uintptr_t)memory;
	port_tx(&link.port)->slot[0].flags = NS_INDIRECT;
	port_txsync(&link.port);
	check_number(link_take(&link), 1, "an interface sends the buffer");
}

/* ---- NS_MOREFRAG ---- */

static void
fragments(const struct port *from, const struct port *to, int is_switch)
{
	static const uint32_t lengths[] = { 61, 200, 64 * 60 };
	size_t i;

	for (i = 0; i < COUNT(lengths); i++) {
		uint32_t slots = (lengths[i] + 59) / 60, j;
		int good;

		ring_put_frame(port_tx(from), broadcast, mac_of(1), 1 +
			       (uint32_t)i, lengths[i], 60);
		port_txsync(from);
		good = port_take_packet(to, &packet);
		check(good && packet.slots == slots && packet.length ==
		      lengths[i] && packet_sequence(&packet) == 1 + (int)i,
		      "a packet of %u slots (got %u)", slots, packet.slots);
		for (j = 0; j < packet.slots; j++)
			good &= !(packet.slot[j].flags & NS_MOREFRAG) ==
				(j + 1 == packet.slots);
		check(good && (!is_switch || packet_is_marked(&packet)),
		      "the flag is on all but the last");
		port_rxsync(to);
	}
}

static void
fragments_on_a_switch(void)
{
	struct link link = link_vale();

	fragments(&link.port, &link.peer, 1);
}

static void
fragments_on_a_pipe(void)
{
	struct port one = port_open(own("p${1")), two = port_open(own("p$}1"));

	fragments(&one, &two, 0);
}

/* More than a packet may have: whatever becomes of it, the next is whole. */
static void
too_many_fragments(void)
{
	struct link link = link_vale();
	long long got;

	ring_put_frame(port_tx(&link.port), broadcast, mac_of(1), 1, 65 * 60,
		       60);
	port_put(&link.port, broadcast, mac_of(1), 2);
	port_txsync(&link.port);
	do {
		if (!check(port_take_packet(&link.peer, &packet),
			   "a packet after 65 slots"))
			return;
		got = packet_sequence(&packet);
	} while (got != 2 || packet.slots != 1);
	check_number(got, 2, "is the next one, whole");
}

/*
 * Some interfaces take several slots as a packet, others each as one. Those of
 * AF_XDP are of the first kind (Linux 6.6), with 18 slots at most.
 */
static void
fragments_to_a_nic(void)
{
	static const uint32_t slots[] = { 2, 3, 17, 18 };
	struct link link = link_nic();
	uint32_t i;

	for (i = 0; i < COUNT(slots); i++) {
		ring_put_frame(port_tx(&link.port), broadcast, mac_of(1),
			       1 + i, slots[i] * 60, 60);
		port_txsync(&link.port);
		check_number(link_take(&link), 1 + i,
			     line("%u slots, a packet", slots[i]));
	}
}

/* Whatever becomes of the first, the next is whole. */
static void
too_many_fragments_to_a_nic(void)
{
	struct link link = link_nic();

	ring_put_frame(port_tx(&link.port), broadcast, mac_of(1), 1, 65 * 20,
		       20);
	port_put(&link.port, broadcast, mac_of(1), 2);
	port_txsync(&link.port);
	check_number(link_take(&link), 2, "the packet after one of 65 slots");
	port_txsync(&link.port);
	check_number(nm_ring_space(port_tx(&link.port)),
		     port_tx(&link.port)->num_slots - 1,
		     "all slots come back");
}

/* A packet is sent when its last slot has come. */
static void
fragments_in_two_syncs(void)
{
	struct link link = link_nic();
	struct netmap_ring *tx = port_tx(&link.port);

	ring_put_frame(tx, broadcast, mac_of(1), 1, 200, 50);
	tx->head = tx->cur = tx->head - 2;
	port_txsync(&link.port);
	check_number(nm_ring_space(tx), tx->num_slots - 3,
		     "two slots of four wait");
	ring_advance(tx, 2);
	port_txsync(&link.port);
	check_number(link_take(&link), 1, "the packet");
}

/* A frame that is larger than a buffer. */
static void
fragments_from_a_nic(void)
{
	static uint8_t frame[2062];
	struct cable cable;
	struct port port;
	uint32_t i;
	int good = 1;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	shell("ip link set %s mtu 2048 && ip link set %s mtu 2048", cable.near,
	      cable.far);
	port = port_open(cable.near);
	frame_fill(frame, sizeof(frame), broadcast, mac_of(2), 1);
	require(send(cable.socket, frame, sizeof(frame), 0) ==
		(ssize_t)sizeof(frame), "send");
	check(port_take_packet(&port, &packet) && packet.slots > 1 &&
	      packet_sequence(&packet) == 1 &&
	      packet.length == sizeof(frame),
	      "a frame of 2062 bytes in several slots (got %u, %u bytes)",
	      packet.slots, packet.length);
	for (i = 0; i + 1 < packet.slots; i++)
		good &= packet.slot[i].flags == NS_MOREFRAG;
	check(good && packet.slot[i].flags == 0, "the flag is on all but the "
	      "last, and no other");
	cable_send(&cable, broadcast, mac_of(2), 2);
	check_number(port_take(&port), 2, "the next in one");
}

/* ---- the number of fragments ---- */

static void
counted_by_a_switch(void)
{
	struct link link = link_vale();

	link_send(&link, 1, 0);
	ring_put_frame(port_tx(&link.port), broadcast, mac_of(1), 2, 300, 60);
	port_txsync(&link.port);
	require(port_take_packet(&link.peer, &packet), "a packet");
	check(packet.slots == 1 && NS_RFRAGS(&packet.slot[0]) == 1,
	      "1 of a packet in one slot");
	require(port_take_packet(&link.peer, &packet), "a packet");
	check(packet.slots == 5 && NS_RFRAGS(&packet.slot[0]) == 5 &&
	      NS_RFRAGS(&packet.slot[4]) == 5, "5 on each of five slots");
}

static void
not_counted_elsewhere(void)
{
	struct port one = port_open(own("p${1")), two = port_open(own("p$}1"));

	ring_put_frame(port_tx(&one), broadcast, mac_of(1), 1, 300, 60);
	port_txsync(&one);
	require(port_take_packet(&two, &packet), "a packet");
	check(packet.slots == 5 && NS_RFRAGS(&packet.slot[0]) == 0,
	      "not on a pipe");
}

static void
not_counted_on_a_nic(void)
{
	struct link link = link_nic();
	struct netmap_slot *slot;

	link_send_back(&link, 1);
	slot = port_peek(&link.port);
	check(slot && slot->flags == 0, "no flags at all");
}

static const struct test_case cases[] = {
	{ "S-FLAGS-NS_BUF_CHANGED", "sent to a switch", changed_tx_vale },
	{ "S-FLAGS-NS_BUF_CHANGED", "sent to a wire", changed_tx_nic },
	{ "S-FLAGS-NS_BUF_CHANGED", "received from a switch",
	  changed_rx_vale },
	{ "S-FLAGS-NS_BUF_CHANGED", "received from a wire", changed_rx_nic },
	{ "S-FLAGS-NS_BUF_CHANGED", "on a pipe", changed_on_a_pipe },
	{ "S-FLAGS-NS_REPORT", "on an interface", report_on_a_nic },
	{ "S-FLAGS-NS_REPORT", "elsewhere", report_elsewhere },
	{ "S-FLAGS-NS_FORWARD", "without host rings", forward_elsewhere },
	{ "S-FLAGS-NS_FORWARD", "in a tx ring", forward_on_tx },
	{ "S-FLAGS-NS_INDIRECT", "on a switch", indirect_on_a_switch },
	{ "S-FLAGS-NS_INDIRECT", "in another process", indirect_in_a_child },
	{ "S-FLAGS-NS_INDIRECT", "elsewhere", indirect_elsewhere },
	{ "S-FLAGS-NS_INDIRECT", "on an interface", indirect_on_a_nic },
	{ "S-FLAGS-NS_MOREFRAG", "on a switch", fragments_on_a_switch },
	{ "S-FLAGS-NS_MOREFRAG", "on a pipe", fragments_on_a_pipe },
	{ "S-FLAGS-NS_MOREFRAG", "too many", too_many_fragments },
	{ "S-FLAGS-NS_MOREFRAG", "to an interface", fragments_to_a_nic },
	{ "S-FLAGS-NS_MOREFRAG", "too many to an interface",
	  too_many_fragments_to_a_nic },
	{ "S-FLAGS-NS_MOREFRAG", "to an interface in two syncs",
	  fragments_in_two_syncs },
	{ "S-FLAGS-NS_MOREFRAG", "from an interface", fragments_from_a_nic },
	{ "S-FLAGS-NS_RFRAGS", "on a switch", counted_by_a_switch },
	{ "S-FLAGS-NS_RFRAGS", "elsewhere", not_counted_elsewhere },
	{ "S-FLAGS-NS_RFRAGS", "on an interface", not_counted_on_a_nic },
};

CHAPTER(cases)
