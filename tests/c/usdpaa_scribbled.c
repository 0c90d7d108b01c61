/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose interface and buffers are in a shared map, while another process writes anything anywhere in it: frames in one
 * buffer and in tables of buffers go round an interface without a wire, and places are allocated and freed. What a frame
 * has in it is anything; the program goes on.
 *
 * usage: usdpaa_scribbled POLICIES CONFIG NAME BYTES ROUNDS
 *
 * Says "going" when it has begun.
 */
#include "check.h"

#include <usdpaa/dma_mem.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_usd.h>
#include <usdpaa/ringway.h>
#include <usdpaa/usdpaa_netcfg.h>

#define HEADROOM	64
#define POOLS		3
#define FRESH		64	/* buffers of a pool that has no more */
#define MOST		16	/* places that are taken at once */

static const uint32_t sizes[POOLS] = { 320, 704, 1728 };
static struct bman_pool *pools[POOLS];
static uint64_t random_state = 88172645463325252ULL;
static uint32_t received;

static uint64_t
draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void
release(uint8_t bpid, uint64_t address)
{
	struct bm_buffer buffer;

	memset(&buffer, 0, sizeof(buffer));
	bm_buffer_set64(&buffer, address);
	if (bpid >= 7 && bpid < 7 + POOLS)
		while (bman_release(pools[bpid - 7], &buffer, 1, 0) == -EBUSY)
			bman_poll();
}

/* The buffers of a table are not looked for: what it says is anyone's. */
static enum qman_cb_dqrr_result
on_frame(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	(void)portal;
	(void)fq;
	if (entry->stat & QM_DQRR_STAT_FD_VALID) {
		received++;
		release(entry->fd.bpid, qm_fd_addr(&entry->fd));
	}
	return qman_cb_dqrr_consume;
}

static void
queue_new(uint32_t fqid, uint16_t channel)
{
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	struct qm_mcc_initfq opts;

	require(fq != NULL, "memory");
	fq->cb.dqrr = on_frame;
	require(qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, fq) == 0, "qman_create_fq");
	opts.we_mask = QM_INITFQ_WE_DESTWQ;
	opts.fqd.dest.channel = channel & 0x1fff;
	opts.fqd.dest.wq = 4;
	require(qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
}

/* A buffer of a pool, which gets new ones when others have scribbled the last away. 0: there is no memory. */
static uint64_t
buffer_of(uint32_t pool)
{
	struct bm_buffer buffer;
	uint32_t i;

	if (bman_acquire(pools[pool], &buffer, 1, 0) == 1)
		return bm_buffer_get64(&buffer);
	for (i = 0; i < FRESH; i++) {
		void *memory = __dma_mem_memalign(64, sizes[pool]);

		if (memory == NULL)
			break;
		release((uint8_t)(7 + pool), __dma_mem_vtop(memory));
	}
	return bman_acquire(pools[pool], &buffer, 1, 0) == 1 ? bm_buffer_get64(&buffer) : 0;
}

static void
send_one(struct qman_fq *tx)
{
	struct qm_fd fd;
	uint32_t pool = (uint32_t)(draw() % POOLS), i, count = (uint32_t)(draw() % 4 + 1);
	uint64_t address = buffer_of(pool), part;
	uint8_t *bytes;

	if (address == 0)
		return;
	memset(&fd, 0, sizeof(fd));
	qm_fd_addr_set64(&fd, address);
	fd.bpid = (uint8_t)(7 + pool);
	fd.offset = HEADROOM;
	bytes = (uint8_t *)__dma_mem_ptov(address) + HEADROOM;
	if (draw() % 2) {
		static const uint8_t head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 };

		memcpy(bytes, head, sizeof(head));
		fd.format = qm_fd_contig;
		fd.length20 = (uint32_t)(draw() % (sizes[pool] - HEADROOM - 60) + 60);
	} else {
		struct qm_sg_entry *table = (struct qm_sg_entry *)(void *)bytes;

		fd.format = qm_fd_sg;
		for (i = 0; i < count; i++) {
			part = buffer_of(pool);
			memset(&table[i], 0, sizeof(table[i]));
			qm_sg_entry_set64(&table[i], part);
			table[i].length = sizes[pool] - HEADROOM;
			table[i].bpid = (uint8_t)(7 + pool);
			table[i].final = i + 1 == count;
		}
		fd.length20 = count * (sizes[pool] - HEADROOM);
	}
	while (qman_enqueue(tx, &fd, 0) == -EBUSY)
		qman_poll();
}

