/*
 * The queue manager: USDPAA's fsl_qman.h. Functions give 0 or a negative errno, unless they say otherwise. Those that need a
 * portal give -ENODEV, or what stands for nothing, in a thread that has none.
 */
#ifndef FSL_QMAN_H
#define FSL_QMAN_H

#pragma GCC system_header
#include "compat.h"
#include "qman_const.h"
#include "qman_struct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The channel of pool 1, and those of engines. */
extern u16 qm_channel_pool1;
extern u16 qm_channel_caam;
extern u16 qm_channel_pme;

/* The pool of a channel that qman_alloc_pool gave, as a mask for static dequeues. */
static inline u32 QM_SDQCR_CHANNELS_POOL_CONV(u16 channel)
{
	unsigned int pool = channel - qm_channel_pool1 + 1u;

	return pool < 16 ? QM_SDQCR_CHANNELS_POOL(pool) : 0;
}

/* Addresses in frames, tables and descriptors. */
static inline u64 qm_fd_addr_get64(const struct qm_fd *fd)
{
	return usdpaa_get_address(fd, 40);
}
static inline dma_addr_t qm_fd_addr(const struct qm_fd *fd)
{
	return usdpaa_get_address(fd, 40);
}
#define qm_fd_addr_set64(fd, v) usdpaa_set_address((struct qm_fd *)(fd), (v), 40)

static inline u64 qm_sg_entry_get64(const struct qm_sg_entry *sg)
{
	return usdpaa_get_address(sg, 40);
}
static inline dma_addr_t qm_sg_addr(const struct qm_sg_entry *sg)
{
	return usdpaa_get_address(sg, 40);
}
#define qm_sg_entry_set64(sg, v) usdpaa_set_address((struct qm_sg_entry *)(sg), (v), 40)

static inline u64 qm_fqd_stashing_get64(const struct qm_fqd *fqd)
{
	return (u64)fqd->context_a.context_hi << 32 | fqd->context_a.context_lo;
}
static inline dma_addr_t qm_fqd_stashing_addr(const struct qm_fqd *fqd)
{
	return qm_fqd_stashing_get64(fqd);
}
static inline void usdpaa_set_stashing(struct qm_fqd *fqd, u64 address)
{
	fqd->context_a.context_hi = (u16)(address >> 32);
	fqd->context_a.context_lo = (u32)address;
}
#define qm_fqd_stashing_set64(fqd, v) usdpaa_set_stashing((fqd), (v))

static inline u64 qm_fqd_context_a_get64(const struct qm_fqd *fqd)
{
	return (u64)fqd->context_a.hi << 32 | fqd->context_a.lo;
}
static inline void usdpaa_set_context_a(struct qm_fqd *fqd, u64 context)
{
	fqd->context_a.hi = (u32)(context >> 32);
	fqd->context_a.lo = (u32)context;
}
#define qm_fqd_context_a_set64(fqd, v) usdpaa_set_context_a((fqd), (v))

/* Initialisers of a struct qm_fd. */
#define QM_FD_FMT_20(cmd_, hi_, lo_, fmt_, off_, len_) \
	{ .opaque_addr = __builtin_bswap64((u64)(hi_) << 32 | (u32)(lo_)), \
	  .opaque = (u32)(fmt_) << 29 | (u32)(off_) << 20 | (u32)(len_), .cmd = (cmd_) }
#define QM_FD_FMT_29(cmd_, hi_, lo_, fmt_, len_) \
	{ .opaque_addr = __builtin_bswap64((u64)(hi_) << 32 | (u32)(lo_)), \
	  .opaque = (u32)(fmt_) << 29 | (u32)(len_), .cmd = (cmd_) }

/* A number as an eight-bit mantissa and an exponent: bits that are lost are cut, or rounded up. */
static inline u64 usdpaa_mantissa(u64 val, int roundup, unsigned int *exponent)
{
	*exponent = 0;
	while (val > 0xff) {
		u64 lost = val & 1;

		val >>= 1;
		++*exponent;
		if (roundup)
			val += lost;
	}
	return val;
}

