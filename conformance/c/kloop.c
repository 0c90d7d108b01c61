/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop that serves rings in CSB mode (S-KLOOP). */
#include "csb.h"

#include <signal.h>

static struct csb csb;
static struct kloop loop;

/* The two options; eventfds is laid out as the ABI's, for so many rings. */
struct kloop_options {
	struct nmreq_opt_sync_kloop_mode mode;
	struct {
		struct nmreq_option opt;
		struct {
			int32_t io, irq;
		} fd[CSB_RINGS];
	} eventfds;
};

/* Fresh eventfds for each ring. */
static void
options_new(struct kloop_options *options, int rings)
{
	int i;

	memset(options, 0, sizeof(*options));
	options->eventfds.opt =
		option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NULL);
	options->eventfds.opt.nro_size =
		sizeof(struct nmreq_option) + 8 * (uint64_t)rings;
	for (i = 0; i < rings; i++) {
		options->eventfds.fd[i].io = eventfd(0, 0);
		options->eventfds.fd[i].irq = eventfd(0, 0);
	}
}

static void
options_mode(struct kloop_options *options, uint32_t mode)
{
	options->mode.nro_opt =
		option_of(NETMAP_REQ_OPT_SYNC_KLOOP_MODE, NULL);
	options->mode.mode = mode;
	options->eventfds.opt.nro_next = (uintptr_t)&options->mode;
}

#define IOEVENTFD(options, i)	((options).eventfds.fd[i].io)
#define IRQFD(options, i)	((options).eventfds.fd[i].irq)

/* A port in CSB mode and one that is not, on one switch. */
struct scene {
	struct port port, other;
};

static struct scene
scene_open(void)
{
	struct scene scene;

	scene.port = csb_open(own("vale$:p"), &csb);
	scene.other = port_open(own("vale$:q"));
	return scene;
}

/* ---- S-KLOOP-1, 2: starting and stopping ---- */

static void
start_errors(void)
{
	struct port plain = port_open_flags(own("vale$:x"), NR_EXCLUSIVE);
	struct scene scene = scene_open();
	int fd = device_open();

	check_call(kloop_try(fd, 0, NULL), ENXIO, "unbound");
	check_call(kloop_try(plain.fd, 0, NULL), EINVAL, "not in CSB mode");
	check_call(kloop_try(scene.port.fd, 1000001, NULL), EINVAL,
		   "more than a second of sleep");
	check_call(control(scene.port.fd, NETMAP_REQ_SYNC_KLOOP_START, "",
			   NULL), EINVAL, "no body");
}

static void
runs_until_stopped(void)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port);
	uint32_t status;

	kloop_start(&loop, scene.port.fd, 100, NULL);
	csb_send(&csb, 0, tx, 1, 3);
	check(csb_consumed(&csb, 0, 3), "three frames are consumed");
	check(csb_produced(&csb, 0, 2), "their slots are free");
	check_number(port_take(&scene.other), 1, "and have arrived");
	check_call(kloop_try(scene.port.fd, 0, NULL), EBUSY,
		   "a second loop");
	check_call(csb_enable(scene.port.fd, csb.atok, csb.ktoa, &status),
		   EBUSY, "CSB_ENABLE while it runs");
	check_number(status, EBUSY, "status of the option");
	kloop_stop(&loop);
	kloop_start(&loop, scene.port.fd, 100, NULL);
	csb_send(&csb, 0, tx, 4, 1);
	check(csb_consumed(&csb, 0, 4), "started again");
	kloop_stop(&loop);
}

static void
on_signal(int number)
{
	(void)number;
}

static void
signals_do_not_end_it(void)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port);
	struct sigaction action;
	int i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	kloop_start(&loop, scene.port.fd, 1000, NULL);
	for (i = 1; i < 6; i++) {
		csb_send(&csb, 0, tx, (uint32_t)i, 1);
		check(csb_consumed(&csb, 0, (uint32_t)i), "it runs");
		pthread_kill(loop.thread, SIGUSR1);
	}
	check_number(loop.result, -2, "START has not returned");
	kloop_stop(&loop);
}

static void
stop_without_loop(void)
{
	struct scene scene = scene_open();
	int fd = device_open();
	uint64_t body = 0;

	check_call(kloop_stop_request(fd), ENXIO, "unbound");
	check_call(control(scene.port.fd, NETMAP_REQ_SYNC_KLOOP_STOP, "",
			   &body), EINVAL, "a body");
	check_call(kloop_stop_request(scene.port.fd), 0, "no loop runs");
	check_call(kloop_try(scene.port.fd, 100, NULL), 0,
		   "the next START returns at once");
	kloop_start(&loop, scene.port.fd, 100, NULL);
	csb_send(&csb, 0, port_tx(&scene.port), 1, 1);
	check(csb_consumed(&csb, 0, 1), "the one after it runs");
	kloop_stop(&loop);
}

