/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SYNC: NIOCTXSYNC and NIOCRXSYNC tell the port how far the program has come,
 * and the program how far the port has. Between two syncs nothing moves.
 */
#include "pair.h"

#include <sys/time.h>

static void
send_some(const struct pair *pair, uint32_t count)
{
	ring_advance(port_tx(&pair->from), count);
	port_txsync(&pair->from);
}

static void
release_some(const struct pair *pair, uint32_t count)
{
	port_rxsync(&pair->to);
	ring_advance(port_rx(&pair->to), count);
	port_rxsync(&pair->to);
}

/*
 * A fresh pair whose tx ring has r = sent at its last accepted sync, and a tail
 * t that leaves all slots free but those sent and not released.
 */
static struct pair
pair_at(uint32_t sent, uint32_t released)
{
	struct pair pair = pipe_pair();

	send_some(&pair, sent);
	release_some(&pair, released);
	port_txsync(&pair.from);
	return pair;
}

static void
a_sync_never_waits(void)
{
	struct pair pair = pipe_pair();

	send_some(&pair, SLOTS - 1);
	check_number(nm_ring_space(port_tx(&pair.from)), 0, "a full ring");
	check_call(ioctl(pair.from.fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	check_number(nm_ring_space(port_rx(&pair.from)), 0, "an empty one");
	check_call(ioctl(pair.from.fd, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
	check_call(ioctl(pair.from.fd, NIOCTXSYNC, (void *)8), 0,
		   "an argument is not looked at");
}

static void
a_sync_does_all_its_rings(void)
{
	struct nmreq_register reg = register_all();
	struct port from, to;
	uint32_t i;

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	from = port_open_as(own("p${1"), reg);
	to = port_open(own("p$}1"));
	for (i = 0; i < 3; i++)
		ring_advance(NETMAP_TXRING(from.nifp, i), i + 1);
	port_txsync(&from);
	for (i = 0; i < 3; i++)
		check_number(NETMAP_RXRING(to.nifp, i)->tail, 0,
			     "nothing is received without a sync");
	port_rxsync(&to);
	for (i = 0; i < 3; i++)
		check_number(NETMAP_RXRING(to.nifp, i)->tail, i + 1,
			     "every ring was sent and received");
}

static void
a_sync_does_no_other_rings(void)
{
	struct nmreq_register reg = register_all();
	struct port all, one, to;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	all = port_open_as(own("p${1"), reg);
	to = port_open(own("p$}1"));
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_ringid = 1;
	one = port_open_as(own("p${1"), reg);
	ring_advance(NETMAP_TXRING(all.nifp, 0), 1);
	ring_advance(NETMAP_TXRING(all.nifp, 1), 1);
	port_txsync(&one);
	port_rxsync(&to);
	check_number(NETMAP_RXRING(to.nifp, 1)->tail, 1, "the bound ring");
	check_number(NETMAP_RXRING(to.nifp, 0)->tail, 0, "not the other");
	port_txsync(&all);
	port_rxsync(&to);
	check_number(NETMAP_RXRING(to.nifp, 0)->tail, 1,
		     "until who has bound it syncs");
}

static void
directions_are_apart(void)
{
	struct pair pair = pipe_pair();

	send_some(&pair, 3);
	port_txsync(&pair.to);
	check_number(port_rx(&pair.to)->tail, 0,
		     "NIOCTXSYNC receives nothing");
	ring_advance(port_tx(&pair.to), 2);
	port_rxsync(&pair.to);
	check_number(port_rx(&pair.to)->tail, 3, "NIOCRXSYNC does");
	port_rxsync(&pair.from);
	check_number(port_rx(&pair.from)->tail, 0, "and sends nothing");
}

static void
syncs_that_fail(void)
{
	int fd = device_open();

	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO, "NIOCTXSYNC, unbound");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), ENXIO, "NIOCRXSYNC, unbound");
}

static void
syncs_in_csb_mode(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_opt_csb csb;
	char *mem = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = device_open();

	memset(&csb, 0, sizeof(csb));
	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	csb.csb_atok = (uintptr_t)mem;
	csb.csb_ktoa = (uintptr_t)(mem + 2048);
	reg.nr_flags = NR_EXCLUSIVE;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&csb), 0, "REGISTER with CSB");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), EBUSY, "NIOCTXSYNC");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), EBUSY, "NIOCRXSYNC");
}

