/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting, several threads, several channels, filters by themselves.
 * usage: pfring_walk DEVICE PEER: what is sent on PEER is received by DEVICE
 */
#include "check.h"

#include <poll.h>
#include <net/if.h>
#include <pfring.h>

#define THREADS	4
#define PACKETS	400

static pfring *ring, *peer;
static unsigned char seen[PACKETS];
static unsigned received;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Packet number `number` of UDP. */
static void
put(int number)
{
	unsigned char packet[64] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 0,
		0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		3, 232, 0, 53, 0, 30, 0, 0};
	int sent;

	packet[42] = (unsigned char)(number >> 8);
	packet[43] = (unsigned char)number;
	do {
		errno = 0;
		sent = pfring_send(peer, (char *)packet, sizeof packet, 1);
	} while (sent == -1 && errno == ENOBUFS);
	require(sent == sizeof packet, "a packet is sent");
}

static int
number_of(const u_char *packet)
{
	return packet[42] << 8 | packet[43];
}

static void
waiting(void)
{
	struct pollfd fd = {.events = POLLIN};
	struct pfring_pkthdr header;
	struct timespec time;
	u_int64_t stamp = 0;
	u_char *packet;

	check_number(pfring_poll(ring, 0), 0, "nothing is there");
	check_number(pfring_poll(ring, 20), 0, "nor a little later");
	check_number(pfring_is_pkt_available(ring), 0, "nor available");
	check_number(pfring_next_pkt_time(ring, &time), PF_RING_ERROR_NO_PKT_AVAILABLE, "nor has a time");
	put(1);
	check_number(pfring_poll(ring, 30000), 1, "a packet comes");
	while (!pfring_is_pkt_available(ring))
		;
	check_number(pfring_next_pkt_time(ring, &time), 0, "it has a time");
	check_number(pfring_next_pkt_raw_timestamp(ring, &stamp), 0, "in one number, too");
	check_number((long long)(stamp / 1000000000), time.tv_sec, "the same");
	check_number(pfring_get_num_queued_pkts(ring), 1, "it waits");
	check_number(pfring_recv(ring, &packet, 0, &header, 0), 1, "it is received");
	check_number(number_of(packet), 1, "and the one");
	fd.fd = pfring_get_selectable_fd(ring);
	check(fd.fd >= 0, "a descriptor");
	put(2);
	check_number(poll(&fd, 1, 30000), 1, "is readable");
	check_number(pfring_recv_parsed(ring, &packet, 0, &header, 1, 5, 1, 1), 1, "the next");
	check_number(header.extended_hdr.parsed_pkt.l4_dst_port, 53, "is parsed");
	check_number(header.extended_hdr.pkt_hash, 0x0a000001 + 0x0a000002 + 17 + 1000 + 53, "and hashed");
	check_number(number_of(packet), 2, "and the one");
}

static void
filters(void)
{
	struct pfring_bpf_program program;
	unsigned char packet[60] = {0};

	check_number(pfring_parse_bpf_filter("ether proto 0x88b5", 128, &program), 0, "a filter");
	check_number(pfring_bpf_filter(program.bf_insns, packet, sizeof packet, sizeof packet), 0, "none");
	packet[12] = 0x88;
	packet[13] = 0xb5;
	check(pfring_bpf_filter(program.bf_insns, packet, sizeof packet, sizeof packet) != 0, "matches");
	check_number(pfring_bpf_filter(program.bf_insns, packet, 4, 60), 0, "cut off");
	pfring_free_bpf_filter(&program);
	check(program.bf_insns == NULL, "it is gone");
	check_number(pfring_parse_bpf_filter("nonsense at all", 128, &program), -1, "nonsense");
	check_number(pfring_bpf_filter(NULL, packet, 60, 60), 0, "no filter");
}

