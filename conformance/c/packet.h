/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of any length and any number of slots, put into and taken from rings. */
#ifndef PACKET_H
#define PACKET_H

#include "case.h"

struct packet {
	uint32_t length;
	uint32_t slots;
	struct netmap_slot slot[256];	/* as they were in the ring */
	uint8_t byte[1 << 17];
};

/* Copies bytes into the next slots, split as told; no sync. */
static inline void
ring_put_pieces(struct netmap_ring *ring, const void *bytes,
		const uint16_t *piece, uint32_t pieces)
{
	const uint8_t *from = (const uint8_t *)bytes;
	uint32_t i;

	require(nm_ring_space(ring) >= pieces, "room for a packet");
	for (i = 0; i < pieces; i++) {
		struct netmap_slot *slot = &ring->slot[ring->head];

		slot->len = piece[i];
		slot->flags = i + 1 < pieces ? NS_MOREFRAG : 0;
		memcpy(NETMAP_BUF(ring, slot->buf_idx), from, piece[i]);
		from += piece[i];
		ring_advance(ring, 1);
	}
}

static inline void
ring_put(struct netmap_ring *ring, const void *bytes, uint16_t length)
{
	ring_put_pieces(ring, bytes, &length, 1);
}

/* A test frame of that length in slots of at most so many bytes; no sync. */
static inline void
ring_put_frame(struct netmap_ring *ring, struct mac to, struct mac from,
	       uint32_t sequence, uint32_t length, uint16_t most)
{
	static uint8_t frame[1 << 17];
	uint16_t piece[256];
	uint32_t pieces = 0, done = 0;

	require(length <= sizeof(frame) && length <= 256u * most,
		"a frame of %u bytes", length);
	frame_fill(frame, length, to, from, sequence);
	while (done < length) {
		uint32_t left = length - done;

		piece[pieces] = (uint16_t)(left < most ? left : most);
		done += piece[pieces++];
	}
	ring_put_pieces(ring, frame, piece, pieces);
}

/*
 * Takes the packet at head, all its slots; the next sync releases them. Returns
 * whether there was a complete one.
 */
static inline int
ring_take(struct netmap_ring *ring, struct packet *packet)
{
	uint32_t at = ring->head;
	int more = 1;

	packet->length = packet->slots = 0;
	while (more) {
		struct netmap_slot *slot = &ring->slot[at];

		if (at == ring->tail || packet->slots == COUNT(packet->slot))
			return 0;
		packet->slot[packet->slots++] = *slot;
		memcpy(packet->byte + packet->length,
		       NETMAP_BUF_OFFSET(ring, slot), slot->len);
		packet->length += slot->len;
		more = slot->flags & NS_MOREFRAG;
		at = nm_ring_next(ring, at);
	}
	ring->head = ring->cur = at;
	return 1;
}

/* The next packet of rx ring 0, waited for; what is incomplete stays. */
static inline int
port_take_packet(const struct port *port, struct packet *packet)
{
	if (nm_ring_empty(port_rx(port)))
		wait_events(port->fd, POLLIN, PATIENCE_MS);
	return ring_take(port_rx(port), packet);
}

/* The number of an intact test frame, or -1. */
static inline long long
packet_sequence(const struct packet *packet)
{
	if (!frame_is_intact(packet->byte, packet->length))
		return -1;
	return frame_sequence(packet->byte);
}

/* Whether VALE marked all slots of a packet as its own (NS_RFRAGS). */
static inline int
packet_is_marked(const struct packet *packet)
{
	uint32_t i;

	for (i = 0; i < packet->slots; i++) {
		uint32_t more = i + 1 < packet->slots ? NS_MOREFRAG : 0;

		if (packet->slot[i].flags !=
		    (packet->slots << NS_PORT_SHIFT | more))
			return 0;
	}
	return 1;
}

#endif