/* -ERANGE above 0xe0000000. */
static inline int qm_fqd_taildrop_set(struct qm_fqd_taildrop *td, u32 val, int roundup)
{
	unsigned int exponent;

	if (val > 0xe0000000)
		return -ERANGE;
	td->mant = (u8)usdpaa_mantissa(val, roundup, &exponent);
	td->exp = exponent & 0x1f;
	return 0;
}
static inline u32 qm_fqd_taildrop_get(const struct qm_fqd_taildrop *td)
{
	return (u32)td->mant << td->exp;
}
static inline int qm_cgr_cs_thres_set64(struct qm_cgr_cs_thres *th, u64 val, int roundup)
{
	unsigned int exponent;

	th->TA = (u8)usdpaa_mantissa(val, roundup, &exponent);
	th->Tn = exponent & 0x1f;
	return 0;
}
static inline u64 qm_cgr_cs_thres_get64(const struct qm_cgr_cs_thres *th)
{
	return (u64)th->TA << th->Tn;
}

/* What a group holds now, and on average. */
static inline u64 qm_mcr_querycgr_i_get64(const struct qm_mcr_querycgr *q)
{
	return (u64)q->i_bcnt_hi << 32 | q->i_bcnt_lo;
}
static inline u64 qm_mcr_querycgr_a_get64(const struct qm_mcr_querycgr *q)
{
	return (u64)q->a_bcnt_hi << 32 | q->a_bcnt_lo;
}
static inline u64 qm_mcr_cgrtestwrite_i_get64(const struct qm_mcr_cgrtestwrite *q)
{
	return (u64)q->i_bcnt_hi << 32 | q->i_bcnt_lo;
}
static inline u64 qm_mcr_cgrtestwrite_a_get64(const struct qm_mcr_cgrtestwrite *q)
{
	return (u64)q->a_bcnt_hi << 32 | q->a_bcnt_lo;
}

/* Whether a group is congested. */
static inline int QM_MCR_QUERYCONGESTION(struct __qm_mcr_querycongestion *p, u8 cgr)
{
	return !!(p->state[cgr >> 5] & (0x80000000 >> (cgr & 31)));
}

struct qman_portal;
struct qman_fq;
struct qman_cgr;
struct qman_fqid_pool;

/* What becomes of an entry when its callback returns. */
enum qman_cb_dqrr_result {
	/* It is consumed. */
	qman_cb_dqrr_consume = 0,
	/* The same, and its frame queue, which is held active, is parked. */
	qman_cb_dqrr_park = 1,
	/* It stays until qman_dca, or an enqueue with QMAN_ENQUEUE_FLAG_DCA, consumes it. */
	qman_cb_dqrr_defer = 2,
	/* It comes again, and polling ends. */
	qman_cb_dqrr_stop = 3,
	/* It is consumed, and polling ends. */
	qman_cb_dqrr_consume_stop = 4
};

/*
 * Callbacks run in the thread that polls; those of messages (ern, fqs, dc_ern, cgr) in qman_poll_slow and qman_poll. They may
 * call anything but functions that poll, which do nothing then, and qman_thread_finish (-EBUSY).
 */
typedef enum qman_cb_dqrr_result (*qman_cb_dqrr)(struct qman_portal *qm, struct qman_fq *fq,
						 const struct qm_dqrr_entry *dqrr);
typedef void (*qman_cb_mr)(struct qman_portal *qm, struct qman_fq *fq, const struct qm_mr_entry *msg);
typedef void (*qman_cb_dc_ern)(struct qman_portal *qm, const struct qm_mr_entry *msg);
typedef void (*qman_cb_cgr)(struct qman_portal *qm, struct qman_cgr *cgr, int congested);

enum qman_fq_state {
	qman_fq_state_oos = 0,
	qman_fq_state_parked = 1,
	qman_fq_state_sched = 2,
	qman_fq_state_retired = 3
};

struct qman_fq_cb {
	qman_cb_dqrr dqrr;
	qman_cb_mr ern;
	qman_cb_mr fqs;
};

struct rb_node {
	struct rb_node *prev, *next;
};