static void
wrong_indices_do_not_fail_it(void)
{
	static const uint32_t wrong[] = { SLOTS, SLOTS + 1, 5000, UINT32_MAX };
	struct pair pair = pipe_pair();
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);
	size_t i;

	for (i = 0; i < COUNT(wrong); i++) {
		tx->head = wrong[i];
		check_call(ioctl(pair.from.fd, NIOCTXSYNC, NULL), 0,
			   line("tx head %u", wrong[i]));
		tx->cur = wrong[i];
		check_call(ioctl(pair.from.fd, NIOCTXSYNC, NULL), 0,
			   line("tx cur %u", wrong[i]));
		rx->head = wrong[i];
		check_call(ioctl(pair.to.fd, NIOCRXSYNC, NULL), 0,
			   line("rx head %u", wrong[i]));
		rx->cur = wrong[i];
		check_call(ioctl(pair.to.fd, NIOCRXSYNC, NULL), 0,
			   line("rx cur %u", wrong[i]));
	}
}

static void
failures_within_are_for_poll(void)
{
	struct port port = port_open(own("vale$:a")), monitor;

	check_number(wait_events(port.fd, POLLOUT, 0), POLLOUT, "a target");
	monitor = port_open_flags(own("vale$:a"), NR_MONITOR_TX);
	check_call(ioctl(monitor.fd, NIOCTXSYNC, NULL), 0,
		   "NIOCTXSYNC of a monitor, which cannot send");
	check_number(wait_events(monitor.fd, POLLOUT, 0) & POLLERR, POLLERR,
		     "poll says so");
}

static void
whose_slots(void)
{
	struct pair pair = pipe_pair();
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);

	check(!nm_tx_pending(tx) && !nm_ring_empty(tx), "at first all is free");
	send_some(&pair, 10);
	check(tx->head == 10 && tx->tail == SLOTS - 1,
	      "slots sent are the port's");
	check(nm_tx_pending(tx), "until they are released");
	port_rxsync(&pair.to);
	check(rx->head == 0 && rx->tail == 10, "the receiver has them now");
	ring_advance(rx, 4);
	port_txsync(&pair.from);
	check_number(tx->tail, SLOTS - 1, "moving head alone tells nobody");
	port_rxsync(&pair.to);
	check_number(tx->tail, SLOTS - 1, "nor does the other side's sync");
	port_txsync(&pair.from);
	check_number(tx->tail, 3, "both have synced: 4 are the sender's");
	send_some(&pair, nm_ring_space(tx));
	check(nm_ring_empty(tx), "head meets tail: full");
	port_rxsync(&pair.to);
	release_some(&pair, nm_ring_space(rx));
	port_txsync(&pair.from);
	check(!nm_tx_pending(tx), "nothing is pending when all came back");
}

/*
 * Which head and cur a tx ring of 16 slots takes: r is head at the last
 * accepted sync, t the tail that was published. Rows where both answers are
 * right are those of a defect that the rules name.
 */
enum answer { BAD, GOOD, EITHER };

