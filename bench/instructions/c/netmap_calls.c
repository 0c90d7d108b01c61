/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an unmodified program's calls cost: packets of 60 bytes through a null
 * port or a pipe, by ioctl or by poll, in one thread. Callgrind counts what is
 * called from `counted_turn`.
 *
 * usage: netmap_calls null|ioctl|poll BATCH WARM-UP TURNS
 */
#include "port.h"

#define SINK	(UINT64_C(1) << 63)

static struct port tx, rx;

static void
fill(uint32_t batch)
{
	struct netmap_ring *ring = port_tx(&tx);
	uint32_t at = ring->head;

	require(nm_ring_space(ring) >= batch, "room to send");
	for (; batch > 0; batch--, at = nm_ring_next(ring, at)) {
		ring->slot[at].len = FRAME_SIZE;
		ring->slot[at].flags = 0;
	}
	ring->head = ring->cur = at;
}

static void
take(uint32_t batch)
{
	struct netmap_ring *ring = port_rx(&rx);

	require(nm_ring_space(ring) == batch, "all that was sent");
	ring->head = ring->cur = ring->tail;
}

static void
by_poll(uint32_t batch)
{
	struct pollfd out = { tx.fd, POLLOUT, 0 }, in = { rx.fd, POLLIN, 0 };

	require(poll(&out, 1, 1000) == 1, "POLLOUT");
	fill(batch);
	port_txsync(&tx);
	require(poll(&in, 1, 1000) == 1, "POLLIN");
	take(batch);
}

static void
by_ioctl(uint32_t batch)
{
	fill(batch);
	port_txsync(&tx);
	port_rxsync(&rx);
	take(batch);
}

static void
to_null(uint32_t batch)
{
	fill(batch);
	port_txsync(&tx);
}

__attribute__((noinline)) void
counted_turn(void (*turn)(uint32_t), uint32_t batch)
{
	turn(batch);
	__asm__ volatile("");
}

int
main(int argc, char **argv)
{
	void (*turn)(uint32_t);
	uint32_t batch, left;

	require(argc == 5, "usage: netmap_calls null|ioctl|poll BATCH WARM-UP TURNS");
	batch = (uint32_t)atoi(argv[2]);
	if (strcmp(argv[1], "null") == 0) {
		struct nmreq_register reg = register_all();
		struct port owner = port_open("valen:owner");

		reg.nr_mode = NR_REG_NULL;
		reg.nr_flags = SINK;
		reg.nr_mem_id = owner.reg.nr_mem_id;
		reg.nr_tx_rings = reg.nr_rx_rings = 1;
		reg.nr_tx_slots = reg.nr_rx_slots = 1024;
		tx = port_open_as("null", reg);
		turn = to_null;
	} else {
		struct nmreq_register reg = register_all();

		tx = port_open("valen:p{1");
		reg.nr_mem_id = tx.reg.nr_mem_id;
		rx = port_open_as("valen:p}1", reg);
		turn = strcmp(argv[1], "poll") == 0 ? by_poll : by_ioctl;
	}
	for (left = (uint32_t)atoi(argv[3]); left > 0; left--)
		turn(batch);
	for (left = (uint32_t)atoi(argv[4]); left > 0; left--)
		counted_turn(turn, batch);
	return 0;
}
