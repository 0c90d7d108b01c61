/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread with portals, queues, and polling. */
#ifndef PORTALS_H
#define PORTALS_H

#include "../chapter.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <usdpaa/fsl_usd.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/dma_mem.h>

/* Binds the calling thread to the first CPU that it may run on. */
static inline void
bind_thread(void)
{
	cpu_set_t mask;
	int cpu = 0;

	require(sched_getaffinity(0, sizeof(mask), &mask) == 0, "sched_getaffinity");
	while (!CPU_ISSET(cpu, &mask))
		cpu++;
	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	require(sched_setaffinity(0, sizeof(mask), &mask) == 0, "sched_setaffinity");
}

static inline void
portals(void)
{
	bind_thread();
	require(bman_thread_init() == 0, "bman_thread_init");
	require(qman_thread_init() == 0, "qman_thread_init");
}

/* The channel of a pool that the calling thread, with new portals, takes frames from. */
static inline uint16_t
pool(void)
{
	uint32_t id;

	require(qman_global_init() == 0 && bman_global_init() == 0, "global init");
	portals();
	require(qman_alloc_pool(&id) == 0, "qman_alloc_pool");
	qman_static_dequeue_add(QM_SDQCR_CHANNELS_POOL_CONV(id));
	return (uint16_t)id;
}

#define MOST 4096

/* A queue that remembers what it was given. */
struct queue {
	struct qman_fq fq;
	enum qman_cb_dqrr_result next;
	int frames;
	uint32_t commands[MOST];
	uint16_t sequences[MOST];
	uint8_t stats[MOST];
	const struct qm_dqrr_entry *last;
	int empties, erns, states;
	uint8_t reasons[MOST];
	uint32_t rejected[MOST];
	uint8_t verb, fqs;
};

static inline enum qman_cb_dqrr_result
on_frame(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	struct queue *q = (struct queue *)fq;

	(void)portal;
	q->last = entry;
	if (!(entry->stat & QM_DQRR_STAT_FD_VALID)) {
		q->empties++;
		return qman_cb_dqrr_consume;
	}
	if (q->frames < MOST) {
		q->commands[q->frames] = entry->fd.cmd;
		q->sequences[q->frames] = entry->seqnum;
		q->stats[q->frames] = entry->stat;
	}
	q->frames++;
	return q->next;
}

static inline void
on_ern(struct qman_portal *portal, struct qman_fq *fq, const struct qm_mr_entry *msg)
{
	struct queue *q = (struct queue *)fq;

	(void)portal;
	if (q->erns < MOST) {
		q->reasons[q->erns] = msg->ern.rc & QM_MR_RC_MASK;
		q->rejected[q->erns] = msg->ern.fd.cmd;
	}
	q->erns++;
}

static inline void
on_state(struct qman_portal *portal, struct qman_fq *fq, const struct qm_mr_entry *msg)
{
	struct queue *q = (struct queue *)fq;

	(void)portal;
	q->states++;
	q->verb = msg->verb & QM_MR_VERB_TYPE_MASK;
	q->fqs = msg->fq.fqs;
}

static inline struct queue *
new_queue(uint32_t fqid, uint32_t flags)
{
	struct queue *q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);

	require(q != NULL, "memory");
	memset(q, 0xa5, sizeof(*q));
	q->next = qman_cb_dqrr_consume;
	q->frames = q->empties = q->erns = q->states = 0;
	q->last = NULL;
	q->fq.cb.dqrr = on_frame;
	q->fq.cb.ern = on_ern;
	q->fq.cb.fqs = on_state;
	require(qman_create_fq(fqid, flags, &q->fq) == 0, "qman_create_fq");
	return q;
}

/* Options of which nothing is said but what is named here. */
static inline struct qm_mcc_initfq
options(uint16_t channel, uint8_t wq, uint16_t control)
{
	struct qm_mcc_initfq opts;

	memset(&opts, 0x5a, sizeof(opts));
	opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_FQCTRL;
	opts.fqd.dest.channel = channel;
	opts.fqd.dest.wq = wq;
	opts.fqd.fq_ctrl = control;
	return opts;
}

static inline struct queue *
scheduled(uint16_t channel, uint16_t control)
{
	struct queue *q = new_queue(0, QMAN_FQ_FLAG_DYNAMIC_FQID);
	struct qm_mcc_initfq opts = options(channel, 4, control);

	require(qman_init_fq(&q->fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
	return q;
}

static inline struct qm_fd
frame(uint32_t command)
{
	struct qm_fd fd;

	memset(&fd, 0, sizeof(fd));
	qm_fd_addr_set64(&fd, 0x123456789aULL);
	fd.bpid = 7;
	fd.format = qm_fd_contig;
	fd.offset = 64;
	fd.length20 = 60;
	fd.cmd = command;
	return fd;
}

static inline int
enqueue(struct queue *q, uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		struct qm_fd fd = frame(first + i);
		int ret = qman_enqueue(&q->fq, &fd, 0);

		if (ret)
			return ret;
	}
	return 0;
}

/* Until there is nothing more. */
static inline int
poll_all(void)
{
	int all = 0, some;

	while ((some = qman_poll_dqrr(16)) > 0)
		all += some;
	return all;
}

/* A thread's work: takes frames from a pool channel, so many at most in a poll, until it is told to stop. */
static inline void
take_until(uint16_t channel, unsigned int most, volatile int *stop)
{
	portals();
	qman_static_dequeue_add(QM_SDQCR_CHANNELS_POOL_CONV(channel));
	while (!*stop)
		if (!qman_poll_dqrr(most))
			sched_yield();
	qman_thread_finish();
	bman_thread_finish();
}

static inline int
is_readable(int fd)
{
	struct pollfd one = { fd, POLLIN, 0 };

	return poll(&one, 1, 0) == 1;
}

/* As programs do it: to out of service, its frames taken by a volatile dequeue. */
static inline int
teardown(struct queue *q)
{
	enum qman_fq_state state;
	u32 flags;
	int ret = qman_retire_fq(&q->fq, &flags);

	if (ret < 0)
		return ret;
	if (ret > 0) {
		do {
			qman_poll();
			qman_fq_state(&q->fq, &state, &flags);
		} while (state != qman_fq_state_retired);
		if (flags & QMAN_FQ_STATE_NE) {
			ret = qman_volatile_dequeue(&q->fq, 0, QM_VDQCR_NUMFRAMES_TILLEMPTY);
			if (ret)
				return ret;
			do {
				qman_poll();
				qman_fq_state(&q->fq, &state, &flags);
			} while (flags & QMAN_FQ_STATE_VDQCR);
		}
	}
	ret = qman_oos_fq(&q->fq);
	if (ret == 0)
		qman_destroy_fq(&q->fq, 0);
	return ret;
}

#endif
