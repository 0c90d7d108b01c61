/* SPDX-License-Identifier: BSD-2-Clause */
/* Frame queues: how they come and go, what passes them, and what becomes of frames that do not. */
#include "usdpaa.h"

static void
passing(uint16_t pool)
{
	struct queue *q = scheduled(pool, 0);
	struct qm_mcr_queryfq_np np;
	int i, in_order = 1;

	check_number(q->fq.fqid >= 0x10000, 1, "dynamic ids are none that files name");
	check_number(send(q, 0, 100), 0, "frames are enqueued");
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
retirement(uint16_t pool)
{
	struct queue *q = scheduled(pool, 0);
	enum qman_fq_state state;
	u32 flags;

	send(q, 0, 40);
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
	check_number(send(q, 40, 1), 0, "an enqueue is accepted");
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

	q = scheduled(pool, 0);
	send(q, 0, 5);
	check_number(teardown(q) * 100 + q->frames, 5, "teardown of a queue with frames");
	free(q);
}

static void
parking(uint16_t pool)
{
	struct queue *q = new_queue(0x500, 0);
	struct qm_mcc_initfq opts = options(pool, 3, QM_FQCTRL_HOLDACTIVE);
	enum qman_fq_state state;
	struct qm_mcr_querywq wq;
	struct qm_fqd fqd;
	u32 flags;

	check_number(send(q, 0, 1), 0, "an enqueue to a queue out of service");
	qman_poll_slow();
	check_number(q->erns * 1000 + q->reasons[0], 1000 + QM_MR_RC_ERROR, "is rejected");
	check_number(qman_schedule_fq(&q->fq), -EINVAL, "it cannot be scheduled");
	check_number(qman_init_fq(&q->fq, 0, &opts), 0, "parked");
	check_number(qman_query_fq(&q->fq, &fqd), 0, "qman_query_fq");
	check_number(fqd.dest.channel * 10 + fqd.dest.wq, pool * 10 + 3, "as it was initialised");
	check_number(fqd.fq_ctrl, QM_FQCTRL_HOLDACTIVE, "its control");
	check_number(fqd.cgid + fqd.orpc + fqd.td.mant + fqd.context_a.hi, 0, "nothing of what was not named");
	send(q, 0, 4);
	check_number(poll_all(), 0, "a parked queue keeps its frames");
	check_number(qman_volatile_dequeue(&q->fq, 0, QM_VDQCR_NUMFRAMES_SET(1)), 0, "but for volatile dequeues");
	check_number(poll_all(), 1, "of one");
	opts.we_mask = QM_INITFQ_WE_DESTWQ;
	opts.fqd.dest.wq = 5;
	check_number(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts), 0, "initialised again");
	memset(&wq, 0, sizeof(wq));
	wq.channel.id = pool;
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
results(uint16_t pool)
{
	struct queue *q = scheduled(pool, QM_FQCTRL_HOLDACTIVE), *to = scheduled(pool, 0);
	const struct qm_dqrr_entry *first;
	struct qm_fd fd = frame(7);

	send(q, 0, 6);
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
tail_drop(uint16_t pool)
{
	struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);
	struct qm_mcc_initfq opts = options(pool, 4, QM_FQCTRL_TDE);
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
	check_number(send(q, 0, 15), 0, "more frames than it takes");
	qman_poll_slow();
	check_number(q->erns * 1000 + q->reasons[0], 5000 + QM_MR_RC_FQ_TAILDROP, "five are rejected");
	check_number(q->rejected[0], 10, "the last ones");
	check_number(poll_all(), 10, "the others pass");
	check_number(teardown(q), 0, "teardown");
	free(q);
}

int
main(void)
{
	uint32_t ids[2];

	check_number(qman_global_init() + qman_global_init(), 0, "qman_global_init, twice");
	check_number(bman_global_init(), 0, "bman_global_init");
	check_number(bman_global_init(), -EBUSY, "not twice");
	portals();
	require(qman_alloc_pool_range(ids, 2, 1, 0) == 2, "qman_alloc_pool_range");
	check_number(ids[0] * 100 + ids[1], 0x21 * 100 + 0x22, "pools are channels");
	check_number(QM_SDQCR_CHANNELS_POOL_CONV(ids[0]), 0x4000, "and bits of a mask");
	check_number(QM_SDQCR_CHANNELS_POOL_CONV(0x1000), 0, "others are none");
	qman_static_dequeue_add(QM_SDQCR_CHANNELS_POOL_CONV(ids[0]));
	check_number(qman_static_dequeue_get(), 0x4000, "qman_static_dequeue_get");
	passing(ids[0]);
	retirement(ids[0]);
	parking(ids[0]);
	results(ids[0]);
	tail_drop(ids[0]);
	qman_static_dequeue_del(~0u);
	check_number(qman_static_dequeue_get(), 0, "no pools");
	qman_release_pool_range(ids[0], 2);
	check_number(qman_thread_finish() + bman_thread_finish(), 0, "threads finish");
	check_number(qman_thread_finish(), -ENODEV, "once");
	return check_result();
}
