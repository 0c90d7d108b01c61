/* SPDX-License-Identifier: BSD-2-Clause */
/* Which frame queue a frame goes to (FM-POLICY). */
#include "case.h"

/* Sends a frame, which has to come to this queue as the next. */
static void
goes_to(struct sink *sink, const uint8_t *frame, uint32_t length, const char *what)
{
	uint32_t before = sink->frames;
	struct qm_fd fd;

	far_send(frame, length);
	wait_frames(sink, before + 1);
	fd = sink->fds[before % COUNT(sink->fds)];
	check(fd.length20 == length && memcmp(bytes_of(&fd), frame, length) == 0, "%s", what);
	drop(&fd);
}

/* 802.1Q in front of the type. */
static void
tag(uint8_t *frame, uint32_t length)
{
	memmove(frame + 16, frame + 12, length - 12);
	frame[12] = 0x81;
	frame[13] = 0;
	frame[14] = 0;
	frame[15] = 5;
}

static void
hashing(void)
{
	uint32_t seen[FLOW_QUEUES] = { 0 }, i;

	interface_new(USUAL_POLICY, 8, 0, 0);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < 32; i++) {
		uint8_t *frame = ip_frame(60, (uint8_t)i, (uint8_t)(i * 7), (uint8_t)i);
		uint64_t sum = fman_crc64_init();
		uint32_t queue;

		sum = fman_crc64_compute_32bit(0x0a000000 | i, sum);
		sum = fman_crc64_compute_32bit(0x0a010000 | (uint8_t)(i * 7), sum);
		queue = (uint32_t)(fman_crc64_finish(sum) % FLOW_QUEUES);
		goes_to(it.flows[queue], frame, 60, "the base, and the sum's low bits");
		tag(frame, 60);
		goes_to(it.flows[queue], frame, 64, "with a tag, too");
		seen[queue]++;
	}
	check(seen[0] && seen[1] && seen[2] && seen[3], "flows are spread");
}

static void
shares(void)
{
	struct sink *queues[3];
	uint32_t i;

	interface_new(POLICY(REF("thirds") REF("rest"), DISTRIBUTION("thirds", BY_ADDRESSES, 0x500, 3)
			     DISTRIBUTION("rest", "", 0x300, 1)), 8, 0, 0);
	for (i = 0; i < COUNT(queues); i++)
		queues[i] = sink_new(0x500 + i, it.channel);
	fman_if_enable_rx(it.fif);
	for (i = 0; i < 16; i++) {
		uint8_t *frame = ip_frame(60, (uint8_t)i, 2, (uint8_t)i);
		uint32_t sum = (uint32_t)fman_crc64_finish(fman_crc64_update(fman_crc64_init(), frame + 26, 8));

		goes_to(queues[(uint64_t)sum * 3 >> 32], frame, 60, "a third of the sums each");
	}
}

static void
first_wins(void)
{
	struct sink *ports, *tagged, *six;
	uint8_t *frame;

	interface_new(POLICY(REF("ports") REF("tagged") REF("six") REF("unknown") REF("flows") REF("rest"),
			     DISTRIBUTION("ports", "<key>" FIELD("udp.sport") FIELD("udp.dport") "</key>", 0x500, 1)
			     DISTRIBUTION("tagged", "<protocols><protocolref name='vlan'/></protocols>", 0x510, 1)
			     DISTRIBUTION("six", "<key>" FIELD("ipv6.src") "</key>", 0x520, 1)
			     DISTRIBUTION("unknown", "<key>" FIELD("sna.session") "</key>", 0x530, 1)
			     DISTRIBUTION("flows", BY_ADDRESSES, 0x400, 1) DISTRIBUTION("rest", "", 0x300, 1)), 8, 0, 0);
	ports = sink_new(0x500, it.channel);
	tagged = sink_new(0x510, it.channel);
	six = sink_new(0x520, it.channel);
	fman_if_enable_rx(it.fif);
	frame = ip_frame(60, 1, 2, 0);
	goes_to(ports, frame, 60, "a distribution by ports");
	frame[23] = 1;
	goes_to(it.flows[0], frame, 60, "what has no ports goes on to the next");
	tag(frame, 60);
	goes_to(tagged, frame, 64, "a distribution of a protocol");
	frame = ip_frame(60, 1, 2, 0);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[20] = 59;
	goes_to(six, frame, 60, "IPv6");
	frame = ip_frame(60, 1, 2, 0);
	frame[20] = 0;
	frame[21] = 1;
	goes_to(it.flows[0], frame, 60, "a later fragment has no ports");
}

static void
default_queue(void)
{
	uint8_t *frame = ip_frame(60, 1, 2, 0);

	interface_new(USUAL_POLICY, 8, 0, 0);
	fman_if_enable_rx(it.fif);
	frame[13] = 6;
	goes_to(it.rest, frame, 60, "ARP");
	frame[12] = 0x88;
	frame[13] = 0xb5;
	goes_to(it.rest, frame, 60, "a type that nobody knows");
	check_number(it.cfg->port_cfg[0].rx_def, REST, "rx_def");
}

static void
links(void)
{
	struct sink *named;
	uint8_t *frame;

	interface_new(POLICY(REF("link") REF("flows") REF("rest"),
			     "<distribution name='link'><queue base='1' count='1'/>"
			     "<action type='classification' name='hosts'/></distribution>"
			     "<classification name='hosts'><key>" FIELD("ipv4.dst") "</key><entry><data>0x0a010002</data>"
			     "<action type='distribution' name='usdpaa_dist'/></entry></classification>"
			     DISTRIBUTION("usdpaa_dist", BY_ADDRESSES, 0x540, 1)
			     DISTRIBUTION("flows", BY_ADDRESSES, 0x400, 1) DISTRIBUTION("rest", "", 0x300, 1)), 8, 0, 0);
	named = sink_new(0x540, it.channel);
	fman_if_enable_rx(it.fif);
	frame = ip_frame(60, 1, 2, 0);
	goes_to(named, frame, 60, "a value that is listed");
	frame = ip_frame(60, 1, 3, 0);
	goes_to(it.flows[0], frame, 60, "others go on to the next");
}

static const struct test_case cases[] = {
	{ "FM-POLICY-1", "hashing", hashing },
	{ "FM-POLICY-1", "shares", shares },
	{ "FM-POLICY-2", "first wins", first_wins },
	{ "FM-POLICY-3", "default queue", default_queue },
	{ "FM-POLICY-4", "links", links },
};

CHAPTER(cases)
