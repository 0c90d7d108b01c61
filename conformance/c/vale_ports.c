/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that outlive their users: persistent ports, attached interfaces, the
 * list of them all, and polling (S-VALE-12 to 19).
 */
#include "attach.h"
#include "lan.h"

#include <net/if_arp.h>

static int
info(const char *name, struct nmreq_port_info_get *info)
{
	memset(info, 0, sizeof(*info));
	return port_info(name, info);
}

/* ---- S-VALE-12: NEWIF ---- */

static int
interface_get(const char *name, unsigned long what, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), result;

	memset(request, 0, sizeof(*request));
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
	result = ioctl(fd, what, request);
	close(fd);
	return result;
}

static void
is_an_interface(void)
{
	const char *name = persistent();
	struct ifreq request, second;

	check(if_nametoindex(name) != 0, "an interface of the host's");
	check_call(interface_get(name, SIOCGIFMTU, &request), 0, "its MTU");
	check_number(request.ifr_mtu, 1500, "its MTU");
	check_call(interface_get(name, SIOCGIFHWADDR, &request), 0,
		   "its address");
	check_number(request.ifr_hwaddr.sa_family, ARPHRD_ETHER, "Ethernet");
	check(!(request.ifr_hwaddr.sa_data[0] & 1), "not a group's address");
	require(newif(own("q$")) == 0, "a second one");
	interface_get(own("q$"), SIOCGIFHWADDR, &second);
	check(memcmp(request.ifr_hwaddr.sa_data, second.ifr_hwaddr.sa_data,
		     6) != 0, "another address for another port");
	check_call(delif(name), 0, "VALE_DELIF");
	check(if_nametoindex(name) == 0, "no interface any more");
	check(if_nametoindex(own("q$")) != 0, "the second one is still there");
}

static void
opened_by_its_name(void)
{
	const char *name = persistent();
	struct port port = port_open(name);

	check_number(port.reg.nr_tx_rings, 1, "tx rings");
	check_number(port.reg.nr_rx_rings, 1, "rx rings");
	check_number(port.reg.nr_tx_slots, 1024, "tx slots");
	check_number(port.reg.nr_rx_slots, 1024, "rx slots");
	check(port.reg.nr_mem_id > 1, "a region of its own");
	port_close(&port);
	check(if_nametoindex(name) != 0, "it stays when nobody has it open");
	require(attach(on(1, name)) == 0, "VALE_ATTACH");
	port = port_open(name);
	check(port.fd >= 0, "opened while attached");
	port_close(&port);
}

static void
newif_counts(void)
{
	struct nmreq_vale_newif conf;
	struct nmreq_port_info_get got;

	netns_own();
	memset(&conf, 0, sizeof(conf));
	conf.nr_tx_rings = 2;
	conf.nr_rx_rings = 3;
	conf.nr_tx_slots = 128;
	conf.nr_rx_slots = 256;
	require(newif_as(own("p$"), &conf) == 0, "VALE_NEWIF");
	require(info(own("p$"), &got) == 0, "PORT_INFO_GET");
	check(got.nr_tx_rings == 2 && got.nr_rx_rings == 3 &&
	      got.nr_tx_slots == 128 && got.nr_rx_slots == 256,
	      "the counts asked for (got tx %u of %u, rx %u of %u)",
	      got.nr_tx_rings, got.nr_tx_slots, got.nr_rx_rings,
	      got.nr_rx_slots);
}

static void
newif_region(void)
{
	const char *name = persistent();
	struct nmreq_port_info_get first, second;
	struct nmreq_vale_newif conf;

	require(info(name, &first) == 0, "PORT_INFO_GET");
	memset(&conf, 0, sizeof(conf));
	conf.nr_mem_id = first.nr_mem_id;
	check_call(newif_as(own("q$"), &conf), 0, "in the first one's region");
	require(info(own("q$"), &second) == 0, "PORT_INFO_GET");
	check_number(second.nr_mem_id, first.nr_mem_id, "its region");
	memset(&conf, 0, sizeof(conf));
	check_call(newif_as(own("r$"), &conf), 0, "in a region of its own");
	require(info(own("r$"), &second) == 0, "PORT_INFO_GET");
	check(second.nr_mem_id != first.nr_mem_id, "another region");
}

