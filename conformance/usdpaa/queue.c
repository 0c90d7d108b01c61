/* SPDX-License-Identifier: BSD-2-Clause */
/* Frame queues: how they come and go, what passes them, and what becomes of frames that do not (QB-FQ). */
#include "case.h"

static void
passing(void)
{
	uint16_t channel = pool();
	struct queue *q = scheduled(channel, 0);
	struct qm_mcr_queryfq_np np;
	int i, in_order = 1;

	check_number(q->fq.fqid >= 0x10000, 1, "dynamic ids are none that files name");
	check_number(enqueue(q, 0, 100), 0, "frames are enqueued");
	check_number(qman_query_fq_np(&q->fq, &np), 0, "qman_query_fq_np");
	check_number(np.frm_cnt, 100, "as many frames as were enqueued");
	check_number(np.byte_cnt, 6000, "and their bytes");
	check_number(np.state, QM_MCR_NP_STATE_TRU_SCHED, "truly scheduled");
	check_number(qman_poll_dqrr(0), 0, "none is asked for");
	check_number(qman_poll_dqrr(5), 5, "no more than are asked for");
	check_number(poll_all(), 95, "all others");
	for (i = 0; i < 100; i++)
		in_order &= q->commands[i] == (uint32_t)i && q->sequences[i] == i;
	check(in_order, "in order, with sequence numbers");
	check_number(q->last->fqid, q->fq.fqid, "the entry names its queue");
	check_number(q->last->verb & QM_DQRR_VERB_MASK, QM_DQRR_VERB_FRAME_DEQUEUE, "verb");
	check_number(q->last->tok, 0xab, "token");
	check_number(qm_fd_addr(&q->last->fd), 0x123456789aLL, "address");
	check_number(q->last->fd.offset * 1000 + q->last->fd.length20, 64060, "offset, length");
	check_number(q->last->stat, QM_DQRR_STAT_FD_VALID | QM_DQRR_STAT_FQ_EMPTY, "the last says so");
	check_number(qman_query_fq_np(&q->fq, &np), 0, "qman_query_fq_np");
	check_number(np.state, QM_MCR_NP_STATE_TEN_SCHED, "tentatively scheduled");
	check_number(np.odp_seq, 100, "the next sequence number");
	check_number(teardown(q), 0, "teardown of an empty queue");
	check_number(q->verb * 10 + q->states, QM_MR_VERB_FQRNI * 10 + 1, "its retirement is immediate");
	free(q);
}

