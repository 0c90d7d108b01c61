/*
 * A program of USDPAA as those of PPAC are: threads on CPUs that the user names, which sleep when there is nothing; a command line
 * (`help` lists its words); frame queues that a thread holds while it works on their frames, so that flows keep their order.
 * IPv4 frames go back to where they came from, others are dropped.
 *
 *   cc -O2 -I PREFIX/include -I PREFIX/include/usdpaa -include usdpaa/little_endian.h usdpaa_reflector.c \
 *      -lusdpaa -lpthread -Wl,-T,PREFIX/lib/ringway/usdpaa/cli_table.lds
 *
 * With -DORDER_PRESERVATION a frame queue goes on when the frame before has been sent, and with -DORDER_RESTORATION frames are sent
 * in the order in which they came, whichever threads had them.
 */
#include "compat.h"
#include "dma_mem.h"
#include "fman.h"
#include "fsl_bman.h"
#include "fsl_qman.h"
#include "fsl_usd.h"
#include "internal/conf.h"
#include "of.h"
#include "ppac_cli.h"
#include "usdpaa_netcfg.h"
#include <flib/rta.h>

#include <getopt.h>
#include <netinet/ip.h>
#include <sys/select.h>

#define POOL_CHANNELS 4
#define MOST_FQS 4096
#define MOST_THREADS 64

struct rx_fq {
	struct qman_fq fq;
	struct qman_fq *tx;
#ifdef ORDER_RESTORATION
	struct qman_fq *orp;
#endif
} __attribute__((aligned(64)));

struct worker {
	pthread_t thread;
	int uid, cpu, is_primary;
	volatile int quit, is_dead;
};

static uint32_t pools[POOL_CHANNELS], static_mask;
static unsigned int next_pool, num_fqs;
static uint64_t pool_counts[] = { DMA_MEM_BP1_NUM, DMA_MEM_BP2_NUM, DMA_MEM_BP3_NUM };
static struct bman_pool *bman_pools[64];
static struct usdpaa_netcfg_info *netcfg;
static struct qman_fq *fqs[MOST_FQS];
static struct qman_cgr cgr_rx, cgr_tx;
static struct worker workers[MOST_THREADS];
static int num_workers;
static volatile sig_atomic_t quit;

static int must(const char *name, int ret)
{
	if (ret) {
		fprintf(stderr, "%s: %s\n", name, strerror(ret < 0 ? -ret : ret));
		exit(EXIT_FAILURE);
	}
	return ret;
}

static void drop_frame(const struct qm_fd *fd)
{
	struct bm_buffer buffer;
	if (fd->bpid >= ARRAY_SIZE(bman_pools) || !bman_pools[fd->bpid])
		return;
	bm_buffer_set64(&buffer, qm_fd_addr(fd));
	while (bman_release(bman_pools[fd->bpid], &buffer, 1, 0))
		cpu_relax();
}

static enum qman_cb_dqrr_result on_drop(struct qman_portal *qm, struct qman_fq *fq, const struct qm_dqrr_entry *dqrr)
{
	(void)qm;
	(void)fq;
	drop_frame(&dqrr->fd);
	return qman_cb_dqrr_consume;
}

/* A frame that no queue took. */
static void on_ern(struct qman_portal *qm, struct qman_fq *fq, const struct qm_mr_entry *msg)
{
	struct qm_fd fd = msg->ern.fd;
	(void)qm;
	(void)fq;
	drop_frame(&fd);
}

static void on_dc_ern(struct qman_portal *qm, const struct qm_mr_entry *msg)
{
	struct qm_fd fd = msg->dcern.fd;
	(void)qm;
	drop_frame(&fd);
}

static void on_congestion(struct qman_portal *qm, struct qman_cgr *cgr, int congested)
{
	(void)qm;
	printf("%s CGR -> congestion %s\n", cgr == &cgr_rx ? "rx" : "tx", congested ? "entry" : "exit");
	fflush(stdout);
}

static int reflect(const struct qm_fd *fd)
{
	struct ether_header *eth = (void *)((char *)__dma_mem_ptov(qm_fd_addr(fd)) + fd->offset);
	struct iphdr *ip = (void *)(eth + 1);
	uint8_t mac[ETH_ALEN];
	uint32_t address;
	if (eth->ether_dhost[0] & 1 || eth->ether_type != ETHERTYPE_IP)
		return 0;
	address = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = address;
	memcpy(mac, eth->ether_dhost, ETH_ALEN);
	memcpy(eth->ether_dhost, eth->ether_shost, ETH_ALEN);
	memcpy(eth->ether_shost, mac, ETH_ALEN);
	return 1;
}

