/* SPDX-License-Identifier: BSD-2-Clause */
/* VALE switches: sending, learning, and where packets go (S-VALE-5 to 8). */
#include "lan.h"

static struct packet packet;

/* ---- S-VALE-5: sending ---- */

static void
all_slots_at_once(void)
{
	struct netmap_ring *tx;
	uint32_t i;

	lan_open(2);
	tx = port_tx(&lan[0]);
	for (i = 0; i < tx->num_slots - 1; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	check_number(nm_ring_space(tx), 0, "a full ring");
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
	check(nm_ring_next(tx, tx->tail) == tx->head, "tail is head - 1");
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(port_rx(&lan[1])), tx->num_slots - 1,
		     "all of it has arrived");
	for (i = 0; i < tx->num_slots - 1; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, tx->num_slots - 1, "in order");
}

/* Up to head, not up to cur, and the indices stay the program's. */
static void
up_to_head(void)
{
	struct netmap_ring *tx;
	uint32_t head, cur;

	lan_open(2);
	tx = port_tx(&lan[0]);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	head = tx->head;
	port_put(&lan[0], broadcast, mac_of(0), 3);
	cur = tx->cur;
	tx->head = head;
	port_txsync(&lan[0]);
	check(tx->head == head && tx->cur == cur, "head and cur are as set");
	check_number(lan_drain(1, 0), 2, "two frames of three");
	tx->head = cur;
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 3, "the third");
}

/* More slots than a batch of the original, which is 1024. */
static void
many_batches(void)
{
	struct nmreq_register reg = register_all();
	struct netmap_ring *tx;
	uint32_t i;

	reg.nr_tx_slots = reg.nr_rx_slots = 4096;
	lan_add(reg);
	lan_add(reg);
	tx = port_tx(&lan[0]);
	for (i = 0; i < 4095; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), 4095, "all slots free");
	for (i = 0; i < 4095; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 4095, "in order");
}

static void
truncated_packet(void)
{
	struct netmap_ring *tx;
	uint32_t last;

	lan_open(2);
	tx = port_tx(&lan[0]);
	ring_put_frame(tx, broadcast, mac_of(0), 7, 180, 60);
	last = (tx->head + tx->num_slots - 1) % tx->num_slots;
	tx->slot[last].flags = NS_MOREFRAG;
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet), "it is sent");
	check(packet.slots == 3 && packet_is_marked(&packet),
	      "three slots, as a packet of three (got %u)", packet.slots);
	check_number(packet_sequence(&packet), 7, "its bytes");
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

static void
truncated_single(void)
{
	struct netmap_ring *tx;

	lan_open(2);
	tx = port_tx(&lan[0]);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	tx->slot[0].flags = NS_MOREFRAG;
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 1 &&
	      packet_is_marked(&packet), "one slot, without NS_MOREFRAG");
}

static void
empty_sync(void)
{
	lan_open(2);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
	lan_silent(1, "a sync with nothing to send");
}

/* ---- S-VALE-6: learning ---- */

static void
learns_and_moves(void)
{
	lan_open(3);
	lan_teach(2, mac_of(50));
	lan_send(1, mac_of(50), mac_of(1));
	lan_expect_only(2, "where it was seen");
	lan_teach(0, mac_of(50));
	lan_send(1, mac_of(50), mac_of(1));
	lan_expect_only(0, "where it has moved to");
}

static void
learns_from_unicast(void)
{
	lan_open(3);
	lan_teach(0, mac_of(0));
	lan_send(1, mac_of(0), mac_of(1));
	lan_expect_only(0, "unicast");
	lan_send(2, mac_of(1), mac_of(2));
	lan_expect_only(1, "to the sender of a unicast");
}

/*
 * The original does not learn a port's last address again, so that a machine
 * which has moved away and back is not reached until it speaks with another
 * address. Here it is learned again at once: machines do move, and to lose
 * what is for them helps nobody.
 */
static void
away_and_back(void)
{
	lan_open(3);
	lan_teach(1, mac_of(9));
	lan_teach(2, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(2, "away");
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "back, with the same address as last");
	lan_teach(2, mac_of(9));
	lan_teach(1, mac_of(8));
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "back, after another address");
}

/*
 * A group is no source that is learned, nor that changes what was. The end
 * differs from the original, as in the case before.
 */
static void
group_sources(void)
{
	struct mac group = { { 0x01, 0, 0x5e, 0, 0, 1 } };

	lan_open(3);
	lan_teach(1, mac_of(9));
	lan_teach(1, group);
	lan_send(0, group, mac_of(0));
	lan_expect_flood(0, "to the group");
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "to the port's own address");
	lan_teach(2, mac_of(9));
	lan_teach(1, group);
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(2, "to an address that has moved before");
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "to one that is back");
}

