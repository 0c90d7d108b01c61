/* SPDX-License-Identifier: BSD-2-Clause */
/* VALE switches: names, limits, and ephemeral ports (S-VALE-1 to 4). */
#include "lan.h"

#include <sys/resource.h>

/* A request about a name, on a descriptor of its own. */
static int
ask(uint16_t type, const char *name)
{
	union {
		struct nmreq_register reg;
		struct nmreq_port_info_get info;
		struct nmreq_pools_info pools;
		struct nmreq_vale_attach attach;
		struct nmreq_vale_detach detach;
		struct nmreq_vale_list list;
		struct nmreq_port_hdr hdr;
		struct nmreq_vale_polling polling;
	} body;

	memset(&body, 0, sizeof(body));
	if (type == NETMAP_REQ_REGISTER || type == NETMAP_REQ_VALE_ATTACH)
		body.reg.nr_mode = NR_REG_ALL_NIC;
	if (type == NETMAP_REQ_VALE_POLLING_ENABLE ||
	    type == NETMAP_REQ_VALE_POLLING_DISABLE) {
		body.polling.nr_mode = NETMAP_POLLING_MODE_SINGLE_CPU;
		body.polling.nr_num_polling_cpus = 1;
	}
	return control_once(type, name, &body);
}

/* ---- S-VALE-1: names ---- */

static void
good_names(void)
{
	static const char *const names[] = {
		"vale$:p", "vale$_A9z:p", "vale$:0123456789abcde", "vale$:-",
		"vale$:a.b",
	};
	char longest[NETMAP_REQ_IFNAMSIZ];
	size_t i;

	for (i = 0; i < COUNT(names); i++)
		check_call(ask(NETMAP_REQ_REGISTER, own(names[i])), 0,
			   own(names[i]));
	/* The colon is the 16th character. */
	snprintf(longest, sizeof(longest), "%s00000000000", own("vale$"));
	memcpy(longest + 15, ":p", 3);
	check_call(ask(NETMAP_REQ_REGISTER, longest), 0, longest);
}

static void
bad_names(void)
{
	static const char *const names[] = {
		"vale$", "val$", "vale.$:p", "vale-$:p", "vale$ :p",
	};
	/* netmap has ENOMEM in the place of EINVAL. */
	static const char *const too_long[] = {
		"vale00000000000x$:p", "vale$:0123456789abcdef",
	};
	static const struct {
		uint16_t type;
		int error;
		const char *text;
	} requests[] = {
		{ NETMAP_REQ_REGISTER, ENOMEM, "REGISTER" },
		{ NETMAP_REQ_PORT_INFO_GET, ENOMEM, "PORT_INFO_GET" },
		{ NETMAP_REQ_POOLS_INFO_GET, ENOMEM, "POOLS_INFO_GET" },
		{ NETMAP_REQ_VALE_ATTACH, ENOMEM, "VALE_ATTACH" },
		{ NETMAP_REQ_VALE_DETACH, ENXIO, "VALE_DETACH" },
		{ NETMAP_REQ_PORT_HDR_GET, ENXIO, "PORT_HDR_GET" },
		{ NETMAP_REQ_PORT_HDR_SET, ENXIO, "PORT_HDR_SET" },
		{ NETMAP_REQ_VALE_POLLING_ENABLE, ENXIO, "POLLING_ENABLE" },
	};
	char text[160];
	size_t i, j;

	for (i = 0; i < COUNT(names); i++)
		for (j = 0; j < COUNT(requests); j++) {
			snprintf(text, sizeof(text), "%s \"%s\"",
				 requests[j].text, own(names[i]));
			/* What switches do takes their whole prefix. */
			if (strncmp(names[i], "vale", 4) != 0 &&
			    requests[j].type != NETMAP_REQ_REGISTER)
				continue;
			check_call(ask(requests[j].type, own(names[i])),
				   requests[j].error, text);
		}
	for (i = 0; i < COUNT(too_long); i++)
		for (j = 0; j < COUNT(requests); j++) {
			snprintf(text, sizeof(text), "%s \"%s\"",
				 requests[j].text, own(too_long[i]));
			check_call(ask(requests[j].type, own(too_long[i])),
				   requests[j].error == ENOMEM ? EINVAL :
				   requests[j].error, text);
		}
}

static void
bad_names_in_list(void)
{
	check_call(ask(NETMAP_REQ_VALE_LIST, own("vale$")), ENOENT,
		   "no colon");
	check_call(ask(NETMAP_REQ_VALE_LIST, own("vale.$:p")), ENOENT,
		   "a character that switches cannot have");
}