static enum qman_cb_dqrr_result on_rx(struct qman_portal *qm, struct qman_fq *fq, const struct qm_dqrr_entry *dqrr)
{
	struct rx_fq *rx = container_of(fq, struct rx_fq, fq);
	const struct qm_fd *fd = &dqrr->fd;
	(void)qm;
	if (!reflect(fd)) {
#ifdef ORDER_RESTORATION
		/* Those behind it are not to wait for it. */
		while (qman_enqueue_orp(rx->orp, fd, QMAN_ENQUEUE_FLAG_HOLE, rx->orp, dqrr->seqnum))
			cpu_relax();
#endif
		drop_frame(fd);
		return qman_cb_dqrr_consume;
	}
#if defined(ORDER_RESTORATION)
	while (qman_enqueue_orp(rx->tx, fd, 0, rx->orp, dqrr->seqnum))
		cpu_relax();
	return qman_cb_dqrr_consume;
#elif defined(ORDER_PRESERVATION)
	while (qman_enqueue(rx->tx, fd, QMAN_ENQUEUE_FLAG_DCA | QMAN_ENQUEUE_FLAG_DCA_PTR(dqrr)))
		cpu_relax();
	return qman_cb_dqrr_defer;
#else
	while (qman_enqueue(rx->tx, fd, 0))
		cpu_relax();
	return qman_cb_dqrr_consume;
#endif
}

static void added(struct qman_fq *fq)
{
	must("frame queues", num_fqs == MOST_FQS ? -ENOSPC : 0);
	fqs[num_fqs++] = fq;
}

static struct qman_fq *init_tx(const struct fman_if *fif)
{
	struct qm_mcc_initfq opts;
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	fq->cb.ern = on_ern;
	must("qman_create_fq", qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID | QMAN_FQ_FLAG_TO_DCPORTAL, fq));
	opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_FQCTRL | QM_INITFQ_WE_CONTEXTB | QM_INITFQ_WE_CONTEXTA |
		       QM_INITFQ_WE_CGID;
	opts.fqd.dest.channel = fif->tx_channel_id;
	opts.fqd.dest.wq = 4;
	opts.fqd.fq_ctrl = QM_FQCTRL_FORCESFDR | QM_FQCTRL_PREFERINCACHE | QM_FQCTRL_CGE;
	opts.fqd.cgid = (u8)cgr_tx.cgrid;
	opts.fqd.context_b = 0;
	opts.fqd.context_a.hi = 0x80000000 | fman_dealloc_bufs_mask_hi;
	opts.fqd.context_a.lo = fman_dealloc_bufs_mask_lo;
	must("qman_init_fq", qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(fq);
	return fq;
}

static void init_drop(uint32_t fqid)
{
	struct qm_mcc_initfq opts;
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	must("qman_reserve_fqid", qman_reserve_fqid(fqid));
	fq->cb.dqrr = on_drop;
	must("qman_create_fq", qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, fq));
	opts.we_mask = QM_INITFQ_WE_DESTWQ;
	opts.fqd.dest.channel = pools[next_pool++ % POOL_CHANNELS];
	opts.fqd.dest.wq = 3;
	must("qman_init_fq", qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(fq);
}

#ifdef ORDER_RESTORATION
static struct qman_fq *init_orp(void)
{
	struct qm_mcc_initfq opts;
	struct qman_fq *fq = calloc(1, sizeof(*fq));
	fq->cb.ern = on_ern;
	must("qman_create_fq", qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID, fq));
	opts.we_mask = QM_INITFQ_WE_FQCTRL | QM_INITFQ_WE_ORPC;
	opts.fqd.fq_ctrl = QM_FQCTRL_PREFERINCACHE | QM_FQCTRL_ORP;
	opts.fqd.orprws = 7;
	opts.fqd.oa = 0;
	opts.fqd.olws = 0;
	must("qman_init_fq", qman_init_fq(fq, 0, &opts));
	added(fq);
	return fq;
}
#endif

