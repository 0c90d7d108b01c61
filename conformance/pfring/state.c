/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of a ring, and what it says of itself (PF-STATE). */
#include "case.h"

static void
disabled(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0), *peer = ring_enabled(own("vale$:b"), 0);
	struct pair pair = { ring, peer };
	struct pollfd fd = { pfring_get_selectable_fd(ring), POLLIN, 0 };
	struct pfring_pkthdr header;
	pfring_stat stats;
	u_char packet[64], *at = NULL;

	check_number(pfring_recv(ring, &at, 0, &header, 0), PF_RING_ERROR_RING_NOT_ENABLED,
		     "it receives nothing");
	check_number(pfring_send(ring, (char *)packet, packet_make(packet, -1, 1), 1),
		     PF_RING_ERROR_RING_NOT_ENABLED, "it sends nothing");
	put(peer, 1);
	check_number(poll(&fd, 1, -1), 1, "a packet comes");
	memset(&stats, 0x5a, sizeof(stats));
	check_number(pfring_stats(ring, &stats), 0, "its counters");
	check(stats.recv == 0 && stats.drop == 0, "are 0");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	check_number(pfring_enable_ring(ring), 0, "twice");
	expect(&pair, 2, 3, "2 3 ", "what came before is none of it");
	check_number(pfring_stats(ring, &stats), 0, "its counters");
	check(stats.recv == 3 && stats.drop == 0, "count what was received");
	check(stats.shunt == 0x5a5a5a5a5a5a5a5aULL, "the third is left alone");
	check_number(pfring_disable_ring(ring), 0, "it is disabled");
	check_number(pfring_recv(ring, &at, 0, &header, 0), PF_RING_ERROR_RING_NOT_ENABLED,
		     "it receives nothing");
}

/* A packet that has come to an interface before its ring was enabled. */
static void
early(void)
{
	struct sockaddr_ll end = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int round, witness = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct pair pair;
	pfring_stat stats;
	u_char packet[64];

	wire_new();
	end.sll_ifindex = (int)if_nametoindex(own("n$"));
	require(witness >= 0 && bind(witness, (struct sockaddr *)&end, sizeof(end)) == 0, "a witness");
	pair.peer = ring_enabled(own("f$"), 0);
	for (round = 0; round < 20; round++) {
		pair.ring = ring_open(own("n$"), 0);
		put(pair.peer, 1);
		require(recv(witness, packet, sizeof(packet), 0) > 0, "it has come");
		check_number(pfring_enable_ring(pair.ring), 0, "the ring is enabled");
		expect(&pair, 2, 3, "2 3 ", "what came before is none of it");
		check(pfring_stats(pair.ring, &stats) == 0 && stats.recv == 3, "and not counted");
		pfring_close(pair.ring);
		while (recv(witness, packet, sizeof(packet), MSG_DONTWAIT) > 0)
			;
	}
	close(witness);
}

/* The call succeeds, and errno is what it was. */
#define KEPT(call)							\
	do {								\
		errno = 12345;						\
		check((call) >= 0, "%s", #call);			\
		check(errno == 12345, "%s leaves errno (%d)", #call,	\
		      errno);						\
	} while (0)

/* As calls of the kernel do. */
static void
errno_of_success(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0), *peer = ring_enabled(own("vale$:b"), 0);
	struct pfring_pkthdr header;
	u_char packet[64], *at = NULL;
	u_int length = packet_make(packet, -1, 1);
	pfring_stat stats;
	char filter[] = "ip", name[] = "name";
	int turn;

	for (turn = 0; turn < 2; turn++) {
		KEPT(pfring_set_application_name(ring, name));
		KEPT(pfring_enable_ring(ring));
		KEPT(pfring_set_promisc(ring, 1));
		KEPT(pfring_set_bpf_filter(ring, filter));
		KEPT(pfring_remove_bpf_filter(ring));
		KEPT(pfring_set_sampling_rate(ring, 1));
		KEPT(pfring_set_cluster(ring, 9, cluster_per_flow));
		KEPT(pfring_remove_from_cluster(ring));
		KEPT(pfring_set_cluster_consumer(ring, 9, 0, cluster_round_robin, 0));
		KEPT(pfring_set_cluster(ring, 8, cluster_per_flow));
		KEPT(pfring_remove_from_cluster(ring));
		KEPT(pfring_remove_from_cluster(ring));
		KEPT(pfring_recv(ring, &at, 0, &header, 0));
		KEPT(pfring_poll(ring, 1));
		KEPT(pfring_send(ring, (char *)packet, length, 1));
		put(peer, 1);
		KEPT(pfring_poll(ring, -1));
		KEPT(pfring_recv(ring, &at, 0, &header, 1));
		KEPT(pfring_stats(ring, &stats));
		KEPT(pfring_get_selectable_fd(ring));
		KEPT(pfring_disable_ring(ring));
	}
	errno = 12345;
	pfring_close(ring);
	check_number(errno, 12345, "pfring_close leaves errno");
}

static void
modes(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0);
	struct pfring_pkthdr header;
	u_char packet[64], *at = NULL;
	u_int length = packet_make(packet, -1, 1);

	check_number(pfring_set_socket_mode(ring, (socket_mode)17), -1, "no mode");
	check_number(pfring_set_socket_mode(ring, send_only_mode), 0, "it sends only");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	check_number(pfring_set_socket_mode(ring, recv_only_mode), -1, "too late");
	check_number(pfring_recv(ring, &at, 0, &header, 0), PF_RING_ERROR_NOT_SUPPORTED,
		     "it does not receive");
	check_number(pfring_send(ring, (char *)packet, length, 1), (int)length, "it sends");
	pfring_close(ring);
	ring = ring_open(own("vale$:a"), 0);
	check_number(pfring_set_socket_mode(ring, recv_only_mode), 0, "it receives only");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	check_number(pfring_send(ring, (char *)packet, length, 1), PF_RING_ERROR_NOT_SUPPORTED,
		     "it does not send");
	check_number(pfring_recv(ring, &at, 0, &header, 0), 0, "it receives");
}