static void
newif_errors(void)
{
	struct nmreq_vale_newif conf;
	const char *name = persistent();

	check_call(newif("vale0"), EINVAL, "begins with vale");
	check_call(newif("valeport"), EINVAL, "begins with vale");
	check_call(newif("p123456789012345"), EINVAL, "16 characters");
	check_call(newif("p12345678901234"), 0, "15 characters");
	memset(&conf, 0, sizeof(conf));
	conf.nr_mem_id = NO_REGION;
	check_call(newif_as(own("q$"), &conf), EINVAL, "no such region");
	check(if_nametoindex(own("q$")) == 0, "and no interface is left");
	check_call(newif(name), EEXIST, "there is one");
	check_call(newif("lo"), EEXIST, "there is another interface");
	check(newif("") == -1, "no name");
	check(newif("a/b") == -1, "a name that no interface can have");
}

static void
forwards(void)
{
	const char *name = persistent();
	struct port port, other;

	require(attach(on(1, name)) == 0, "VALE_ATTACH");
	port = port_open(name);
	other = port_open(on(1, "x"));
	port_send(&port, broadcast, mac_of(1), 1);
	check_number(port_take(&other), 1, "from the persistent port");
	port_send(&other, broadcast, mac_of(2), 2);
	check_number(port_take(&port), 2, "to the persistent port");
}

/* ---- S-VALE-13: attached under a qualified name ---- */

static void
qualified_name(void)
{
	const char *name = persistent();
	struct nmreq_vale_attach request = attach_all();
	struct nmreq_port_info_get plain, full;
	struct port port;

	check_call(attach_as(on(1, name), &request), 0, "VALE_ATTACH");
	check_number(request.port_index, 0, "its index");
	check(port_exists(on(1, name)), "it is on the switch");
	port = port_open(on(1, name));
	require(info(name, &plain) == 0, "PORT_INFO_GET");
	check_number(plain.nr_mem_id, port.reg.nr_mem_id, "the same port");
	/* The original loses the name here; the sensible thing is to keep it. */
	check_call(info(on(1, name), &full), 0, "by its full name when bound");
	port_close(&port);
	check_call(detach(on(1, name)), 0, "VALE_DETACH");
}

static void
counts_untouched_by_attach(void)
{
	const char *name = persistent();
	struct nmreq_vale_attach request = attach_all(), before;

	request.reg.nr_tx_slots = 64;
	request.reg.nr_rx_rings = 3;
	before = request;
	require(attach_as(on(1, name), &request) == 0, "VALE_ATTACH");
	check(memcmp(&request.reg, &before.reg, sizeof(before.reg)) == 0,
	      "the reg part comes back as it was");
}

static void
discards_when_detached(void)
{
	const char *name = persistent();
	struct port port = port_open(name);
	struct netmap_ring *tx = port_tx(&port);
	uint32_t i;

	for (i = 0; i < 500; i++)
		port_put(&port, broadcast, mac_of(1), i);
	port_txsync(&port);
	check_number(nm_ring_space(tx), tx->num_slots - 1,
		     "on no switch: sent and gone");
	port_rxsync(&port);
	check(nm_ring_empty(port_rx(&port)), "nothing comes back");
}

/* ---- S-VALE-14: twice ---- */

static void
same_switch_twice(void)
{
	const char *name = persistent();

	check_call(attach(on(1, name)), 0, "VALE_ATTACH");
	check_call(attach(on(1, name)), EBUSY, "the same again");
	check_call(detach(on(1, name)), 0, "VALE_DETACH");
	check_call(attach(on(1, name)), 0, "VALE_ATTACH once more");
}