/* A frame queue. The program owns it, and sets cb before qman_create_fq; it may read all, and change fqid for enqueues. */
struct qman_fq {
	struct qman_fq_cb cb;
	pthread_mutex_t fqlock;
	u32 fqid;
	volatile unsigned long flags;
	enum qman_fq_state state;
	int cgr_groupid;
	struct rb_node node;
};

/* A congestion group. The program owns it, and sets cgrid and cb. */
struct qman_cgr {
	u32 cgrid;
	qman_cb_cgr cb;
	u16 chan;
	struct list_head node;
};

struct qman_portal_config {
	int cpu;
	int irq;
	u32 index;
	int is_shared;
	/* Its own channel. */
	u16 channel;
	/* Pools that it may take from. */
	u32 pools;
};

/* The entry's number, as an enqueue says it with QMAN_ENQUEUE_FLAG_DCA. */
#define QMAN_ENQUEUE_FLAG_DCA_PTR(p) ((((u32)(uintptr_t)(p)) << 2) & 0xf00)

/* Portals. */
const struct qman_portal_config *qman_get_portal_config(void);
u32 qman_irqsource_get(void);
int qman_irqsource_add(u32 bits);
int qman_irqsource_remove(u32 bits);
const cpumask_t *qman_affine_cpus(void);
/* The channel of the portal of a CPU's thread; of the calling thread's, where cpu is negative. */
u16 qman_affine_channel(int cpu);
/* Hands up to limit entries to callbacks: how many. */
int qman_poll_dqrr(unsigned int limit);
/* Hands messages to callbacks: the sources (QM_PIRQ_*) that there was something of. */
u32 qman_poll_slow(void);
/* Both; the second from time to time. */
void qman_poll(void);
/* These nest. */
void qman_stop_dequeues(void);
void qman_start_dequeues(void);
/* Takes frames from these pools, too, or no more: masks of QM_SDQCR_CHANNELS_POOL. */
void qman_static_dequeue_add(u32 pools);
void qman_static_dequeue_del(u32 pools);
u32 qman_static_dequeue_get(void);
/* Consumes an entry that was deferred. */
void qman_dca(struct qm_dqrr_entry *dq, int park_request);
int qman_eqcr_is_empty(void);
/* For rejections that an interface reports: of this portal, or of all that have none. */
void qman_set_dc_ern(qman_cb_dc_ern handler, int affine);

/* Frame queues. */
int qman_create_fq(u32 fqid, u32 flags, struct qman_fq *fq);
void qman_destroy_fq(struct qman_fq *fq, u32 flags);
u32 qman_fq_fqid(struct qman_fq *fq);
void qman_fq_state(struct qman_fq *fq, enum qman_fq_state *state, u32 *flags);
int qman_init_fq(struct qman_fq *fq, u32 flags, struct qm_mcc_initfq *opts);
int qman_schedule_fq(struct qman_fq *fq);
/* 0: retired; 1: a message will say so; and what is left: QMAN_FQ_STATE_NE, QMAN_FQ_STATE_ORL. */
int qman_retire_fq(struct qman_fq *fq, u32 *flags);
int qman_oos_fq(struct qman_fq *fq);
int qman_fq_flow_control(struct qman_fq *fq, int xon);
int qman_query_fq(struct qman_fq *fq, struct qm_fqd *fqd);
int qman_query_fq_np(struct qman_fq *fq, struct qm_mcr_queryfq_np *np);
/* Of the channel that wq names, whichever kind it is. */
int qman_query_wq(u8 query_dedicated, struct qm_mcr_querywq *wq);
int qman_volatile_dequeue(struct qman_fq *fq, u32 flags, u32 vdqcr);
int qman_enqueue(struct qman_fq *fq, const struct qm_fd *fd, u32 flags);
int qman_enqueue_orp(struct qman_fq *fq, const struct qm_fd *fd, u32 flags, struct qman_fq *orp,
		     u16 orp_seqnum);
/* Takes a queue out of service in any state; its frames are lost. */
int qman_shutdown_fq(u32 fqid);

