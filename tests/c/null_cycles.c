/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ring bookkeeping costs: TSC cycles for each packet sent to a null
 * port by a transmit loop that does what a packet generator does.
 *
 * usage: null_cycles [BATCH [PACKETS]]
 *
 * A null port has no interface and needs a region; it takes that of a VALE
 * port that is opened for it. Its rings are real, and it accepts at once
 * whatever it is given: after NIOCTXSYNC the consumer is at head and the whole
 * ring is free again, and nothing ever arrives on its rx rings. (netmap's own
 * null ports leave tail where it is, S-NULL-1; on those the loop would run out
 * of slots, and the program says so.) So each turn of the loop is: find the
 * room, write len and flags of BATCH slots, publish head and cur, NIOCTXSYNC.
 * No payload is touched.
 *
 * Prints one line: cycles_per_packet X.Y batch N packets M
 */
#include "port.h"

#include <x86intrin.h>

/* Ringway's own nr_flags: a null port that takes what is sent. */
#define NR_SINK	(UINT64_C(1) << 63)

/* Sends at least count packets; returns how many, 0 if the ring stays full. */
static uint64_t
send_batches(const struct port *port, uint32_t batch, uint64_t count)
{
	struct netmap_ring *ring = port_tx(port);
	uint64_t sent = 0;

	while (sent < count) {
		uint32_t room = nm_ring_space(ring), i = ring->head, left;

		if (room == 0)
			return 0;
		left = room = room < batch ? room : batch;
		while (left--) {
			struct netmap_slot *slot = &ring->slot[i];

			slot->len = FRAME_SIZE;
			slot->flags = 0;
			i = nm_ring_next(ring, i);
		}
		ring->head = ring->cur = i;
		if (ioctl(port->fd, NIOCTXSYNC, NULL) == -1)
			return 0;
		sent += room;
	}
	return sent;
}

int
main(int argc, char **argv)
{
	uint32_t batch = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 256;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 20000000;
	struct nmreq_register reg = register_all();
	struct port owner = port_open("valeNull:owner"), port;
	uint64_t start, sent;

	reg.nr_mode = NR_REG_NULL;
	reg.nr_flags = NR_SINK;
	reg.nr_mem_id = owner.reg.nr_mem_id;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	reg.nr_tx_slots = reg.nr_rx_slots = 1024;
	port = port_open_as("null", reg);
	require(batch > 0 && count > 0, "BATCH and PACKETS are at least 1");

	errno = 0;
	require(send_batches(&port, batch, count / 10 + 1) > 0,
		"the null port takes packets");
	start = __rdtsc();
	sent = send_batches(&port, batch, count);
	start = __rdtsc() - start;
	require(sent > 0, "the null port takes packets");
	printf("cycles_per_packet %.1f batch %u packets %llu\n",
	       (double)start / (double)sent, batch, (unsigned long long)sent);
	port_close(&port);
	port_close(&owner);
	return 0;
}