/* ---- S-VALE-2: limits and life of a switch ---- */

static struct nmreq_register
register_small(void)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	return reg;
}

static uint32_t
count_switches(void)
{
	struct nmreq_vale_list at;
	uint32_t count = 0;
	int fd = device_open();

	memset(&at, 0, sizeof(at));
	while (control(fd, NETMAP_REQ_VALE_LIST, "", &at) == 0) {
		count++;
		at.nr_bridge_idx++;
		at.nr_port_idx = 0;
	}
	close(fd);
	return count;
}

/* The original has 8 unless its parameter max_bridges says otherwise. */
static void
many_switches(void)
{
	uint32_t others = count_switches(), made;
	char name[NETMAP_REQ_IFNAMSIZ];
	struct nmreq_register reg;
	int fd[300], result = 0;

	for (made = 0; made < COUNT(fd); made++) {
		snprintf(name, sizeof(name), "%s_%u:p", own("vale$"), made);
		reg = register_small();
		fd[made] = device_open();
		result = control(fd[made], NETMAP_REQ_REGISTER, name, &reg);
		if (result == -1)
			break;
	}
	check_call(result, ENOMEM, "one switch too many");
	check(made + others >= 8, "8 switches at least (got %u)",
	      made + others);
	close(fd[0]);
	reg = register_small();
	check_call(control(fd[made], NETMAP_REQ_REGISTER, own("vale$:p"),
			   &reg), 0, "a place is free again");
}

/* Ports of one switch up to the limit; returns how many there were. */
static uint32_t
fill_switch(int *fd, uint32_t most)
{
	struct nmreq_register reg;
	char name[NETMAP_REQ_IFNAMSIZ];
	struct rlimit files;
	uint32_t i;
	int result = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (i = 0; i < most; i++) {
		snprintf(name, sizeof(name), "%s:%u", own("vale$"), i);
		reg = register_small();
		fd[i] = device_open();
		result = control(fd[i], NETMAP_REQ_REGISTER, name, &reg);
		if (result == -1)
			break;
	}
	check_call(result, ENOMEM, "a port too many");
	return i;
}

static void
many_ports(void)
{
	struct nmreq_register reg = register_all();
	int fd[256];
	uint32_t made = fill_switch(fd, COUNT(fd));
	char name[NETMAP_REQ_IFNAMSIZ];

	/* Another needs active + 2 < 254. */
	check_number(made, 252, "ports of one switch");
	snprintf(name, sizeof(name), "%s:%u", own("vale$"), made - 1);
	check_number(vale_index(name), made - 1, "the last one's index");
	close(fd[7]);
	check_call(control(fd[made], NETMAP_REQ_REGISTER, own("vale$:new"),
			   &reg), 0, "a place is free again");
	check_number(vale_index(own("vale$:new")), 7, "it is the first free");
}

/* A broadcast reaches every port of a full switch. */
static void
flood_to_many(void)
{
	int fd[256];
	uint32_t made = fill_switch(fd, COUNT(fd)), reached = 0, i;
	struct port sender, receiver;
	char name[NETMAP_REQ_IFNAMSIZ];

	close(fd[0]);
	sender = port_open(own("vale$:s"));
	port_send(&sender, broadcast, mac_of(1), 1);
	for (i = 1; i < made; i++) {
		snprintf(name, sizeof(name), "%s:%u", own("vale$"), i);
		receiver = port_open(name);
		reached += port_take(&receiver) == 1;
		port_close(&receiver);
	}
	check_number(reached, made - 1, "ports that the frame reached");
}

static void
first_free_index(void)
{
	lan_open(4);
	check_number(vale_index(lan_name(0)), 0, "the first port");
	check_number(vale_index(lan_name(3)), 3, "the fourth port");
	port_close(&lan[1]);
	port_close(&lan[2]);
	lan_add(register_all());
	check_number(vale_index(lan_name(4)), 1, "the first free place");
	lan_add(register_all());
	check_number(vale_index(lan_name(5)), 2, "the next free place");
	lan_add(register_all());
	check_number(vale_index(lan_name(6)), 4, "a place at the end");
	check_number(vale_index(lan_name(1)), 255, "no such port any more");
}

