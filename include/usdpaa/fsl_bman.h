/* The buffer manager: USDPAA's fsl_bman.h. Functions give 0 or a negative errno, unless they say otherwise. */
#ifndef FSL_BMAN_H
#define FSL_BMAN_H

#pragma GCC system_header
#include "compat.h"
#include "qman_struct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sources of interrupts, commands and results, flags of pools, releases and acquires */
#define BM_PIRQ_RCRI                 2
#define BM_PIRQ_BSCN                 1
#define BM_RCR_VERB_VBIT             0x80
#define BM_RCR_VERB_CMD_MASK         0x70
#define BM_RCR_VERB_CMD_BPID_SINGLE  0x20
#define BM_RCR_VERB_CMD_BPID_MULTI   0x30
#define BM_RCR_VERB_BUFCOUNT_MASK    0xf
#define BM_MCC_VERB_VBIT             0x80
#define BM_MCC_VERB_CMD_MASK         0x70
#define BM_MCC_VERB_CMD_ACQUIRE      0x10
#define BM_MCC_VERB_CMD_QUERY        0x40
#define BM_MCC_VERB_ACQUIRE_BUFCOUNT 0xf
#define BM_MCR_VERB_VBIT             0x80
#define BM_MCR_VERB_CMD_MASK         0x70
#define BM_MCR_VERB_CMD_ACQUIRE      0x10
#define BM_MCR_VERB_CMD_QUERY        0x40
#define BM_MCR_VERB_CMD_ERR_INVALID  0x60
#define BM_MCR_VERB_CMD_ERR_ECC      0x70
#define BM_MCR_VERB_ACQUIRE_BUFCOUNT 0xf
#define BMAN_POOL_FLAG_NO_RELEASE    1
#define BMAN_POOL_FLAG_ONLY_RELEASE  2
#define BMAN_POOL_FLAG_DEPLETION     4
#define BMAN_POOL_FLAG_DYNAMIC_BPID  8
#define BMAN_POOL_FLAG_THRESH        0x10
#define BMAN_POOL_FLAG_STOCKPILE     0x20
#define BMAN_RELEASE_FLAG_NOW        8
#define BMAN_ACQUIRE_FLAG_STOCKPILE  1

/* A buffer: its address, and room for its pool. See qman_struct.h on the order of the address's bytes. */
struct bm_buffer {
	union {
		struct {
			u8 __reserved1;
			u8 bpid;
			u16 hi;
			u32 lo;
		} USDPAA_BIG_ENDIAN;
#ifdef USDPAA_HAS_BIG_ENDIAN
		struct {
			u64 __notaddress : 16;
			u64 addr : 48;
		} USDPAA_BIG_ENDIAN;
#endif
		u64 opaque;
	};
} __attribute__((__aligned__(8)));

static inline u64 bm_buffer_get64(const struct bm_buffer *buf)
{
	return usdpaa_get_address(buf, 48);
}
static inline dma_addr_t bm_buf_addr(const struct bm_buffer *buf)
{
	return usdpaa_get_address(buf, 48);
}
#define bm_buffer_set64(buf, v) usdpaa_set_address((struct bm_buffer *)(buf), (v), 48)

/* A bit for each of 64 pools, from the most significant of the first word. */
struct bman_depletion {
	u32 __state[2];
};

static inline void bman_depletion_init(struct bman_depletion *c)
{
	c->__state[0] = c->__state[1] = 0;
}
static inline void bman_depletion_fill(struct bman_depletion *c)
{
	c->__state[0] = c->__state[1] = ~0u;
}
static inline int bman_depletion_get(const struct bman_depletion *c, u8 bpid)
{
	return !!(c->__state[bpid >> 5 & 1] & 0x80000000u >> (bpid & 31));
}
static inline void bman_depletion_set(struct bman_depletion *c, u8 bpid)
{
	c->__state[bpid >> 5 & 1] |= 0x80000000u >> (bpid & 31);
}
static inline void bman_depletion_unset(struct bman_depletion *c, u8 bpid)
{
	c->__state[bpid >> 5 & 1] &= ~(0x80000000u >> (bpid & 31));
}

/* Which pools have buffers (as), and which are depleted (ds). */
struct bm_pool_state {
	u8 __reserved1[32];
	struct {
		u8 __reserved1[8];
		struct bman_depletion state;
	} as, ds;
};

struct bman_portal;
struct bman_pool;

/* A pool has come to be depleted, or is so no more: in bman_poll_slow and bman_poll of the thread that made the pool. */
typedef void (*bman_cb_depletion)(struct bman_portal *bm, struct bman_pool *pool, void *cb_ctx, int depleted);

struct bman_pool_params {
	/* Set by bman_new_pool with BMAN_POOL_FLAG_DYNAMIC_BPID. */
	u32 bpid;
	u32 flags;
	/* With BMAN_POOL_FLAG_DEPLETION. */
	bman_cb_depletion cb;
	void *cb_ctx;
	/* With BMAN_POOL_FLAG_THRESH, free buffers: entry and exit of depletion for software, the same for hardware. */
	u32 thresholds[4];
};

struct bman_portal_config {
	int cpu;
	int irq;
	u32 index;
	int is_shared;
	struct bman_depletion mask;
};

const struct bman_portal_config *bman_get_portal_config(void);
u32 bman_irqsource_get(void);
int bman_irqsource_add(u32 bits);
int bman_irqsource_remove(u32 bits);
const cpumask_t *bman_affine_cpus(void);
/* Hands changes of depletion to callbacks: the sources (BM_PIRQ_*) that there was something of. */
u32 bman_poll_slow(void);
void bman_poll(void);
int bman_rcr_is_empty(void);

/* Numbers of pools: as those of fsl_qman.h. */
int bman_alloc_bpid_range(u32 *result, u32 count, u32 align, int partial);
void bman_release_bpid_range(u32 bpid, unsigned int count);
int bman_reserve_bpid_range(u32 bpid, unsigned int count);
void bman_seed_bpid_range(u32 bpid, unsigned int count);
static inline int bman_alloc_bpid(u32 *result)
{
	int ret = bman_alloc_bpid_range(result, 1, 0, 0);

	return ret > 0 ? 0 : ret;
}
static inline void bman_release_bpid(u32 bpid)
{
	bman_release_bpid_range(bpid, 1);
}
static inline int bman_reserve_bpid(u32 bpid)
{
	return bman_reserve_bpid_range(bpid, 1);
}

/* NULL: params are wrong, or there are no numbers left. */
struct bman_pool *bman_new_pool(const struct bman_pool_params *params);
void bman_free_pool(struct bman_pool *pool);
const struct bman_pool_params *bman_get_params(const struct bman_pool *pool);
/* 1 to 8 buffers. */
int bman_release(struct bman_pool *pool, const struct bm_buffer *bufs, u8 num, u32 flags);
/* 1 to 8 buffers: num, or -ENOMEM and none. */
int bman_acquire(struct bman_pool *pool, struct bm_buffer *bufs, u8 num, u32 flags);
/* Gives the pool what BMAN_POOL_FLAG_STOCKPILE keeps back. */
int bman_flush_stockpile(struct bman_pool *pool, u32 flags);
int bman_query_pools(struct bm_pool_state *state);
u32 bman_query_free_buffers(struct bman_pool *pool);
int bman_update_pool_thresholds(struct bman_pool *pool, const u32 *thresholds);
/* Throws the buffers of a pool away. */
int bman_shutdown_pool(u32 bpid);

#ifdef __cplusplus
}
#endif

#endif
