/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pipes: what each end sees of the other's slots (S-PIPE-*).
 *
 * usage: pipe_rules [PARENT [14|15]]
 */
#include "port.h"

static const char *parent = "vale9:p";

/* PARENT{ID or PARENT}ID */
static const char *
end_name(char side, const char *id)
{
	static char name[2][NETMAP_REQ_IFNAMSIZ];
	char *out = name[side == '{'];

	snprintf(out, sizeof(name[0]), "%s%c%s", parent, side, id);
	return out;
}

static void
send_frames(const struct port *from, uint32_t first, uint32_t count)
{
	while (count--)
		port_put(from, mac_of(2), mac_of(1), first++);
	port_txsync(from);
}

/* Takes count frames with numbers from first on; tells whether all came. */
static int
take_frames(const struct port *to, uint32_t first, uint32_t count)
{
	for (; count--; first++)
		if (port_take(to) != first)
			return 0;
	return 1;
}

static uint32_t
tx_room(const struct port *port)
{
	port_txsync(port);
	return nm_ring_space(port_tx(port));
}

static uint32_t
rx_count(const struct port *port)
{
	port_rxsync(port);
	return nm_ring_space(port_rx(port));
}

static void
test_arithmetic(const struct port *from, const struct port *to,
		const char *direction)
{
	uint32_t all = port_tx(from)->num_slots - 1;

	printf("# %s\n", direction);
	check_number(tx_room(from), all, "S-PIPE-7 a new ring has n-1 slots");
	send_frames(from, 0, 10);
	check_number(nm_ring_space(port_tx(from)), all - 10,
		     "S-PIPE-7 10 sent, 10 missing");
	check_number(rx_count(to), 10, "S-PIPE-7 the peer has 10");
	check(take_frames(to, 0, 7), "S-PIPE-7 the first 7 are intact");
	check_number(tx_room(from), all - 10,
		     "S-PIPE-7 taken without a sync is not released");
	port_rxsync(to);
	check_number(tx_room(from), all - 3, "S-PIPE-7 7 released, 3 missing");
	check(take_frames(to, 7, 3), "S-PIPE-7 the other 3 are intact");
	port_rxsync(to);
	check_number(tx_room(from), all, "S-PIPE-7 all released");
	check_number(rx_count(to), 0, "S-PIPE-7 nothing is left");
}

/* A sender with a full ring is stopped, and nothing is lost. */
static void
test_full(const struct port *from, const struct port *to)
{
	uint32_t all = port_tx(from)->num_slots - 1;

	send_frames(from, 100, all);
	check_number(tx_room(from), 0, "S-PIPE-7 n-1 sent, no room");
	check_number(wait_events(from->fd, POLLOUT, 0), 0,
		     "S-PIPE-7 no POLLOUT on a full ring");
	check_number(rx_count(to), all, "S-PIPE-7 the peer has n-1");
	check(take_frames(to, 100, 1), "S-PIPE-7 the oldest comes first");
	port_rxsync(to);
	check_number(wait_events(from->fd, POLLOUT, PATIENCE_MS), POLLOUT,
		     "S-PIPE-10 one released: POLLOUT");
	check_number(nm_ring_space(port_tx(from)), 1,
		     "S-PIPE-7 room for one");
	check(take_frames(to, 101, all - 1), "S-PIPE-7 nothing was dropped");
	port_rxsync(to);
	check_number(tx_room(from), all, "S-PIPE-7 all released again");
}

/* S-PIPE-7: a packet becomes visible when it is complete. */
static void
test_incomplete(const struct port *from, const struct port *to)
{
	struct netmap_ring *ring = port_tx(from);
	struct netmap_ring *rx = port_rx(to);
	uint32_t at = ring->head;

	port_put(from, mac_of(2), mac_of(1), 1);
	ring->slot[at].flags = NS_MOREFRAG;
	port_txsync(from);
	check_number(rx_count(to), 0, "S-PIPE-7 half a packet is not visible");
	send_frames(from, 2, 1);
	check_number(rx_count(to), 2, "S-PIPE-7 the whole packet is");
	check(rx->slot[rx->head].flags & NS_MOREFRAG,
	      "S-PIPE-9 NS_MOREFRAG travels");
	check(take_frames(to, 1, 2), "S-PIPE-7 and is intact");
	port_rxsync(to);
	port_txsync(from);
}

