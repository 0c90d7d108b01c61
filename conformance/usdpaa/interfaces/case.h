/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chapter of the rules of USDPAA's interfaces. A case has an interface at one end of a wire and a netmap port at the
 * other, in one thread. The variant says what the wire is: two ports of a switch, a pipe, or, as root, a veth.
 */
#ifndef CASE_H
#define CASE_H

#include "../../wire.h"
#include "../portals.h"
#include "../../../tests/c/port.h"

#include <limits.h>
#include <usdpaa/fsl_fman.h>
#include <usdpaa/ringway.h>
#include <usdpaa/usdpaa_netcfg.h>

#define HEADROOM	64
#define NO_CONFIRM	0x80000000u
#define FLOWS		0x400	/* of the usual policy: IPv4, by addresses */
#define FLOW_QUEUES	4
#define REST		0x300	/* and what is something else */

static enum { SWITCH, PIPE, VETH } wire;

static void
chapter_begin(const char *variant)
{
	static const char *const names[] = { "switch", "pipe", "veth" };

	for (wire = SWITCH; strcmp(variant, names[wire]); wire++)
		require(wire != VETH, "the variant");
}

/* The ends of the case's wire: the interface's, and the netmap port's. */
static inline const char *
near_end(void)
{
	return wire == SWITCH ? own("vale$:a") : wire == PIPE ? own("p${1") : own("netmap:n$");
}

static inline const char *
far_end(void)
{
	return wire == SWITCH ? own("vale$:b") : wire == PIPE ? own("p$}1") : own("f$");
}

static inline void
wire_new(void)
{
	if (wire == VETH) {
		need_root();
		shell("ip link add %s type veth peer name %s", own("n$"), own("f$"));
		wire_up(own("n$"), own("f$"));
	}
}

/* A file of this case alone with that text; its path. */
static inline const char *
file_new(const char *name, const char *text)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % COUNT(paths)];
	FILE *file;

	snprintf(path, PATH_MAX, "%s/%s-%d-%s", getenv("TMPDIR"), case_id, (int)getpid(), name);
	file = fopen(path, "w");
	require(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
	return path;
}

#define DISTRIBUTION(name, key, base, count) \
	"<distribution name='" name "'>" key "<queue base='" #base "' count='" #count "'/></distribution>"
#define FIELD(name)	"<fieldref name='" name "'/>"
#define BY_ADDRESSES	"<key>" FIELD("ipv4.src") FIELD("ipv4.dst") "</key>"
#define POLICY(order, others) \
	"<netpcd><policy name='p'><dist_order>" order "</dist_order></policy>" others "</netpcd>"
#define REF(name)	"<distributionref name='" name "'/>"
#define PORT(type, number) \
	"<port type='" type "' number='" #number "' policy='p'/>"
#define CONFIG(ports)	"<cfgdata><config><engine name='fm0'>" ports "</engine></config></cfgdata>"
#define USUAL_POLICY \
	POLICY(REF("flows") REF("rest"), DISTRIBUTION("flows", BY_ADDRESSES, 0x400, 4) DISTRIBUTION("rest", "", 0x300, 1))

static inline struct usdpaa_netcfg_info *
acquire(const char *policies, const char *config)
{
	return usdpaa_netcfg_acquire(file_new("policies.xml", policies), file_new("config.xml", config));
}

/* A frame queue of an interface, and what came to it. */
struct sink {
	struct qman_fq fq;
	uint32_t frames;
	struct qm_fd fds[64];
	uint16_t sequences[64];
};

static inline enum qman_cb_dqrr_result
on_sink(struct qman_portal *portal, struct qman_fq *fq, const struct qm_dqrr_entry *entry)
{
	struct sink *sink = (struct sink *)fq;

	(void)portal;
	if (entry->stat & QM_DQRR_STAT_FD_VALID) {
		sink->fds[sink->frames % COUNT(sink->fds)] = entry->fd;
		sink->sequences[sink->frames % COUNT(sink->fds)] = entry->seqnum;
		sink->frames++;
	}
	return qman_cb_dqrr_consume;
}

