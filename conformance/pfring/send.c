/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending (PF-SEND). */
#include "case.h"

static void
lengths(void)
{
	struct pair pair = pair_open(0);
	static u_char packet[100000];
	struct pfring_pkthdr header;

	packet_make(packet, -1, 1);
	check_number(pfring_send(pair.peer, (char *)packet, 1514, 0), 1514, "a long packet");
	check_number(take(pair.ring, &header) != NULL && header.len == 1514, 1, "is received");
	errno = 0;
	check_number(pfring_send(pair.peer, (char *)packet, sizeof(packet), 0),
		     PF_RING_ERROR_INVALID_ARGUMENT, "too long");
	check_number(errno, EMSGSIZE, "is told");
}

static void
interfaces(void)
{
	static u_char packet[2048];
	struct pfring_pkthdr header;
	pfring *ring, *far;

	wire_new();
	ring = ring_enabled(own("n$"), 0);
	far = ring_enabled(own("f$"), 0);
	packet_make(packet, -1, 1);
	check_number(pfring_send(ring, (char *)packet, 1514, 0), 1514, "as long as the MTU");
	check_number(take(far, &header) != NULL && header.len == 1514, 1, "is received");
	errno = 0;
	check_number(pfring_send(ring, (char *)packet, 1519, 0), PF_RING_ERROR_INVALID_ARGUMENT,
		     "longer");
	check_number(errno, EMSGSIZE, "is told");
	shell("ip link set %s down", own("n$"));
	errno = 0;
	check_number(pfring_send(ring, (char *)packet, 60, 0), -1, "it is down");
	check_number(errno, ENETDOWN, "is told");
}

static void
last_packet(void)
{
	struct pair pair = pair_open(PF_RING_LONG_HEADER | PF_RING_RX_PACKET_BOUNCE);
	pfring *other = ring_enabled(own("vale$x:b"), 0);
	struct pfring_pkthdr header;
	u_char *packet;
	int index = 0, own_index = 0;

	check_number(pfring_get_device_ifindex(pair.ring, (char *)own("vale$x:a"), &index), 0,
		     "where to");
	pfring_get_bound_device_ifindex(pair.ring, &own_index);
	check_number(pfring_send_last_rx_packet(pair.peer, index),
		     PF_RING_ERROR_WRONG_CONFIGURATION, "not opened for it");
	check_number(pfring_send_last_rx_packet(pair.ring, index), PF_RING_ERROR_NO_PKT_AVAILABLE,
		     "nothing was received");
	put(pair.peer, 5);
	take(pair.ring, &header);
	check_number(pfring_send_last_rx_packet(pair.ring, index), 0, "it is marked");
	put(pair.peer, 6);
	take(pair.ring, &header);
	check_number(port_of(take(other, &header)), 5, "and goes with the next");
	check_number(pfring_send_last_rx_packet(pair.ring, own_index), 0, "to where it came from");
	check_number(pfring_recv(pair.ring, &packet, 0, &header, 0), 0, "it does not go");
	put(pair.ring, LAST);
	check_number(port_of(take(pair.peer, &header)), LAST, "nothing before this");
}

static void
filtered(void)
{
	struct pair pair = { ring_enabled(own("vale$:a"), 0),
			     ring_open(own("vale$:b"), PF_RING_TX_BPF) };
	char ports[] = "udp dst port 5 or udp dst port 9999";
	u_char packet[64];

	check_number(pfring_set_bpf_filter(pair.peer, ports), 0, "a filter");
	check_number(pfring_enable_ring(pair.peer), 0, "enabled");
	check_number(pfring_send(pair.peer, (char *)packet, packet_make(packet, -1, 4), 0), 0,
		     "what does not pass is not sent");
	put(pair.peer, 5);
	put(pair.peer, LAST);
	check(strcmp(taken(pair.ring), "5 ") == 0, "what passes is");
}

/* Programs try again at every number but two. */
static void
impossible(void)
{
	struct pair pair = pair_open(0);
	pfring *second = ring_enabled(own("vale$:a"), 0);
	char packet[60] = { 2 };

	errno = 0;
	check_number(pfring_send(second, packet, sizeof(packet), 0), PF_RING_ERROR_NOT_SUPPORTED,
		     "another ring has the port");
	check_number(errno, EOPNOTSUPP, "is told");
	check_number(pfring_send(pair.ring, packet, sizeof(packet), 0), sizeof(packet),
		     "that one sends");
	check_number(pfring_set_cluster(second, (u_int)getpid() % 60000 + 1, cluster_per_flow), 0,
		     "a cluster");
	errno = 0;
	check_number(pfring_send(second, packet, sizeof(packet), 0), PF_RING_ERROR_NOT_SUPPORTED,
		     "its member cannot either");
	check_number(errno, EOPNOTSUPP, "is told");
}

static const struct test_case cases[] = {
	{ "PF-SEND-1", "lengths", lengths },
	{ "PF-SEND-1", "on interfaces", interfaces },
	{ "PF-SEND-2", "the last packet", last_packet },
	{ "PF-SEND-3", "filters", filtered },
	{ "PF-SEND-4", "what can never be sent", impossible },
};

CHAPTER(cases)
