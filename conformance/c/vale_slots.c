/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VALE switches: slots that cannot be read, destinations that are full, and what
 * is delivered (S-VALE-9 to 11).
 */
#include "lan.h"
#include "waiter.h"

static struct packet packet;

/* ---- S-VALE-9: bad slots and NS_INDIRECT ---- */

static void
slot_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_put(&lan[0], broadcast, mac_of(0), 3);
	tx->slot[at].len = (uint16_t)(tx->nr_buf_size + 1);
	tx->slot[at + 1].len = UINT16_MAX;
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 3, "only the good one");
	lan_silent(1, "the others");
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

static void
whole_buffer(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 2048, 2048);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.length == 2048 &&
	      packet_sequence(&packet) == 1, "2048 bytes in one slot");
}

/* A packet whose middle slot is too long has an empty middle. */
static void
middle_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	ring_put_frame(tx, broadcast, mac_of(0), 1, 180, 60);
	tx->slot[at + 1].len = (uint16_t)(tx->nr_buf_size + 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 2, "never a part of it: the next");
}

static void
first_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	ring_put_frame(tx, broadcast, mac_of(0), 1, 180, 60);
	tx->slot[at].len = (uint16_t)(tx->nr_buf_size + 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 2, "dropped to its end");
}

/* Memory of this process, with a page behind it that cannot be read. */
static uint8_t *
guarded_memory(size_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = (uint8_t *)mmap(NULL, 3 * page,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(memory != MAP_FAILED && mprotect(memory + 2 * page, page,
						 PROT_NONE) == 0, "memory");
	*size = 2 * page;
	return memory;
}

static void
put_indirect(struct netmap_ring *tx, const void *at, uint32_t length,
	     uint16_t flags)
{
	struct netmap_slot *slot = &tx->slot[tx->head];

	slot->ptr = (uintptr_t)at;
	slot->len = (uint16_t)length;
	slot->flags = NS_INDIRECT | flags;
	ring_advance(tx, 1);
}

static void
indirect(void)
{
	static const uint32_t lengths[] = { 14, 60, 61, 64, 1514, 2048 };
	uint8_t *memory;
	size_t size, i;

	lan_open(3);
	memory = guarded_memory(&size);
	for (i = 0; i < COUNT(lengths); i++) {
		frame_fill(memory + i, lengths[i] < 18 ? 18 : lengths[i],
			   broadcast, mac_of(0), (uint32_t)i);
		put_indirect(port_tx(&lan[0]), memory + i, lengths[i], 0);
		port_txsync(&lan[0]);
		if (!check(port_take_packet(&lan[1], &packet) &&
			   packet.length == lengths[i] &&
			   memcmp(packet.byte, memory + i, lengths[i]) == 0,
			   "%u bytes at an address", lengths[i]))
			return;
		check(port_take_packet(&lan[2], &packet) &&
		      packet.length == lengths[i] &&
		      memcmp(packet.byte, memory + i, lengths[i]) == 0,
		      "%u bytes, to the other port", lengths[i]);
	}
}

/* The learning and the look-up see the address in the user's memory. */
static void
indirect_is_learned(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(3);
	memory = guarded_memory(&size);
	frame_fill(memory, 60, broadcast, mac_of(5), 1);
	put_indirect(port_tx(&lan[1]), memory, 60, 0);
	port_txsync(&lan[1]);
	lan_sequence = 1;
	lan_expect_flood(1, "broadcast");
	frame_fill(memory, 60, mac_of(5), mac_of(6), ++lan_sequence);
	put_indirect(port_tx(&lan[0]), memory, 60, 0);
	port_txsync(&lan[0]);
	lan_expect_only(1, "to the address learned");
}

static void
indirect_null(void)
{
	lan_open(2);
	put_indirect(port_tx(&lan[0]), NULL, 60, 0);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 1, "only the next one");
	lan_silent(1, "address 0");
}

static void
indirect_unreadable(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(2);
	memory = guarded_memory(&size);
	put_indirect(port_tx(&lan[0]), memory + size, 60, 0);
	put_indirect(port_tx(&lan[0]), (void *)64, 60, 0);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 1, "only the next one");
	lan_silent(1, "addresses that cannot be read");
}

