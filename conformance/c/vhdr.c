/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtio-net headers on VALE ports (S-VHDR). */
#include "flow.h"
#include "netns.h"
#include "packet.h"
#include "request.h"

/* What precedes a frame (VIRTIO 1.2, 5.1.6). */
struct vnet_hdr {
	uint8_t flags;
#define VNET_NEEDS_CSUM	1
#define VNET_DATA_VALID	2
	uint8_t gso_type;
#define VNET_GSO_NONE	0
#define VNET_GSO_TCPV4	1
#define VNET_GSO_UDP	3
#define VNET_GSO_TCPV6	4
#define VNET_GSO_ECN	0x80
	uint16_t hdr_len;
	uint16_t gso_size;
	uint16_t csum_start;
	uint16_t csum_offset;
	uint16_t num_buffers;	/* only when it has 12 bytes */
};

#define MAX_FRAME	1514	/* of a port without header */
#define LARGEST		65000

static struct packet packet;
static uint8_t frame[LARGEST + FLOW_MAX_HEADERS];

static int
hdr_request(uint16_t type, const char *name, uint32_t *length)
{
	struct nmreq_port_hdr hdr;
	int result;

	memset(&hdr, 0, sizeof(hdr));
	hdr.nr_hdr_len = *length;
	result = control_once(type, name, &hdr);
	*length = hdr.nr_hdr_len;
	return result;
}

static int
hdr_set(const char *name, uint32_t length)
{
	return hdr_request(NETMAP_REQ_PORT_HDR_SET, name, &length);
}

static int
hdr_get(const char *name, uint32_t *length)
{
	return hdr_request(NETMAP_REQ_PORT_HDR_GET, name, length);
}

static void
check_length(const char *name, uint32_t expected, const char *text)
{
	uint32_t length = 99;

	check_call(hdr_get(name, &length), 0, text);
	check_number(length, expected, text);
}

/* A port with a header of that length. */
static struct port
port_with(const char *name, uint32_t length)
{
	struct port port = port_open_flags(name, NR_ACCEPT_VNET_HDR);

	require(hdr_set(name, length) == 0, "PORT_HDR_SET %s %u", name,
		length);
	return port;
}

/* ---- S-VHDR-1: setting and asking ---- */

static void
lengths(void)
{
	static const uint32_t good[] = { 12, 10, 0, 10, 12 };
	static const uint32_t bad[] = { 1, 9, 11, 13, 14, 20, 65536 + 12,
					UINT32_MAX };
	struct port port = port_open(own("vale$:p"));
	size_t i;

	check(port.fd >= 0, "a port");
	check_length(own("vale$:p"), 0, "at the start");
	for (i = 0; i < COUNT(good); i++) {
		check_call(hdr_set(own("vale$:p"), good[i]), 0,
			   "PORT_HDR_SET");
		check_length(own("vale$:p"), good[i], "PORT_HDR_GET");
	}
	for (i = 0; i < COUNT(bad); i++)
		check_call(hdr_set(own("vale$:p"), bad[i]), EINVAL,
			   "another length");
	check_length(own("vale$:p"), 12, "and nothing has changed");
}

static void
absent_ports(void)
{
	uint32_t length = 0;
	struct port port = port_open(own("vale$:p"));

	check(port.fd >= 0, "a port");
	check_call(hdr_set(own("vale$:q"), 12), ENXIO, "SET: no such port");
	check_call(hdr_set(own("vale$x:q"), 12), ENXIO,
		   "SET: no such switch");
	check_call(hdr_set("nosuchif0", 12), ENXIO, "SET: no such interface");
	check_call(hdr_get(own("vale$:q"), &length), ENXIO,
		   "GET: no such port");
	check_call(hdr_get("nosuchif0", &length), ENXIO,
		   "GET: no such interface");
	check_call(hdr_get("", &length), ENXIO, "GET: no name");
	check_call(hdr_get(own("vale$:p{1"), &length), ENODEV,
		   "GET: no such pipe");
	check_call(hdr_get(own("c$}1"), &length), ENODEV,
		   "GET: no such pipe, no parent");
	check(!port_exists(own("vale$:q")), "none was created");
}

