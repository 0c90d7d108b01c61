/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that begin somewhere in their buffers (S-OFF). */
#include "monitor.h"
#include "netns.h"

static struct packet packet;

static struct port
open_offsets(const char *name, uint64_t max, uint64_t initial, uint32_t bits)
{
	struct nmreq_opt_offsets option = offsets_of(max, initial, bits);

	return port_open_with(name, register_all(), &option);
}

/* Puts a frame that begins at this offset of its buffer; no sync. */
static void
put_at(struct netmap_ring *ring, uint64_t offset, uint32_t sequence,
       uint32_t length)
{
	struct netmap_slot *slot = &ring->slot[ring->head];

	NETMAP_WOFFSET(ring, slot, offset);
	slot->len = (uint16_t)length;
	slot->flags = 0;
	frame_fill(NETMAP_BUF(ring, slot->buf_idx) + offset, length, broadcast,
		   mac_of(1), sequence);
	ring_advance(ring, 1);
}

/* Takes a frame, wherever it begins; tells where. */
static long long
take_at(const struct port *port, uint64_t *offset)
{
	struct netmap_ring *rx = port_rx(port);
	struct netmap_slot *slot = port_peek(port);
	const char *frame;
	long long sequence = -1;

	if (!slot)
		return -1;
	*offset = NETMAP_ROFFSET(rx, slot);
	frame = NETMAP_BUF_OFFSET(rx, slot);
	if (frame_is_intact(frame, slot->len))
		sequence = frame_sequence(frame);
	ring_advance(rx, 1);
	return sequence;
}

/* ---- S-OFF-1: which ports ---- */

static void
check_port(const char *name, struct nmreq_register reg, int error)
{
	struct nmreq_opt_offsets option = offsets_of(128, 64, 16);

	check_call(try_with(name, reg, &option), error, name);
	check_number(option.nro_opt.nro_status, error, "status");
}

static void
virtual_ports(void)
{
	struct port target = port_open(own("vale$:t"));
	struct nmreq_register reg = register_all();

	check_port(own("vale$:a"), reg, 0);
	check_port(own("p${1"), reg, 0);
	check_port(own("vale$:a}1"), reg, 0);
	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = target.reg.nr_mem_id;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	check_port("null", reg, 0);
	reg = register_all();
	reg.nr_flags = NR_MONITOR_RX;
	check_port(own("vale$:t"), reg, 0);
	reg.nr_flags = NR_ZCOPY_MON;
	check_port(own("vale$:t"), reg, EOPNOTSUPP);
}

static void
interfaces(void)
{
	struct cable cable = own_cable(1);

	check_port(cable.near, register_all(), 0);
}

/* The kernel fills buffers from their start: none can be two slots'. */
static void
interfaces_without_gaps(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_opt_offsets option = offsets_of(1024, 0, 16);
	struct nmreq_register reg = register_all();

	option.nro_min_gap = 1024;
	check_call(try_with(cable.near, reg, &option), EOPNOTSUPP,
		   "shared buffers to receive into");
	option.nro_min_gap = 1024;
	reg.nr_flags = NR_TX_RINGS_ONLY;
	check_call(try_with(cable.near, reg, &option), 0,
		   "to send from");
}

/* ---- S-OFF-2: numbers that do not go together ---- */

