/* SPDX-License-Identifier: BSD-2-Clause */
/* Portals of threads, and what tells that there is something to do (QB-PORTAL). */
#include "case.h"

static void
threads(void)
{
	const struct qman_portal_config *config;
	cpu_set_t before, one;
	int cpu = 0;

	check(!qman_get_portal_config() && !bman_get_portal_config(), "none before");
	check_number(qman_thread_fd(), -ENODEV, "and no descriptor");
	require(sched_getaffinity(0, sizeof(before), &before) == 0, "sched_getaffinity");
	if (CPU_COUNT(&before) > 1) {
		check_number(qman_thread_init(), -EINVAL, "a thread with several CPUs gets none");
		check_number(bman_thread_init(), -EINVAL, "of either");
	}
	bind_thread();
	require(sched_getaffinity(0, sizeof(one), &one) == 0, "sched_getaffinity");
	while (!CPU_ISSET(cpu, &one))
		cpu++;
	check_number(qman_thread_init_idx(7), 0, "the portal that is asked for");
	check_number(qman_thread_init(), -EBUSY, "a thread has one");
	check_number(bman_thread_init_idx(QBMAN_ANY_PORTAL_IDX), 0, "of each manager");
	config = qman_get_portal_config();
	check(config && config->cpu == cpu && config->index == 7, "its configuration");
	check_number(config->pools, QM_SDQCR_CHANNELS_POOL_MASK, "it may take from all pools");
	check_number(qman_affine_channel(-1), config->channel, "its channel");
	check_number(qman_affine_channel(cpu), config->channel, "is the CPU's");
	check(CPU_ISSET(cpu, qman_affine_cpus()) && CPU_ISSET(cpu, bman_affine_cpus()), "which is one with a portal");
	check_number(qman_thread_finish() + bman_thread_finish(), 0, "given back");
	check_number(qman_thread_init_idx(32), -ENODEV, "there are 32");
	check_number(qman_thread_init_idx(7), 0, "and it is free again");
}

static pthread_key_t at_end;

/* Variables of the thread are gone, and may have given its portals back. */
static void
end_of_thread(void *argument)
{
	int qman = qman_thread_finish(), bman = bman_thread_finish();

	check(qman == 0 || qman == -ENODEV, "the queue manager's, or none any more");
	check(bman == 0 || bman == -ENODEV, "the buffer manager's");
	check(qman_thread_init() < 0 && bman_thread_init() < 0, "a thread that ends gets none");
	*(int *)argument = 1;
}

static void *
thread_that_ends(void *argument)
{
	bind_thread();
	check_number(qman_thread_init() + bman_thread_init(), 0, "its portals");
	pthread_setspecific(at_end, argument);
	return NULL;
}

static void
end(void)
{
	pthread_t thread;
	int ended = 0, turn;

	require(pthread_key_create(&at_end, end_of_thread) == 0, "a key");
	/* More than there are portals. */
	for (turn = 0; turn < 40; turn++) {
		require(pthread_create(&thread, NULL, thread_that_ends, &ended) == 0, "a thread");
		pthread_join(thread, NULL);
	}
	check_number(ended, 1, "destructors ran");
}

static void
global(void)
{
	check_number(qman_global_init() + qman_global_init(), 0, "the queue manager, as often as one likes");
	check_number(bman_global_init(), 0, "the buffer manager");
	check_number(bman_global_init(), -EBUSY, "once");
}

static void
static_dequeue(void)
{
	uint16_t channel = pool();
	struct queue *pooled = scheduled(channel, 0), *own = scheduled(qman_affine_channel(-1), 0);

	check_number(qman_static_dequeue_get(), QM_SDQCR_CHANNELS_POOL_CONV(channel), "the pools of this portal");
	check_number(QM_SDQCR_CHANNELS_POOL_CONV(qm_channel_pool1), QM_SDQCR_CHANNELS_POOL(1), "pool 1 has the first channel");
	check_number(QM_SDQCR_CHANNELS_POOL_CONV(0x1000), 0, "others are none");
	enqueue(pooled, 0, 2);
	enqueue(own, 0, 2);
	qman_stop_dequeues();
	qman_stop_dequeues();
	check_number(poll_all(), 0, "stopped");
	qman_start_dequeues();
	check_number(poll_all(), 0, "as often as that");
	qman_start_dequeues();
	check_number(qman_poll_dqrr(2) * 10 + own->frames, 22, "its own channel comes first");
	qman_static_dequeue_del(~0u);
	check_number(poll_all(), 0, "no pools");
	qman_static_dequeue_add(~0u);
	check_number(qman_static_dequeue_get(), 0x7fff, "all pools");
	check_number(poll_all() * 10 + pooled->frames, 22, "with theirs");
}

