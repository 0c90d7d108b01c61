/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of before version 12: NIOCREGIF, NIOCGINFO and NIOCCONFIG
 * (S-LEG). Their names have 15 characters at most, so interfaces have short
 * ones, in a network namespace of the case's own.
 */
#include "extra.h"
#include "netns.h"
#include "packet.h"

/* What no request may touch. */
#define UNTOUCHED	0xa5a5

static struct nmreq
legacy_of(const char *name, uint16_t cmd)
{
	struct nmreq req;

	memset(&req, 0, sizeof(req));
	req.nr_version = api_version;
	req.nr_cmd = cmd;
	req.spare2[0] = UNTOUCHED;
	snprintf(req.nr_name, sizeof(req.nr_name), "%s", name);
	return req;
}

/* The request on a descriptor of its own, which is let go at once. */
static int
ask(unsigned long request, struct nmreq *req)
{
	int fd = device_open(), result, error;

	result = ioctl(fd, request, req);
	error = errno;
	close(fd);
	errno = error;
	return result;
}

static int
command(const char *name, uint16_t cmd, uint16_t arg1)
{
	struct nmreq req = legacy_of(name, cmd);

	req.nr_arg1 = arg1;
	return ask(NIOCREGIF, &req);
}

/* A port bound by the old request. */
static struct port
legacy_open(struct nmreq *req)
{
	struct port port;

	memset(&port, 0, sizeof(port));
	port.fd = device_open();
	require(ioctl(port.fd, NIOCREGIF, req) == 0, "NIOCREGIF %s",
		req->nr_name);
	port.reg.nr_memsize = req->nr_memsize;
	port.reg.nr_offset = req->nr_offset;
	port_map(&port);
	return port;
}

/* Bits: tx rings, host's, rx rings, host's. */
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

/* ---- S-LEG-1: versions and fields ---- */

