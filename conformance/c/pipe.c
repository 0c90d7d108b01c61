/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes: their names, and their parents (S-PIPE-1, 2). */
#include "attach.h"
#include "pipe.h"

/* ---- S-PIPE-1: names ---- */

static void
names(void)
{
	static const struct {
		const char *name;
		int error;
	} table[] = {
		{ "c${1", 0 }, { "c$}1", 0 }, { "c${in-7", 0 },
		{ "c$}any text", 0 }, { "vale$:p{x", 0 }, { "vale$:p}x", 0 },
		{ "c${", EINVAL }, { "c$}", EINVAL }, { "{1", EINVAL },
		{ "}1", EINVAL }, { "{", EINVAL }, { "}", EINVAL },
		{ "vale$:p{", EINVAL }, { "c$}1{", EINVAL },
	};
	size_t i;

	for (i = 0; i < COUNT(table); i++)
		check_call(try_register(own(table[i].name), register_all()),
			   table[i].error, own(table[i].name));
}

/* The last { counts: what follows it is all of the id. */
static void
id_after_last_brace(void)
{
	struct port master = port_open(own("c${a}b")),
		    slave = port_open(own("c$}a}b"));

	/* c}a}b is the slave a}b only if the first } were to count. */
	check(master.fd >= 0 && slave.fd >= 0, "both names are pipes");
	port_close(&slave);
	send_frames(&master, 1, 1);
	check_number(tx_room(&master), 1022, "c{a}b is a master");
}

static void
modes(void)
{
	static const struct {
		uint32_t mode;
		int error;
	} table[] = {
		{ NR_REG_ALL_NIC, 0 }, { NR_REG_ONE_NIC, 0 },
		{ NR_REG_SW, EINVAL }, { NR_REG_NIC_SW, EINVAL },
		{ NR_REG_ONE_SW, EINVAL }, { NR_REG_DEFAULT, EINVAL },
		{ NR_REG_PIPE_MASTER, EINVAL }, { NR_REG_PIPE_SLAVE, EINVAL },
	};
	char text[32];
	size_t i;

	for (i = 0; i < COUNT(table); i++) {
		struct nmreq_register reg = register_all();
		int fd = device_open();

		reg.nr_mode = table[i].mode;
		snprintf(text, sizeof(text), "mode %u", table[i].mode);
		check_call(control(fd, NETMAP_REQ_REGISTER, own("c${1"), &reg),
			   table[i].error, text);
		if (table[i].error) {
			reg = register_all();
			check_call(control(fd, NETMAP_REQ_REGISTER,
					   own("c${1"), &reg), 0,
				   "the descriptor stays usable");
		}
		close(fd);
	}
}

/* ---- S-PIPE-2: parents ---- */

static void
cookie_parent(void)
{
	struct pipe_ends ends = pipe_open();

	check_works(&ends.master, &ends.slave);
	check(ends.master.reg.nr_mem_id > 1, "a region of its own");
}

static int
region_exists(uint16_t id)
{
	struct nmreq_port_info_get info;

	memset(&info, 0, sizeof(info));
	info.nr_mem_id = id;
	return port_info("", &info) == 0;
}

/*
 * In the original the parent comes into being as a network device. Here it is a
 * name and a region: a device that comes and goes with each pipe would be seen,
 * and configured, by everything else on the machine.
 */
static void
cookie_is_no_device(void)
{
	struct port one, two;
	uint16_t region;

	netns_own();
	one = port_open(own("c${1"));
	region = one.reg.nr_mem_id;
	check(if_nametoindex(own("c$")) == 0, "no device with a pipe");
	check_call(newif(own("c$")), EEXIST, "the name is taken");
	check(region_exists(region), "there is its region");
	two = port_open(own("c$}2"));
	check_number(two.reg.nr_mem_id, region, "the region of all its pipes");
	port_close(&one);
	check(if_nametoindex(own("c$")) == 0, "no device with its last pipe");
	check_call(newif(own("c$")), EEXIST, "the name is still taken");
	check(region_exists(region), "there is still its region");
	port_close(&two);
	check(!region_exists(region), "the region goes with the last pipe");
	check_call(newif(own("c$")), 0, "so does the name");
	check_call(delif(own("c$")), 0, "VALE_DELIF");
}