static void
other_ports(void)
{
	struct port pipe = port_open(own("c${1"));
	uint32_t length = 77;

	check(pipe.fd >= 0, "a pipe");
	check_call(hdr_get(own("c${1"), &length), 0, "GET of a pipe");
	check_number(length, 0, "none");
	check_call(hdr_set(own("c${1"), 12), ENXIO, "SET of a pipe");
}

static void
interfaces(void)
{
	uint32_t length = 77;
	struct port nic;

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	nic = port_open(own("n$"));
	check(nic.fd >= 0, "an interface");
	check_call(hdr_get(own("n$"), &length), 0, "GET of an interface");
	check_number(length, 0, "none");
	check_call(hdr_set(own("n$"), 12), ENXIO, "SET of an interface");
}

static void
life_of_a_length(void)
{
	struct port port = port_with(own("vale$:p"), 12), second;

	second = port_open_flags(own("vale$:p"), NR_ACCEPT_VNET_HDR);
	port_close(&port);
	check_length(own("vale$:p"), 12, "while the port is there");
	port_close(&second);
	port = port_open(own("vale$:p"));
	check_length(own("vale$:p"), 0, "a new port has none");
}

/* S-REG-1: who does not know of it must not get it. */
static void
accepted_only(void)
{
	struct port port = port_open(own("vale$:p"));
	int fd = device_open();

	check(port.fd >= 0, "a port");
	require(hdr_set(own("vale$:p"), 10) == 0, "PORT_HDR_SET");
	check_call(bind_all(fd, own("vale$:p")), EIO,
		   "REGISTER without NR_ACCEPT_VNET_HDR");
	check_call(bind_as(fd, own("vale$:p"), NR_REG_ALL_NIC, 0,
			   NR_ACCEPT_VNET_HDR), 0, "REGISTER with it");
	require(hdr_set(own("vale$:p"), 0) == 0, "PORT_HDR_SET");
	fd = device_open();
	check_call(bind_all(fd, own("vale$:p")), 0,
		   "REGISTER when there is none");
}

/* ---- S-VHDR-2: the header in a packet ---- */

/* A header, all zero but for a mark, and a test frame behind it. */
static uint32_t
marked_frame(uint8_t *out, uint32_t header, uint32_t sequence,
	     uint32_t length)
{
	memset(out, 0, header);
	if (header >= 10)
		out[2] = 0x5a;	/* hdr_len, which nobody looks at */
	frame_fill(out + header, length, broadcast, mac_of(1), sequence);
	return header + length;
}

static void
dropped(uint32_t header)
{
	static const struct {
		uint16_t first, second;	/* bytes after the header's start */
	} bad[] = { { 5, 95 }, { 9, 60 }, { 1, 0 }, { 0, 60 } };
	struct port from = port_with(own("vale$:a"), header),
		    to = port_with(own("vale$:b"), header);
	struct netmap_ring *tx = port_tx(&from);
	uint8_t bytes[256];
	size_t i;

	for (i = 0; i < COUNT(bad); i++) {
		uint16_t piece[2] = { bad[i].first, bad[i].second };

		marked_frame(bytes, header, 1, 100);
		ring_put_pieces(tx, bytes, piece, piece[1] ? 2 : 1);
	}
	ring_put(tx, bytes, (uint16_t)header);
	ring_put(tx, bytes, (uint16_t)(header - 1));
	ring_put(tx, bytes, (uint16_t)(header + 13));
	ring_put(tx, bytes, (uint16_t)marked_frame(bytes, header, 2, 60));
	port_txsync(&from);
	check(port_take_packet(&to, &packet) && packet.length == header + 60 &&
	      memcmp(packet.byte, bytes, header + 60) == 0,
	      "only the whole one (got %u bytes)", packet.length);
	port_rxsync(&to);
	check(nm_ring_empty(port_rx(&to)), "nothing else");
}