static void
versions(void)
{
	static const struct {
		uint32_t version;
		int error;
	} asked[] = {
		{ 0, EINVAL }, { 1, EINVAL }, { 3, EINVAL }, { 4, EINVAL },
		{ 10, EINVAL }, { 11, EINVAL }, { 12, EINVAL },
		{ 13, EINVAL }, { 14, 0 }, { 15, 0 }, { 16, 0 }, { 99, 0 },
		{ 0x10000, 0 }, { 0x7fffffff, 0 }, { UINT32_MAX, 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq req = legacy_of(own("vale$:a"), 0);

		req.nr_version = asked[i].version;
		check_call(ask(NIOCREGIF, &req), asked[i].error,
			   line("NIOCREGIF, version %u", asked[i].version));
		check_number(req.nr_version, asked[i].version, "unchanged");
		req = legacy_of(own("vale$:a"), 0);
		req.nr_version = asked[i].version;
		check_call(ask(NIOCGINFO, &req), asked[i].error,
			   line("NIOCGINFO, version %u", asked[i].version));
		check_number(req.nr_version, asked[i].version, "unchanged");
	}
}

/* A program of those days, whatever it asks, is told that it is too old. */
static void
programs_of_before(void)
{
	static const uint32_t versions[] = { 11, 12, 13 };
	static const uint16_t commands[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
					     11, 12, 99 };
	struct port port = port_open(own("vale$:a"));
	size_t i, j;

	for (i = 0; i < COUNT(versions); i++) {
		for (j = 0; j < COUNT(commands); j++) {
			struct nmreq req = legacy_of(own("vale$:a"),
						     commands[j]), before;

			req.nr_version = versions[i];
			before = req;
			check_call(ask(NIOCREGIF, &req), EINVAL,
				   line("version %u, NIOCREGIF %u",
					versions[i], commands[j]));
			check(memcmp(&req, &before, sizeof(req)) == 0,
			      "comes back as it was");
			check_call(ask(NIOCGINFO, &req), EINVAL,
				   line("version %u, NIOCGINFO %u",
					versions[i], commands[j]));
			check(memcmp(&req, &before, sizeof(req)) == 0,
			      "comes back as it was");
		}
	}
	port_close(&port);
}

static void
fields_unchanged(void)
{
	static const uint16_t ringid = NETMAP_NO_TX_POLL | NETMAP_DO_RX_POLL;
	struct nmreq req = legacy_of(own("vale$:a"), 0);

	req.nr_ringid = ringid;
	req.nr_flags = NR_REG_ALL_NIC | NR_EXCLUSIVE | 1u << 30;
	req.nr_arg1 = UNTOUCHED;
	check_call(ask(NIOCREGIF, &req), 0, "NIOCREGIF");
	check(req.nr_ringid == ringid && req.nr_cmd == 0 &&
	      req.nr_arg1 == UNTOUCHED && req.spare2[0] == UNTOUCHED &&
	      req.nr_flags == (NR_REG_ALL_NIC | NR_EXCLUSIVE | 1u << 30) &&
	      strcmp(req.nr_name, own("vale$:a")) == 0,
	      "what is no output is as it was");

	req = legacy_of(own("vale$:a"), 0);
	req.nr_ringid = 77;
	req.nr_flags = 88;
	req.nr_arg1 = UNTOUCHED;
	req.nr_arg3 = 99;
	req.nr_offset = UNTOUCHED;
	check_call(ask(NIOCGINFO, &req), 0, "NIOCGINFO");
	check(req.nr_ringid == 77 && req.nr_flags == 88 &&
	      req.nr_arg1 == UNTOUCHED && req.nr_arg3 == 99 &&
	      req.nr_offset == UNTOUCHED && req.spare2[0] == UNTOUCHED,
	      "what is no output is as it was");
}

/* A name without its end is cut there. */
static void
long_names(void)
{
	struct nmreq req = legacy_of("", 0);
	char name[NETMAP_REQ_IFNAMSIZ];
	size_t length;
	int fd = device_open();

	snprintf(name, sizeof(name), "%s", own("vale$:a"));
	length = strlen(name);
	memset(name + length, 'x', sizeof(name) - length);
	memcpy(req.nr_name, name, sizeof(req.nr_name));
	check_call(ioctl(fd, NIOCREGIF, &req), 0, "16 characters");
	name[15] = 0;
	check(port_exists(name), "15 of them are the name");
}

/* ---- S-LEG-2: NIOCREGIF binds ---- */

/* A port with 3 tx and 2 rx rings: tx 0 to 2, none, rx 4 and 5, none. */
static void
modes(void)
{
	static const struct {
		uint16_t ringid;
		uint32_t flags;
		int error;
		uint64_t rings;
	} asked[] = {
		{ 0, 0, 0, 0x37 },
		{ 5, 0, 0, 0x37 },
		{ NETMAP_HW_RING, 0, 0, 0x11 },
		{ NETMAP_HW_RING | 1, 0, 0, 0x22 },
		{ NETMAP_HW_RING | 2, 0, 0, 0x14 },
		{ NETMAP_HW_RING | 3, 0, EINVAL, 0 },
		{ NETMAP_SW_RING, 0, EINVAL, 0 },
		/* The host's comes first. */
		{ NETMAP_SW_RING | NETMAP_HW_RING, 0, EINVAL, 0 },
		{ NETMAP_NO_TX_POLL, 0, 0, 0x37 },
		{ NETMAP_HW_RING | NETMAP_NO_TX_POLL | NETMAP_DO_RX_POLL | 1,
		  0, 0, 0x22 },
		{ 0, NR_REG_ALL_NIC, 0, 0x37 },
		/* A mode of the new kind decides, and not these bits. */
		{ NETMAP_HW_RING | 1, NR_REG_ALL_NIC, 0, 0x37 },
		{ NETMAP_SW_RING, NR_REG_ALL_NIC, 0, 0x37 },
		{ 1, NR_REG_ONE_NIC, 0, 0x22 },
		{ NETMAP_NO_TX_POLL | 1, NR_REG_ONE_NIC, 0, 0x22 },
		{ 3, NR_REG_ONE_NIC, EINVAL, 0 },
		{ 0, NR_REG_SW, EINVAL, 0 },
		{ 0, NR_REG_NIC_SW, EINVAL, 0 },
		{ 0, NR_REG_ONE_SW, EINVAL, 0 },
		{ 0, 9, EINVAL, 0 },
		{ 0, 15, EINVAL, 0 },
		{ 0, NR_TX_RINGS_ONLY, 0, 0x07 },
		{ 1, NR_REG_ONE_NIC | NR_RX_RINGS_ONLY, 0, 0x20 },
	};
	struct nmreq_register reg = register_all();
	struct port port;
	size_t i;

	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	port = port_open_as(own("vale$:a"), reg);
	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq req = legacy_of(own("vale$:a"), 0);
		struct port other;

		req.nr_ringid = asked[i].ringid;
		req.nr_flags = asked[i].flags;
		if (asked[i].error != 0) {
			check_call(ask(NIOCREGIF, &req), asked[i].error,
				   line("ring 0x%x, flags 0x%x",
					asked[i].ringid, asked[i].flags));
			continue;
		}
		other = legacy_open(&req);
		check(visible(&other) == asked[i].rings,
		      "ring 0x%x, flags 0x%x: 0x%llx, expected 0x%llx",
		      asked[i].ringid, asked[i].flags,
		      (unsigned long long)visible(&other),
		      (unsigned long long)asked[i].rings);
		port_close(&other);
	}
	port_close(&port);
}

