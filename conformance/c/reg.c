/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * REG: NETMAP_REQ_REGISTER binds a descriptor to rings of a port, which it
 * makes if it is one of those that come into being by their name.
 */
#include "attach.h"
#include "packet.h"

#include <sched.h>

static struct nmreq_register
mode_of(uint32_t mode, uint16_t ring, uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = mode;
	reg.nr_ringid = ring;
	reg.nr_flags = flags;
	return reg;
}

/* Each pair of faults: the one that is checked first is told. */
static void
the_first_fault_is_told(void)
{
	struct port port = port_open_flags(own("vale$:held"), NR_EXCLUSIVE);
	struct nmreq_option option = option_of(77, NULL);
	struct nmreq_register reg = mode_of(99, 0, 0);
	int fd = device_open();

	reg.nr_mem_id = NO_REGION;
	check_call(control(port.fd, NETMAP_REQ_REGISTER, "nosuchif0", &reg),
		   EBUSY, "bound, before region, port and mode");
	check_call(try_register("nosuchif0", reg), EINVAL,
		   "unknown region, before the port");
	check_call(try_register("nosuchif0", mode_of(99, 0, 0)), ENXIO,
		   "absent port, before the mode");
	check_call(try_register("valeX", mode_of(99, 0, 0)), ENOMEM,
		   "malformed name, before the mode");
	check_call(try_register(own("vale$:held"), mode_of(99, 0, 0)), EINVAL,
		   "mode, before exclusivity");
	reg = register_all();
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:held"),
				&reg, &option), EBUSY,
		   "exclusivity, before unsupported options");
}

static void
a_header_must_be_accepted(void)
{
	struct port port = port_open(own("vale$:a"));
	struct nmreq_port_hdr hdr = { 12, 0 };

	check_call(control(port.fd, NETMAP_REQ_PORT_HDR_SET, own("vale$:a"),
			   &hdr), 0, "a port with a virtio-net header");
	check_call(try_register(own("vale$:a"), register_all()), EIO,
		   "without NR_ACCEPT_VNET_HDR");
	check_call(try_register(own("vale$:a"), mode_of(99, 0, 0)), EIO,
		   "before the mode");
	check_call(try_register(own("vale$:a"), mode_of(NR_REG_ALL_NIC, 0,
							NR_ACCEPT_VNET_HDR)),
		   0, "with it");
}

static void
ports_of_a_switch_are_busy(void)
{
	struct cable cable = own_cable(1);
	const char *there = on(1, cable.near);

	check_call(attach(there), 0, "an interface on a switch");
	check_call(try_register(cable.near, register_all()), EBUSY,
		   "cannot be bound by its name");
	check_call(try_register(there, register_all()), EBUSY,
		   "nor as the switch's port");
	check_call(try_register(cable.near, mode_of(99, 0, 0)), EBUSY,
		   "which is told before the mode");
	check_call(detach(there), 0, "detached");
	check_call(try_register(cable.near, register_all()), 0,
		   "it can be bound");
}