/* The header can be read, the rest cannot. */
static void
indirect_half_readable(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(2);
	memory = guarded_memory(&size);
	frame_fill(memory + size - 64, 64, broadcast, mac_of(0), 1);
	put_indirect(port_tx(&lan[0]), memory + size - 64, 512, 0);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 1 &&
	      packet.length == 0, "an empty packet (got %u bytes)",
	      packet.length);
	check_number(port_take(&lan[1]), 2, "the next is whole");
}

static void
indirect_fragments(void)
{
	struct netmap_ring *tx;
	uint8_t *memory;
	size_t size;

	lan_open(2);
	tx = port_tx(&lan[0]);
	memory = guarded_memory(&size);
	frame_fill(memory, 300, broadcast, mac_of(0), 1);
	/* A header in a buffer, the rest where it lies, in two pieces. */
	ring_put(tx, memory, 100);
	tx->slot[0].flags = NS_MOREFRAG;
	put_indirect(tx, memory + 100, 150, NS_MOREFRAG);
	put_indirect(tx, memory + 250, 50, 0);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 3 &&
	      packet.length == 300 && packet_sequence(&packet) == 1 &&
	      packet_is_marked(&packet), "three slots, all bytes");
	ring_put(tx, memory, 100);
	tx->slot[3].flags = NS_MOREFRAG;
	put_indirect(tx, memory + size, 150, NS_MOREFRAG);
	put_indirect(tx, NULL, 150, NS_MOREFRAG);
	put_indirect(tx, memory + 250, 50, 0);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 4 &&
	      packet.slot[0].len == 100 && packet.slot[1].len == 0 &&
	      packet.slot[2].len == 0 && packet.slot[3].len == 50,
	      "what cannot be read has length 0");
}

/* ---- S-VALE-10: a full destination ---- */

static struct nmreq_register
register_slots(uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = slots;
	return reg;
}

static void
full_destination(void)
{
	struct netmap_ring *tx;
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	lan_add(register_slots(64));
	tx = port_tx(&lan[0]);
	for (i = 0; i < 40; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), 63, "the sender is not held up");
	for (i = 0; i < 15; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 15, "the first n-1, in order");
	lan_silent(1, "the others are lost");
	check_number(lan_drain(2, 0), 40, "the other port gets all");
	port_put(&lan[0], broadcast, mac_of(0), 77);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 77, "and it goes on");
}

/* A slot is free again when the receiver has synced past it. */
static void
freed_by_sync(void)
{
	struct netmap_ring *rx;
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	rx = port_rx(&lan[1]);
	for (i = 0; i < 15; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	ring_advance(rx, 5);
	for (i = 15; i < 25; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(rx), 10, "taken but not released: full");
	for (i = 30; i < 40; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(rx), 15, "5 released: 5 more");
	ring_advance(rx, 10);
	check_number(port_take(&lan[1]), 30, "those sent after the release");
}

static void
whole_packets_only(void)
{
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	for (i = 0; i < 6; i++)
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), i, 240,
			       60);
	port_txsync(&lan[0]);
	for (i = 0; i < 3; i++)
		if (!port_take_packet(&lan[1], &packet) ||
		    packet.slots != 4 || packet_sequence(&packet) != i)
			break;
	check_number(i, 3, "three packets of 4 slots in 15");
	lan_silent(1, "no part of the fourth");
}

/* S-VALE-10 says leading packets: none that is behind one that did not fit. */
static void
leading_packets(void)
{
	lan_add(register_slots(64));
	lan_add(register_slots(8));
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 240, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 240, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 3, 60, 60);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) &&
	      packet_sequence(&packet) == 1, "the first of 4 slots");
	lan_silent(1, "not the third, behind the second");
}

static void
not_bound_for_rx(void)
{
	struct nmreq_register reg = register_all();
	struct port late;

	lan_open(2);
	reg.nr_flags = NR_TX_RINGS_ONLY;
	late = port_open_as(own("vale$:z"), reg);
	lan_send(0, broadcast, mac_of(0));
	lan_expect(1, "the other port");
	reg.nr_flags = NR_RX_RINGS_ONLY;
	late = port_open_as(own("vale$:z"), reg);
	port_rxsync(&late);
	check(nm_ring_empty(port_rx(&late)), "nothing was kept for it");
	lan_send(0, broadcast, mac_of(0));
	check_number(port_take(&late), lan_sequence, "now it is bound");
}

/* ---- S-VALE-11: what is delivered ---- */