static const struct {
	uint32_t sent, released;
	uint32_t head, cur;
	enum answer answer;
} tx_rows[] = {
	/* r 5, t 15 */
	{ 5, 0, 5, 5, GOOD }, { 5, 0, 5, 15, GOOD }, { 5, 0, 15, 15, GOOD },
	{ 5, 0, 9, 12, GOOD }, { 5, 0, 4, 5, BAD }, { 5, 0, 4, 4, BAD },
	{ 5, 0, 0, 0, BAD }, { 5, 0, 10, 9, BAD }, { 5, 0, 6, 0, BAD },
	{ 5, 0, 5, 4, BAD }, { 5, 0, 16, 16, BAD }, { 5, 0, 5, 16, BAD },
	{ 5, 0, 5, UINT32_MAX, BAD }, { 5, 0, UINT32_MAX, 5, BAD },
	/* r 0, t 15: a fresh ring */
	{ 0, 0, 0, 0, GOOD }, { 0, 0, 15, 15, GOOD }, { 0, 0, 0, 15, GOOD },
	{ 0, 0, 1, 0, BAD }, { 0, 0, 16, 0, BAD },
	/* r 15, t 15: full */
	{ 15, 0, 15, 15, GOOD }, { 15, 0, 14, 15, BAD },
	{ 15, 0, 0, 0, BAD }, { 15, 0, 15, 0, BAD },
	/* r 10, t 3: wrapped */
	{ 10, 4, 10, 10, GOOD }, { 10, 4, 15, 15, GOOD },
	{ 10, 4, 0, 0, GOOD }, { 10, 4, 3, 3, GOOD }, { 10, 4, 12, 2, GOOD },
	{ 10, 4, 12, 3, GOOD }, { 10, 4, 1, 3, GOOD }, { 10, 4, 15, 0, GOOD },
	{ 10, 4, 10, 3, GOOD }, { 10, 4, 2, 1, BAD }, { 10, 4, 2, 4, BAD },
	{ 10, 4, 4, 4, BAD }, { 10, 4, 9, 9, BAD }, { 10, 4, 7, 10, BAD },
	{ 10, 4, 12, 11, BAD }, { 10, 4, 12, 4, BAD }, { 10, 4, 3, 10, BAD },
	{ 10, 4, 16, 0, BAD }, { 10, 4, 12, 16, EITHER },
	{ 10, 4, 12, 70000, EITHER }, { 10, 4, 3, 16, BAD },
};

/* A ring with wrong indices is told by poll, with POLLERR (S-POLL-6). */
static void
tx_indices(void)
{
	size_t i;

	for (i = 0; i < COUNT(tx_rows); i++) {
		struct pair pair = pair_at(tx_rows[i].sent,
					   tx_rows[i].released);
		struct netmap_ring *tx = port_tx(&pair.from);
		short events;

		require(tx->head == tx_rows[i].sent &&
			tx->tail == (tx_rows[i].released + SLOTS - 1) % SLOTS,
			"the ring of row %zu", i);
		tx->head = tx_rows[i].head;
		tx->cur = tx_rows[i].cur;
		events = wait_events(pair.from.fd, POLLOUT, 0);
		check(tx_rows[i].answer == EITHER ||
		      (events & POLLERR) ==
		      (tx_rows[i].answer == BAD ? POLLERR : 0),
		      "r %u t %u: head %u cur %u: events 0x%x",
		      tx_rows[i].sent,
		      (tx_rows[i].released + SLOTS - 1) % SLOTS,
		      tx_rows[i].head, tx_rows[i].cur, (unsigned)events);
		if (tx_rows[i].answer == GOOD) {
			check(tx->head == tx_rows[i].head &&
			      tx->cur == tx_rows[i].cur,
			      "they stay as they are");
			port_rxsync(&pair.to);
			check_number(port_rx(&pair.to)->tail, tx->head,
				     "what was sent has arrived");
		}
		pair_close(&pair);
	}
}

