/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reflector of PF_RING, which knows nothing of Ringway: it exchanges the two
 * addresses of each packet, where it lies, and sends it back.
 *
 * usage: pfring_l2fwd CPU DEVICE
 */
#include "role.h"

#include <errno.h>
#include <pfring.h>

#define BURST	256

static uint64_t
forward(void *data)
{
	pfring *ring = (pfring *)data;
	struct pfring_pkthdr header;
	u_char *packet = NULL, address[6];
	uint64_t moved;

	for (moved = 0; moved < BURST; moved++) {
		if (pfring_recv(ring, &packet, 0, &header, 0) <= 0)
			break;
		memcpy(address, packet, 6);
		memcpy(packet, packet + 6, 6);
		memcpy(packet + 6, address, 6);
		/* Where there is no room, it waits: nothing is lost here. */
		while (pfring_send(ring, (char *)packet, header.len, 1) < 0) {
			if (errno != ENOBUFS)
				fail("pfring_send");
			if (role_phase == STOPPED)
				return moved;
			sched_yield();
		}
	}
	if (moved == 0)
		pfring_poll(ring, NAP_MS);
	return moved;
}

int
main(int argc, char **argv)
{
	pfring *ring;

	if (argc != 3) {
		fprintf(stderr, "usage: pfring_l2fwd CPU DEVICE\n");
		return 2;
	}
	ring = pfring_open(argv[2], 1536, 0);
	if (!ring)
		fail(argv[2]);
	if (pfring_set_direction(ring, rx_only_direction) != 0 || pfring_enable_ring(ring) != 0)
		fail("pfring_enable_ring");
	role_run(argv[1], forward, ring);
	pfring_close(ring);
	return 0;
}