static void
wrong_numbers(void)
{
	static const struct {
		uint64_t max, initial;
		uint32_t bits;
		int error;
	} asked[] = {
		{ 128, 0, 64, 0 }, { 128, 0, 65, EINVAL },
		{ 128, 0, UINT32_MAX, EINVAL }, { 128, 0, 0, 0 },
		{ 2048, 0, 16, 0 }, { 2049, 0, 16, EINVAL },
		{ UINT64_MAX, 0, 64, EINVAL }, { 255, 0, 8, 0 },
		{ 256, 0, 8, EINVAL }, { 1, 0, 1, 0 }, { 2, 0, 1, EINVAL },
		{ 0, 0, 1, 0 }, { 0, 0, 0, 0 }, { 128, 128, 16, 0 },
		{ 128, 129, 16, EINVAL }, { 0, 1, 16, EINVAL },
		{ 128, UINT64_MAX, 64, EINVAL },
	};
	static const char *const names[] = { "vale$:a", "p${1" };
	size_t i, j;

	for (i = 0; i < COUNT(asked); i++) {
		for (j = 0; j < COUNT(names); j++) {
			struct nmreq_opt_offsets option = offsets_of(
				asked[i].max, asked[i].initial, asked[i].bits);

			check_call(try_with(own(names[j]), register_all(),
					    &option), asked[i].error,
				   line("%s: max %llu, initial %llu, %u bits",
					own(names[j]),
					(unsigned long long)asked[i].max,
					(unsigned long long)asked[i].initial,
					asked[i].bits));
			check_number(option.nro_opt.nro_status,
				     asked[i].error, "status");
		}
	}
	check(!port_exists(own("vale$:a")), "nothing is left of them");
}

/* ---- S-OFF-3: what is installed ---- */

static void
masks(void)
{
	static const struct {
		uint32_t bits;
		uint64_t mask;
	} asked[] = {
		{ 0, UINT64_MAX }, { 64, UINT64_MAX }, { 8, 0xff },
		{ 16, 0xffff }, { 48, 0xffffffffffff },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq_opt_offsets option = offsets_of(100, 0,
							     asked[i].bits);
		struct port port = port_open_with(own("vale$:a"),
						  register_all(), &option);

		check(port_tx(&port)->offset_mask == asked[i].mask &&
		      port_rx(&port)->offset_mask == asked[i].mask,
		      "mask of %u bits", asked[i].bits);
		check_number((long long)option.nro_max_offset, 100,
			     "the maximum");
		port_close(&port);
	}
	{
		struct port port = port_open(own("vale$:a"));

		check_number((long long)port_tx(&port)->offset_mask, 0,
			     "none without the option");
	}
}

static void
rings_that_have_offsets(const char *name)
{
	static const struct {
		uint64_t max;
		uint32_t bits;
		int error;
	} asked[] = {
		{ 128, 16, 0 }, { 100, 16, 0 }, { 0, 16, 0 }, { 100, 8, 0 },
		{ 129, 16, EBUSY }, { 100, 17, EBUSY }, { 100, 0, EBUSY },
	};
	struct port port = open_offsets(name, 128, 0, 16);
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq_opt_offsets option = offsets_of(asked[i].max, 0,
							     asked[i].bits);

		check_call(try_with(name, register_all(), &option),
			   asked[i].error,
			   line("%s has 128 in 16 bits: %llu in %u", name,
				(unsigned long long)asked[i].max,
				asked[i].bits));
		check_number(option.nro_opt.nro_status, asked[i].error,
			     "status");
		if (asked[i].error == 0)
			check_number((long long)option.nro_max_offset, 128,
				     "the maximum in effect");
		check_number((long long)port_tx(&port)->offset_mask, 0xffff,
			     "the mask stays");
	}
	check_call(try_with(name, register_all(), NULL), 0,
		   "who does not ask may bind as well");
	port_close(&port);
}

static void
rings_with_offsets(void)
{
	rings_that_have_offsets(own("vale$:a"));
	rings_that_have_offsets(own("p${1"));
}

/* Only the rings that are bound. */
static void
ring_by_ring(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_opt_offsets option = offsets_of(128, 32, 16);
	struct port all, one;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	all = port_open_as(own("vale$:a"), reg);
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_ringid = 1;
	reg.nr_flags = NR_TX_RINGS_ONLY;
	one = port_open_with(own("vale$:a"), reg, &option);
	check(NETMAP_TXRING(all.nifp, 1)->offset_mask == 0xffff &&
	      NETMAP_TXRING(all.nifp, 0)->offset_mask == 0 &&
	      NETMAP_RXRING(all.nifp, 1)->offset_mask == 0,
	      "offsets in the ring that asked");
	port_close(&one);
}

