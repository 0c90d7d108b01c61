/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools of buffers, and numbers (QB-BMAN, QB-ID). */
#include "case.h"

static int calls, state = -1;

static void
on_depletion(struct bman_portal *portal, struct bman_pool *pool, void *ctx, int depleted)
{
	(void)portal;
	(void)pool;
	calls++;
	state = depleted;
	check_number(*(int *)ctx, 42, "with the program's context");
}

static struct bman_pool *
new_pool(uint32_t flags)
{
	struct bman_pool_params params = { .flags = flags | BMAN_POOL_FLAG_DYNAMIC_BPID };
	struct bman_pool *pool = bman_new_pool(&params);

	require(pool != NULL, "bman_new_pool");
	return pool;
}

static int
give(struct bman_pool *pool, int first, int n)
{
	struct bm_buffer bufs[8];
	int i;

	memset(bufs, 0xa5, sizeof(bufs));
	for (i = 0; i < n; i++)
		bm_buffer_set64(&bufs[i], 0x123400000000ULL + (unsigned)(first + i));
	return bman_release(pool, bufs, (u8)n, 0);
}

static void
all_or_none(void)
{
	struct bman_pool *pool = new_pool(0);
	const struct bman_pool_params *params = bman_get_params(pool);
	struct bm_buffer bufs[8];
	struct bm_pool_state pools;
	unsigned int seen = 0;
	int i;

	check(params->bpid > 9 && params->bpid < 64, "a dynamic number is none that files name");
	check_number(give(pool, 0, 7), 0, "seven are released");
	check_number(bman_query_free_buffers(pool), 7, "and counted");
	check_number(bman_query_pools(&pools), 0, "bman_query_pools");
	check_number(bman_depletion_get(&pools.as.state, (u8)params->bpid), 1, "it has buffers");
	check_number(bman_depletion_get(&pools.ds.state, (u8)params->bpid), 0, "and is not depleted");
	check_number(bman_acquire(pool, bufs, 8, 0), -ENOMEM, "eight are not there");
	check_number(bman_query_free_buffers(pool), 7, "and none is taken");
	check_number(bman_acquire(pool, bufs, 7, 0), 7, "seven are");
	for (i = 0; i < 7; i++) {
		check_number(bm_buf_addr(&bufs[i]) >> 32, 0x1234, "with 48 bits");
		check_number(bufs[i].bpid, params->bpid, "and their pool");
		seen |= 1u << (bm_buffer_get64(&bufs[i]) & 7);
	}
	check_number(seen, 0x7f, "each once");
	check_number(bman_acquire(pool, bufs, 1, 0), -ENOMEM, "no more");
	check_number(bman_acquire(pool, bufs, 0, 0), -EINVAL, "none cannot be asked for");
	check_number(bman_acquire(pool, bufs, 9, 0), -EINVAL, "nor nine");
	check_number(bman_release(pool, bufs, 9, 0), -EINVAL, "or released");
	check_number(bman_rcr_is_empty(), 1, "releases are done");
	give(pool, 0, 3);
	check_number(bman_shutdown_pool(params->bpid), 0, "bman_shutdown_pool");
	check_number(bman_query_free_buffers(pool), 0, "it is empty");
	bman_free_pool(pool);
	check_number(bman_acquire(pool, bufs, 1, 0), -EINVAL, "a pool that was freed is none");
	check(!bman_get_params(pool), "and has no parameters");
}

static void
flags(void)
{
	struct bman_pool *in = new_pool(BMAN_POOL_FLAG_ONLY_RELEASE), *out = new_pool(BMAN_POOL_FLAG_NO_RELEASE);
	struct bman_pool_params params = { .flags = BMAN_POOL_FLAG_THRESH, .bpid = 3 };
	struct bm_buffer buf;

	check_number(give(in, 0, 1), 0, "one to release to");
	check_number(bman_acquire(in, &buf, 1, 0), -EINVAL, "is not acquired from");
	check_number(give(out, 0, 1), -EINVAL, "and the other way round");
	check(!bman_new_pool(&params), "thresholds are for dynamic numbers");
	params.flags = BMAN_POOL_FLAG_DEPLETION;
	check(!bman_new_pool(&params), "depletion needs a callback");
	params.flags = 0;
	params.bpid = 64;
	check(!bman_new_pool(&params), "there are 64 pools");
	check(!bman_new_pool(NULL), "parameters are needed");
}