static void
names_and_kinds(void)
{
	struct port holder = port_open(own("vale$:h"));
	struct nmreq_register reg;
	static const struct {
		const char *name;
		int error;
	} names[] = {
		{ "", ENXIO },
		{ "nosuchif0", ENXIO },
		{ "nosuchif0:x", ENXIO },
		{ "val", ENOMEM },
		{ "valX", ENOMEM },
		{ "vale", ENOMEM },
		{ "valeX", ENOMEM },
		{ "valley:p", ENOMEM },
		{ "va", ENXIO },
		{ "}x", EINVAL },
		{ "{x", EINVAL },
		{ "p${", EINVAL },
		{ "p$}", EINVAL },
		{ "p$}x", 0 },
		{ "p${x", 0 },
		/* The brace comes first: a pipe, not a malformed switch. */
		{ "valeX}x", ENOMEM },
		{ "vale$:p}x", 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		check_call(try_register(own(names[i].name), register_all()),
			   names[i].error, own(names[i].name));
	}
	/* A null port's name is a label, whatever it looks like. */
	for (i = 0; i < COUNT(names); i++) {
		reg = mode_of(NR_REG_NULL, 0, 0);
		reg.nr_mem_id = holder.reg.nr_mem_id;
		check_call(try_register(own(names[i].name), reg), 0,
			   "a null port");
	}
	/* A monitor's name is that of its target. */
	for (i = 0; i < COUNT(names); i++) {
		reg = mode_of(NR_REG_ALL_NIC, 0, NR_MONITOR_RX);
		check(try_register(own(names[i].name), reg) == -1,
		      "no monitor of what is not in use");
	}
}

static void
legacy_modes_are_refused(void)
{
	check_call(try_register(own("p$"), mode_of(NR_REG_PIPE_MASTER, 1, 0)),
		   EINVAL, "NR_REG_PIPE_MASTER");
	check_call(try_register(own("p$"), mode_of(NR_REG_PIPE_SLAVE, 1, 0)),
		   EINVAL, "NR_REG_PIPE_SLAVE");
	check_call(try_register(own("vale$:a"),
				mode_of(NR_REG_PIPE_MASTER, 1, 0)), EINVAL,
		   "NR_REG_PIPE_MASTER of a switch's port");
}

static void
interfaces_of_the_caller(void)
{
	pid_t child;

	need_root();
	device_open();
	child = forked();
	if (child == 0) {
		struct cable cable;
		struct port port;

		require(unshare(CLONE_NEWNET) == 0, "a network namespace");
		cable = cable_new(own("m$"), own("f$"), 1);
		port = port_open(cable.near);
		port_send(&port, broadcast, mac_of(1), 7);
		_exit(cable_take(&cable) != 7);
	}
	check_child(child, "a process elsewhere has interfaces of its own");
	check_call(try_register(own("m$"), register_all()), ENXIO,
		   "which are not here");
}

/* Which rings a descriptor sees. */
static uint64_t
visible(const struct port *port)
{
	const struct netmap_if *nifp = port->nifp;
	uint32_t all = nifp->ni_tx_rings + nifp->ni_host_tx_rings +
		nifp->ni_rx_rings + nifp->ni_host_rx_rings, i;
	uint64_t seen = 0;

	for (i = 0; i < all; i++)
		if (nifp->ring_ofs[i] != 0)
			seen |= 1ull << i;
	return seen;
}

/*
 * A port with 3 tx and 2 rx rings. Bits: tx 0 to 2, no host tx, rx 4 and 5, no
 * host rx.
 */
static void
rings_by_mode(void)
{
	static const struct {
		uint32_t mode;
		uint16_t ring;
		uint64_t flags;
		int error;
		uint64_t rings;
	} modes[] = {
		{ NR_REG_ALL_NIC, 0, 0, 0, 0x37 },
		{ NR_REG_ALL_NIC, 99, 0, 0, 0x37 },
		{ NR_REG_ALL_NIC, 0, NR_TX_RINGS_ONLY, 0, 0x07 },
		{ NR_REG_ALL_NIC, 0, NR_RX_RINGS_ONLY, 0, 0x30 },
		{ NR_REG_ALL_NIC, 0, NR_TX_RINGS_ONLY | NR_RX_RINGS_ONLY, 0,
		  0 },
		{ NR_REG_ONE_NIC, 0, 0, 0, 0x11 },
		{ NR_REG_ONE_NIC, 1, 0, 0, 0x22 },
		/* The direction that has no ring 2 gives ring 0. */
		{ NR_REG_ONE_NIC, 2, 0, 0, 0x14 },
		{ NR_REG_ONE_NIC, 2, NR_TX_RINGS_ONLY, 0, 0x04 },
		{ NR_REG_ONE_NIC, 2, NR_RX_RINGS_ONLY, 0, 0x10 },
		{ NR_REG_ONE_NIC, 3, 0, EINVAL, 0 },
		{ NR_REG_ONE_NIC, 3, NR_TX_RINGS_ONLY, EINVAL, 0 },
		{ NR_REG_ONE_NIC, 65535, 0, EINVAL, 0 },
		{ NR_REG_ONE_NIC, 0, NR_TX_RINGS_ONLY | NR_RX_RINGS_ONLY, 0,
		  0 },
		{ NR_REG_SW, 0, 0, EINVAL, 0 },
		{ NR_REG_NIC_SW, 0, 0, EINVAL, 0 },
		{ NR_REG_ONE_SW, 0, 0, EINVAL, 0 },
		{ NR_REG_DEFAULT, 0, 0, EINVAL, 0 },
		{ 9, 0, 0, EINVAL, 0 },
		{ 0x10001, 0, 0, EINVAL, 0 },
		{ UINT32_MAX, 0, 0, EINVAL, 0 },
	};
	struct nmreq_register reg = register_all();
	struct port port;
	size_t i;

	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	port = port_open_as(own("vale$:a"), reg);
	for (i = 0; i < COUNT(modes); i++) {
		struct port other;

		reg = mode_of(modes[i].mode, modes[i].ring, modes[i].flags);
		check_call(try_register(own("vale$:a"), reg), modes[i].error,
			   line("mode %u ring %u flags 0x%llx", modes[i].mode,
				modes[i].ring,
				(unsigned long long)modes[i].flags));
		if (modes[i].error != 0)
			continue;
		other = port_open_as(own("vale$:a"), reg);
		check(visible(&other) == modes[i].rings,
		      "mode %u ring %u flags 0x%llx: 0x%llx, expected 0x%llx",
		      modes[i].mode, modes[i].ring,
		      (unsigned long long)modes[i].flags,
		      (unsigned long long)visible(&other),
		      (unsigned long long)modes[i].rings);
		port_close(&other);
	}
	port_close(&port);
}

static void
a_binding_without_rings(void)
{
	struct port port = port_open_flags(own("vale$:a"), NR_TX_RINGS_ONLY |
					   NR_RX_RINGS_ONLY);

	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	check_call(ioctl(port.fd, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
	check_number(wait_events(port.fd, POLLIN | POLLOUT, 0), 0,
		     "nothing to wait for");
	check_call(try_register(own("vale$:a"), mode_of(NR_REG_ALL_NIC, 0,
							NR_EXCLUSIVE)), 0,
		   "its rings are free");
}

/* An interface with 2 queues: tx 0, 1, host, rx 0, 1, host. */
static void
host_rings_by_mode(void)
{
	static const struct {
		uint32_t mode;
		uint16_t ring;
		uint64_t flags;
		int error;
		uint64_t rings;
	} modes[] = {
		{ NR_REG_ALL_NIC, 0, 0, 0, 0x1b },
		{ NR_REG_SW, 0, 0, 0, 0x24 },
		{ NR_REG_SW, 0, NR_RX_RINGS_ONLY, 0, 0x20 },
		{ NR_REG_NIC_SW, 0, 0, 0, 0x3f },
		{ NR_REG_NIC_SW, 0, NR_TX_RINGS_ONLY, 0, 0x07 },
		{ NR_REG_ONE_NIC, 1, 0, 0, 0x12 },
		{ NR_REG_ONE_NIC, 2, 0, EINVAL, 0 },
		{ NR_REG_ONE_SW, 0, 0, 0, 0x24 },
		{ NR_REG_ONE_SW, 1, 0, EINVAL, 0 },
	};
	struct cable cable = own_cable(2);
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		struct nmreq_register reg = mode_of(
			modes[i].mode, modes[i].ring, modes[i].flags);
		struct port port;
		int fd = register_with(cable.near, &reg, NULL);

		check_call(fd, modes[i].error,
			   line("mode %u ring %u", modes[i].mode,
				modes[i].ring));
		if (fd < 0)
			continue;
		port.fd = fd;
		port.reg = reg;
		port_map(&port);
		check(visible(&port) == modes[i].rings,
		      "mode %u ring %u: 0x%llx, expected 0x%llx",
		      modes[i].mode, modes[i].ring,
		      (unsigned long long)visible(&port),
		      (unsigned long long)modes[i].rings);
		port_close(&port);
	}
}

/* Two descriptors on one port of 2 rings: may the second bind as well? */
static void
exclusive_pairs(void)
{
	static const struct {
		uint32_t mode;
		uint16_t ring;
		uint64_t flags;
		uint32_t other_mode;
		uint16_t other_ring;
		uint64_t other_flags;
		int error;
	} pairs[] = {
		{ NR_REG_ALL_NIC, 0, 0, NR_REG_ALL_NIC, 0, 0, 0 },
		{ NR_REG_ALL_NIC, 0, 0,
		  NR_REG_ALL_NIC, 0, NR_EXCLUSIVE, EBUSY },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE,
		  NR_REG_ALL_NIC, 0, 0, EBUSY },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE,
		  NR_REG_ALL_NIC, 0, NR_EXCLUSIVE, EBUSY },
		{ NR_REG_ONE_NIC, 0, NR_EXCLUSIVE,
		  NR_REG_ONE_NIC, 1, NR_EXCLUSIVE, 0 },
		{ NR_REG_ONE_NIC, 0, NR_EXCLUSIVE,
		  NR_REG_ONE_NIC, 0, 0, EBUSY },
		{ NR_REG_ONE_NIC, 1, NR_EXCLUSIVE,
		  NR_REG_ALL_NIC, 0, 0, EBUSY },
		{ NR_REG_ONE_NIC, 1, 0,
		  NR_REG_ALL_NIC, 0, NR_EXCLUSIVE, EBUSY },
		{ NR_REG_ONE_NIC, 1, 0, NR_REG_ALL_NIC, 0, 0, 0 },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE | NR_RX_RINGS_ONLY,
		  NR_REG_ALL_NIC, 0, NR_EXCLUSIVE | NR_TX_RINGS_ONLY, 0 },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE | NR_RX_RINGS_ONLY,
		  NR_REG_ONE_NIC, 1, 0, EBUSY },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE | NR_RX_RINGS_ONLY,
		  NR_REG_ONE_NIC, 1, NR_TX_RINGS_ONLY, 0 },
		{ NR_REG_ALL_NIC, 0, NR_EXCLUSIVE,
		  NR_REG_ALL_NIC, 0, NR_RX_RINGS_ONLY | NR_TX_RINGS_ONLY, 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(pairs); i++) {
		struct nmreq_register reg = register_all();
		struct port keeper;
		int fd = device_open();

		/* Keeps a port of 2 rings there, and none of them. */
		reg.nr_tx_rings = reg.nr_rx_rings = 2;
		reg.nr_flags = NR_TX_RINGS_ONLY | NR_RX_RINGS_ONLY;
		keeper = port_open_as(own("vale$:a"), reg);
		require(bind_as(fd, own("vale$:a"), pairs[i].mode,
				pairs[i].ring, pairs[i].flags) == 0,
			"the first of pair %zu", i);
		reg = mode_of(pairs[i].other_mode, pairs[i].other_ring,
			      pairs[i].other_flags);
		check_call(try_register(own("vale$:a"), reg), pairs[i].error,
			   line("the second of pair %zu", i));
		close(fd);
		check_call(try_register(own("vale$:a"),
					mode_of(NR_REG_ALL_NIC, 0,
						NR_EXCLUSIVE)), 0,
			   "a claim ends with the binding");
		port_close(&keeper);
	}
}