static void dropped_10(void) { dropped(10); }
static void dropped_12(void) { dropped(12); }

static void
header_in_its_own_slot(void)
{
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_with(own("vale$:b"), 12);
	static const uint16_t piece[] = { 12, 100, 200 };
	uint32_t length = marked_frame(frame, 12, 3, 300);

	ring_put_pieces(port_tx(&from), frame, piece, 3);
	port_txsync(&from);
	check(port_take_packet(&to, &packet) && packet.slots == 3 &&
	      packet.length == length && packet.slot[0].len == 12 &&
	      memcmp(packet.byte, frame, length) == 0 &&
	      packet_is_marked(&packet), "three slots, as sent");
}

/* Addresses are those behind the header. */
static void
learning(void)
{
	struct port a = port_with(own("vale$:a"), 12),
		    b = port_with(own("vale$:b"), 12),
		    c = port_with(own("vale$:c"), 12);
	static const uint16_t piece[] = { 12, 60 };
	uint8_t bytes[72];

	memset(bytes, 0, sizeof(bytes));
	frame_fill(bytes + 12, 60, broadcast, mac_of(2), 1);
	ring_put(port_tx(&b), bytes, 72);
	port_txsync(&b);
	check(port_take_packet(&a, &packet) && port_take_packet(&c, &packet),
	      "a broadcast");
	frame_fill(bytes + 12, 60, mac_of(2), mac_of(1), 2);
	ring_put(port_tx(&a), bytes, 72);
	ring_put_pieces(port_tx(&a), bytes, piece, 2);
	port_txsync(&a);
	check(port_take_packet(&b, &packet) && packet.slots == 1,
	      "to the address that it came from");
	check(port_take_packet(&b, &packet) && packet.slots == 2,
	      "also when the header has a slot of its own");
	port_rxsync(&c);
	check(nm_ring_empty(port_rx(&c)), "and nowhere else");
}

/* ---- S-VHDR-3: between ports that differ ---- */

static void
same_length(void)
{
	static const uint32_t each[] = { 10, 12 };
	size_t i;

	for (i = 0; i < COUNT(each); i++) {
		struct port from = port_with(own("vale$:a"), each[i]),
			    to = port_with(own("vale$:b"), each[i]);

		/* Whatever it says, and however wrong that is. */
		marked_frame(frame, each[i], 1, 100);
		memset(frame, 0xee, each[i]);
		ring_put(port_tx(&from), frame, (uint16_t)(each[i] + 100));
		port_txsync(&from);
		check(port_take_packet(&to, &packet) &&
		      packet.length == each[i] + 100 &&
		      memcmp(packet.byte, frame, packet.length) == 0,
		      "%u and %u: as it is", each[i], each[i]);
		port_close(&from);
		port_close(&to);
	}
}

/* From one length to another, for which nothing has to be computed. */
static void
convert(uint32_t source, uint32_t destination)
{
	struct port from = port_with(own("vale$:a"), source),
		    to = port_with(own("vale$:b"), destination);
	uint8_t expected[12 + 600];
	uint16_t piece[3] = { (uint16_t)(source + 100), 200, 300 };
	uint32_t kept = source && destination ? 10 : 0;

	marked_frame(frame, source, 1, 600);
	if (source == 12)
		frame[10] = frame[11] = 0x77;
	memset(expected, 0, sizeof(expected));
	memcpy(expected, frame, kept);
	memcpy(expected + destination, frame + source, 600);
	ring_put(port_tx(&from), frame, (uint16_t)(source + 600));
	ring_put_pieces(port_tx(&from), frame, piece, 3);
	port_txsync(&from);
	check(port_take_packet(&to, &packet) && packet.slots == 1 &&
	      packet.length == destination + 600 &&
	      memcmp(packet.byte, expected, packet.length) == 0 &&
	      packet_is_marked(&packet), "%u to %u in one slot (got %u bytes)",
	      source, destination, packet.length);
	check(port_take_packet(&to, &packet) && packet.slots == 3 &&
	      packet.length == destination + 600 &&
	      memcmp(packet.byte, expected, packet.length) == 0 &&
	      packet_is_marked(&packet), "%u to %u in three", source,
	      destination);
	port_close(&from);
	port_close(&to);
}