static void
two_switches(void)
{
	const char *name = persistent();

	check_call(attach(on(1, name)), 0, "to the first");
	check_call(attach(on(2, name)), 0, "to the second");
	check_call(detach(on(1, name)), EBUSY, "off the first, too early");
	check_call(delif(name), EBUSY, "VALE_DELIF, on both");
	check_call(detach(on(2, name)), 0, "off the second");
	check_call(delif(name), EBUSY, "VALE_DELIF, on the first");
	check_call(detach(on(1, name)), 0, "off the first");
	check_call(delif(name), 0, "VALE_DELIF");
}

static void
bound_and_a_second_switch(void)
{
	const char *name = persistent();
	struct port port;

	check_call(attach(on(1, name)), 0, "to the first");
	port = port_open(name);
	check_call(attach(on(2, name)), EBUSY, "to the second while bound");
	check_call(delif(name), EBUSY, "VALE_DELIF while bound");
	port_close(&port);
	check_call(attach(on(2, name)), 0, "to the second when not");
}

/* The second switch takes the port over: it is between the two. */
static void
between_two_switches(void)
{
	const char *name = persistent();
	struct port one, two;

	require(attach(on(1, name)) == 0 && attach(on(2, name)) == 0,
		"VALE_ATTACH to both");
	one = port_open(on(1, "a"));
	two = port_open(on(2, "b"));
	check_call(try_register(name, register_all()), EBUSY, "REGISTER while taken over");
	port_send(&one, broadcast, mac_of(1), 1);
	check_number(port_take(&two), 1, "from one switch to the other");
	port_send(&two, mac_of(1), mac_of(2), 2);
	check_number(port_take(&one), 2, "and back");
}

/* ---- S-VALE-15: DELIF ---- */

static void
delif_errors(void)
{
	struct port pipe;
	const char *name = persistent();
	struct port port = port_open(name);

	check_call(delif(own("q$")), ENXIO, "no such interface");
	check_call(delif("lo"), EINVAL, "an interface not made by NEWIF");
	check_call(delif(name), EBUSY, "in use");
	port_close(&port);
	pipe = port_open(own("k${1"));
	check(delif(own("k$")) == -1, "the parent of a pipe");
	port_close(&pipe);
	pipe = port_open(own("p${1"));
	check_call(delif(name), EBUSY, "in use by its pipe");
	port_close(&pipe);
	check_call(delif(name), 0, "in use no more");
	check_call(delif(name), ENXIO, "gone");
}

/* An interface of the host that netmap has never seen. */
static void
delif_veth(void)
{
	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	check_call(delif(own("n$")), EINVAL, "a veth");
	check(if_nametoindex(own("n$")) != 0, "it is still there");
}

/* ---- S-VALE-16: attaching interfaces ---- */

static void
attach_errors(void)
{
	struct nmreq_vale_attach request;
	const char *name;
	struct port port;

	netns_own();
	name = own("n$");
	cable_new(name, own("f$"), 1);
	check_call(attach(name), EINVAL, "not a name of VALE");
	check_call(attach(on(1, "nosuchif0")), EINVAL, "no such interface");
	request = attach_all();
	request.reg.nr_mem_id = NO_REGION;
	check_call(attach_as(on(1, name), &request), EINVAL,
		   "no such region");
	request = attach_all();
	request.reg.nr_ringid = 1;
	check_call(attach_as(on(1, name), &request), EINVAL, "one ring");
	request = attach_all();
	request.reg.nr_mode = NR_REG_ONE_NIC;
	check_call(attach_as(on(1, name), &request), EINVAL, "ONE_NIC");
	request.reg.nr_mode = NR_REG_SW;
	check_call(attach_as(on(1, name), &request), EINVAL, "SW");
	request.reg.nr_mode = NR_REG_DEFAULT;
	check_call(attach_as(on(1, name), &request), EINVAL, "mode 0");
	port = port_open(name);
	check_call(attach(on(1, name)), EBUSY, "bound");
	port_close(&port);
	check_call(attach(on(1, name)), 0, "VALE_ATTACH");
	check_call(attach(on(1, name)), EBUSY, "attached there");
	check_call(attach(on(2, name)), EBUSY, "attached elsewhere");
	check_call(try_register(name, register_all()), EBUSY, "REGISTER of the interface");
	check_call(try_register(on(1, name), register_all()), EBUSY, "REGISTER of the port");
	check_call(detach(on(1, name)), 0, "VALE_DETACH");
	check_call(try_register(name, register_all()), 0, "REGISTER of the interface afterwards");
}

