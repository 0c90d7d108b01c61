/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program on AF_XDP sockets as its library gives them: libxdp's, in copy mode
 * with native XDP. One socket on queue 0 of each interface; the first receives,
 * the last sends.
 *
 * usage: xsk CPU send|receive|forward|ping BYTES BATCH IN-FLIGHT touched|untouched IFACE [IFACE]
 */
#include "role.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#include <xdp/xsk.h>

#define CHUNK	XSK_UMEM__DEFAULT_FRAME_SIZE
#define RING	2048u
#define EACH	2048u
/* Looks of a program that finds nothing, before it sleeps: as the benchmark's own. */
#define LOOKS	100

struct queue {
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
};

static struct queue queues[2];
static struct queue *in = &queues[0], *out = &queues[0];
static char *memory;
static char packet[CHUNK];
static uint64_t spare[2 * EACH];
static uint32_t spares, length, batch, wanted, under_way, looks;
static int touched;

static void
open_queue(struct queue *queue, const char *interface, int shared, int receives)
{
	struct xsk_umem_config umem = {
		.fill_size = RING, .comp_size = RING, .frame_size = CHUNK,
	};
	struct xsk_socket_config config = {
		.rx_size = RING, .tx_size = RING, .xdp_flags = XDP_FLAGS_DRV_MODE,
		.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP,
		/* A sender needs no program. */
		.libxdp_flags = receives ? 0 : XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	};
	int error = 0;

	if (!shared)
		error = xsk_umem__create(&queue->umem, memory, 2 * EACH * (uint64_t)CHUNK,
					 &queue->fill, &queue->completion, &umem);
	else
		queue->umem = queues[0].umem;
	if (!error)
		error = xsk_socket__create_shared(&queue->xsk, interface, 0, queue->umem,
			&queue->rx, &queue->tx, &queue->fill, &queue->completion, &config);
	if (error) {
		errno = -error;
		fail(interface);
	}
}

static void
give(struct queue *queue, uint64_t address)
{
	uint32_t at;

	if (xsk_ring_prod__reserve(&queue->fill, 1, &at) == 1) {
		*xsk_ring_prod__fill_addr(&queue->fill, at) = address;
		xsk_ring_prod__submit(&queue->fill, 1);
	} else {
		spare[spares++] = address;
	}
}

static void
reap(void)
{
	uint32_t at, done = xsk_ring_cons__peek(&out->completion, RING, &at), i;

	for (i = 0; i < done; i++)
		spare[spares++] = *xsk_ring_cons__comp_addr(&out->completion, at + i);
	xsk_ring_cons__release(&out->completion, done);
}

