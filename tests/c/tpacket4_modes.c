/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4 as the proposal's sample uses it: rxdrop, txpush and l2fwd, on
 * two interfaces that reach each other. Every packet has a number, and bytes
 * that follow from it.
 *
 * tpacket4_modes ONE OTHER poll|spin PACKETS
 */
#include "tpacket4.h"

#define BATCH	32
#define LENGTH	100
#define TYPE	0x88b5

static int spins;

static void
build(char *data, uint32_t number, char from, char to)
{
	static const char type[2] = { (char)(TYPE >> 8), (char)(TYPE & 0xff) };

	memset(data, 0, 12);
	data[0] = data[6] = 2;
	data[5] = to;
	data[11] = from;
	memcpy(data + 12, type, 2);
	memcpy(data + 14, &number, 4);
	for (int at = 18; at < LENGTH; at++)
		data[at] = (char)(number * 7 + at);
}

/* The number of a packet of ours that is whole, or -1. */
static long
number_of(const char *data, const struct tpacket4_desc *desc, char from, char to)
{
	char expected[LENGTH];
	uint32_t number;

	if (desc->len < LENGTH)
		return -1;
	memcpy(&number, data + 14, 4);
	build(expected, number, from, to);
	return memcmp(data, expected, LENGTH) == 0 ? (long)number : -1;
}

/* Is not over before something is received: with polls, or by looking alone. */
static void
receive(struct v4 *v4, struct tpacket4_desc *desc)
{
	for (int polls = 0; !get(&v4->rx, desc); polls++) {
		if (spins)
			continue;
		require(await(v4, POLLIN, 20000) == POLLIN, "something comes");
	}
	require(desc->error == 0, "received without error %d", desc->error);
}

/* Sends numbered packets, and gets their frames back. */
static void
send_numbers(struct v4 *v4, uint32_t first, unsigned int count, char from, char to)
{
	struct tpacket4_desc desc;
	unsigned int back = 0;

	for (unsigned int at = 0; at < count; at++) {
		desc = frame_of(FRAMES / 2 + at, LENGTH, 17);
		build(data_of(v4, &desc), first + at, from, to);
		put(&v4->tx, desc);
	}
	while (kick(v4) < 0)
		require(errno == EAGAIN || errno == ENOBUFS, "kick");
	while (back < count) {
		if (!get(&v4->tx, &desc)) {
			require(await(v4, POLLOUT, 20000) == POLLOUT, "frames come back");
			continue;
		}
		require(desc.error == 0, "sent without error %d", desc.error);
		back++;
	}
}

/* txpush on one, rxdrop on the other. */
static void
push_and_drop(struct v4 *from, struct v4 *to, uint32_t packets)
{
	struct tpacket4_desc desc;
	uint32_t number = 0, good = 0;

	while (number < packets) {
		send_numbers(from, number, BATCH, 1, 2);
		for (uint32_t end = number + BATCH; number < end;) {
			long got;

			receive(to, &desc);
			got = number_of(data_of(to, &desc), &desc, 1, 2);
			/* The interfaces may have something to say themselves. */
			if (got >= 0) {
				good += got == (long)number;
				number++;
			}
			put(&to->rx, frame_of(desc.idx, 0, 0));
		}
	}
	check_number(good, number, "rxdrop: all that txpush sends, in order");
}

/* Gets what comes, and sends it back with the addresses exchanged: the frame
 * goes from ring to ring. */
static unsigned int
reflect(struct v4 *v4, unsigned int count)
{
	struct tpacket4_desc desc, back;
	unsigned int done = 0;

	while (done < count) {
		char *data, address[6];

		receive(v4, &desc);
		data = data_of(v4, &desc);
		if (number_of(data, &desc, 1, 2) < 0) {
			put(&v4->rx, frame_of(desc.idx, 0, 0));
			continue;
		}
		memcpy(address, data, 6);
		memcpy(data, data + 6, 6);
		memcpy(data + 6, address, 6);
		put(&v4->tx, frame_of(desc.idx, desc.len, desc.offset));
		while (kick(v4) < 0)
			require(errno == EAGAIN || errno == ENOBUFS, "kick");
		while (!get(&v4->tx, &back))
			;
		require(back.error == 0 && back.idx == desc.idx, "the frame comes back");
		put(&v4->rx, frame_of(back.idx, 0, 0));
		done++;
	}
	return done;
}

static void
forward(struct v4 *from, struct v4 *by, uint32_t packets)
{
	struct tpacket4_desc desc;
	uint32_t number = 0, good = 0;

	while (number < packets) {
		send_numbers(from, number, BATCH, 1, 2);
		reflect(by, BATCH);
		for (uint32_t end = number + BATCH; number < end;) {
			char *data;
			uint32_t got;

			receive(from, &desc);
			data = data_of(from, &desc);
			memcpy(&got, data + 14, 4);
			if (desc.len >= LENGTH && data[12] == (char)(TYPE >> 8) && got < packets) {
				good += got == number && data[5] == 1 && data[11] == 2;
				number++;
			}
			put(&from->rx, frame_of(desc.idx, 0, 0));
		}
	}
	check_number(good, number, "l2fwd: all comes back, in order");
}

int
main(int argc, char **argv)
{
	struct v4 one, other;
	uint32_t packets;

	require(argc == 5, "arguments");
	spins = strcmp(argv[3], "spin") == 0;
	packets = (uint32_t)atoi(argv[4]);
	one = v4_open(argv[1]);
	other = v4_open(argv[2]);
	fill(&one, 0, FRAMES / 4);
	fill(&other, 0, FRAMES / 4);
	/* A switch learns where they are. */
	send_numbers(&other, packets, 1, 2, 1);
	push_and_drop(&one, &other, packets);
	forward(&one, &other, packets);
	v4_close(&one);
	v4_close(&other);
	return check_result();
}