static void
sharers_have_one_ring(void)
{
	struct port a = port_open(own("vale$:a"));
	struct port b = port_open(own("vale$:a"));

	check_number((char *)port_tx(&b) - b.mem, (char *)port_tx(&a) - a.mem,
		     "one ring");
	port_send(&a, broadcast, mac_of(1), 1);
	check(port_tx(&b)->head == 1 && port_tx(&b)->cur == 1,
	      "with one set of indices");
	port_send(&b, broadcast, mac_of(1), 2);
	check_number(port_tx(&a)->head, 2, "that both move");
}

static void
ends_of_a_pipe_are_independent(void)
{
	struct port a = port_open_flags(own("p${1"), NR_EXCLUSIVE);

	check_call(try_register(own("p$}1"), mode_of(NR_REG_ALL_NIC, 0,
						     NR_EXCLUSIVE)), 0,
		   "the other end, exclusive as well");
	check_call(try_register(own("p${1"), register_all()), EBUSY,
		   "but not the same end");
	port_close(&a);
}

static void
monitors_heed_no_claims(void)
{
	struct port a = port_open_flags(own("vale$:a"), NR_EXCLUSIVE);
	struct nmreq_register reg = mode_of(NR_REG_ALL_NIC, 0, NR_MONITOR_RX);
	int fd = register_with(own("vale$:a"), &reg, NULL);

	check_call(fd, 0, "a monitor of a port held exclusively");
	port_close(&a);
	close(fd);
	a = port_open(own("vale$:a"));
	reg = mode_of(NR_REG_ALL_NIC, 0, NR_MONITOR_TX);
	fd = register_with(own("vale$:a"), &reg, NULL);
	check_call(fd, 0, "a monitor");
	check_call(try_register(own("vale$:a"), mode_of(NR_REG_ALL_NIC, 0,
							NR_RX_RINGS_ONLY)), 0,
		   "does not keep others away");
	check_call(control(device_open(), NETMAP_REQ_REGISTER, own("vale$:a"),
			   &reg), 0, "nor another monitor");
}