static void from_0_to_10(void) { convert(0, 10); }
static void from_0_to_12(void) { convert(0, 12); }
static void from_10_to_12(void) { convert(10, 12); }
static void from_12_to_10(void) { convert(12, 10); }
static void from_10_to_0(void) { convert(10, 0); }
static void from_12_to_0(void) { convert(12, 0); }

/* A header that had a slot of its own leaves no empty one. */
static void
header_slot_vanishes(void)
{
	struct port from = port_with(own("vale$:a"), 12),
		    bare = port_open(own("vale$:b")),
		    ten = port_with(own("vale$:c"), 10);
	static const uint16_t piece[] = { 12, 100, 200 };

	marked_frame(frame, 12, 3, 300);
	ring_put_pieces(port_tx(&from), frame, piece, 3);
	port_txsync(&from);
	check(port_take_packet(&bare, &packet) && packet.slots == 2 &&
	      packet_sequence(&packet) == 3 && packet_is_marked(&packet),
	      "12 to 0: two slots");
	check(port_take_packet(&ten, &packet) && packet.slots == 3 &&
	      packet.slot[0].len == 10 && packet.length == 310,
	      "12 to 10: three slots");
}

/* A flood to ports of all kinds. */
static void
flood(void)
{
	struct port from = port_with(own("vale$:a"), 12),
		    none = port_open(own("vale$:b")),
		    ten = port_with(own("vale$:c"), 10),
		    twelve = port_with(own("vale$:d"), 12);

	marked_frame(frame, 12, 9, 100);
	ring_put(port_tx(&from), frame, 112);
	port_txsync(&from);
	check(port_take_packet(&none, &packet) && packet.length == 100 &&
	      packet_sequence(&packet) == 9, "to 0");
	check(port_take_packet(&ten, &packet) && packet.length == 110 &&
	      memcmp(packet.byte, frame, 10) == 0, "to 10");
	check(port_take_packet(&twelve, &packet) && packet.length == 112 &&
	      memcmp(packet.byte, frame, 112) == 0, "to 12");
}

/* Puts a header and a frame into the ring, in slots of so many bytes. */
static void
put_with(const struct port *port, const struct vnet_hdr *hdr, uint32_t header,
	 const uint8_t *bytes, uint32_t length, uint32_t first, uint32_t most)
{
	static uint8_t whole[12 + LARGEST + FLOW_MAX_HEADERS];
	uint16_t piece[256];
	uint32_t total = header + length, done = 0, pieces = 0;

	memcpy(whole, hdr, header);
	memcpy(whole + header, bytes, length);
	while (done < total) {
		uint32_t room = pieces ? most : first, left = total - done;

		piece[pieces] = (uint16_t)(left < room ? left : room);
		done += piece[pieces++];
	}
	ring_put_pieces(port_tx(port), whole, piece, pieces);
}

static void
bad_headers(void)
{
	static const struct {
		uint8_t flags, gso_type;
		int good;
	} table[] = {
		{ 0, 2, 0 }, { 0, 5, 0 }, { 0, 0x7f, 0 }, { 4, 0, 0 },
		{ 0x80, 0, 0 }, { 0, 0, 1 }, { VNET_DATA_VALID, 0, 1 },
		{ 0, VNET_GSO_ECN, 1 },
	};
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_open(own("vale$:b")),
		    ten = port_with(own("vale$:c"), 10);
	struct vnet_hdr hdr;
	size_t i;

	for (i = 0; i < COUNT(table); i++) {
		memset(&hdr, 0, sizeof(hdr));
		hdr.flags = table[i].flags;
		hdr.gso_type = table[i].gso_type;
		frame_fill(frame, 60, broadcast, mac_of(1), (uint32_t)i);
		put_with(&from, &hdr, 12, frame, 60, 72, 72);
		port_txsync(&from);
		port_rxsync(&to);
		check(nm_ring_space(port_rx(&to)) == (uint32_t)table[i].good,
		      "flags %#x, gso type %#x to 0: %s", hdr.flags,
		      hdr.gso_type, table[i].good ? "passes" : "dropped");
		ring_take(port_rx(&to), &packet);
		check(port_take_packet(&ten, &packet) &&
		      memcmp(packet.byte, &hdr, 10) == 0,
		      "to 10: copied, whatever it says");
	}
}

