/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library part of net/netmap_user.h, in C and in C++, over VALE ports and
 * pipes: names, memory sharing, packets.
 *
 * usage: nm_open_api [SWITCH]
 */
#include "check.h"

#include <poll.h>

#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

#include "frame.h"

static const char *vale = "vale3";

static const char *
name_of(const char *rest)
{
	static char name[4][64];
	static unsigned next;
	char *out = name[next++ % 4];

	snprintf(out, sizeof(name[0]), "%s:%s", vale, rest);
	return out;
}

static struct nm_desc *
open_port(const char *rest)
{
	struct nm_desc *d = nm_open(name_of(rest), NULL, 0, NULL);

	require(d != NULL, "nm_open %s", name_of(rest));
	return d;
}

static short
wait_for(struct nm_desc *d, short events)
{
	struct pollfd set;

	set.fd = NETMAP_FD(d);
	set.events = events;
	set.revents = 0;
	poll(&set, 1, PATIENCE_MS);
	return set.revents;
}

/* Names that nm_open refuses. */
static void
test_bad_names(void)
{
	static const struct {
		const char *name;
		int error;
	} cases[] = {
		{ "eth0", 0 }, { "", 0 }, { "netmap", 0 }, { "val0:a", 0 },
		{ "NETMAP:eth0", 0 }, { "p{0", EINVAL }, { "p}0", EINVAL },
		{ "netmap:eth0~", EINVAL }, { "netmap:eth0~x^", EINVAL },
		{ "vale0", EINVAL }, { "vale.0:a", EINVAL },
		{ "vale-0:a", EINVAL }, { "vale0:0123456789", EINVAL },
		{ "file:x.pcap", EINVAL }, { "file", 0 },
		{ "netmap:0123456789abcdef", EINVAL },
		{ "netmap:eth0-", EINVAL }, { "netmap:eth0{", EINVAL },
		{ "netmap:eth0}", EINVAL }, { "netmap:eth0-4095", EINVAL },
		{ "netmap:eth0--1", EINVAL }, { "netmap:eth0-1.", EINVAL },
		{ "netmap:veth-b-4095", EINVAL }, { "vale0:a-b-", EINVAL },
		{ "netmap:no-such-if", ENXIO }, { "netmap:no-such-1x", ENXIO },
		{ "netmap:no-such-0/R", ENXIO }, { "netmap:no-such~0", ENXIO },
		{ "netmap:eth0^1", EINVAL }, { "netmap:eth0^-1", EINVAL },
		{ "netmap:eth0*^", EINVAL }, { "netmap:p{a", EINVAL },
		{ "netmap:eth0/", EINVAL }, { "netmap:eth0/q", EINVAL },
		{ "netmap:eth0/x/r", EINVAL }, { "netmap:eth0/x^", EINVAL },
		{ "netmap:eth0@", EINVAL }, { "netmap:eth0@0", EINVAL },
		{ "netmap:eth0@x", EINVAL }, { "netmap:eth0@-1", EINVAL },
		{ "netmap:eth0@1@1", EINVAL }, { "netmap:eth0@1^", EINVAL },
		{ "netmap:", ENXIO }, { "netmap:nosuchif0", ENXIO },
		{ "netmap:nosuchif0+", ENXIO }, { "netmap:nosuchif0*", ENXIO },
		{ "netmap:nosuchif0-/x", ENXIO },
		{ "netmap:nosuchif0~1", ENXIO },
		{ "netmap:p{1@mode=copy", EINVAL },
		{ "netmap:p}1@filter=udp", EOPNOTSUPP },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nm_desc *d;

		errno = 99;
		d = nm_open(cases[i].name, NULL, 0, NULL);
		if (d || errno != cases[i].error)
			check(0, "nm_open \"%s\" (got %s, expected errno %d)",
			      cases[i].name, d ? "a descriptor" :
			      strerror(errno), cases[i].error);
		else
			check(1, "nm_open \"%s\" is refused, errno %d",
			      cases[i].name, cases[i].error);
		nm_close(d);
	}
}