/* A bound persistent port is refused, and not linked all the same. */
static void
attach_bound_persistent(void)
{
	const char *name = persistent();
	struct port port = port_open(name);

	check_call(attach(on(1, name)), EBUSY, "a bound persistent port");
	port_close(&port);
}

static void
attach_to_full_switch(void)
{
	char name[NETMAP_REQ_IFNAMSIZ];
	const char *interface = persistent();
	struct nmreq_register reg;
	int fd, i;

	for (i = 0; i < 252; i++) {
		snprintf(name, sizeof(name), "%s_1:%d", own("vale$"), i);
		reg = register_all();
		reg.nr_tx_slots = reg.nr_rx_slots = 16;
		fd = device_open();
		require(control(fd, NETMAP_REQ_REGISTER, name, &reg) == 0,
			"REGISTER %s", name);
	}
	check_call(attach(on(1, interface)), ENOMEM, "a full switch");
	check_call(attach(on(2, interface)), 0, "another switch");
}

static void
attached_interface_forwards(void)
{
	struct cable cable;
	struct port port;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	require(attach(on(1, cable.near)) == 0, "VALE_ATTACH");
	port = port_open(on(1, "a"));
	port_send(&port, broadcast, mac_of(1), 1);
	check_number(cable_take(&cable), 1, "from a port to the wire");
	cable_send(&cable, broadcast, mac_of(2), 2);
	check_number(port_take(&port), 2, "from the wire to a port");
	check(!port_exists(on(1, "n^")), "the host's stack is not on it");
	check_call(detach(on(1, cable.near)), 0, "VALE_DETACH");
	cable_send(&cable, broadcast, mac_of(2), 3);
	port_rxsync(&port);
	check(nm_ring_empty(port_rx(&port)), "nothing after that");
}

/* NIC_SW: the host's stack is a second port, named with ^. */
static void
attached_with_host(void)
{
	struct nmreq_vale_attach request = attach_all();
	char host[IF_NAMESIZE + 1];
	struct cable cable, stack;
	struct port port;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	stack = stack_of(cable.near);
	request.reg.nr_mode = NR_REG_NIC_SW;
	check_call(attach_as(on(1, cable.near), &request), 0, "VALE_ATTACH");
	snprintf(host, sizeof(host), "%s^", cable.near);
	check(port_exists(on(1, cable.near)), "the interface is a port");
	check(port_exists(on(1, host)), "the host is a port");
	port = port_open(on(1, "a"));
	cable_send(&cable, broadcast, mac_of(2), 1);
	check_number(cable_take(&stack), 1, "from the wire to the stack");
	check_number(port_take(&port), 1, "and to a port");
	cable_send(&stack, broadcast, mac_of(3), 2);
	check_number(cable_take(&cable), 2, "from the stack to the wire");
	check_number(port_take(&port), 2, "and to a port");
	port_send(&port, mac_of(3), mac_of(1), 3);
	check_number(cable_take(&stack), 3, "from a port to the stack alone");
	check_call(detach(on(1, cable.near)), 0, "VALE_DETACH");
	check(!port_exists(on(1, host)), "the host is off as well");
	cable_send(&stack, broadcast, mac_of(3), 4);
	check_number(cable_take(&cable), 4, "the interface is the stack's");
}