static void
short_frames(void)
{
	uint8_t frame[64];
	uint16_t length;

	lan_open(2);
	for (length = 0; length <= 17; length++) {
		frame_fill(frame, sizeof(frame), broadcast, mac_of(0), length);
		ring_put(port_tx(&lan[0]), frame, length);
	}
	port_txsync(&lan[0]);
	for (length = 14; length <= 17; length++) {
		frame_fill(frame, sizeof(frame), broadcast, mac_of(0), length);
		check(port_take_packet(&lan[1], &packet) &&
		      packet.length == length &&
		      memcmp(packet.byte, frame, length) == 0,
		      "%u bytes arrive (got %u)", length, packet.length);
	}
	lan_silent(1, "0 to 13 bytes");
}

/* No more is forgotten than 1024 addresses can hold. */
static void
table_size(void)
{
	enum { ADDRESSES = 4096 };
	struct mac mac = mac_of(0), other = mac_of(1);
	uint32_t i, reached = 0, flooded = 0;

	lan_open(3);
	for (i = 0; i < ADDRESSES; i++) {
		mac.byte[3] = (uint8_t)(i >> 8);
		mac.byte[4] = (uint8_t)i;
		port_put(&lan[1], mac_of(200), mac, i);
		if (i % 512 == 511) {
			port_txsync(&lan[1]);
			lan_drain(0, 0);
			lan_drain(2, 0);
		}
	}
	for (i = 0; i < ADDRESSES; i++) {
		mac.byte[3] = (uint8_t)(i >> 8);
		mac.byte[4] = (uint8_t)i;
		port_put(&lan[0], mac, other, i);
		if (i % 512 == 511) {
			port_txsync(&lan[0]);
			reached += lan_drain(1, 0);
			flooded += lan_drain(2, 0);
		}
	}
	check_number(reached, ADDRESSES, "all reach the one that has them");
	check(flooded >= ADDRESSES - 1024,
	      "1024 are known at most (got %u)", ADDRESSES - flooded);
	check(flooded <= ADDRESSES - 256,
	      "many are known (got %u)", ADDRESSES - flooded);
}

/* ---- S-VALE-7: destinations ---- */

static void
floods(void)
{
	struct mac group = { { 0x01, 0, 0x5e, 0, 0, 1 } },
		   six = { { 0x33, 0x33, 0, 0, 0, 1 } };
	int i;

	lan_open(4);
	for (i = 0; i < 4; i++)
		lan_teach(i, mac_of((uint8_t)(i + 1)));
	lan_send(0, mac_of(99), mac_of(1));
	lan_expect_flood(0, "unknown unicast");
	lan_send(1, group, mac_of(2));
	lan_expect_flood(1, "multicast");
	lan_send(2, six, mac_of(3));
	lan_expect_flood(2, "IPv6 multicast");
	lan_send(3, broadcast, mac_of(4));
	lan_expect_flood(3, "broadcast");
}

static void
known_unicast(void)
{
	uint8_t from, to;

	lan_open(4);
	for (from = 0; from < 4; from++)
		lan_teach(from, mac_of(from));
	for (from = 0; from < 4; from++)
		for (to = 0; to < 4; to++) {
			if (from == to)
				continue;
			lan_send(from, mac_of(to), mac_of(from));
			lan_expect_only(to, "to a known address");
		}
}

static void
own_address(void)
{
	int i;

	lan_open(3);
	lan_teach(1, mac_of(1));
	lan_send(1, mac_of(1), mac_of(1));
	for (i = 0; i < 3; i++)
		lan_silent(i, "to an address behind the sender");
}

/*
 * The original keeps what it has learned of a port that is gone: its addresses
 * are dropped, and the next port that takes its place gets them. Here they are
 * forgotten: a machine that comes back at another port is reached at once, and
 * nobody gets what was for somebody else alone. (The service has seen that a port
 * is gone when it says so.)
 */
static void
vanished_port(void)
{
	lan_open(3);
	lan_teach(1, mac_of(1));
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(1, "while it is there");
	port_close(&lan[1]);
	check(!port_exists(lan_name(1)), "the port is gone");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_flood(0, "to a port that is gone");
	lan_add(register_all());
	check_number(vale_index(lan_name(3)), 1, "the next port at its place");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_flood(0, "to a port that was there before");
	lan_teach(2, mac_of(1));
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(2, "where it has come back");
}

