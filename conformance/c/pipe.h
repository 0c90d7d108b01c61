/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of a pipe, and numbered frames through it. */
#ifndef PIPE_H
#define PIPE_H

#include "packet.h"
#include "request.h"

struct pipe_ends {
	struct port master, slave;
};

static inline const char *
end_name(const char *parent, char side, const char *id)
{
	static char names[8][NETMAP_REQ_IFNAMSIZ];
	static unsigned next;
	char *out = names[next++ % 8];

	snprintf(out, NETMAP_REQ_IFNAMSIZ, "%s%c%s", parent, side, id);
	return out;
}

static inline struct pipe_ends
pipe_open_as(const char *parent, const char *id, struct nmreq_register reg)
{
	struct pipe_ends ends;

	ends.master = port_open_as(end_name(parent, '{', id), reg);
	ends.slave = port_open_as(end_name(parent, '}', id), reg);
	return ends;
}

static inline struct pipe_ends
pipe_open(void)
{
	return pipe_open_as(own("c$"), "1", register_all());
}

static inline void
send_frames(const struct port *from, uint32_t first, uint32_t count)
{
	while (count--)
		port_put(from, mac_of(2), mac_of(1), first++);
	port_txsync(from);
}

/* Takes frames with these numbers; tells whether all came. */
static inline int
take_frames(const struct port *to, uint32_t first, uint32_t count)
{
	for (; count--; first++)
		if (port_take(to) != first)
			return 0;
	return 1;
}

static inline uint32_t
tx_room(const struct port *port)
{
	port_txsync(port);
	return nm_ring_space(port_tx(port));
}

static inline uint32_t
rx_count(const struct port *port)
{
	port_rxsync(port);
	return nm_ring_space(port_rx(port));
}

/* Frames both ways, and the slots back. */
static inline void
check_works(const struct port *one, const struct port *other)
{
	uint32_t all = port_tx(one)->num_slots - 1;

	send_frames(one, 10, 3);
	check(take_frames(other, 10, 3), "three one way");
	port_rxsync(other);
	send_frames(other, 20, 3);
	check(take_frames(one, 20, 3), "three the other way");
	port_rxsync(one);
	check(tx_room(one) == all && tx_room(other) == all,
	      "all slots are free again");
}

#endif