/* 0: the queue is out of service, and can be initialised; 1: not yet. */
static inline int qman_poll_fq_for_init(struct qman_fq *fq)
{
	struct qm_mcr_queryfq_np np;
	int err = qman_query_fq_np(fq, &np);

	if (err)
		return err;
	return (np.state & QM_MCR_NP_STATE_MASK) != QM_MCR_NP_STATE_OOS;
}

/*
 * Numbers. Ranges give how many ids they have found, in a row and all of them in result, which may be fewer than count only
 * if partial is set; -ENOMEM where there are none.
 */
int qman_alloc_fqid_range(u32 *result, u32 count, u32 align, int partial);
void qman_release_fqid_range(u32 fqid, unsigned int count);
int qman_reserve_fqid_range(u32 fqid, unsigned int count);
void qman_seed_fqid_range(u32 fqid, unsigned int count);
int qman_alloc_pool_range(u32 *result, u32 count, u32 align, int partial);
void qman_release_pool_range(u32 id, unsigned int count);
int qman_reserve_pool_range(u32 id, unsigned int count);
void qman_seed_pool_range(u32 id, unsigned int count);
int qman_alloc_cgrid_range(u32 *result, u32 count, u32 align, int partial);
void qman_release_cgrid_range(u32 id, unsigned int count);
int qman_reserve_cgrid_range(u32 id, unsigned int count);
void qman_seed_cgrid_range(u32 id, unsigned int count);

static inline int qman_alloc_fqid(u32 *result)
{
	int ret = qman_alloc_fqid_range(result, 1, 0, 0);

	return ret > 0 ? 0 : ret;
}
static inline void qman_release_fqid(u32 fqid)
{
	qman_release_fqid_range(fqid, 1);
}
static inline int qman_reserve_fqid(u32 fqid)
{
	return qman_reserve_fqid_range(fqid, 1);
}
static inline int qman_alloc_pool(u32 *result)
{
	int ret = qman_alloc_pool_range(result, 1, 0, 0);

	return ret > 0 ? 0 : ret;
}
static inline void qman_release_pool(u32 id)
{
	qman_release_pool_range(id, 1);
}
static inline int qman_reserve_pool(u32 id)
{
	return qman_reserve_pool_range(id, 1);
}
static inline int qman_alloc_cgrid(u32 *result)
{
	int ret = qman_alloc_cgrid_range(result, 1, 0, 0);

	return ret > 0 ? 0 : ret;
}
static inline void qman_release_cgrid(u32 id)
{
	qman_release_cgrid_range(id, 1);
}
static inline int qman_reserve_cgrid(u32 id)
{
	return qman_reserve_cgrid_range(id, 1);
}

/* Ids of a program's own range, one by one. -EBUSY while some are in use, -ENOMEM when none is left. */
struct qman_fqid_pool *qman_fqid_pool_create(u32 fqid_start, u32 num);
int qman_fqid_pool_destroy(struct qman_fqid_pool *pool);
int qman_fqid_pool_alloc(struct qman_fqid_pool *pool, u32 *fqid);
void qman_fqid_pool_free(struct qman_fqid_pool *pool, u32 fqid);
u32 qman_fqid_pool_used(struct qman_fqid_pool *pool);

/* Congestion groups. Changes are told to the portal that has created the group. */
int qman_create_cgr(struct qman_cgr *cgr, u32 flags, struct qm_mcc_initcgr *opts);
int qman_create_cgr_to_dcp(struct qman_cgr *cgr, u32 flags, u16 dcp_portal,
			   struct qm_mcc_initcgr *opts);
int qman_delete_cgr(struct qman_cgr *cgr);
int qman_modify_cgr(struct qman_cgr *cgr, u32 flags, struct qm_mcc_initcgr *opts);
int qman_query_cgr(struct qman_cgr *cgr, struct qm_mcr_querycgr *result);
int qman_query_congestion(struct qm_mcr_querycongestion *congestion);

/* Whether the manager lets work that waits go first: kept, and without an effect. */
int qman_set_wpm(int wpm_enable);
int qman_get_wpm(int *wpm_enable);
/* The manager's clock: there is none, -ENODEV until a program has set it. */
int qm_get_clock(u64 *clock_hz);
int qm_set_clock(u64 clock_hz);

#ifdef __cplusplus
}
#endif

#endif