static void
retirement(void)
{
	uint16_t channel = pool();
	struct queue *q = scheduled(channel, 0);
	enum qman_fq_state state;
	u32 flags;

	enqueue(q, 0, 40);
	check_number(qman_oos_fq(&q->fq), -EINVAL, "a scheduled queue cannot be out of service");
	check_number(qman_retire_fq(&q->fq, &flags), 1, "one with frames retires later");
	qman_fq_state(&q->fq, &state, &flags);
	check_number(flags, QMAN_FQ_STATE_CHANGING, "it is changing");
	check_number(qman_retire_fq(&q->fq, &flags), -EBUSY, "not twice");
	check_number(qman_oos_fq(&q->fq), -EINVAL, "nor out of service meanwhile");
	check_number(qman_poll_dqrr(16), 0, "it hands on nothing more");
	check_number(qman_poll_slow() & QM_PIRQ_MRI, QM_PIRQ_MRI, "a message");
	qman_fq_state(&q->fq, &state, &flags);
	check_number(state, qman_fq_state_retired, "it is retired");
	check_number(flags, QMAN_FQ_STATE_NE, "and not empty");
	check_number(q->verb * 10 + q->fqs, QM_MR_VERB_FQRN * 10 + QM_MR_FQS_NOTEMPTY, "as the callback was told");
	check_number(qman_oos_fq(&q->fq), -EBUSY, "not out of service with frames");
	check_number(enqueue(q, 40, 1), 0, "an enqueue is accepted");
	qman_poll_slow();
	check_number(q->erns * 1000 + q->reasons[0], 1000 + QM_MR_RC_ERROR, "and rejected");
	check_number(q->rejected[0], 40, "with its frame");
	check_number(qman_volatile_dequeue(&q->fq, 0, 1), -EINVAL, "no number belongs into the command");
	check_number(qman_volatile_dequeue(&q->fq, 0, QM_VDQCR_NUMFRAMES_SET(3) | QM_VDQCR_EXACT), 0, "three frames");
	check_number(qman_volatile_dequeue(&q->fq, 0, 0), -EBUSY, "one command at a time");
	check_number(poll_all(), 3, "three");
	check_number(q->stats[2], QM_DQRR_STAT_FD_VALID | QM_DQRR_STAT_UNSCHEDULED | QM_DQRR_STAT_DQCR_EXPIRED, "the third is the last");
	check_number(qman_volatile_dequeue(&q->fq, 0, 0), 0, "all others");
	check_number(poll_all(), 37, "37");
	qman_fq_state(&q->fq, &state, &flags);
	check_number(flags, 0, "it is empty, and the command is over");
	check_number(qman_volatile_dequeue(&q->fq, 0, 0), 0, "of an empty queue");
	check_number(poll_all() * 10 + q->empties, 11, "an entry without a frame");
	check_number(q->frames, 40, "each frame once");
	check_number(qman_oos_fq(&q->fq), 0, "out of service");
	check_number(qman_volatile_dequeue(&q->fq, 0, 0), -EINVAL, "which has no frames");
	qman_destroy_fq(&q->fq, 0);
	free(q);

	q = scheduled(channel, 0);
	enqueue(q, 0, 5);
	check_number(teardown(q) * 100 + q->frames, 5, "teardown of a queue with frames");
	free(q);
}

static void
parking(void)
{
	uint16_t channel = pool();
	struct queue *q = new_queue(0x500, 0);
	struct qm_mcc_initfq opts = options(channel, 3, QM_FQCTRL_HOLDACTIVE);
	enum qman_fq_state state;
	struct qm_mcr_querywq wq;
	struct qm_fqd fqd;
	u32 flags;

	check_number(enqueue(q, 0, 1), 0, "an enqueue to a queue out of service");
	qman_poll_slow();
	check_number(q->erns * 1000 + q->reasons[0], 1000 + QM_MR_RC_ERROR, "is rejected");
	check_number(qman_schedule_fq(&q->fq), -EINVAL, "it cannot be scheduled");
	check_number(qman_init_fq(&q->fq, 0, &opts), 0, "parked");
	check_number(qman_query_fq(&q->fq, &fqd), 0, "qman_query_fq");
	check_number(fqd.dest.channel * 10 + fqd.dest.wq, channel * 10 + 3, "as it was initialised");
	check_number(fqd.fq_ctrl, QM_FQCTRL_HOLDACTIVE, "its control");
	check_number(fqd.cgid + fqd.orpc + fqd.td.mant + fqd.context_a.hi, 0, "nothing of what was not named");
	enqueue(q, 0, 4);
	check_number(poll_all(), 0, "a parked queue keeps its frames");
	check_number(qman_volatile_dequeue(&q->fq, 0, QM_VDQCR_NUMFRAMES_SET(1)), 0, "but for volatile dequeues");
	check_number(poll_all(), 1, "of one");
	opts.we_mask = QM_INITFQ_WE_DESTWQ;
	opts.fqd.dest.wq = 5;
	check_number(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts), 0, "initialised again");
	memset(&wq, 0, sizeof(wq));
	wq.channel.id = channel;
	check_number(qman_query_wq(0, &wq), 0, "qman_query_wq");
	check_number(wq.wq_len[5] * 10 + wq.wq_len[4], 10, "it waits on its work queue");
	q->next = qman_cb_dqrr_park;
	check_number(qman_poll_dqrr(1), 1, "its callback parks it");
	check_number(q->stats[1] & QM_DQRR_STAT_FQ_HELDACTIVE, QM_DQRR_STAT_FQ_HELDACTIVE, "it was held active");
	check_number(poll_all(), 0, "it keeps the others");
	qman_poll_slow();
	qman_fq_state(&q->fq, &state, &flags);
	check_number(state * 100 + q->verb, qman_fq_state_parked * 100 + QM_MR_VERB_FQPN, "as a message says");
	q->next = qman_cb_dqrr_consume;
	check_number(qman_schedule_fq(&q->fq), 0, "scheduled again");
	check_number(qman_fq_flow_control(&q->fq, 0), 0, "stopped");
	check_number(poll_all(), 0, "nothing");
	check_number(qman_fq_flow_control(&q->fq, 1), 0, "started");
	check_number(poll_all(), 2, "the rest");
	check_number(teardown(q), 0, "teardown");
	qman_release_fqid(0x500);

	q->fq.cb.dqrr = on_frame;
	check_number(qman_create_fq(0x500, 0, &q->fq), 0, "again");
	check_number(qman_init_fq(&q->fq, 0, NULL), 0, "without options");
	qman_destroy_fq(&q->fq, 0);
	check_number(qman_schedule_fq(&q->fq), 0, "a parked queue stays unless it says so");
	check_number(qman_retire_fq(&q->fq, NULL), 0, "retired");
	check_number(qman_oos_fq(&q->fq), 0, "out of service");
	qman_destroy_fq(&q->fq, QMAN_FQ_DESTROY_PARKED);
	check_number(qman_retire_fq(&q->fq, NULL), -EINVAL, "a destroyed queue is none");
	check_number(qman_enqueue(&q->fq, NULL, 0), -EINVAL, "for frames, too");
	free(q);
}

