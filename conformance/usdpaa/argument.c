/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that nobody should give (QB-ARG): results say so, and nothing else happens. */
#include "case.h"

static uint64_t random_state = 42;

static uint32_t
any(void)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33);
}

static void
nothing(void)
{
	struct qm_fd fd = frame(1);
	struct qman_fq fq;

	memset(&fq, 0, sizeof(fq));
	check_number(qman_create_fq(1, 0, NULL), -EINVAL, "no object");
	check_number(qman_create_fq(0, 0, &fq), -EINVAL, "queue 0");
	check_number(qman_create_fq(1 << 24, 0, &fq), -EINVAL, "a queue behind the last");
	check_number(qman_init_fq(NULL, 0, NULL), -EINVAL, "qman_init_fq");
	check_number(qman_init_fq(&fq, 0, NULL), -EINVAL, "of an object that was not created");
	check_number(qman_schedule_fq(NULL), -EINVAL, "qman_schedule_fq");
	check_number(qman_retire_fq(NULL, NULL), -EINVAL, "qman_retire_fq");
	check_number(qman_oos_fq(NULL), -EINVAL, "qman_oos_fq");
	check_number(qman_fq_flow_control(NULL, 1), -EINVAL, "qman_fq_flow_control");
	check_number(qman_query_fq(NULL, NULL), -EINVAL, "qman_query_fq");
	check_number(qman_query_fq_np(NULL, NULL), -EINVAL, "qman_query_fq_np");
	check_number(qman_query_wq(0, NULL), -EINVAL, "qman_query_wq");
	check_number(qman_volatile_dequeue(NULL, 0, 0), -EINVAL, "qman_volatile_dequeue");
	check_number(qman_enqueue(NULL, &fd, 0), -EINVAL, "qman_enqueue");
	check_number(qman_enqueue(&fq, NULL, 0), -EINVAL, "no frame");
	check_number(qman_enqueue_orp(&fq, &fd, 0, NULL, 0), -EINVAL, "qman_enqueue_orp");
	check_number(qman_shutdown_fq(0), -EINVAL, "qman_shutdown_fq");
	check_number(qman_create_cgr(NULL, 0, NULL), -EINVAL, "qman_create_cgr");
	check_number(qman_modify_cgr(NULL, 0, NULL), -EINVAL, "qman_modify_cgr");
	check_number(qman_query_cgr(NULL, NULL), -EINVAL, "qman_query_cgr");
	check_number(qman_delete_cgr(NULL), -EINVAL, "qman_delete_cgr");
	check_number(qman_query_congestion(NULL), -EINVAL, "qman_query_congestion");
	check_number(bman_release(NULL, NULL, 1, 0), -EINVAL, "bman_release");
	check_number(bman_acquire(NULL, NULL, 1, 0), -EINVAL, "bman_acquire");
	check_number(bman_acquire((struct bman_pool *)&fd, NULL, 1, 0), -EINVAL, "something else");
	check_number(bman_flush_stockpile(NULL, 0), -EINVAL, "bman_flush_stockpile");
	check_number(bman_update_pool_thresholds(NULL, NULL), -EINVAL, "bman_update_pool_thresholds");
	check_number(bman_query_free_buffers(NULL), 0, "bman_query_free_buffers");
	check_number(bman_query_pools(NULL), -EINVAL, "bman_query_pools");
	check_number(bman_shutdown_pool(64), -EINVAL, "bman_shutdown_pool");
	check_number(qman_get_wpm(NULL), -EINVAL, "qman_get_wpm");
	check_number(qman_set_wpm(1), 0, "qman_set_wpm");
	qman_destroy_fq(NULL, 0);
	qman_destroy_fq(&fq, 0);
	qman_fq_state(NULL, NULL, NULL);
	qman_fqid_pool_free(NULL, 0);
	bman_free_pool(NULL);
	dma_mem_params(NULL, NULL, NULL, NULL);
	dma_mem_free(NULL, NULL);
	dma_mem_print(NULL);
	check(!dma_mem_raw(NULL, NULL) && !dma_mem_memalign(NULL, 0, 1), "no map");
	qman_set_dc_ern(NULL, 1);
	qman_set_dc_ern(NULL, 0);
}

