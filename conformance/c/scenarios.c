/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole stories, each of which follows from several rules (S-SCEN). */
#include "attach.h"
#include "lan.h"
#include "monitor.h"

static struct packet packet;

/* ---- S-SCEN-1: exclusive binds ---- */

static void
second_bind(const char *name, uint64_t flags, const char *text)
{
	int fd = device_open();

	check_call(bind_as(fd, name, NR_REG_ALL_NIC, 0, flags), EBUSY, text);
	close(fd);
}

static void
exclusive_ephemeral(void)
{
	struct port port = port_open_flags(own("vale$:p"), NR_EXCLUSIVE);

	second_bind(own("vale$:p"), 0, "a plain second bind");
	second_bind(own("vale$:p"), NR_EXCLUSIVE, "an exclusive second bind");
	port_close(&port);
	port = port_open(own("vale$:p"));
	second_bind(own("vale$:p"), NR_EXCLUSIVE, "exclusive after plain");
	port_close(&port);
}

static void
exclusive_pipe(void)
{
	struct port master = port_open_flags(own("c${1"), NR_EXCLUSIVE),
		    slave;

	second_bind(own("c${1"), 0, "a plain second bind");
	second_bind(own("c${1"), NR_EXCLUSIVE, "an exclusive second bind");
	slave = port_open_flags(own("c$}1"), NR_EXCLUSIVE);
	check(slave.fd >= 0, "the other end is another port");
	second_bind(own("c$}1"), 0, "and exclusive as well");
	port_close(&master);
	master = port_open(own("c${1"));
	check_passes(&master, &slave, "the pipe works");
}

/* By the full name the original answers EINVAL. */
static void
exclusive_persistent(void)
{
	struct port port;
	int fd;

	persistent();
	require(attach(on(1, own("p$"))) == 0,
		"VALE_ATTACH");
	port = port_open_flags(on(1, own("p$")), NR_EXCLUSIVE);
	fd = device_open();
	check_call(bind_all(fd, on(1, own("p$"))), EBUSY,
		   "a plain second bind by the full name");
	check_call(bind_as(fd, on(1, own("p$")), NR_REG_ALL_NIC, 0,
			   NR_EXCLUSIVE), EBUSY, "an exclusive one");
	second_bind(own("p$"), 0, "a plain second bind");
	second_bind(own("p$"), NR_EXCLUSIVE, "an exclusive second bind");
	port_close(&port);
}

/* ---- S-SCEN-2: floods ---- */

/* Puts the next frame's payload into an extra buffer, swapped in. */
static void
use_extra_buffer(struct port *port)
{
	struct netmap_ring *tx = port_tx(port);
	struct netmap_slot *slot = &tx->slot[tx->head];
	uint32_t extra = port->nifp->ni_bufs_head, old = slot->buf_idx, next;

	require(extra >= 2, "an extra buffer");
	memcpy(&next, NETMAP_BUF(tx, extra), sizeof(next));
	memcpy(NETMAP_BUF(tx, old), &next, sizeof(next));
	port->nifp->ni_bufs_head = old;
	slot->buf_idx = extra;
}

static void
flood_from_each(int extra)
{
	int i, round;

	for (round = 0; round < 5; round++)
		for (i = 0; i < lan_ports; i++) {
			struct netmap_ring *tx = port_tx(&lan[i]);
			uint32_t at = tx->head;

			if (extra)
				use_extra_buffer(&lan[i]);
			port_put(&lan[i], broadcast, mac_of((uint8_t)i),
				 ++lan_sequence);
			if (extra)
				tx->slot[at].flags = NS_BUF_CHANGED;
			port_txsync(&lan[i]);
			lan_expect_flood(i, "broadcast");
		}
}

static void
flood_ephemeral(void)
{
	lan_open(3);
	flood_from_each(0);
}

static void
flood_extra_buffers(void)
{
	struct nmreq_register reg = register_all();
	int i;

	reg.nr_extra_bufs = 4;
	for (i = 0; i < 3; i++)
		lan_add(reg);
	flood_from_each(1);
}

static void
flood_persistent(void)
{
	int i;

	netns_own();
	for (i = 0; i < 3; i++) {
		const char *name = own(i == 0 ? "p$" : i == 1 ? "q$" : "r$");

		require(newif(name) == 0 && attach(on(1, name)) == 0,
			"%s on a switch", name);
		lan[i] = port_open(name);
	}
	lan_ports = 3;
	flood_from_each(0);
	/* One that comes later, and is ephemeral. */
	lan[3] = port_open(on(1, "e"));
	lan_ports = 4;
	flood_from_each(0);
}