static void
alone_on_a_switch(void)
{
	lan_open(1);
	lan_send(0, broadcast, mac_of(0));
	lan_silent(0, "a switch of one port");
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
}

/* ---- S-VALE-8: rings of a destination ---- */

static struct nmreq_register
register_rings(uint16_t rings)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_rings = reg.nr_rx_rings = rings;
	reg.nr_tx_slots = reg.nr_rx_slots = 64;
	return reg;
}

/* What each rx ring of a port has: frames of one number. */
static void
check_rings(int port, const uint32_t *expected, uint32_t rings)
{
	uint32_t i;

	for (i = 0; i < rings; i++) {
		uint32_t got = lan_drain(port, (int)i);

		check(got == expected[i], "ring %u of port %c (got %u, "
		      "expected %u)", i, 'a' + port, got, expected[i]);
	}
}

static void
ring_of_unicast(void)
{
	static const uint32_t four[] = { 1, 1, 1, 1 }, two[] = { 2, 2 },
			      three[] = { 2, 1, 1 }, eight[] = { 1, 1, 1, 1,
			      0, 0, 0, 0 };
	static const struct {
		uint16_t rings;
		const uint32_t *expected;
	} receivers[] = { { 4, four }, { 2, two }, { 3, three }, { 8, eight } };
	size_t i;

	lan_add(register_rings(4));
	for (i = 0; i < COUNT(receivers); i++)
		lan_add(register_rings(receivers[i].rings));
	for (i = 0; i < COUNT(receivers); i++) {
		int to = (int)i + 1, ring;

		port_send(&lan[to], mac_of(100), mac_of((uint8_t)to), 0);
		lan_drain(0, 0);
		for (ring = 1; ring <= (int)COUNT(receivers); ring++)
			lan_drain(ring, 0);
		for (ring = 0; ring < 4; ring++)
			ring_put_frame(NETMAP_TXRING(lan[0].nifp, ring),
				       mac_of((uint8_t)to), mac_of(0), 1, 60,
				       60);
		port_txsync(&lan[0]);
		check_rings(to, receivers[i].expected, receivers[i].rings);
	}
}

static void
ring_of_flood(void)
{
	static const uint32_t first[] = { 4, 0, 0, 0 };
	int ring;

	lan_add(register_rings(4));
	lan_add(register_rings(4));
	lan_add(register_rings(2));
	for (ring = 0; ring < 4; ring++)
		ring_put_frame(NETMAP_TXRING(lan[0].nifp, ring), broadcast,
			       mac_of(0), 1, 60, 60);
	port_txsync(&lan[0]);
	check_rings(1, first, 4);
	check_rings(2, first, 2);
}

static void
order_in_a_batch(void)
{
	uint32_t i;

	lan_open(3);
	lan_teach(1, mac_of(1));
	for (i = 0; i < 600; i++)
		port_put(&lan[0], i % 3 ? mac_of(1) : broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	for (i = 0; i < 600; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 600, "unicast and broadcast in the order sent");
	for (i = 0; i < 600; i += 3)
		if (port_take(&lan[2]) != i)
			break;
	check_number(i, 600, "broadcasts in the order sent");
}

static const struct test_case cases[] = {
	{ "S-VALE-5", "all slots at once", all_slots_at_once },
	{ "S-VALE-5", "up to head", up_to_head },
	{ "S-VALE-5", "several batches", many_batches },
	{ "S-VALE-5", "an incomplete packet is sent", truncated_packet },
	{ "S-VALE-5", "an incomplete packet of one slot", truncated_single },
	{ "S-VALE-5", "nothing to send", empty_sync },
	{ "S-VALE-6", "an address moves", learns_and_moves },
	{ "S-VALE-6", "from unicast frames", learns_from_unicast },
	{ "S-VALE-6", "an address that comes back", away_and_back },
	{ "S-VALE-6", "group addresses as source", group_sources },
	{ "S-VALE-6", "short frames", short_frames },
	{ "S-VALE-6", "the size of the table", table_size },
	{ "S-VALE-7", "floods", floods },
	{ "S-VALE-7", "known unicast", known_unicast },
	{ "S-VALE-7", "to the sender's own port", own_address },
	{ "S-VALE-7", "to a port that is gone", vanished_port },
	{ "S-VALE-7", "alone", alone_on_a_switch },
	{ "S-VALE-8", "unicast: ring of the same number", ring_of_unicast },
	{ "S-VALE-8", "flood: ring 0", ring_of_flood },
	{ "S-VALE-8", "order within a batch", order_in_a_batch },
};

CHAPTER(cases)