static void init_rx(uint32_t fqid, struct qman_fq *tx)
{
	struct qm_mcc_initfq opts;
	struct rx_fq *rx = __dma_mem_memalign(64, sizeof(*rx));
	must("__dma_mem_memalign", rx ? 0 : -ENOMEM);
	memset(rx, 0, sizeof(*rx));
	rx->tx = tx;
#ifdef ORDER_RESTORATION
	rx->orp = init_orp();
#endif
	rx->fq.cb.dqrr = on_rx;
	must("qman_reserve_fqid", qman_reserve_fqid(fqid));
	must("qman_create_fq", qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, &rx->fq));
	opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_FQCTRL | QM_INITFQ_WE_CONTEXTA | QM_INITFQ_WE_CGID;
	opts.fqd.dest.channel = pools[next_pool++ % POOL_CHANNELS];
	opts.fqd.dest.wq = 4;
	opts.fqd.fq_ctrl = QM_FQCTRL_CTXASTASHING | QM_FQCTRL_PREFERINCACHE | QM_FQCTRL_CGE;
#ifndef ORDER_RESTORATION
	opts.fqd.fq_ctrl |= QM_FQCTRL_HOLDACTIVE;
#endif
	opts.fqd.cgid = (u8)cgr_rx.cgrid;
	opts.fqd.context_a.stashing.exclusive = 0;
	opts.fqd.context_a.stashing.annotation_cl = 0;
	opts.fqd.context_a.stashing.data_cl = 1;
	opts.fqd.context_a.stashing.context_cl = 0;
	must("qman_init_fq", qman_init_fq(&rx->fq, QMAN_INITFQ_FLAG_SCHED, &opts));
	added(&rx->fq);
}

static void seed_pool(const struct fman_if_bpool *bp, uint64_t count)
{
	struct bman_pool_params params = { .bpid = bp->bpid };
	struct bm_buffer buffer;
	struct bman_pool *pool;
	uint64_t released = 0;
	char *memory = NULL;
	if (bp->bpid >= ARRAY_SIZE(bman_pools) || bman_pools[bp->bpid])
		return;
	pool = bman_new_pool(&params);
	must("bman_new_pool", pool ? 0 : -ENODEV);
	while (bman_acquire(pool, &buffer, 1, 0) > 0)
		;
	if (count)
		memory = __dma_mem_memalign(64, count * bp->size);
	must("__dma_mem_memalign", count && !memory ? -ENOMEM : 0);
	while (released < count) {
		bm_buffer_set64(&buffer, __dma_mem_vtop(memory + released * bp->size));
		if (!bman_release(pool, &buffer, 1, 0))
			released++;
	}
	bman_pools[bp->bpid] = pool;
	printf("Released %u bufs to BPID %d\n", (unsigned int)released, bp->bpid);
}

static void init_cgr(struct qman_cgr *cgr)
{
	struct qm_mcc_initcgr opts;
	must("qman_alloc_cgrid", qman_alloc_cgrid(&cgr->cgrid));
	cgr->cb = on_congestion;
	memset(&opts, 0, sizeof(opts));
	opts.we_mask = QM_CGR_WE_CS_THRES | QM_CGR_WE_CSCN_EN | QM_CGR_WE_CSTD_EN | QM_CGR_WE_MODE;
	opts.cgr.cscn_en = QM_CGR_EN;
	opts.cgr.cstd_en = 0;
	opts.cgr.mode = QMAN_CGR_MODE_FRAME;
	qm_cgr_cs_thres_set64(&opts.cgr.cs_thres, 1 << 20, 0);
	must("qman_create_cgr", qman_create_cgr(cgr, QMAN_CGR_FLAG_USE_INIT, &opts));
}

static void init_interfaces(void)
{
	init_cgr(&cgr_rx);
	init_cgr(&cgr_tx);
	for (int i = 0; i < netcfg->num_ethports; i++) {
		const struct fm_eth_port_cfg *cfg = &netcfg->port_cfg[i];
		const struct fman_if *fif = cfg->fman_if;
		struct fm_eth_port_fqrange *range;
		struct fman_if_bpool *bp;
		struct qman_fq *tx = init_tx(fif);
		unsigned int pool = 0;
		init_drop(fif->fqid_rx_err);
		init_drop(cfg->rx_def);
		if (fif->mac_type != fman_offline) {
			init_drop(fif->fqid_tx_err);
			init_drop(fif->fqid_tx_confirm);
		}
		list_for_each_entry(range, cfg->list, list)
			for (uint32_t n = 0; n < range->count; n++)
				init_rx(range->start + n, tx);
		fman_if_for_each_bpool(bp, fif)
			seed_pool(bp, pool < ARRAY_SIZE(pool_counts) ? pool_counts[pool++] : 0);
	}
	fman_if_enable_all_rx();
}

