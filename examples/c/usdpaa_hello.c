/*
 * A first program of USDPAA: it sends IPv4 frames back to where they came from, and drops the others. One thread for each
 * CPU, which polls; frames of a flow come to one of them after the other, in order.
 *
 * -S has the interface send back all frames as they are, without a thread; -t measures for so many seconds, and ends.
 *
 *   cc -O2 -I PREFIX/include -I PREFIX/include/usdpaa -include usdpaa/little_endian.h usdpaa_hello.c -lusdpaa -lpthread
 */
#include <usdpaa/compat.h>
#include <internal/conf.h>
#include <usdpaa/dma_mem.h>
#include <usdpaa/fman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_usd.h>
#include <usdpaa/of.h>
#include <usdpaa/ringway.h>
#include <usdpaa/usdpaa_netcfg.h>

#include <getopt.h>
#include <netinet/ip.h>

#define POOL_CHANNELS 4
#define TX_FQS 2
#define PREFETCHED 16

static uint32_t pools[POOL_CHANNELS];
static uint32_t static_mask;
static unsigned int next_pool;
static uint64_t pool_counts[] = { DMA_MEM_BP1_NUM, DMA_MEM_BP2_NUM, 1728 };
static struct bman_pool *bman_pools[64];
static struct usdpaa_netcfg_info *netcfg;
static volatile sig_atomic_t quit;
static long ncpus;
static int short_circuit;

static __thread struct qman_fq local_fq;

/* A frame queue of received frames, in DMA memory, and the one that its frames are sent back by. */
struct rx_fq {
	struct qman_fq fq;
	uint32_t tx_fqid;
} __attribute__((aligned(64)));

/* What is to be torn down. */
#define MOST_FQS 4096
static struct qman_fq *fqs[MOST_FQS];
static unsigned int num_fqs;

#define CHECK(name, call) \
	do { \
		int __ret = (call); \
		if (__ret) { \
			fprintf(stderr, "Fail: %s: %d\n", name, __ret); \
			exit(EXIT_FAILURE); \
		} \
	} while (0)

static void drop_frame(const struct qm_fd *fd)
{
	struct bm_buffer buffer;
	if (fd->bpid >= ARRAY_SIZE(bman_pools) || !bman_pools[fd->bpid])
		return;
	bm_buffer_set64(&buffer, qm_fd_addr(fd));
	while (bman_release(bman_pools[fd->bpid], &buffer, 1, 0))
		;
}

static void send_frame(uint32_t fqid, const struct qm_fd *fd)
{
	local_fq.fqid = fqid;
	while (qman_enqueue(&local_fq, fd, 0))
		;
}

static enum qman_cb_dqrr_result on_admin(struct qman_portal *qm, struct qman_fq *fq, const struct qm_dqrr_entry *dqrr)
{
	(void)qm;
	(void)fq;
	drop_frame(&dqrr->fd);
	return qman_cb_dqrr_consume;
}

static enum qman_cb_dqrr_result on_rx(struct qman_portal *qm, struct qman_fq *fq, const struct qm_dqrr_entry *dqrr)
{
	struct rx_fq *rx = container_of(fq, struct rx_fq, fq);
	const struct qm_fd *fd = &dqrr->fd;
	struct ether_header *eth = (void *)((char *)__dma_mem_ptov(qm_fd_addr(fd)) + fd->offset);
	struct iphdr *ip = (void *)(eth + 1);
	(void)qm;
	prefetch(eth);
	if (!(eth->ether_dhost[0] & 1) && eth->ether_type == ETHERTYPE_IP) {
		uint8_t mac[ETH_ALEN];
		uint32_t address = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = address;
		memcpy(mac, eth->ether_dhost, ETH_ALEN);
		memcpy(eth->ether_dhost, eth->ether_shost, ETH_ALEN);
		memcpy(eth->ether_shost, mac, ETH_ALEN);
		send_frame(rx->tx_fqid, fd);
	} else {
		drop_frame(fd);
	}
	return qman_cb_dqrr_consume;
}

static void added(struct qman_fq *fq)
{
	if (num_fqs == MOST_FQS) {
		fprintf(stderr, "Fail: %u frame queues: no more than %u\n", num_fqs, MOST_FQS);
		exit(EXIT_FAILURE);
	}
	fqs[num_fqs++] = fq;
}

