/* SPDX-License-Identifier: BSD-2-Clause */
/* Extra buffers, and how many a region has left (S-MEM-9). */
#ifndef EXTRA_H
#define EXTRA_H

#include "case.h"
#include "request.h"

#define GLOBAL	1	/* the region of interfaces */

/* A port with as many extra buffers as asked. */
static inline struct port
port_open_extra(const char *name, uint32_t extra)
{
	struct nmreq_register reg = register_all();

	reg.nr_extra_bufs = extra;
	return port_open_as(name, reg);
}

/* The first buffer of the list, taken out of it. */
static inline uint32_t
extra_take(const struct port *port, struct netmap_ring *ring)
{
	uint32_t index = port->nifp->ni_bufs_head, next;

	require(index >= 2, "an extra buffer");
	memcpy(&next, NETMAP_BUF(ring, index), sizeof(next));
	port->nifp->ni_bufs_head = next;
	return index;
}

/* Puts a buffer in front of the list. */
static inline void
extra_give(const struct port *port, struct netmap_ring *ring, uint32_t index)
{
	memcpy(NETMAP_BUF(ring, index), &port->nifp->ni_bufs_head,
	       sizeof(index));
	port->nifp->ni_bufs_head = index;
}

/* Buffers in the list; more than `most` is told as one more. */
static inline uint32_t
extra_count(const struct port *port, struct netmap_ring *ring, uint32_t most)
{
	uint32_t index = port->nifp->ni_bufs_head, count = 0;

	while (index != 0 && count <= most) {
		memcpy(&index, NETMAP_BUF(ring, index), sizeof(index));
		count++;
	}
	return count;
}

/* A null port of that region without rings; holds it, and has buffers. */
static inline struct port
region_hold(uint16_t mem_id, uint32_t extra)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = mem_id;
	reg.nr_extra_bufs = extra;
	return port_open_as("hold", reg);
}

/* How many buffers of a region nobody has. */
static inline uint32_t
region_free_buffers(uint16_t mem_id)
{
	struct port port = region_hold(mem_id, 1u << 20);
	uint32_t count = port.reg.nr_extra_bufs;

	port_close(&port);
	return count;
}

/* 0, or the errno with which such a region does not exist. */
static inline int
region_error(uint16_t mem_id)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = mem_id;
	return try_register("look", reg) == -1 ? errno : 0;
}

#endif