static void
a_second_bind(void)
{
	static const char *const names[] = { "vale$:a", "p${1", "p$}1" };
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct port port = port_open_flags(own(names[i]),
						   NR_EXCLUSIVE);

		check_call(try_register(own(names[i]), register_all()), EBUSY,
			   "a plain one");
		check_call(try_register(own(names[i]),
					mode_of(NR_REG_ALL_NIC, 0,
						NR_EXCLUSIVE)), EBUSY,
			   "an exclusive one");
		port_close(&port);
	}
}

static void
a_second_bind_of_a_persistent_port(void)
{
	const char *name = persistent(), *there = on(1, name);
	struct port port;
	int exclusive;

	check_call(attach(there), 0, "on a switch");
	port = port_open_flags(there, NR_EXCLUSIVE);
	/* The original answers EINVAL: it does not find the name. */
	for (exclusive = 0; exclusive < 2; exclusive++)
		check_call(try_register(there, mode_of(NR_REG_ALL_NIC, 0,
			exclusive ? NR_EXCLUSIVE : 0)),
			EBUSY, "bound under its switch's name");
	check_call(try_register(name, register_all()), EBUSY,
		   "and under its own");
	port_close(&port);
}

static void
outputs(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_port_info_get info;
	struct port port;

	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 3;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 128;
	reg.nr_host_tx_rings = reg.nr_host_rx_rings = 5;
	reg.nr_extra_bufs = 7;
	reg.nr_ringid = 9;
	reg.nr_flags = NR_EXCLUSIVE | NR_NO_TX_POLL | 1ull << 50;
	port = port_open_as(own("vale$:a"), reg);
	check(port.reg.nr_tx_rings == 2 && port.reg.nr_rx_rings == 3 &&
	      port.reg.nr_tx_slots == 64 && port.reg.nr_rx_slots == 128,
	      "rings and slots");
	check(port.reg.nr_host_tx_rings == 0 && port.reg.nr_host_rx_rings == 0,
	      "no host rings on such a port");
	check(port.reg.nr_mode == NR_REG_ALL_NIC && port.reg.nr_ringid == 9 &&
	      port.reg.nr_flags == reg.nr_flags,
	      "mode, ring and flags as they were");
	check_number(port.reg.nr_extra_bufs, 7, "extra buffers granted");
	check(port.reg.nr_offset + sizeof(struct netmap_if) <=
	      port.reg.nr_memsize, "the netmap_if is in the region");
	memset(&info, 0, sizeof(info));
	check_call(port_info(own("vale$:a"), &info), 0, "PORT_INFO_GET");
	check(info.nr_memsize == port.reg.nr_memsize &&
	      info.nr_mem_id == port.reg.nr_mem_id && info.nr_mem_id != 0,
	      "size and id of the region");
}

