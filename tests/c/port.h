/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A netmap port as the test programs use it: opened through NIOCCTRL, mapped,
 * with one frame sent or received at a time. What a test does not examine must
 * succeed; if it fails, the program ends with "not ok".
 */
#ifndef PORT_H
#define PORT_H

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <net/netmap_user.h>

#include "frame.h"

struct port {
	int fd;
	char *mem;
	struct nmreq_register reg;
	struct netmap_if *nifp;
};

/* The generation of the API that requests name, 14 or 15. */
static uint16_t api_version = NETMAP_API;

static inline void
api_select(const char *argument)
{
	api_version = (uint16_t)atoi(argument);
	require(api_version >= NETMAP_MIN_API && api_version <= NETMAP_MAX_API,
		"API generation %s is not 14 or 15", argument);
}

/* "SWITCH:PORT" in one of a few static strings. */
static inline const char *
name_of(const char *vale, const char *port)
{
	static char name[16][NETMAP_REQ_IFNAMSIZ];
	static unsigned next;
	char *out = name[next++ % 16];

	snprintf(out, NETMAP_REQ_IFNAMSIZ, "%s:%s", vale, port);
	return out;
}

static inline int
device_open(void)
{
	int fd = open(NETMAP_DEVICE_NAME, O_RDWR);

	require(fd >= 0, "open " NETMAP_DEVICE_NAME);
	return fd;
}

static inline struct nmreq_header
header_of(uint16_t type, const char *name, void *body)
{
	struct nmreq_header header;

	memset(&header, 0, sizeof(header));
	header.nr_version = api_version;
	header.nr_reqtype = type;
	snprintf(header.nr_name, sizeof(header.nr_name), "%s", name);
	header.nr_body = (uintptr_t)body;
	return header;
}

/* One request; returns what ioctl returns. */
static inline int
control(int fd, uint16_t type, const char *name, void *body)
{
	struct nmreq_header header = header_of(type, name, body);

	return ioctl(fd, NIOCCTRL, &header);
}

/* One request on a descriptor of its own, which is let go at once. */
static inline int
control_once(uint16_t type, const char *name, void *body)
{
	int fd = device_open();
	int result = control(fd, type, name, body);
	int cause = errno;

	close(fd);
	errno = cause;
	return result;
}

static inline struct nmreq_register
register_all(void)
{
	struct nmreq_register reg;

	memset(&reg, 0, sizeof(reg));
	reg.nr_mode = NR_REG_ALL_NIC;
	return reg;
}

static inline void
port_map(struct port *port)
{
	void *mem = mmap(NULL, port->reg.nr_memsize, PROT_READ | PROT_WRITE,
			 MAP_SHARED, port->fd, 0);

	require(mem != MAP_FAILED, "mmap of a bound descriptor");
	port->mem = (char *)mem;
	port->nifp = NETMAP_IF(port->mem, port->reg.nr_offset);
}

static inline struct port
port_open_as(const char *name, struct nmreq_register reg)
{
	struct port port;

	port.reg = reg;
	port.fd = device_open();
	require(control(port.fd, NETMAP_REQ_REGISTER, name, &port.reg) == 0,
		"REGISTER %s", name);
	port_map(&port);
	return port;
}

static inline struct port
port_open(const char *name)
{
	return port_open_as(name, register_all());
}

static inline void
port_close(struct port *port)
{
	munmap(port->mem, port->reg.nr_memsize);
	close(port->fd);
	port->fd = -1;
	port->mem = NULL;
}

static inline struct netmap_ring *
port_tx(const struct port *port)
{
	return NETMAP_TXRING(port->nifp, 0);
}

static inline struct netmap_ring *
port_rx(const struct port *port)
{
	return NETMAP_RXRING(port->nifp, 0);
}

static inline void
port_txsync(const struct port *port)
{
	require(ioctl(port->fd, NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
}

static inline void
port_rxsync(const struct port *port)
{
	require(ioctl(port->fd, NIOCRXSYNC, NULL) == 0, "NIOCRXSYNC");
}

/* The events of one descriptor, 0 when none came in time. */
static inline short
wait_events(int fd, short events, int timeout_ms)
{
	struct pollfd poll_fd = { fd, events, 0 };
	int ready;

	do
		ready = poll(&poll_fd, 1, timeout_ms);
	while (ready == -1 && errno == EINTR);
	require(ready >= 0, "poll");
	return poll_fd.revents;
}

/* Moves head and cur over count slots. */
static inline void
ring_advance(struct netmap_ring *ring, uint32_t count)
{
	uint32_t i = ring->head;

	while (count--)
		i = nm_ring_next(ring, i);
	ring->head = ring->cur = i;
}

/* Puts a test frame into the next tx slot, without a sync. */
static inline void
port_put(const struct port *port, struct mac to, struct mac from,
	 uint32_t sequence)
{
	struct netmap_ring *ring = port_tx(port);
	struct netmap_slot *slot = &ring->slot[ring->head];

	if (nm_ring_empty(ring))
		require(wait_events(port->fd, POLLOUT, PATIENCE_MS) & POLLOUT
			&& !nm_ring_empty(ring), "room in the tx ring");
	slot->len = FRAME_SIZE;
	slot->flags = 0;
	frame_fill(NETMAP_BUF(ring, slot->buf_idx), FRAME_SIZE, to, from,
		   sequence);
	ring_advance(ring, 1);
}

static inline void
port_send(const struct port *port, struct mac to, struct mac from,
	  uint32_t sequence)
{
	port_put(port, to, from, sequence);
	port_txsync(port);
}

/* The next rx slot, still in the ring, or NULL when none comes in time. */
static inline struct netmap_slot *
port_peek(const struct port *port)
{
	struct netmap_ring *ring = port_rx(port);

	if (nm_ring_empty(ring))
		wait_events(port->fd, POLLIN, PATIENCE_MS);
	return nm_ring_empty(ring) ? NULL : &ring->slot[ring->head];
}

/* Takes the next frame; returns its number, or -1 if none or a damaged one. */
static inline long long
port_take(const struct port *port)
{
	struct netmap_slot *slot = port_peek(port);
	const char *frame;
	long long sequence = -1;

	if (!slot)
		return -1;
	frame = NETMAP_BUF(port_rx(port), slot->buf_idx);
	if (frame_is_intact(frame, slot->len))
		sequence = frame_sequence(frame);
	ring_advance(port_rx(port), 1);
	return sequence;
}

/* 1 while a VALE port of that name exists. */
static inline int
port_exists(const char *name)
{
	struct nmreq_vale_list list;
	int result;

	memset(&list, 0, sizeof(list));
	result = control_once(NETMAP_REQ_VALE_LIST, name, &list);
	require(result == 0 || errno == ENOENT, "VALE_LIST %s", name);
	return result == 0 && list.nr_port_idx != 255;
}

#endif