static void
depletion(void)
{
	int ctx = 42;
	struct bman_pool_params params = {
		.flags = BMAN_POOL_FLAG_DEPLETION | BMAN_POOL_FLAG_THRESH | BMAN_POOL_FLAG_DYNAMIC_BPID,
		.cb = on_depletion, .cb_ctx = &ctx, .thresholds = { 2, 4, 0, 0 },
	};
	static const u32 others[4] = { 0, 0, 0, 0 };
	struct bman_pool *pool;
	struct bm_buffer bufs[8];
	uint32_t irq;

	check(!bman_new_pool(&params), "a thread without a portal is told of nothing");
	portals();
	pool = bman_new_pool(&params);
	require(pool != NULL, "bman_new_pool");
	give(pool, 0, 8);
	bman_poll_slow();
	calls = 0;
	check_number(bman_irqsource_add(BM_PIRQ_BSCN), 0, "bman_irqsource_add");
	check(!is_readable(bman_thread_fd()), "nothing happens");
	bman_acquire(pool, bufs, 6, 0);
	check(is_readable(bman_thread_fd()), "its descriptor tells");
	check_number(read(bman_thread_fd(), &irq, 4), 4, "by four bytes");
	bman_thread_irq();
	check_number(calls, 0, "callbacks run in the slow part");
	check_number(bman_poll_slow(), BM_PIRQ_BSCN, "there");
	check_number(calls * 10 + state, 11, "depleted at two");
	give(pool, 0, 1);
	bman_poll();
	check_number(calls, 1, "until there are four");
	give(pool, 1, 1);
	bman_poll();
	check_number(calls * 10 + state, 20, "not depleted any more");
	check_number(bman_update_pool_thresholds(pool, others), 0, "bman_update_pool_thresholds");
	bman_acquire(pool, bufs, 4, 0);
	check_number(bman_poll_slow() * 10 + (u32)calls, 2, "without thresholds it is never depleted");
	bman_free_pool(pool);
}

static void
stockpile(void)
{
	struct bman_pool *with = new_pool(BMAN_POOL_FLAG_STOCKPILE);
	struct bm_buffer bufs[8];
	int i, n = 0;

	for (i = 0; i < 20; i++)
		give(with, i * 8, 8);
	check(bman_query_free_buffers(with) < 160, "some are kept back");
	check_number(bman_flush_stockpile(with, 0), 0, "bman_flush_stockpile");
	check_number(bman_query_free_buffers(with), 160, "none any more");
	while (bman_acquire(with, bufs, 8, BMAN_ACQUIRE_FLAG_STOCKPILE) == 8)
		n += 8;
	check_number(n, 160, "all can be acquired");
}

static void
numbers(void)
{
	uint32_t ids[20], one;
	int i, in_a_row = 1;

	check_number(qman_alloc_fqid_range(ids, 20, 16, 0), 20, "twenty numbers");
	for (i = 0; i < 20; i++)
		in_a_row &= ids[i] == ids[0] + (uint32_t)i;
	check(in_a_row && ids[0] % 16 == 0, "in a row, aligned");
	check_number(qman_reserve_fqid_range(ids[5], 3), -EBUSY, "in use");
	qman_release_fqid_range(ids[0], 20);
	check_number(qman_reserve_fqid_range(ids[5], 3), 0, "free again");
	check_number(qman_reserve_fqid(0x400) * 10 + qman_reserve_fqid(0x400), -EBUSY, "numbers that files name are reserved once");
	qman_release_fqid(0x400);
	check_number(qman_reserve_fqid(0x400), 0, "until they are released");
	check_number(qman_alloc_pool_range(ids, 16, 1, 0), -ENOMEM, "there are no 16 pools");
	check_number(qman_alloc_pool_range(ids, 16, 1, 1), 15, "but 15");
	check_number(qman_alloc_pool(&one), -ENOMEM, "and no more");
	qman_release_pool_range(ids[0], 15);
	check_number(qman_alloc_cgrid_range(ids, 2, 0, 0), 2, "groups");
	check_number(bman_alloc_bpid_range(ids, 2, 0, 0), 2, "pools of buffers");
	check_number(bman_reserve_bpid(7), 0, "and those that files name");
	qman_seed_fqid_range(0x2000000, 10);
	check_number(qman_reserve_fqid(0xffffff), 0, "the last queue");
	check_number(qman_reserve_fqid(0x1000000), -EBUSY, "there is none behind it");
	check_number(qman_alloc_fqid_range(NULL, 1, 0, 0), -EINVAL, "room is needed");
	check_number(qman_alloc_fqid_range(ids, 0, 0, 0), -EINVAL, "and a count");
}

static void
own_numbers(void)
{
	struct qman_fqid_pool *pool = qman_fqid_pool_create(100, 2);
	uint32_t one, two, three;

	require(pool != NULL, "qman_fqid_pool_create");
	check_number(qman_fqid_pool_alloc(pool, &one) + qman_fqid_pool_alloc(pool, &two), 0, "two");
	check_number(one * 1000 + two, 100101, "of the range");
	check_number(qman_fqid_pool_alloc(pool, &three), -ENOMEM, "and no more");
	check_number(qman_fqid_pool_used(pool), 2, "are in use");
	check_number(qman_fqid_pool_destroy(pool), -EBUSY, "and so is the range");
	qman_fqid_pool_free(pool, one);
	check_number(qman_fqid_pool_alloc(pool, &three) * 1000 + (int)three, 100, "free again");
	qman_fqid_pool_free(pool, two);
	qman_fqid_pool_free(pool, three);
	check_number(qman_fqid_pool_destroy(pool), 0, "destroyed");
	check_number(qman_fqid_pool_alloc(pool, &one), -EINVAL, "which is none");
}

static const struct test_case cases[] = {
	{ "QB-BMAN-1", "all or none", all_or_none },
	{ "QB-BMAN-2", "flags", flags },
	{ "QB-BMAN-3", "depletion", depletion },
	{ "QB-BMAN-4", "stockpile", stockpile },
	{ "QB-ID-1", "ranges", numbers },
	{ "QB-ID-2", "a program's own", own_numbers },
};

CHAPTER(cases)