static void
kick(void)
{
	/* In copy mode the kernel takes 32 at a time: until it has taken all, or can do no more. */
	while (xsk_ring_prod__needs_wakeup(&out->tx)) {
		uint32_t taken = __atomic_load_n(out->tx.consumer, __ATOMIC_ACQUIRE);

		if (taken == out->tx.cached_prod)
			return;
		if (sendto(xsk_socket__fd(out->xsk), NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 &&
		    errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != ENETDOWN)
			fail("sendto");
		if (__atomic_load_n(out->tx.consumer, __ATOMIC_ACQUIRE) == taken)
			return;
	}
}

static void
nap(struct queue *queue, short events)
{
	struct pollfd wait = { xsk_socket__fd(queue->xsk), events, 0 };

	if (looks++ < LOOKS) {
		sched_yield();
		return;
	}
	poll(&wait, 1, NAP_MS);
}

/* The end of a step that has moved so many frames. */
static uint64_t
end_step(uint32_t count, struct queue *queue, short events)
{
	if (count)
		looks = 0;
	else
		nap(queue, events);
	return count;
}

static uint32_t
send_some(uint32_t most)
{
	uint32_t at, i, count;

	reap();
	count = most < spares ? most : spares;
	count = count < batch ? count : batch;
	if (count == 0 || xsk_ring_prod__reserve(&out->tx, count, &at) != count) {
		kick();
		return 0;
	}
	for (i = 0; i < count; i++) {
		struct xdp_desc *desc = xsk_ring_prod__tx_desc(&out->tx, at + i);

		desc->addr = spare[--spares];
		desc->len = length;
		desc->options = 0;
		if (touched)
			memcpy(xsk_umem__get_data(memory, desc->addr), packet, length);
	}
	xsk_ring_prod__submit(&out->tx, count);
	kick();
	return count;
}

static uint32_t
receive_some(void)
{
	uint32_t from, to, i, count = xsk_ring_cons__peek(&in->rx, batch, &from);

	if (count && xsk_ring_prod__reserve(&in->fill, count, &to) == count) {
		for (i = 0; i < count; i++) {
			const struct xdp_desc *desc = xsk_ring_cons__rx_desc(&in->rx, from + i);

			if (touched)
				role_read(xsk_umem__get_data(memory, desc->addr), desc->len);
			*xsk_ring_prod__fill_addr(&in->fill, to + i) =
				xsk_umem__extract_addr(desc->addr);
		}
		xsk_ring_prod__submit(&in->fill, count);
	}
	xsk_ring_cons__release(&in->rx, count);
	if (xsk_ring_prod__needs_wakeup(&in->fill))
		recvfrom(xsk_socket__fd(in->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
	return count;
}

static uint64_t
send_step(void *data)
{
	(void)data;
	return end_step(send_some(batch), out, POLLOUT);
}

static uint64_t
receive_step(void *data)
{
	(void)data;
	return end_step(receive_some(), in, POLLIN);
}

static uint64_t
forward_step(void *data)
{
	uint32_t from, to, i, count = xsk_ring_cons__peek(&in->rx, batch, &from);

	(void)data;
	if (count && xsk_ring_prod__reserve(&out->tx, count, &to) != count) {
		xsk_ring_cons__cancel(&in->rx, count);
		count = 0;
	}
	for (i = 0; i < count; i++) {
		struct xdp_desc *desc = xsk_ring_prod__tx_desc(&out->tx, to + i);

		*desc = *xsk_ring_cons__rx_desc(&in->rx, from + i);
		desc->options = 0;
	}
	if (count) {
		xsk_ring_prod__submit(&out->tx, count);
		xsk_ring_cons__release(&in->rx, count);
	}
	kick();
	reap();
	while (spares) {
		uint32_t before = spares;

		give(in, spare[--spares] & ~(uint64_t)(CHUNK - 1));
		if (spares == before)
			break;
	}
	if (xsk_ring_prod__needs_wakeup(&in->fill))
		recvfrom(xsk_socket__fd(in->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
	return end_step(count, in, POLLIN);
}

static uint64_t
ping_step(void *data)
{
	struct pollfd wait = { xsk_socket__fd(in->xsk), POLLIN, 0 };
	uint32_t back = receive_some();

	(void)data;
	under_way = back < under_way ? under_way - back : 0;
	if (under_way < wanted)
		under_way += send_some(wanted - under_way);
	if (back)
		looks = 0;
	else if (looks++ < LOOKS)
		sched_yield();
	else if (poll(&wait, 1, NAP_MS) == 0)
		under_way = 0;	/* Lost: it begins anew. */
	return back;
}

int
main(int argc, char **argv)
{
	uint64_t (*step)(void *) = NULL;
	uint32_t i;

	if (argc != 8 && argc != 9) {
		fprintf(stderr, "usage: xsk CPU send|receive|forward|ping BYTES BATCH IN-FLIGHT "
			"touched|untouched IFACE [IFACE]\n");
		return 2;
	}
	if (strcmp(argv[2], "send") == 0)
		step = send_step;
	else if (strcmp(argv[2], "receive") == 0)
		step = receive_step;
	else if (strcmp(argv[2], "forward") == 0)
		step = forward_step;
	else if (strcmp(argv[2], "ping") == 0)
		step = ping_step;
	length = (uint32_t)atoi(argv[3]);
	batch = (uint32_t)atoi(argv[4]);
	wanted = (uint32_t)atoi(argv[5]);
	touched = strcmp(argv[6], "touched") == 0;
	if (!step || length < 14 || length > CHUNK || batch == 0 || batch > RING)
		return 2;
	for (i = 0; i < length; i++)
		packet[i] = 0x5a;
	/* To nobody's address, as all send. */
	memcpy(packet, "\2\0\0\0\0\0\2\0\0\0\0\1\x8\0\x45", 15);
	/* They tell how they look for what they do without. */
	libbpf_set_print(NULL);
	libxdp_set_print(NULL);
	memory = (char *)mmap(NULL, 2 * EACH * (size_t)CHUNK, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	/* As Ringway's regions, in huge pages where the kernel gives some. */
	madvise(memory, 2 * EACH * (size_t)CHUNK, MADV_HUGEPAGE);
	memset(memory, 0, 2 * EACH * (size_t)CHUNK);
	open_queue(&queues[0], argv[7], 0, step != send_step);
	if (argc == 9) {
		out = &queues[1];
		open_queue(out, argv[8], 1, 0);
	}
	if (step != send_step)
		for (i = 0; i < EACH; i++)
			give(in, (uint64_t)i * CHUNK);
	if (step != forward_step)
		for (i = EACH; i < 2 * EACH; i++) {
			spare[spares++] = (uint64_t)i * CHUNK;
			memcpy(memory + (uint64_t)i * CHUNK, packet, length);
		}
	role_run(argv[1], step, NULL);
	return 0;
}
