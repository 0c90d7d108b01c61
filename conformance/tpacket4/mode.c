/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy mode and zero-copy mode on interfaces of the kernel's (V4-MODE). */
#include "../wire.h"
#include "case.h"

#include <linux/filter.h>

#define TYPE	0x88b5

/* Two interfaces of this case alone, which vanish with it. Takes root. */
static void
cable(const char *settings)
{
	need_root();
	shell("ip link add %s %s type veth peer name %s", own("n$"), settings, own("f$"));
	shell("ip link set %s up && ip link set %s up %s", own("n$"), own("f$"), settings);
}

/* A packet socket of the kernel's. */
static int
kernels(const char *interface)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	require(fd >= 0 && v4_bind(fd, if_nametoindex(interface)) == 0, "a socket of the kernel's");
	return fd;
}

/* The length of the next packet of ours there, or -1: there is none. */
static int
heard(int fd, int flags)
{
	unsigned char packet[2048];

	for (;;) {
		int length = (int)recv(fd, packet, sizeof(packet), flags);

		if (length < 0 || (packet[12] << 8 | packet[13]) == TYPE)
			return length;
	}
}

/* The next packet of ours, of so many bytes, given back. */
static struct tpacket4_desc
expect(struct v4 *v4, unsigned int length, const char *text)
{
	struct tpacket4_desc desc;
	const char *data;

	for (;;) {
		receive(v4, &desc);
		data = data_of(v4, &desc);
		put(&v4->rx, frame_of(desc.idx, 0, 0));
		if ((data[12] & 0xff) == TYPE >> 8 && (data[13] & 0xff) == (TYPE & 0xff))
			break;
	}
	check(desc.len == length && desc.error == 0, "%s: %u bytes", text, desc.len);
	return desc;
}

static void
transmit(struct v4 *v4, unsigned int length)
{
	struct tpacket4_desc desc = frame_of(300, length, 5);

	build(v4, &desc);
	send_one(v4, desc);
	while (!get(&v4->tx, &desc))
		require(await(v4, POLLOUT, 20000) == POLLOUT, "a frame comes back");
	check(desc.idx == 300 && desc.error == 0, "a frame comes back: error %d", desc.error);
}

static int
attach(const struct v4 *v4, const struct sock_fprog *filter)
{
	return setsockopt(v4->fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof(*filter));
}