static void
outputs_of_an_interface(void)
{
	struct cable cable = own_cable(2);
	struct port port = port_open(cable.near);

	check(port.reg.nr_tx_rings == 2 && port.reg.nr_rx_rings == 2,
	      "a ring for each queue");
	check(port.reg.nr_host_tx_rings == 1 && port.reg.nr_host_rx_rings == 1,
	      "a host ring each way");
	check(port.reg.nr_tx_slots > 1 && port.reg.nr_rx_slots > 1,
	      "with slots");
}

static void
output_of_a_zero_copy_monitor(void)
{
	struct port port = port_open(own("vale$:a"));
	struct nmreq_register reg = mode_of(NR_REG_ALL_NIC, 0, NR_ZCOPY_MON);

	check_number(port.reg.nr_tx_rings, 1, "the target");
	check_call(register_with(own("vale$:a"), &reg, NULL), 0, "its monitor");
	check(reg.nr_flags == (NR_ZCOPY_MON | NR_MONITOR_TX | NR_MONITOR_RX),
	      "NR_ZCOPY_MON means both directions");
}

static void
counts_of_a_port_that_exists(void)
{
	static const char *const names[] = { "vale$:a", "p${1", "p$}1" };
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct nmreq_register reg = register_all();
		struct port port, other;

		reg.nr_tx_slots = reg.nr_rx_slots = 64;
		port = port_open_as(own(names[i]), reg);
		check(port.reg.nr_tx_slots == 64 && port.reg.nr_rx_slots == 64,
		      "who makes it decides");
		reg.nr_tx_slots = reg.nr_rx_slots = 512;
		reg.nr_tx_rings = reg.nr_rx_rings = 4;
		other = port_open_as(own(names[i]), reg);
		check(other.reg.nr_tx_slots == 64 &&
		      other.reg.nr_rx_slots == 64 &&
		      other.reg.nr_tx_rings == 1 &&
		      other.reg.nr_rx_rings == 1,
		      "the next one is told what there is");
		port_close(&other);
		port_close(&port);
	}
}