static void tx_options(struct qm_mcc_initfq *opts, const struct fman_if *fif)
{
	opts->we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_FQCTRL | QM_INITFQ_WE_CONTEXTB | QM_INITFQ_WE_CONTEXTA;
	opts->fqd.dest.channel = fif->tx_channel_id;
	opts->fqd.dest.wq = 3;
	opts->fqd.fq_ctrl = QM_FQCTRL_PREFERINCACHE;
	opts->fqd.context_b = 0;
	opts->fqd.context_a.hi = 0x80000000 | fman_dealloc_bufs_mask_hi;
	opts->fqd.context_a.lo = fman_dealloc_bufs_mask_lo;
}

static uint32_t init_tx(const struct fman_if *fif)
{
	struct qm_mcc_initfq opts;
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	CHECK("qman_create_fq", qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID | QMAN_FQ_FLAG_TO_DCPORTAL, fq));
	tx_options(&opts, fif);
	CHECK("qman_init_fq", qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(fq);
	return qman_fq_fqid(fq);
}

static void init_admin(uint32_t fqid)
{
	struct qm_mcc_initfq opts;
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	CHECK("qman_reserve_fqid", qman_reserve_fqid(fqid));
	fq->cb.dqrr = on_admin;
	CHECK("qman_create_fq", qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, fq));
	opts.we_mask = QM_INITFQ_WE_DESTWQ;
	opts.fqd.dest.channel = pools[next_pool++ % POOL_CHANNELS];
	opts.fqd.dest.wq = 4;
	CHECK("qman_init_fq", qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(fq);
}