static void
flood_pipe(void)
{
	struct nmreq_register reg = register_all();

	reg.nr_extra_bufs = 4;
	lan[0] = port_open_as(own("c${1"), reg);
	lan[1] = port_open_as(own("c$}1"), reg);
	lan_ports = 2;
	flood_from_each(0);
	flood_from_each(1);
}

/* ---- S-SCEN-3: learning ---- */

static void
learning(void)
{
	int from, to;

	lan_open(4);
	for (from = 0; from < 4; from++)
		lan_teach(from, mac_of((uint8_t)from));
	for (from = 0; from < 4; from++)
		for (to = 0; to < 4; to++)
			if (from != to) {
				lan_send(from, mac_of((uint8_t)to),
					 mac_of((uint8_t)from));
				lan_expect_only(to, "unicast");
			}
}

/* ---- S-SCEN-4: a pipe read in part, by a process that shares the fds ---- */

static void
partial_read(void)
{
	struct port master = port_open(own("c${1")),
		    slave = port_open(own("c$}1"));
	uint32_t all = port_tx(&master)->num_slots - 1, i, room;
	pid_t child;

	send_frames(&master, 0, 10);
	fflush(stdout);
	child = forked();
	if (child == 0)
		_exit(!take_frames(&slave, 0, 7));
	check_child(child, "another process takes 7 of 10");
	port_txsync(&master);
	room = nm_ring_space(port_tx(&master));
	check_number(room, all - 3, "three slots are missing");
	child = forked();
	if (child == 0) {
		for (i = 0; i < room; i++)
			port_put(&master, broadcast, mac_of(1), 10 + i);
		port_txsync(&master);
		_exit(0);
	}
	check_child(child, "another process sends all there is room for");
	port_txsync(&master);
	check(nm_ring_empty(port_tx(&master)), "no room for one more");
	check_number(wait_events(master.fd, POLLOUT, 0), 0, "no POLLOUT");
	check(take_frames(&slave, 7, 3 + room), "nothing is lost");
}

/* ---- S-SCEN-5: persistent ports ---- */

static void
create_and_destroy(void)
{
	int i;

	netns_own();
	for (i = 0; i < 3; i++) {
		check_call(newif(own("p$")), 0,
			   "create");
		check_call(newif(own("p$")), EEXIST,
			   "create what exists");
		check_call(delif(own("p$")), 0,
			   "destroy");
	}
	check_call(delif(own("p$")), ENXIO,
		   "destroy what does not exist");
}

static void
attach_and_destroy(void)
{
	persistent();
	check_call(attach(on(1, own("p$"))), 0,
		   "attach");
	check_call(newif(own("p$")), EEXIST,
		   "create what is attached");
	check_call(delif(own("p$")), EBUSY,
		   "destroy what is attached");
	check_call(attach(on(1, own("p$"))), EBUSY,
		   "attach again");
	check_call(detach(on(1, own("p$"))), 0,
		   "detach");
	check_call(delif(own("p$")), 0, "destroy");
}

static void
two_switches(void)
{
	persistent();
	check_call(attach(on(1, own("p$"))), 0,
		   "attach to one");
	check_call(attach(on(2, own("p$"))), 0,
		   "attach to another");
	check_call(delif(own("p$")), EBUSY,
		   "destroy on both");
	check_call(detach(on(2, own("p$"))), 0,
		   "detach from the second");
	check_call(delif(own("p$")), EBUSY,
		   "destroy on the first");
	check_call(detach(on(1, own("p$"))), 0,
		   "detach from the first");
	check_call(delif(own("p$")), 0, "destroy");
}

/* ---- S-SCEN-6: copy monitors ---- */

static void
copies_of(const char *name, const struct port *target, const struct port *peer)
{
	struct port rx = monitor_open(name, NR_MONITOR_RX), tx;
	uint32_t i;

	for (i = 0; i < 5; i++) {
		send_frames(peer, i, 1);
		monitor_has(&rx, i, 1, "the monitor receives it once");
		check_number(port_take(target), i, "the receiver as well");
		port_rxsync(target);
		monitor_has(&rx, 0, 0, "and the monitor no more");
	}
	tx = monitor_open(name, NR_MONITOR_TX);
	for (i = 10; i < 15; i++) {
		send_frames(target, i, 1);
		monitor_has(&tx, i, 1, "the monitor sees it sent once");
		check_number(port_take(peer), i, "the receiver has it");
		port_rxsync(peer);
		port_txsync(target);
		monitor_has(&tx, 0, 0, "and the monitor no more");
	}
}

static void
copies_ephemeral(void)
{
	struct watched pair = watched_vale();

	copies_of(pair.name, &pair.target, &pair.peer);
}

