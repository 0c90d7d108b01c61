/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CSB mode and the sync loop (S-CSB-*, S-KLOOP-*), with the options that they
 * need (S-CTRL-9 to S-CTRL-11).
 *
 * usage: csb_kloop [SWITCH [14|15]]
 *
 * A guest is a descriptor in CSB mode: a thread runs its loop, and the main
 * thread drives its rings through the two arrays. The other side of its
 * traffic is an ordinary port.
 */
#include "port.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#define FRAMES		4000u
#define WINDOW		200u	/* frames on their way at most */
#define RINGS		2	/* of a guest: one each way */

enum { TX, RX };

static const char *vale = "valek";

/* ---- requests ---- */

static int
control_with(int fd, uint16_t type, const char *name, void *body,
	     void *option)
{
	struct nmreq_header header = header_of(type, name, body);

	header.nr_options = (uintptr_t)option;
	return ioctl(fd, NIOCCTRL, &header);
}

static struct nmreq_option
option_of(uint32_t type, void *next)
{
	struct nmreq_option option;

	memset(&option, 0, sizeof(option));
	option.nro_reqtype = type;
	option.nro_next = (uintptr_t)next;
	option.nro_status = 12345;
	return option;
}

static struct nmreq_opt_csb
csb_of(void *atok, void *ktoa)
{
	struct nmreq_opt_csb csb;

	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	csb.csb_atok = (uintptr_t)atok;
	csb.csb_ktoa = (uintptr_t)ktoa;
	return csb;
}

static int
csb_enable(int fd, void *atok, void *ktoa, uint32_t *status)
{
	struct nmreq_opt_csb csb = csb_of(atok, ktoa);
	int result = control_with(fd, NETMAP_REQ_CSB_ENABLE, "", NULL, &csb);

	*status = csb.nro_opt.nro_status;
	return result;
}

static int
kloop_start(int fd, uint32_t sleep_us, void *options)
{
	struct nmreq_sync_kloop_start start;

	memset(&start, 0, sizeof(start));
	start.sleep_us = sleep_us;
	return control_with(fd, NETMAP_REQ_SYNC_KLOOP_START, "", &start,
			    options);
}

static int
kloop_stop(int fd)
{
	return control(fd, NETMAP_REQ_SYNC_KLOOP_STOP, "", NULL);
}

/* ---- guests ---- */

struct kicks {
	struct nmreq_option nro_opt;
	struct {
		int32_t io, irq;
	} ring[RINGS];
};

struct guest {
	struct port port;
	struct nm_csb_atok *atok;
	struct nm_csb_ktoa *ktoa;
	struct nmreq_opt_csb csb;
	struct nmreq_opt_sync_kloop_mode mode;
	struct kicks kicks;
	uint32_t sleep_us;
	int result, error;
	pthread_t loop;
};

static void *
aligned(size_t size)
{
	void *memory = aligned_alloc(64, size);

	require(memory != NULL, "aligned_alloc");
	memset(memory, 0xa5, size);
	return memory;
}

static struct guest *
guest_open(const char *name)
{
	struct nmreq_register reg = register_all();
	struct guest *guest = (struct guest *)aligned(sizeof(struct guest) +
						      64 - sizeof(struct guest) % 64);

	memset(guest, 0, sizeof(*guest));
	guest->atok = (struct nm_csb_atok *)aligned(RINGS * 64);
	guest->ktoa = (struct nm_csb_ktoa *)aligned(RINGS * 64);
	guest->csb = csb_of(guest->atok, guest->ktoa);
	reg.nr_flags = NR_EXCLUSIVE;
	guest->port.reg = reg;
	guest->port.fd = device_open();
	check_call(control_with(guest->port.fd, NETMAP_REQ_REGISTER, name,
				&guest->port.reg, &guest->csb), 0,
		   "S-CSB-1 REGISTER with the CSB option");
	check_number(guest->csb.nro_opt.nro_status, 0, "S-CSB-1 its status");
	port_map(&guest->port);
	return guest;
}

