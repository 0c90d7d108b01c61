/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chapter of PF_RING's rules. Cases have two rings on ports of one switch, or
 * as root on two interfaces that are joined: what one sends, the other receives.
 */
#ifndef CASE_H
#define CASE_H

#include "../wire.h"

#include <poll.h>
#include <pfring.h>

#define LAST	9999	/* the port of the packet that ends a round */
#define SHORT	48	/* bytes of a header */
#define LONG	209

static void
chapter_begin(const char *variant)
{
	u_int32_t version = 0;

	pfring_version_noring(&version);
	require(version == RING_VERSION_NUM && strcmp(variant, "8.9") == 0,
		"the library has the header's version");
}

/* A ring that is not enabled yet. */
static inline pfring *
ring_open(const char *device, u_int32_t flags)
{
	pfring *ring = pfring_open(device, 1536, flags);

	require(ring != NULL, "%s opens", device);
	return ring;
}

static inline pfring *
ring_enabled(const char *device, u_int32_t flags)
{
	pfring *ring = ring_open(device, flags);

	require(pfring_enable_ring(ring) == 0, "%s is enabled", device);
	return ring;
}

struct pair {
	pfring *ring, *peer;
};

/* Two ports of a switch of this case alone. */
static inline struct pair
pair_open(u_int32_t flags)
{
	struct pair pair = {
		ring_enabled(own("vale$:a"), flags),
		ring_enabled(own("vale$:b"), 0),
	};

	return pair;
}

/* Two interfaces of this case alone, which vanish with it. Takes root. */
static inline void
wire_new(void)
{
	need_root();
	shell("ip link add %s type veth peer name %s", own("n$"), own("f$"));
	wire_up(own("n$"), own("f$"));
}

/* A packet of UDP from 10.0.0.1:1000 to that port of 10.0.0.2; returns its length. */
static inline u_int
packet_make(u_char *packet, int vlan, int port)
{
	static const u_char head[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9 };
	const u_char rest[] = {
		8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1,
		10, 0, 0, 2, 3, 232, (u_char)(port >> 8), (u_char)port, 0, 26, 0, 0,
		'h', 'e', 'l', 'l', 'o' };
	u_int at = sizeof(head);

	memset(packet, 0, 64);
	memcpy(packet, head, sizeof(head));
	if (vlan >= 0) {
		packet[at++] = 0x81;
		packet[at++] = 0;
		packet[at++] = (u_char)(vlan >> 8);
		packet[at++] = (u_char)vlan;
	}
	memcpy(packet + at, rest, sizeof(rest));
	return vlan >= 0 ? 64 : 60;
}

static inline void
put_tagged(pfring *ring, int vlan, int port)
{
	u_char packet[64];
	u_int length = packet_make(packet, vlan, port);
	int sent;

	do {
		errno = 0;
		sent = pfring_send(ring, (char *)packet, length, 1);
	} while (sent == -1 && errno == ENOBUFS);
	require(sent == (int)length, "a packet is sent");
}

static inline void
put(pfring *ring, int port)
{
	put_tagged(ring, -1, port);
}

/* The port that a packet of packet_make is for. */
static inline int
port_of(const u_char *packet)
{
	const u_char *at = packet + 36;

	if (packet[12] == 0x81)
		at += 4;
	return at[0] << 8 | at[1];
}

/* The next packet; the header's bytes are 0x5a where it is not written. */
static inline u_char *
take(pfring *ring, struct pfring_pkthdr *header)
{
	u_char *packet = NULL;

	memset(header, 0x5a, sizeof(*header));
	require(pfring_recv(ring, &packet, 0, header, 1) == 1, "a packet");
	return packet;
}

/* The ports of what has come, up to the last of a round, as a text. */
static inline const char *
taken(pfring *ring)
{
	static char seen[4096];
	struct pfring_pkthdr header;
	int port;

	seen[0] = 0;
	for (;;) {
		port = port_of(take(ring, &header));
		if (port == LAST)
			return seen;
		require(strlen(seen) < sizeof(seen) - 8, "no more than was sent");
		sprintf(seen + strlen(seen), "%d ", port);
	}
}

/* Sends to these ports and the last; what comes is those of the text. */
static inline void
expect(struct pair *pair, int first, int last, const char *ports, const char *text)
{
	const char *seen;
	int port;

	for (port = first; port <= last; port++)
		put(pair->peer, port);
	put(pair->peer, LAST);
	seen = taken(pair->ring);
	check(strcmp(seen, ports) == 0, "%s: %s", text, seen);
}

#endif
