/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports of libnetmap: steps and their opposites, shared memory, clones,
 * packets, failures.
 *
 * usage: libnetmap_ports [SWITCH]
 */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "context.h"
#include "frame.h"

static const char *vale = "vale0";

static const char *
on_switch(const char *rest)
{
	static char name[4][64];
	static unsigned next;
	char *out = name[next++ % 4];

	snprintf(out, sizeof(name[0]), "%s:%s", vale, rest);
	return out;
}

static struct nmport_d *
open_port(const char *spec)
{
	struct nmport_d *d = nmport_open(spec);

	require(d != NULL, "nmport_open %s", spec);
	return d;
}

/* The context that is there at start: messages, and a lock. */
static void
test_first_context(void)
{
	struct nmctx *ctx = nmctx_get();
	void *memory = nmctx_malloc(ctx, 100);

	check(ctx->verbose == 1 && ctx->error && ctx->malloc && ctx->free,
	      "the context at start reports and allocates");
	check(ctx->lock != NULL && !ctx->mem_descs, "and has a lock");
	check(memory != NULL, "nmctx_malloc");
	nmctx_free(ctx, memory);
	nmctx_lock(ctx);
	nmctx_unlock(ctx);
	nmctx_set_threadsafe();
	check(nmctx_get() == ctx, "nmctx_set_threadsafe: it is already");
}

/* Another context made thread-safe: its callbacks, with a mutex. */
static void
test_threadsafe(void)
{
	struct nmctx own = context.ctx, *ctx, *before;

	own.lock = NULL;
	own.verbose = 17;
	nmctx_lock(&own);
	nmctx_unlock(&own);
	before = nmctx_set_default(&own);
	check(before == &context.ctx && nmctx_get() == &own,
	      "nmctx_set_default");
	nmctx_set_threadsafe();
	ctx = nmctx_get();
	check(ctx != &own && ctx->verbose == 17 && ctx->error == own.error &&
	      ctx->malloc == own.malloc && ctx->free == own.free &&
	      ctx->lock && !own.lock,
	      "nmctx_set_threadsafe: a copy with a mutex");
	nmctx_lock(ctx);
	nmctx_unlock(ctx);
	nmctx_set_default(before);
}

static void
check_closed(struct nmport_d *d)
{
	check(d->fd == -1 && !d->register_done, "not registered");
	check(!d->mem && !d->nifp && !d->mmap_done && d->first_tx_ring == 0 &&
	      d->last_tx_ring == 0 && d->cur_tx_ring == 0 &&
	      d->first_rx_ring == 0 && d->last_rx_ring == 0 &&
	      d->cur_rx_ring == 0, "not mapped");
}

static void
test_steps(void)
{
	struct nmport_d *d = nmport_prepare(on_switch("steps"));
	char text[128];
	int fd;

	require(d != NULL, "nmport_prepare");
	check_closed(d);
	check_call(nmport_mmap(d), EINVAL, "nmport_mmap before register");
	snprintf(text, sizeof(text),
		 "%s: to be registered before it is mapped",
		 on_switch("steps"));
	context_said(text);

	d->reg.nr_extra_bufs = 2;
	check_call(nmport_register(d), 0, "nmport_register");
	fd = d->fd;
	check(d->register_done && fd >= 0 && fcntl(fd, F_GETFD) != -1 &&
	      d->reg.nr_mem_id != 0 && d->reg.nr_memsize != 0 &&
	      d->reg.nr_extra_bufs == 2,
	      "a descriptor, and what was granted");
	check_call(nmport_register(d), EINVAL, "nmport_register twice");
	snprintf(text, sizeof(text), "%s: registered already",
		 on_switch("steps"));
	context_said(text);
	check_number(d->fd, fd, "keeps the descriptor");

	check_call(nmport_mmap(d), 0, "nmport_mmap");
	check(d->mmap_done && d->mem && d->nifp &&
	      (char *)d->nifp == (char *)d->mem->mem + d->reg.nr_offset,
	      "the interface is in the mapping");
	check(d->mem->mem_id == d->reg.nr_mem_id && d->mem->refcount == 1 &&
	      d->mem->size == d->reg.nr_memsize && !d->mem->is_extmem &&
	      context.ctx.mem_descs == d->mem, "the mapping's description");
	check(d->nifp->ni_bufs_head != 0, "the extra buffers");
	check_call(nmport_mmap(d), EINVAL, "nmport_mmap twice");
	snprintf(text, sizeof(text), "%s: mapped already",
		 on_switch("steps"));
	context_said(text);

	nmport_undo_mmap(d);
	check(!d->mem && !d->mmap_done && !context.ctx.mem_descs,
	      "nmport_undo_mmap");
	nmport_undo_mmap(d);
	check_call(nmport_mmap(d), 0, "nmport_mmap again");
	nmport_undo_open_desc(d);
	check_closed(d);
	check(fcntl(fd, F_GETFD) == -1, "the descriptor is closed");
	nmport_undo_register(d);
	/* The port's own region has gone with it. */
	d->reg.nr_mem_id = 0;
	check_call(nmport_open_desc(d), 0, "nmport_open_desc");
	nmport_close(d);
	nmport_close(NULL);
	check_number(context.live, 0, "nothing is left");
}