/* The same for an rx ring: r is the consumer's index, t the ring's tail. */
static const struct {
	uint32_t lap, received;		/* r = lap, t = lap + received */
	uint32_t head, cur;
	enum answer answer;
} rx_rows[] = {
	/* r 4, t 10 */
	{ 4, 6, 4, 4, GOOD }, { 4, 6, 10, 10, GOOD }, { 4, 6, 4, 10, GOOD },
	{ 4, 6, 6, 8, GOOD }, { 4, 6, 3, 4, BAD }, { 4, 6, 3, 3, BAD },
	{ 4, 6, 11, 11, BAD }, { 4, 6, 4, 11, BAD }, { 4, 6, 6, 5, BAD },
	{ 4, 6, 4, 3, BAD }, { 4, 6, 16, 4, BAD }, { 4, 6, 4, 16, BAD },
	{ 4, 6, UINT32_MAX, UINT32_MAX, BAD },
	/* r 0, t 0: empty */
	{ 0, 0, 0, 0, GOOD }, { 0, 0, 1, 1, BAD }, { 0, 0, 0, 1, BAD },
	{ 0, 0, 15, 15, BAD },
	/* r 12, t 3: wrapped */
	{ 12, 7, 12, 12, GOOD }, { 12, 7, 15, 15, GOOD },
	{ 12, 7, 3, 3, GOOD }, { 12, 7, 14, 2, GOOD }, { 12, 7, 12, 3, GOOD },
	{ 12, 7, 0, 3, GOOD }, { 12, 7, 4, 4, BAD }, { 12, 7, 11, 11, BAD },
	{ 12, 7, 2, 1, BAD }, { 12, 7, 14, 13, BAD }, { 12, 7, 14, 4, BAD },
	{ 12, 7, 2, 4, BAD }, { 12, 7, 16, 0, BAD },
	{ 12, 7, 12, 16, EITHER },
};

static void
rx_indices(void)
{
	size_t i;

	for (i = 0; i < COUNT(rx_rows); i++) {
		struct pair pair = pipe_pair();
		struct netmap_ring *rx = port_rx(&pair.to);
		short events;

		send_some(&pair, rx_rows[i].lap);
		release_some(&pair, rx_rows[i].lap);
		port_txsync(&pair.from);
		send_some(&pair, rx_rows[i].received);
		port_rxsync(&pair.to);
		require(rx->head == rx_rows[i].lap &&
			rx->tail == (rx_rows[i].lap + rx_rows[i].received) %
			SLOTS, "the ring of row %zu", i);
		rx->head = rx_rows[i].head;
		rx->cur = rx_rows[i].cur;
		events = wait_events(pair.to.fd, POLLIN, 0);
		check(rx_rows[i].answer == EITHER ||
		      (events & POLLERR) ==
		      (rx_rows[i].answer == BAD ? POLLERR : 0),
		      "r %u t %u: head %u cur %u: events 0x%x",
		      rx_rows[i].lap,
		      (rx_rows[i].lap + rx_rows[i].received) % SLOTS,
		      rx_rows[i].head, rx_rows[i].cur, (unsigned)events);
		if (rx_rows[i].answer == GOOD)
			check(rx->head == rx_rows[i].head &&
			      rx->cur == rx_rows[i].cur,
			      "they stay as they are");
		pair_close(&pair);
	}
}

/* Not only what the ring says has been received: also what really has. */
static void
a_newer_tail_counts(void)
{
	struct pair pair = pipe_pair();
	struct netmap_ring *rx = port_rx(&pair.to);

	send_some(&pair, 2);
	port_rxsync(&pair.to);
	send_some(&pair, 3);
	check_number(rx->tail, 2, "3 more are there, and not published");
	rx->head = rx->cur = 4;
	check_number(wait_events(pair.to.fd, POLLIN, 0), POLLIN,
		     "a head among them is right");
	check(rx->head == 4 && rx->tail == 5, "head %u tail %u", rx->head,
	      rx->tail);
}

static void
cur_may_be_ahead(void)
{
	struct pair pair = pipe_pair();
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);

	send_some(&pair, 5);
	port_rxsync(&pair.to);
	rx->cur = 5;
	port_rxsync(&pair.to);
	port_txsync(&pair.from);
	check(rx->head == 0 && rx->cur == 5 && rx->tail == 5,
	      "cur at tail, head behind");
	check_number(nm_ring_space(tx), SLOTS - 1 - 5, "releases nothing");
	rx->head = 2;
	port_rxsync(&pair.to);
	port_txsync(&pair.from);
	check_number(nm_ring_space(tx), SLOTS - 1 - 3, "head does");
	rx->cur = 3;
	port_rxsync(&pair.to);
	check(rx->cur == 3, "cur may go back, as long as it is not behind");
	tx->cur = nm_ring_next(tx, tx->cur);
	port_txsync(&pair.from);
	port_rxsync(&pair.to);
	check_number(rx->tail, 5, "on tx, cur alone sends nothing");
}