static void init_rx(const struct fman_if *fif, uint32_t fqid, uint32_t tx_fqid)
{
	struct qm_mcc_initfq opts;
	struct rx_fq *rx = __dma_mem_memalign(64, sizeof(*rx));
	int ret = qman_reserve_fqid(fqid) ? -EINVAL : 0;
	CHECK("qman_reserve_fqid", ret);
	if (!rx)
		ret = -ENOMEM;
	CHECK("__dma_mem_memalign", ret);
	memset(rx, 0, sizeof(*rx));
	rx->tx_fqid = tx_fqid;
	rx->fq.cb.dqrr = on_rx;
	if (short_circuit) {
		CHECK("qman_create_fq", qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE | QMAN_FQ_FLAG_TO_DCPORTAL, &rx->fq));
		tx_options(&opts, fif);
	} else {
		CHECK("qman_create_fq", qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, &rx->fq));
		opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_FQCTRL | QM_INITFQ_WE_CONTEXTA;
		opts.fqd.dest.channel = pools[next_pool++ % POOL_CHANNELS];
		opts.fqd.dest.wq = 4;
		opts.fqd.fq_ctrl = QM_FQCTRL_AVOIDBLOCK | QM_FQCTRL_CTXASTASHING | QM_FQCTRL_PREFERINCACHE;
		opts.fqd.context_a.stashing.exclusive = 0;
		opts.fqd.context_a.stashing.annotation_cl = 0;
		opts.fqd.context_a.stashing.data_cl = 1;
		opts.fqd.context_a.stashing.context_cl = 0;
	}
	CHECK("qman_init_fq", qman_init_fq(&rx->fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(&rx->fq);
}

/* Takes out what is left of another program, and puts in buffers of this one. */
static void seed_pool(const struct fman_if_bpool *bp, uint64_t count)
{
	struct bman_pool_params params = { .bpid = bp->bpid };
	struct bm_buffer buffers[8];
	unsigned int num = 8, drained = 0, released = 0;
	struct bman_pool *pool;
	char *memory;
	if (bp->bpid >= ARRAY_SIZE(bman_pools) || bman_pools[bp->bpid])
		return;
	pool = bman_new_pool(&params);
	if (!pool) {
		fprintf(stderr, "Fail: bman_new_pool: %d\n", -ENODEV);
		exit(EXIT_FAILURE);
	}
	while (num) {
		int got = bman_acquire(pool, buffers, num, 0);
		if (got > 0)
			drained += (unsigned int)got;
		else
			num = num == 8 ? 1 : 0;
	}
	if (drained)
		fprintf(stderr, "Warn: drained %u bufs from BPID %d\n", drained, bp->bpid);
	bman_pools[bp->bpid] = pool;
	memory = count ? __dma_mem_memalign(64, count * bp->size) : NULL;
	CHECK("__dma_mem_memalign", count && !memory ? -ENOMEM : 0);
	while (released < count) {
		num = count - released < 8 ? (unsigned int)(count - released) : 8;
		for (unsigned int i = 0; i < num; i++)
			bm_buffer_set64(&buffers[i], __dma_mem_vtop(memory + (released + i) * bp->size));
		while (bman_release(pool, buffers, (u8)num, 0) == -EBUSY)
			;
		released += num;
	}
	printf("Released %u bufs to BPID %d\n", released, bp->bpid);
}

static void init_interface(const struct fm_eth_port_cfg *cfg)
{
	const struct fman_if *fif = cfg->fman_if;
	struct fman_if_bpool *bp;
	struct fm_eth_port_fqrange *range;
	uint32_t tx_fqids[TX_FQS] = { 0 };
	unsigned int index = 0, pool = 0;
	if (!short_circuit)
		for (int i = 0; i < TX_FQS; i++)
			tx_fqids[i] = init_tx(fif);
	init_admin(fif->fqid_rx_err);
	init_admin(cfg->rx_def);
	if (fif->mac_type != fman_offline) {
		init_admin(fif->fqid_tx_err);
		init_admin(fif->fqid_tx_confirm);
	}
	list_for_each_entry(range, cfg->list, list)
		for (uint32_t i = 0; i < range->count; i++)
			init_rx(fif, range->start + i, tx_fqids[index++ % TX_FQS]);
	fman_if_enable_rx(fif);
	fman_if_for_each_bpool(bp, fif)
		seed_pool(bp, pool < ARRAY_SIZE(pool_counts) ? pool_counts[pool++] : 0);
	fflush(stdout);
}

static void teardown_fq(struct qman_fq *fq)
{
	u32 flags;
	enum qman_fq_state state;
	int is_dynamic = fq->flags & QMAN_FQ_FLAG_DYNAMIC_FQID;
	int ret = qman_retire_fq(fq, &flags);
	if (ret == 1) {
		do {
			qman_poll();
			qman_fq_state(fq, &state, &flags);
		} while (state != qman_fq_state_retired);
		if (flags & QMAN_FQ_STATE_NE) {
			CHECK("qman_volatile_dequeue", qman_volatile_dequeue(fq, 0, QM_VDQCR_NUMFRAMES_TILLEMPTY));
			do {
				qman_poll();
				qman_fq_state(fq, &state, &flags);
			} while (flags & QMAN_FQ_STATE_VDQCR);
		}
	}
	ret = qman_oos_fq(fq);
	if (ret)
		fprintf(stderr, "Fail: qman_oos_fq: %d\n", ret);
	if (!is_dynamic)
		qman_release_fqid(fq->fqid);
	if (!ret)
		qman_destroy_fq(fq, 0);
}

static pthread_barrier_t others_have_gone;

static void *work(void *arg)
{
	int cpu = (int)(intptr_t)arg;
	unsigned int slow = 4;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	CHECK("pthread_setaffinity_np", pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus));
	CHECK("bman_thread_init", bman_thread_init());
	CHECK("qman_thread_init", qman_thread_init());
	printf("(%d): Starting\n", cpu);
	fflush(stdout);
	CHECK("qman_create_fq", qman_create_fq(1, QMAN_FQ_FLAG_NO_MODIFY, &local_fq));
	qman_static_dequeue_add(static_mask);
	if (cpu == 0)
		for (int i = 0; i < netcfg->num_ethports; i++)
			init_interface(&netcfg->port_cfg[i]);
	if (cpu == 0) {
		printf("Hit Ctrl-C (or send SIGINT) to terminate.\n");
		fflush(stdout);
	}
	while (!quit) {
		if (!--slow)
			slow = qman_poll_slow() || bman_poll_slow() ? 4 : 400;
		qman_poll_dqrr(PREFETCHED);
	}
	if (cpu == 0) {
		pthread_barrier_wait(&others_have_gone);
		for (int i = 0; i < netcfg->num_ethports; i++)
			fman_if_disable_rx(netcfg->port_cfg[i].fman_if);
		while (num_fqs)
			teardown_fq(fqs[--num_fqs]);
	}
	qman_static_dequeue_del(~(u32)0);
	for (int i = 0; i < 16; i++) {
		qman_poll_slow();
		qman_poll_dqrr(16);
	}
	CHECK("qman_thread_finish", qman_thread_finish());
	CHECK("bman_thread_finish", bman_thread_finish());
	printf("(%d): Finished\n", cpu);
	if (cpu != 0)
		pthread_barrier_wait(&others_have_gone);
	return NULL;
}