static void
check_rings(const char *rest, int tx, int rx)
{
	struct nmport_d *d = open_port(on_switch(rest));
	int all_tx = d->reg.nr_tx_rings + d->nifp->ni_host_tx_rings;
	int all_rx = d->reg.nr_rx_rings + d->nifp->ni_host_rx_rings;

	/* Without rings the range begins after the last, and is empty. */
	check(tx < 0 ? d->first_tx_ring == all_tx &&
		       d->last_tx_ring == all_tx - 1 :
		       d->first_tx_ring == 0 && d->last_tx_ring == tx,
	      "%s: tx rings %u to %u", rest, d->first_tx_ring,
	      d->last_tx_ring);
	check(rx < 0 ? d->first_rx_ring == all_rx &&
		       d->last_rx_ring == all_rx - 1 :
		       d->first_rx_ring == 0 && d->last_rx_ring == rx,
	      "%s: rx rings %u to %u", rest, d->first_rx_ring,
	      d->last_rx_ring);
	check(d->cur_tx_ring == d->first_tx_ring &&
	      d->cur_rx_ring == d->first_rx_ring, "%s: begins at the first",
	      rest);
	check(d->reg.nr_tx_slots == NETMAP_TXRING(d->nifp, 0)->num_slots ||
	      tx < 0, "%s: slots", rest);
	if (tx < 0)
		check_number(nmport_inject(d, rest, 1), 0,
			     "nmport_inject without a ring");
	nmport_close(d);
}

static void
test_conf(void)
{
	struct nmport_d *d = open_port(on_switch("conf@conf:slots=256,"
						 "rx_slots=128"));

	check(NETMAP_TXRING(d->nifp, 0)->num_slots == 256 &&
	      NETMAP_RXRING(d->nifp, 0)->num_slots == 128,
	      "conf: slots of the port");
	nmport_close(d);
}

/* One region, one mapping: the two ends of a pipe. */
static void
test_sharing(void)
{
	struct nmport_d *a = open_port("netmap:lnm{1");
	struct nmport_d *b = open_port("netmap:lnm}1");
	struct nmport_d *other = open_port(on_switch("own"));
	struct nmport_d *pipe;
	char spec[64];

	check(a->mem == b->mem && a->mem->refcount == 2 && a->nifp != b->nifp,
	      "the ends of a pipe share a mapping");
	check(other->mem != a->mem && other->mem->refcount == 1,
	      "a port of a switch has its own");
	snprintf(spec, sizeof(spec), "netmap:lnm2{x@%u", a->reg.nr_mem_id);
	pipe = open_port(spec);
	check(pipe->mem == a->mem && a->mem->refcount == 3,
	      "a port in the region of another, by its number");
	nmport_close(pipe);
	pipe = open_port("netmap:lnm2{x@share=netmap:lnm{1");
	check(pipe->mem == a->mem && a->mem->refcount == 3, "by its name");
	/* The first of the list, the middle, the last. */
	nmport_close(a);
	check(b->mem->refcount == 2 && nm_ring_space(
		      NETMAP_TXRING(b->nifp, 0)) > 0,
	      "the mapping stays with the others");
	nmport_close(pipe);
	nmport_close(b);
	check(context.ctx.mem_descs == other->mem && !other->mem->prev &&
	      !other->mem->next, "and goes with the last");
	nmport_close(other);
	check(!context.ctx.mem_descs, "the list is empty");
	check_number(context.live, 0, "nothing is left");
}

