/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch of the case's own with ports a, b, c, ... Frames are numbered; each
 * must arrive where it is expected, and nowhere else.
 *
 * When NIOCTXSYNC on a VALE port returns, what it sent has been forwarded
 * (S-VALE-5): silence is tested by a sync of the receiver, without waiting.
 */
#ifndef LAN_H
#define LAN_H

#include "packet.h"

#define LAN_PORTS	26

static struct port lan[LAN_PORTS];
static int lan_ports;
static uint32_t lan_sequence;

static inline const char *
lan_name(int i)
{
	char pattern[] = "vale$:?";

	pattern[6] = (char)('a' + i);
	return own(pattern);
}

/* VALE_LIST for a name, on a descriptor of its own. */
static inline int
vale_list(const char *name, struct nmreq_vale_list *list)
{
	return control_once(NETMAP_REQ_VALE_LIST, name, list);
}

/* A port's index on its switch; 255 when there is no such port, -1 no switch. */
static inline long long
vale_index(const char *name)
{
	struct nmreq_vale_list at;

	memset(&at, 0, sizeof(at));
	return vale_list(name, &at) == 0 ? (long long)at.nr_port_idx : -1;
}

static inline struct port *
lan_add(struct nmreq_register reg)
{
	require(lan_ports < LAN_PORTS, "a letter for a port");
	lan[lan_ports] = port_open_as(lan_name(lan_ports), reg);
	return &lan[lan_ports++];
}

static inline void
lan_open(int ports)
{
	while (ports--)
		lan_add(register_all());
}

/* Sends one frame, numbered anew. */
static inline void
lan_send(int sender, struct mac to, struct mac from)
{
	port_send(&lan[sender], to, from, ++lan_sequence);
}

/* The last frame sent is the next that this port receives. */
static inline void
lan_expect(int receiver, const char *what)
{
	long long got = port_take(&lan[receiver]);

	check(got == lan_sequence, "%s: port %c (got %lld, expected %u)", what,
	      'a' + receiver, got, lan_sequence);
}

/* Nothing has arrived there. */
static inline void
lan_silent(int receiver, const char *what)
{
	uint32_t found;

	port_rxsync(&lan[receiver]);
	found = nm_ring_space(port_rx(&lan[receiver]));
	check(found == 0, "%s: nothing to port %c (got %u)", what,
	      'a' + receiver, found);
}

/* The frame goes to all but the sender. */
static inline void
lan_expect_flood(int sender, const char *what)
{
	int i;

	for (i = 0; i < lan_ports; i++)
		if (i != sender && lan[i].fd >= 0)
			lan_expect(i, what);
	lan_silent(sender, what);
}

/* The frame goes to one port only. */
static inline void
lan_expect_only(int receiver, const char *what)
{
	int i;

	lan_expect(receiver, what);
	for (i = 0; i < lan_ports; i++)
		if (lan[i].fd >= 0)
			lan_silent(i, what);
}

/* Lets the switch learn that an address is behind a port. */
static inline void
lan_teach(int port, struct mac mac)
{
	lan_send(port, broadcast, mac);
	lan_expect_flood(port, "broadcast");
}

/* Syncs, takes all that has arrived in a ring, and tells how much it was. */
static inline uint32_t
lan_drain(int port, int ring)
{
	struct netmap_ring *rx = NETMAP_RXRING(lan[port].nifp, ring);
	uint32_t found;

	port_rxsync(&lan[port]);
	found = nm_ring_space(rx);
	ring_advance(rx, found);
	port_rxsync(&lan[port]);
	return found;
}

#endif