static void
switch_lives_with_ports(void)
{
	struct nmreq_vale_list at;

	memset(&at, 0, sizeof(at));
	check_call(vale_list(lan_name(0), &at), ENOENT, "no switch yet");
	lan_open(2);
	check_call(vale_list(lan_name(0), &at), 0, "a switch");
	port_close(&lan[0]);
	check_call(vale_list(lan_name(1), &at), 0, "with one port left");
	port_close(&lan[1]);
	check_call(vale_list(lan_name(1), &at), ENOENT, "gone with its last port");
}

static void
table_starts_empty(void)
{
	int i;

	lan_open(3);
	lan_teach(1, mac_of(1));
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(1, "learned");
	for (i = 0; i < 3; i++) {
		port_close(&lan[i]);
		lan[i] = lan[0];
	}
	lan_ports = 0;
	lan_open(3);
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_flood(0, "a new switch of the same name");
}

static void
switches_are_apart(void)
{
	struct port one = port_open(own("vale$:a")),
		    same = port_open(own("vale$:b")),
		    other = port_open(own("vale$x:b"));

	port_send(&one, broadcast, mac_of(1), 1);
	check_number(port_take(&same), 1, "on the same switch");
	port_rxsync(&other);
	check(nm_ring_empty(port_rx(&other)), "not on another");
	port_send(&other, broadcast, mac_of(2), 2);
	port_rxsync(&one);
	port_rxsync(&same);
	check(nm_ring_empty(port_rx(&one)) && nm_ring_empty(port_rx(&same)),
	      "nor back");
}

/* ---- S-VALE-3: ephemeral ports ---- */

static void
ephemeral_life(void)
{
	struct port one, two;

	check(!port_exists(own("vale$:p")), "not there before");
	one = port_open(own("vale$:p"));
	two = port_open(own("vale$:p"));
	check(port_exists(own("vale$:p")), "there while open");
	port_close(&one);
	check(port_exists(own("vale$:p")), "there while open once");
	port_close(&two);
	check(!port_exists(own("vale$:p")), "gone with the last user");
}

static void
ephemeral_by_info(void)
{
	check_call(ask(NETMAP_REQ_PORT_INFO_GET, own("vale$:p")), 0,
		   "PORT_INFO_GET");
	check(!port_exists(own("vale$:p")), "none left by PORT_INFO_GET");
	check_call(ask(NETMAP_REQ_POOLS_INFO_GET, own("vale$:p")), 0,
		   "POOLS_INFO_GET");
	check(!port_exists(own("vale$:p")), "none left by POOLS_INFO_GET");
}

static void
ephemeral_as_parent(void)
{
	struct port pipe = port_open(own("vale$:p{1"));

	check(port_exists(own("vale$:p")), "a pipe's parent is a port");
	port_close(&pipe);
	check(!port_exists(own("vale$:p")), "and goes with the pipe");
}

static void
ephemeral_as_target(void)
{
	struct nmreq_register reg = register_all();
	int fd = device_open();

	reg.nr_flags = NR_MONITOR_RX;
	check_call(control(fd, NETMAP_REQ_REGISTER, own("vale$:p"), &reg),
		   EINVAL, "a monitor of a port that nobody uses");
	check(!port_exists(own("vale$:p")), "no port is left");
	close(fd);
}

static void
default_counts(void)
{
	struct port port = port_open(own("vale$:p"));

	check_number(port.reg.nr_tx_rings, 1, "tx rings");
	check_number(port.reg.nr_rx_rings, 1, "rx rings");
	check_number(port.reg.nr_tx_slots, 1024, "tx slots");
	check_number(port.reg.nr_rx_slots, 1024, "rx slots");
	check_number(port.reg.nr_host_tx_rings, 0, "host tx rings");
	check_number(port.reg.nr_host_rx_rings, 0, "host rx rings");
}

static void
counts_are_clamped(void)
{
	static const struct {
		uint16_t rings, got_rings;
		uint32_t slots, got_slots;
	} asked[] = {
		{ 0, 1, 0, 1024 }, { 1, 1, 1, 1 }, { 1, 1, 2, 2 },
		{ 16, 16, 64, 64 }, { 17, 16, 64, 64 },
		{ UINT16_MAX, 16, 3, 3 }, { 1, 1, 4096, 4096 },
		{ 1, 1, 4097, 4096 }, { 1, 1, UINT32_MAX, 4096 },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct nmreq_register reg = register_all();
		struct port port;

		reg.nr_tx_rings = reg.nr_rx_rings = asked[i].rings;
		reg.nr_tx_slots = reg.nr_rx_slots = asked[i].slots;
		port = port_open_as(own("vale$:p"), reg);
		check(port.reg.nr_tx_rings == asked[i].got_rings &&
		      port.reg.nr_rx_rings == asked[i].got_rings &&
		      port.reg.nr_tx_slots == asked[i].got_slots &&
		      port.reg.nr_rx_slots == asked[i].got_slots,
		      "%u rings of %u slots (got tx %u of %u, rx %u of %u)",
		      asked[i].rings, asked[i].slots, port.reg.nr_tx_rings,
		      port.reg.nr_tx_slots, port.reg.nr_rx_rings,
		      port.reg.nr_rx_slots);
		port_close(&port);
	}
}