static void
test_clone(void)
{
	struct nmport_d *d = open_port(on_switch("cl@conf:slots=128"));
	struct nmport_d *clone = nmport_clone(d);
	static char memory[4096];
	char text[128];

	require(clone != NULL, "nmport_clone");
	check_closed(clone);
	check(strcmp(clone->hdr.nr_name, d->hdr.nr_name) == 0 &&
	      clone->hdr.nr_version == d->hdr.nr_version &&
	      clone->hdr.nr_reqtype == d->hdr.nr_reqtype &&
	      clone->hdr.nr_body == (uintptr_t)&clone->reg &&
	      clone->ctx == d->ctx, "a clone: the header");
	check(memcmp(&clone->reg, &d->reg, sizeof(d->reg)) == 0,
	      "a clone: the registration");
	check_call(nmport_open_desc(clone), 0, "a clone can be opened");
	check(clone->mem == d->mem && clone->reg.nr_tx_slots == 128,
	      "a clone: same region, same counts");
	nmport_close(clone);

	/* Options are not copied. */
	check_call(nmport_offset(d, 0, 0, 0, 0), 0, "nmport_offset");
	clone = nmport_clone(d);
	check(clone && clone->hdr.nr_options == 0 && !clone->clist,
	      "a clone: no options");
	nmport_undo_prepare(clone);
	check_call(nmport_extmem(d, memory, sizeof(memory)), EINVAL,
		   "nmport_extmem of a registered port");
	snprintf(text, sizeof(text),
		 "%s: extmem: the port is registered already",
		 on_switch("cl"));
	context_said(text);
	nmport_close(d);
	check_number(context.live, 0, "nothing is left");
}

static int
receive(struct nmport_d *d, uint32_t sequence, uint32_t length)
{
	struct netmap_ring *ring = NETMAP_RXRING(d->nifp, d->first_rx_ring);
	struct pollfd set;
	uint32_t got = 0, i;
	char packet[8192];

	set.fd = d->fd;
	set.events = POLLIN;
	for (;;) {
		struct netmap_slot *slot;

		if (nm_ring_empty(ring) && poll(&set, 1, PATIENCE_MS) != 1)
			return 0;
		i = ring->head;
		slot = &ring->slot[i];
		memcpy(packet + got, NETMAP_BUF(ring, slot->buf_idx),
		       slot->len);
		got += slot->len;
		ring->head = ring->cur = nm_ring_next(ring, i);
		if (!(slot->flags & NS_MOREFRAG))
			break;
	}
	return got == length && frame_is_intact(packet, got) &&
	       frame_sequence(packet) == sequence;
}