static void teardown_fq(struct qman_fq *fq)
{
	u32 flags;
	enum qman_fq_state state;
	int is_dynamic = fq->flags & QMAN_FQ_FLAG_DYNAMIC_FQID;
	if (qman_retire_fq(fq, &flags) == 1) {
		do {
			qman_poll();
			qman_fq_state(fq, &state, &flags);
		} while (state != qman_fq_state_retired);
		if (flags & QMAN_FQ_STATE_NE) {
			must("qman_volatile_dequeue", qman_volatile_dequeue(fq, 0, QM_VDQCR_NUMFRAMES_TILLEMPTY));
			do {
				qman_poll();
				qman_fq_state(fq, &state, &flags);
			} while (flags & QMAN_FQ_STATE_VDQCR);
		}
	}
	must("qman_oos_fq", qman_oos_fq(fq));
	if (!is_dynamic)
		qman_release_fqid(fq->fqid);
	qman_destroy_fq(fq, 0);
}

/* Sleeps until a portal has something to say, and no longer than 10 ms. */
static void sleep_on_portals(void)
{
	int qman = qman_thread_fd(), bman = bman_thread_fd(), most = qman > bman ? qman : bman;
	struct timeval limit = { .tv_usec = 10000 };
	uint32_t number;
	fd_set set;
	qman_irqsource_add(QM_PIRQ_SLOW | QM_PIRQ_DQRI);
	bman_irqsource_add(BM_PIRQ_RCRI | BM_PIRQ_BSCN);
	FD_ZERO(&set);
	FD_SET(qman, &set);
	FD_SET(bman, &set);
	if (select(most + 1, &set, NULL, NULL, &limit) > 0) {
		if (FD_ISSET(qman, &set) && read(qman, &number, sizeof(number)) == sizeof(number))
			qman_thread_irq();
		if (FD_ISSET(bman, &set) && read(bman, &number, sizeof(number)) == sizeof(number))
			bman_thread_irq();
	}
	qman_irqsource_remove(QM_PIRQ_SLOW | QM_PIRQ_DQRI);
	bman_irqsource_remove(BM_PIRQ_RCRI | BM_PIRQ_BSCN);
}

static pthread_barrier_t is_ready;

static void *work(void *arg)
{
	struct worker *worker = arg;
	unsigned int idle = 0;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(worker->cpu, &cpus);
	must("pthread_setaffinity_np", -pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus));
	must("bman_thread_init", bman_thread_init());
	must("qman_thread_init", qman_thread_init());
	qman_set_dc_ern(on_dc_ern, 0);
	if (worker->is_primary)
		init_interfaces();
	qman_static_dequeue_add(static_mask);
	printf("Thread uid:%d alive (on cpu %d)\n", worker->uid, worker->cpu);
	fflush(stdout);
	pthread_barrier_wait(&is_ready);
	while (!worker->quit) {
		int worked = qman_poll_dqrr(16);
		if (worked) {
			idle = 0;
			continue;
		}
		if (qman_poll_slow() || bman_poll_slow())
			idle = 0;
		if (++idle > 1000) {
			sleep_on_portals();
			idle = 0;
		}
	}
	if (worker->is_primary) {
		fman_if_disable_all_rx();
		while (num_fqs)
			teardown_fq(fqs[--num_fqs]);
		must("qman_delete_cgr", qman_delete_cgr(&cgr_rx));
		must("qman_delete_cgr", qman_delete_cgr(&cgr_tx));
	}
	qman_static_dequeue_del(~(u32)0);
	for (int i = 0; i < 16; i++) {
		qman_poll_slow();
		qman_poll_dqrr(16);
	}
	must("qman_thread_finish", qman_thread_finish());
	must("bman_thread_finish", bman_thread_finish());
	worker->is_dead = 1;
	return NULL;
}