static void *
reader(void *unused)
{
	struct pfring_pkthdr header;
	u_char memory[256], *packet = memory;

	(void)unused;
	while (pfring_recv(ring, &packet, sizeof memory, &header, 1) == 1) {
		int number = number_of(memory);

		pthread_mutex_lock(&lock);
		if (number < PACKETS)
			seen[number]++;
		if (++received == PACKETS)
			pfring_shutdown(ring);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void
threads(const char *device)
{
	struct pfring_pkthdr header;
	pthread_t thread[THREADS];
	u_char *packet = NULL;
	int at, once = 0;

	ring = pfring_open(device, 1536, PF_RING_REENTRANT);
	require(ring != NULL, "a ring for threads");
	check_number(pfring_set_direction(ring, rx_only_direction), 0, "a direction");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	check_number(pfring_recv(ring, &packet, 0, &header, 0), PF_RING_ERROR_INVALID_ARGUMENT,
		     "not in place");
	for (at = 0; at < THREADS; at++)
		require(pthread_create(&thread[at], NULL, reader, NULL) == 0, "a thread");
	for (at = 0; at < PACKETS; at++)
		put(at);
	for (at = 0; at < THREADS; at++)
		pthread_join(thread[at], NULL);
	for (at = 0; at < PACKETS; at++)
		once += seen[at] == 1;
	check_number(once, PACKETS, "each packet came to one of them");
	pfring_close(ring);
}

static void
channels(const char *device)
{
	pfring *rings[MAX_NUM_RX_CHANNELS];
	struct pfring_pkthdr header;
	u_char *packet;
	int count = pfring_open_multichannel(device, 1536, 0, rings);

	check_number(count, 1, "one channel");
	require(count == 1, "a ring for each");
	check_number(pfring_set_direction(rings[0], rx_only_direction), 0, "a direction");
	check_number(pfring_enable_ring(rings[0]), 0, "it is enabled");
	check_number(pfring_get_num_rx_channels(rings[0]), 1, "it says so");
	put(3);
	check_number(pfring_recv(rings[0], &packet, 0, &header, 1), 1, "a packet");
	check_number(number_of(packet), 3, "is the one");
	pfring_close(rings[0]);
}

static void
promiscuous(const char *device)
{
	int missing = if_nametoindex(device) == 0;

	check_number(pfring_set_if_promisc(NULL, 1), -3, "no name");
	check_number(pfring_set_if_promisc("nosuch0", 1), -2, "no interface");
	if (missing)
		return;
	check_number(pfring_set_if_promisc(device, 1), 0, "it was off");
	check_number(pfring_set_if_promisc(device, 1), IFF_PROMISC, "it is on");
	check_number(pfring_set_if_promisc(device, 0), IFF_PROMISC, "it was on");
	check_number(pfring_set_promisc(ring, 1), 0, "by the ring");
	check_number(pfring_set_promisc(ring, 0), 0, "and off");
}

/* A ring collects nothing until it is enabled, by name or by a wait. */
static void
disabled(const char *device)
{
	struct pfring_pkthdr header;
	u_char *packet;
	int at;

	ring = pfring_open(device, 1536, 0);
	require(ring != NULL, "%s opens again", device);
	put(1);
	check_number(pfring_is_pkt_available(ring), 0, "nothing is available");
	check_number(pfring_poll(ring, 0), 0, "nor to be waited for");
	check_number(pfring_get_num_queued_pkts(ring), 0, "nor queued");
	check_number(pfring_recv(ring, &packet, 0, &header, 0), PF_RING_ERROR_RING_NOT_ENABLED, "nor received");
	pfring_poll(ring, 1);
	for (at = 0; at < 3; at++)
		put(2);
	check_number(pfring_poll(ring, 30000), 1, "a wait has enabled it");
	/* What was sent before may still have been on its way. */
	do
		check_number(pfring_recv(ring, &packet, 0, &header, 1), 1, "a packet is received");
	while (number_of(packet) == 1);
	/* Of an interface the kernel does not say how many wait. */
	if (strchr(device, ':') != NULL) {
		for (at = 0; at < 30000 && pfring_get_num_queued_pkts(ring) < 2; at++)
			poll(NULL, 0, 1);
		check_number(pfring_get_num_queued_pkts(ring), 2, "packets that wait are counted");
	}
	pfring_close(ring);
}

int
main(int argc, char **argv)
{
	require(argc == 3, "usage: pfring_walk DEVICE PEER");
	peer = pfring_open(argv[2], 1536, 0);
	require(peer != NULL, "%s opens", argv[2]);
	require(pfring_set_socket_mode(peer, send_only_mode) == 0, "it sends");
	require(pfring_enable_ring(peer) == 0, "it is enabled");
	ring = pfring_open(argv[1], 1536, PF_RING_PROMISC);
	require(ring != NULL, "%s opens", argv[1]);
	check_number(pfring_set_direction(ring, rx_only_direction), 0, "a direction");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	waiting();
	filters();
	promiscuous(argv[1]);
	pfring_close(ring);
	disabled(argv[1]);
	threads(argv[1]);
	channels(argv[1]);
	pfring_close(peer);
	return check_result();
}
