/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of a packet (PF-HEADER). */
#include "case.h"

static void
times(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	struct timespec before, after;

	clock_gettime(CLOCK_REALTIME, &before);
	put(pair.peer, 1);
	take(pair.ring, &header);
	clock_gettime(CLOCK_REALTIME, &after);
	check(header.ts.tv_sec >= before.tv_sec && header.ts.tv_sec <= after.tv_sec, "seconds");
	check(header.ts.tv_usec >= 0 && header.ts.tv_usec < 1000000, "microseconds");
	check_number((long long)header.extended_hdr.timestamp_ns / 1000,
		     header.ts.tv_sec * 1000000LL + header.ts.tv_usec, "the same in nanoseconds");
}

static void
long_headers(void)
{
	struct pair pair = pair_open(PF_RING_LONG_HEADER);
	struct pfring_pkthdr header;
	int index = 0;

	put_tagged(pair.peer, 7, 53);
	take(pair.ring, &header);
	check_number(header.caplen, 64, "its length");
	check_number(header.extended_hdr.parsed_pkt.vlan_id, 7, "its VLAN");
	check_number(header.extended_hdr.parsed_pkt.eth_type, 0x800, "what is in it");
	check_number(header.extended_hdr.parsed_pkt.ip_version, 4, "the version");
	check_number(header.extended_hdr.parsed_pkt.l3_proto, 17, "the protocol");
	check_number(header.extended_hdr.parsed_pkt.ipv4_src, 0x0a000001, "the source");
	check_number(header.extended_hdr.parsed_pkt.ipv4_dst, 0x0a000002, "the destination");
	check_number(header.extended_hdr.parsed_pkt.l4_src_port, 1000, "its port");
	check_number(header.extended_hdr.parsed_pkt.l4_dst_port, 53, "its port");
	check_number(header.extended_hdr.parsed_pkt.offset.l3_offset, 18, "where IP begins");
	check_number(header.extended_hdr.parsed_pkt.offset.l4_offset, 38, "where UDP begins");
	check_number(header.extended_hdr.parsed_pkt.offset.payload_offset, 46, "where data begin");
	check_number(header.extended_hdr.pkt_hash,
		     7 + 0x0a000001 + 0x0a000002 + 17 + 1000 + 53, "the sum");
	check_number(header.extended_hdr.tx.bounce_interface, -1, "it is not bounced");
	check_number(pfring_get_bound_device_ifindex(pair.ring, &index), 0, "the device");
	check_number(header.extended_hdr.if_index, index, "it came by");
}

static void
program_parses(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	u_char packet[64];

	memset(&header, 0, sizeof(header));
	header.caplen = header.len = packet_make(packet, -1, 53);
	check(pfring_parse_pkt(packet, &header, 5, 1, 1) > 0, "it is parsed");
	check_number(header.extended_hdr.parsed_pkt.l4_dst_port, 53, "to its ports");
	check(header.ts.tv_sec > 1700000000, "with a time");
	check_number(header.extended_hdr.pkt_hash, 0x0a000001 + 0x0a000002 + 17 + 1000 + 53,
		     "with the sum");
	memset(&header, 0, sizeof(header));
	header.caplen = header.len = 60;
	pfring_parse_pkt(packet, &header, 2, 0, 0);
	check_number(header.extended_hdr.parsed_pkt.l3_proto, 0, "not beyond the level");
	check_number(header.ts.tv_sec, 0, "without a time");
	put(pair.peer, 53);
	{
		u_char *at = NULL;

		memset(&header, 0, sizeof(header));
		check_number(pfring_recv_parsed(pair.ring, &at, 0, &header, 1, 5, 1, 1), 1,
			     "received and parsed");
		check_number(header.extended_hdr.parsed_pkt.l4_dst_port, 53, "to its ports");
	}
}