static void
guest_close(struct guest *guest)
{
	port_close(&guest->port);
	free(guest->atok);
	free(guest->ktoa);
	free(guest);
}

static void *
loop_thread(void *argument)
{
	struct guest *guest = (struct guest *)argument;

	guest->result = kloop_start(guest->port.fd, guest->sleep_us,
				    guest->mode.nro_opt.nro_reqtype ?
				    (void *)&guest->mode :
				    guest->kicks.nro_opt.nro_reqtype ?
				    (void *)&guest->kicks : NULL);
	guest->error = errno;
	return NULL;
}

static void
guest_start(struct guest *guest)
{
	require(pthread_create(&guest->loop, NULL, loop_thread, guest) == 0,
		"pthread_create");
}

/* STOP, and what START returned. */
static void
guest_stop(struct guest *guest)
{
	check_call(kloop_stop(guest->port.fd), 0, "S-KLOOP-2 STOP");
	require(pthread_join(guest->loop, NULL) == 0, "pthread_join");
	errno = guest->error;
	check_call(guest->result, 0, "S-KLOOP-1 START returns after STOP");
}

/* A loop is seen to run when CSB_ENABLE is refused. */
static void
wait_for_loop(struct guest *guest)
{
	uint32_t status;

	while (csb_enable(guest->port.fd, guest->atok, guest->ktoa,
			  &status) == 0)
		sched_yield();
	check_number(status, EBUSY,
		     "S-CSB-2 CSB_ENABLE while the loop runs");
	check_call(kloop_start(guest->port.fd, 0, NULL), EBUSY,
		   "S-KLOOP-1 a second loop");
}

static void
with_eventfds(struct guest *guest, int io)
{
	int ring;

	guest->kicks.nro_opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS,
					 NULL);
	guest->kicks.nro_opt.nro_size = sizeof(struct kicks);
	for (ring = 0; ring < RINGS; ring++) {
		guest->kicks.ring[ring].io = io ? eventfd(0, 0) : -1;
		guest->kicks.ring[ring].irq = eventfd(0, EFD_NONBLOCK);
	}
}

static void
without_eventfds(struct guest *guest)
{
	int ring;

	for (ring = 0; ring < RINGS; ring++) {
		if (guest->kicks.ring[ring].io >= 0)
			close(guest->kicks.ring[ring].io);
		close(guest->kicks.ring[ring].irq);
	}
	memset(&guest->kicks, 0, sizeof(guest->kicks));
}

static struct netmap_ring *
guest_ring(struct guest *guest, int ring)
{
	return ring == TX ? port_tx(&guest->port) : port_rx(&guest->port);
}

/* Tells the loop of a new head, and kicks it if it asks for that. */
static void
guest_publish(struct guest *guest, int ring, uint32_t head)
{
	const uint64_t one = 1;

	nm_sync_kloop_appl_write(&guest->atok[ring], head, head);
	atomic_thread_fence(memory_order_seq_cst);
	if (guest->kicks.ring[ring].io > 0 &&
	    *(volatile uint32_t *)&guest->ktoa[ring].kern_need_kick)
		require(write(guest->kicks.ring[ring].io, &one, 8) == 8,
			"write to the ioeventfd");
}

/* Whether the guest has slots of the ring. */
static int
guest_has(struct guest *guest, int ring)
{
	uint32_t hwtail, hwcur;

	nm_sync_kloop_appl_read(&guest->ktoa[ring], &hwtail, &hwcur);
	return guest->atok[ring].head != hwtail;
}

