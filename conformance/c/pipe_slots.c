/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes: what travels through them (S-PIPE-6, 7, 9). */
#include "pipe.h"

static struct packet packet;

/* ---- S-PIPE-6: rings ---- */

static void
ring_meets_ring(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	uint32_t i, j;

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	ends = pipe_open_as(own("vale$:p"), "1", reg);
	for (i = 0; i < 3; i++)
		for (j = 0; j <= i; j++) {
			ring_put_frame(NETMAP_TXRING(ends.master.nifp, i),
				       broadcast, mac_of(1), i, 60, 60);
			ring_put_frame(NETMAP_TXRING(ends.slave.nifp, i),
				       broadcast, mac_of(2), 10 + i, 60, 60);
		}
	port_txsync(&ends.master);
	port_txsync(&ends.slave);
	port_rxsync(&ends.master);
	port_rxsync(&ends.slave);
	for (i = 0; i < 3; i++) {
		struct netmap_ring *rx = NETMAP_RXRING(ends.slave.nifp, i);

		check(nm_ring_space(rx) == i + 1 && ring_take(rx, &packet) &&
		      packet_sequence(&packet) == i,
		      "ring %u of the slave (got %u)", i, nm_ring_space(rx));
		rx = NETMAP_RXRING(ends.master.nifp, i);
		check(nm_ring_space(rx) == i + 1 && ring_take(rx, &packet) &&
		      packet_sequence(&packet) == 10 + i,
		      "ring %u of the master", i);
	}
	check(ends.master.reg.nr_host_tx_rings == 0 &&
	      ends.master.reg.nr_host_rx_rings == 0 &&
	      ends.slave.reg.nr_host_tx_rings == 0 &&
	      ends.slave.reg.nr_host_rx_rings == 0, "no host rings");
}

/* One descriptor for each ring. */
static void
ring_by_ring(void)
{
	struct nmreq_register reg = register_all();
	struct port master[2], slave;

	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	master[0] = port_open_as(own("c${1"), reg);
	reg.nr_ringid = 1;
	master[1] = port_open_as(own("c${1"), reg);
	slave = port_open(own("c$}1"));
	ring_put_frame(NETMAP_TXRING(master[1].nifp, 1), broadcast, mac_of(1),
		       5, 60, 60);
	port_txsync(&master[0]);
	port_rxsync(&slave);
	check(nm_ring_empty(NETMAP_RXRING(slave.nifp, 1)),
	      "not sent by the descriptor of another ring");
	port_txsync(&master[1]);
	port_rxsync(&slave);
	check(ring_take(NETMAP_RXRING(slave.nifp, 1), &packet) &&
	      packet_sequence(&packet) == 5, "sent by its own");
}

/* ---- S-PIPE-7: sending and releasing ---- */

static void
arithmetic_of(const struct port *from, const struct port *to)
{
	uint32_t all = port_tx(from)->num_slots - 1;

	check_number(tx_room(from), all, "a new ring has n-1 slots");
	send_frames(from, 0, 10);
	check_number(nm_ring_space(port_tx(from)), all - 10, "10 sent");
	check_number(rx_count(to), 10, "the peer has 10");
	check(take_frames(to, 0, 7), "the first 7 are intact");
	check_number(tx_room(from), all - 10, "taken, but not released");
	port_rxsync(to);
	check_number(tx_room(from), all - 3, "7 released, 3 missing");
	check(take_frames(to, 7, 3), "the other 3 are intact");
	port_rxsync(to);
	check_number(tx_room(from), all, "all released");
	check_number(rx_count(to), 0, "nothing is left");
}

static void
arithmetic(void)
{
	struct pipe_ends ends = pipe_open();

	arithmetic_of(&ends.master, &ends.slave);
	arithmetic_of(&ends.slave, &ends.master);
}