/* ---- S-OFF-4: initial offsets ---- */

static void
initial_offsets(void)
{
	static const char *const names[] = { "vale$:a", "p${1" };
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct port port = open_offsets(own(names[i]), 128, 64, 16);
		struct port other;
		struct netmap_ring *ring[2] = { port_tx(&port),
						port_rx(&port) };
		uint32_t j, wrong = 0;

		for (j = 0; j < ring[0]->num_slots; j++)
			wrong += NETMAP_ROFFSET(ring[0],
						&ring[0]->slot[j]) != 64 ||
				NETMAP_ROFFSET(ring[1],
					       &ring[1]->slot[j]) != 64;
		check_number(wrong, 0, "in all slots");
		other = open_offsets(own(names[i]), 128, 96, 16);
		check_number((long long)NETMAP_ROFFSET(ring[0],
						       &ring[0]->slot[7]),
			     64, "not where there is another user");
		port_close(&other);
		port_close(&port);
	}
}

/* The bits outside the mask are the program's. */
static void
other_bits(void)
{
	struct port port = open_offsets(own("vale$:a"), 128, 0, 8);
	struct netmap_ring *tx = port_tx(&port);

	tx->slot[0].ptr = 0x1234500;
	NETMAP_WOFFSET(tx, &tx->slot[0], 7);
	check_number((long long)tx->slot[0].ptr, 0x1234507, "NETMAP_WOFFSET");
	check_number((long long)NETMAP_ROFFSET(tx, &tx->slot[0]), 7,
		     "NETMAP_ROFFSET");
}

/* Data is read at the largest offset where a slot names a larger one. */
static void
clamped(void)
{
	struct port a = open_offsets(own("vale$:a"), 64, 0, 16);
	struct port b = open_offsets(own("vale$:b"), 64, 0, 16);
	struct netmap_ring *tx = port_tx(&a);
	uint64_t at;

	put_at(tx, 64, 1, 60);
	NETMAP_WOFFSET(tx, &tx->slot[0], 1000);
	port_txsync(&a);
	check_number(take_at(&b, &at), 1, "read at 64, not at 1000");
	check(at <= 64, "written at no more (got %llu)",
	      (unsigned long long)at);
	/* And so at the receiver. */
	NETMAP_WOFFSET(port_rx(&b), &port_rx(&b)->slot[1], 1000);
	put_at(tx, 0, 2, 60);
	port_txsync(&a);
	check_number(take_at(&b, &at), 2, "the next");
	check(at <= 64, "written at no more (got %llu)",
	      (unsigned long long)at);
}

/* ---- S-OFF-5: data at the offset ---- */

static void
at_the_offset(void)
{
	static const uint64_t from[] = { 0, 1, 10, 63, 64, 100, 128 };
	struct port a = open_offsets(own("vale$:a"), 128, 0, 16);
	struct port plain = port_open(own("vale$:p"));
	struct port b = open_offsets(own("vale$:b"), 200, 20, 16);
	uint64_t at;
	size_t i;

	for (i = 0; i < COUNT(from); i++) {
		put_at(port_tx(&a), from[i], (uint32_t)i, 200);
		port_txsync(&a);
		check_number(take_at(&b, &at), (long long)i,
			     line("sent from %llu",
				  (unsigned long long)from[i]));
		check(at >= 20 && at <= 200, "received at %llu, not before "
		      "what its slot says", (unsigned long long)at);
		if (from[i] % 64 == 0)
			check_number(port_take(&plain), (long long)i,
				     "received by one without offsets");
		else
			port_take_packet(&plain, &packet);
	}
	port_send(&plain, broadcast, mac_of(1), 90);
	check_number(take_at(&b, &at), 90, "sent by one without offsets");
	check(at >= 20, "received at an offset (got %llu)",
	      (unsigned long long)at);
}

