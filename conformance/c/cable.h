/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two interfaces joined by a cable (a veth pair): the near end is for netmap,
 * at the far end a packet socket sends and receives as a machine would that
 * knows nothing of netmap.
 */
#ifndef CABLE_H
#define CABLE_H

#include "../wire.h"
#include "../../tests/c/port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

struct cable {
	char near[IF_NAMESIZE], far[IF_NAMESIZE];
	int socket;	/* everything that arrives at the far end */
};

static inline int
packet_socket(const char *interface)
{
	struct sockaddr_ll address;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_ALL);
	address.sll_ifindex = (int)if_nametoindex(interface);
	require(fd >= 0 && bind(fd, (struct sockaddr *)&address,
				sizeof(address)) == 0,
		"packet socket on %s", interface);
	return fd;
}

/* A cable with that many queues at each end. Takes root. */
static inline struct cable
cable_new(const char *near, const char *far, unsigned queues)
{
	struct cable cable;

	snprintf(cable.near, sizeof(cable.near), "%s", near);
	snprintf(cable.far, sizeof(cable.far), "%s", far);
	shell("ip link add %s numtxqueues %u numrxqueues %u type veth "
	      "peer name %s numtxqueues %u numrxqueues %u",
	      near, queues, queues, far, queues, queues);
	wire_up(near, far);
	cable.socket = packet_socket(far);
	return cable;
}

/* A test frame from the far machine. */
static inline void
cable_send(const struct cable *cable, struct mac to, struct mac from,
	   uint32_t sequence)
{
	char frame[FRAME_SIZE];

	frame_fill(frame, sizeof(frame), to, from, sequence);
	require(send(cable->socket, frame, sizeof(frame), 0) ==
		(ssize_t)sizeof(frame), "send on %s", cable->far);
}

/*
 * The number of the next test frame that reaches the far machine, -1 when none
 * comes in time.
 */
static inline long long
cable_take(const struct cable *cable)
{
	for (;;) {
		struct sockaddr_ll from;
		socklen_t length = sizeof(from);
		char frame[65536];
		ssize_t got;

		if (!(wait_events(cable->socket, POLLIN, PATIENCE_MS) & POLLIN))
			return -1;
		got = recvfrom(cable->socket, frame, sizeof(frame), 0,
			       (struct sockaddr *)&from, &length);
		require(got >= 0, "recvfrom on %s", cable->far);
		if (from.sll_pkttype != PACKET_OUTGOING &&
		    frame_is_intact(frame, (uint32_t)got))
			return frame_sequence(frame);
	}
}

#endif