/* An interface with 2 queues: tx 0, 1, host, rx 0, 1, host. */
static void
modes_of_an_interface(void)
{
	static const struct {
		uint16_t ringid;
		uint32_t flags;
		int error;
		uint64_t rings;
	} asked[] = {
		{ 0, 0, 0, 0x1b },
		{ NETMAP_HW_RING | 1, 0, 0, 0x12 },
		{ NETMAP_SW_RING, 0, 0, 0x24 },
		{ NETMAP_SW_RING | 1, 0, 0, 0x24 },
		{ 0, NR_REG_SW, 0, 0x24 },
		{ 0, NR_REG_NIC_SW, 0, 0x3f },
		{ 0, NR_REG_ONE_SW, 0, 0x24 },
		{ 1, NR_REG_ONE_SW, EINVAL, 0 },
	};
	struct cable cable;
	size_t i;

	netns_own();
	cable = cable_new("n0", "f0", 2);
	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq req = legacy_of(cable.near, 0);
		struct port port;

		req.nr_ringid = asked[i].ringid;
		req.nr_flags = asked[i].flags;
		if (asked[i].error != 0) {
			check_call(ask(NIOCREGIF, &req), asked[i].error,
				   line("ring 0x%x, flags 0x%x",
					asked[i].ringid, asked[i].flags));
			continue;
		}
		port = legacy_open(&req);
		check(visible(&port) == asked[i].rings,
		      "ring 0x%x, flags 0x%x: 0x%llx, expected 0x%llx",
		      asked[i].ringid, asked[i].flags,
		      (unsigned long long)visible(&port),
		      (unsigned long long)asked[i].rings);
		check(port.nifp->ni_host_tx_rings == 1 &&
		      port.nifp->ni_host_rx_rings == 1, "one host ring each");
		check(req.nr_tx_rings == 2 && req.nr_rx_rings == 2 &&
		      req.nr_arg2 == 1, "outputs");
		port_close(&port);
	}
}

static void
outputs(void)
{
	struct nmreq req = legacy_of(own("vale$:a"), 0);
	struct nmreq_port_info_get info;
	struct port port, other;

	req.nr_tx_rings = 2;
	req.nr_rx_rings = 3;
	req.nr_tx_slots = 64;
	req.nr_rx_slots = 128;
	req.nr_arg3 = 7;
	port = legacy_open(&req);
	check(req.nr_tx_rings == 2 && req.nr_rx_rings == 3 &&
	      req.nr_tx_slots == 64 && req.nr_rx_slots == 128,
	      "rings and slots asked for");
	check_number(req.nr_arg3, 7, "extra buffers");
	check_number(extra_count(&port, port_rx(&port), 10), 7, "in a list");
	memset(&info, 0, sizeof(info));
	require(port_info(own("vale$:a"), &info) == 0, "PORT_INFO_GET");
	check(req.nr_arg2 == info.nr_mem_id &&
	      req.nr_memsize == info.nr_memsize, "id and size of the region");
	check(strcmp(port.nifp->ni_name, own("vale$:a")) == 0,
	      "the netmap_if is at its offset");

	/* nr_arg2 asks for a region, nr_arg1 for nothing. */
	req = legacy_of(own("vale$:b"), 0);
	req.nr_arg1 = UNTOUCHED;
	req.nr_arg2 = info.nr_mem_id;
	other = legacy_open(&req);
	check_number(req.nr_arg2, info.nr_mem_id, "the region asked for");
	check(other.nifp->ni_tx_rings == 1 && req.nr_tx_slots == 1024,
	      "the defaults where nothing is asked");
	check_passes(&port, &other, "a port like any other");
	req = legacy_of(own("vale$:c"), 0);
	req.nr_arg2 = NO_REGION;
	check_call(ask(NIOCREGIF, &req), EINVAL, "no such region");
}