static inline struct sink *
sink_new(uint32_t fqid, uint16_t channel)
{
	struct sink *sink = calloc(1, sizeof(*sink));
	struct qm_mcc_initfq opts = options(channel, 4, 0);

	require(sink != NULL, "memory");
	sink->fq.cb.dqrr = on_sink;
	require(qman_create_fq(fqid, QMAN_FQ_FLAG_NO_ENQUEUE, &sink->fq) == 0, "qman_create_fq");
	require(qman_init_fq(&sink->fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
	return sink;
}

/* A frame queue that the interface sends from. */
static inline void
sends_from(struct qman_fq *fq, uint32_t fqid, uint32_t flags, const struct fman_if *fif, uint32_t context)
{
	struct qm_mcc_initfq opts = options(fif->tx_channel_id, 3, 0);

	memset(fq, 0, sizeof(*fq));
	require(qman_create_fq(fqid, flags | QMAN_FQ_FLAG_TO_DCPORTAL, fq) == 0, "qman_create_fq");
	opts.we_mask |= QM_INITFQ_WE_CONTEXTA;
	opts.fqd.context_a.hi = context;
	opts.fqd.context_a.lo = 0;
	require(qman_init_fq(fq, QMAN_INITFQ_FLAG_SCHED, &opts) == 0, "qman_init_fq");
}

/* An interface at a wire, with all its queues, and buffers. */
static struct {
	struct usdpaa_netcfg_info *cfg;
	const struct fman_if *fif;
	struct port far;
	uint16_t channel;
	struct sink *flows[FLOW_QUEUES], *rest, *rx_error, *tx_error, *confirm;
	struct qman_fq tx, confirmed;
	struct bman_pool *pools[3];
} it;

static const uint32_t buffer_sizes[] = { 320, 704, 1728 };

static inline void
buffers_add(int pool, int count)
{
	struct bm_buffer buffer;

	memset(&buffer, 0, sizeof(buffer));
	while (count--) {
		void *memory = __dma_mem_memalign(64, buffer_sizes[pool]);

		require(memory != NULL, "__dma_mem_memalign");
		bm_buffer_set64(&buffer, __dma_mem_vtop(memory));
		require(bman_release(it.pools[pool], &buffer, 1, 0) == 0, "bman_release");
	}
}

static inline int
buffers_free(int pool)
{
	qman_poll();
	return (int)bman_query_free_buffers(it.pools[pool]);
}

/* Portals, memory, empty pools; what an interface needs of the managers. */
static inline void
managers_new(void)
{
	struct bman_pool_params params;
	uint32_t i;

	it.channel = pool();
	dma_mem_generic = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, 1 << 20);
	require(dma_mem_generic != NULL, "dma_mem_create");
	for (i = 0; i < COUNT(it.pools); i++) {
		memset(&params, 0, sizeof(params));
		params.bpid = 7 + i;
		it.pools[i] = bman_new_pool(&params);
		require(it.pools[i] != NULL, "bman_new_pool");
	}
}

/* The only interface of a configuration, which does not receive yet, and so many buffers in its pools. */
static inline void
interface_over(const char *ports, const char *config, const char *policies, int small, int middle, int large)
{
	uint32_t i;

	setenv("RINGWAY_USDPAA_PORTS", ports, 1);
	it.cfg = acquire(policies, config);
	require(it.cfg && it.cfg->num_ethports == 1, "usdpaa_netcfg_acquire");
	it.fif = it.cfg->port_cfg[0].fman_if;
	managers_new();
	buffers_add(0, small);
	buffers_add(1, middle);
	buffers_add(2, large);
	for (i = 0; i < FLOW_QUEUES; i++)
		it.flows[i] = sink_new(FLOWS + i, it.channel);
	it.rest = sink_new(REST, it.channel);
	it.rx_error = sink_new(it.fif->fqid_rx_err, it.channel);
	it.tx_error = sink_new(it.fif->fqid_tx_err, it.channel);
	it.confirm = sink_new(it.fif->fqid_tx_confirm, it.channel);
	sends_from(&it.tx, 0, QMAN_FQ_FLAG_DYNAMIC_FQID, it.fif, NO_CONFIRM);
	sends_from(&it.confirmed, 0, QMAN_FQ_FLAG_DYNAMIC_FQID, it.fif, 0);
}

/* "fm0-10g0=PORT", the near end of the case's wire. */
static inline const char *
near_port(void)
{
	static char ports[128];

	snprintf(ports, sizeof(ports), "fm0-10g0=%s", near_end());
	return ports;
}

/* The same at the case's wire, with a netmap port at the other end. */
static inline void
interface_on_wire(const char *policies, int small, int middle, int large)
{
	interface_over(near_port(), CONFIG(PORT("10G", 0)), policies, small, middle, large);
	it.far = port_open(far_end());
}

static inline void
interface_new(const char *policies, int small, int middle, int large)
{
	wire_new();
	interface_on_wire(policies, small, middle, large);
}

static inline struct ringway_usdpaa_counters
counted(void)
{
	struct ringway_usdpaa_counters counters;

	require(ringway_usdpaa_count(it.fif, &counters) == 0, "ringway_usdpaa_count");
	return counters;
}

/* A frame of IPv4 between two hosts, in a buffer that is not for two at once; the rest of its bytes follow from number. */
static inline uint8_t *
ip_frame(uint32_t length, uint8_t from, uint8_t to, uint8_t number)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0,
					10, 0, 0, 0, 10, 1, 0, 0 };
	static uint8_t frame[1 << 15];
	uint32_t i;

	for (i = 0; i < length; i++)
		frame[i] = (uint8_t)(number + i);
	memcpy(frame, head, sizeof(head));
	frame[29] = from;
	frame[33] = to;
	return frame;
}