static void
descriptor(void)
{
	uint16_t channel = pool();
	struct queue *q = scheduled(channel, 0), *none = new_queue(0x700, 0);
	uint32_t irq;
	int fd = qman_thread_fd();

	check_number(qman_irqsource_get(), 0, "no sources");
	enqueue(q, 0, 1);
	check(!is_readable(fd), "nothing tells");
	check_number(qman_irqsource_add(QM_PIRQ_DQRI | QM_PIRQ_MRI), 0, "frames and messages");
	check_number(qman_irqsource_get(), QM_PIRQ_DQRI | QM_PIRQ_MRI, "are sources");
	check(is_readable(fd), "what is there already tells");
	check_number(read(fd, &irq, sizeof(irq)), 4, "by four bytes");
	check(!is_readable(fd), "once");
	check_number(poll_all(), 1, "it is taken");
	qman_thread_irq();
	check(!is_readable(fd), "armed again, with nothing there");
	enqueue(q, 0, 1);
	check(is_readable(fd), "a frame tells");
	check_number(read(fd, &irq, sizeof(irq)), 4, "by four bytes");
	poll_all();
	qman_thread_irq();
	enqueue(none, 0, 1);
	check(is_readable(fd), "a message tells");
	check_number(read(fd, &irq, sizeof(irq)), 4, "by four bytes");
	qman_poll_slow();
	check_number(qman_irqsource_remove(~0u), 0, "no sources");
	qman_thread_irq();
	enqueue(q, 0, 1);
	check(!is_readable(fd), "nothing tells");
}

static struct queue *echo;

static enum qman_cb_dqrr_result
on_echo(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	(void)portal;
	(void)fq;
	while (qman_enqueue(&echo->fq, &entry->fd, 0))
		;
	return qman_cb_dqrr_consume;
}

static struct queue *work;
static uint16_t shared;
static volatile int stop;
static volatile clockid_t busy;

static void *
sleeper(void *arg)
{
	(void)arg;
	portals();
	qman_static_dequeue_add(QM_SDQCR_CHANNELS_POOL_CONV(shared));
	pthread_getcpuclockid(pthread_self(), (clockid_t *)&busy);
	while (!stop) {
		struct pollfd fd = { qman_thread_fd(), POLLIN, 0 };
		uint32_t irq;

		qman_irqsource_add(QM_PIRQ_DQRI);
		/* Without an end: it is woken, or the case hangs. */
		poll(&fd, 1, -1);
		if (read(fd.fd, &irq, sizeof(irq)) == sizeof(irq))
			qman_thread_irq();
		qman_irqsource_remove(QM_PIRQ_DQRI);
		poll_all();
	}
	qman_thread_finish();
	bman_thread_finish();
	return NULL;
}

static void
idle(void)
{
	uint16_t channel = pool();
	pthread_t threads[2];
	uint32_t id;
	int i, round;

	require(qman_alloc_pool(&id) == 0, "qman_alloc_pool");
	shared = (uint16_t)id;
	echo = scheduled(channel, 0);
	work = scheduled(shared, 0);
	work->fq.cb.dqrr = on_echo;
	for (i = 0; i < 2; i++)
		require(pthread_create(&threads[i], NULL, sleeper, NULL) == 0, "a thread");
	for (round = 1; round <= 500; round++) {
		enqueue(work, (uint32_t)round, 1);
		while (echo->frames < round) {
			struct pollfd fd = { qman_thread_fd(), POLLIN, 0 };
			uint32_t irq;

			qman_irqsource_add(QM_PIRQ_DQRI);
			poll(&fd, 1, -1);
			if (read(fd.fd, &irq, sizeof(irq)) == sizeof(irq))
				qman_thread_irq();
			qman_irqsource_remove(QM_PIRQ_DQRI);
			poll_all();
		}
	}
	check_number(echo->frames, 500, "each frame wakes the thread that is to take it");
	stop = 1;
	/* Each sleeping thread takes one. */
	enqueue(work, 0, 1);
	for (i = 0; i < 2; i++) {
		enqueue(work, 0, 1);
		pthread_join(threads[i], NULL);
	}
}

static int within;

static enum qman_cb_dqrr_result
on_nested(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	(void)portal;
	(void)fq;
	(void)entry;
	within += qman_poll_dqrr(16) + (int)qman_poll_slow();
	qman_poll();
	check_number(qman_thread_finish(), -EBUSY, "a portal is not given back within");
	return qman_cb_dqrr_consume;
}

static void
nested(void)
{
	uint16_t channel = pool();
	struct queue *q = scheduled(channel, 0);

	q->fq.cb.dqrr = on_nested;
	enqueue(q, 0, 20);
	check_number(poll_all(), 20, "all");
	check_number(within, 0, "polling within a callback does nothing");
}

static const struct test_case cases[] = {
	{ "QB-PORTAL-1", "threads", threads },
	{ "QB-PORTAL-1", "the end of a thread", end },
	{ "QB-PORTAL-2", "managers", global },
	{ "QB-PORTAL-3", "pools", static_dequeue },
	{ "QB-PORTAL-4", "descriptor", descriptor },
	{ "QB-PORTAL-4", "sleeping threads", idle },
	{ "QB-PORTAL-5", "polling within callbacks", nested },
};

CHAPTER(cases)