static void
failures(void)
{
	struct port held = port_open_flags(own("vale$:held"), NR_EXCLUSIVE);
	struct nmreq req = legacy_of("nosuchif0", 0);
	int fd = device_open();

	check_call(ask(NIOCREGIF, &req), ENXIO, "no such interface");
	req = legacy_of("valeX", 0);
	check_call(ask(NIOCREGIF, &req), ENOMEM, "no good name");
	req = legacy_of("", 0);
	check_call(ask(NIOCREGIF, &req), ENXIO, "no name");
	req = legacy_of(own("vale$:held"), 0);
	check_call(ioctl(fd, NIOCREGIF, &req), EBUSY, "a port held by another");
	port_close(&held);
	check_call(ioctl(fd, NIOCREGIF, &req), 0, "let go, the same request");
	check_call(ioctl(fd, NIOCREGIF, &req), EBUSY, "a second time");
}

static void
flags_pass(void)
{
	struct nmreq req = legacy_of(own("vale$:a"), 0);
	struct nmreq_port_hdr hdr = { 12, 0 };
	struct port port, monitor, other;
	int fd = device_open();

	req.nr_flags = NR_REG_ALL_NIC | NR_EXCLUSIVE;
	port = legacy_open(&req);
	req.nr_flags = NR_REG_ALL_NIC;
	check_call(ask(NIOCREGIF, &req), EBUSY, "NR_EXCLUSIVE");
	req.nr_flags = NR_REG_ALL_NIC | NR_MONITOR_RX;
	monitor = legacy_open(&req);
	other = port_open(own("vale$:b"));
	port_send(&other, broadcast, mac_of(1), 3);
	check_number(port_take(&port), 3, "a frame");
	check_number(port_take(&monitor), 3, "NR_MONITOR_RX");
	check_number(req.nr_flags, NR_REG_ALL_NIC | NR_MONITOR_RX,
		     "nr_flags as they were");
	port_close(&monitor);
	port_close(&port);
	port_close(&other);

	port = port_open(own("vale$:c"));
	require(control(fd, NETMAP_REQ_PORT_HDR_SET, own("vale$:c"), &hdr) ==
		0, "PORT_HDR_SET");
	req = legacy_of(own("vale$:c"), 0);
	check_call(ask(NIOCREGIF, &req), EIO, "without NR_ACCEPT_VNET_HDR");
	req.nr_flags = NR_ACCEPT_VNET_HDR;
	check_call(ask(NIOCREGIF, &req), 0, "with it");
}