/* The far end sends a frame, in as many slots as it takes. */
static inline void
far_send(const uint8_t *frame, uint32_t length)
{
	struct netmap_ring *ring = port_tx(&it.far);
	uint32_t size = ring->nr_buf_size - (wire == VETH ? 256 : 0);

	while (length > 0) {
		uint32_t part = length < size ? length : size;
		struct netmap_slot *slot = &ring->slot[ring->head];

		while (nm_ring_empty(ring)) {
			port_txsync(&it.far);
			qman_poll();
		}
		memcpy(NETMAP_BUF(ring, slot->buf_idx), frame, part);
		slot->len = (uint16_t)part;
		slot->flags = part < length ? NS_MOREFRAG : 0;
		ring_advance(ring, 1);
		frame += part;
		length -= part;
	}
	port_txsync(&it.far);
}

/* The next frame at the far end is this one. */
static inline int
far_gets(const uint8_t *frame, uint32_t length)
{
	struct netmap_ring *ring = port_rx(&it.far);
	uint32_t done = 0;
	int same = 1, more = 1;

	while (more) {
		struct netmap_slot *slot = &ring->slot[ring->head];

		while (nm_ring_empty(ring)) {
			qman_poll();
			port_rxsync(&it.far);
			sched_yield();
		}
		same = same && slot->len <= length - done &&
		       memcmp(NETMAP_BUF(ring, slot->buf_idx), frame + done, slot->len) == 0;
		done += slot->len;
		more = slot->flags & NS_MOREFRAG;
		ring_advance(ring, 1);
	}
	return same && done == length;
}

/* Polls until so many frames have come to a queue. */
static inline void
wait_frames(const struct sink *sink, uint32_t count)
{
	while (sink->frames < count) {
		qman_poll();
		sched_yield();
	}
}

static inline uint8_t *
bytes_of(const struct qm_fd *fd)
{
	return (uint8_t *)__dma_mem_ptov(qm_fd_addr(fd)) + fd->offset;
}

/* The buffer of a frame goes back to its pool. */
static inline void
drop(const struct qm_fd *fd)
{
	struct bm_buffer buffer;

	memset(&buffer, 0, sizeof(buffer));
	bm_buffer_set64(&buffer, qm_fd_addr(fd));
	require(bman_release(it.pools[fd->bpid - 7], &buffer, 1, 0) == 0, "bman_release");
}

/* A frame to be sent, in a buffer of a pool. */
static inline struct qm_fd
frame_of(int pool, const uint8_t *bytes, uint32_t length)
{
	struct bm_buffer buffer;
	struct qm_fd fd;

	require(bman_acquire(it.pools[pool], &buffer, 1, 0) == 1, "bman_acquire");
	memset(&fd, 0, sizeof(fd));
	qm_fd_addr_set64(&fd, bm_buffer_get64(&buffer));
	fd.bpid = (uint8_t)(7 + pool);
	fd.format = qm_fd_contig;
	fd.offset = HEADROOM;
	fd.length20 = length;
	memcpy(bytes_of(&fd), bytes, length);
	return fd;
}

static inline void
send_fd(struct qman_fq *fq, const struct qm_fd *fd)
{
	while (qman_enqueue(fq, fd, 0))
		qman_poll();
}

#endif