static void
directions_differ(void)
{
	struct nmreq_register reg = register_all();
	struct port port;

	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 32;
	reg.nr_rx_slots = 64;
	port = port_open_as(own("vale$:p"), reg);
	check(port.reg.nr_tx_rings == 3 && port.reg.nr_rx_rings == 2 &&
	      port.reg.nr_tx_slots == 32 && port.reg.nr_rx_slots == 64,
	      "3 tx rings of 32, 2 rx rings of 64");
	check(NETMAP_TXRING(port.nifp, 2)->num_slots == 32 &&
	      NETMAP_RXRING(port.nifp, 1)->num_slots == 64, "in the rings");
}

static void
no_host_rings(void)
{
	static const uint32_t modes[] = { NR_REG_SW, NR_REG_NIC_SW,
					  NR_REG_ONE_SW };
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		struct nmreq_register reg = register_all();
		int fd = device_open();

		reg.nr_mode = modes[i];
		check_call(control(fd, NETMAP_REQ_REGISTER, own("vale$:p"),
				   &reg), EINVAL, "a mode with host rings");
		close(fd);
	}
	check(!port_exists(own("vale$:p")), "no port is left");
}

/* ---- S-VALE-4: names of interfaces ---- */

static void
not_attached(void)
{
	static const struct {
		uint16_t type;
		int error;
		const char *text;
	} requests[] = {
		{ NETMAP_REQ_REGISTER, EINVAL, "REGISTER" },
		{ NETMAP_REQ_PORT_INFO_GET, EINVAL, "PORT_INFO_GET" },
		{ NETMAP_REQ_POOLS_INFO_GET, EINVAL, "POOLS_INFO_GET" },
		{ NETMAP_REQ_PORT_HDR_SET, ENXIO, "PORT_HDR_SET" },
		{ NETMAP_REQ_PORT_HDR_GET, ENXIO, "PORT_HDR_GET" },
		{ NETMAP_REQ_VALE_DETACH, ENXIO, "VALE_DETACH" },
		{ NETMAP_REQ_VALE_POLLING_ENABLE, ENXIO, "POLLING_ENABLE" },
		{ NETMAP_REQ_VALE_POLLING_DISABLE, ENXIO, "POLLING_DISABLE" },
	};
	size_t i;

	for (i = 0; i < COUNT(requests); i++)
		check_call(ask(requests[i].type, own("vale$:lo")),
			   requests[i].error, requests[i].text);
}

static const struct test_case cases[] = {
	{ "S-VALE-1", "names that are good", good_names },
	{ "S-VALE-1", "names that are not", bad_names },
	{ "S-VALE-1", "names that are not, in VALE_LIST", bad_names_in_list },
	{ "S-VALE-2", "many switches", many_switches },
	{ "S-VALE-2", "ports up to the limit", many_ports },
	{ "S-VALE-2", "a frame to all of them", flood_to_many },
	{ "S-VALE-2", "the first free index", first_free_index },
	{ "S-VALE-2", "a switch lives with its ports",
	  switch_lives_with_ports },
	{ "S-VALE-2", "the learning table starts empty", table_starts_empty },
	{ "S-VALE-2", "switches are apart", switches_are_apart },
	{ "S-VALE-3", "from the first user to the last", ephemeral_life },
	{ "S-VALE-3", "for a question only", ephemeral_by_info },
	{ "S-VALE-3", "for a pipe", ephemeral_as_parent },
	{ "S-VALE-3", "for a monitor", ephemeral_as_target },
	{ "S-VALE-3", "default counts", default_counts },
	{ "S-VALE-3", "counts within limits", counts_are_clamped },
	{ "S-VALE-3", "tx and rx differ", directions_differ },
	{ "S-VALE-3", "no host rings", no_host_rings },
	{ "S-VALE-4", "an interface that is not attached", not_attached },
};

CHAPTER(cases)