int
main(int argc, char **argv)
{
	static struct qman_fq tx;
	void *places[MOST] = { NULL };
	struct usdpaa_netcfg_info *info;
	const struct fman_if *fif;
	struct fm_eth_port_fqrange *range;
	struct bman_pool_params params;
	struct qm_mcc_initfq opts;
	unsigned long rounds, i;
	uint32_t channel, n;
	cpu_set_t cpus;

	require(argc == 6, "five arguments");
	rounds = strtoul(argv[5], NULL, 0);
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	require(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
	info = usdpaa_netcfg_acquire(argv[1], argv[2]);
	require(info && info->num_ethports == 1, "usdpaa_netcfg_acquire");
	fif = info->port_cfg[0].fman_if;
	require(qman_global_init() == 0 && bman_global_init() == 0, "managers");
	require(qman_thread_init() == 0 && bman_thread_init() == 0, "portals");
	require(qman_alloc_pool(&channel) == 0, "qman_alloc_pool");
	qman_static_dequeue_add(QM_SDQCR_CHANNELS_POOL_CONV(channel));
	dma_mem_generic = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW | DMA_MAP_FLAG_ALLOC, argv[3],
					 strtoull(argv[4], NULL, 0));
	require(dma_mem_generic != NULL, "dma_mem_create");
	for (n = 0; n < POOLS; n++) {
		memset(&params, 0, sizeof(params));
		params.bpid = 7 + n;
		pools[n] = bman_new_pool(&params);
		require(pools[n] != NULL, "bman_new_pool");
	}
	queue_new(info->port_cfg[0].rx_def, (uint16_t)channel);
	queue_new(fif->fqid_rx_err, (uint16_t)channel);
	queue_new(fif->fqid_tx_err, (uint16_t)channel);
	list_for_each_entry(range, info->port_cfg[0].list, list)
		for (n = 0; n < range->count; n++)
			queue_new(range->start + n, (uint16_t)channel);
	require(qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID | QMAN_FQ_FLAG_TO_DCPORTAL, &tx) == 0, "qman_create_fq");
	opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_CONTEXTA | QM_INITFQ_WE_CONTEXTB;
	opts.fqd.dest.channel = fif->tx_channel_id & 0x1fff;
	opts.fqd.dest.wq = 3;
	opts.fqd.context_a.hi = 0x80000000;
	opts.fqd.context_a.lo = 0;
	opts.fqd.context_b = 0;
	require(qman_init_fq(&tx, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
	fman_if_enable_rx(fif);
	for (i = 0; i < rounds; i++) {
		void **place = &places[draw() % MOST];
		uint64_t size = draw() % 4096 + 1, boundary = (uint64_t)1 << draw() % 13;

		send_one(&tx);
		qman_poll();
		dma_mem_free(dma_mem_generic, *place);
		*place = dma_mem_memalign(dma_mem_generic, boundary, size);
		if (*place)
			require((uintptr_t)*place % boundary == 0 && dma_mem_findv(*place) == dma_mem_generic &&
				dma_mem_findv((char *)*place + size - 1) == dma_mem_generic, "a place in the map");
		if (i == MOST)
			check(1, "going");
	}
	check(received > 0, "frames have come");
	fman_if_disable_rx(fif);
	fman_finish();
	dma_mem_destroy(dma_mem_generic);
	return check_result();
}