static void
fragments(void)
{
	uint32_t count;
	int good = 1;

	lan_open(3);
	for (count = 1; count <= NETMAP_MAX_FRAGS; count++) {
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), count,
			       count * 60 - 1, 60);
		port_txsync(&lan[0]);
		good &= port_take_packet(&lan[1], &packet) &&
			packet.slots == count &&
			packet.length == count * 60 - 1 &&
			packet_is_marked(&packet) &&
			packet_sequence(&packet) == count;
		if (!check(good, "%u slots", count))
			return;
		good &= port_take_packet(&lan[2], &packet) &&
			packet.slots == count &&
			packet_sequence(&packet) == count;
		port_rxsync(&lan[1]);
		port_rxsync(&lan[2]);
	}
	check(good, "and the same to the other port");
}

static void
largest_packet(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 5, 32 * 2048,
		       2048);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 32 &&
	      packet.length == 65536 && packet_sequence(&packet) == 5,
	      "64 KiB in 32 slots");
	port_rxsync(&lan[1]);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 6, 65536,
		       1024);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 64 &&
	      packet.length == 65536 && packet_sequence(&packet) == 6,
	      "64 KiB in 64 slots");
}

/* What happens to it is open; what comes behind it is not. */
static void
too_many_fragments(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 65 * 60, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 255 * 60,
		       60);
	port_put(&lan[0], broadcast, mac_of(0), 3);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
	while (port_take_packet(&lan[1], &packet) && packet.slots > 64)
		;
	check(packet.slots == 1 && packet_sequence(&packet) == 3,
	      "the packet behind is whole (got %u slots)", packet.slots);
}

static void
fragments_at_the_end_of_the_ring(void)
{
	uint32_t i, good = 0;

	lan_add(register_slots(64));
	lan_add(register_slots(64));
	for (i = 0; i < 40; i++) {
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), i, 420,
			       60);
		port_txsync(&lan[0]);
		good += port_take_packet(&lan[1], &packet) &&
			packet.slots == 7 && packet_is_marked(&packet) &&
			packet_sequence(&packet) == i;
		port_rxsync(&lan[1]);
	}
	check_number(good, 40, "packets of 7 slots round a ring of 64");
}

/* An empty slot within a packet stays a slot. */
static void
empty_fragment(void)
{
	static const uint16_t piece[] = { 60, 0, 40 };
	uint8_t frame[100];

	lan_open(2);
	frame_fill(frame, 100, broadcast, mac_of(0), 1);
	ring_put_pieces(port_tx(&lan[0]), frame, piece, 3);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 3 &&
	      packet.slot[1].len == 0 && packet_sequence(&packet) == 1,
	      "60, 0 and 40 bytes");
}

/* The first slot holds a header at least. */
static void
short_first_fragment(void)
{
	static const uint16_t short_piece[] = { 13, 87 }, piece[] = { 14, 86 };
	uint8_t frame[100];

	lan_open(2);
	frame_fill(frame, 100, broadcast, mac_of(0), 1);
	ring_put_pieces(port_tx(&lan[0]), frame, short_piece, 2);
	frame_fill(frame, 100, broadcast, mac_of(0), 2);
	ring_put_pieces(port_tx(&lan[0]), frame, piece, 2);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 2 &&
	      packet_sequence(&packet) == 2, "14 bytes will do, 13 do not");
}

/* A receiver with small buffers, in memory of its own (S-EXT). */
static void
small_destination_buffer(void)
{
	enum { SIZE = 1 << 20 };
	struct nmreq_opt_extmem option = extmem_of(memory_new(SIZE), SIZE);
	struct port port;

	option.nro_info.nr_if_pool_objtotal = 8;
	option.nro_info.nr_if_pool_objsize = 1024;
	option.nro_info.nr_ring_pool_objtotal = 16;
	option.nro_info.nr_ring_pool_objsize = 4096;
	option.nro_info.nr_buf_pool_objtotal = 1024;
	option.nro_info.nr_buf_pool_objsize = 512;
	lan_open(1);
	port = port_open_with(own("vale$:z"), register_slots(16), &option);
	check_number(port_rx(&port)->nr_buf_size, 512, "its buffers");

	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 600, 600);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 700, 512);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 3, 512, 512);
	port_txsync(&lan[0]);
	check(port_take_packet(&port, &packet) && packet.slots == 2 &&
	      packet_sequence(&packet) == 2,
	      "600 bytes do not fit and are dropped; 512 and 188 bytes do");
	check(port_take_packet(&port, &packet) &&
	      packet_sequence(&packet) == 3, "a whole buffer");
}