static void
tail_is_restored(void)
{
	static const uint32_t tails[] = { 0, 5, 6, 14, 16, 5000, UINT32_MAX };
	struct pair pair = pair_at(5, 0);
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);
	size_t i;

	for (i = 0; i < COUNT(tails); i++) {
		tx->tail = tails[i];
		check_call(ioctl(pair.from.fd, NIOCTXSYNC, NULL), 0,
			   line("tx tail %u", tails[i]));
		check_number(tx->tail, 15, "is restored");
		check(tx->head == 5 && tx->cur == 5, "and nothing else done");
		rx->tail = tails[i];
		check_call(ioctl(pair.to.fd, NIOCRXSYNC, NULL), 0,
			   line("rx tail %u", tails[i]));
		check_number(rx->tail, 5, "is restored");
		tx->tail = tails[i];
		check_number(wait_events(pair.from.fd, POLLOUT, 0), POLLOUT,
			     "poll finds no fault with it");
		check_number(tx->tail, 15, "and restores it as well");
	}
}

static void
head_and_cur_are_the_programs(void)
{
	struct pair pair = pipe_pair();
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);
	uint32_t i;

	for (i = 0; i < 3 * SLOTS; i++) {
		uint32_t head = tx->head = tx->cur = nm_ring_next(tx, tx->head);

		port_txsync(&pair.from);
		check(tx->head == head && tx->cur == head,
		      "a tx sync leaves head and cur");
		port_rxsync(&pair.to);
		check_number(nm_ring_space(rx), 1, "a packet");
		head = rx->head;
		port_rxsync(&pair.to);
		check(rx->head == head && rx->cur == head,
		      "an rx sync leaves head and cur");
		ring_advance(rx, 1);
		port_rxsync(&pair.to);
		port_txsync(&pair.from);
		check_number(nm_ring_space(tx), SLOTS - 1, "all is free");
	}
}

/* Slots that the reset of a ring cuts down, and what is left of them. */
static const struct {
	uint32_t buf_idx;	/* 0 stands for the slot's own */
	uint16_t len;
	int keeps_buffer;
	uint16_t len_after;
} slot_rows[] = {
	{ 0, 0, 1, 0 }, { 0, 60, 1, 60 }, { 0, 2048, 1, 2048 },
	{ 0, 2049, 1, 0 }, { 0, 65535, 1, 0 }, { 1, 60, 0, 0 },
	{ 10000000, 60, 0, 0 }, { UINT32_MAX, 60, 0, 0 },
};

static void
spoil_slots(struct netmap_ring *ring, uint32_t *own_idx)
{
	size_t i;

	for (i = 0; i < COUNT(slot_rows); i++) {
		own_idx[i] = ring->slot[i].buf_idx;
		if (slot_rows[i].buf_idx != 0)
			ring->slot[i].buf_idx = slot_rows[i].buf_idx;
		ring->slot[i].len = slot_rows[i].len;
	}
	own_idx[i] = ring->slot[i].buf_idx;
	ring->slot[i].buf_idx = 0;
	ring->slot[i].len = 7;
}

static void
check_slots(const struct netmap_ring *ring, const uint32_t *own_idx)
{
	size_t i;

	for (i = 0; i < COUNT(slot_rows); i++)
		check(ring->slot[i].buf_idx ==
		      (slot_rows[i].keeps_buffer ? own_idx[i] : 0) &&
		      ring->slot[i].len == slot_rows[i].len_after,
		      "slot %zu has buffer %u, length %u", i,
		      ring->slot[i].buf_idx, ring->slot[i].len);
	check(ring->slot[i].buf_idx == 0 && ring->slot[i].len == 0,
	      "buffer 0 is nobody's");
}