/* ---- checksums ---- */

static void
complete_checksum(const struct flow *flow, uint32_t payload, uint32_t first,
		  uint32_t most, const char *text)
{
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_open(own("vale$:b"));
	struct flow_layout at = flow_layout(flow);
	uint32_t length = flow_frame(flow, frame, payload);
	struct vnet_hdr hdr;
	uint8_t sent[2048];

	memcpy(sent, frame, length);
	memset(&hdr, 0, sizeof(hdr));
	hdr.flags = VNET_NEEDS_CSUM;
	hdr.csum_start = (uint16_t)at.l4;
	hdr.csum_offset = (uint16_t)(at.checksum - at.l4);
	/* The sender leaves the pseudo-header's sum there. */
	put16(sent + at.checksum, pseudo_sum(flow, sent, length - at.l4));
	put_with(&from, &hdr, 12, sent, length, first, most);
	port_txsync(&from);
	check(port_take_packet(&to, &packet) && packet.length == length &&
	      memcmp(packet.byte, frame, length) == 0 &&
	      packet_is_marked(&packet), "%s", text);
	port_close(&from);
	port_close(&to);
}

static void
checksums(void)
{
	static const struct flow tcp4, udp4 = { .udp = 1 },
		tcp6 = { .ipv6 = 1 }, udp6 = { .ipv6 = 1, .udp = 1 },
		tagged = { .vlans = 1, .tcp_options = 3 };

	complete_checksum(&tcp4, 1000, 2048, 2048, "TCP on IPv4");
	complete_checksum(&udp4, 1000, 2048, 2048, "UDP on IPv4");
	complete_checksum(&tcp6, 1000, 2048, 2048, "TCP on IPv6");
	complete_checksum(&udp6, 1000, 2048, 2048, "UDP on IPv6");
	complete_checksum(&tagged, 1000, 2048, 2048, "with tag and options");
	complete_checksum(&tcp4, 999, 2048, 2048, "an odd length");
	complete_checksum(&tcp4, 0, 2048, 2048, "no payload");
}

static void
checksums_of_fragments(void)
{
	static const struct flow tcp4;

	complete_checksum(&tcp4, 1000, 212, 400, "several slots");
	complete_checksum(&tcp4, 1001, 212, 200, "the last one odd");
	complete_checksum(&tcp4, 1000, 12, 1100,
			  "the header in a slot of its own");
}

/* Beyond the packet: nothing is stored, and nobody is hurt. */
static void
wrong_checksum_place(void)
{
	static const struct {
		uint16_t start, offset;
	} places[] = {
		{ 2000, 0 }, { 34, 2000 }, { UINT16_MAX, UINT16_MAX },
		{ 59, 0 }, { 58, 1 }, { 0, 60 }, { 60, 0 },
	};
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_open(own("vale$:b"));
	struct vnet_hdr hdr;
	size_t i;

	for (i = 0; i < COUNT(places); i++) {
		memset(&hdr, 0, sizeof(hdr));
		hdr.flags = VNET_NEEDS_CSUM;
		hdr.csum_start = places[i].start;
		hdr.csum_offset = places[i].offset;
		frame_fill(frame, 60, broadcast, mac_of(1), (uint32_t)i);
		put_with(&from, &hdr, 12, frame, 60, 72, 72);
	}
	memset(&hdr, 0, sizeof(hdr));
	frame_fill(frame, 60, broadcast, mac_of(1), 100);
	put_with(&from, &hdr, 12, frame, 60, 72, 72);
	port_txsync(&from);
	do
		if (!port_take_packet(&to, &packet))
			break;
	while (packet_sequence(&packet) != 100);
	check_number(packet_sequence(&packet), 100, "the frame behind them");
}