static void
no_tx_poll(void)
{
	static const struct {
		uint16_t ringid;
		int sends;
	} asked[] = {
		{ 0, 1 }, { NETMAP_DO_RX_POLL, 1 }, { NETMAP_NO_TX_POLL, 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct port peer = port_open(own("p$}1")), port;
		struct nmreq req = legacy_of(own("p${1"), 0);

		req.nr_ringid = asked[i].ringid;
		port = legacy_open(&req);
		port_put(&port, broadcast, mac_of(1), 5);
		wait_events(port.fd, POLLIN, 0);
		port_rxsync(&peer);
		check_number(!nm_ring_empty(port_rx(&peer)), asked[i].sends,
			     line("ring 0x%x: a poll for input sends",
				  asked[i].ringid));
		wait_events(port.fd, POLLOUT, 0);
		check_number(port_take(&peer), 5, "one for output does");
		port_close(&port);
		port_close(&peer);
	}
}

static void
pipes_by_mode(void)
{
	struct nmreq req = legacy_of(own("p$"), 0);
	struct port master, slave, named;

	req.nr_flags = NR_REG_PIPE_MASTER;
	req.nr_ringid = 3;
	master = legacy_open(&req);
	check(strcmp(req.nr_name, own("p$")) == 0 && req.nr_ringid == 3 &&
	      req.nr_flags == NR_REG_PIPE_MASTER, "name, ring and mode stay");
	req.nr_flags = NR_REG_PIPE_SLAVE;
	slave = legacy_open(&req);
	check_passes(&master, &slave, "one way");
	check_passes(&slave, &master, "the other way");
	port_close(&slave);
	named = port_open(own("p$}3"));
	check_passes(&master, &named, "the same pipe by its name");
	port_close(&named);
	req = legacy_of(own("p$}3"), 0);
	req.nr_flags = NR_REG_ALL_NIC;
	named = legacy_open(&req);
	check_passes(&master, &named, "the name in the old request");
	port_close(&named);
	port_close(&master);

	req = legacy_of(own("p$"), 0);
	req.nr_flags = NR_REG_PIPE_MASTER | NR_EXCLUSIVE;
	req.nr_ringid = NETMAP_NO_TX_POLL | 4095;
	master = legacy_open(&req);
	named = port_open(own("p$}4095"));
	check_passes(&master, &named, "12 bits of the ring are the id");
	check_number(port_tx(&master)->ringid, 0, "its ring is 0");
	check_call(ask(NIOCREGIF, &req), EBUSY, "flags pass as well");
	port_close(&named);
	port_close(&master);

	/* Of a name that ends in a brace: the id of that pipe goes on. */
	req = legacy_of(own("vale$:p"), 0);
	req.nr_flags = NR_REG_PIPE_SLAVE;
	slave = legacy_open(&req);
	named = port_open(own("vale$:p{0"));
	check_passes(&named, &slave, "of a switch's port");
}

static void
null_ports(void)
{
	struct port vale = port_open(own("vale$:a")), port;
	struct nmreq req = legacy_of("label", 0);

	req.nr_flags = NR_REG_NULL;
	check_call(ask(NIOCREGIF, &req), EINVAL, "without a region");
	req.nr_arg2 = vale.reg.nr_mem_id;
	req.nr_arg3 = 5;
	port = legacy_open(&req);
	check_number(req.nr_arg3, 5, "buffers of a null port");
	check_number(extra_count(&port, port_rx(&vale), 10), 5, "in a list");
}

/* ---- S-LEG-3: other commands ---- */

static void
unknown_commands(void)
{
	static const struct {
		uint16_t cmd;
		int error;
	} asked[] = {
		{ NETMAP_BDG_REGOPS, EINVAL }, { NETMAP_BDG_LIST, EINVAL },
		{ NETMAP_PT_HOST_CREATE, ENOMEM },
		{ NETMAP_PT_HOST_DELETE, ENOMEM }, { 13, EINVAL },
		{ 99, EINVAL }, { 0xffff, EINVAL },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		check_call(command(own("vale$:a"), asked[i].cmd, 0),
			   asked[i].error, line("nr_cmd %u", asked[i].cmd));
		check(!port_exists(own("vale$:a")), "no port is made");
	}
}

static void
errors_of_commands(void)
{
	static const struct {
		uint16_t cmd;
		const char *name;
		uint16_t arg1;
		int error;
	} asked[] = {
		{ NETMAP_BDG_ATTACH, "vale$:nosuch", 0, EINVAL },
		{ NETMAP_BDG_ATTACH, "nosuch", 0, EINVAL },
		{ NETMAP_BDG_DETACH, "vale$:nosuch", 0, ENXIO },
		{ NETMAP_BDG_DETACH, "nosuch", 0, EINVAL },
		{ NETMAP_BDG_DELIF, "nosuch", 0, ENXIO },
		{ NETMAP_BDG_NEWIF, "vale$", 0, EINVAL },
		{ NETMAP_BDG_VNET_HDR, "vale$:no", 10, ENXIO },
		{ NETMAP_VNET_HDR_GET, "nosuch", 0, ENXIO },
		{ NETMAP_BDG_POLLING_ON, "nosuch", 1, EINVAL },
		{ NETMAP_BDG_POLLING_OFF, "nosuch", 1, EINVAL },
		{ NETMAP_BDG_POLLING_ON, "vale$:no", 1, ENXIO },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++)
		check_call(command(own(asked[i].name), asked[i].cmd,
				   asked[i].arg1), asked[i].error,
			   line("nr_cmd %u of %s", asked[i].cmd,
				own(asked[i].name)));
}

static void
header_lengths(void)
{
	static const uint16_t lengths[] = { 10, 12, 0 };
	struct port port = port_open(own("vale$:a"));
	struct nmreq_port_hdr hdr;
	struct nmreq req;
	size_t i;

	for (i = 0; i < COUNT(lengths); i++) {
		check_call(command(own("vale$:a"), NETMAP_BDG_VNET_HDR,
				   lengths[i]), 0, "set");
		req = legacy_of(own("vale$:a"), NETMAP_VNET_HDR_GET);
		req.nr_arg1 = UNTOUCHED;
		check_call(ask(NIOCREGIF, &req), 0, "asked");
		check_number(req.nr_arg1, lengths[i], "the length set");
		memset(&hdr, 0, sizeof(hdr));
		require(control(port.fd, NETMAP_REQ_PORT_HDR_GET,
				own("vale$:a"), &hdr) == 0, "PORT_HDR_GET");
		check_number(hdr.nr_hdr_len, lengths[i],
			     "which the new request tells as well");
	}
	check_call(command(own("vale$:a"), NETMAP_BDG_VNET_HDR, 11), EINVAL,
		   "11 bytes");
}

static void
persistent_ports(void)
{
	struct nmreq req = legacy_of("v", NETMAP_BDG_NEWIF);
	struct nmreq_port_info_get info;

	netns_own();
	req.nr_tx_slots = 64;
	req.nr_rx_slots = 128;
	req.nr_tx_rings = 2;
	req.nr_rx_rings = 1;
	check_call(ask(NIOCREGIF, &req), 0, "NEWIF");
	check(if_nametoindex("v") != 0, "an interface");
	memset(&info, 0, sizeof(info));
	require(port_info("v", &info) == 0, "PORT_INFO_GET");
	check(info.nr_tx_slots == 64 && info.nr_rx_slots == 128 &&
	      info.nr_tx_rings == 2 && info.nr_rx_rings == 1,
	      "with the counts asked for");
	check_call(ask(NIOCREGIF, &req), EEXIST, "again");
	check_call(command("v", NETMAP_BDG_DELIF, 0), 0, "DELIF");
	check(if_nametoindex("v") == 0, "no interface");
	check_call(command("v", NETMAP_BDG_DELIF, 0), ENXIO, "again");
}

static void
attaching(void)
{
	char host[NETMAP_REQ_IFNAMSIZ];
	struct cable cable;
	struct port port;

	netns_own();
	cable = cable_new("n0", "f0", 1);
	snprintf(host, sizeof(host), "%s^", own("vale$:n0"));
	port = port_open(own("vale$:a"));
	check_call(command(own("vale$:n0"), NETMAP_BDG_ATTACH, 0), 0,
		   "ATTACH");
	check(port_exists(own("vale$:n0")) && !port_exists(host),
	      "the interface alone");
	port_send(&port, broadcast, mac_of(1), 7);
	check_number(cable_take(&cable), 7, "a frame to the wire");
	check_call(command(own("vale$:n0"), NETMAP_BDG_ATTACH, 0), EBUSY,
		   "again");
	check_call(command(own("vale$:n0"), NETMAP_BDG_DETACH, 0), 0,
		   "DETACH");
	check(!port_exists(own("vale$:n0")), "gone");
	check_call(command(own("vale$:n0"), NETMAP_BDG_ATTACH,
			   NETMAP_BDG_HOST), 0, "ATTACH with the host's");
	check(port_exists(own("vale$:n0")) && port_exists(host),
	      "the interface and the host");
	check_call(command(own("vale$:n0"), NETMAP_BDG_DETACH, 0), 0,
		   "DETACH");
	check(!port_exists(own("vale$:n0")) && !port_exists(host),
	      "both are gone");
}

static void
polling(void)
{
	struct nmreq req;

	netns_own();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("needs two CPUs");
	cable_new("n0", "f0", 1);
	require(command(own("vale$:n0"), NETMAP_BDG_ATTACH, 0) == 0, "ATTACH");
	req = legacy_of(own("vale$:n0"), NETMAP_BDG_POLLING_ON);
	req.nr_flags = NR_REG_ALL_NIC;
	check_call(ask(NIOCREGIF, &req), EINVAL, "no CPU");
	req.nr_arg1 = 2;
	check_call(ask(NIOCREGIF, &req), EINVAL, "two, where one serves all");
	req.nr_arg1 = 1;
	check_call(ask(NIOCREGIF, &req), 0, "one CPU");
	check_call(ask(NIOCREGIF, &req), EFAULT, "again");
	check_call(command(own("vale$:n0"), NETMAP_BDG_DETACH, 0), EBUSY,
		   "it is in use");
	req.nr_cmd = NETMAP_BDG_POLLING_OFF;
	check_call(ask(NIOCREGIF, &req), 0, "off");
	check_call(ask(NIOCREGIF, &req), EFAULT, "again");
	/* A CPU for each ring of the same number; there is ring 0 only. */
	req.nr_cmd = NETMAP_BDG_POLLING_ON;
	req.nr_flags = NR_REG_ONE_NIC;
	req.nr_ringid = 1;
	check_call(ask(NIOCREGIF, &req), EINVAL, "CPU 1 has no ring");
	req.nr_ringid = 0;
	check_call(ask(NIOCREGIF, &req), 0, "CPU 0 has one");
	req.nr_cmd = NETMAP_BDG_POLLING_OFF;
	check_call(ask(NIOCREGIF, &req), 0, "off");
	req.nr_cmd = NETMAP_BDG_POLLING_ON;
	req.nr_flags = NR_REG_SW;
	check_call(ask(NIOCREGIF, &req), EINVAL, "no other mode");
	req.nr_cmd = NETMAP_BDG_POLLING_OFF;
	ask(NIOCREGIF, &req);
	check_call(command(own("vale$:n0"), NETMAP_BDG_DETACH, 0), 0,
		   "DETACH");
}

/* ---- S-LEG-4: NIOCGINFO ---- */

static void
info(void)
{
	static const uint16_t commands[] = { 0, 1, 2, 3, 5, 6, 7, 8, 12, 99 };
	struct nmreq_register reg = register_all();
	struct port port;
	struct nmreq req;
	size_t i;

	reg.nr_tx_rings = 2;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 128;
	port = port_open_as(own("vale$:a"), reg);
	for (i = 0; i < COUNT(commands); i++) {
		req = legacy_of(own("vale$:a"), commands[i]);
		check_call(ask(NIOCGINFO, &req), 0,
			   line("nr_cmd %u", commands[i]));
		check(req.nr_tx_rings == 2 && req.nr_rx_rings == 1 &&
		      req.nr_tx_slots == 64 && req.nr_rx_slots == 128 &&
		      req.nr_memsize == port.reg.nr_memsize &&
		      req.nr_arg2 == port.reg.nr_mem_id, "what there is");
	}
	/* Also on the descriptor that is bound. */
	req = legacy_of(own("vale$:a"), 0);
	check_call(ioctl(port.fd, NIOCGINFO, &req), 0, "a bound descriptor");
	req = legacy_of(own("vale$:b"), 0);
	check_call(ask(NIOCGINFO, &req), 0, "a port that comes and goes");
	check(req.nr_tx_slots == 1024 && req.nr_arg2 != port.reg.nr_mem_id &&
	      !port_exists(own("vale$:b")), "for the question");
	req = legacy_of("", 0);
	req.nr_arg2 = port.reg.nr_mem_id;
	check_call(ask(NIOCGINFO, &req), 0, "a region");
	check_number(req.nr_memsize, (long long)port.reg.nr_memsize,
		     "its size");
	req = legacy_of("nosuchif0", 0);
	check_call(ask(NIOCGINFO, &req), ENXIO, "no such interface");
	req = legacy_of("valeX", 0);
	check_call(ask(NIOCGINFO, &req), ENOMEM, "no good name");
	req = legacy_of("", 0);
	req.nr_arg2 = NO_REGION;
	check_call(ask(NIOCGINFO, &req), EINVAL, "no such region");
}

static void
list_by_name(void)
{
	struct port a = port_open(own("vale$:a")), b = port_open(own("vale$:b"));
	struct nmreq_vale_list list;
	struct nmreq req = legacy_of(own("vale$:b"), NETMAP_BDG_LIST);

	memset(&list, 0, sizeof(list));
	require(control(a.fd, NETMAP_REQ_VALE_LIST, own("vale$:b"), &list) ==
		0, "VALE_LIST");
	check_call(ask(NIOCGINFO, &req), 0, "a port");
	check(req.nr_arg1 == list.nr_bridge_idx &&
	      req.nr_arg2 == list.nr_port_idx, "its place");
	check(strcmp(req.nr_name, own("vale$:b")) == 0, "the name stays");
	req = legacy_of(own("vale$:c"), NETMAP_BDG_LIST);
	check_call(ask(NIOCGINFO, &req), 0, "no such port");
	check(req.nr_arg1 == list.nr_bridge_idx && req.nr_arg2 == 255,
	      "place 255 on its switch");
	req = legacy_of(own("vale$no:c"), NETMAP_BDG_LIST);
	check_call(ask(NIOCGINFO, &req), ENOENT, "no such switch");
	req = legacy_of("nosuchif0", NETMAP_BDG_LIST);
	check_call(ask(NIOCGINFO, &req), EINVAL, "no switch's name");
	port_close(&b);
	port_close(&a);
}

static void
list_all(void)
{
	struct port a = port_open(own("vale$:a")), b = port_open(own("vale$:b"));
	struct nmreq req = legacy_of("", NETMAP_BDG_LIST);
	int found = 0, turns;

	for (turns = 0; turns < 1000; turns++) {
		int result = ask(NIOCGINFO, &req);

		if (result != 0) {
			check_call(result, ENOENT, "the end of the list");
			break;
		}
		found += strcmp(req.nr_name, own("vale$:a")) == 0;
		found += strcmp(req.nr_name, own("vale$:b")) == 0;
		req.nr_name[0] = 0;
		req.nr_arg2++;
	}
	check_number(found, 2, "both ports, each once");
	port_close(&a);
	port_close(&b);
}

/* ---- S-LEG-5: NIOCCONFIG ---- */

static void
configuration(void)
{
	static const char *const names[] = {
		"vale$:a", "vale$:b", "vale$:", "vale$", "vale$no:a", "",
		"nosuchif0",
	};
	struct port port = port_open(own("vale$:a"));
	struct nm_ifreq req;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		memset(&req, 0x5a, sizeof(req));
		snprintf(req.nifr_name, sizeof(req.nifr_name), "%s",
			 own(names[i]));
		check_call(ioctl(port.fd, NIOCCONFIG, &req), EINVAL,
			   own(names[i]));
		check(req.data[0] == 0x5a && req.data[255] == 0x5a,
		      "its data comes back");
	}
}