static void
results(void)
{
	uint16_t channel = pool();
	struct queue *q = scheduled(channel, QM_FQCTRL_HOLDACTIVE), *to = scheduled(channel, 0);
	const struct qm_dqrr_entry *first;
	struct qm_fd fd = frame(7);

	enqueue(q, 0, 6);
	q->next = qman_cb_dqrr_stop;
	check_number(qman_poll_dqrr(16) * 10 + q->frames, 11, "stop: polling ends");
	check_number(qman_poll_dqrr(16) * 10 + q->frames, 12, "and the entry comes again");
	check_number(q->commands[0] == 0 && q->commands[1] == 0, 1, "the same");
	q->next = qman_cb_dqrr_consume_stop;
	check_number(qman_poll_dqrr(16) * 10 + q->frames, 13, "consume and stop");
	check_number(qman_poll_dqrr(16) * 10 + q->frames, 14, "is done with it");
	q->next = qman_cb_dqrr_defer;
	check_number(qman_poll_dqrr(1), 1, "defer");
	first = q->last;
	check_number((uintptr_t)first % 64 + QMAN_ENQUEUE_FLAG_DCA_PTR(first) / 0x100 / 16, 0, "an entry has 64 bytes and a number");
	check_number(qman_poll_dqrr(1), 1, "the next of a queue that is held");
	check(first != q->last, "in another place");
	qman_dca((struct qm_dqrr_entry *)(uintptr_t)first, 0);
	qman_dca((struct qm_dqrr_entry *)(uintptr_t)first, 0);
	qman_dca(NULL, 1);
	check_number(qman_enqueue(&to->fq, &fd, QMAN_ENQUEUE_FLAG_DCA | QMAN_ENQUEUE_FLAG_DCA_PTR(q->last)), 0, "an enqueue that consumes");
	check_number(qman_eqcr_is_empty(), 1, "it is executed");
	q->next = qman_cb_dqrr_consume;
	check_number(poll_all(), 3, "the rest, and what was enqueued");
	check_number(to->commands[0] * 10 + q->frames, 78, "each in its queue");
	check_number(teardown(q) + teardown(to), 0, "teardown");
	free(q);
	free(to);
}