/* Waits for slots, by the irqfd where there is one. */
static int
guest_wait(struct guest *guest, int ring)
{
	struct pollfd irq = { guest->kicks.ring[ring].irq, POLLIN, 0 };
	uint64_t count;

	while (!guest_has(guest, ring)) {
		if (!guest->kicks.nro_opt.nro_reqtype) {
			sched_yield();
			continue;
		}
		*(volatile uint32_t *)&guest->atok[ring].appl_need_kick = 1;
		atomic_thread_fence(memory_order_seq_cst);
		if (!guest_has(guest, ring) &&
		    poll(&irq, 1, PATIENCE_MS) <= 0)
			return 0;
		*(volatile uint32_t *)&guest->atok[ring].appl_need_kick = 0;
		if (read(irq.fd, &count, 8) < 0)
			require(errno == EAGAIN, "read of the irqfd");
	}
	return 1;
}

static void
guest_send(struct guest *guest, uint32_t sequence)
{
	struct netmap_ring *ring = guest_ring(guest, TX);
	uint32_t head = guest->atok[TX].head;

	require(guest_wait(guest, TX), "room in the guest's tx ring");
	ring->slot[head].len = FRAME_SIZE;
	ring->slot[head].flags = 0;
	frame_fill(NETMAP_BUF(ring, ring->slot[head].buf_idx), FRAME_SIZE,
		   broadcast, mac_of(7), sequence);
	guest_publish(guest, TX, nm_ring_next(ring, head));
}

static long long
guest_take(struct guest *guest)
{
	struct netmap_ring *ring = guest_ring(guest, RX);
	uint32_t head = guest->atok[RX].head;
	long long sequence = -1;
	const char *frame;

	if (!guest_wait(guest, RX))
		return -1;
	frame = NETMAP_BUF(ring, ring->slot[head].buf_idx);
	if (frame_is_intact(frame, ring->slot[head].len))
		sequence = frame_sequence(frame);
	guest_publish(guest, RX, nm_ring_next(ring, head));
	return sequence;
}

/* ---- CSB mode ---- */