static void
stop_of_a_plain_port(void)
{
	struct port port = port_open(own("vale$:p"));

	check_call(kloop_stop_request(port.fd), 0, "bound, not in CSB mode");
}

/* The loop is over when STOP has returned. */
static void
stop_waits(void)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port);

	kloop_start(&loop, scene.port.fd, 200000, NULL);
	csb_send(&csb, 0, tx, 1, 1);
	check(csb_consumed(&csb, 0, 1), "it runs");
	check_call(kloop_stop_request(scene.port.fd), 0, "STOP");
	csb_send(&csb, 0, tx, 2, 1);
	check_call(kloop_stop_request(scene.port.fd), 0, "STOP again");
	pthread_join(loop.thread, NULL);
	check_number(csb.ktoa[0].hwcur, 1, "nothing is consumed after it");
}

/* ---- S-KLOOP-3: without events ---- */

static void
sleeping(uint32_t sleep_us)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port),
			   *rx = port_rx(&scene.port);
	uint32_t i;

	kloop_start(&loop, scene.port.fd, sleep_us, NULL);
	for (i = 0; i < 20; i++) {
		csb_send(&csb, 0, tx, i, 1);
		if (port_take(&scene.other) != i)
			break;
		port_send(&scene.other, broadcast, mac_of(2), 100 + i);
		if (!csb_produced(&csb, 1, i + 1) ||
		    frame_sequence(NETMAP_BUF(rx, rx->slot[i].buf_idx)) !=
		    100 + i)
			break;
		csb_release(&csb, 1, rx, i + 1);
		if (!csb_consumed(&csb, 1, i + 1))
			break;
	}
	check_number(i, 20, "frames both ways");
	check(csb.ktoa[0].kern_need_kick == 0 &&
	      csb.ktoa[1].kern_need_kick == 0, "no kicks are asked for");
	kloop_stop(&loop);
}

static void never_sleeping(void) { sleeping(0); }
static void sleeping_a_bit(void) { sleeping(50); }

/* ---- S-KLOOP-4: driven by events ---- */

static void
option_errors(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;
	static const uint64_t sizes[] = { 24, 32, 39, 41, 48, 0 };
	size_t i;

	for (i = 0; i < COUNT(sizes); i++) {
		options_new(&options, 2);
		options.eventfds.opt.nro_size = sizes[i];
		check_call(kloop_try(scene.port.fd, 0, &options.eventfds),
			   EINVAL, "a wrong size");
		check_number(options.eventfds.opt.nro_status, EINVAL,
			     "status of the option");
	}
}

/* Defect of the original: it returns +EBADF. */
static void
bad_descriptor(int *fd, struct kloop_options *options, int port,
	       const char *text)
{
	int good = *fd, result;

	*fd = 9999;
	result = kloop_try(port, 0, &options->eventfds);
	check(result == EBADF || (result == -1 && errno == EBADF),
	      "%s (got %d)", text, result);
	*fd = good;
}

static void
bad_descriptors(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;

	options_new(&options, 2);
	bad_descriptor(&IOEVENTFD(options, 0), &options, scene.port.fd,
		       "ioeventfd of the tx ring");
	bad_descriptor(&IOEVENTFD(options, 1), &options, scene.port.fd,
		       "ioeventfd of the rx ring");
	bad_descriptor(&IRQFD(options, 0), &options, scene.port.fd,
		       "irqfd of the tx ring");
}

/* Kicks the loop when it asks for it. */
static void
publish(struct kloop_options *options, int ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&csb.ktoa[ring].kern_need_kick, __ATOMIC_RELAXED))
		kick(IOEVENTFD(*options, ring));
}

static void
events_of(struct kloop_options *options)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port),
			   *rx = port_rx(&scene.port);
	uint32_t i;

	kloop_start(&loop, scene.port.fd, 0, &options->eventfds);
	for (i = 0; i < 50; i++) {
		csb_send(&csb, 0, tx, i, 1);
		publish(options, 0);
		if (port_take(&scene.other) != i)
			break;
		port_send(&scene.other, broadcast, mac_of(2), 100 + i);
		if (!csb_produced(&csb, 1, i + 1))
			break;
		if (!kicked(IRQFD(*options, 1), PATIENCE_MS))
			break;
		csb_release(&csb, 1, rx, i + 1);
		publish(options, 1);
		if (!csb_consumed(&csb, 1, i + 1))
			break;
	}
	check_number(i, 50, "frames both ways");
	check(kicked(IRQFD(*options, 0), PATIENCE_MS),
	      "signalled that tx slots are free");
	kloop_stop(&loop);
	check_number(options->eventfds.opt.nro_status, 0,
		     "status of the option");
}