static void
no_portal(void)
{
	struct queue *q = new_queue(0x700, 0);
	struct qman_cgr cgr = { .cgrid = 1 };
	struct qm_fd fd = frame(1);

	check_number(qman_init_fq(&q->fq, 0, NULL), 0, "a queue needs none");
	check_number(qman_enqueue(&q->fq, &fd, 0), -ENODEV, "frames do");
	check_number(qman_retire_fq(&q->fq, NULL), -ENODEV, "and messages");
	check_number(qman_volatile_dequeue(&q->fq, 0, 0), -ENODEV, "and dequeues");
	check_number(qman_create_cgr(&cgr, 0, NULL), -ENODEV, "and groups");
	check_number(qman_poll_dqrr(16) + (int)qman_poll_slow(), 0, "there is nothing to poll");
	check_number(qman_irqsource_add(QM_PIRQ_DQRI), -ENODEV, "and nothing to wait for");
	qman_poll();
	bman_poll();
	qman_static_dequeue_add(~0u);
	qman_stop_dequeues();
	qman_dca(NULL, 0);
	qman_thread_irq();
	bman_thread_irq();
}

/* Every function with numbers of no sense, on queues that come and go; whatever happens, the rules of states hold. */
static void
random_calls(void)
{
	uint16_t channel = pool();
	struct queue *queues[8];
	int i, ret;

	for (i = 0; i < 8; i++)
		queues[i] = new_queue(0x800 + (uint32_t)i, 0);
	for (i = 0; i < 200000; i++) {
		struct queue *q = queues[any() % 8], *other = queues[any() % 8];
		struct qm_mcc_initfq opts = options(any() % 4 ? channel : (uint16_t)any(), any() & 7, (uint16_t)(any() & 0x7ff));
		struct qm_fd fd = frame(any());
		enum qman_fq_state state;
		u32 flags;

		q->next = (enum qman_cb_dqrr_result)(any() % 6);
		if (q->frames > MOST / 2)
			q->frames = 0;
		if (q->erns > MOST / 2)
			q->erns = 0;
		qman_fq_state(&q->fq, &state, &flags);
		switch (any() % 16) {
		case 0:
			opts.we_mask = (uint16_t)any();
			ret = qman_init_fq(&q->fq, any() & 5, &opts);
			require(ret != 0 || state < qman_fq_state_sched, "initialised in state %d", state);
			break;
		case 1:
			ret = qman_schedule_fq(&q->fq);
			require(ret != 0 || state == qman_fq_state_parked, "scheduled in state %d", state);
			break;
		case 2:
			ret = qman_retire_fq(&q->fq, any() & 1 ? &flags : NULL);
			require(ret < 0 || state == qman_fq_state_parked || state == qman_fq_state_sched, "retired in state %d", state);
			break;
		case 3:
			ret = qman_oos_fq(&q->fq);
			require(ret != 0 || (state == qman_fq_state_retired && !(flags & QMAN_FQ_STATE_BLOCKOOS)), "out of service in state %d", state);
			break;
		case 4:
			qman_volatile_dequeue(&q->fq, any(), any() & (any() % 4 ? 0xff000000 : ~0u));
			break;
		case 5:
			qman_fq_flow_control(&q->fq, any() & 1);
			break;
		case 6:
			qman_enqueue_orp(&q->fq, &fd, any(), &other->fq, (uint16_t)(any() % 64));
			break;
		case 7:
			qman_dca((struct qm_dqrr_entry *)(uintptr_t)q->last, any() & 1);
			break;
		case 8:
			qman_poll_slow();
			break;
		case 9:
			qman_poll();
			break;
		case 10:
			qman_poll_dqrr(any() % 20);
			break;
		default:
			qman_enqueue(&q->fq, &fd, any());
		}
	}
	check(1, "the program is alive");
	for (i = 0; i < 8; i++)
		check_number(qman_shutdown_fq(0x800 + (uint32_t)i), 0, "qman_shutdown_fq");
}

static const struct test_case cases[] = {
	{ "QB-ARG-1", "nothing", nothing },
	{ "QB-ARG-2", "no portal", no_portal },
	{ "QB-ARG-3", "random calls", random_calls },
};

CHAPTER(cases)