static void
test_enable(void)
{
	const char *name = name_of(vale, "csb");
	struct nmreq_register reg = register_all();
	unsigned char *memory = (unsigned char *)aligned(4 * 64), *forbidden;
	struct nm_csb_atok *atok = (struct nm_csb_atok *)memory;
	struct nm_csb_ktoa *ktoa = (struct nm_csb_ktoa *)(memory + 128);
	struct nmreq_opt_csb csb;
	struct nmreq_option unknown;
	struct pollfd both;
	uint32_t status;
	int fd = device_open(), ring;

	forbidden = (unsigned char *)mmap(NULL, 8192, PROT_READ,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(forbidden != MAP_FAILED, "mmap");

	check_call(csb_enable(fd, atok, ktoa, &status), 0,
		   "S-CSB-6 CSB_ENABLE, unbound");
	check_number(status, 0, "S-CSB-6 its status");
	check_number(ktoa[0].hwcur, 0xa5a5a5a5, "S-CSB-6 nothing is written");
	check_call(control(fd, NETMAP_REQ_CSB_ENABLE, "", NULL), EINVAL,
		   "S-CSB-5 without the option");
	check_call(kloop_start(fd, 0, NULL), ENXIO, "S-KLOOP-1 unbound");
	check_call(kloop_start(fd, 1000001, NULL), EINVAL,
		   "S-KLOOP-1 sleep_us too long");
	check_call(kloop_stop(fd), ENXIO, "S-KLOOP-2 unbound");

	reg.nr_mode = 99;
	csb = csb_of(atok, ktoa);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EINVAL, "S-CTRL-9 REGISTER fails before the option");
	check_number(csb.nro_opt.nro_status, EOPNOTSUPP, "S-CTRL-9 status");
	reg = register_all();
	csb = csb_of(atok, ktoa);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EINVAL, "S-CSB-2 without NR_EXCLUSIVE");
	check_number(csb.nro_opt.nro_status, EINVAL, "S-CSB-2 status");
	check_number((long long)csb.csb_atok, (long long)(uintptr_t)atok,
		     "S-CTRL-4 the body of a failed option");
	reg.nr_flags = NR_EXCLUSIVE;
	csb = csb_of(memory + 32, ktoa);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EINVAL, "S-CSB-2 atok not aligned");
	csb = csb_of(atok, memory + 136);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EINVAL, "S-CSB-2 ktoa not aligned");
	csb = csb_of(NULL, ktoa);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EFAULT, "S-CSB-2 atok not there");
	check_number(csb.nro_opt.nro_status, EFAULT, "S-CSB-2 status");
	csb = csb_of(atok, forbidden);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EFAULT, "S-CSB-2 ktoa read-only");
	unknown = option_of(77, NULL);
	csb = csb_of(atok, ktoa);
	csb.nro_opt.nro_next = (uintptr_t)&unknown;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb),
		   EOPNOTSUPP, "S-CTRL-10 CSB with an unknown option");
	check_number(csb.nro_opt.nro_status, 0, "S-CTRL-10 CSB's status");
	check_number(unknown.nro_status, EOPNOTSUPP, "S-CTRL-10 the other's");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
		   "S-CSB-2 everything is undone");
	check(!port_exists(name), "S-CSB-2 no port is left");

	memset(memory, 0xa5, 256);
	csb = csb_of(atok, ktoa);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb), 0,
		   "S-CSB-1 REGISTER");
	check_number(csb.nro_opt.nro_status, 0, "S-CSB-1 status");
	for (ring = TX; ring <= RX; ring++) {
		check(atok[ring].head == 0 && atok[ring].cur == 0 &&
		      atok[ring].appl_need_kick == 1 &&
		      atok[ring].sync_flags == 1, "S-CSB-3 atok");
		check(ktoa[ring].hwcur == 0 &&
		      ktoa[ring].hwtail == (ring == TX ? 1023 : 0) &&
		      ktoa[ring].kern_need_kick == 1 &&
		      ktoa[ring].pad[0] == 0 && ktoa[ring].pad[12] == 0,
		      "S-CSB-3 ktoa");
	}
	check_call(ioctl(fd, NIOCTXSYNC, NULL), EBUSY, "S-CSB-4 NIOCTXSYNC");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), EBUSY, "S-CSB-4 NIOCRXSYNC");
	both.fd = fd;
	both.events = POLLIN | POLLOUT;
	check(poll(&both, 1, PATIENCE_MS) == 1 && both.revents == POLLERR,
	      "S-CSB-4 poll: POLLERR");
	check_call(csb_enable(fd, memory + 4, ktoa, &status), EINVAL,
		   "S-CSB-2 CSB_ENABLE not aligned");
	check_number(status, EINVAL, "S-CSB-5 status");
	check_call(csb_enable(fd, atok, ktoa, &status), 0,
		   "S-CSB-5 CSB_ENABLE once more");
	close(fd);

	fd = device_open();
	reg = register_all();
	reg.nr_flags = NR_EXCLUSIVE;
	require(control(fd, NETMAP_REQ_REGISTER, name, &reg) == 0, "REGISTER");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0,
		   "S-CSB-4 not in CSB mode any more");
	check_call(kloop_start(fd, 0, NULL), EINVAL,
		   "S-KLOOP-1 not in CSB mode");
	check_call(csb_enable(fd, atok, ktoa, &status), 0,
		   "S-CSB-1 CSB_ENABLE on a bound descriptor");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), EBUSY, "S-CSB-4 and is");
	close(fd);

	fd = device_open();
	reg = register_all();
	reg.nr_flags = NR_TX_RINGS_ONLY | NR_RX_RINGS_ONLY;
	csb = csb_of(NULL, NULL);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &csb), 0,
		   "S-CSB-6 REGISTER without rings");
	check_call(kloop_start(fd, 0, NULL), EINVAL,
		   "S-CSB-6 the option has done nothing");
	close(fd);
	munmap(forbidden, 8192);
	free(memory);
}

