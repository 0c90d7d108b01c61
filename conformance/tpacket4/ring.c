/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors, packets, and waiting for them (V4-RING). */
#define _GNU_SOURCE
#include "case.h"

#include <sys/epoll.h>

/* Descriptors that are not good, and those behind them. */
static void
validation(void)
{
	struct pair pair = pair_open();
	struct v4 *one = &pair.one, *other = &pair.other;
	struct tpacket4_desc desc = frame_of(3, 64, 0), bad, got;

	build(one, &desc);
	send_one(one, frame_of(FRAMES, 64, 0));
	returned(one, FRAMES, EBADF, "a frame that is not there");
	send_one(one, frame_of(UINT64_MAX, 64, 0));
	returned(one, UINT64_MAX, EBADF, "the last number");
	send_one(one, frame_of(1, 0, 0));
	returned(one, 1, EBADF, "nothing");
	send_one(one, frame_of(1, FRAME_SIZE + 1, 0));
	returned(one, 1, EBADF, "more than a frame");
	send_one(one, frame_of(1, 64, FRAME_SIZE - 63));
	returned(one, 1, EBADF, "what goes beyond it");
	send_one(one, frame_of(1, 64, 65535));
	returned(one, 1, EBADF, "what lies beyond it");
	send_one(one, frame_of(1, UINT32_MAX, 65535));
	returned(one, 1, EBADF, "a sum that goes round");
	/* The bad one of a packet takes the rest along; the packet behind it is good. */
	bad = frame_of(FRAMES, 64, 0);
	bad.flags = TP4_PKT_CONT;
	put(&one->tx, bad);
	send_one(one, frame_of(2, 64, 0));
	returned(one, FRAMES, EBADF, "a bad part");
	returned(one, 2, EBADF, "the other part");
	send_one(one, desc);
	returned(one, 3, 0, "a good one");
	/* A packet without its end waits for it. */
	bad = frame_of(3, 64, 0);
	bad.flags = TP4_PKT_CONT | 0x40;
	send_one(one, bad);
	check(!get(&one->tx, &got), "a packet without its end stays");
	send_one(one, frame_of(4, 10, 0));
	returned(one, 3, 0, "its first part");
	returned(one, 4, 0, "its end");
	check(await(one, POLLOUT, 0) == POLLOUT, "nothing is to come back");

	/* Frames to receive into. */
	put(&other->rx, frame_of(FRAMES, 0, 0));
	put(&other->rx, frame_of(9, 0, 0));
	put(&other->rx, frame_of(UINT64_MAX, 0, 0));
	put(&other->rx, frame_of(10, 0, 0));
	receive(other, &got);
	check(got.idx == FRAMES && got.error == EBADF, "a frame that is not there comes back first");
	receive(other, &got);
	check(got.idx == 9 && got.len == 64 && got.offset == 256 && got.error == 0 && got.flags == 0,
	      "the frame is received into the next: %u at %u", got.len, got.offset);
	check((data_of(other, &got)[63] & 0xff) == 0xee, "and is what was sent");
	receive(other, &got);
	check(got.error == EBADF, "the third is bad");
	receive(other, &got);
	check(got.idx == 10 && got.len == 74, "a packet of two parts is one: %u", got.len);
}

/* A packet longer than a frame, in and out. */
static void
long_packet(void)
{
	struct pair pair = pair_open();
	struct v4 *one = &pair.one, *other = &pair.other;
	const unsigned int payload = FRAME_SIZE - 256;
	struct tpacket4_desc part, got;
	unsigned int sum = 0, parts = 0, total = 3 * 1000;

	for (unsigned int n = 0; n < 3; n++) {
		part = frame_of(20 + n, 1000, 24);
		part.flags = n < 2 ? TP4_PKT_CONT : 0;
		if (n == 0)
			build(one, &part);
		else
			memset(data_of(one, &part), (int)(n + 1), 1000);
		put(&one->tx, part);
	}
	check_call(kick(one), 0, "kick");
	for (unsigned int n = 0; n < 3; n++)
		returned(one, 20 + n, 0, "a part");
	fill(other, 30, 2);
	do {
		receive(other, &got);
		sum += got.len;
		parts++;
		check(got.offset == 256, "at the headroom's end");
		check(sum > total - 1 || got.len == payload, "full: %u", got.len);
	} while (got.flags & TP4_PKT_CONT);
	check_number(sum, total, "all of the packet");
	check_number(parts, 2, "in as many frames as it takes");
	check_number(data_of(other, &got)[got.len - 1], 3, "its last byte");
}

