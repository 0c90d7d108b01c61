/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP and UDP packets, and the segments that software makes of a large one:
 * lengths, IP identification, TCP sequence number and flags, and checksums
 * (S-VHDR-3, RFC 791, 768, 8200, 9293).
 */
#ifndef FLOW_H
#define FLOW_H

#include "case.h"

#define FLOW_MAX_HEADERS	128

struct flow {
	int ipv6, udp;
	uint32_t vlans;		/* tags of 4 bytes */
	uint32_t ip_options;	/* IPv4 option words */
	uint32_t tcp_options;	/* TCP option words */
};

/* Where a flow's headers begin, in bytes from the start of the frame. */
struct flow_layout {
	uint32_t ip, l4, checksum, payload;
};

static inline struct flow_layout
flow_layout(const struct flow *flow)
{
	struct flow_layout at;

	at.ip = 14 + 4 * flow->vlans;
	at.l4 = at.ip + (flow->ipv6 ? 40 : 20 + 4 * flow->ip_options);
	at.checksum = at.l4 + (flow->udp ? 6 : 16);
	at.payload = at.l4 + (flow->udp ? 8 : 20 + 4 * flow->tcp_options);
	return at;
}

static inline void
put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t
get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline void
put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static inline uint32_t
get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

/* The Internet checksum before its last complement, over bytes and a start. */
static inline uint32_t
sum16(const uint8_t *bytes, uint32_t length, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < length; i += 2)
		sum += get16(bytes + i);
	if (length & 1)
		sum += (uint32_t)bytes[length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* That of the pseudo-header for so many bytes from the TCP or UDP header on. */
static inline uint32_t
pseudo_sum(const struct flow *flow, const uint8_t *frame, uint32_t length)
{
	struct flow_layout at = flow_layout(flow);
	const uint8_t *addresses = frame + at.ip + (flow->ipv6 ? 8 : 12);
	uint32_t sum = length + (flow->udp ? 17 : 6);

	return sum16(addresses, flow->ipv6 ? 32 : 8, sum);
}

/* Makes the IP and the TCP or UDP checksum of a frame right. */
static inline void
flow_checksum(const struct flow *flow, uint8_t *frame, uint32_t length)
{
	struct flow_layout at = flow_layout(flow);
	uint32_t sum;

	if (!flow->ipv6) {
		put16(frame + at.ip + 10, 0);
		put16(frame + at.ip + 10,
		      ~sum16(frame + at.ip, at.l4 - at.ip, 0) & 0xffff);
	}
	put16(frame + at.checksum, 0);
	sum = pseudo_sum(flow, frame, length - at.l4);
	put16(frame + at.checksum,
	      ~sum16(frame + at.l4, length - at.l4, sum) & 0xffff);
}

/* A frame with that much payload, all fields right; returns its length. */
static inline uint32_t
flow_frame(const struct flow *flow, uint8_t *frame, uint32_t payload)
{
	struct flow_layout at = flow_layout(flow);
	uint32_t length = at.payload + payload, i;
	uint8_t *ip = frame + at.ip, *l4 = frame + at.l4;
	struct mac from = mac_of(1);

	memset(frame, 0, at.payload);
	memcpy(frame, &broadcast, 6);
	memcpy(frame + 6, &from, 6);
	for (i = 0; i < flow->vlans; i++) {
		put16(frame + 12 + 4 * i, 0x8100);
		put16(frame + 14 + 4 * i, 7 + i);
	}
	put16(ip - 2, flow->ipv6 ? 0x86dd : 0x0800);
	if (flow->ipv6) {
		ip[0] = 0x60;
		put16(ip + 4, (length - at.l4) & 0xffff);
		ip[6] = flow->udp ? 17 : 6;
		ip[7] = 64;
		for (i = 8; i < 40; i++)
			ip[i] = (uint8_t)(i * 11);
	} else {
		ip[0] = (uint8_t)(0x40 | (at.l4 - at.ip) / 4);
		put16(ip + 2, (length - at.ip) & 0xffff);
		put16(ip + 4, 0xfffe);	/* wraps in the third segment */
		ip[8] = 64;
		ip[9] = flow->udp ? 17 : 6;
		put32(ip + 12, 0x0a090001);
		put32(ip + 16, 0x0a090002);
		memset(ip + 20, 1, 4 * flow->ip_options);
	}
	put16(l4, 4321);
	put16(l4 + 2, 1234);
	if (flow->udp) {
		put16(l4 + 4, (length - at.l4) & 0xffff);
	} else {
		put32(l4 + 4, 0xfffff000);
		put32(l4 + 8, 77);
		l4[12] = (uint8_t)((5 + flow->tcp_options) << 4);
		l4[13] = 0x19;	/* ACK, PSH, FIN */
		put16(l4 + 14, 8000);
		memset(l4 + 20, 1, 4 * flow->tcp_options);
	}
	for (i = 0; i < payload; i++)
		frame[at.payload + i] = (uint8_t)(i * 13 + i / 251);
	flow_checksum(flow, frame, length);
	return length;
}

/*
 * Segment number index of a large frame, with so many bytes of payload after
 * done others; returns its length.
 */
static inline uint32_t
flow_segment(const struct flow *flow, const uint8_t *large, uint32_t index,
	     uint32_t done, uint32_t payload, int last, uint8_t *segment)
{
	struct flow_layout at = flow_layout(flow);
	uint32_t length = at.payload + payload;
	uint8_t *ip = segment + at.ip, *l4 = segment + at.l4;

	memcpy(segment, large, at.payload);
	memcpy(segment + at.payload, large + at.payload + done, payload);
	if (flow->ipv6) {
		put16(ip + 4, length - at.l4);
	} else {
		put16(ip + 2, length - at.ip);
		put16(ip + 4, get16(ip + 4) + index);
	}
	if (flow->udp) {
		put16(l4 + 4, length - at.l4);
	} else {
		put32(l4 + 4, get32(l4 + 4) + done);
		if (!last)
			l4[13] &= (uint8_t)~0x09;	/* PSH, FIN */
	}
	flow_checksum(flow, segment, length);
	return length;
}

#endif
