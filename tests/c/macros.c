/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The macros and inlines of the public headers on a ring in plain memory: no
 * library, no port.
 */
#include "check.h"

#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

#define SLOTS	8
#define BUFFERS	16
#define BUFSIZE	64

/* A region with one tx and one rx ring, and fake host rings. */
struct region {
	char nifp[128] __attribute__((aligned(8)));
	char tx[1024] __attribute__((aligned(128)));
	char rx[1024] __attribute__((aligned(128)));
	char buf[BUFFERS][BUFSIZE];
};

static struct region region;
static struct netmap_if *nifp;

static struct netmap_ring *
ring_init(char *place)
{
	struct netmap_ring *ring = (struct netmap_ring *)(void *)place;
	uint32_t i;

	*(int64_t *)(uintptr_t)&ring->buf_ofs = region.buf[0] - place;
	*(uint32_t *)(uintptr_t)&ring->num_slots = SLOTS;
	*(uint32_t *)(uintptr_t)&ring->nr_buf_size = BUFSIZE;
	*(uint64_t *)(uintptr_t)&ring->offset_mask = 0xff;
	ring->head = ring->cur = 0;
	ring->tail = SLOTS - 1;
	for (i = 0; i < SLOTS; i++)
		ring->slot[i].buf_idx = 2 + i;
	return ring;
}

static int calls, last_flags;

static void
count_call(unsigned char *arg, const struct nm_pkthdr *hdr,
	   const unsigned char *data)
{
	(void)arg;
	calls++;
	last_flags = (int)hdr->flags;
	check(data == hdr->buf && hdr->len >= hdr->caplen,
	      "callback %d: header and data agree", calls);
}

static void
check_accessors(void)
{
	struct netmap_ring *ring = NETMAP_TXRING(nifp, 0);
	struct netmap_slot *slot = &ring->slot[3];

	check((char *)ring == region.tx, "NETMAP_TXRING");
	check((char *)NETMAP_RXRING(nifp, 0) == region.rx, "NETMAP_RXRING");
	check((char *)NETMAP_TXRING(nifp, 1) == (char *)nifp,
	      "an unbound ring is the netmap_if");
	check(NETMAP_IF(&region, 0) == nifp, "NETMAP_IF");
	check(NETMAP_BUF(ring, 5) == region.buf[5], "NETMAP_BUF");
	check_number((long)NETMAP_BUF_IDX(ring, region.buf[5]), 5,
		     "NETMAP_BUF_IDX");
	slot->ptr = 0xabcd00;
	NETMAP_WOFFSET(ring, slot, 0x1ff17);
	check_number((long)slot->ptr, 0xabcd17, "NETMAP_WOFFSET");
	check_number((long)NETMAP_ROFFSET(ring, slot), 0x17, "NETMAP_ROFFSET");
	check(NETMAP_BUF_OFFSET(ring, slot) == region.buf[5] + 0x17,
	      "NETMAP_BUF_OFFSET");
	slot->ptr = 0;
	slot->flags = 0x0320;
	check_number(NS_RFRAGS(slot), 3, "NS_RFRAGS");
	slot->flags = 0;
}

static void
check_indices(void)
{
	struct netmap_ring *ring = NETMAP_TXRING(nifp, 0);

	check(!nm_ring_empty(ring), "a new tx ring is not empty");
	check_number(nm_ring_space(ring), SLOTS - 1, "nm_ring_space");
	check_number(nm_ring_next(ring, SLOTS - 1), 0, "nm_ring_next wraps");
	check(!nm_tx_pending(ring), "nm_tx_pending: nothing sent");
	ring->head = ring->cur = 6;
	check(nm_tx_pending(ring), "nm_tx_pending: something sent");
	ring->tail = 2;
	check_number(nm_ring_space(ring), 4, "nm_ring_space wraps");
	ring->tail = 6;
	check(nm_ring_empty(ring), "nm_ring_empty");
	check_number(nm_ring_space(ring), 0, "nm_ring_space of an empty ring");
	ring_init(region.tx);
}

static void
check_copy(void)
{
	static const int length[] = { 0, 1, 60, 64, 128, 960, 1024, 1500 };
	char from[2048], to[2048];
	size_t i, k;

	for (i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 5);
	for (k = 0; k < sizeof(length) / sizeof(length[0]); k++) {
		memset(to, 0x55, sizeof(to));
		nm_pkt_copy(from, to, length[k]);
		check(memcmp(from, to, (size_t)length[k]) == 0 &&
		      to[length[k]] == 0x55, "nm_pkt_copy of %d bytes",
		      length[k]);
	}
}