static void
a_ring_beyond_its_end(void)
{
	static const uint32_t wrong[] = { SLOTS, UINT32_MAX };
	uint32_t own_idx[SLOTS];
	size_t i;
	int which;

	for (i = 0; i < COUNT(wrong); i++) {
		for (which = 0; which < 2; which++) {
			struct pair pair = pair_at(10, 4);
			struct netmap_ring *tx = port_tx(&pair.from);
			struct netmap_ring *rx = port_rx(&pair.to);

			spoil_slots(tx, own_idx);
			*(which ? &tx->cur : &tx->head) = wrong[i];
			/* A cur too large alone may go undetected here. */
			if (which)
				tx->head = wrong[i];
			port_txsync(&pair.from);
			check(tx->head == 10 && tx->cur == 10 && tx->tail == 3,
			      "tx: head %u cur %u tail %u", tx->head, tx->cur,
			      tx->tail);
			check_slots(tx, own_idx);
			port_rxsync(&pair.to);
			check_number(rx->tail, 10, "nothing was sent");
			send_some(&pair, 2);
			port_rxsync(&pair.to);
			check_number(rx->tail, 12, "the ring is of use");
			pair_close(&pair);
		}
	}
}

static void
an_rx_ring_beyond_its_end(void)
{
	uint32_t own_idx[SLOTS];
	int which;

	for (which = 0; which < 2; which++) {
		struct pair pair = pair_at(10, 4);
		struct netmap_ring *rx = port_rx(&pair.to);

		ring_advance(port_tx(&pair.from), 1);
		port_txsync(&pair.from);
		spoil_slots(rx, own_idx);
		*(which ? &rx->cur : &rx->head) = SLOTS + 3;
		port_rxsync(&pair.to);
		check(rx->head == 4 && rx->cur == 4,
		      "rx: head %u cur %u", rx->head, rx->cur);
		check_slots(rx, own_idx);
		check_number(rx->tail, 11, "the sync went on");
		pair_close(&pair);
	}
}

/* Indices that are within the ring, but not where they may be. */
static void
indices_at_odds(void)
{
	struct pair pair = pair_at(5, 0);
	struct netmap_ring *tx = port_tx(&pair.from);
	uint32_t own_idx[SLOTS];

	spoil_slots(tx, own_idx);
	tx->head = 8;
	tx->cur = 7;
	port_txsync(&pair.from);
	check(tx->head == 8 && tx->cur == 7, "tx: they stay");
	check_slots(tx, own_idx);
	port_rxsync(&pair.to);
	check_number(port_rx(&pair.to)->tail, 5, "nothing was sent");
	pair_close(&pair);

	pair = pair_at(10, 4);
	spoil_slots(port_rx(&pair.to), own_idx);
	port_rx(&pair.to)->head = 8;
	port_rx(&pair.to)->cur = 7;
	port_rxsync(&pair.to);
	check(port_rx(&pair.to)->head == 8 && port_rx(&pair.to)->cur == 7,
	      "rx: they stay");
	check_slots(port_rx(&pair.to), own_idx);
	check_number(port_rx(&pair.to)->tail, 10, "and tail is fresh");
}

static void
slots_are_not_looked_at(void)
{
	struct pair pair = pipe_pair();
	struct netmap_ring *tx = port_tx(&pair.from), *rx = port_rx(&pair.to);
	struct netmap_slot strange = { 0, 65535, 0, 99 };
	uint32_t mine = tx->slot[0].buf_idx;

	tx->slot[0] = strange;
	tx->slot[1].buf_idx = 77777777;
	send_some(&pair, 2);
	port_rxsync(&pair.to);
	check_number(rx->tail, 2, "a pipe hands on what it is given");
	check(rx->slot[0].buf_idx == 0 && rx->slot[0].len == 65535 &&
	      rx->slot[0].ptr == 99, "slot and all");
	check_number(rx->slot[1].buf_idx, 77777777, "any buffer");
	rx->slot[0].buf_idx = mine;
	release_some(&pair, 2);
}

