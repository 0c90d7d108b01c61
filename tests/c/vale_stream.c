/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that only sends, and does so without a pause. The first syncs free
 * all of its ring, and the others a quarter (S-VALE-5), unless a lossless port
 * has no room; then it ends when all is taken, and else at once.
 *
 * usage: vale_stream PORT SYNCS [lossless]
 *
 * Prints how many frames it has sent.
 */
#include "port.h"

#include <stdio.h>

/* Fewer than make a stream. */
#define FIRST	1000

static char frame[FRAME_SIZE];

int
main(int argc, char **argv)
{
	uint32_t syncs = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	uint32_t all, sync, free, sent = 0, freed = 0, least = UINT32_MAX;
	struct netmap_ring *ring;
	struct port port;

	require(argc > 2 && syncs > FIRST, "usage: vale_stream PORT SYNCS");
	port = port_open(argv[1]);
	ring = port_tx(&port);
	all = ring->num_slots - 1;
	for (sync = 0; sync < syncs; sync++) {
		uint32_t left = sync % 200 + 1;

		while (nm_ring_space(ring) < left)
			require(wait_events(port.fd, POLLOUT, 10000) == POLLOUT, "room");
		for (; left > 0; left--) {
			struct netmap_slot *slot = &ring->slot[ring->head];

			slot->len = FRAME_SIZE;
			slot->flags = 0;
			frame_fill(frame, FRAME_SIZE, broadcast, mac_of(1), sent++);
			nm_pkt_copy(frame, NETMAP_BUF(ring, slot->buf_idx), FRAME_SIZE);
			ring_advance(ring, 1);
		}
		port_txsync(&port);
		free = nm_ring_space(ring);
		freed += sync < FIRST && free == all;
		least = free < least ? free : least;
	}
	/* What waits for room when its program ends is lost. */
	while (argc > 3 && nm_ring_space(ring) < all) {
		require(wait_events(port.fd, POLLOUT, 10000) == POLLOUT, "room");
		port_txsync(&port);
	}
	if (argc == 3) {
		check_number(freed, FIRST, "S-VALE-5 the first free all slots");
		check_number(least >= ring->num_slots / 4, 1, "S-VALE-5 a quarter");
	}
	printf("sent %u\n", sent);
	fflush(stdout);
	return check_result();
}