/* ---- segmentation ---- */

static uint8_t
gso_type(const struct flow *flow)
{
	return flow->udp ? VNET_GSO_UDP :
	       flow->ipv6 ? VNET_GSO_TCPV6 : VNET_GSO_TCPV4;
}

static struct vnet_hdr
gso_header(const struct flow *flow)
{
	struct flow_layout at = flow_layout(flow);
	struct vnet_hdr hdr;

	memset(&hdr, 0, sizeof(hdr));
	hdr.flags = VNET_NEEDS_CSUM;
	hdr.gso_type = gso_type(flow);
	hdr.hdr_len = (uint16_t)at.payload;
	hdr.gso_size = 1448;
	hdr.csum_start = (uint16_t)at.l4;
	hdr.csum_offset = (uint16_t)(at.checksum - at.l4);
	return hdr;
}

/* Takes the segments of a large frame and compares every byte of them. */
static void
check_segments(const struct flow *flow, const struct port *to,
	       uint32_t payload, uint32_t max_frame, const char *text)
{
	struct flow_layout at = flow_layout(flow);
	uint32_t most = max_frame - at.payload, done = 0, index = 0;
	static uint8_t segment[4096];

	while (done < payload) {
		uint32_t left = payload - done, part = left < most ? left :
			most;
		uint32_t length = flow_segment(flow, frame, index, done, part,
					       part == left, segment);

		if (!port_take_packet(to, &packet) || packet.slots != 1 ||
		    packet.length != length ||
		    memcmp(packet.byte, segment, length) != 0) {
			check(0, "%s: segment %u of %u bytes (got %u)", text,
			      index, length, packet.length);
			return;
		}
		done += part;
		index++;
	}
	port_rxsync(to);
	check(nm_ring_empty(port_rx(to)), "%s: %u segments", text, index);
}

static void
segment_as(const struct flow *flow, uint32_t payload, uint32_t header,
	   uint32_t first, uint32_t most, const char *text)
{
	struct port from = port_with(own("vale$:a"), header),
		    to = port_open(own("vale$:b"));
	uint32_t length = flow_frame(flow, frame, payload);
	struct vnet_hdr hdr = gso_header(flow);

	put_with(&from, &hdr, header, frame, length, first, most);
	port_txsync(&from);
	check_segments(flow, &to, payload, MAX_FRAME, text);
	port_close(&from);
	port_close(&to);
}

static void
segments(void)
{
	static const struct flow tcp4, tcp6 = { .ipv6 = 1 }, udp4 =
		{ .udp = 1 }, udp6 = { .ipv6 = 1, .udp = 1 };

	segment_as(&tcp4, 16000, 12, 2048, 2048, "TCP on IPv4");
	segment_as(&tcp6, 16000, 12, 2048, 2048, "TCP on IPv6");
	segment_as(&udp4, 16000, 12, 2048, 2048, "UDP on IPv4");
	segment_as(&udp6, 16000, 12, 2048, 2048, "UDP on IPv6");
	segment_as(&tcp4, 16000, 10, 2048, 2048, "a header of 10 bytes");
}

static void
segments_with_tags_and_options(void)
{
	static const struct flow tag = { .vlans = 1 }, tags = { .vlans = 2 },
		ip = { .ip_options = 3 }, tcp = { .tcp_options = 10 },
		all = { .ipv6 = 1, .vlans = 1, .tcp_options = 3 };

	segment_as(&tag, 5000, 12, 2048, 2048, "a tag");
	segment_as(&tags, 5000, 12, 2048, 2048, "two tags");
	segment_as(&ip, 5000, 12, 2048, 2048, "IP options");
	segment_as(&tcp, 5000, 12, 2048, 2048, "TCP options");
	segment_as(&all, 5000, 12, 2048, 2048, "a tag, IPv6, TCP options");
}