static void
events(void)
{
	struct kloop_options options;

	options_new(&options, 2);
	events_of(&options);
}

/* A loop that sleeps asks for kicks, and one that does not ask gets none. */
static void
asks_for_kicks(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;
	struct csb_wait idle = { &csb, 0, 0, 0 };

	options_new(&options, 2);
	kloop_start(&loop, scene.port.fd, 0, &options.eventfds);
	csb_send(&csb, 0, port_tx(&scene.port), 1, 1);
	kick(IOEVENTFD(options, 0));
	idle.hwcur = 1;
	check(soon(csb_hwcur_is, &idle), "a kick is answered");
	check_number(port_take(&scene.other), 1, "with the frame");
	kloop_stop(&loop);
}

static void
no_irqfd(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;
	int irq;

	options_new(&options, 2);
	irq = IRQFD(options, 0);
	IRQFD(options, 0) = -1;
	IRQFD(options, 1) = -1;
	kloop_start(&loop, scene.port.fd, 0, &options.eventfds);
	csb_send(&csb, 0, port_tx(&scene.port), 1, 1);
	publish(&options, 0);
	check(csb_consumed(&csb, 0, 1), "served");
	check(!kicked(irq, 0), "not signalled");
	kloop_stop(&loop);
}

/* One ioeventfd that is missing, and all rings are polled. */
static void
missing_ioeventfd(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;

	options_new(&options, 2);
	IOEVENTFD(options, 1) = -1;
	kloop_start(&loop, scene.port.fd, 100, &options.eventfds);
	csb_send(&csb, 0, port_tx(&scene.port), 1, 1);
	check(csb_consumed(&csb, 0, 1), "served without a kick");
	check(kicked(IRQFD(options, 0), PATIENCE_MS), "and signalled");
	check_number(csb.ktoa[0].kern_need_kick, 0, "no kicks are asked for");
	kloop_stop(&loop);
}

static void
no_kick_wanted(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;

	options_new(&options, 2);
	csb.atok[0].appl_need_kick = csb.atok[1].appl_need_kick = 0;
	kloop_start(&loop, scene.port.fd, 0, &options.eventfds);
	csb_send(&csb, 0, port_tx(&scene.port), 1, 1);
	publish(&options, 0);
	check(csb_consumed(&csb, 0, 1), "served");
	port_send(&scene.other, broadcast, mac_of(2), 2);
	check(csb_produced(&csb, 1, 1), "received");
	kloop_stop(&loop);
	check(!kicked(IRQFD(options, 0), 0) && !kicked(IRQFD(options, 1), 0),
	      "not signalled");
}

/* ---- S-KLOOP-5: direct processing ---- */

static void
mode_errors(void)
{
	struct scene scene = scene_open();
	struct kloop_options options;
	static const uint32_t modes[] = { 4, 8, 0x80000000, 7 };
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		options_new(&options, 2);
		options_mode(&options, modes[i]);
		check_call(kloop_try(scene.port.fd, 0, &options.eventfds),
			   EINVAL, "an unknown bit");
	}
	options_new(&options, 2);
	options_mode(&options, NM_OPT_SYNC_KLOOP_DIRECT_TX);
	IOEVENTFD(options, 0) = -1;
	check_call(kloop_try(scene.port.fd, 0, &options.eventfds), EINVAL,
		   "direct without all ioeventfds");
	check_call(kloop_try(scene.port.fd, 0, &options.mode), EINVAL,
		   "direct without eventfds");
}

static void
direct(uint32_t mode)
{
	struct kloop_options options;

	options_new(&options, 2);
	options_mode(&options, mode);
	events_of(&options);
	check_number(options.mode.nro_opt.nro_status, 0,
		     "status of the mode option");
}

static void direct_none(void) { direct(0); }
static void direct_tx(void) { direct(NM_OPT_SYNC_KLOOP_DIRECT_TX); }
static void direct_rx(void) { direct(NM_OPT_SYNC_KLOOP_DIRECT_RX); }

static void
direct_both(void)
{
	direct(NM_OPT_SYNC_KLOOP_DIRECT_TX | NM_OPT_SYNC_KLOOP_DIRECT_RX);
}

/* ---- S-KLOOP-6: the protocol ---- */

static void
batches(void)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port);
	uint32_t sent = 0, i, good = 1;

	kloop_start(&loop, scene.port.fd, 0, NULL);
	while (sent < 5000 && good) {
		uint32_t step = sent % 97 + 1;

		csb_send(&csb, 0, tx, sent, step);
		good = csb_consumed(&csb, 0, tx->head);
		for (i = 0; i < step && good; i++)
			good = port_take(&scene.other) == sent + i;
		sent += step;
	}
	check(good, "all frames, round the ring (stopped at %u)", sent);
	kloop_stop(&loop);
}