/* S-KLOOP-2..5: what START makes of its options. */
static void
test_loop_options(struct guest *guest)
{
	struct nmreq_opt_sync_kloop_mode mode;
	struct nmreq_opt_csb csb = csb_of(guest->atok, guest->ktoa);
	struct kicks kicks;
	int fd = guest->port.fd;

	check_call(kloop_stop(fd), 0, "S-KLOOP-2 STOP without a loop");
	check_call(kloop_start(fd, 0, &csb), 0, "S-KLOOP-2 is sticky");
	check_number(csb.nro_opt.nro_status, EOPNOTSUPP,
		     "S-CTRL-10 CSB on START");

	with_eventfds(guest, 1);
	kicks = guest->kicks;
	kloop_stop(fd);
	check_call(kloop_start(fd, 0, &kicks), 0, "S-KLOOP-4 EVENTFDS");
	check_number(kicks.nro_opt.nro_status, 0, "S-KLOOP-5 its status");
	kicks.nro_opt.nro_size -= 8;
	check_call(kloop_start(fd, 0, &kicks), EINVAL, "S-KLOOP-4 too short");
	check_number(kicks.nro_opt.nro_status, EINVAL, "S-KLOOP-4 status");
	kicks = guest->kicks;
	kicks.nro_opt.nro_size = 24;
	check_call(kloop_start(fd, 0, &kicks), EINVAL, "S-KLOOP-4 empty");
	kicks = guest->kicks;
	kicks.ring[RX].io = 999;
	check_call(kloop_start(fd, 0, &kicks), EBADF,
		   "S-KLOOP-4 an ioeventfd that is not open");
	kicks = guest->kicks;
	kicks.ring[TX].irq = 999;
	check_call(kloop_start(fd, 0, &kicks), EBADF,
		   "S-KLOOP-4 an irqfd that is not open");
	kicks.ring[TX].irq = STDOUT_FILENO;
	check_call(kloop_start(fd, 0, &kicks), EINVAL,
		   "S-KLOOP-4 an irqfd that is no eventfd");

	memset(&mode, 0, sizeof(mode));
	mode.nro_opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_MODE, NULL);
	mode.mode = 4;
	check_call(kloop_start(fd, 0, &mode), EINVAL, "S-KLOOP-5 bit 4");
	check_number(mode.nro_opt.nro_status, EINVAL, "S-KLOOP-5 status");
	mode.mode = NM_OPT_SYNC_KLOOP_DIRECT_TX;
	check_call(kloop_start(fd, 0, &mode), EINVAL,
		   "S-KLOOP-5 direct without eventfds");
	kicks = guest->kicks;
	kicks.ring[RX].io = -1;
	mode.nro_opt.nro_next = (uintptr_t)&kicks;
	check_call(kloop_start(fd, 0, &mode), EINVAL,
		   "S-KLOOP-5 direct with an ioeventfd missing");
	check_number(kicks.nro_opt.nro_status, EINVAL, "S-KLOOP-5 status");
	kicks = guest->kicks;
	mode.mode |= NM_OPT_SYNC_KLOOP_DIRECT_RX;
	kloop_stop(fd);
	check_call(kloop_start(fd, 0, &mode), 0, "S-KLOOP-5 direct");
	check(mode.nro_opt.nro_status == 0 && kicks.nro_opt.nro_status == 0,
	      "S-KLOOP-5 both have status 0");
	without_eventfds(guest);
}

/* ---- traffic ---- */

/* Frames both ways between a guest and an ordinary port. */
static void
test_traffic(struct guest *guest, const struct port *other, const char *what)
{
	uint32_t sent = 0, got = 0, back = 0;
	int good = 1;

	guest_start(guest);
	while (got < FRAMES && good) {
		while (sent < FRAMES && sent - got < WINDOW)
			guest_send(guest, sent++);
		good = port_take(other) == got++;
	}
	check(good, "S-KLOOP-6 %s: all that the guest sends", what);
	port_rxsync(other);
	for (got = sent = 0; got < FRAMES && good; got++) {
		for (back = sent; sent < FRAMES && sent - got < WINDOW; sent++)
			port_put(other, broadcast, mac_of(1), sent);
		if (sent != back)
			port_txsync(other);
		good = guest_take(guest) == got;
	}
	check(good, "S-KLOOP-6 %s: all that the guest receives", what);
	guest_stop(guest);
}

