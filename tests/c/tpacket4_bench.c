/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4 in the way of the proposal's benchmark: two processes forward
 * packets to each other between the ends vm1 and vm2 of a cable, so many under
 * way at a time; each prints one line at the end.
 *
 * Memory of 131072 frames is registered on a socket of its own, which is never
 * bound. Of the receive ring only the last slot of the next batch is looked at.
 *
 * tpacket4_bench PACKETS-UNDER-WAY PACKETS [QUEUE]
 */
#include "tpacket4.h"

#include <sys/wait.h>

#define BATCH	64
#define BUFFERS	131072
#define SLOTS	4096
#define LENGTH	60

static struct queue rx, tx;
static char *area;
static int fd;
static unsigned int batch;

static void
open_it(const char *interface, unsigned int first, int queue)
{
	size_t size = SLOTS * sizeof(struct tpacket4_desc);
	int bypass = 1, memory = socket(PF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	void *place = NULL;

	fd = v4_socket();
	require(posix_memalign(&place, 4096, (size_t)BUFFERS * FRAME_SIZE) == 0, "memory");
	area = (char *)place;
	require(v4_register(memory, area, (uint64_t)BUFFERS * FRAME_SIZE) == 0, "PACKET_MEMREG");
	require(v4_ring(fd, PACKET_RX_RING, memory, SLOTS) == 0, "PACKET_RX_RING");
	require(v4_ring(fd, PACKET_TX_RING, memory, SLOTS) == 0, "PACKET_TX_RING");
	require(v4_option(fd, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass)) == 0, "PACKET_QDISC_BYPASS");
	rx.ring = (struct tpacket4_desc *)mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
					       MAP_SHARED | MAP_LOCKED | MAP_POPULATE, fd, 0);
	require(rx.ring != MAP_FAILED, "mmap");
	tx.ring = rx.ring + SLOTS;
	rx.mask = tx.mask = SLOTS - 1;
	require(v4_bind(fd, if_nametoindex(interface)) == 0, "bind to %s", interface);
	if (queue >= 0)
		require(v4_option(fd, PACKET_ZEROCOPY, &queue, sizeof(queue)) == 0, "PACKET_ZEROCOPY");
	for (unsigned int at = 0; at < SLOTS / 4; at++)
		put(&rx, frame_of(first + at, 0, 0));
}

/* The next batch, if its last slot has come back; all before it has then. */
static unsigned int
take(struct queue *queue, struct tpacket4_desc *descs, unsigned int most)
{
	unsigned int outstanding = queue->avail - queue->used;
	unsigned int count = outstanding < most ? outstanding : most;
	uint8_t *last = &queue->ring[(queue->used + count - 1) & queue->mask].flags;

	if (count == 0 || (__atomic_load_n(last, __ATOMIC_ACQUIRE) & TP4_DESC_KERNEL))
		return 0;
	for (unsigned int at = 0; at < count; at++)
		require(get(queue, &descs[at]), "slots come back in order");
	return count;
}

/* All fields first, then the flags, from the last to the first. */
static void
hand_over(struct queue *queue, const struct tpacket4_desc *descs, unsigned int count)
{
	for (unsigned int at = 0; at < count; at++) {
		struct tpacket4_desc *slot = &queue->ring[(queue->avail + at) & queue->mask];

		slot->idx = descs[at].idx;
		slot->len = descs[at].len;
		slot->offset = descs[at].offset;
		slot->error = 0;
	}
	for (unsigned int at = count; at-- > 0;)
		__atomic_store_n(&queue->ring[(queue->avail + at) & queue->mask].flags, TP4_DESC_KERNEL,
				 __ATOMIC_RELEASE);
	queue->avail += count;
}

static void
push(void)
{
	while (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		require(errno == EAGAIN || errno == ENOBUFS, "a kick");
}

/* Forwards until so many were received; begins if there are some to begin with. */
static int
forward(const char *interface, unsigned int begin, uint64_t packets)
{
	static const char head[14] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, (char)0x88, (char)0xb5 };
	struct tpacket4_desc descs[BATCH];
	uint64_t received = 0, sent = begin;

	for (unsigned int at = 0; at < begin; at++) {
		descs[at] = frame_of(at, LENGTH, 0);
		memset(area + (size_t)at * FRAME_SIZE, 0x5a, LENGTH);
		memcpy(area + (size_t)at * FRAME_SIZE, head, sizeof(head));
	}
	hand_over(&tx, descs, begin);
	push();
	while (received < packets) {
		unsigned int count = take(&rx, descs, batch);

		for (unsigned int at = 0; at < count; at++) {
			char *data = area + descs[at].idx * FRAME_SIZE + descs[at].offset, address[6];

			require(descs[at].error == 0 && descs[at].len == LENGTH && data[59] == 0x5a, "a packet");
			memcpy(address, data, 6);
			memcpy(data, data + 6, 6);
			memcpy(data + 6, address, 6);
		}
		received += count;
		sent += count;
		hand_over(&tx, descs, count);
		if (tx.avail != tx.used)
			push();
		count = take(&tx, descs, batch);
		hand_over(&rx, descs, count);
		if (count == 0) {
			struct pollfd wait = { fd, POLLIN, 0 };

			require(poll(&wait, 1, 20000) >= 0, "poll");
		}
	}
	printf("%s v4 l2fwd rx: %llupkts tx: %llupkts\n", interface, (unsigned long long)received,
	       (unsigned long long)sent);
	fflush(stdout);
	return check_result();
}

int
main(int argc, char **argv)
{
	int queue = argc > 3 ? atoi(argv[3]) : -1, status = -1, ends[2];
	uint64_t packets;
	char byte = 'x';
	pid_t child;

	require(argc > 2, "arguments");
	batch = (unsigned int)atoi(argv[1]);
	packets = strtoull(argv[2], NULL, 10);
	require(batch >= 1 && batch <= BATCH && pipe(ends) == 0, "a batch");
	child = fork();
	if (child == 0) {
		open_it("vm2", 0, queue);
		require(write(ends[1], &byte, 1) == 1, "ready");
		return forward("vm2", 0, packets);
	}
	open_it("vm1", batch, queue);
	require(read(ends[0], &byte, 1) == 1, "the other is ready");
	forward("vm1", batch, packets);
	require(waitpid(child, &status, 0) == child, "the child");
	check_number(status, 0, "the other has received as many");
	return check_result();
}