static void
lengths_on_a_switch(void)
{
	struct port from = port_open(own("vale$:a"));
	struct port to = port_open(own("vale$:b"));

	port_put(&from, broadcast, mac_of(1), 1);
	port_tx(&from)->slot[0].len = 2049;
	port_put(&from, broadcast, mac_of(1), 2);
	port_txsync(&from);
	check_number(port_take(&to), 2, "longer than a buffer: dropped");
}

/* Where a buffer begins with room for the kernel, a slot has less than it. */
static void
lengths_on_a_wire(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open_as(cable.near, register_all());
	struct netmap_ring *tx = port_tx(&port);
	uint32_t most = tx->nr_data_size, first;

	check(most > 0 && most <= tx->nr_buf_size, "%u bytes of %u", most,
	      tx->nr_buf_size);
	port_put(&port, broadcast, mac_of(1), 1);
	tx->slot[0].len = (uint16_t)(most + 1);
	first = tx->head;
	port_put(&port, broadcast, mac_of(1), 2);
	port_put(&port, broadcast, mac_of(1), 3);
	tx->slot[first].flags |= NS_MOREFRAG;
	tx->slot[first + 1].len = (uint16_t)tx->nr_buf_size;
	port_put(&port, broadcast, mac_of(1), 4);
	port_txsync(&port);
	check_number(cable_take(&cable), 4,
		     "a slot that is too long loses its packet, whole");
}

/* A buffer that does not exist is buffer 0: no harm to anybody. */
static void
a_buffer_that_does_not_exist(void)
{
	struct port from = port_open(own("vale$:a"));
	struct port to = port_open(own("vale$:b"));
	long long got;

	port_put(&from, broadcast, mac_of(1), 1);
	port_tx(&from)->slot[0].buf_idx = 0x7fffffff;
	port_put(&from, broadcast, mac_of(1), 2);
	port_txsync(&from);
	got = port_take(&to);
	if (got == -1)
		got = port_take(&to);
	check_number(got, 2, "the next packet arrives");
}

static void
null_ports_take_anything(void)
{
	struct port holder = port_open(own("vale$:a")), null;
	struct nmreq_register reg = register_all();

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = holder.reg.nr_mem_id;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	reg.nr_tx_slots = reg.nr_rx_slots = SLOTS;
	null = port_open_as(own("n$"), reg);
	port_tx(&null)->slot[0].buf_idx = 77777777;
	port_tx(&null)->slot[0].len = 65535;
	ring_advance(port_tx(&null), 1);
	check_call(ioctl(null.fd, NIOCTXSYNC, NULL), 0, "a slot of nonsense");
	check(port_tx(&null)->slot[0].buf_idx == 77777777,
	      "is not looked at");
}

static int
is_between(struct timeval at, struct timeval from, struct timeval to)
{
	return !timercmp(&at, &from, <) && !timercmp(&at, &to, >);
}

static void
rx_syncs_stamp(void)
{
	struct nmreq_register reg = register_all();
	struct timeval before, after;
	struct port port;
	uint32_t i;
	int how;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	port = port_open_as(own("vale$:a"), reg);
	for (how = 0; how < 2; how++) {
		gettimeofday(&before, NULL);
		if (how == 0)
			port_rxsync(&port);
		else
			wait_events(port.fd, POLLIN, 0);
		gettimeofday(&after, NULL);
		for (i = 0; i < 2; i++)
			check(is_between(NETMAP_RXRING(port.nifp, i)->ts,
					 before, after),
			      "%s stamps rx ring %u, empty or not",
			      how ? "poll" : "NIOCRXSYNC", i);
	}
	before = port_rx(&port)->ts;
	port_txsync(&port);
	wait_events(port.fd, POLLOUT, 0);
	check(memcmp(&before, &port_rx(&port)->ts, sizeof(before)) == 0,
	      "sending does not");
	for (i = 0; i < 2; i++)
		check(NETMAP_TXRING(port.nifp, i)->ts.tv_sec == 0 &&
		      NETMAP_TXRING(port.nifp, i)->ts.tv_usec == 0,
		      "tx ring %u is never stamped", i);
}