static void
lines(void)
{
	u_char packet[64];
	char line[512];

	packet_make(packet, -1, 53);
	pfring_print_pkt(line, sizeof(line), packet, 60, 60);
	check(strstr(line, "[02:00:00:00:00:09 -> FF:FF:FF:FF:FF:FF] ") == line, "addresses: %s",
	      line);
	check(strstr(line, "[IPv4][10.0.0.1:1000 -> 10.0.0.2:53] [l3_proto=UDP]") != NULL, "ends");
	check(strstr(line, "[caplen=60][len=60][eth_offset=0][l3_offset=14][l4_offset=34]") != NULL,
	      "offsets");
	check(strchr(line, '\n') == line + strlen(line) - 1, "and the end of a line");
	packet_make(packet, 7, 53);
	pfring_print_pkt(line, sizeof(line), packet, 64, 64);
	check(strstr(line, "[vlan 7] ") != NULL, "a VLAN");
	check_number(pfring_print_pkt(line, 4, packet, 64, 64) > 0 && strlen(line) == 3, 1,
		     "no more than fits");
}

static void
numbers(void)
{
	static const struct {
		double value;
		int decimals;
		const char *text;
	} all[] = {
		{ 0, 0, "0" }, { 999, 0, "999" }, { 12.345, 1, "12.35" }, { 1234, 0, "1'234" },
		{ 1234567, 0, "1'234'567" }, { 1234567890, 0, "1'234'567'890" },
	};
	char text[64];
	size_t at;

	for (at = 0; at < COUNT(all); at++) {
		pfring_format_numbers(all[at].value, text, sizeof(text), (u_int8_t)all[at].decimals);
		check(strcmp(text, all[at].text) == 0, "%s: %s", all[at].text, text);
	}
	check(gmt_to_local(0) > -86400 && gmt_to_local(0) < 86400, "seconds from UTC");
}

/* The header of the next packet to that port: an interface has others, too. */
static void
header_of(pfring *ring, int port, struct pfring_pkthdr *header)
{
	while (port_of(take(ring, header)) != port)
		;
}

/* What the kernel has left to the hardware, or the hardware has done. */
static void
offloads(void)
{
	static const int all = PKT_FLAGS_CHECKSUM_OFFLOAD | PKT_FLAGS_CHECKSUM_OK | PKT_FLAGS_VLAN_HWACCEL;
	struct sockaddr_in to = { 0 };
	struct pfring_pkthdr header;
	pfring *ring, *far;
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	wire_new();
	shell("ip addr add 10.77.0.1/24 dev %s && ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev %s",
	      own("n$"), own("n$"));
	ring = ring_enabled(own("n$"), PF_RING_LONG_HEADER);
	far = ring_enabled(own("f$"), PF_RING_LONG_HEADER);
	put_tagged(far, 7, 5301);
	header_of(ring, 5301, &header);
	check(header.caplen == 64 && header.len == 64, "a tag that was put back counts");
	check_number(header.extended_hdr.parsed_pkt.vlan_id, 7, "and is read");
	check_number((int)header.extended_hdr.flags & all, PKT_FLAGS_VLAN_HWACCEL, "it was beside");
	put(far, 5302);
	header_of(ring, 5302, &header);
	check_number((int)header.extended_hdr.flags & all, 0, "a packet as it is");
	to.sin_family = AF_INET;
	to.sin_port = htons(5303);
	to.sin_addr.s_addr = htonl(0x0a4d0002);
	require(udp >= 0 && sendto(udp, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)) == 5, "the stack sends");
	header_of(ring, 5303, &header);
	check_number((int)header.extended_hdr.flags & all, PKT_FLAGS_CHECKSUM_OFFLOAD, "without its checksum");
	check_number(header.extended_hdr.rx_direction, 0, "out");
	close(udp);
}

static const struct test_case cases[] = {
	{ "PF-HEADER-1", "times", times },
	{ "PF-HEADER-2", "long headers", long_headers },
	{ "PF-HEADER-3", "parsed by the program", program_parses },
	{ "PF-HEADER-4", "lines of text", lines },
	{ "PF-HEADER-5", "numbers", numbers },
	{ "PF-HEADER-6", "offloads", offloads },
};

CHAPTER(cases)