static void
copies_pipe(void)
{
	struct watched pair = watched_pipe();

	copies_of(pair.name, &pair.target, &pair.peer);
}

static void
copies_persistent(void)
{
	struct port target, peer;

	persistent();
	require(attach(on(1, own("p$"))) == 0,
		"VALE_ATTACH");
	target = port_open(own("p$"));
	peer = port_open(on(1, "x"));
	copies_of(own("p$"), &target, &peer);
}

/* ---- S-SCEN-7: zero-copy monitors ---- */

static void
zero_copy_rx_of(struct watched pair)
{
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	uint32_t i;

	for (i = 0; i < 5; i++) {
		send_frames(&pair.peer, i, 1);
		monitor_has(&monitor, 0, 0, "nothing until the owner reads");
		check(take_frames(&pair.target, i, 1), "the owner reads");
		monitor_has(&monitor, i, 1, "then the frame");
		monitor_has(&monitor, 0, 0, "once");
	}
}

static void zero_copy_rx_vale(void) { zero_copy_rx_of(watched_vale()); }
static void zero_copy_rx_pipe(void) { zero_copy_rx_of(watched_pipe()); }

static void
zero_copy_tx_vale(void)
{
	struct watched pair = watched_vale();
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	uint32_t i;

	for (i = 0; i < 5; i++) {
		send_frames(&pair.target, i, 1);
		monitor_has(&monitor, i, 1, "at once");
		check(take_frames(&pair.peer, i, 1), "the receiver has it");
		monitor_has(&monitor, 0, 0, "once");
	}
}

static void
zero_copy_tx_pipe(void)
{
	struct watched pair = watched_pipe();
	struct port monitor = monitor_open(pair.name, NR_ZCOPY_MON);
	uint32_t i;

	for (i = 0; i < 5; i++) {
		send_frames(&pair.target, i, 1);
		monitor_has(&monitor, 0, 0, "nothing until the peer reads");
		check(take_frames(&pair.peer, i, 1), "the peer reads");
		monitor_has(&monitor, 0, 0, "nothing until the sender syncs");
		port_txsync(&pair.target);
		monitor_has(&monitor, i, 1, "then the frame");
		monitor_has(&monitor, 0, 0, "once");
	}
}

/* ---- S-SCEN-8: a pair of interfaces ---- */

static void
pair_of_interfaces(void)
{
	struct port one, other;
	uint32_t i;

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	one = port_open(own("n$"));
	other = port_open(own("f$"));
	for (i = 0; i < 2000; i++) {
		ring_put_frame(port_tx(&one), broadcast, mac_of(1), i,
			       60 + i % 1455, 2048);
		port_txsync(&one);
		if (!port_take_packet(&other, &packet) ||
		    packet_sequence(&packet) != i ||
		    packet.length != 60 + i % 1455)
			break;
		port_send(&other, broadcast, mac_of(2), 10000 + i);
		if (port_take(&one) != 10000 + i)
			break;
	}
	check_number(i, 2000, "frames each way, of all lengths");
}

static const struct test_case cases[] = {
	{ "S-SCEN-1", "an ephemeral port", exclusive_ephemeral },
	{ "S-SCEN-1", "a pipe", exclusive_pipe },
	{ "S-SCEN-1", "a persistent port", exclusive_persistent },
	{ "S-SCEN-2", "ephemeral ports", flood_ephemeral },
	{ "S-SCEN-2", "extra buffers", flood_extra_buffers },
	{ "S-SCEN-2", "persistent ports", flood_persistent },
	{ "S-SCEN-2", "a pipe", flood_pipe },
	{ "S-SCEN-3", "learning", learning },
	{ "S-SCEN-4", "a pipe read in part", partial_read },
	{ "S-SCEN-5", "create and destroy", create_and_destroy },
	{ "S-SCEN-5", "attached", attach_and_destroy },
	{ "S-SCEN-5", "on two switches", two_switches },
	{ "S-SCEN-6", "an ephemeral port", copies_ephemeral },
	{ "S-SCEN-6", "a pipe", copies_pipe },
	{ "S-SCEN-6", "a persistent port", copies_persistent },
	{ "S-SCEN-7", "rx of a VALE port", zero_copy_rx_vale },
	{ "S-SCEN-7", "rx of a pipe", zero_copy_rx_pipe },
	{ "S-SCEN-7", "tx of a VALE port", zero_copy_tx_vale },
	{ "S-SCEN-7", "tx of a pipe", zero_copy_tx_pipe },
	{ "S-SCEN-8", "a pair of interfaces", pair_of_interfaces },
};

CHAPTER(cases)
