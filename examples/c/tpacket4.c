/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4: receives and drops, transmits, or sends back what comes, for a
 * number of seconds.
 *
 *   cc -O2 -Iinclude examples/c/tpacket4.c -o tpacket4
 *   ringway run -- ./tpacket4 rxdrop|txpush|l2fwd INTERFACE SECONDS [QUEUE]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet_v4.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH		64
#define FRAMES		16384
#define FRAME_SIZE	2048
#define DESCS		4096
#define LENGTH		60

/* A ring, and this program's own indices into it. */
struct queue {
	struct tpacket4_desc *ring;
	uint32_t avail;		/* the next slot to hand over */
	uint32_t used;		/* the next slot to get back */
};

static int fd;
static char *area;
static struct queue rx, tx;
static uint64_t received, sent;

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static void
option(int socket, int name, const void *value, socklen_t len, const char *what)
{
	if (setsockopt(socket, SOL_PACKET, name, value, len) != 0)
		fail(what);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct tpacket4_desc *
slot(struct queue *queue, uint32_t at)
{
	return &queue->ring[at & (DESCS - 1)];
}

/* Hands descriptors over: their fields first, then the flags, from the last to the first. */
static void
enqueue(struct queue *queue, const struct tpacket4_desc *descs, uint32_t count)
{
	for (uint32_t at = 0; at < count; at++) {
		struct tpacket4_desc *to = slot(queue, queue->avail + at);

		to->idx = descs[at].idx;
		to->len = descs[at].len;
		to->offset = descs[at].offset;
		to->error = 0;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t at = count; at-- > 0;)
		__atomic_store_n(&slot(queue, queue->avail + at)->flags, TP4_DESC_KERNEL, __ATOMIC_RELAXED);
	queue->avail += count;
}

/* Gets back what has come of the next slots, no more than a batch. */
static uint32_t
dequeue(struct queue *queue, struct tpacket4_desc *descs)
{
	uint32_t count = 0;

	while (count < BATCH && queue->used != queue->avail) {
		struct tpacket4_desc *from = slot(queue, queue->used);

		if (__atomic_load_n(&from->flags, __ATOMIC_ACQUIRE) & TP4_DESC_KERNEL)
			break;
		descs[count++] = *from;
		queue->used++;
	}
	return count;
}

static void
kick(void)
{
	if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
		fail("sendto");
}

static void
setup(const char *interface, const char *queue_pair)
{
	struct tpacket_memreg_req memory;
	struct tpacket_req4 request;
	struct sockaddr_ll address;
	int version = TPACKET_V4, bypass = 1;
	size_t size = DESCS * sizeof(struct tpacket4_desc);
	int registered = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (fd < 0 || registered < 0)
		fail("socket");
	option(fd, PACKET_VERSION, &version, sizeof(version), "PACKET_VERSION");
	if (posix_memalign((void **)&area, 4096, (size_t)FRAMES * FRAME_SIZE) != 0)
		fail("memory");
	memset(&memory, 0, sizeof(memory));
	memory.addr = (uintptr_t)area;
	memory.len = (uint64_t)FRAMES * FRAME_SIZE;
	memory.frame_size = FRAME_SIZE;
	option(registered, PACKET_MEMREG, &memory, sizeof(memory), "PACKET_MEMREG");
	request.mr_fd = registered;
	request.desc_nr = DESCS;
	option(fd, PACKET_RX_RING, &request, sizeof(request), "PACKET_RX_RING");
	option(fd, PACKET_TX_RING, &request, sizeof(request), "PACKET_TX_RING");
	option(fd, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass), "PACKET_QDISC_BYPASS");
	rx.ring = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (rx.ring == MAP_FAILED)
		fail("mmap");
	tx.ring = rx.ring + DESCS;
	if (queue_pair) {
		int number = atoi(queue_pair);

		option(fd, PACKET_ZEROCOPY, &number, sizeof(number), "PACKET_ZEROCOPY");
	}
	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_ALL);
	address.sll_ifindex = (int)if_nametoindex(interface);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail(interface);
	for (uint32_t at = 0; at < DESCS / 4; at++) {
		struct tpacket4_desc desc = { .idx = at };

		enqueue(&rx, &desc, 1);
	}
}

static void
rxdrop(void)
{
	struct tpacket4_desc descs[BATCH];
	uint32_t count = dequeue(&rx, descs);

	received += count;
	enqueue(&rx, descs, count);
}

static void
txpush(void)
{
	static const char head[14] = { -1, -1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 4, (char)0x88, (char)0xb5 };
	static struct tpacket4_desc descs[BATCH];
	static uint32_t ready = 0;
	uint32_t count;

	if (!ready) {
		for (uint32_t at = DESCS; at < DESCS + DESCS; at++)
			memcpy(area + (size_t)at * FRAME_SIZE, head, sizeof(head));
		ready = 1;
	}
	/* The frames are all alike: any that is not under way will do. */
	if (tx.avail - tx.used <= DESCS - BATCH) {
		for (count = 0; count < BATCH; count++) {
			descs[count].idx = DESCS + ((tx.avail + count) & (DESCS - 1));
			descs[count].len = LENGTH;
			descs[count].offset = 0;
		}
		enqueue(&tx, descs, BATCH);
	}
	kick();
	sent += dequeue(&tx, descs);
}

static void
l2fwd(void)
{
	struct tpacket4_desc descs[BATCH];
	uint32_t count = dequeue(&rx, descs);

	for (uint32_t at = 0; at < count; at++) {
		char *data = area + descs[at].idx * FRAME_SIZE + descs[at].offset, address[6];

		memcpy(address, data, 6);
		memcpy(data, data + 6, 6);
		memcpy(data + 6, address, 6);
	}
	received += count;
	enqueue(&tx, descs, count);
	if (tx.avail != tx.used)
		kick();
	count = dequeue(&tx, descs);
	sent += count;
	enqueue(&rx, descs, count);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*step)(void);
	} modes[] = { { "rxdrop", rxdrop }, { "txpush", txpush }, { "l2fwd", l2fwd } };
	double end, first = 0, last = 0, took;

	for (size_t at = 0; argc >= 4 && at < sizeof(modes) / sizeof(modes[0]); at++) {
		if (strcmp(argv[1], modes[at].name) != 0)
			continue;
		setup(argv[2], argc > 4 ? argv[4] : NULL);
		end = now() + atof(argv[3]);
		do {
			uint64_t before = received + sent;

			for (int turn = 0; turn < 256; turn++)
				modes[at].step();
			if (received + sent != before) {
				last = now();
				first = first ? first : last;
			}
		} while (now() < end);
		/* From the first packet to the last. */
		took = last > first ? last - first : 1;
		printf("%s %s rx %llu tx %llu rx_mpps %.2f tx_mpps %.2f\n", argv[2], modes[at].name,
		       (unsigned long long)received, (unsigned long long)sent,
		       (double)received / took * 1e-6, (double)sent / took * 1e-6);
		close(fd);
		return 0;
	}
	fprintf(stderr, "usage: %s rxdrop|txpush|l2fwd INTERFACE SECONDS [QUEUE]\n", argv[0]);
	return 2;
}