/* `index`, or `first..last`. */
static int cpu_range(const char *text, long *first, long *last)
{
	char *end;
	*first = *last = strtol(text, &end, 0);
	if (end == text)
		return -EINVAL;
	if (end[0] == '.' && end[1] == '.') {
		text = end + 2;
		*last = strtol(text, &end, 0);
	}
	if (*end || end == text || *first < 0 || *last < *first || *last >= sysconf(_SC_NPROCESSORS_ONLN))
		return -EINVAL;
	return 0;
}

static int start_workers(long first, long last, int with_primary)
{
	for (long cpu = first; cpu <= last; cpu++) {
		struct worker *worker;
		if (num_workers == MOST_THREADS)
			return -ENOSPC;
		worker = &workers[num_workers];
		*worker = (struct worker){ .uid = num_workers, .cpu = (int)cpu, .is_primary = with_primary && cpu == first };
		num_workers++;
		pthread_barrier_init(&is_ready, NULL, 2);
		must("pthread_create", pthread_create(&worker->thread, NULL, work, worker));
		pthread_barrier_wait(&is_ready);
	}
	return 0;
}

static void stop_worker(struct worker *worker)
{
	worker->quit = 1;
	pthread_join(worker->thread, NULL);
	printf("Thread uid:%d killed (cpu %d)\n", worker->uid, worker->cpu);
	fflush(stdout);
}

static int do_help(int argc, char *argv[])
{
	const struct cli_table_entry *entry;
	(void)argc;
	(void)argv;
	foreach_cli_table_entry(entry)
		printf("%s\n", entry->cmd);
	return 0;
}

static int do_add(int argc, char *argv[])
{
	long first, last;
	if (argc != 2 || cpu_range(argv[1], &first, &last))
		return -EINVAL;
	return start_workers(first, last, 0);
}

static int do_list(int argc, char *argv[])
{
	(void)argv;
	if (argc != 1)
		return -EINVAL;
	for (int i = 0; i < num_workers; i++)
		if (!workers[i].is_dead)
			printf("Thread uid:%d alive (on cpu %d)\n", workers[i].uid, workers[i].cpu);
	return 0;
}

static int do_rm(int argc, char *argv[])
{
	long first, last, uid = -1;
	int removed = 0;
	if (argc != 2)
		return -EINVAL;
	if (!strncmp(argv[1], "uid:", 4)) {
		char *end;
		uid = strtol(argv[1] + 4, &end, 0);
		if (*end || end == argv[1] + 4)
			return -EINVAL;
	} else if (cpu_range(argv[1], &first, &last)) {
		return -EINVAL;
	}
	for (int i = 0; i < num_workers; i++) {
		struct worker *worker = &workers[i];
		int is_meant = uid >= 0 ? worker->uid == uid : worker->cpu >= first && worker->cpu <= last;
		if (!is_meant || worker->is_primary || worker->is_dead)
			continue;
		stop_worker(worker);
		removed++;
	}
	return removed ? 0 : -EINVAL;
}

static int do_cgr(int argc, char *argv[])
{
	struct qm_mcr_querycgr query;
	(void)argv;
	if (argc != 1)
		return -EINVAL;
	/* This thread has no portal: only what is known without asking is said. */
	(void)query;
	printf("rx CGR ID: %u, tx CGR ID: %u\n", cgr_rx.cgrid, cgr_tx.cgrid);
	return 0;
}

static int do_macs(int argc, char *argv[])
{
	if (argc != 2)
		return -EINVAL;
	if (!strcmp(argv[1], "on"))
		fman_if_enable_all_rx();
	else if (!strcmp(argv[1], "off"))
		fman_if_disable_all_rx();
	else
		return -EINVAL;
	return 0;
}

static int do_promisc(int argc, char *argv[])
{
	const struct fman_if *fif;
	int enable;
	if (argc != 4 || strncmp(argv[2], "f:", 2) || strncmp(argv[3], "p:", 2))
		return -EINVAL;
	enable = !strcmp(argv[1], "enable");
	if (!enable && strcmp(argv[1], "disable"))
		return -EINVAL;
	list_for_each_entry(fif, fman_if_list, node) {
		if (fif->fman_idx != argv[2][2] - '0' || fif->mac_idx != argv[3][2] - '0')
			continue;
		if (enable)
			fman_if_promiscuous_enable(fif);
		else
			fman_if_promiscuous_disable(fif);
		return 0;
	}
	return -EINVAL;
}

cli_cmd(help, do_help);
cli_cmd(add, do_add);
cli_cmd(list, do_list);
cli_cmd(rm, do_rm);
cli_cmd(cgr, do_cgr);
cli_cmd(macs, do_macs);
cli_cmd(promisc, do_promisc);

