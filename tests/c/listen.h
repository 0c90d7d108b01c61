/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what an interface's rx ring 0 receives of UDP over IPv4 without
 * options: the destination port of each datagram, and the number that it begins
 * with.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include "check.h"

#include <poll.h>

#include <net/netmap_user.h>

static inline unsigned
listen_number(const unsigned char *bytes, int count)
{
	unsigned number = 0;

	while (count--)
		number = number << 8 | *bytes++;
	return number;
}

/* Until count datagrams have come. */
static inline void
listen_to(int fd, struct netmap_if *nifp, long count)
{
	struct netmap_ring *ring = NETMAP_RXRING(nifp, 0);

	puts("ready");
	fflush(stdout);
	while (count > 0) {
		struct pollfd set = { fd, POLLIN, 0 };

		require(poll(&set, 1, -1) == 1, "poll");
		for (; !nm_ring_empty(ring); ring->head = ring->cur =
		     nm_ring_next(ring, ring->head)) {
			const struct netmap_slot *slot = &ring->slot[ring->head];
			const unsigned char *frame = (const unsigned char *)
				NETMAP_BUF(ring, slot->buf_idx);

			/* IPv4, UDP */
			if (slot->len < 46 || listen_number(frame + 12, 2) !=
			    0x800 || frame[23] != 17)
				continue;
			printf("%u %u\n", listen_number(frame + 36, 2),
			       listen_number(frame + 42, 4));
			count--;
		}
		fflush(stdout);
	}
}

#endif