/* A receiver asleep in poll is woken by the first frame. */
static void
wakes_receiver(void)
{
	struct waiter waiter;
	pthread_t thread;

	lan_open(2);
	thread = start_waiting(&waiter, &wait_calls[0], lan[1].fd, POLLIN);
	port_send(&lan[0], broadcast, mac_of(0), 1);
	check_woken(thread, &waiter, "poll ends");
	check_number(port_take(&lan[1]), 1, "with the frame");
}

static void
receiver_keeps_its_buffers(void)
{
	struct netmap_ring *rx;
	uint32_t before, i, same = 0;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	rx = port_rx(&lan[1]);
	before = rx->slot[3].buf_idx;
	for (i = 0; i < 10; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(rx->slot[3].buf_idx, before, "the slot's own buffer");
	/* Its buffer is replaced while it is free, and used. */
	same = rx->slot[4].buf_idx;
	rx->slot[4].buf_idx = rx->slot[5].buf_idx;
	rx->slot[5].buf_idx = same;
	rx->slot[4].flags |= NS_BUF_CHANGED;
	rx->slot[5].flags |= NS_BUF_CHANGED;
	ring_advance(rx, 10);
	port_rxsync(&lan[1]);
	check(!(rx->slot[4].flags & NS_BUF_CHANGED) &&
	      !(rx->slot[5].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is consumed by the sync");
	for (i = 0; i < 16; i++) {
		port_send(&lan[0], broadcast, mac_of(0), i);
		port_rxsync(&lan[1]);
		if (rx->head == 5 && rx->slot[5].buf_idx != same)
			break;
		if (port_take(&lan[1]) != i)
			break;
	}
	check_number(i, 16, "frames in the buffers that were given");
}

/* ---- flags that the switch does not look at ---- */

static void
ignored_flags(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(3);
	tx = port_tx(&lan[1]);
	at = tx->head;
	port_put(&lan[1], broadcast, mac_of(1), ++lan_sequence);
	tx->slot[at].flags = NS_NO_LEARN | NS_REPORT | NS_FORWARD |
			     2 << NS_PORT_SHIFT;
	port_txsync(&lan[1]);
	lan_expect_flood(1, "NS_PORT_MASK chooses no port");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(1, "NS_NO_LEARN hides no address");
}

static const struct test_case cases[] = {
	{ "S-VALE-9", "longer than the buffer", slot_too_long },
	{ "S-VALE-9", "as long as the buffer", whole_buffer },
	{ "S-VALE-9", "a later slot too long", middle_too_long },
	{ "S-VALE-9", "the first slot too long", first_too_long },
	{ "S-VALE-9", "NS_INDIRECT", indirect },
	{ "S-VALE-9", "NS_INDIRECT is learned from", indirect_is_learned },
	{ "S-VALE-9", "NS_INDIRECT to nowhere", indirect_null },
	{ "S-VALE-9", "NS_INDIRECT to what cannot be read",
	  indirect_unreadable },
	{ "S-VALE-9", "NS_INDIRECT to what can be read in part",
	  indirect_half_readable },
	{ "S-VALE-9", "NS_INDIRECT in fragments", indirect_fragments },
	{ "S-VALE-10", "a full ring", full_destination },
	{ "S-VALE-10", "released by a sync", freed_by_sync },
	{ "S-VALE-10", "whole packets only", whole_packets_only },
	{ "S-VALE-10", "leading packets", leading_packets },
	{ "S-VALE-10", "not bound for rx", not_bound_for_rx },
	{ "S-VALE-11", "1 to 64 slots", fragments },
	{ "S-VALE-11", "64 KiB", largest_packet },
	{ "S-VALE-11", "more than 64 slots", too_many_fragments },
	{ "S-VALE-11", "round the end of the ring",
	  fragments_at_the_end_of_the_ring },
	{ "S-VALE-11", "an empty slot within", empty_fragment },
	{ "S-VALE-11", "a short first slot", short_first_fragment },
	{ "S-VALE-11", "smaller buffers at the destination",
	  small_destination_buffer },
	{ "S-VALE-11", "wakes the receiver", wakes_receiver },
	{ "S-VALE-11", "the receiver's buffers", receiver_keeps_its_buffers },
	{ "S-FLAGS-NS_NO_LEARN", "not looked at, nor the port bits", ignored_flags },
};

CHAPTER(cases)