/* Millions of frames a second that the first interface sends back, in so many seconds after the first. */
static double rate_of(const struct fman_if *fif, long seconds)
{
	struct ringway_usdpaa_counters first = { 0 }, last;
	struct timespec begin, end;
	while (!quit && !first.transmitted) {
		usleep(1000);
		ringway_usdpaa_count(fif, &first);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long i = 0; !quit && i < 10 * seconds; i++)
		usleep(100000);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ringway_usdpaa_count(fif, &last);
	return (double)(last.transmitted - first.transmitted) /
	       ((double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3);
}

static void on_signal(int number)
{
	(void)number;
	quit = 1;
}

static long number_of(const char *text, const char *what)
{
	char *end;
	long number = strtol(text, &end, 0);
	if (end == text || *end || number < 0) {
		fprintf(stderr, "Error: %s is no number: %s\n", what, text);
		exit(EXIT_FAILURE);
	}
	return number;
}

int main(int argc, char *argv[])
{
	int of_failed = of_init();
	const char *pcd = "usdpaa_policy_hash_ipv4.xml", *cfg = "usdpaa_config_p4_serdes_0xe.xml";
	size_t dma_size = 16 << 20;
	long seconds = 0;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[64];
	int option, got;
	ncpus = online;
	while ((option = getopt(argc, argv, "n:p:c:s:b:St:")) != -1) {
		switch (option) {
		case 'n':
			ncpus = number_of(optarg, "-n");
			if (ncpus < 1 || ncpus > online || ncpus > (long)ARRAY_SIZE(threads)) {
				fprintf(stderr, "Error: -n %ld: there are %ld CPUs\n", ncpus, online);
				exit(EXIT_FAILURE);
			}
			break;
		case 'p':
			pcd = optarg;
			break;
		case 'c':
			cfg = optarg;
			break;
		case 's':
			dma_size = (size_t)number_of(optarg, "-s");
			break;
		case 'b':
			for (size_t i = 0; i < ARRAY_SIZE(pool_counts); i++) {
				char *next = strsep(&optarg, ":");
				pool_counts[i] = next ? (uint64_t)number_of(next, "-b") : 0;
			}
			break;
		case 't':
			seconds = number_of(optarg, "-t");
			break;
		case 'S':
			short_circuit = 1;
			break;
		default:
			exit(EXIT_FAILURE);
		}
	}
	printf("Starting hello_reflector, ncpus=%ld\n", ncpus);
	CHECK("of_init", of_failed);
	netcfg = usdpaa_netcfg_acquire(pcd, cfg);
	CHECK("usdpaa_netcfg_acquire", !netcfg || !netcfg->num_ethports ? -EINVAL : 0);
	signal(SIGINT, on_signal);
	CHECK("qman_global_init", qman_global_init());
	CHECK("bman_global_init", bman_global_init());
	got = qman_alloc_pool_range(pools, POOL_CHANNELS, 1, 0);
	CHECK("qman_alloc_pool_range", got != POOL_CHANNELS ? got : 0);
	for (int i = 0; i < POOL_CHANNELS; i++)
		static_mask |= QM_SDQCR_CHANNELS_POOL_CONV((u16)pools[i]);
	dma_mem_generic = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, dma_size);
	CHECK("dma_mem_create", dma_mem_generic ? 0 : -ENOMEM);
	printf("DMA region created of size %zu (0x%zx)\n", dma_size, dma_size);
	fflush(stdout);
	pthread_barrier_init(&others_have_gone, NULL, (unsigned int)ncpus);
	for (long i = 0; i < ncpus; i++)
		CHECK("pthread_create", pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i));
	if (seconds) {
		printf("rx_mpps %.3f\n", rate_of(netcfg->port_cfg[0].fman_if, seconds));
		quit = 1;
	}
	while (!quit)
		usleep(10000);
	printf("Ctrl-C, ending...\n");
	for (long i = 0; i < ncpus; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < netcfg->num_ethports; i++) {
		struct ringway_usdpaa_counters counters = { 0 };
		ringway_usdpaa_count(netcfg->port_cfg[i].fman_if, &counters);
		printf("interface %d: received %llu, sent %llu, lost %llu\n", i, (unsigned long long)counters.received,
		       (unsigned long long)counters.transmitted, (unsigned long long)counters.lost);
	}
	qman_release_pool_range(pools[0], POOL_CHANNELS);
	usdpaa_netcfg_release(netcfg);
	printf("Finished hello_reflector\n");
	return 0;
}