static void
test_all_ways(struct guest *guest, const struct port *other, const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, without eventfds", what);
	guest->sleep_us = 0;
	test_traffic(guest, other, text);
	check(guest->ktoa[TX].kern_need_kick == 0 &&
	      guest->ktoa[RX].kern_need_kick == 0,
	      "S-KLOOP-3 kern_need_kick stays 0");
	snprintf(text, sizeof(text), "%s, with pauses", what);
	guest->sleep_us = 20;
	test_traffic(guest, other, text);
	snprintf(text, sizeof(text), "%s, irqfds alone", what);
	with_eventfds(guest, 0);
	test_traffic(guest, other, text);
	check_number(guest->kicks.nro_opt.nro_status, 0,
		     "S-KLOOP-5 status when the loop has ended");
	without_eventfds(guest);
	snprintf(text, sizeof(text), "%s, event driven", what);
	with_eventfds(guest, 1);
	test_traffic(guest, other, text);
	guest->mode.nro_opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_MODE,
					&guest->kicks);
	guest->mode.mode = NM_OPT_SYNC_KLOOP_DIRECT_TX |
		NM_OPT_SYNC_KLOOP_DIRECT_RX;
	snprintf(text, sizeof(text), "%s, direct", what);
	test_traffic(guest, other, text);
	check_number(guest->mode.nro_opt.nro_status, 0,
		     "S-KLOOP-5 status when the loop has ended");
	memset(&guest->mode, 0, sizeof(guest->mode));
	without_eventfds(guest);
}

/* A loop that has fallen asleep is woken by each of its sources. */
static void
test_asleep(struct guest *guest, const struct port *other)
{
	uint64_t one = 1;

	with_eventfds(guest, 1);
	guest_start(guest);
	while (!*(volatile uint32_t *)&guest->ktoa[TX].kern_need_kick)
		sched_yield();
	check(1, "S-KLOOP-6 with no work, kern_need_kick is set");
	guest_send(guest, 1);
	check_number(port_take(other), 1, "S-KLOOP-6 woken by the ioeventfd");
	port_send(other, broadcast, mac_of(1), 2);
	check_number(guest_take(guest), 2, "S-KLOOP-6 woken by the ring");
	require(write(guest->kicks.ring[TX].io, &one, 8) == 8, "write");
	guest_send(guest, 3);
	check_number(port_take(other), 3, "S-KLOOP-6 after an idle kick");
	guest_stop(guest);
	without_eventfds(guest);
	port_rxsync(other);
}

/* S-KLOOP-6, S-SYNC-8 */
static void
test_bad_cursors(struct guest *guest, const struct port *other)
{
	uint32_t head, i;

	guest->sleep_us = 0;
	guest_start(guest);
	wait_for_loop(guest);
	head = guest->atok[TX].head;
	guest_publish(guest, TX, 1 << 20);
	/* Two rounds after the first of these, the loop has seen it. */
	for (i = 0; i < 2; i++) {
		port_send(other, broadcast, mac_of(1), i);
		check_number(guest_take(guest), i,
			     "S-KLOOP-6 the rings that are right go on");
	}
	port_rxsync(other);
	check_number(nm_ring_space(port_rx(other)), 0,
		     "S-KLOOP-6 an invalid head sends nothing");
	guest_publish(guest, TX, head);
	guest_send(guest, 77);
	check_number(port_take(other), 77, "S-KLOOP-6 and the ring lives on");
	guest_stop(guest);
	port_rxsync(other);
}

