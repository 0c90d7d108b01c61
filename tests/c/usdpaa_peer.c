/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The far end of a reflector: sends IPv4 frames of several flows and sizes, and each has to come back once, its
 * addresses exchanged and nothing else changed, and in the order of its flow. Of every eight frames one is ARP, which no
 * reflector sends back.
 *
 * usage: usdpaa_peer PORT COUNT
 *
 * Sends no more at once than a ring holds.
 */
#include "port.h"

#define FLOWS 5
#define WINDOW 64
#define HEADERS 38

static uint8_t
byte_of(uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + at);
}

static uint32_t
length_of(uint32_t number)
{
	return 60 + number * 37 % 1440;
}

static int
is_arp(uint32_t number)
{
	return number % 8 == 7;
}

/* A frame; `back` as it comes back. */
static uint32_t
build(uint8_t *frame, uint32_t number, int back)
{
	static const uint8_t there[] = { 2, 'r', 'w', 0, 0, 1, 2, 'r', 'w', 0, 0, 2 };
	uint32_t length = length_of(number), i;
	uint8_t flow = (uint8_t)(number % FLOWS);
	uint8_t from[4] = { 10, 0, flow, 1 }, to[4] = { 10, 1, flow, 2 };

	memcpy(frame, back ? there + 6 : there, 6);
	memcpy(frame + 6, back ? there : there + 6, 6);
	for (i = 12; i < length; i++)
		frame[i] = byte_of(number, i);
	frame[12] = 8;
	frame[13] = is_arp(number) ? 6 : 0;
	frame[14] = 0x45;
	memset(frame + 20, 0, 2);
	frame[23] = 17;
	memcpy(frame + 26, back ? to : from, 4);
	memcpy(frame + 30, back ? from : to, 4);
	memcpy(frame + HEADERS, &number, sizeof(number));
	return length;
}

static int
is_back(const uint8_t *frame, uint32_t length, uint32_t *number)
{
	uint8_t expected[2048];

	if (length < 60)
		return 0;
	memcpy(number, frame + HEADERS, sizeof(*number));
	return length == build(expected, *number, 1) && memcmp(frame, expected, length) == 0;
}

int
main(int argc, char **argv)
{
	uint32_t count, sent = 0, expected = 0, back = 0, wrong = 0, foreign = 0, next[FLOWS];
	struct netmap_ring *tx, *rx;
	struct port port;
	int i;

	require(argc == 3, "usage: usdpaa_peer PORT COUNT");
	count = (uint32_t)strtoul(argv[2], NULL, 0);
	port = port_open(argv[1]);
	tx = port_tx(&port);
	rx = port_rx(&port);
	for (i = 0; i < FLOWS; i++)
		next[i] = 0;
	while (sent < count || back < expected) {
		while (sent < count && expected - back < WINDOW && !nm_ring_empty(tx)) {
			struct netmap_slot *slot = &tx->slot[tx->head];

			slot->flags = 0;
			slot->len = (uint16_t)build((uint8_t *)NETMAP_BUF(tx, slot->buf_idx), sent, 0);
			expected += !is_arp(sent++);
			ring_advance(tx, 1);
		}
		port_txsync(&port);
		if (nm_ring_empty(rx) && back < expected)
			require(wait_events(port.fd, POLLIN, PATIENCE_MS) & POLLIN, "%u of %u are back", back, expected);
		while (!nm_ring_empty(rx)) {
			struct netmap_slot *slot = &rx->slot[rx->head];
			const uint8_t *frame = (const uint8_t *)NETMAP_BUF(rx, slot->buf_idx);
			uint32_t number;

			if (slot->len >= 60 && !memcmp(frame, "\2rw\0\0\2", 6)) {
				if (!is_back(frame, slot->len, &number) || number >= sent) {
					wrong++;
				} else {
					wrong += number < next[number % FLOWS];
					next[number % FLOWS] = number + 1;
				}
				back++;
			} else {
				foreign++;
			}
			ring_advance(rx, 1);
		}
	}
	/* Nothing may come beside those. */
	port_rxsync(&port);
	printf("sent %u back %u wrong %u\n", sent, back, wrong);
	check(back == expected && wrong == 0, "%u of %u are back, %u wrong, %u foreign", back, expected, wrong,
	      foreign);
	port_close(&port);
	return 0;
}