static int
detach(const struct v4 *v4)
{
	int unused = 0;

	return setsockopt(v4->fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

static void
zerocopy(struct v4 *v4, int expected)
{
	int queue = 0;

	check_call(v4_option(v4->fd, PACKET_ZEROCOPY, &queue, sizeof(queue)), expected, "queue pair 0");
}

static void
copy(void)
{
	struct v4 one, two, three;
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);
	int near, far, on = 1;

	cable("");
	one = v4_open(own("n$"));
	two = v4_open(own("f$"));
	three = v4_open(own("f$"));
	near = kernels(own("n$"));
	far = kernels(own("f$"));
	fill(&one, 0, 4);
	fill(&two, 0, 4);
	fill(&three, 0, 4);
	transmit(&one, 64);
	expect(&two, 64, "one socket");
	expect(&three, 64, "another one");
	check_number(heard(far, 0), 64, "the stack");
	check_number(heard(near, 0), 64, "it has gone through the stack");
	check_call(v4_option(one.fd, PACKET_QDISC_BYPASS, &on, sizeof(on)), 0, "PACKET_QDISC_BYPASS");
	transmit(&one, 65);
	expect(&two, 65, "again");
	check_number(heard(near, MSG_DONTWAIT), -1, "past most of it");
	/* What goes out through the interface is heard as well, but for its own. */
	transmit(&three, 66);
	expect(&one, 66, "the far end");
	expect(&two, 66, "what another sends");
	check_call(v4_option(two.fd, PACKET_IGNORE_OUTGOING, &on, sizeof(on)), 0, "PACKET_IGNORE_OUTGOING");
	transmit(&three, 67);
	expect(&one, 67, "the far end");
	transmit(&one, 68);
	expect(&two, 68, "not what goes out");
	expect(&three, 65, "what came meanwhile");
	expect(&three, 68, "and nothing of its own");
	check_call(getsockopt(two.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0, "statistics");
	check_number(stats.tp_drops, 0, "nothing is lost");
}

static void
alone(void)
{
	struct v4 one, two, three;
	int far;

	cable("");
	one = v4_open(own("n$"));
	two = v4_open(own("f$"));
	three = v4_open(own("f$"));
	far = kernels(own("f$"));
	fill(&one, 0, 4);
	fill(&two, 0, 4);
	transmit(&one, 64);
	expect(&two, 64, "shared");
	check_number(heard(far, 0), 64, "with the stack");
	zerocopy(&two, 0);
	transmit(&one, 65);
	expect(&two, 65, "alone");
	check_number(heard(far, MSG_DONTWAIT), -1, "the stack has nothing");
	transmit(&two, 66);
	expect(&one, 66, "the other direction");
	zerocopy(&three, EBUSY);
	v4_close(&two);
	zerocopy(&three, 0);
	fill(&three, 0, 4);
	transmit(&one, 67);
	expect(&three, 67, "it is free");
}

static void
packets(void)
{
	static const char tag[4] = { (char)0x81, 0, 0x20, 7 };
	const unsigned int payload = FRAME_SIZE - 256;
	struct v4 one, two;
	struct tpacket4_desc desc, got;
	char *data;
	int events;

	cable("mtu 9000");
	one = v4_open(own("n$"));
	two = v4_open(own("f$"));
	fill(&two, 0, 8);
	/* Of three frames, there and here. */
	for (int at = 0; at < 3; at++) {
		desc = frame_of(300 + (unsigned int)at, 1500, 0);
		build(&one, &desc);
		desc.flags = at < 2 ? TP4_PKT_CONT : 0;
		put(&one.tx, desc);
	}
	put(&one.tx, frame_of(FRAMES, 64, 0));
	check_call(kick(&one), 0, "kick");
	for (int at = 0; at < 3; at++)
		returned(&one, 300 + (unsigned int)at, 0, "a part");
	returned(&one, FRAMES, EBADF, "a frame that is not there");
	for (int at = 0; at < 3; at++) {
		receive(&two, &got);
		check(got.len == (at < 2 ? payload : 4500 - 2 * payload) &&
		      got.flags == (at < 2 ? TP4_PKT_CONT : 0), "part %d has %u bytes", at, got.len);
		put(&two.rx, frame_of(got.idx, 0, 0));
	}
	/* A tag is where it was. */
	desc = frame_of(300, 68, 0);
	build(&one, &desc);
	data = data_of(&one, &desc);
	memmove(data + 16, data + 12, 52);
	memcpy(data + 12, tag, sizeof(tag));
	send_one(&one, desc);
	returned(&one, 300, 0, "a packet with a tag");
	receive(&two, &got);
	check(got.len == 68 && memcmp(data_of(&two, &got), data, 68) == 0, "has it");
	put(&two.rx, frame_of(got.idx, 0, 0));
	/* What the interface refuses. */
	for (int at = 0; at < 6; at++) {
		desc = frame_of(300 + (unsigned int)at, 2048, 0);
		build(&one, &desc);
		desc.flags = at < 5 ? TP4_PKT_CONT : 0;
		put(&one.tx, desc);
	}
	check_call(kick(&one), 0, "kick");
	for (int at = 0; at < 6; at++)
		returned(&one, 300 + (unsigned int)at, EMSGSIZE, "a packet that is too long");
	shell("ip link set %s down", own("n$"));
	send_one(&one, frame_of(300, 64, 0));
	returned(&one, 300, ENETDOWN, "an interface that is down");
	shell("ip link set %s up && ip link set %s down", own("n$"), own("f$"));
	wire_up(own("n$"), own("f$"));
	transmit(&one, 64);
	expect(&two, 64, "it is up again");
	shell("ip link del %s", own("n$"));
	put(&one.tx, frame_of(300, 64, 0));
	check_call(kick(&one), ENETDOWN, "an interface that has gone");
	/* A packet may have been got before it was told of. */
	while ((events = await(&two, POLLIN, 20000)) == POLLIN) {
		while (get(&two.rx, &got))
			put(&two.rx, frame_of(got.idx, 0, 0));
	}
	check_number(events, POLLERR, "nothing will come");
}

/* What a filter of the socket lets through, which the kernel runs. */
static void
filters(void)
{
	/* Packets of 70 bytes, of which it would have one. */
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 70, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { 4, steps }, endless = { 1, steps }, nowhere = { 4, (void *)8 };
	struct v4 one, two, port;

	cable("");
	one = v4_open(own("n$"));
	two = v4_open(own("f$"));
	port = v4_open(own("vale$:a"));
	fill(&two, 0, 16);
	transmit(&one, 64);
	expect(&two, 64, "no filter");
	check_call(attach(&two, &endless), EINVAL, "a filter without an end");
	check_call(attach(&two, &nowhere), EFAULT, "one that is not there");
	check_call(attach(&two, &filter), 0, "a filter");
	transmit(&one, 64);
	transmit(&one, 70);
	expect(&two, 70, "what it lets through is whole");
	zerocopy(&two, EOPNOTSUPP);
	transmit(&one, 66);
	transmit(&one, 70);
	expect(&two, 70, "it stays");
	check_call(detach(&two), 0, "no filter any more");
	transmit(&one, 66);
	expect(&two, 66, "everything");
	check_call(detach(&two), ENOENT, "there is none");
	check_call(attach(&port, &filter), EOPNOTSUPP, "a port has none");
}

/* Sockets of one group share what comes. */
static void
fanout(void)
{
	int group = 4711 | PACKET_FANOUT_LB << 16, some = group | PACKET_FANOUT_FLAG_UNIQUEID << 16;
	unsigned int counts[2] = { 0, 0 };
	struct v4 one, two[2], port;

	cable("");
	/* Nothing but the test's own packets, which come in turn. */
	for (int at = 0; at < 2; at++)
		shell("ip link set %s down addrgenmode none", at ? own("f$") : own("n$"));
	wire_up(own("n$"), own("f$"));
	one = v4_open(own("n$"));
	port = v4_open(own("vale$:a"));
	for (int at = 0; at < 2; at++) {
		two[at] = v4_open(own("f$"));
		fill(&two[at], 0, 16);
		check_call(v4_option(two[at].fd, PACKET_FANOUT, &some, sizeof(some)), EINVAL, "a group to be found");
		check_call(v4_option(two[at].fd, PACKET_FANOUT, &group, sizeof(group)), 0, "a group");
		check_call(v4_option(two[at].fd, PACKET_FANOUT, &group, sizeof(group)), EALREADY, "one");
	}
	for (int n = 0; n < 8; n++)
		transmit(&one, 64);
	while (counts[0] + counts[1] < 8) {
		struct pollfd polled[2] = { { two[0].fd, POLLIN, 0 }, { two[1].fd, POLLIN, 0 } };
		struct tpacket4_desc desc;

		require(poll(polled, 2, 20000) > 0, "something comes");
		for (int at = 0; at < 2; at++) {
			while (get(&two[at].rx, &desc)) {
				put(&two[at].rx, frame_of(desc.idx, 0, 0));
				counts[at]++;
			}
		}
	}
	check(counts[0] == 4 && counts[1] == 4, "in turn: %u and %u", counts[0], counts[1]);
	zerocopy(&two[0], EOPNOTSUPP);
	check_call(v4_option(port.fd, PACKET_FANOUT, &group, sizeof(group)), EOPNOTSUPP, "a port has none");
}

static void
unprivileged(void)
{
	int fd = v4_socket(), memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	need_ordinary_user();
	require(v4_register(memory, v4_area(), FRAMES * FRAME_SIZE) == 0, "memory");
	require(v4_ring(fd, PACKET_RX_RING, memory, DESCS) == 0, "a receive ring");
	check_call(v4_bind(fd, 1), EPERM, "copy mode takes CAP_NET_RAW");
	check_call(v4_bind(fd, if_nametoindex(own("vale$:a"))), 0, "a port does not");
}

static const struct test_case cases[] = {
	{ "V4-MODE-1", "copy mode", copy },
	{ "V4-MODE-1", "an ordinary user", unprivileged },
	{ "V4-MODE-2", "zero-copy mode", alone },
	{ "V4-MODE-3", "packets in copy mode", packets },
	{ "V4-MODE-4", "filters", filters },
	{ "V4-MODE-5", "groups", fanout },
};

CHAPTER(cases)
