/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints packets of a ring, and its counters: a program of PF_RING that
 * receives. usage: pfring_count DEVICE COUNT loop|recv|copy|long [FILTER]
 */
#include "check.h"

#include <signal.h>
#include <pfring.h>

static pfring *ring;
static unsigned wanted, seen;
static const char *how;

static void
show(const struct pfring_pkthdr *header, const u_char *packet)
{
	struct pfring_pkthdr parsed = *header;
	char line[512];
	unsigned at;

	printf("packet %u %u ", header->len, header->caplen);
	for (at = 0; at < header->caplen; at++)
		printf("%02x", packet[at]);
	printf("\n");
	if (strcmp(how, "long") != 0) {
		memset(&parsed.extended_hdr.parsed_pkt, 0,
		       sizeof parsed.extended_hdr.parsed_pkt);
		pfring_parse_pkt((u_char *)packet, &parsed, 5, 1, 1);
	}
	pfring_print_parsed_pkt(line, sizeof line, packet, &parsed);
	printf("parsed %s", line);
	check_number(header->ts.tv_sec > 1700000000, 1, "it has a time");
	check_number((long long)(header->extended_hdr.timestamp_ns / 1000 % 1000000),
		     header->ts.tv_usec, "the times are one");
}

static void
looper(const struct pfring_pkthdr *header, const u_char *packet,
       const u_char *user)
{
	require(user == (const u_char *)"user" || !strcmp((const char *)user, "user"),
		"the callback has its argument");
	show(header, packet);
	if (++seen == wanted)
		pfring_breakloop(ring);
}

static void
receive(void)
{
	u_char memory[2048], *packet = memory;
	struct pfring_pkthdr header;
	u_int room = strcmp(how, "copy") == 0 ? sizeof memory : 0;

	while (seen < wanted) {
		memset(&header, 0x5a, sizeof header);
		require(pfring_recv(ring, &packet, room, &header, 1) == 1, "a packet");
		if (strcmp(how, "long") != 0)
			require(header.extended_hdr.parsed_pkt.l3_proto == 0x5a &&
				header.extended_hdr.tx.bounce_interface == 0x5a5a5a5a,
				"a short header leaves the rest alone");
		show(&header, packet);
		seen++;
	}
	check_number(pfring_recv(ring, &packet, room, &header, 0), 0, "no packet");
}

static void
interrupted(int signal)
{
	(void)signal;
	pfring_breakloop(ring);
}

int
main(int argc, char **argv)
{
	pfring_stat stats;
	u_int32_t version = 0;
	u_char *packet = NULL;
	struct pfring_pkthdr header;

	require(argc >= 4, "usage: pfring_count DEVICE COUNT HOW [FILTER]");
	wanted = (unsigned)atoi(argv[2]);
	how = argv[3];
	signal(SIGTERM, interrupted);
	errno = 0;
	ring = pfring_open(argv[1], 1536,
			   strcmp(how, "long") == 0 ? PF_RING_LONG_HEADER : 0);
	require(ring != NULL, "%s opens", argv[1]);
	check_number(errno, 0, "errno is left alone");
	check_number(pfring_version(ring, &version), 0, "the version");
	check_number(version, RING_VERSION_NUM, "is the header's");
	check_number(ring->zc_device, 0, "no card's queue");
	check_number(ring->recv_burst == NULL, 1, "no bursts");
	check_number(pfring_set_application_name(ring, "pfring_count"), 0, "a name");
	check_number(pfring_recv(ring, &packet, 0, &header, 0),
		     PF_RING_ERROR_RING_NOT_ENABLED, "a new ring is disabled");
	check_number(pfring_stats(ring, &stats), 0, "its counters");
	check_number((long long)(stats.recv + stats.drop), 0, "are 0");
	if (argc > 4)
		check_number(pfring_set_bpf_filter(ring, argv[4]), 0, "a filter");
	check_number(pfring_set_direction(ring, rx_only_direction), 0, "a direction");
	check_number(pfring_set_socket_mode(ring, recv_only_mode), 0, "a mode");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	check_number(pfring_set_socket_mode(ring, recv_only_mode), -1, "too late");
	check_number(pfring_get_slot_header_len(ring),
		     strcmp(how, "long") == 0 ? 209 : 48, "the header's length");
	printf("ready\n");
	fflush(stdout);
	if (strcmp(how, "loop") == 0)
		pfring_loop(ring, looper, (const u_char *)"user", 1);
	else if (wanted > 0)
		receive();
	else {
		/* Nothing comes: a signal ends the wait. */
		errno = 0;
		check_number(pfring_recv(ring, &packet, 0, &header, 1), 0, "a break");
		check_number(errno, EINTR, "is told");
	}
	signal(SIGTERM, SIG_IGN);
	check_number(pfring_stats(ring, &stats), 0, "the counters");
	printf("received %llu lost %llu\n", (unsigned long long)stats.recv,
	       (unsigned long long)stats.drop);
	pfring_close(ring);
	return check_result();
}