/* What a good name puts into the request. */
static void
test_good_names(void)
{
	static const struct {
		const char *rest;
		uint32_t flags;
		uint16_t ringid;
	} cases[] = {
		{ "n", NR_REG_ALL_NIC, 0 },
		{ "n-0", NR_REG_ONE_NIC, 0 },
		{ "n-/x", NR_REG_ONE_NIC | NR_EXCLUSIVE, 0 },
		{ "n/R", NR_REG_ALL_NIC | NR_RX_RINGS_ONLY, 0 },
		{ "n/xT", NR_REG_ALL_NIC | NR_EXCLUSIVE | NR_TX_RINGS_ONLY,
		  0 },
		{ "n-a", NR_REG_ALL_NIC, 0 },
		{ "n-a-0", NR_REG_ONE_NIC, 0 },
		{ "n.b/R", NR_REG_ALL_NIC | NR_RX_RINGS_ONLY, 0 },
		{ "n-1x-0/x", NR_REG_ONE_NIC | NR_EXCLUSIVE, 0 },
		{ "n-a{7", NR_REG_PIPE_MASTER, 7 },
		{ "n{7", NR_REG_PIPE_MASTER, 7 },
		{ "n}7", NR_REG_PIPE_SLAVE, 7 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = name_of(cases[i].rest);
		struct nm_desc *d = nm_open(name, NULL, 0, NULL);

		if (!check(d != NULL, "nm_open \"%s\"", name))
			continue;
		check(d->req.nr_flags == cases[i].flags &&
		      d->req.nr_ringid == cases[i].ringid,
		      "\"%s\": flags 0x%x, ring %u", name, d->req.nr_flags,
		      d->req.nr_ringid);
		check(IS_NETMAP_DESC(d) && d->done_mmap && d->mem &&
		      (char *)d->nifp == (char *)d->mem + d->req.nr_offset &&
		      (char *)d->buf_end == (char *)d->mem + d->memsize,
		      "\"%s\": memory", name);
		check(d->first_rx_ring == 0 && d->last_rx_ring == 0 &&
		      d->first_tx_ring == 0 && d->last_tx_ring == 0,
		      "\"%s\": ring ranges", name);
		check_number(nm_close(d), 0, "nm_close");
	}
	check_number(nm_close(NULL), EINVAL, "nm_close of NULL");
}

/* Step 6 and 10 of nm_open: what a second descriptor takes from the first. */
static void
test_parent(void)
{
	struct nmreq req;
	struct nm_desc *first, *second;

	memset(&req, 0, sizeof(req));
	req.nr_tx_slots = 128;
	req.nr_rx_slots = 256;
	req.nr_arg3 = 4;
	first = nm_open(name_of("par"), &req, 0, NULL);
	require(first != NULL, "nm_open with a request");
	check(first->req.nr_tx_slots == 128 && first->req.nr_rx_slots == 256,
	      "the request's slot counts are used");
	check(first->req.nr_arg3 == 4 && first->nifp->ni_bufs_head != 0,
	      "the request's extra buffers are granted");

	second = nm_open(name_of("par"), NULL, NM_OPEN_NO_MMAP, first);
	require(second != NULL, "nm_open with a parent");
	check(second->mem == first->mem && !second->done_mmap,
	      "one region: the mapping is shared");
	check(second->nifp != first->nifp, "each has its netmap_if");
	nm_close(second);

	second = nm_open(name_of("ignored"), NULL, NM_OPEN_IFNAME, first);
	require(second != NULL, "nm_open with NM_OPEN_IFNAME");
	check(strcmp(second->req.nr_name, first->req.nr_name) == 0,
	      "NM_OPEN_IFNAME takes the parent's name");
	nm_close(second);

	second = nm_open(name_of("par2"), NULL, NM_OPEN_RING_CFG, first);
	require(second != NULL, "nm_open with NM_OPEN_RING_CFG");
	check(second->req.nr_tx_slots == 128 &&
	      second->req.nr_rx_slots == 256,
	      "NM_OPEN_RING_CFG takes the parent's counts");
	check(second->mem != first->mem && second->done_mmap,
	      "another region: a mapping of its own");
	nm_close(second);

	second = nm_open(name_of("par3"), NULL, NM_OPEN_NO_MMAP, NULL);
	require(second != NULL, "nm_open with NM_OPEN_NO_MMAP");
	check(second->mem == NULL, "NM_OPEN_NO_MMAP without a parent");
	check_number(nm_mmap(second, NULL), 0, "nm_mmap");
	check(second->nifp != NULL, "nm_mmap fills in the descriptor");
	nm_close(second);
	nm_close(first);
}

struct seen {
	int count, more, intact;
	uint32_t length, last;
};

static void
see(unsigned char *arg, const struct nm_pkthdr *hdr, const unsigned char *data)
{
	struct seen *seen = (struct seen *)(void *)arg;

	seen->count++;
	seen->more += hdr->flags == NM_MORE_PKTS;
	seen->intact += hdr->caplen == hdr->len &&
			frame_is_intact(data, hdr->len);
	seen->length = hdr->len;
	seen->last = frame_sequence(data);
}

static void
inject_frames(struct nm_desc *d, uint32_t first, uint32_t count)
{
	uint8_t frame[FRAME_SIZE];

	for (; count--; first++) {
		frame_fill(frame, sizeof(frame), broadcast, mac_of(1), first);
		require(nm_inject(d, frame, sizeof(frame)) == FRAME_SIZE,
			"nm_inject");
	}
	require(ioctl(NETMAP_FD(d), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
}

/* Packets from one descriptor to another, both ways of reading them. */
static void
test_packets(const char *from_name, const char *to_name)
{
	struct nm_desc *from = open_port(from_name);
	struct nm_desc *to = open_port(to_name);
	struct nm_pkthdr hdr;
	struct seen seen;
	const unsigned char *data;
	int got = 0, part = 1, turns;

	printf("# %s -> %s\n", from_name, to_name);
	memset(&seen, 0, sizeof(seen));
	inject_frames(from, 0, 10);
	/* The switch may deliver in several steps. */
	while (got < 6 && part > 0 && wait_for(to, POLLIN) & POLLIN) {
		part = nm_dispatch(to, 6 - got, see, (unsigned char *)&seen);
		got += part;
	}
	check_number(got, 6, "nm_dispatch stops at cnt");
	check(seen.count == 6 && seen.intact == 6 && seen.last == 5,
	      "each packet once, intact, in order");
	for (turns = 0; turns < 4; turns++) {
		data = nm_nextpkt(to, &hdr);
		if (!data && wait_for(to, POLLIN) & POLLIN)
			data = nm_nextpkt(to, &hdr);
		check(data && hdr.len == FRAME_SIZE && hdr.caplen == hdr.len &&
		      frame_is_intact(data, hdr.len) &&
		      frame_sequence(data) == (uint32_t)(6 + turns),
		      "nm_nextpkt %d", turns);
	}
	check(nm_nextpkt(to, &hdr) == NULL, "nm_nextpkt has no more");
	check_number(nm_dispatch(to, 0, see, (unsigned char *)&seen), 0,
		     "nm_dispatch has no more");
	nm_close(from);
	nm_close(to);
}

/* A pipe is exact about what is visible when. */
static void
test_pipe(void)
{
	struct nm_desc *from = open_port("q{1"), *to = open_port("q}1");
	struct netmap_ring *ring = NETMAP_TXRING(from->nifp, 0);
	uint32_t all = nm_ring_space(ring), i;
	uint8_t frame[5000];
	struct seen seen;

	memset(&seen, 0, sizeof(seen));
	inject_frames(from, 0, 5);
	check(wait_for(to, POLLIN) & POLLIN, "5 packets arrive");
	check_number(nm_dispatch(to, -1, see, (unsigned char *)&seen), 5,
		     "nm_dispatch without limit");
	check(seen.count == 5 && seen.more == 4,
	      "all but the last call say NM_MORE_PKTS");

	frame_fill(frame, sizeof(frame), broadcast, mac_of(1), 77);
	check_number(nm_inject(from, frame, sizeof(frame)), sizeof(frame),
		     "nm_inject of a packet of three buffers");
	require(ioctl(NETMAP_FD(from), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
	memset(&seen, 0, sizeof(seen));
	check(wait_for(to, POLLIN) & POLLIN, "it arrives");
	check_number(nm_dispatch(to, -1, see, (unsigned char *)&seen), 1,
		     "nm_dispatch gives one packet");
	check_number(seen.length, sizeof(frame), "with its whole length");
	check_number(seen.last, 77, "and its start");
	require(ioctl(NETMAP_FD(to), NIOCRXSYNC, NULL) == 0, "NIOCRXSYNC");
	require(ioctl(NETMAP_FD(from), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");

	inject_frames(from, 0, all);
	check_number(nm_inject(from, frame, FRAME_SIZE), 0,
		     "nm_inject into a full ring");
	check(wait_for(to, POLLIN) & POLLIN, "a full ring arrives");
	for (i = 0; i < 2; i++)
		check(nm_dispatch(to, 1, see, (unsigned char *)&seen) == 1,
		      "one at a time");
	require(ioctl(NETMAP_FD(to), NIOCRXSYNC, NULL) == 0, "NIOCRXSYNC");
	require(ioctl(NETMAP_FD(from), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
	check_number(nm_inject(from, frame, sizeof(frame)), 0,
		     "nm_inject of three buffers into two slots");
	check_number(nm_inject(from, frame, 4000), 4000,
		     "nm_inject of two buffers into two slots");
	nm_close(from);
	nm_close(to);
}

static void
count_by_length(unsigned char *arg, const struct nm_pkthdr *header,
		const unsigned char *packet)
{
	(void)packet;
	((unsigned *)(void *)arg)[header->len - FRAME_SIZE]++;
}

/* A program that takes a few packets at a time gets its share of every ring. */
static void
test_dispatch_shares(void)
{
	struct nm_desc *from, *to;
	struct netmap_ring *rx[2];
	unsigned seen[2] = { 0, 0 };
	uint8_t hello[FRAME_SIZE];
	struct nmreq req;
	int i, ring;

	memset(&req, 0, sizeof(req));
	req.nr_tx_rings = req.nr_rx_rings = 2;
	from = nm_open(name_of("sender"), &req, 0, NULL);
	to = nm_open(name_of("shares"), &req, 0, NULL);
	require(from != NULL && to != NULL && to->last_rx_ring == 1,
		"ports with two rings");
	for (ring = 0; ring < 2; ring++)
		rx[ring] = NETMAP_RXRING(to->nifp, ring);
	/* What is for a known address comes by the ring that it was sent by. */
	frame_fill(hello, sizeof(hello), broadcast, mac_of(2), 0);
	check_number(nm_inject(to, hello, sizeof(hello)), sizeof(hello), "nm_inject");
	require(ioctl(NETMAP_FD(to), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
	check(wait_for(from, POLLIN) & POLLIN, "the switch has learned");
	for (i = 0; i < 100; i++) {
		for (ring = 0; ring < 2; ring++) {
			struct netmap_ring *tx = NETMAP_TXRING(from->nifp, ring);

			while (!nm_ring_empty(tx)) {
				struct netmap_slot *slot = &tx->slot[tx->head];

				slot->len = FRAME_SIZE + ring;
				frame_fill((uint8_t *)NETMAP_BUF(tx, slot->buf_idx),
					   slot->len, mac_of(2), mac_of(1), i);
				tx->head = tx->cur = nm_ring_next(tx, tx->head);
			}
		}
		require(ioctl(NETMAP_FD(from), NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
		while (nm_ring_space(rx[0]) < 5 || nm_ring_space(rx[1]) < 5)
			wait_for(to, POLLIN);
		check_number(nm_dispatch(to, 5, count_by_length, (unsigned char *)seen),
			     5, "nm_dispatch of 5");
	}
	check_number(seen[0], 250, "packets of the first ring");
	check_number(seen[1], 250, "packets of the second ring");
	nm_close(from);
	nm_close(to);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		vale = argv[1];
	test_bad_names();
	test_good_names();
	test_parent();
	test_packets("a", "b");
	test_packets("p{1", "p}1");
	test_packets("p}2", "p{2");
	test_pipe();
	test_dispatch_shares();
	return check_result();
}