static void
counts_of_an_interface(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_register reg = register_all();
	struct port port = port_open(cable.near), other;
	uint32_t slots = port.reg.nr_tx_slots;

	port_close(&port);
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	reg.nr_tx_rings = reg.nr_rx_rings = 4;
	reg.nr_host_tx_rings = 2;
	reg.nr_host_rx_rings = 3;
	port = port_open_as(cable.near, reg);
	check(port.reg.nr_tx_rings == 1 && port.reg.nr_rx_rings == 1 &&
	      port.reg.nr_tx_slots == slots, "the interface decides");
	check(port.reg.nr_host_tx_rings == 2 && port.reg.nr_host_rx_rings == 3,
	      "but for its host rings");
	reg.nr_host_tx_rings = reg.nr_host_rx_rings = 4;
	other = port_open_as(cable.near, reg);
	check(other.reg.nr_host_tx_rings == 2 &&
	      other.reg.nr_host_rx_rings == 3, "while nobody else has it");
}

static void
mtu_and_buffers(void)
{
	static const struct {
		int mtu;
		uint64_t flags;
		int error;
	} mtus[] = {
		{ 1500, 0, 0 },
		/* AF_XDP leaves room in front of a frame: 1792 bytes are left. */
		{ 1778, 0, 0 },
		/* Longer frames are fragments, of which a packet has 18. */
		{ 2049, 0, 0 },
		{ 9000, 0, 0 },
		{ 32242, 0, 0 },
		/* Where those fit no mode of AF_XDP, packet mode takes what fits. */
		{ 32243, 0, 0 },
		{ 32243, NR_TX_RINGS_ONLY, 0 },
	};
	struct cable cable = own_cable(1);
	size_t i;

	for (i = 0; i < COUNT(mtus); i++) {
		shell("ip link set %s mtu %d", cable.near, mtus[i].mtu);
		check_call(try_register(cable.near,
					mode_of(NR_REG_ALL_NIC, 0,
						mtus[i].flags)),
			   mtus[i].error,
			   line("MTU %d%s", mtus[i].mtu,
				mtus[i].flags ? ", only sending" : ""));
	}
}

static void
an_interface_in_use_keeps_its_shape(void)
{
	struct cable cable = own_cable(2);
	struct port port = port_open(cable.near);
	char line[128];

	snprintf(line, sizeof(line), "ip link set %s mtu 1400", cable.near);
	check(system(line) == 0, "one that fits");
	snprintf(line, sizeof(line),
		 "ethtool -L %s rx 1 tx 1 2>/dev/null", cable.near);
	check(system(line) != 0, "no other number of channels");
	port_close(&port);
}