static void
settings(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0);
	char name[65];

	check_number(pfring_set_poll_watermark(ring, 0), 0, "a watermark");
	check_number(pfring_set_poll_watermark_timeout(ring, 10), 0, "its time");
	check_number(pfring_set_poll_duration(ring, 10), 0, "a wait's");
	check_number(pfring_set_direction(ring, (packet_direction)3), -1, "no direction");
	check_number(pfring_set_filtering_mode(ring, hardware_only), 0, "where filters are");
	check_number(pfring_enable_rss_rehash(ring), 0, "channels by the hash");
	memset(name, 'x', sizeof(name));
	name[64] = 0;
	errno = 0;
	check_number(pfring_set_application_name(ring, name), -1, "a long name");
	check_number(errno, EINVAL, "is refused");
	name[63] = 0;
	check_number(pfring_set_application_name(ring, name), 0, "a shorter one");
}

static void
hardware(void)
{
	pfring *ring = ring_enabled(own("vale$:a"), 0);

	check_number(pfring_recv_burst(ring, NULL, 1, 0), PF_RING_ERROR_NOT_SUPPORTED, "bursts");
	check_number(pfring_flush_tx_packets(ring), PF_RING_ERROR_NOT_SUPPORTED, "a flush");
	check_number(pfring_set_tx_watermark(ring, 1), PF_RING_ERROR_NOT_SUPPORTED, "a watermark");
	check_number(pfring_set_device_clock(ring, NULL), PF_RING_ERROR_NOT_SUPPORTED, "a clock");
	check_number(pfring_add_hw_rule(ring, NULL), 0, "a rule of a card does nothing");
	check_number(pfring_remove_hw_rule(ring, 1), 0, "nor its removal");
	check_number(pfring_search_payload(ring, NULL), PF_RING_ERROR_INVALID_ARGUMENT, "a search");
	check(ring->zc_device == 0 && ring->recv_burst == NULL, "what programs look at");
}

static void
answers(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0);
	pfring *other = ring_open(own("vale$:b"), PF_RING_LONG_HEADER);
	u_int32_t version = 0;
	u_char address[6];
	int index = 0, same = 0;

	check_number(pfring_version(ring, &version), 0, "a version");
	check_number(version, RING_VERSION_NUM, "the header's");
	check_number(pfring_get_slot_header_len(ring), SHORT, "a short header");
	check_number(pfring_get_slot_header_len(other), LONG, "a long one");
	check_number(pfring_get_caplen(ring), 1536, "what is captured");
	check_number(pfring_get_link_type(ring), 1, "Ethernet");
	check_number(pfring_get_link_status(ring), 1, "the link is up");
	check(pfring_get_ring_id(ring) != pfring_get_ring_id(other), "numbers differ");
	check_number(pfring_get_bound_device_address(ring, address), 0, "an address");
	check_number(pfring_get_bound_device_ifindex(ring, &index), 0, "an index");
	check_number(pfring_get_device_ifindex(ring, (char *)own("vale$:a"), &same), 0, "by name");
	check_number(index, same, "the same");
	check_number(pfring_get_device_ifindex(ring, (char *)"nosuch0", &same), -1, "none");
	check_number(pfring_get_device_ifindex(ring, (char *)"lo", &same), 0, "an interface's");
	check_number(same, (int)if_nametoindex("lo"), "is the kernel's");
	check(pfring_get_mtu_size(ring) >= 1500, "an MTU");
	check_number(ring->mtu, pfring_get_mtu_size(ring), "which programs look at, too");
	check_number(pfring_get_interface_speed(ring), 0, "no speed");
}

static void
devices(void)
{
	const char *port = own("vale$:a");
	pfring *ring = ring_open(port, 0);
	pfring_if_t *all = pfring_findalldevs(), *at;
	int found = 0, ports = 0;

	for (at = all; at != NULL; at = at->next) {
		ports += strcmp(at->name, port) == 0 && strcmp(at->system_name, port) == 0 &&
			 strcmp(at->module, "ringway") == 0 && at->status == 1;
		found += strcmp(at->name, "lo") == 0 && strcmp(at->system_name, "lo") == 0 &&
			 strcmp(at->module, "pf_ring") == 0;
	}
	check_number(found, 1, "the loopback interface once");
	check_number(ports, 1, "a port that is open once");
	check(all->sn == NULL && all->license != 0, "which has no serial number, and takes no licence");
	pfring_freealldevs(all);
	pfring_freealldevs(NULL);
	pfring_close(ring);
}

static const struct test_case cases[] = {
	{ "PF-STATE-1", "a new ring is disabled", disabled },
	{ "PF-STATE-1", "what came before", early },
	{ "PF-STATE-1", "errno after a success", errno_of_success },
	{ "PF-STATE-2", "modes", modes },
	{ "PF-STATE-3", "settings", settings },
	{ "PF-STATE-4", "what only cards have", hardware },
	{ "PF-STATE-5", "answers", answers },
	{ "PF-STATE-6", "the list of devices", devices },
};

CHAPTER(cases)
