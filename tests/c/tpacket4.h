/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's side of AF_PACKET V4: sockets with memory and rings. Errors are
 * errnos as of the last call; queue functions return counts.
 */
#ifndef TPACKET4_H
#define TPACKET4_H

#include "check.h"

#include <arpa/inet.h>
#include <linux/if_packet_v4.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCS		256
#define FRAMES		512
#define FRAME_SIZE	2048

/* One direction's ring, with the program's own indices. */
struct queue {
	struct tpacket4_desc *ring;
	unsigned int avail;	/* next slot to hand over */
	unsigned int used;	/* next slot to get back */
	unsigned int mask;
};

struct v4 {
	int fd;
	char *area;
	struct queue rx, tx;
};

static inline int
v4_option(int fd, int name, const void *value, socklen_t len)
{
	return setsockopt(fd, SOL_PACKET, name, value, len);
}

static inline int
v4_register(int fd, void *area, uint64_t len)
{
	struct tpacket_memreg_req request = { 0, 0, 0, 0 };

	request.addr = (uintptr_t)area;
	request.len = len;
	request.frame_size = FRAME_SIZE;
	return v4_option(fd, PACKET_MEMREG, &request, sizeof(request));
}

static inline int
v4_ring(int fd, int which, int memory, unsigned int descs)
{
	struct tpacket_req4 request;

	request.mr_fd = memory;
	request.desc_nr = descs;
	return v4_option(fd, which, &request, sizeof(request));
}

static inline int
v4_socket(void)
{
	int version = TPACKET_V4;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	require(fd >= 0, "a packet socket");
	require(v4_option(fd, PACKET_VERSION, &version, sizeof(version)) == 0,
		"version 4");
	return fd;
}

static inline int
v4_bind(int fd, unsigned int index)
{
	struct sockaddr_ll address;

	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_ALL);
	address.sll_ifindex = (int)index;
	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

static inline void *
v4_area(void)
{
	void *area = NULL;

	require(posix_memalign(&area, 4096, FRAMES * FRAME_SIZE) == 0, "memory");
	return area;
}

/* A socket with both rings on memory, which is its own from now on, bound to an interface. */
static inline struct v4
v4_open_on(const char *interface, void *area)
{
	struct v4 v4;
	size_t size = DESCS * sizeof(struct tpacket4_desc);
	unsigned int index = if_nametoindex(interface);
	int memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	void *rings;

	memset(&v4, 0, sizeof(v4));
	require(index != 0, "an interface %s", interface);
	v4.fd = v4_socket();
	v4.area = (char *)area;
	require(v4_register(memory, v4.area, FRAMES * FRAME_SIZE) == 0, "registers memory");
	require(v4_ring(v4.fd, PACKET_RX_RING, memory, DESCS) == 0, "a receive ring");
	require(v4_ring(v4.fd, PACKET_TX_RING, memory, DESCS) == 0, "a transmit ring");
	close(memory);
	rings = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_LOCKED | MAP_POPULATE, v4.fd, 0);
	require(rings != MAP_FAILED, "maps the rings");
	v4.rx.ring = (struct tpacket4_desc *)rings;
	v4.tx.ring = v4.rx.ring + DESCS;
	v4.rx.mask = v4.tx.mask = DESCS - 1;
	require(v4_bind(v4.fd, index) == 0, "binds to %s", interface);
	return v4;
}

static inline struct v4
v4_open(const char *interface)
{
	return v4_open_on(interface, v4_area());
}

static inline void
v4_close(struct v4 *v4)
{
	munmap(v4->rx.ring, 2 * DESCS * sizeof(struct tpacket4_desc));
	close(v4->fd);
	free(v4->area);
}

/* Hands a descriptor over: its flags are the last that is written. */
static inline void
put(struct queue *queue, struct tpacket4_desc desc)
{
	struct tpacket4_desc *slot = &queue->ring[queue->avail++ & queue->mask];
	uint8_t flags = desc.flags | TP4_DESC_KERNEL;

	slot->idx = desc.idx;
	slot->len = desc.len;
	slot->offset = desc.offset;
	slot->error = 0;
	__atomic_store_n(&slot->flags, flags, __ATOMIC_RELEASE);
}

/* Gets the next descriptor back, if it has come. */
static inline int
get(struct queue *queue, struct tpacket4_desc *desc)
{
	struct tpacket4_desc *slot = &queue->ring[queue->used & queue->mask];
	uint8_t flags;

	if (queue->used == queue->avail)
		return 0;
	flags = __atomic_load_n(&slot->flags, __ATOMIC_ACQUIRE);
	if (flags & TP4_DESC_KERNEL)
		return 0;
	*desc = *slot;
	queue->used++;
	return 1;
}

static inline struct tpacket4_desc
frame_of(uint64_t idx, uint32_t len, uint16_t offset)
{
	struct tpacket4_desc desc;

	memset(&desc, 0, sizeof(desc));
	desc.idx = idx;
	desc.len = len;
	desc.offset = offset;
	return desc;
}

static inline char *
data_of(const struct v4 *v4, const struct tpacket4_desc *desc)
{
	return v4->area + desc->idx * FRAME_SIZE + desc->offset;
}

/* Gives frames to receive into. */
static inline void
fill(struct v4 *v4, uint64_t first, unsigned int count)
{
	for (unsigned int at = 0; at < count; at++)
		put(&v4->rx, frame_of(first + at, 0, 0));
}

static inline int
kick(const struct v4 *v4)
{
	return (int)sendto(v4->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

/* Waits for events; returns those that came. */
static inline int
await(const struct v4 *v4, short events, int millis)
{
	struct pollfd fd;

	fd.fd = v4->fd;
	fd.events = events;
	fd.revents = 0;
	require(poll(&fd, 1, millis) >= 0, "poll");
	return fd.revents;
}

#endif
