/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion groups (QB-CGR). */
#include "case.h"

static int calls, state = -1;

static void
on_change(struct qman_portal *portal, struct qman_cgr *cgr, int congested)
{
	(void)portal;
	(void)cgr;
	calls++;
	state = congested;
}

static struct qm_mcc_initcgr
settings(uint64_t threshold, int in_frames, int drops)
{
	struct qm_mcc_initcgr opts;

	memset(&opts, 0x5a, sizeof(opts));
	opts.we_mask = QM_CGR_WE_CSCN_EN | QM_CGR_WE_CSTD_EN | QM_CGR_WE_CS_THRES | QM_CGR_WE_MODE;
	opts.cgr.cscn_en = QM_CGR_EN;
	opts.cgr.cstd_en = drops ? QM_CGR_EN : 0;
	opts.cgr.mode = in_frames ? QMAN_CGR_MODE_FRAME : 0;
	qm_cgr_cs_thres_set64(&opts.cgr.cs_thres, threshold, 0);
	return opts;
}

static struct queue *
member(uint16_t channel, uint8_t cgid)
{
	struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);
	struct qm_mcc_initfq opts = options(channel, 4, QM_FQCTRL_CGE);
	enum qman_fq_state state;
	u32 flags;

	opts.we_mask |= QM_INITFQ_WE_CGID;
	opts.fqd.cgid = cgid;
	require(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
	qman_fq_state(&q->fq, &state, &flags);
	check_number(flags & QMAN_FQ_STATE_CGR_EN, QMAN_FQ_STATE_CGR_EN, "a member says so");
	check_number(q->fq.cgr_groupid, cgid, "and of which group");
	return q;
}

static void
crossing(void)
{
	uint16_t channel = pool();
	struct qman_cgr cgr = { .cb = on_change };
	struct qm_mcc_initcgr opts = settings(16, 1, 0);
	struct qm_mcr_querycongestion all;
	struct qm_mcr_querycgr query;
	struct queue *one, *two;

	require(qman_alloc_cgrid(&cgr.cgrid) == 0, "qman_alloc_cgrid");
	check_number(qman_create_cgr(&cgr, QMAN_CGR_FLAG_USE_INIT, &opts), 0, "qman_create_cgr");
	check_number(cgr.chan, qman_affine_channel(-1), "of this portal");
	check_number(qman_create_cgr(&cgr, 0, NULL), -EBUSY, "once");
	one = member(channel, (uint8_t)cgr.cgrid);
	two = member(channel, (uint8_t)cgr.cgrid);
	enqueue(one, 0, 8);
	enqueue(two, 0, 7);
	check_number(qman_poll_slow() & QM_PIRQ_CSCI, 0, "below the threshold");
	enqueue(two, 7, 1);
	check_number(calls, 0, "callbacks run in the slow part");
	check_number(qman_poll_slow() & QM_PIRQ_CSCI, QM_PIRQ_CSCI, "at it");
	check_number(calls * 10 + state, 11, "congested");
	check_number(qman_query_cgr(&cgr, &query), 0, "qman_query_cgr");
	check_number((long long)qm_mcr_querycgr_i_get64(&query), 16, "what it holds");
	check_number(query.cgr.cs * 100 + (int)qm_cgr_cs_thres_get64(&query.cgr.cs_thres), 116, "its state, and its threshold");
	check_number(qman_query_congestion(&all), 0, "qman_query_congestion");
	check_number(QM_MCR_QUERYCONGESTION(&all.state, (u8)cgr.cgrid), 1, "this group");
	check_number(QM_MCR_QUERYCONGESTION(&all.state, (u8)(cgr.cgrid + 1)), 0, "no other");
	qman_poll_dqrr(2);
	qman_poll_slow();
	check_number(calls, 1, "it ends below 7/8 of it");
	qman_poll_dqrr(1);
	qman_poll_slow();
	check_number(calls * 10 + state, 20, "not congested any more");
	opts.we_mask = QM_CGR_WE_CS_THRES;
	qm_cgr_cs_thres_set64(&opts.cgr.cs_thres, 4, 0);
	check_number(qman_modify_cgr(&cgr, 0, &opts), 0, "qman_modify_cgr");
	qman_poll_slow();
	check_number(calls * 10 + state, 31, "it has more than the new one");
	check_number(qman_delete_cgr(&cgr), 0, "qman_delete_cgr");
	check_number(qman_delete_cgr(&cgr), -EINVAL, "once");
	poll_all();
	qman_poll_slow();
	check_number(calls, 3, "nobody is told of a group that was deleted");
	check_number(teardown(one) + teardown(two), 0, "teardown");
	check_number(qman_query_cgr(&cgr, &query), 0, "qman_query_cgr");
	check_number((long long)qm_mcr_querycgr_a_get64(&query), 0, "nothing is left in it");
	qman_release_cgrid(cgr.cgrid);
}

static void
dropping(void)
{
	uint16_t channel = pool();
	struct qman_cgr cgr = { .cgrid = 9, .cb = on_change };
	struct qm_mcc_initcgr opts = settings(600, 0, 1);
	struct queue *q;

	check_number(qman_create_cgr(&cgr, QMAN_CGR_FLAG_USE_INIT, &opts), 0, "600 bytes, and no more");
	q = member(channel, 9);
	enqueue(q, 0, 12);
	check_number(qman_poll_slow(), QM_PIRQ_MRI | QM_PIRQ_CSCI, "rejections, and a change");
	check_number(q->erns * 1000 + q->reasons[0], 2000 + QM_MR_RC_CGR_TAILDROP, "two are rejected");
	check_number(q->rejected[0], 10, "those that came when it was congested");
	check_number(poll_all(), 10, "the others pass");
	enqueue(q, 20, 1);
	check_number(poll_all(), 1, "as do those after it");
}

static const struct test_case cases[] = {
	{ "QB-CGR-1", "crossing the threshold", crossing },
	{ "QB-CGR-2", "dropping", dropping },
};

CHAPTER(cases)
