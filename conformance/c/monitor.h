/* SPDX-License-Identifier: BSD-2-Clause */
/* Monitors, and pairs of ports of which one is watched. */
#ifndef MONITOR_H
#define MONITOR_H

#include "packet.h"
#include "request.h"

/* A port that is watched, and one that it talks to. */
struct watched {
	const char *name;
	struct port target, peer;
};

static inline struct watched
watched_vale(void)
{
	struct watched pair;

	pair.name = own("vale$:t");
	pair.target = port_open(own("vale$:t"));
	pair.peer = port_open(own("vale$:p"));
	return pair;
}

static inline struct watched
watched_pipe(void)
{
	struct watched pair;

	pair.name = own("c${1");
	pair.target = port_open(own("c${1"));
	pair.peer = port_open(own("c$}1"));
	return pair;
}

#define MONITOR_BOTH	(NR_MONITOR_TX | NR_MONITOR_RX)

static inline struct port
monitor_open(const char *name, uint64_t flags)
{
	return port_open_flags(name, flags);
}

static inline struct port
monitor_open_slots(const char *name, uint64_t flags, uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_flags = flags;
	reg.nr_rx_slots = slots;
	return port_open_as(name, reg);
}

static inline int
monitor_try(const char *name, uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_flags = flags;
	return try_register(name, reg);
}

/* What it has seen by now, without waiting: exactly frames first to last. */
static inline void
monitor_has(const struct port *monitor, uint32_t first, uint32_t count,
	    const char *text)
{
	struct netmap_ring *rx = port_rx(monitor);
	uint32_t i = 0, found;

	port_rxsync(monitor);
	found = nm_ring_space(rx);
	for (i = 0; i < count && !nm_ring_empty(rx); i++)
		if (port_take(monitor) != first + i)
			break;
	check(found == count && i == count, "%s (got %u frames, %u of them "
	      "right)", text, found, i);
	ring_advance(rx, nm_ring_space(rx));
	port_rxsync(monitor);
}

/* Sends frames of these numbers with one sync. */
static inline void
send_frames(const struct port *from, uint32_t first, uint32_t count)
{
	while (count--)
		port_put(from, broadcast, mac_of(1), first++);
	port_txsync(from);
}

/* Takes and releases frames of these numbers; tells whether all came. */
static inline int
take_frames(const struct port *to, uint32_t first, uint32_t count)
{
	for (; count--; first++)
		if (port_take(to) != first)
			return 0;
	port_rxsync(to);
	return 1;
}

#endif