/* ---- S-VALE-17: DETACH ---- */

static void
detach_errors(void)
{
	const char *name = persistent();
	struct port port = port_open(on(1, "eph"));

	check_call(detach(name), EINVAL, "not a name of VALE");
	check_call(detach(on(1, "none")), ENXIO, "no such port");
	check_call(detach(on(2, name)), ENXIO, "no such switch");
	check_call(detach(on(1, "eph")), EBUSY, "an ephemeral port");
	check(port_exists(on(1, "eph")), "which stays");
	port_close(&port);
}

static void
detach_reports_index(void)
{
	const char *name = persistent();
	struct port port = port_open(on(1, "first"));
	struct nmreq_vale_attach attached = attach_all();
	struct nmreq_vale_detach request;

	memset(&request, 0, sizeof(request));
	require(attach_as(on(1, name), &attached) == 0, "VALE_ATTACH");
	check_number(attached.port_index, 1, "index at VALE_ATTACH");
	check_call(control_once(NETMAP_REQ_VALE_DETACH, on(1, name), &request), 0,
		   "VALE_DETACH");
	check_number(request.port_index, 1, "index at VALE_DETACH");
	port_close(&port);
}

/* A persistent port may go off its switch while it is bound. */
static void
detach_while_bound(void)
{
	const char *name = persistent();
	struct port port, other;

	require(attach(on(1, name)) == 0, "VALE_ATTACH");
	port = port_open(name);
	other = port_open(on(1, "x"));
	port_send(&port, broadcast, mac_of(1), 1);
	check_number(port_take(&other), 1, "attached");
	check_call(detach(on(1, name)), 0, "VALE_DETACH");
	check(!port_exists(on(1, name)), "it is off the switch");
	port_send(&port, broadcast, mac_of(1), 2);
	port_rxsync(&other);
	check(nm_ring_empty(port_rx(&other)), "detached");
	check_number(nm_ring_space(port_tx(&port)), 1023, "all slots free");
}

/* ---- S-VALE-18: LIST ---- */

static void
list_by_name(void)
{
	struct nmreq_vale_list at;

	lan_open(3);
	memset(&at, 0, sizeof(at));
	at.nr_bridge_idx = 77;
	at.nr_port_idx = 99;
	check_call(vale_list(lan_name(2), &at), 0, "a port");
	check_number(at.nr_port_idx, 2, "its index");
	check(at.nr_bridge_idx != 77, "its switch's index");
	check_call(vale_list(own("vale$:none"), &at), 0, "no port of that name");
	check_number(at.nr_port_idx, 255, "its index");
	check_call(vale_list(own("vale$z:a"), &at), ENOENT, "no such switch");
	check_call(vale_list(own("vale$"), &at), ENOENT, "no colon");
	check_call(vale_list("eth0", &at), EINVAL, "not a name of VALE");
	check_call(vale_list("valx:a", &at), EINVAL, "val is not enough");
}

static void
list_all(void)
{
	struct nmreq_header header;
	struct nmreq_vale_list at;
	uint32_t found = 0, switches[2] = { 0, 0 }, last_port = 0;
	uint16_t last_bridge = 0;
	int fd = device_open(), ordered = 1, i;
	struct port other[3];

	lan_open(3);
	for (i = 0; i < 3; i++) {
		char letter[2] = { (char)('a' + i), 0 };

		other[i] = port_open(on(2, letter));
	}
	port_close(&lan[1]);
	memset(&at, 0, sizeof(at));
	for (;;) {
		header = header_of(NETMAP_REQ_VALE_LIST, "", &at);
		if (ioctl(fd, NIOCCTRL, &header) == -1)
			break;
		ordered &= at.nr_bridge_idx > last_bridge ||
			   (at.nr_bridge_idx == last_bridge &&
			    at.nr_port_idx >= last_port);
		last_bridge = at.nr_bridge_idx;
		last_port = at.nr_port_idx + 1;
		switches[0] += strcmp(header.nr_name, lan_name(0)) == 0 ||
			       strcmp(header.nr_name, lan_name(2)) == 0;
		switches[1] += strcmp(header.nr_name, on(2, "a")) == 0 ||
			       strcmp(header.nr_name, on(2, "b")) == 0 ||
			       strcmp(header.nr_name, on(2, "c")) == 0;
		found += strcmp(header.nr_name, lan_name(1)) == 0;
		at.nr_port_idx++;
	}
	check_number(errno, ENOENT, "the end");
	check(ordered, "in the order of the indices");
	check_number(switches[0], 2, "ports of the first switch");
	check_number(switches[1], 3, "ports of the second switch");
	check_number(found, 0, "not the one that is closed");
	(void)other;
}