static void
wrong_indices(void)
{
	struct scene scene = scene_open();
	struct netmap_ring *tx = port_tx(&scene.port);

	kloop_start(&loop, scene.port.fd, 100, NULL);
	csb_send(&csb, 0, tx, 1, 2);
	check(csb_consumed(&csb, 0, 2), "two frames");
	nm_sync_kloop_appl_write(&csb.atok[0], 5000, 5000);
	/* It has been seen when what follows is served. */
	port_send(&scene.other, broadcast, mac_of(2), 9);
	check(csb_produced(&csb, 1, 1), "the other ring is served");
	check_number(csb.ktoa[0].hwcur, 2, "an index outside is not used");
	tx->head = tx->cur = 2;
	csb_send(&csb, 0, tx, 3, 1);
	check(csb_consumed(&csb, 0, 3), "and the ring goes on");
	check(port_take(&scene.other) == 1 && port_take(&scene.other) == 2 &&
	      port_take(&scene.other) == 3, "with the frames sent");
	kloop_stop(&loop);
}

static void
over_a_pipe(void)
{
	struct port port = csb_open(own("c${1"), &csb),
		    other = port_open(own("c$}1"));
	struct netmap_ring *tx = port_tx(&port);
	uint32_t i;

	kloop_start(&loop, port.fd, 0, NULL);
	for (i = 0; i < 3000; i++) {
		csb_send(&csb, 0, tx, i, 1);
		if (port_take(&other) != i)
			break;
	}
	check_number(i, 3000, "frames round the ring");
	port_rxsync(&other);
	check(csb_produced(&csb, 0, (tx->head + 1023) % 1024),
	      "all slots are free");
	port_send(&other, broadcast, mac_of(2), 7);
	check(csb_produced(&csb, 1, 1), "and back");
	kloop_stop(&loop);
}

/* Two ports, a loop each, in one process. */
static void
two_loops(void)
{
	static struct csb second_csb;
	static struct kloop second_loop;
	struct port one = csb_open(own("vale$:p"), &csb),
		    two = csb_open(own("vale$:q"), &second_csb);
	struct netmap_ring *tx = port_tx(&one), *rx = port_rx(&two);
	uint32_t i;

	kloop_start(&loop, one.fd, 0, NULL);
	kloop_start(&second_loop, two.fd, 0, NULL);
	for (i = 0; i < 500; i++) {
		csb_send(&csb, 0, tx, i, 1);
		if (!csb_produced(&second_csb, 1, i + 1) ||
		    frame_sequence(NETMAP_BUF(rx, rx->slot[i].buf_idx)) != i)
			break;
		csb_release(&second_csb, 1, rx, i + 1);
	}
	check_number(i, 500, "frames from one to the other");
	kloop_stop(&loop);
	kloop_stop(&second_loop);
}

static const struct test_case cases[] = {
	{ "S-KLOOP-1", "errors", start_errors },
	{ "S-KLOOP-1", "runs until it is stopped", runs_until_stopped },
	{ "S-KLOOP-1", "signals", signals_do_not_end_it },
	{ "S-KLOOP-2", "no loop to stop", stop_without_loop },
	{ "S-KLOOP-2", "a port not in CSB mode", stop_of_a_plain_port },
	{ "S-KLOOP-2", "STOP waits for its end", stop_waits },
	{ "S-KLOOP-3", "never sleeping", never_sleeping },
	{ "S-KLOOP-3", "sleeping", sleeping_a_bit },
	{ "S-KLOOP-4", "a wrong size", option_errors },
	{ "S-KLOOP-4", "wrong descriptors", bad_descriptors },
	{ "S-KLOOP-4", "events", events },
	{ "S-KLOOP-4", "kicks", asks_for_kicks },
	{ "S-KLOOP-4", "no irqfd", no_irqfd },
	{ "S-KLOOP-4", "a missing ioeventfd", missing_ioeventfd },
	{ "S-KLOOP-5", "errors", mode_errors },
	{ "S-KLOOP-5", "neither direction", direct_none },
	{ "S-KLOOP-5", "tx", direct_tx },
	{ "S-KLOOP-5", "rx", direct_rx },
	{ "S-KLOOP-5", "both", direct_both },
	{ "S-KLOOP-6", "batches", batches },
	{ "S-KLOOP-6", "no signal wanted", no_kick_wanted },
	{ "S-KLOOP-6", "wrong indices", wrong_indices },
	{ "S-KLOOP-6", "a pipe", over_a_pipe },
	{ "S-KLOOP-6", "two loops", two_loops },
};

CHAPTER(cases)
