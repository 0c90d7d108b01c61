/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of netmap's API, which knows nothing of Ringway: the loops of
 * pkt-gen. It polls, fills or reads the slots that there are, a burst at most,
 * and polls again; the sender hands over by ioctl what it has filled. The
 * reflector exchanges buffers of its two rings, and the addresses of packets.
 *
 * usage: netmap CPU tx|rx|l2fwd PORT BYTES BURST touched|untouched
 */
#include "role.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>

#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

/* Packets that are written whole at first: by then every buffer has one in it. */
#define WRITTEN	(1u << 18)

struct loop {
	struct nm_desc *port;
	char packet[2048];
	uint32_t length, burst, written;
	int touched;
};

static uint64_t
transmit(void *data)
{
	struct loop *loop = (struct loop *)data;
	struct netmap_ring *ring = NETMAP_TXRING(loop->port->nifp, loop->port->first_tx_ring);
	struct pollfd wait = { loop->port->fd, POLLOUT, 0 };
	uint32_t room, at, left;

	if (poll(&wait, 1, NAP_MS) < 0 && errno != EINTR)
		fail("poll");
	room = nm_ring_space(ring);
	room = room < loop->burst ? room : loop->burst;
	for (at = ring->head, left = room; left > 0; left--, at = nm_ring_next(ring, at)) {
		struct netmap_slot *slot = &ring->slot[at];

		if (loop->touched || loop->written < WRITTEN) {
			loop->written++;
			nm_pkt_copy(loop->packet, NETMAP_BUF(ring, slot->buf_idx), (int)loop->length);
		}
		slot->len = (uint16_t)loop->length;
		slot->flags = 0;
	}
	ring->head = ring->cur = at;
	if (ioctl(loop->port->fd, NIOCTXSYNC, NULL) != 0)
		fail("NIOCTXSYNC");
	return room;
}

static uint64_t
receive(void *data)
{
	struct loop *loop = (struct loop *)data;
	struct netmap_ring *ring = NETMAP_RXRING(loop->port->nifp, loop->port->first_rx_ring);
	struct pollfd wait = { loop->port->fd, POLLIN, 0 };
	uint32_t there, at, left;

	if (poll(&wait, 1, NAP_MS) < 0 && errno != EINTR)
		fail("poll");
	there = nm_ring_space(ring);
	there = there < loop->burst ? there : loop->burst;
	for (at = ring->head, left = there; left > 0; left--, at = nm_ring_next(ring, at)) {
		const struct netmap_slot *slot = &ring->slot[at];

		if (loop->touched)
			role_read(NETMAP_BUF(ring, slot->buf_idx), slot->len);
	}
	ring->head = ring->cur = at;
	return there;
}

static uint64_t
forward(void *data)
{
	struct loop *loop = (struct loop *)data;
	struct netmap_ring *rx = NETMAP_RXRING(loop->port->nifp, loop->port->first_rx_ring);
	struct netmap_ring *tx = NETMAP_TXRING(loop->port->nifp, loop->port->first_tx_ring);
	struct pollfd wait = { loop->port->fd, nm_ring_empty(tx) ? POLLOUT : POLLIN, 0 };
	uint32_t count, from, to, left;

	if (poll(&wait, 1, NAP_MS) < 0 && errno != EINTR)
		fail("poll");
	count = nm_ring_space(rx) < nm_ring_space(tx) ? nm_ring_space(rx) : nm_ring_space(tx);
	count = count < loop->burst ? count : loop->burst;
	for (from = rx->head, to = tx->head, left = count; left > 0; left--) {
		struct netmap_slot *in = &rx->slot[from], *out = &tx->slot[to];
		char *packet = NETMAP_BUF(rx, in->buf_idx), address[6];
		uint32_t buffer = out->buf_idx;

		memcpy(address, packet, 6);
		memcpy(packet, packet + 6, 6);
		memcpy(packet + 6, address, 6);
		out->buf_idx = in->buf_idx;
		out->len = in->len;
		in->buf_idx = buffer;
		in->flags = out->flags = NS_BUF_CHANGED;
		from = nm_ring_next(rx, from);
		to = nm_ring_next(tx, to);
	}
	rx->head = rx->cur = from;
	tx->head = tx->cur = to;
	if (count > 0 && ioctl(loop->port->fd, NIOCTXSYNC, NULL) != 0)
		fail("NIOCTXSYNC");
	return count;
}

/* Lets a switch learn where a receiver is: its address is that to which is sent. */
static void
introduce(struct loop *loop)
{
	char frame[60] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1 };

	if (!nm_inject(loop->port, frame, sizeof(frame)) ||
	    ioctl(loop->port->fd, NIOCTXSYNC, NULL) != 0)
		fail("the introduction");
}

int
main(int argc, char **argv)
{
	static struct loop loop;

	if (argc != 7) {
		fprintf(stderr, "usage: netmap CPU tx|rx|l2fwd PORT BYTES BURST touched|untouched\n");
		return 2;
	}
	loop.length = (uint32_t)atoi(argv[4]);
	loop.burst = (uint32_t)atoi(argv[5]);
	loop.touched = strcmp(argv[6], "touched") == 0;
	if (loop.length < 14 || loop.length > sizeof(loop.packet) || loop.burst == 0)
		return 2;
	loop.port = nm_open(argv[3], NULL, 0, NULL);
	if (!loop.port)
		fail(argv[3]);
	memset(loop.packet, 0x5a, sizeof(loop.packet));
	memcpy(loop.packet, "\2\0\0\0\0\1\2\0\0\0\0\x9\x88\xb5", 14);
	if (strcmp(argv[2], "tx") == 0) {
		role_run(argv[1], transmit, &loop);
	} else if (strcmp(argv[2], "l2fwd") == 0) {
		role_run(argv[1], forward, &loop);
	} else {
		if (strncmp(argv[3], "vale", 4) == 0 && !strpbrk(argv[3], "{}"))
			introduce(&loop);
		role_run(argv[1], receive, &loop);
	}
	nm_close(loop.port);
	return 0;
}