static void
list_from(void)
{
	struct nmreq_header header;
	struct nmreq_vale_list at, where;
	int fd = device_open();

	lan_open(3);
	require(vale_list(lan_name(0), &where) == 0, "VALE_LIST");
	at = where;
	at.nr_port_idx = 1;
	header = header_of(NETMAP_REQ_VALE_LIST, "", &at);
	check_call(ioctl(fd, NIOCCTRL, &header), 0, "from the second");
	check(strcmp(header.nr_name, lan_name(1)) == 0, "its name (got %s)",
	      header.nr_name);
	check_number(at.nr_port_idx, 1, "its index");
	port_close(&lan[1]);
	header = header_of(NETMAP_REQ_VALE_LIST, "", &at);
	check_call(ioctl(fd, NIOCCTRL, &header), 0, "from where one was");
	check_number(at.nr_port_idx, 2, "the next one's index");
	at = where;
	at.nr_bridge_idx = UINT16_MAX;
	header = header_of(NETMAP_REQ_VALE_LIST, "", &at);
	check_call(ioctl(fd, NIOCCTRL, &header), ENOENT, "beyond the end");
}

/* ---- S-VALE-19: polling ---- */

static int
polling(uint16_t type, const char *name, uint32_t mode, uint32_t first,
	uint32_t count)
{
	struct nmreq_vale_polling request, before;
	int result, cause;

	memset(&request, 0, sizeof(request));
	request.nr_mode = mode;
	request.nr_first_cpu_id = first;
	request.nr_num_polling_cpus = count;
	before = request;
	result = control_once(type, name, &request);
	cause = errno;
	check(memcmp(&request, &before, sizeof(before)) == 0,
	      "the body comes back as it was");
	errno = cause;
	return result;
}

static int
enable(const char *name, uint32_t mode, uint32_t first, uint32_t count)
{
	return polling(NETMAP_REQ_VALE_POLLING_ENABLE, name, mode, first,
		       count);
}

static int
disable(const char *name, uint32_t mode, uint32_t first, uint32_t count)
{
	return polling(NETMAP_REQ_VALE_POLLING_DISABLE, name, mode, first,
		       count);
}

static void
polling_without_nic(void)
{
	lan_open(1);
	check_call(enable(own("eth$"), 1, 0, 1), EINVAL,
		   "not a name of VALE");
	check_call(enable(own("vale$:none"), 1, 0, 1), ENXIO, "no such port");
	check_call(disable(own("vale$:none"), 1, 0, 1), ENXIO,
		   "no such port");
	check_call(enable(lan_name(0), 1, 0, 1), EOPNOTSUPP,
		   "an ephemeral port");
	check_call(disable(lan_name(0), 1, 0, 1), EOPNOTSUPP,
		   "an ephemeral port");
}