/* Around the ring, many times, with steps that do not divide it. */
static void
many_rounds(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	uint32_t sent = 0, i;

	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	ends = pipe_open_as(own("c$"), "1", reg);
	for (i = 0; i < 200; i++) {
		uint32_t step = i % 15 + 1;

		send_frames(&ends.master, sent, step);
		if (!take_frames(&ends.slave, sent, step))
			break;
		sent += step;
		port_rxsync(&ends.slave);
	}
	check_number(i, 200, "rounds without loss");
}

static void
full(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t all = port_tx(&ends.master)->num_slots - 1;

	send_frames(&ends.master, 100, all);
	check_number(tx_room(&ends.master), 0, "n-1 sent, no room");
	check_number(wait_events(ends.master.fd, POLLOUT, 0), 0,
		     "no POLLOUT on a full ring");
	check_number(rx_count(&ends.slave), all, "the peer has n-1");
	check(take_frames(&ends.slave, 100, 1), "the oldest first");
	port_rxsync(&ends.slave);
	check_number(wait_events(ends.master.fd, POLLOUT, PATIENCE_MS),
		     POLLOUT, "one released: POLLOUT");
	check_number(nm_ring_space(port_tx(&ends.master)), 1, "room for one");
	check(take_frames(&ends.slave, 101, all - 1), "nothing is lost");
}

static void
incomplete(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master);
	uint32_t i;

	send_frames(&ends.master, 1, 2);
	for (i = 0; i < 5; i++) {
		uint32_t at = tx->head;

		port_put(&ends.master, mac_of(2), mac_of(1), 3 + i);
		tx->slot[at].flags = NS_MOREFRAG;
		port_txsync(&ends.master);
		check_number(rx_count(&ends.slave), 2,
			     "only whole packets are visible");
	}
	send_frames(&ends.master, 8, 1);
	check_number(rx_count(&ends.slave), 8, "the whole packet");
	check(take_frames(&ends.slave, 1, 8), "all its slots");
}

/* A packet of as many slots as there are. */
static void
fragments(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t count;
	int good = 1;

	for (count = 2; count <= 64 && good; count += 3) {
		ring_put_frame(port_tx(&ends.master), broadcast, mac_of(1),
			       count, count * 100 - 7, 100);
		port_txsync(&ends.master);
		good = port_take_packet(&ends.slave, &packet) &&
		       packet.slots == count &&
		       packet_sequence(&packet) == count;
		port_rxsync(&ends.slave);
		check(good, "%u slots", count);
	}
}

/* head counts, not cur; cur may be ahead. */
static void
up_to_head(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master);

	port_put(&ends.master, mac_of(2), mac_of(1), 1);
	port_put(&ends.master, mac_of(2), mac_of(1), 2);
	tx->head = 1;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 1, "one of two");
	check(tx->head == 1 && tx->cur == 2, "head and cur are as set");
	tx->head = 2;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 2, "both");
}

/* ---- S-PIPE-9: slots travel whole ---- */

static void
slots_travel(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master),
			   *rx = port_rx(&ends.slave);
	struct netmap_slot sent[4];
	uint32_t i;
	int same = 1;

	for (i = 0; i < 4; i++) {
		tx->slot[i].len = (uint16_t)(i == 3 ? UINT16_MAX : i * 100);
		tx->slot[i].flags = (uint16_t)(i == 0 ? NS_REPORT :
			i == 1 ? NS_FORWARD | NS_NO_LEARN :
			i == 2 ? 5 << NS_PORT_SHIFT : 0);
		tx->slot[i].ptr = UINT64_MAX - i;
		sent[i] = tx->slot[i];
	}
	ring_advance(tx, 4);
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 4, "four arrive");
	for (i = 0; i < 4; i++)
		same &= memcmp(&rx->slot[i], &sent[i], sizeof(sent[i])) == 0;
	check(same, "buf_idx, len, flags and ptr as sent");
	for (i = 0; i < 4; i++) {
		rx->slot[i].len = (uint16_t)(7 + i);
		rx->slot[i].ptr = 1000 + i;
		sent[i] = rx->slot[i];
	}
	ring_advance(rx, 4);
	port_rxsync(&ends.slave);
	port_txsync(&ends.master);
	for (i = 0, same = 1; i < 4; i++)
		same &= memcmp(&tx->slot[i], &sent[i], sizeof(sent[i])) == 0;
	check(same, "and back as released");
}