/* What does not fit behind the offset is dropped (S-VALE-9). */
static void
room_behind_the_offset(void)
{
	struct port a = open_offsets(own("vale$:a"), 128, 0, 16);
	struct port b = open_offsets(own("vale$:b"), 128, 0, 16);
	struct netmap_ring *tx = port_tx(&a);
	uint64_t at;

	put_at(tx, 64, 1, 2048 - 64);
	put_at(tx, 64, 2, 60);
	tx->slot[1].len = 2048 - 63;
	put_at(tx, 64, 3, 60);
	port_txsync(&a);
	check_number(take_at(&b, &at), 1, "to the end of the buffer");
	check_number(take_at(&b, &at), 3, "one byte more is dropped");
}

static void
through_a_pipe(void)
{
	struct port a = open_offsets(own("p${1"), 128, 0, 16);
	struct port b = open_offsets(own("p$}1"), 128, 0, 16);
	uint64_t at = 0;

	put_at(port_tx(&a), 77, 1, 60);
	port_txsync(&a);
	check_number(take_at(&b, &at), 1, "a frame");
	check_number((long long)at, 77, "where it was: slots travel whole");
}

static void
over_a_wire(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_opt_offsets option = offsets_of(128, 32, 16);
	struct port port = port_open_with(cable.near, register_all(), &option);
	uint64_t at = 0;

	put_at(port_tx(&port), 50, 1, 60);
	put_at(port_tx(&port), 0, 2, 60);
	port_txsync(&port);
	check(cable_take(&cable) == 1 && cable_take(&cable) == 2,
	      "sent from 50, and from 0");
	cable_send(&cable, broadcast, mac_of(2), 3);
	check_number(take_at(&port, &at), 3, "a frame");
	check(at >= 32 && at <= 128, "received at %llu",
	      (unsigned long long)at);
}

static void
in_a_monitor(void)
{
	struct port target = port_open(own("vale$:t"));
	struct port peer = port_open(own("vale$:p"));
	struct nmreq_opt_offsets option = offsets_of(128, 32, 16);
	struct nmreq_register reg = register_all();
	struct port monitor;
	uint64_t at = 0;

	reg.nr_flags = NR_MONITOR_RX;
	monitor = port_open_with(own("vale$:t"), reg, &option);
	port_send(&peer, broadcast, mac_of(1), 5);
	check_number(port_take(&target), 5, "the target");
	check_number(take_at(&monitor, &at), 5, "the monitor");
	check(at >= 32 && at <= 128, "at an offset (got %llu)",
	      (unsigned long long)at);
}

/* The end of each buffer is another slot's. */
static void
gap(void)
{
	struct port a = port_open(own("vale$:a")), b;
	struct nmreq_opt_offsets option = offsets_of(1024, 0, 16);
	struct netmap_ring *rx;
	uint32_t i, touched = 0, j;

	option.nro_min_gap = 1024;
	b = port_open_with(own("vale$:b"), register_all(), &option);
	rx = port_rx(&b);
	for (i = 0; i < 4; i++)
		memset(NETMAP_BUF(rx, rx->slot[i].buf_idx), 0xee, 2048);
	ring_put_frame(port_tx(&a), broadcast, mac_of(1), 1, 1000, 1000);
	ring_put_frame(port_tx(&a), broadcast, mac_of(1), 2, 1500, 1500);
	ring_put_frame(port_tx(&a), broadcast, mac_of(1), 3, 1000, 1000);
	port_txsync(&a);
	check(port_take_packet(&b, &packet) && packet_sequence(&packet) == 1,
	      "what leaves the gap free");
	do {
		if (!check(port_take_packet(&b, &packet), "the next"))
			return;
	} while (packet_sequence(&packet) != 3);
	for (i = 0; i < 4; i++)
		for (j = 1024; j < 2048; j++)
			touched += (uint8_t)NETMAP_BUF(
				rx, rx->slot[i].buf_idx)[j] != 0xee;
	check_number(touched, 0, "no byte is written in a gap");
}

