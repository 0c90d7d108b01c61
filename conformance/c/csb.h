/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports in CSB mode, and the loop that serves them in a thread. */
#ifndef CSB_H
#define CSB_H

#include "packet.h"
#include "request.h"

#include <pthread.h>
#include <sys/eventfd.h>

#define CSB_RINGS	16

/* One entry per ring, tx rings first. */
struct csb {
	struct nm_csb_atok atok[CSB_RINGS] __attribute__((aligned(64)));
	struct nm_csb_ktoa ktoa[CSB_RINGS] __attribute__((aligned(64)));
};

static inline struct nmreq_opt_csb
csb_option(void *atok, void *ktoa)
{
	struct nmreq_opt_csb option;

	memset(&option, 0, sizeof(option));
	option.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	option.csb_atok = (uintptr_t)atok;
	option.csb_ktoa = (uintptr_t)ktoa;
	return option;
}

/* REGISTER with the option; what ioctl returns, and the option's status. */
static inline int
csb_bind(int fd, const char *name, struct nmreq_register *reg, void *atok,
	 void *ktoa, uint32_t *status)
{
	struct nmreq_opt_csb option = csb_option(atok, ktoa);
	int result = control_with(fd, NETMAP_REQ_REGISTER, name, reg, &option);

	*status = option.nro_opt.nro_status;
	return result;
}

/* CSB_ENABLE with the option. */
static inline int
csb_enable(int fd, void *atok, void *ktoa, uint32_t *status)
{
	struct nmreq_opt_csb option = csb_option(atok, ktoa);
	int result = control_with(fd, NETMAP_REQ_CSB_ENABLE, "", NULL,
				  &option);

	*status = option.nro_opt.nro_status;
	return result;
}

/* A port in CSB mode from the start. */
static inline struct port
csb_open_as(const char *name, struct nmreq_register reg, struct csb *csb)
{
	struct port port;
	uint32_t status;

	reg.nr_flags |= NR_EXCLUSIVE;
	memset(csb, 0xee, sizeof(*csb));
	port.fd = device_open();
	require(csb_bind(port.fd, name, &reg, csb->atok, csb->ktoa, &status)
		== 0 && status == 0, "REGISTER %s with CSB", name);
	port.reg = reg;
	port_map(&port);
	return port;
}

static inline struct port
csb_open(const char *name, struct csb *csb)
{
	return csb_open_as(name, register_all(), csb);
}

/* ---- the loop ---- */

struct kloop {
	pthread_t thread;
	int fd;
	uint32_t sleep_us;
	void *options;
	int result, error;	/* of START */
};

static inline void *
kloop_main(void *argument)
{
	struct kloop *loop = (struct kloop *)argument;
	struct nmreq_sync_kloop_start start;

	memset(&start, 0, sizeof(start));
	start.sleep_us = loop->sleep_us;
	loop->result = control_with(loop->fd, NETMAP_REQ_SYNC_KLOOP_START, "",
				    &start, loop->options);
	loop->error = errno;
	return NULL;
}

/* Starts a loop in a thread of its own. */
static inline void
kloop_start(struct kloop *loop, int fd, uint32_t sleep_us, void *options)
{
	loop->fd = fd;
	loop->sleep_us = sleep_us;
	loop->options = options;
	loop->result = loop->error = -2;
	require(pthread_create(&loop->thread, NULL, kloop_main, loop) == 0,
		"a thread");
}

static inline int
kloop_stop_request(int fd)
{
	return control(fd, NETMAP_REQ_SYNC_KLOOP_STOP, "", NULL);
}

/* Stops it; START must have returned 0. */
static inline void
kloop_stop(struct kloop *loop)
{
	check_call(kloop_stop_request(loop->fd), 0, "STOP");
	pthread_join(loop->thread, NULL);
	errno = loop->error;
	check_call(loop->result, 0, "START has ended well");
}

/* START in this thread, for a loop that must not run. */
static inline int
kloop_try(int fd, uint32_t sleep_us, void *options)
{
	struct nmreq_sync_kloop_start start;

	memset(&start, 0, sizeof(start));
	start.sleep_us = sleep_us;
	return control_with(fd, NETMAP_REQ_SYNC_KLOOP_START, "", &start,
			    options);
}

/* ---- the program's side of the protocol ---- */

struct csb_wait {
	struct csb *csb;
	int ring;
	uint32_t hwcur, hwtail;
};

static inline int
csb_hwcur_is(const void *argument)
{
	const struct csb_wait *wait = (const struct csb_wait *)argument;
	uint32_t hwcur, hwtail;

	nm_sync_kloop_appl_read(&wait->csb->ktoa[wait->ring], &hwtail,
				&hwcur);
	return hwcur == wait->hwcur;
}

static inline int
csb_hwtail_is(const void *argument)
{
	const struct csb_wait *wait = (const struct csb_wait *)argument;
	uint32_t hwcur, hwtail;

	nm_sync_kloop_appl_read(&wait->csb->ktoa[wait->ring], &hwtail,
				&hwcur);
	return hwtail == wait->hwtail;
}

/* The loop has consumed up to there. */
static inline int
csb_consumed(struct csb *csb, int ring, uint32_t hwcur)
{
	struct csb_wait wait = { csb, ring, hwcur, 0 };

	return soon(csb_hwcur_is, &wait);
}

/* The loop has produced up to there. */
static inline int
csb_produced(struct csb *csb, int ring, uint32_t hwtail)
{
	struct csb_wait wait = { csb, ring, 0, hwtail };

	return soon(csb_hwtail_is, &wait);
}

/*
 * Puts frames into a tx ring and publishes them in its entry; the ring's own
 * head and cur only count them.
 */
static inline void
csb_send(struct csb *csb, int entry, struct netmap_ring *tx, uint32_t first,
	 uint32_t count)
{
	while (count--) {
		struct netmap_slot *slot = &tx->slot[tx->head];

		slot->len = FRAME_SIZE;
		slot->flags = 0;
		frame_fill(NETMAP_BUF(tx, slot->buf_idx), FRAME_SIZE,
			   broadcast, mac_of(1), first++);
		ring_advance(tx, 1);
	}
	nm_sync_kloop_appl_write(&csb->atok[entry], tx->cur, tx->head);
}

/* Releases rx slots up to there. */
static inline void
csb_release(struct csb *csb, int entry, struct netmap_ring *rx, uint32_t head)
{
	rx->head = rx->cur = head;
	nm_sync_kloop_appl_write(&csb->atok[entry], head, head);
}

static inline void
kick(int fd)
{
	uint64_t one = 1;

	require(write(fd, &one, sizeof(one)) == sizeof(one), "eventfd");
}

/* Whether the other side has signalled, in time; takes the signal. */
static inline int
kicked(int fd, int timeout_ms)
{
	uint64_t count;

	return wait_events(fd, POLLIN, timeout_ms) & POLLIN &&
	       read(fd, &count, sizeof(count)) == sizeof(count);
}

#endif