/* Carries out a line; not 0 for one that ends the program. */
static int command(char *line)
{
	const struct cli_table_entry *entry;
	char *argv[8], *save, *word = strtok_r(line, " \t\n", &save);
	int argc = 0, ret;
	for (; word && argc < (int)ARRAY_SIZE(argv); word = strtok_r(NULL, " \t\n", &save))
		argv[argc++] = word;
	if (!argc)
		return 0;
	if (argv[0][0] == 'q')
		return 1;
	foreach_cli_table_entry(entry) {
		if (strcmp(entry->cmd, argv[0]))
			continue;
		ret = entry->handle(argc, argv);
		if (ret)
			fprintf(stderr, "%s: %s\n", argv[0], strerror(ret < 0 ? -ret : ret));
		fflush(stdout);
		return 0;
	}
	fprintf(stderr, "Unknown command: %s\n", argv[0]);
	return 0;
}

static void on_signal(int number)
{
	(void)number;
	quit = 1;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "fm-config", 1, NULL, 'c' }, { "fm-pcd", 1, NULL, 'p' },  { "non-interactive", 0, NULL, 'n' },
		{ "dma-mem", 1, NULL, 'd' },   { "buffers", 1, NULL, 'b' }, { "sec-era", 1, NULL, 'e' },
		{ NULL, 0, NULL, 0 },
	};
	const char *pcd = getenv("DEF_PCD_PATH"), *cfg = getenv("DEF_CFG_PATH");
	size_t dma_size = 64 << 20;
	long first = 1, last = 1;
	int option, interactive = 1, got;
	struct sigaction action = { .sa_handler = on_signal };
	char line[256];
	must("of_init", of_init());
	while ((option = getopt_long(argc, argv, "c:p:nd:b:e:", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			cfg = optarg;
			break;
		case 'p':
			pcd = optarg;
			break;
		case 'n':
			interactive = 0;
			break;
		case 'd':
			dma_size = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			for (size_t i = 0; i < ARRAY_SIZE(pool_counts); i++) {
				char *next = strsep(&optarg, ":");
				pool_counts[i] = next ? strtoull(next, NULL, 0) : 0;
			}
			break;
		case 'e':
			must("rta_set_sec_era", rta_set_sec_era((enum rta_sec_era)(atoi(optarg) - 1)));
			break;
		default:
			exit(EXIT_FAILURE);
		}
	}
	if (optind < argc)
		must("cpu range", cpu_range(argv[optind], &first, &last));
	printf("reflector starting\n");
	/* Without SA_RESTART: a read of the command line ends. */
	sigaction(SIGINT, &action, NULL);
	netcfg = usdpaa_netcfg_acquire(pcd, cfg);
	must("usdpaa_netcfg_acquire", !netcfg || !netcfg->num_ethports ? -EINVAL : 0);
	printf("Configuring for %d network interface%s\n", netcfg->num_ethports, netcfg->num_ethports > 1 ? "s" : "");
	if (qman_global_init())
		fprintf(stderr, "qman_global_init, continuing\n");
	if (bman_global_init())
		fprintf(stderr, "bman_global_init, continuing\n");
	got = qman_alloc_pool_range(pools, POOL_CHANNELS, 1, 0);
	must("qman_alloc_pool_range", got == POOL_CHANNELS ? 0 : -ENOSPC);
	for (int i = 0; i < POOL_CHANNELS; i++)
		static_mask |= QM_SDQCR_CHANNELS_POOL_CONV((u16)pools[i]);
	dma_mem_generic = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, dma_size);
	must("dma_mem_create", dma_mem_generic ? 0 : -ENOMEM);
	printf("Allocated DMA region size 0x%zx\n", dma_size);
	must("add", start_workers(first, last, 1));
	while (!quit) {
		if (!interactive) {
			pause();
			continue;
		}
		printf("reflector> ");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin) || command(line))
			break;
	}
	/* The first has set up the frame queues, and takes them down. */
	while (num_workers--)
		if (!workers[num_workers].is_dead)
			stop_worker(&workers[num_workers]);
	qman_release_pool_range(pools[0], POOL_CHANNELS);
	usdpaa_netcfg_release(netcfg);
	printf("reflector stopping\n");
	return 0;
}