static void
alignment_is_not_looked_at(void)
{
	static const uint32_t align[] = { 1, 3, 64, 4096, UINT32_MAX };
	size_t i;

	for (i = 0; i < COUNT(align); i++) {
		struct nmreq_opt_offsets option = offsets_of(128, 7, 16);

		option.nro_tx_align = align[i];
		check_call(try_with(own("vale$:a"), register_all(), &option),
			   0, line("nro_tx_align %u", align[i]));
		check_number(option.nro_tx_align, align[i], "unchanged");
	}
}

/* ---- S-OFF-6: through a switch ---- */

static void
phases(void)
{
	static const uint32_t source[] = { 0, 1, 6, 63, 64, 70, 127 };
	static const uint32_t destination[] = { 0, 5, 6, 10, 63, 64, 65 };
	struct port a = open_offsets(own("vale$:a"), 128, 0, 16);
	struct port b = open_offsets(own("vale$:b"), 256, 0, 16);
	size_t i, j;

	for (i = 0; i < COUNT(source); i++) {
		for (j = 0; j < COUNT(destination); j++) {
			struct netmap_ring *rx = port_rx(&b);
			uint32_t expected = destination[j] + (64 + source[i] %
				64 - destination[j] % 64) % 64;
			uint64_t at = 0;

			NETMAP_WOFFSET(rx, &rx->slot[rx->head],
				       destination[j]);
			put_at(port_tx(&a), source[i], 1, 60);
			port_txsync(&a);
			check_number(take_at(&b, &at), 1, "a frame");
			check_number((long long)at, expected,
				     line("from %u, a slot at %u", source[i],
					  destination[j]));
			port_rxsync(&b);
		}
	}
}

/* Where the original is wrong, ours may be right; the length always is. */
static void
to_one_without(void)
{
	struct port a = open_offsets(own("vale$:a"), 128, 0, 16);
	struct port b = port_open(own("vale$:b"));

	put_at(port_tx(&a), 70, 1, 300);
	put_at(port_tx(&a), 64, 2, 300);
	port_txsync(&a);
	check(port_take_packet(&b, &packet) && packet.length == 300,
	      "from 70, to a port without offsets");
	check(port_take_packet(&b, &packet) && packet_sequence(&packet) == 2,
	      "from 64, to a port without offsets");
}

static const struct test_case cases[] = {
	{ "S-OFF-1", "virtual ports", virtual_ports },
	{ "S-OFF-1", "interfaces", interfaces },
	{ "S-OFF-1", "interfaces without gaps", interfaces_without_gaps },
	{ "S-OFF-2", "wrong numbers", wrong_numbers },
	{ "S-OFF-3", "masks", masks },
	{ "S-OFF-3", "rings that have offsets", rings_with_offsets },
	{ "S-OFF-3", "ring by ring", ring_by_ring },
	{ "S-OFF-4", "initial offsets", initial_offsets },
	{ "S-OFF-4", "other bits", other_bits },
	{ "S-OFF-4", "too large", clamped },
	{ "S-OFF-5", "through a switch", at_the_offset },
	{ "S-OFF-5", "room", room_behind_the_offset },
	{ "S-OFF-5", "through a pipe", through_a_pipe },
	{ "S-OFF-5", "over a wire", over_a_wire },
	{ "S-OFF-5", "in a monitor", in_a_monitor },
	{ "S-OFF-5", "the gap", gap },
	{ "S-OFF-5", "alignment", alignment_is_not_looked_at },
	{ "S-OFF-6", "phases", phases },
	{ "S-OFF-6", "to a port without offsets", to_one_without },
};

CHAPTER(cases)