/* A buffer that an end puts in place of another. */
static void
buffers_travel(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	struct netmap_ring *tx, *rx;
	uint32_t first, second, extra, next;

	reg.nr_extra_bufs = 2;
	ends.master = port_open_as(own("c${1"), reg);
	ends.slave = port_open_as(own("c$}1"), reg);
	tx = port_tx(&ends.master);
	rx = port_rx(&ends.slave);
	require(ends.master.reg.nr_extra_bufs == 2 &&
		ends.slave.reg.nr_extra_bufs == 2, "extra buffers");

	/* The sender sends an extra one, and keeps its own. */
	extra = ends.master.nifp->ni_bufs_head;
	memcpy(&next, NETMAP_BUF(tx, extra), sizeof(next));
	first = tx->slot[0].buf_idx;
	second = tx->slot[1].buf_idx;
	memcpy(NETMAP_BUF(tx, first), &next, sizeof(next));
	ends.master.nifp->ni_bufs_head = first;
	tx->slot[0].buf_idx = extra;
	port_put(&ends.master, mac_of(2), mac_of(1), 1);
	port_put(&ends.master, mac_of(2), mac_of(1), 2);
	tx->slot[0].flags = NS_BUF_CHANGED;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 2, "two arrive");
	check(!(tx->slot[0].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is cleared at the sender");
	check(rx->slot[0].buf_idx == extra && rx->slot[1].buf_idx == second,
	      "the buffers that were sent");
	check(rx->slot[0].flags == NS_BUF_CHANGED && rx->slot[1].flags == 0,
	      "NS_BUF_CHANGED travels (got %#x, %#x)", rx->slot[0].flags,
	      rx->slot[1].flags);

	/* The receiver keeps the second and gives an extra one. */
	extra = ends.slave.nifp->ni_bufs_head;
	memcpy(&next, NETMAP_BUF(rx, extra), sizeof(next));
	memcpy(NETMAP_BUF(rx, second), &next, sizeof(next));
	ends.slave.nifp->ni_bufs_head = second;
	rx->slot[0].flags = 0;
	rx->slot[1].buf_idx = extra;
	rx->slot[1].flags = NS_BUF_CHANGED;
	ring_advance(rx, 2);
	port_rxsync(&ends.slave);
	port_txsync(&ends.master);
	check(!(rx->slot[1].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is cleared at the receiver");
	check(tx->slot[1].buf_idx == extra &&
	      tx->slot[1].flags & NS_BUF_CHANGED,
	      "the sender gets what the receiver gave");
	check(!(tx->slot[0].flags & NS_BUF_CHANGED),
	      "and no flag where nothing was replaced");
}

static const struct test_case cases[] = {
	{ "S-PIPE-6", "ring meets ring", ring_meets_ring },
	{ "S-PIPE-6", "ring by ring", ring_by_ring },
	{ "S-PIPE-7", "the arithmetic", arithmetic },
	{ "S-PIPE-7", "many rounds", many_rounds },
	{ "S-PIPE-7", "a full ring", full },
	{ "S-PIPE-7", "incomplete packets", incomplete },
	{ "S-PIPE-7", "packets of many slots", fragments },
	{ "S-PIPE-7", "up to head", up_to_head },
	{ "S-PIPE-9", "slots travel whole", slots_travel },
	{ "S-PIPE-9", "buffers that were replaced", buffers_travel },
};

CHAPTER(cases)
