/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends numbered frames, and stays until the port has taken the last one.
 *
 * usage: sender [-b BATCH] [-l BYTES] [-d MAC] [-s MAC] [-f FIRST] PORT COUNT
 *
 * Prints one JSON line. The exit status is 0 when all were sent and taken.
 */
#include "port.h"

static struct mac
mac_parse(const char *text)
{
	struct mac mac;
	unsigned byte[6];
	int i;

	require(sscanf(text, "%x:%x:%x:%x:%x:%x", &byte[0], &byte[1],
		       &byte[2], &byte[3], &byte[4], &byte[5]) == 6,
		"\"%s\" is not a MAC address", text);
	for (i = 0; i < 6; i++)
		mac.byte[i] = (uint8_t)byte[i];
	return mac;
}

/* Waits for the consumer; returns the slots that it has not given back. */
static uint32_t
drain(const struct port *port)
{
	struct netmap_ring *ring = port_tx(port);
	int turns;

	/* POLLOUT says that there is room, not that there is nothing left. */
	for (turns = 0; turns < PATIENCE_MS; turns++) {
		port_txsync(port);
		if (!nm_tx_pending(ring))
			return 0;
		poll(NULL, 0, 1);
	}
	return ring->num_slots - 1 - nm_ring_space(ring);
}

int
main(int argc, char **argv)
{
	uint32_t batch = 64, length = FRAME_SIZE, first = 0, left, pending;
	struct mac to = broadcast, from = mac_of(1);
	uint64_t count, sent = 0;
	struct netmap_ring *ring;
	struct port port;
	int option;

	while ((option = getopt(argc, argv, "b:l:d:s:f:")) != -1) {
		switch (option) {
		case 'b': batch = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'l': length = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'd': to = mac_parse(optarg); break;
		case 's': from = mac_parse(optarg); break;
		case 'f': first = (uint32_t)strtoul(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	require(argc - optind == 2, "usage: sender [-b BATCH] [-l BYTES] "
		"[-d MAC] [-s MAC] [-f FIRST] PORT COUNT");
	count = strtoull(argv[optind + 1], NULL, 0);
	port = port_open(argv[optind]);
	ring = port_tx(&port);
	require(batch > 0 && length >= FRAME_MIN &&
		length <= ring->nr_buf_size, "BATCH or BYTES out of range");

	while (sent < count) {
		if (nm_ring_empty(ring))
			wait_events(port.fd, POLLOUT, PATIENCE_MS);
		if (nm_ring_empty(ring))
			break;
		for (left = batch; left && sent < count &&
		     !nm_ring_empty(ring); left--, sent++) {
			struct netmap_slot *slot = &ring->slot[ring->head];

			slot->len = (uint16_t)length;
			slot->flags = 0;
			frame_fill(NETMAP_BUF(ring, slot->buf_idx), length,
				   to, from, first + (uint32_t)sent);
			ring_advance(ring, 1);
		}
		port_txsync(&port);
	}
	pending = drain(&port);
	printf("{\"port\": \"%s\", \"sent\": %llu, \"pending\": %u}\n",
	       argv[optind], (unsigned long long)sent, pending);
	port_close(&port);
	return sent == count && pending == 0 ? 0 : 1;
}