static _Atomic int signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

static void
test_signals(struct guest *guest)
{
	struct sigaction action;
	int i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	sigaction(SIGUSR1, &action, NULL);
	with_eventfds(guest, 1);
	guest_start(guest);
	wait_for_loop(guest);
	for (i = 1; i <= 10; i++) {
		pthread_kill(guest->loop, SIGUSR1);
		while (signals < i)
			sched_yield();
	}
	check_call(kloop_start(guest->port.fd, 0, NULL), EBUSY,
		   "S-KLOOP-1 signals do not end the loop");
	guest_stop(guest);
	without_eventfds(guest);
}

/* The marks are the descriptor's: other processes that share it see them. */
static void
test_processes(struct guest *guest)
{
	struct pollfd polled = { guest->port.fd, POLLIN, 0 };
	int status, ready[2];
	pid_t child;
	char byte;

	guest->sleep_us = 100000;
	guest_start(guest);
	wait_for_loop(guest);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		if (poll(&polled, 1, 0) != 1 || polled.revents != POLLERR)
			_exit(1);
		if (kloop_start(guest->port.fd, 0, NULL) != -1 ||
		    errno != EBUSY)
			_exit(2);
		_exit(kloop_stop(guest->port.fd) == 0 ? 0 : 3);
	}
	require(waitpid(child, &status, 0) == child, "waitpid");
	check_number(status, 0, "S-KLOOP-2 STOP in another process");
	require(pthread_join(guest->loop, NULL) == 0, "pthread_join");
	check_number(guest->result, 0, "S-KLOOP-2 ends the loop");

	require(pipe(ready) == 0, "pipe");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		require(write(ready[1], "r", 1) == 1, "write");
		kloop_start(guest->port.fd, 1000000, NULL);
		_exit(1);
	}
	require(read(ready[0], &byte, 1) == 1, "read");
	wait_for_loop(guest);
	kill(child, SIGKILL);
	require(waitpid(child, &status, 0) == child, "waitpid");
	guest_start(guest);
	wait_for_loop(guest);
	check(1, "S-KLOOP-1 a loop that was killed is not running");
	guest_stop(guest);
	close(ready[0]);
	close(ready[1]);
}

/* S-PIPE-8: who opens the end after the guest goes on where it was. */
static void
test_successor(struct guest *guest, const char *name, const struct port *other)
{
	struct port port;

	guest->sleep_us = 0;
	guest_start(guest);
	guest_send(guest, 5);
	while (guest->ktoa[TX].hwcur != guest->atok[TX].head &&
	       nm_ring_space(port_rx(other)) == 0)
		port_rxsync(other);
	guest_stop(guest);
	guest_close(guest);
	port = port_open(name);
	port_send(&port, broadcast, mac_of(1), 6);
	check_number(port_take(other), 5, "S-PIPE-8 the guest's last frame");
	check_number(port_take(other), 6, "S-PIPE-8 its successor's first");
	port_send(other, broadcast, mac_of(1), 7);
	check_number(port_take(&port), 7, "S-PIPE-8 and the other way");
	port_close(&port);
}

int
main(int argc, char **argv)
{
	struct guest *guest;
	struct port other;

	if (argc > 1)
		vale = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	test_enable();

	printf("# VALE\n");
	other = port_open(name_of(vale, "other"));
	guest = guest_open(name_of(vale, "guest"));
	test_loop_options(guest);
	test_all_ways(guest, &other, "VALE");
	guest_close(guest);
	port_close(&other);

	printf("# pipe\n");
	other = port_open(name_of(vale, "p{k"));
	guest = guest_open(name_of(vale, "p}k"));
	test_all_ways(guest, &other, "pipe");
	test_asleep(guest, &other);
	test_bad_cursors(guest, &other);
	test_signals(guest);
	test_processes(guest);
	test_successor(guest, name_of(vale, "p}k"), &other);
	port_close(&other);
	return check_result();
}