static const struct test_case cases[] = {
	{ "S-LEG-1", "versions", versions },
	{ "S-LEG-1", "programs of before", programs_of_before },
	{ "S-LEG-1", "fields that are no outputs", fields_unchanged },
	{ "S-LEG-1", "long names", long_names },
	{ "S-LEG-2", "modes", modes },
	{ "S-LEG-2", "modes of an interface", modes_of_an_interface },
	{ "S-LEG-2", "outputs", outputs },
	{ "S-LEG-2", "failures", failures },
	{ "S-LEG-2", "flags pass", flags_pass },
	{ "S-LEG-2", "NETMAP_NO_TX_POLL", no_tx_poll },
	{ "S-LEG-2", "pipes by mode", pipes_by_mode },
	{ "S-LEG-2", "null ports", null_ports },
	{ "S-LEG-3", "unknown commands", unknown_commands },
	{ "S-LEG-3", "errors", errors_of_commands },
	{ "S-LEG-3", "header lengths", header_lengths },
	{ "S-LEG-3", "persistent ports", persistent_ports },
	{ "S-LEG-3", "attaching", attaching },
	{ "S-LEG-3", "polling", polling },
	{ "S-LEG-4", "a port or a region", info },
	{ "S-LEG-4", "a list by name", list_by_name },
	{ "S-LEG-4", "a list of all", list_all },
	{ "S-LEG-5", "no switch is configured so", configuration },
};

CHAPTER(cases)