/* At the edges of the frame size, and of 64 KiB. */
static void
segment_lengths(void)
{
	static const struct flow tcp4;
	static const uint32_t payloads[] = {
		1, 2, 1459, 1460, 1461, 2919, 2920, 2921, 1460 * 44, LARGEST,
	};
	char text[32];
	size_t i;

	for (i = 0; i < COUNT(payloads); i++) {
		snprintf(text, sizeof(text), "%u bytes", payloads[i]);
		segment_as(&tcp4, payloads[i], 12, 2048, 2048, text);
	}
}

/* However the packet lies in its slots, with its headers in the first. */
static void
segments_of_fragments(void)
{
	static const struct flow tcp4;

	segment_as(&tcp4, 9000, 12, 12 + 54, 2048,
		   "headers in one slot, data in others");
	segment_as(&tcp4, 9000, 12, 12 + 55, 2047, "odd slots");
	segment_as(&tcp4, 9000, 12, 200, 161, "many small slots");
	segment_as(&tcp4, 9000, 12, 12, 2048,
		   "the virtio-net header in a slot of its own");
}

static void
ecn(void)
{
	static const struct flow tcp4;
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_open(own("vale$:b"));
	uint32_t length = flow_frame(&tcp4, frame, 5000);
	struct vnet_hdr hdr = gso_header(&tcp4);

	hdr.gso_type |= VNET_GSO_ECN;
	put_with(&from, &hdr, 12, frame, length, 2048, 2048);
	port_txsync(&from);
	check_segments(&tcp4, &to, 5000, MAX_FRAME, "with the ECN bit");
}

/* Sends one packet that must vanish, and one that must not. */
static void
check_vanishes(const struct port *from, const struct port *to,
	       const char *text)
{
	struct vnet_hdr hdr;

	memset(&hdr, 0, sizeof(hdr));
	frame_fill(frame, 60, broadcast, mac_of(1), 4242);
	put_with(from, &hdr, 12, frame, 60, 72, 72);
	port_txsync(from);
	check(port_take_packet(to, &packet) &&
	      packet_sequence(&packet) == 4242, "%s", text);
	port_rxsync(to);
	check(nm_ring_empty(port_rx(to)), "%s: nothing else", text);
}

static void
segmentation_refused(void)
{
	static const struct flow tcp4;
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_open(own("vale$:b"));
	struct vnet_hdr hdr = gso_header(&tcp4);
	uint32_t length = flow_frame(&tcp4, frame, 5000), cut;
	static const uint32_t cuts[] = { 14, 20, 33, 34, 40, 53 };
	size_t i;

	put16(frame + 12, 0x0806);
	put_with(&from, &hdr, 12, frame, length, 2048, 2048);
	check_vanishes(&from, &to, "another ethertype");
	for (i = 0; i < COUNT(cuts); i++) {
		cut = 12 + cuts[i];
		flow_frame(&tcp4, frame, 5000);
		put_with(&from, &hdr, 12, frame, length, cut, 2048);
		check_vanishes(&from, &to, "headers in two slots");
	}
	flow_frame(&tcp4, frame, 0);
	put_with(&from, &hdr, 12, frame, 50, 62, 62);
	check_vanishes(&from, &to, "a frame that ends in its headers");
}

static void
too_few_slots(void)
{
	static const struct flow tcp4;
	struct nmreq_register reg = register_all();
	struct port from = port_with(own("vale$:a"), 12), to;
	struct vnet_hdr hdr = gso_header(&tcp4);
	uint32_t length = flow_frame(&tcp4, frame, 1460 * 7), i;

	reg.nr_rx_slots = 8;
	to = port_open_as(own("vale$:b"), reg);
	put_with(&from, &hdr, 12, frame, length, 2048, 2048);
	port_txsync(&from);
	check_segments(&tcp4, &to, 1460 * 7, MAX_FRAME, "7 in 7 slots");
	length = flow_frame(&tcp4, frame, 1460 * 8);
	for (i = 0; i < 2; i++)
		put_with(&from, &hdr, 12, frame, length, 2048, 2048);
	check_vanishes(&from, &to, "8 in 7 slots");
}