static void
tail_drop(void)
{
	uint16_t channel = pool();
	struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);
	struct qm_mcc_initfq opts = options(channel, 4, QM_FQCTRL_TDE);
	struct qm_fqd_taildrop td;

	check_number(qm_fqd_taildrop_set(&opts.fqd.td, 600, 0), 0, "a threshold");
	check_number(qm_fqd_taildrop_get(&opts.fqd.td), 600, "it can be said");
	check_number(qm_fqd_taildrop_set(&td, 0xe0000001, 0), -ERANGE, "one that cannot");
	qm_fqd_taildrop_set(&td, 0x1ff, 1);
	check_number(qm_fqd_taildrop_get(&td), 0x200, "rounded up");
	qm_fqd_taildrop_set(&td, 0x1ff, 0);
	check_number(qm_fqd_taildrop_get(&td), 0x1fe, "or down");
	opts.we_mask |= QM_INITFQ_WE_TDTHRESH | QM_INITFQ_WE_OAC;
	check_number(qman_init_fq(&q->fq, 0, &opts), -EINVAL, "a threshold and overhead exclude each other");
	opts.we_mask &= ~QM_INITFQ_WE_OAC;
	check_number(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts), 0, "qman_init_fq");
	check_number(enqueue(q, 0, 15), 0, "more frames than it takes");
	qman_poll_slow();
	check_number(q->erns * 1000 + q->reasons[0], 5000 + QM_MR_RC_FQ_TAILDROP, "five are rejected");
	check_number(q->rejected[0], 10, "the last ones");
	check_number(poll_all(), 10, "the others pass");
	check_number(teardown(q), 0, "teardown");
	free(q);
}

/* Which queue each frame came by. */
static struct queue *served[64];
static int count;

static enum qman_cb_dqrr_result
on_served(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	(void)portal;
	(void)entry;
	if (count < 64)
		served[count++] = (struct queue *)fq;
	return qman_cb_dqrr_consume;
}

static void
priority(void)
{
	uint16_t channel = pool();
	struct queue *by_wq[8];
	uint8_t wq;
	int i, in_order = 1, turns = 1;

	for (wq = 0; wq < 8; wq++) {
		struct qm_mcc_initfq opts = options(channel, 7 - wq, 0);
		struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);

		q->fq.cb.dqrr = on_served;
		require(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
		by_wq[7 - wq] = q;
		enqueue(q, 0, 6);
	}
	check_number(poll_all(), 48, "all are served");
	for (i = 0; i < 12; i++)
		in_order &= served[i] == by_wq[i / 6];
	for (i = 12; i < 30; i++)
		in_order &= served[i] != by_wq[5] && served[i] != by_wq[6] && served[i] != by_wq[7];
	check(in_order, "0, then 1, then 2 to 4, then 5 to 7");
	for (i = 12; i < 48; i += 9)
		turns &= served[i] != served[i + 3] && served[i + 3] != served[i + 6] && served[i] != served[i + 6];
	check(turns, "in turns of three frames within these");
}