/* S-PIPE-9: buffers, lengths and ptr travel; so does NS_BUF_CHANGED. */
static void
test_buffers(const struct port *from, const struct port *to)
{
	struct netmap_ring *tx = port_tx(from), *rx = port_rx(to);
	uint32_t sent[3], first = tx->head, extra, next, i;
	struct netmap_slot *slot;
	int same = 1;

	check_number(from->reg.nr_mem_id, to->reg.nr_mem_id,
		     "S-PIPE-5 both ends are in one region");
	for (i = 0; i < 3; i++) {
		slot = &tx->slot[tx->head];
		sent[i] = slot->buf_idx;
		port_put(from, mac_of(2), mac_of(1), i);
		slot->ptr = 1000 + i;
	}
	port_txsync(from);
	check_number(rx_count(to), 3, "S-PIPE-9 three arrive");
	for (i = 0; i < 3; i++) {
		slot = &rx->slot[(rx->head + i) % rx->num_slots];
		same &= slot->buf_idx == sent[i] && slot->ptr == 1000 + i &&
			slot->len == FRAME_SIZE;
	}
	check(same, "S-PIPE-9 the receiver sees buf_idx, len and ptr as sent");

	/* The receiver keeps the middle buffer and gives an extra one. */
	extra = to->nifp->ni_bufs_head;
	require(extra != 0, "an extra buffer was granted");
	memcpy(&next, NETMAP_BUF(rx, extra), sizeof(next));
	to->nifp->ni_bufs_head = next;
	slot = &rx->slot[(rx->head + 1) % rx->num_slots];
	slot->buf_idx = extra;
	slot->flags |= NS_BUF_CHANGED;
	ring_advance(rx, 3);
	port_rxsync(to);
	port_txsync(from);
	for (i = 0; i < 3; i++) {
		slot = &tx->slot[(first + i) % tx->num_slots];
		check_number(slot->buf_idx, i == 1 ? extra : sent[i],
			     "S-PIPE-9 the sender gets back what was released");
		check_number(slot->flags & NS_BUF_CHANGED,
			     i == 1 ? NS_BUF_CHANGED : 0,
			     "S-PIPE-9 NS_BUF_CHANGED where it was replaced");
	}
	/* The kept buffer goes to the list that is freed at the end. */
	next = to->nifp->ni_bufs_head;
	memcpy(NETMAP_BUF(rx, sent[1]), &next, sizeof(next));
	to->nifp->ni_bufs_head = sent[1];
}

/* S-PIPE-8: one end may come and go. */
static void
test_reopen(const struct port *master, struct port *slave)
{
	uint32_t all = port_tx(master)->num_slots - 1;

	send_frames(master, 0, 5);
	port_close(slave);
	check_number(wait_events(master->fd, POLLIN, 0), 0,
		     "S-PIPE-8 no hang-up is signalled");
	send_frames(master, 5, 15);
	check_number(tx_room(master), all - 20,
		     "S-PIPE-8 sending goes on after the peer has closed");
	*slave = port_open(end_name('}', "1"));
	check_number(rx_count(slave), 20, "S-PIPE-8 reopened: all 20 are there");
	check(take_frames(slave, 0, 20), "S-PIPE-8 and intact");
	port_rxsync(slave);
	check_number(tx_room(master), all, "S-PIPE-8 the pair goes on");
	send_frames(slave, 200, 3);
	check(take_frames(master, 200, 3), "S-PIPE-8 in the other direction");
	port_rxsync(master);
}

/* S-PIPE-8: the peer need not be there yet; at the end both are gone. */
static void
test_unopened_peer(void)
{
	struct port master = port_open(end_name('{', "2")), slave;
	uint32_t all = port_tx(&master)->num_slots - 1;

	send_frames(&master, 0, all);
	check_number(tx_room(&master), 0,
		     "S-PIPE-8 n-1 slots queue without a peer");
	slave = port_open(end_name('}', "2"));
	check(take_frames(&slave, 0, all), "S-PIPE-8 the peer gets them all");
	port_rxsync(&slave);
	send_frames(&master, 7, 1);
	port_close(&master);
	check(take_frames(&slave, 7, 1), "S-PIPE-8 the last one as well");
	port_close(&slave);

	master = port_open(end_name('{', "2"));
	check_number(rx_count(&master), 0, "S-PIPE-8 a new pair is empty");
	check_number(tx_room(&master), all, "S-PIPE-8 in both directions");
	port_close(&master);
}

/* S-PIPE-4: counts describe the master, even when the slave asks. */
static void
test_counts(void)
{
	struct nmreq_register reg = register_all();
	struct port master, slave;

	reg.nr_tx_slots = 128;
	reg.nr_rx_slots = 256;
	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 1;
	slave = port_open_as(end_name('}', "3"), reg);
	master = port_open(end_name('{', "3"));
	check(master.reg.nr_tx_slots == 128 && master.reg.nr_rx_slots == 256,
	      "S-PIPE-4 slots of the master (got tx %u, rx %u)",
	      master.reg.nr_tx_slots, master.reg.nr_rx_slots);
	check(slave.reg.nr_tx_slots == 256 && slave.reg.nr_rx_slots == 128,
	      "S-PIPE-4 slots of the slave (got tx %u, rx %u)",
	      slave.reg.nr_tx_slots, slave.reg.nr_rx_slots);
	check(master.reg.nr_tx_rings == 2 && master.reg.nr_rx_rings == 1,
	      "S-PIPE-4 rings of the master");
	check(slave.reg.nr_tx_rings == 1 && slave.reg.nr_rx_rings == 2,
	      "S-PIPE-4 rings of the slave");
	check(master.reg.nr_host_tx_rings == 0 &&
	      master.reg.nr_host_rx_rings == 0, "S-PIPE-6 no host rings");
	port_close(&master);
	port_close(&slave);
}

int
main(int argc, char **argv)
{
	struct nmreq_register reg = register_all();
	struct port master, slave;

	if (argc > 1)
		parent = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	reg.nr_extra_bufs = 2;
	master = port_open_as(end_name('{', "1"), reg);
	slave = port_open_as(end_name('}', "1"), reg);

	test_arithmetic(&master, &slave, "master to slave");
	test_arithmetic(&slave, &master, "slave to master");
	test_full(&master, &slave);
	test_full(&slave, &master);
	test_incomplete(&master, &slave);
	test_buffers(&master, &slave);
	test_buffers(&slave, &master);
	test_reopen(&master, &slave);
	test_unopened_peer();
	test_counts();

	port_close(&master);
	port_close(&slave);
	return check_result();
}