/*
 * The kernel asks nobody whether a larger MTU suits, so it cannot be refused;
 * what is longer than a buffer then comes in several.
 */
static void
a_larger_mtu(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);
	static struct packet packet;
	char frame[2500];

	shell("ip link set %s mtu 3000 && ip link set %s mtu 3000", cable.near,
	      cable.far);
	frame_fill(frame, sizeof(frame), broadcast, mac_of(1), 1);
	require(send(cable.socket, frame, sizeof(frame), 0) ==
		(ssize_t)sizeof(frame), "send");
	cable_send(&cable, broadcast, mac_of(1), 2);
	check(port_take_packet(&port, &packet) && packet.slots == 2 &&
	      packet.length == sizeof(frame) && packet_sequence(&packet) == 1,
	      "a frame that needs two buffers");
	check_number(port_take(&port), 2, "and one that does not");
	port_close(&port);
}

static void
flags_without_effect(void)
{
	static const uint64_t flags[] = {
		NR_ACCEPT_VNET_HDR, 0x1000, 1ull << 40, 1ull << 63,
		0x8000000000001000,
	};
	size_t i;

	for (i = 0; i < COUNT(flags); i++) {
		struct port port = port_open_flags(own("vale$:a"), flags[i]);

		check(port.reg.nr_flags == flags[i], "flags 0x%llx",
		      (unsigned long long)flags[i]);
		check(port_exists(own("vale$:a")), "a port all the same");
		port_close(&port);
	}
}

/* 0x1000 meant NETMAP_NO_TX_POLL once, in another field. */
static void
not_no_tx_poll(void)
{
	struct port a = port_open_flags(own("p${1"), 0x1000);
	struct port b = port_open(own("p$}1"));

	port_put(&a, broadcast, mac_of(1), 3);
	check_number(wait_events(a.fd, POLLIN, 0), 0, "a poll for input");
	check_number(port_take(&b), 3, "transmits");
}

static const struct test_case cases[] = {
	{ "S-REG-1", "the first fault is told", the_first_fault_is_told },
	{ "S-REG-1", "a header must be accepted", a_header_must_be_accepted },
	{ "S-REG-1", "ports of a switch are busy",
	  ports_of_a_switch_are_busy },
	{ "S-REG-2", "names and kinds", names_and_kinds },
	{ "S-REG-2", "legacy modes are refused", legacy_modes_are_refused },
	{ "S-REG-2", "interfaces of the caller", interfaces_of_the_caller },
	{ "S-REG-4", "rings by mode", rings_by_mode },
	{ "S-REG-4", "a binding without rings", a_binding_without_rings },
	{ "S-REG-4", "host rings by mode", host_rings_by_mode },
	{ "S-REG-5", "exclusive pairs", exclusive_pairs },
	{ "S-REG-5", "sharers have one ring", sharers_have_one_ring },
	{ "S-REG-5", "ends of a pipe are independent",
	  ends_of_a_pipe_are_independent },
	{ "S-REG-5", "monitors heed no claims", monitors_heed_no_claims },
	{ "S-REG-6", "a second bind", a_second_bind },
	{ "S-REG-6", "a second bind of a persistent port",
	  a_second_bind_of_a_persistent_port },
	{ "S-REG-7", "outputs", outputs },
	{ "S-REG-7", "outputs of an interface", outputs_of_an_interface },
	{ "S-REG-7", "output of a zero-copy monitor",
	  output_of_a_zero_copy_monitor },
	{ "S-REG-8", "counts of a port that exists",
	  counts_of_a_port_that_exists },
	{ "S-REG-8", "counts of an interface", counts_of_an_interface },
	{ "S-REG-9", "MTU and buffers", mtu_and_buffers },
	{ "S-REG-10", "an interface in use keeps its shape",
	  an_interface_in_use_keeps_its_shape },
	{ "S-REG-10", "a larger MTU", a_larger_mtu },
	{ "S-REG-11", "flags without effect", flags_without_effect },
	{ "S-REG-11", "not NETMAP_NO_TX_POLL", not_no_tx_poll },
};

CHAPTER(cases)