/* Random bytes in its own rings are a program's own affair. */
static void
noise(void)
{
	struct pair pair = pair_open();
	struct v4 *one = &pair.one, *other = &pair.other;
	struct tpacket4_desc *all[2] = { one->tx.ring, other->rx.ring };
	unsigned char *bytes;

	srand(4711);
	for (int round = 0; round < 50; round++) {
		for (int ring = 0; ring < 2; ring++) {
			bytes = (unsigned char *)all[ring];
			for (size_t at = 0; at < DESCS * sizeof(*all[0]); at++)
				bytes[at] = (unsigned char)(rand() >> 7);
		}
		/* Frames that may be there. */
		for (int slot = 0; slot < DESCS; slot += 1 + round % 5) {
			all[0][slot].idx %= FRAMES + 2;
			all[0][slot].len %= FRAME_SIZE;
			all[1][slot].idx %= FRAMES + 2;
		}
		kick(one);
		await(one, POLLOUT, 0);
		await(other, POLLIN, 0);
	}
	check(1, "noise does no harm");
}

/* Both kinds of epoll, and a socket of another kind in the same set. */
static void
events(void)
{
	struct pair pair = pair_open();
	struct v4 *one = &pair.one, *other = &pair.other;
	struct epoll_event event, got[2];
	struct tpacket4_desc desc = frame_of(5, 64, 0);
	int set = epoll_create1(0), pipes[2];

	require(pipe(pipes) == 0, "a pipe");
	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	event.data.fd = other->fd;
	check_call(epoll_ctl(set, EPOLL_CTL_ADD, other->fd, &event), 0, "a member");
	event.data.fd = pipes[0];
	check_call(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event), 0, "another");
	fill(other, 40, 8);
	await(other, POLLIN, 0);
	check_number(epoll_wait(set, got, 2, 0), 0, "nothing yet");
	build(one, &desc);
	send_one(one, desc);
	returned(one, 5, 0, "a frame");
	check_number(epoll_wait(set, got, 2, 20000), 1, "one is ready");
	check_number(got[0].data.fd, other->fd, "the socket");
	require(get(&other->rx, &desc), "a packet");
	check_number(desc.idx, 40, "in the first frame");
	put(&other->rx, frame_of(desc.idx, 0, 0));
	check_number(epoll_wait(set, got, 2, 0), 0, "nothing any more");
	close(set);
	close(pipes[0]);
	close(pipes[1]);
}

/* Slots are released in order, and what is in one need not be what was put there. */
static void
order(void)
{
	struct pair pair = pair_open();
	struct tpacket4_desc desc = frame_of(0, 64, 0), got = desc;
	uint64_t at;

	fill(&pair.other, 100, 64);
	for (at = 0; at < 64; at++) {
		desc.idx = at;
		build(&pair.one, &desc);
		data_of(&pair.one, &desc)[63] = (char)at;
		put(&pair.one.tx, desc);
	}
	check_call(kick(&pair.one), 0, "a batch");
	for (at = 0; at < 64; at++) {
		require(get(&pair.one.tx, &got), "each comes back");
		require(got.idx == at && got.error == 0, "in order");
	}
	for (at = 0; at < 64; at++) {
		receive(&pair.other, &got);
		require(got.idx == 100 + at && got.len == 64 && got.offset == 256, "received in order");
		require((uint64_t)data_of(&pair.other, &got)[63] == at, "each is the one");
	}
	check(1, "all in order");
	check(!get(&pair.one.tx, &got) && !get(&pair.other.rx, &got), "and no more");
}