static void
every_kind_of_ring_is_stamped(void)
{
	static const char *const names[] = { "p${1", "p$}1", "vale$:a" };
	struct timeval before, after;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct port port = port_open(own(names[i]));

		port_rx(&port)->flags |= NR_TIMESTAMP;
		gettimeofday(&before, NULL);
		port_rxsync(&port);
		gettimeofday(&after, NULL);
		check(is_between(port_rx(&port)->ts, before, after),
		      "with NR_TIMESTAMP as without");
		port_close(&port);
	}
}

static void
an_rx_sync_forwards(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_register reg = register_all();
	int stack = packet_socket(cable.near);
	char frame[FRAME_SIZE];
	struct netmap_slot *slot;
	struct port port;

	reg.nr_mode = NR_REG_NIC_SW;
	port = port_open_as(cable.near, reg);
	port_rx(&port)->flags |= NR_FORWARD;
	port_rxsync(&port);
	cable_send(&cable, broadcast, mac_of(1), 9);
	slot = port_peek(&port);
	require(slot != NULL, "a frame from the far end");
	slot->flags |= NS_FORWARD;
	ring_advance(port_rx(&port), 1);
	port_rxsync(&port);
	check(wait_events(stack, POLLIN, PATIENCE_MS) & POLLIN,
	      "the stack has a frame");
	check_number(recv(stack, frame, sizeof(frame), MSG_DONTWAIT),
		     FRAME_SIZE, "of its length");
	check_number(frame_sequence(frame), 9, "which is the one released");
}

static const struct test_case cases[] = {
	{ "S-SYNC-1", "a sync never waits", a_sync_never_waits },
	{ "S-SYNC-1", "a sync does all its rings", a_sync_does_all_its_rings },
	{ "S-SYNC-1", "a sync does no other rings",
	  a_sync_does_no_other_rings },
	{ "S-SYNC-1", "directions are apart", directions_are_apart },
	{ "S-SYNC-2", "syncs that fail", syncs_that_fail },
	{ "S-SYNC-2", "syncs in CSB mode", syncs_in_csb_mode },
	{ "S-SYNC-3", "wrong indices do not fail it",
	  wrong_indices_do_not_fail_it },
	{ "S-SYNC-3", "failures within are for poll",
	  failures_within_are_for_poll },
	{ "S-SYNC-4", "whose slots", whose_slots },
	{ "S-SYNC-5", "tx indices", tx_indices },
	{ "S-SYNC-5", "rx indices", rx_indices },
	{ "S-SYNC-5", "a newer tail counts", a_newer_tail_counts },
	{ "S-SYNC-5", "cur may be ahead", cur_may_be_ahead },
	{ "S-SYNC-6", "tail is restored", tail_is_restored },
	{ "S-SYNC-7", "head and cur are the program's",
	  head_and_cur_are_the_programs },
	{ "S-SYNC-8", "a tx ring beyond its end", a_ring_beyond_its_end },
	{ "S-SYNC-8", "an rx ring beyond its end",
	  an_rx_ring_beyond_its_end },
	{ "S-SYNC-8", "indices at odds", indices_at_odds },
	{ "S-SYNC-9", "slots are not looked at", slots_are_not_looked_at },
	{ "S-SYNC-9", "lengths on a switch", lengths_on_a_switch },
	{ "S-SYNC-9", "lengths on a wire", lengths_on_a_wire },
	{ "S-SYNC-9", "a buffer that does not exist",
	  a_buffer_that_does_not_exist },
	{ "S-SYNC-9", "null ports take anything", null_ports_take_anything },
	{ "S-SYNC-10", "rx syncs stamp", rx_syncs_stamp },
	{ "S-SYNC-10", "every kind of ring is stamped",
	  every_kind_of_ring_is_stamped },
	{ "S-SYNC-11", "an rx sync forwards", an_rx_sync_forwards },
};

CHAPTER(cases)
