/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop: it polls the selectable descriptor, and looks at one packet, or receives it, each time that this is
 * readable.
 * usage: pfring_singly DEVICES PEER...: what is sent on each PEER is received by one of DEVICES
 */
#include "check.h"

#include <poll.h>
#include <pfring.h>

static pfring *ring, *peers[4];
static int count_of_peers;
static struct pollfd fd = {.events = POLLIN};

static void send_one(int peer)
{
	char frame[60] = {-1, -1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 9, (char)0x88, (char)0xb5};
	int sent;

	do {
		errno = 0;
		sent = pfring_send(peers[peer], frame, sizeof frame, 1);
	} while (sent == -1 && errno == ENOBUFS);
	require(sent == sizeof frame, "a packet is sent");
}

static int is_available(void)
{
	return pfring_is_pkt_available(ring);
}

static int is_queued(void)
{
	return pfring_get_num_queued_pkts(ring) > 0;
}

static int has_time(void)
{
	struct timespec time;

	return pfring_next_pkt_time(ring, &time) == 0;
}

static int has_descriptor(void)
{
	return pfring_get_selectable_fd(ring) == fd.fd;
}

static int has_nothing_to_look_at(void)
{
	return 1;
}

static const struct look {
	int (*at_next)(void);
	const char *name;
} looks[] = {
	{has_nothing_to_look_at, "pfring_recv"},
	{is_available, "pfring_is_pkt_available"},
	{is_queued, "pfring_get_num_queued_pkts"},
	{has_time, "pfring_next_pkt_time"},
	{has_descriptor, "pfring_get_selectable_fd"},
};

/* So many packets to each device; before it receives, it looks at each, and polls again. */
static void receive(const struct look *look, int count)
{
	int packets = 0, all = count * count_of_peers;
	struct pfring_pkthdr header;
	u_char *packet;

	for (int at = 0; at < count; at++)
		for (int peer = 0; peer < count_of_peers; peer++)
			send_one(peer);
	while (packets < all && poll(&fd, 1, PATIENCE_MS) == 1) {
		if (look->at_next() && poll(&fd, 1, PATIENCE_MS) != 1)
			break;
		packets += pfring_recv(ring, &packet, 0, &header, 0) == 1;
	}
	check(packets == all, "%s: %d of %d packets, one after each poll", look->name, packets, all);
	check_number(poll(&fd, 1, 0), 0, "none is left, and the descriptor not readable");
}

int main(int argc, char **argv)
{
	ring = pfring_open(argv[1], 1536, PF_RING_PROMISC);
	require(ring != NULL, "%s", argv[1]);
	check_number(pfring_set_direction(ring, rx_only_direction), 0, "a direction");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	for (; count_of_peers < argc - 2; count_of_peers++) {
		const char *name = argv[2 + count_of_peers];

		peers[count_of_peers] = pfring_open(name, 1536, PF_RING_PROMISC);
		require(peers[count_of_peers] != NULL, "%s", name);
		pfring_set_socket_mode(peers[count_of_peers], send_only_mode);
		check_number(pfring_enable_ring(peers[count_of_peers]), 0, "it is enabled");
	}
	fd.fd = pfring_get_selectable_fd(ring);
	for (unsigned at = 0; at < sizeof looks / sizeof looks[0]; at++) {
		receive(&looks[at], 6);
		receive(&looks[at], 1);
		receive(&looks[at], 200);
	}
	for (int at = 0; at < count_of_peers; at++)
		pfring_close(peers[at]);
	pfring_close(ring);
	return check_result();
}