/* What has no room is not lost: the kick says so, and a poll waits for room. */
static void
no_room(void)
{
	struct v4 one = v4_open(own("p${1")), other = v4_open(own("p$}1"));
	struct tpacket4_desc desc = frame_of(0, 64, 0), got = desc;
	unsigned int sent = 0, back = 0, received = 0;
	int result = 0;

	build(&one, &desc);
	while (result == 0) {
		require(sent < 100000, "a pipe has an end");
		while (one.tx.avail - one.tx.used < DESCS) {
			put(&one.tx, desc);
			sent++;
		}
		result = kick(&one);
		while (get(&one.tx, &got))
			back++;
	}
	check(result == -1 && errno == EAGAIN, "no room");
	check(back < sent, "%u of %u are under way", back, sent);
	fill(&other, 0, DESCS / 2);
	while (received < sent) {
		receive(&other, &got);
		require(got.error == 0 && got.len == 64, "a packet");
		received++;
		put(&other.rx, frame_of(got.idx, 0, 0));
		if (back < sent) {
			kick(&one);
			while (get(&one.tx, &got))
				back++;
		}
	}
	check_number(received, sent, "all have come");
	check_number(back, sent, "and are back");
}

static void
statistics(void)
{
	struct pair pair = pair_open();
	struct tpacket4_desc desc = frame_of(1, 64, 0), got = desc;
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);

	fill(&pair.other, 0, 8);
	build(&pair.one, &desc);
	for (int n = 0; n < 3; n++) {
		send_one(&pair.one, desc);
		receive(&pair.other, &got);
	}
	check_call(getsockopt(pair.other.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0, "counters");
	check(stats.tp_packets == 3 && stats.tp_drops == 0, "count packets");
	check_call(getsockopt(pair.other.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0, "counters");
	check(stats.tp_packets == 0, "since the last time");
}

/* The pages of a mapping that has so many neighbours of other access that the kernel makes no more. */
static char *
crowd(size_t *len)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned long most = 0;
	char *pages;

	require(file != NULL && fscanf(file, "%lu", &most) == 1, "how many mappings there may be");
	fclose(file);
	*len = 2 * (most + 2) * 4096;
	pages = mmap(NULL, *len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	require(pages != MAP_FAILED, "addresses");
	for (size_t at = 4096; at < *len; at += 8192)
		if (mprotect(pages + at, 4096, PROT_READ) != 0)
			return pages;
	require(0, "there is an end to them");
	return pages;
}

/* Memory that the kernel does not unmap stays in use. */
static void
kept(void)
{
	size_t size = FRAMES * FRAME_SIZE, len;
	char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *pages;
	struct v4 one = v4_open(own("vale$:a")), other = v4_open_on(own("vale$:b"), area);
	struct tpacket4_desc desc = frame_of(3, 64, 0), got;

	build(&one, &desc);
	pages = crowd(&len);
	/* Two mappings would be left, and one of another access between them. */
	check_call(munmap(area + size / 2, 4096), ENOMEM, "a page in the midst");
	check_call(mmap(area + size / 2, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		   MAP_FAILED ? -1 : 0, ENOMEM, "a mapping in its place");
	munmap(pages, len);
	put(&other.rx, frame_of(4, 0, 0));
	send_one(&one, desc);
	receive(&other, &got);
	check(got.idx == 4 && got.len == 64, "a packet comes into it");
	build(&other, &desc);
	fill(&one, 5, 1);
	send_one(&other, desc);
	receive(&one, &got);
	check_number(got.len, 64, "and goes from there");
	check(mremap(area, size, size - 4096, 0) == area, "what is cut");
	check_call(kick(&other), ENXIO, "is unmapped");
	check(await(&other, POLLIN, -1) & POLLERR, "and nothing will come");
	munmap(area, size - 4096);
	other.area = NULL;
	v4_close(&other);
	v4_close(&one);
}

/* Memory goes before the sockets: nothing comes into it and nothing goes from there, and other memory is as good. */
static void
unmapped(void)
{
	static char other_area[FRAMES * FRAME_SIZE] __attribute__((aligned(4096)));
	void *area = mmap(NULL, sizeof(other_area), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct v4 one = v4_open(own("vale$:a")), other = v4_open_on(own("vale$:b"), area);
	struct tpacket4_desc desc = frame_of(3, 64, 0), got;
	int memory;

	put(&other.rx, frame_of(1, 0, 0));
	put(&other.rx, frame_of(2, 0, 0));
	build(&one, &desc);
	send_one(&one, desc);
	receive(&other, &got);
	check_number(got.len, 64, "a packet comes");
	returned(&one, 3, 0, "from the other's frame");
	check_call(mmap(area, sizeof(other_area), PROT_READ, MAP_PRIVATE | MAP_FIXED, 9999, 0) == MAP_FAILED ? -1 : 0,
		   EBADF, "a mapping in its place is refused");
	put(&other.rx, frame_of(4, 0, 0));
	send_one(&one, desc);
	receive(&other, &got);
	check_number(got.len, 64, "and the next packet comes");
	check_call(munmap((char *)area + sizeof(other_area) - 4096, 4096), 0, "a page goes");
	check_call(munmap(area, sizeof(other_area)), 0, "and then all");
	check_call(kick(&other), ENXIO, "there is nothing to send");
	check(await(&other, POLLIN, -1) & POLLERR, "and nothing will come");
	returned(&one, 3, 0, "the other's frame");
	send_one(&one, desc);
	returned(&one, 3, 0, "it sends what nobody gets");
	munmap(other.rx.ring, 2 * DESCS * sizeof(struct tpacket4_desc));
	check_call(v4_ring(other.fd, PACKET_RX_RING, other.fd, 0), 0, "the ring goes");
	check_call(v4_ring(other.fd, PACKET_TX_RING, other.fd, 0), 0, "the other, too");
	memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	check_call(v4_register(memory, other_area, sizeof(other_area)), 0, "other memory");
	check_call(v4_ring(other.fd, PACKET_RX_RING, memory, DESCS), 0, "a ring on it");
	other.rx.ring = mmap(NULL, DESCS * sizeof(desc), PROT_READ | PROT_WRITE, MAP_SHARED, other.fd, 0);
	require(other.rx.ring != MAP_FAILED, "maps the ring");
	other.rx.avail = other.rx.used = 0;
	other.area = other_area;
	put(&other.rx, frame_of(5, 0, 0));
	send_one(&one, desc);
	receive(&other, &got);
	check(got.idx == 5 && got.len == 64, "a packet comes into it");
	munmap(other.rx.ring, DESCS * sizeof(desc));
	close(other.fd);
	close(memory);
	v4_close(&one);
}

ON_PIPE(order)
ON_PIPE(validation)
ON_PIPE(long_packet)
ON_PIPE(noise)
ON_PIPE(events)

static const struct test_case cases[] = {
	{ "V4-RING-1", "order", order },
	{ "V4-RING-2", "descriptors that are not good", validation },
	{ "V4-RING-3", "long packets", long_packet },
	{ "V4-RING-4", "noise", noise },
	{ "V4-RING-5", "events", events },
	{ "V4-RING-1", "order, on a pipe", order_on_pipe },
	{ "V4-RING-2", "descriptors that are not good, on a pipe", validation_on_pipe },
	{ "V4-RING-3", "long packets, on a pipe", long_packet_on_pipe },
	{ "V4-RING-4", "noise, on a pipe", noise_on_pipe },
	{ "V4-RING-5", "events, on a pipe", events_on_pipe },
	{ "V4-RING-6", "no room", no_room },
	{ "V4-RING-7", "statistics", statistics },
	{ "V4-RING-8", "memory goes first", unmapped },
	{ "V4-RING-8", "memory stays", kept },
};

CHAPTER(cases)