/* A port that has had a header takes frames up to its buffer's size. */
static void
larger_frames(void)
{
	static const struct flow tcp4;
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_with(own("vale$:b"), 12);
	uint32_t length = flow_frame(&tcp4, frame, 9000);
	struct vnet_hdr hdr = gso_header(&tcp4);

	require(hdr_set(own("vale$:b"), 0) == 0, "PORT_HDR_SET 0");
	put_with(&from, &hdr, 12, frame, length, 2048, 2048);
	port_txsync(&from);
	check_segments(&tcp4, &to, 9000, 2048, "frames of 2048 bytes");
}

/* To a port with a header the packet stays one. */
static void
no_segmentation(void)
{
	static const struct flow tcp4;
	struct port from = port_with(own("vale$:a"), 12),
		    to = port_with(own("vale$:b"), 10);
	uint32_t length = flow_frame(&tcp4, frame, 9000);
	struct vnet_hdr hdr = gso_header(&tcp4);

	put_with(&from, &hdr, 12, frame, length, 2000, 2000);
	port_txsync(&from);
	check(port_take_packet(&to, &packet) &&
	      packet.length == length + 10 &&
	      memcmp(packet.byte, &hdr, 10) == 0 &&
	      memcmp(packet.byte + 10, frame, length) == 0 &&
	      packet_is_marked(&packet), "12 to 10: as it is, in %u slots",
	      packet.slots);
}

static const struct test_case cases[] = {
	{ "S-VHDR-1", "lengths", lengths },
	{ "S-VHDR-1", "ports that are not there", absent_ports },
	{ "S-VHDR-1", "pipes", other_ports },
	{ "S-VHDR-1", "interfaces", interfaces },
	{ "S-VHDR-1", "as long as the port", life_of_a_length },
	{ "S-VHDR-1", "larger frames", larger_frames },
	{ "S-REG-1", "NR_ACCEPT_VNET_HDR", accepted_only },
	{ "S-VHDR-2", "too short, 10", dropped_10 },
	{ "S-VHDR-2", "too short, 12", dropped_12 },
	{ "S-VHDR-2", "in a slot of its own", header_in_its_own_slot },
	{ "S-VHDR-2", "learning behind the header", learning },
	{ "S-VHDR-3", "the same length", same_length },
	{ "S-VHDR-3", "0 to 10", from_0_to_10 },
	{ "S-VHDR-3", "0 to 12", from_0_to_12 },
	{ "S-VHDR-3", "10 to 12", from_10_to_12 },
	{ "S-VHDR-3", "12 to 10", from_12_to_10 },
	{ "S-VHDR-3", "10 to 0", from_10_to_0 },
	{ "S-VHDR-3", "12 to 0", from_12_to_0 },
	{ "S-VHDR-3", "a header in a slot of its own",
	  header_slot_vanishes },
	{ "S-VHDR-3", "flood", flood },
	{ "S-VHDR-3", "bad headers", bad_headers },
	{ "S-VHDR-3", "checksums", checksums },
	{ "S-VHDR-3", "checksums of fragments", checksums_of_fragments },
	{ "S-VHDR-3", "a checksum outside", wrong_checksum_place },
	{ "S-VHDR-3", "segments", segments },
	{ "S-VHDR-3", "segments with tags and options",
	  segments_with_tags_and_options },
	{ "S-VHDR-3", "lengths of segments", segment_lengths },
	{ "S-VHDR-3", "segments of fragments", segments_of_fragments },
	{ "S-VHDR-3", "the ECN bit", ecn },
	{ "S-VHDR-3", "no segmentation possible", segmentation_refused },
	{ "S-VHDR-3", "too few slots", too_few_slots },
	{ "S-VHDR-3", "no segmentation needed", no_segmentation },
};

CHAPTER(cases)