static void
polling_arguments(void)
{
	uint32_t cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct cable cable;
	const char *name;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	require(attach(on(1, cable.near)) == 0, "VALE_ATTACH");
	name = on(1, cable.near);
	check_call(enable(name, 0, 0, 1), EINVAL, "mode 0");
	check_call(enable(name, 3, 0, 1), EINVAL, "mode 3");
	check_call(enable(name, 1, 0, 0), EINVAL, "no CPU");
	check_call(enable(name, 1, 0, cpus), EINVAL, "all CPUs");
	check_call(enable(name, 1, 0, cpus + 1), EINVAL, "more than all");
	check_call(enable(name, 2, 1, 1), EINVAL, "no ring 1");
	check_call(disable(name, 1, 0, 1), EFAULT, "not polling");
	check_call(detach(name), 0, "VALE_DETACH");
}

static void
polling_works(void)
{
	struct cable cable;
	struct port port;
	const char *name;

	netns_own();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("needs two CPUs");
	cable = cable_new(own("n$"), own("f$"), 1);
	require(attach(on(1, cable.near)) == 0, "VALE_ATTACH");
	name = on(1, cable.near);
	port = port_open(on(1, "a"));
	check_call(enable(name, 1, 0, 1), 0, "POLLING_ENABLE");
	check_call(enable(name, 1, 0, 1), EFAULT, "again");
	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(port_take(&port), 1, "from the wire to a port");
	port_send(&port, broadcast, mac_of(2), 2);
	check_number(cable_take(&cable), 2, "from a port to the wire");
	check_call(detach(name), EBUSY, "VALE_DETACH while polling");
	check_call(disable(name, 1, 0, 1), 0, "POLLING_DISABLE");
	check_call(disable(name, 1, 0, 1), EFAULT, "again");
	cable_send(&cable, broadcast, mac_of(1), 3);
	check_number(port_take(&port), 3, "from the wire, as before");
	check_call(enable(name, 2, 0, 1), 0, "one CPU, ring 0");
	check_call(disable(name, 2, 0, 1), 0, "POLLING_DISABLE");
	check_call(detach(name), 0, "VALE_DETACH");
}

static const struct test_case cases[] = {
	{ "S-VALE-12", "is an interface", is_an_interface },
	{ "S-VALE-12", "opened by its name", opened_by_its_name },
	{ "S-VALE-12", "counts", newif_counts },
	{ "S-VALE-12", "regions", newif_region },
	{ "S-VALE-12", "errors", newif_errors },
	{ "S-VALE-13", "its full name", qualified_name },
	{ "S-VALE-13", "forwards on its switch", forwards },
	{ "S-VALE-16", "reg is not updated", counts_untouched_by_attach },
	{ "S-VALE-5", "on no switch", discards_when_detached },
	{ "S-VALE-14", "the same switch twice", same_switch_twice },
	{ "S-VALE-14", "two switches", two_switches },
	{ "S-VALE-14", "a second switch while bound",
	  bound_and_a_second_switch },
	{ "S-VALE-14", "packets between two switches", between_two_switches },
	{ "S-VALE-15", "errors", delif_errors },
	{ "S-VALE-15", "an interface of the host's", delif_veth },
	{ "S-VALE-16", "errors", attach_errors },
	{ "S-VALE-16", "a bound persistent port", attach_bound_persistent },
	{ "S-VALE-16", "a full switch", attach_to_full_switch },
	{ "S-VALE-16", "an interface on a switch",
	  attached_interface_forwards },
	{ "S-VALE-16", "with the host's stack", attached_with_host },
	{ "S-VALE-17", "errors", detach_errors },
	{ "S-VALE-17", "the index", detach_reports_index },
	{ "S-VALE-17", "while bound", detach_while_bound },
	{ "S-VALE-18", "by name", list_by_name },
	{ "S-VALE-18", "all of them", list_all },
	{ "S-VALE-18", "from a place on", list_from },
	{ "S-VALE-19", "ports that cannot poll", polling_without_nic },
	{ "S-VALE-19", "arguments", polling_arguments },
	{ "S-VALE-19", "polling", polling_works },
};

CHAPTER(cases)
