/* SPDX-License-Identifier: BSD-2-Clause */
/* Order: what is enqueued by way of a queue that restores order (QB-ORP). */
#include "case.h"

static struct queue *point, *to;

static void
begin(uint8_t orpc)
{
	uint16_t channel = pool();
	struct qm_mcc_initfq opts = options(channel, 4, QM_FQCTRL_ORP);

	to = scheduled(channel, 0);
	point = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);
	opts.we_mask |= QM_INITFQ_WE_ORPC;
	opts.fqd.orpc = orpc;
	require(qman_init_fq(&point->fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
}

static int
put(uint32_t sequence, uint32_t flags)
{
	struct qm_fd fd = frame(sequence);

	return qman_enqueue_orp(&to->fq, &fd, flags, &point->fq, (uint16_t)sequence);
}

static int
hole(uint16_t sequence, uint32_t flags)
{
	return qman_enqueue_orp(&point->fq, NULL, flags, &point->fq, sequence);
}

/* Whether these came, in this order. */
static int
came(const uint32_t *expected, int n)
{
	poll_all();
	return to->frames == n && memcmp(to->commands, expected, (size_t)n * sizeof(*expected)) == 0;
}

static void
restoration(void)
{
	static const uint32_t first[] = { 0, 1 }, all[] = { 0, 1, 3, 5, 5, 6 };
	struct qm_mcr_queryfq_np np;

	begin(0);
	check_number(put(1, 0) + put(3, 0), 0, "frames before their turn");
	check(came(first, 0), "wait");
	check_number(put(0, 0), 0, "until the first comes");
	check(came(first, 2), "and go in order, up to what is missing");
	qman_query_fq_np(&point->fq, &np);
	check_number(np.orp_nesn, 2, "which is expected");
	check_number(hole(2, QMAN_ENQUEUE_FLAG_HOLE), 0, "a hole");
	check_number(put(6, 0), 0, "a later frame");
	check_number(hole(5, QMAN_ENQUEUE_FLAG_NESN), 0, "one is not to come: the next is another");
	check_number(put(5, QMAN_ENQUEUE_FLAG_NLIS) + put(5, 0), 0, "two of one number");
	check(came(all, 6), "each in its place");
}

static void
window(void)
{
	begin(0);
	check_number(put(32, 0) + put(16383, 0), 0, "beyond the window, and behind it");
	qman_poll_slow();
	check_number(to->erns, 2, "are rejected");
	check_number(to->reasons[0] * 1000 + to->reasons[1], QM_MR_RC_ORPWINDOW_EARLY * 1000 + QM_MR_RC_ORPWINDOW_LATE, "early and late");
	check_number(put(31, 0), 0, "the last within it");
	qman_poll_slow();
	check_number(to->erns, 2, "waits");
}

static void
window_moves(void)
{
	static const uint32_t late[] = { 16383 }, moved[] = { 16383, 31 };

	begin(7);
	check_number(put(16383, 0), 0, "late, as late frames are accepted");
	check(came(late, 1), "it goes at once");
	check_number(put(31, 0) + put(63, 0), 0, "early, where the window advances");
	check(came(moved, 2), "what falls out of it goes");
	qman_poll_slow();
	check_number(to->erns, 0, "nothing is rejected");
}

static void
retirement(void)
{
	enum qman_fq_state state;
	u32 flags = 0;

	begin(0);
	put(4, 0);
	put(2, 0);
	check_number(qman_retire_fq(&point->fq, &flags), 0, "a point with nothing in its queue retires at once");
	check_number(flags, QMAN_FQ_STATE_ORL, "and keeps frames back");
	check_number(point->fqs, QM_MR_FQS_ORLPRESENT, "its callback is told");
	check_number(qman_oos_fq(&point->fq), -EBUSY, "not out of service with them");
	qman_poll_slow();
	check_number(to->erns * 1000 + to->reasons[0], 2000 + QM_MR_RC_ORPWINDOW_RETIRED, "they come back");
	check_number(to->rejected[0] * 10 + to->rejected[1], 24, "in order");
	qman_fq_state(&point->fq, &state, &flags);
	check_number(flags * 100 + point->verb, QM_MR_VERB_FQRL, "then the queue is told that none is left");
	check_number(put(0, 0), 0, "later ones");
	qman_poll_slow();
	check_number(to->reasons[2], QM_MR_RC_ORPWINDOW_RETIRED, "come back, too");
	check_number(qman_oos_fq(&point->fq), 0, "out of service");
	check_number(qman_enqueue_orp(&to->fq, &(struct qm_fd) { .cmd = 1 }, 0, &to->fq, 0), 0, "a queue that restores no order");
	qman_poll_slow();
	check_number(to->reasons[3], QM_MR_RC_ORP_ZERO, "rejects");
}

/* Frames of one queue, worked on by two threads that take some more than others. */
#define FRAMES 4000

static struct queue *from;
static uint16_t shared;
static volatile int stop;

static enum qman_cb_dqrr_result
on_work(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	uint32_t flags = entry->fd.cmd % 7 == 3 ? QMAN_ENQUEUE_FLAG_HOLE : 0;

	(void)portal;
	if (entry->fd.cmd % 5 == 0)
		sched_yield();
	while (qman_enqueue_orp(flags ? &point->fq : &to->fq, &entry->fd, flags, &point->fq, entry->seqnum))
		;
	(void)fq;
	return qman_cb_dqrr_consume;
}

static void *
worker(void *arg)
{
	(void)arg;
	take_until(shared, 3, &stop);
	return NULL;
}

static void
threads(void)
{
	pthread_t thread[2];
	uint32_t other, n, expected = 0;
	int i, in_order = 1;

	/* A window of 4096, more than there are frames. */
	begin(7 << 3);
	require(qman_alloc_pool(&other) == 0, "qman_alloc_pool");
	shared = (uint16_t)other;
	from = scheduled(shared, QM_FQCTRL_AVOIDBLOCK);
	from->fq.cb.dqrr = on_work;
	for (i = 0; i < 2; i++)
		require(pthread_create(&thread[i], NULL, worker, NULL) == 0, "a thread");
	for (n = 0; n < FRAMES; n++)
		enqueue(from, n, 1);
	while (to->frames < FRAMES - FRAMES / 7 - 1 + (FRAMES % 7 < 4))
		if (!poll_all())
			sched_yield();
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	poll_all();
	for (i = 0; i < to->frames; i++, expected++) {
		if (expected % 7 == 3)
			expected++;
		in_order &= to->commands[i] == expected;
	}
	check(in_order, "order is restored between threads");
	check_number(expected, FRAMES, "to the last");
}

static const struct test_case cases[] = {
	{ "QB-ORP-1", "order is restored", restoration },
	{ "QB-ORP-1", "between threads", threads },
	{ "QB-ORP-2", "early and late", window },
	{ "QB-ORP-2", "accepted", window_moves },
	{ "QB-ORP-3", "retirement", retirement },
};

CHAPTER(cases)