static void
check_csb(void)
{
	struct nm_csb_atok atok;
	struct nm_csb_ktoa ktoa;
	uint32_t tail = 0, current = 0;

	memset(&atok, 0, sizeof(atok));
	memset(&ktoa, 0, sizeof(ktoa));
	nm_sync_kloop_appl_write(&atok, 7, 5);
	check(atok.cur == 7 && atok.head == 5, "nm_sync_kloop_appl_write");
	ktoa.hwtail = 9;
	ktoa.hwcur = 4;
	nm_sync_kloop_appl_read(&ktoa, &tail, &current);
	check(tail == 9 && current == 4, "nm_sync_kloop_appl_read");
}

/* A descriptor on the region, as nm_mmap would leave it. */
static void
check_packets(void)
{
	struct netmap_ring *tx = ring_init(region.tx);
	struct netmap_ring *rx = ring_init(region.rx);
	struct nm_desc *d = (struct nm_desc *)calloc(1, sizeof(*d));
	struct nm_pkthdr hdr;
	char packet[4 * BUFSIZE];

	require(d != NULL, "calloc");
	*(struct netmap_if **)(uintptr_t)&d->nifp = nifp;
	memset(packet, 'p', sizeof(packet));

	check_number(nm_inject(d, packet, 3 * BUFSIZE), 3 * BUFSIZE,
		     "nm_inject takes a packet of 3 slots");
	check(tx->head == 3 && tx->cur == 3, "and moves head and cur by 3");
	check(tx->slot[0].flags == NS_MOREFRAG &&
	      tx->slot[1].flags == NS_MOREFRAG && tx->slot[2].flags == 0 &&
	      tx->slot[2].len == BUFSIZE, "NS_MOREFRAG on all but the last");
	check_number(nm_inject(d, packet, 4 * BUFSIZE), 4 * BUFSIZE,
		     "nm_inject fills the ring");
	check_number(nm_inject(d, packet, 1), 0, "nm_inject of a full ring");

	rx->slot[0].len = 10;
	rx->slot[1].len = BUFSIZE;
	rx->slot[1].flags = NS_MOREFRAG;
	rx->slot[2].len = 20;
	rx->slot[3].len = 30;
	rx->tail = 4;
	check_number(nm_dispatch(d, 2, count_call, NULL), 2,
		     "nm_dispatch stops at cnt");
	check(calls == 2 && last_flags == 0, "the last call has no more");
	check(d->hdr.len == BUFSIZE + 20 && d->hdr.caplen == BUFSIZE + 20,
	      "fragments in adjacent full buffers are contiguous");
	check(nm_nextpkt(d, &hdr) == (unsigned char *)region.buf[5] &&
	      hdr.len == 30 && hdr.caplen == 30, "nm_nextpkt");
	check(nm_nextpkt(d, &hdr) == NULL, "nm_nextpkt of an empty ring");
	check(rx->head == 4 && rx->cur == 4, "all slots were given back");

	/* Two fragments with a buffer swapped between them. */
	rx->slot[4].len = BUFSIZE;
	rx->slot[4].flags = NS_MOREFRAG;
	rx->slot[5].len = 5;
	rx->slot[5].buf_idx = 12;
	rx->tail = 6;
	check_number(nm_dispatch(d, 0, count_call, NULL), 1,
		     "nm_dispatch without limit");
	check(d->hdr.len == BUFSIZE + 5 && d->hdr.caplen == BUFSIZE,
	      "caplen ends where memory does");
	free(d);
}

int
main(void)
{
	ssize_t *ofs;

	nifp = (struct netmap_if *)(void *)region.nifp;
	*(uint32_t *)(uintptr_t)&nifp->ni_tx_rings = 1;
	*(uint32_t *)(uintptr_t)&nifp->ni_rx_rings = 1;
	*(uint32_t *)(uintptr_t)&nifp->ni_host_tx_rings = 1;
	*(uint32_t *)(uintptr_t)&nifp->ni_host_rx_rings = 1;
	ofs = (ssize_t *)(uintptr_t)nifp->ring_ofs;
	ofs[0] = region.tx - region.nifp;
	ofs[2] = region.rx - region.nifp;
	ring_init(region.tx);
	ring_init(region.rx);

	check_accessors();
	check_indices();
	check_copy();
	check_csb();
	check_packets();
	return check_result();
}