static void
named_fields(void)
{
	uint16_t channel = pool();
	struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID), *dc;
	struct qm_mcc_initfq opts = options(channel, 4, 0);
	struct qm_fqd fqd;
	struct dma_mem *map = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, 1 << 20);
	struct qman_fq *mapped = dma_mem_memalign(map, 64, sizeof(*mapped));

	check_number(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_LOCAL, &opts), 0, "local");
	qman_query_fq(&q->fq, &fqd);
	check_number(fqd.dest.channel * 10 + fqd.dest.wq, qman_affine_channel(-1) * 10 + 4, "this portal's channel");
	check(fqd.context_b != 0 && fqd.context_b != 0x5a5a5a5a, "context_b is the queue's handle");
	check_number(qm_fqd_context_a_get64(&fqd), 0, "context_a is cleared");
	qman_destroy_fq(&q->fq, QMAN_FQ_DESTROY_PARKED);

	mapped->cb = q->fq.cb;
	require(qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID, mapped) == 0, "qman_create_fq");
	opts.we_mask |= QM_INITFQ_WE_CONTEXTA;
	opts.fqd.context_a.stashing.exclusive = 0;
	opts.fqd.context_a.stashing.data_cl = 1;
	check_number(qman_init_fq(mapped, 0, &opts), 0, "with stashing");
	qman_query_fq(mapped, &fqd);
	check_number(fqd.context_a.stashing.data_cl, 1, "as it was said");
	check_number(qm_fqd_stashing_addr(&fqd), dma_mem_vtop(map, mapped), "of the queue's object");

	dc = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID | QMAN_FQ_FLAG_TO_DCPORTAL);
	opts = options(0x40, 3, QM_FQCTRL_PREFERINCACHE);
	opts.we_mask |= QM_INITFQ_WE_CONTEXTA | QM_INITFQ_WE_CONTEXTB;
	opts.fqd.context_b = 0;
	opts.fqd.context_a.hi = 0x80000000;
	opts.fqd.context_a.lo = 7;
	check_number(qman_init_fq(&dc->fq, QMAN_INITFQ_FLAG_SCHED, &opts), 0, "for an interface");
	qman_query_fq(&dc->fq, &fqd);
	check_number(fqd.context_b, 0, "its contexts are the program's");
	check_number(qm_fqd_context_a_get64(&fqd), (long long)0x8000000000000007ULL, "both of them");
	opts = options(0x3f, 3, 0);
	check_number(teardown(dc), 0, "teardown");
	check_number(qman_create_fq(0x600, 0, &dc->fq), 0, "qman_create_fq");
	check_number(qman_init_fq(&dc->fq, 0, &opts), -EIO, "a channel that is not there");
}

#define FLOWS 4
#define OF_FLOW 5000

static struct queue *flows[FLOWS];
static uint16_t shared;
static volatile int stop;
static int next_of[FLOWS];
static int disorder, total;

static enum qman_cb_dqrr_result
on_flow(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	int flow = 0;

	(void)portal;
	while (&flows[flow]->fq != fq)
		flow++;
	/* No other thread has a frame of this flow. */
	if (__atomic_fetch_add(&next_of[flow], 1, __ATOMIC_RELAXED) != (int)entry->fd.cmd)
		__atomic_fetch_add(&disorder, 1, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&total, 1, __ATOMIC_RELAXED) == FLOWS * OF_FLOW)
		stop = 1;
	return qman_cb_dqrr_consume;
}

static void *
worker(void *arg)
{
	(void)arg;
	take_until(shared, 16, &stop);
	return NULL;
}

static void
held(void)
{
	pthread_t threads[3];
	int i, n;

	shared = pool();
	for (i = 0; i < FLOWS; i++) {
		flows[i] = scheduled(shared, QM_FQCTRL_HOLDACTIVE);
		flows[i]->fq.cb.dqrr = on_flow;
	}
	for (i = 0; i < 3; i++)
		require(pthread_create(&threads[i], NULL, worker, NULL) == 0, "a thread");
	for (n = 0; n < OF_FLOW; n++)
		for (i = 0; i < FLOWS; i++)
			enqueue(flows[i], (uint32_t)n, 1);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	check_number(total, FLOWS * OF_FLOW, "each frame once");
	check_number(disorder, 0, "three threads keep the order of each flow");
}

static const struct test_case cases[] = {
	{ "QB-FQ-1", "frames pass", passing },
	{ "QB-FQ-2", "only named fields count", named_fields },
	{ "QB-FQ-3", "retirement", retirement },
	{ "QB-FQ-4", "parked queues", parking },
	{ "QB-FQ-5", "results of callbacks", results },
	{ "QB-FQ-6", "tail drop", tail_drop },
	{ "QB-FQ-7", "priority of work queues", priority },
	{ "QB-FQ-8", "held active", held },
};

CHAPTER(cases)