static void
send_frame(struct nmport_d *d, uint32_t sequence, uint32_t length)
{
	char frame[8192];

	frame_fill(frame, length, broadcast, mac_of(1), sequence);
	check_number(nmport_inject(d, frame, length), length,
		     "nmport_inject");
	require(ioctl(d->fd, NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
}

static void
test_packets(const char *from, const char *to)
{
	struct nmport_d *a = open_port(from), *b = open_port(to);
	uint32_t i;

	for (i = 0; i < 3; i++) {
		send_frame(a, i, FRAME_SIZE + i);
		check(receive(b, i, FRAME_SIZE + i), "%s to %s", from, to);
	}
	nmport_close(a);
	nmport_close(b);
}

/* Room in the ring, to the last slot. */
static void
test_inject(void)
{
	struct nmport_d *a = open_port("netmap:lnm3{1@conf:slots=64");
	struct nmport_d *b = open_port("netmap:lnm3}1");
	struct netmap_ring *ring = NETMAP_TXRING(a->nifp, 0);
	uint32_t all = nm_ring_space(ring), chunk = ring->nr_buf_size, head;
	char packet[8192];

	frame_fill(packet, sizeof(packet), broadcast, mac_of(1), 7);
	send_frame(a, 9, 2 * chunk + 1);
	check(receive(b, 9, 2 * chunk + 1), "a packet of three buffers");
	require(ioctl(b->fd, NIOCRXSYNC, NULL) == 0, "NIOCRXSYNC");
	require(ioctl(a->fd, NIOCTXSYNC, NULL) == 0, "NIOCTXSYNC");
	check_number(nm_ring_space(ring), all, "all slots are back");

	head = ring->head;
	check_number(nmport_inject(a, packet, chunk), chunk,
		     "nmport_inject: a whole buffer");
	check(ring->head == nm_ring_next(ring, head) && ring->cur ==
	      ring->head && ring->slot[head].len == chunk &&
	      ring->slot[head].flags == 0, "takes one slot");
	for (all--; all > 2; all--)
		require(nmport_inject(a, packet, FRAME_SIZE) == FRAME_SIZE,
			"nmport_inject");
	head = ring->head;
	check_number(nmport_inject(a, packet, 2 * chunk + 1), 0,
		     "nmport_inject: three buffers into two slots");
	check(ring->head == head && ring->cur == head, "leaves the ring");
	check_number(nmport_inject(a, packet, 2 * chunk), 2 * chunk,
		     "nmport_inject: two buffers into two slots");
	check(ring->slot[head].flags == NS_MOREFRAG &&
	      ring->slot[nm_ring_next(ring, head)].flags == 0,
	      "NS_MOREFRAG on all but the last");
	check_number(nmport_inject(a, packet, 1), 0,
		     "nmport_inject into a full ring");
	check_number(nmport_inject(a, packet, 0), 0,
		     "nmport_inject of nothing into a full ring");

	/* A ring that its peer has spoilt is no way out of the region. */
	ring->head = ring->cur = 0;
	*(uint32_t *)(uintptr_t)&ring->tail = 1;
	ring->slot[0].buf_idx = 0xfffffff0;
	check_number(nmport_inject(a, packet, 1), 0,
		     "nmport_inject: a buffer outside of the region");
	ring->cur = 0xffffffff;
	check_number(nmport_inject(a, packet, 1), 0,
		     "nmport_inject: a slot outside of the ring");
	nmport_close(a);
	nmport_close(b);
}

static void
fails(const char *spec, int error, const char *message)
{
	int before = context.messages;

	errno = 0;
	check(nmport_open(spec) == NULL && errno == error, "\"%s\": %s", spec,
	      strerror(error));
	context_said(message);
	check_number(context.messages - before, 1, "one message");
	check(context.live == 0 && !context.ctx.mem_descs,
	      "nothing is left of it");
}

static void
test_failures(void)
{
	struct nmport_d *d, *taken;
	char text[128];

	fails("netmap:nosuchif0", ENXIO, "nosuchif0: cannot register: "
	      "No such device or address");
	fails("netmap:{x", EINVAL, "{x: cannot register: Invalid argument");
	fails("netmap:lnm4{-0", EINVAL,
	      "lnm4{: cannot register: Invalid argument");
	fails("netmap:eth0/", EINVAL,
	      "netmap:eth0/: the flags after `/` are x, z, t, r, R and T");

	taken = open_port(on_switch("taken/x"));
	d = nmport_prepare(on_switch("taken"));
	check_call(nmport_open_desc(d), EBUSY, "a port that is taken");
	snprintf(text, sizeof(text), "%s: cannot register: "
		 "Device or resource busy", on_switch("taken"));
	context_said(text);
	check_closed(d);
	nmport_close(taken);
	check_call(nmport_open_desc(d), 0, "until it is given back");
	nmport_close(d);
}

/* An option that the port refuses is named. */
static void
test_refused_option(void)
{
	struct nmreq_option unknown;
	struct nmport_d *d = nmport_prepare(on_switch("opt"));
	char text[128];

	require(d != NULL, "nmport_prepare");
	memset(&unknown, 0, sizeof(unknown));
	unknown.nro_reqtype = NETMAP_REQ_OPT_MAX;
	nmreq_push_option(&d->hdr, &unknown);
	check_call(nmport_register(d), EOPNOTSUPP, "an unknown option");
	check_number(unknown.nro_status, EOPNOTSUPP, "its status");
	snprintf(text, sizeof(text), "%s: option unknown: "
		 "Operation not supported", on_switch("opt"));
	context_said(text);
	nmreq_remove_option(&d->hdr, &unknown);
	check_call(nmport_register(d), 0, "and without it");
	nmport_close(d);
}

/* Memory runs out at every place where it can. */
static void
test_no_memory(void)
{
	static char memory[4096];
	struct nmport_d *d = NULL;
	int enough;

	for (enough = 0; !d && enough < 20; enough++) {
		context.left = enough;
		errno = 0;
		d = nmport_open(on_switch("mem@conf:slots=64"));
		context.left = -1;
		if (!d)
			check(errno == ENOMEM && context.live == 0 &&
			      !context.ctx.mem_descs,
			      "memory for %d allocations: ENOMEM", enough);
	}
	check(d != NULL && enough == 4, "a port, a list, a mapping");
	nmport_close(d);

	d = nmport_prepare(on_switch("mem"));
	for (enough = 0; enough < 2; enough++) {
		context.left = enough;
		check_call(nmport_extmem(d, memory, sizeof(memory)), ENOMEM,
			   "nmport_extmem without memory");
		context.left = enough;
		check_call(nmport_offset(d, 0, 0, 0, 0), ENOMEM,
			   "nmport_offset without memory");
		check(!d->extmem && d->hdr.nr_options == 0 && !d->clist &&
		      context.live == 1, "leaves nothing");
	}
	context.left = 0;
	check(nmport_clone(d) == NULL && errno == ENOMEM,
	      "nmport_clone without memory");
	context.left = -1;
	nmport_undo_prepare(d);
	check_number(context.live, 0, "nothing is left");
}

#define THREADS	4

static void *
open_and_close(void *argument)
{
	char spec[64];
	int i;

	for (i = 0; i < 25; i++) {
		struct nmport_d *d;

		snprintf(spec, sizeof(spec), "netmap:lnm5%c%d",
			 *(int *)argument % 2 ? '{' : '}', i);
		d = nmport_open(spec);
		if (!d)
			return argument;
		nmport_close(d);
	}
	return NULL;
}

/* Threads that share the mapping of one region. */
static void
test_threads(struct nmctx *ctx)
{
	pthread_t thread[THREADS];
	int number[THREADS], i;
	void *failed;

	nmctx_set_default(ctx);
	for (i = 0; i < THREADS; i++) {
		number[i] = i;
		require(pthread_create(&thread[i], NULL, open_and_close,
				       &number[i]) == 0, "pthread_create");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		check(!failed, "thread %d", i);
	}
	check(!ctx->mem_descs, "no mapping is left");
}

int
main(int argc, char **argv)
{
	struct nmctx *first;

	if (argc > 1)
		vale = argv[1];
	test_first_context();
	first = context_use();
	test_threadsafe();
	test_steps();
	check_rings("all", 0, 0);
	check_rings("rx/R", -1, 0);
	check_rings("tx/T", 0, -1);
	check_rings("one-0", 0, 0);
	test_conf();
	test_sharing();
	test_clone();
	test_packets(on_switch("a"), on_switch("b"));
	test_packets("netmap:lnm6{p", "netmap:lnm6}p");
	test_packets("netmap:lnm6}q", "netmap:lnm6{q");
	test_inject();
	test_failures();
	test_refused_option();
	test_no_memory();
	check(context.misused == 0 && context.locks > 0 && !context.locked,
	      "the context is used as it should be");
	test_threads(first);
	return check_result();
}