static void
vale_parent(void)
{
	struct pipe_ends ends =
		pipe_open_as(own("vale$:p"), "1", register_all());
	struct port other = port_open(own("vale$:q"));

	check_works(&ends.master, &ends.slave);
	check(port_exists(own("vale$:p")), "the parent is a port");
	port_send(&other, broadcast, mac_of(1), 1);
	port_rxsync(&ends.slave);
	check(nm_ring_empty(port_rx(&ends.slave)) &&
	      nm_ring_empty(port_rx(&ends.master)),
	      "frames for the parent are not for the pipe");
	port_close(&ends.master);
	check(port_exists(own("vale$:p")), "while one end is open");
	port_close(&ends.slave);
	check(!port_exists(own("vale$:p")), "no longer");
}

/* Also when the parent is in use, and after its user has gone. */
static void
bound_parent(void)
{
	struct port parent = port_open(own("vale$:p"));
	struct pipe_ends ends =
		pipe_open_as(own("vale$:p"), "1", register_all());
	struct port other;

	check_number(ends.master.reg.nr_mem_id, parent.reg.nr_mem_id,
		     "the parent's region");
	check_works(&ends.master, &ends.slave);
	port_close(&parent);
	check_works(&ends.master, &ends.slave);
	parent = port_open(own("vale$:p"));
	other = port_open(own("vale$:q"));
	port_send(&parent, broadcast, mac_of(1), 5);
	check_number(port_take(&other), 5, "the parent opened after its pipe");
	port_close(&ends.master);
	port_close(&ends.slave);
	port_send(&parent, broadcast, mac_of(1), 6);
	check_number(port_take(&other), 6, "and still there without it");
}

static void
persistent_parent(void)
{
	const char *name = persistent();
	struct pipe_ends ends = pipe_open_as(name, "1", register_all());

	check_works(&ends.master, &ends.slave);
	port_close(&ends.master);
	port_close(&ends.slave);
	check(if_nametoindex(name) != 0, "it does not go with the pipe");
	check_call(delif(name), 0, "VALE_DELIF");
}

static void
nic_parent(void)
{
	struct pipe_ends ends;
	struct cable cable;
	struct port nic;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	ends = pipe_open_as(own("n$"), "1", register_all());
	check_number(ends.master.reg.nr_mem_id, 1, "the global region");
	check_works(&ends.master, &ends.slave);
	/* The interface is not in netmap mode for its pipes' sake. */
	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(rx_count(&ends.master) + rx_count(&ends.slave), 0,
		     "frames of the interface are not for the pipe");
	nic = port_open(own("n$"));
	check_number(nic.reg.nr_mem_id, 1, "the same region");
	check_works(&ends.master, &ends.slave);
	port_send(&nic, broadcast, mac_of(1), 2);
	check_number(cable_take(&cable), 2, "the interface works as well");
}

static void
attached_parent(void)
{
	const char *there = on(1, own("n$"));

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	require(attach(there) == 0, "VALE_ATTACH");
	check_call(try_register(own("n${1"), register_all()), EBUSY,
		   "a pipe on an attached interface");
	check_call(detach(there), 0, "VALE_DETACH");
}

static void
absent_pipe(void)
{
	struct nmreq_port_hdr hdr;

	memset(&hdr, 0, sizeof(hdr));
	check_call(control_once(NETMAP_REQ_PORT_HDR_GET, own("c${1"), &hdr),
		   ENODEV, "asked without creating it");
	check(!port_exists(own("vale$:p")), "no parent either");
	check_call(control_once(NETMAP_REQ_PORT_HDR_GET, own("vale$:p{1"),
				&hdr), ENODEV, "on a switch");
	check(!port_exists(own("vale$:p")), "no port is left");
}

static const struct test_case cases[] = {
	{ "S-PIPE-1", "names", names },
	{ "S-PIPE-1", "the id follows the last brace", id_after_last_brace },
	{ "S-PIPE-1", "modes", modes },
	{ "S-PIPE-2", "a name that is no port's", cookie_parent },
	{ "S-PIPE-2", "such a name becomes no device", cookie_is_no_device },
	{ "S-PIPE-2", "a VALE port", vale_parent },
	{ "S-PIPE-2", "a VALE port in use", bound_parent },
	{ "S-PIPE-2", "a persistent port", persistent_parent },
	{ "S-PIPE-2", "an interface", nic_parent },
	{ "S-PIPE-2", "an attached interface", attached_parent },
	{ "S-PIPE-2", "asked without creating it", absent_pipe },
};

CHAPTER(cases)
