/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch with three ports floods and learns (S-SCEN-2, S-SCEN-3).
 *
 * usage: vale_flood_learn [SWITCH [14|15]]
 *
 * A frame that must not arrive is never waited for: each port receives its
 * frames in the order in which they were sent, so a stray one is found in the
 * place of the next frame that the port must receive.
 */
#include "port.h"

#define PORTS	3

static struct port port[PORTS];
static const char letter[] = "abc";
static uint32_t sequence;

static void
expect(int receiver, const char *what)
{
	long long got = port_take(&port[receiver]);

	if (got == sequence)
		check(1, "%s: port %c receives it", what, letter[receiver]);
	else
		check(0, "%s: port %c receives it (got %lld, expected %u)",
		      what, letter[receiver], got, sequence);
}

static void
send_as(int sender, struct mac to, struct mac from)
{
	sequence++;
	port_send(&port[sender], to, from, sequence);
}

static void
expect_flood(int sender, const char *what)
{
	int i;

	for (i = 0; i < PORTS; i++)
		if (i != sender)
			expect(i, what);
}

/* S-VALE-7, S-SCEN-2: each sender in turn; the switch learns all three. */
static void
test_flood(void)
{
	int i;

	for (i = 0; i < PORTS; i++) {
		send_as(i, broadcast, mac_of((uint8_t)i));
		expect_flood(i, "broadcast");
	}
}

/* S-SCEN-3: from everybody to everybody else. */
static void
test_unicast(void)
{
	int from, to;

	for (from = 0; from < PORTS; from++)
		for (to = 0; to < PORTS; to++) {
			if (from == to)
				continue;
			send_as(from, mac_of((uint8_t)to),
				mac_of((uint8_t)from));
			expect(to, "unicast to a learned address");
		}
}

static void
test_unknown_and_multicast(void)
{
	struct mac group = { { 0x01, 0, 0x5e, 0, 0, 1 } };

	send_as(0, mac_of(77), mac_of(0));
	expect_flood(0, "S-VALE-7 unknown unicast");
	send_as(1, group, mac_of(1));
	expect_flood(1, "S-VALE-7 multicast");
}

/* S-VALE-7: what is for the sender's own port goes nowhere. */
static void
test_own_address(void)
{
	send_as(2, mac_of(2), mac_of(2));
	send_as(2, broadcast, mac_of(2));
	expect_flood(2, "S-VALE-7 after a frame to the sender itself");
}

/* S-VALE-6: an address that shows up at another port has moved. */
static void
test_move(void)
{
	send_as(2, broadcast, mac_of(50));
	expect_flood(2, "S-VALE-6 first sight");
	send_as(1, mac_of(50), mac_of(1));
	expect(2, "S-VALE-6 unicast before the move");
	send_as(0, broadcast, mac_of(50));
	expect_flood(0, "S-VALE-6 the address moves");
	send_as(1, mac_of(50), mac_of(1));
	expect(0, "S-VALE-6 unicast after the move");
}

/* One slot of given length and flags, holding the start of a frame. */
static void
put_slot(int sender, uint16_t length, uint16_t flags)
{
	struct netmap_ring *ring = port_tx(&port[sender]);
	uint32_t at = ring->head;

	port_put(&port[sender], broadcast, mac_of((uint8_t)sender), sequence);
	ring->slot[at].len = length;
	ring->slot[at].flags = flags;
}

/* S-VALE-6, S-VALE-9: too short, longer than the buffer. */
static void
test_bad_slots(void)
{
	uint32_t size = port_tx(&port[0])->nr_buf_size;

	sequence++;
	put_slot(0, 13, 0);
	put_slot(0, (uint16_t)(size + 1), 0);
	put_slot(0, FRAME_SIZE, 0);
	port_txsync(&port[0]);
	expect_flood(0, "S-VALE-9 after two bad slots");
}

/* S-VALE-11: a packet of two slots arrives as two, each with the count. */
static void
test_fragments(void)
{
	int i;

	sequence++;
	put_slot(0, FRAME_SIZE, NS_MOREFRAG);
	put_slot(0, 40, 0);
	port_txsync(&port[0]);
	for (i = 1; i < PORTS; i++) {
		struct netmap_ring *ring = port_rx(&port[i]);
		struct netmap_slot *first = port_peek(&port[i]);
		struct netmap_slot *second;

		if (!check(first && nm_ring_space(ring) == 2,
			   "S-VALE-11 port %c has two slots", letter[i]))
			continue;
		second = &ring->slot[nm_ring_next(ring, ring->head)];
		check(first->flags == (2 << NS_PORT_SHIFT | NS_MOREFRAG) &&
		      second->flags == 2 << NS_PORT_SHIFT,
		      "S-VALE-11 port %c: flags", letter[i]);
		check(first->len == FRAME_SIZE && second->len == 40,
		      "S-VALE-11 port %c: lengths", letter[i]);
		ring_advance(ring, 2);
	}
}

/* S-SCEN-2, S-MEM-9: the payload in an extra buffer swapped into the slot. */
static void
test_extra_buffer(void)
{
	struct port *sender = &port[0];
	struct netmap_ring *ring = port_tx(sender);
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint32_t extra = sender->nifp->ni_bufs_head, old = slot->buf_idx;
	uint32_t next;

	require(extra != 0, "an extra buffer was granted");
	memcpy(&next, NETMAP_BUF(ring, extra), sizeof(next));
	memcpy(NETMAP_BUF(ring, old), &next, sizeof(next));
	sender->nifp->ni_bufs_head = old;
	slot->buf_idx = extra;
	sequence++;
	put_slot(0, FRAME_SIZE, NS_BUF_CHANGED);
	port_txsync(sender);
	expect_flood(0, "S-SCEN-2 payload in an extra buffer");
	check(!(slot->flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED was consumed");
}

int
main(int argc, char **argv)
{
	const char *vale = argc > 1 ? argv[1] : "vale0";
	struct nmreq_register reg = register_all();
	int i;

	if (argc > 2)
		api_select(argv[2]);
	reg.nr_extra_bufs = 2;
	for (i = 0; i < PORTS; i++) {
		char name[2] = { letter[i], 0 };

		port[i] = port_open_as(name_of(vale, name), reg);
	}
	test_flood();
	test_unicast();
	test_unknown_and_multicast();
	test_own_address();
	test_move();
	test_bad_slots();
	test_fragments();
	test_extra_buffer();

	/* Nothing else is on its way to anybody. */
	for (i = 0; i < PORTS; i++) {
		send_as(i, broadcast, mac_of((uint8_t)i));
		expect_flood(i, "last broadcast");
	}
	for (i = 0; i < PORTS; i++) {
		port_rxsync(&port[i]);
		check_number(nm_ring_space(port_rx(&port[i])), 0,
			     "nothing is left in the rx ring");
		port_close(&port[i]);
	}
	return check_result();
}
