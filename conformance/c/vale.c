/* SPDX-License-Identifier: BSD-2-Clause */
/* VALE switches: names, limits, and where packets go (S-VALE-1 to 11). */
#include "lan.h"

#include <sys/resource.h>

static struct packet packet;

/* A port that another case's switch cannot have: its index and its bridge's. */
static int
list(const char *name, struct nmreq_vale_list *list)
{
	int fd = device_open(), result;

	memset(list, 0, sizeof(*list));
	result = control(fd, NETMAP_REQ_VALE_LIST, name, list);
	close(fd);
	return result;
}

static long long
index_of(const char *name)
{
	struct nmreq_vale_list at;

	return list(name, &at) == 0 ? (long long)at.nr_port_idx : -1;
}

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
	int fd = device_open(), result, cause;

	memset(&body, 0, sizeof(body));
	if (type == NETMAP_REQ_REGISTER || type == NETMAP_REQ_VALE_ATTACH)
		body.reg.nr_mode = NR_REG_ALL_NIC;
	if (type == NETMAP_REQ_VALE_POLLING_ENABLE ||
	    type == NETMAP_REQ_VALE_POLLING_DISABLE) {
		body.polling.nr_mode = NETMAP_POLLING_MODE_SINGLE_CPU;
		body.polling.nr_num_polling_cpus = 1;
	}
	result = control(fd, type, name, &body);
	cause = errno;
	close(fd);
	errno = cause;
	return result;
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
	check_number(index_of(name), made - 1, "the last one's index");
	close(fd[7]);
	check_call(control(fd[made], NETMAP_REQ_REGISTER, own("vale$:new"),
			   &reg), 0, "a place is free again");
	check_number(index_of(own("vale$:new")), 7, "it is the first free");
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
	check_number(index_of(lan_name(0)), 0, "the first port");
	check_number(index_of(lan_name(3)), 3, "the fourth port");
	port_close(&lan[1]);
	port_close(&lan[2]);
	lan_add(register_all());
	check_number(index_of(lan_name(4)), 1, "the first free place");
	lan_add(register_all());
	check_number(index_of(lan_name(5)), 2, "the next free place");
	lan_add(register_all());
	check_number(index_of(lan_name(6)), 4, "a place at the end");
	check_number(index_of(lan_name(1)), 255, "no such port any more");
}

static void
switch_lives_with_ports(void)
{
	struct nmreq_vale_list at;

	check_call(list(lan_name(0), &at), ENOENT, "no switch yet");
	lan_open(2);
	check_call(list(lan_name(0), &at), 0, "a switch");
	port_close(&lan[0]);
	check_call(list(lan_name(1), &at), 0, "with one port left");
	port_close(&lan[1]);
	check_call(list(lan_name(1), &at), ENOENT, "gone with its last port");
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

/* ---- S-VALE-5: sending ---- */

static void
all_slots_at_once(void)
{
	struct netmap_ring *tx;
	uint32_t i;

	lan_open(2);
	tx = port_tx(&lan[0]);
	for (i = 0; i < tx->num_slots - 1; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	check_number(nm_ring_space(tx), 0, "a full ring");
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
	check(nm_ring_next(tx, tx->tail) == tx->head, "tail is head - 1");
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(port_rx(&lan[1])), tx->num_slots - 1,
		     "all of it has arrived");
	for (i = 0; i < tx->num_slots - 1; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, tx->num_slots - 1, "in order");
}

/* Up to head, not up to cur, and the indices stay the program's. */
static void
up_to_head(void)
{
	struct netmap_ring *tx;
	uint32_t head, cur;

	lan_open(2);
	tx = port_tx(&lan[0]);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	head = tx->head;
	port_put(&lan[0], broadcast, mac_of(0), 3);
	cur = tx->cur;
	tx->head = head;
	port_txsync(&lan[0]);
	check(tx->head == head && tx->cur == cur, "head and cur are as set");
	check_number(lan_drain(1, 0), 2, "two frames of three");
	tx->head = cur;
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 3, "the third");
}

/* More slots than a batch of the original, which is 1024. */
static void
many_batches(void)
{
	struct nmreq_register reg = register_all();
	struct netmap_ring *tx;
	uint32_t i;

	reg.nr_tx_slots = reg.nr_rx_slots = 4096;
	lan_add(reg);
	lan_add(reg);
	tx = port_tx(&lan[0]);
	for (i = 0; i < 4095; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), 4095, "all slots free");
	for (i = 0; i < 4095; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 4095, "in order");
}

static void
truncated_packet(void)
{
	struct netmap_ring *tx;
	uint32_t last;

	lan_open(2);
	tx = port_tx(&lan[0]);
	ring_put_frame(tx, broadcast, mac_of(0), 7, 180, 60);
	last = (tx->head + tx->num_slots - 1) % tx->num_slots;
	tx->slot[last].flags = NS_MOREFRAG;
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet), "it is sent");
	check(packet.slots == 3 && packet_is_marked(&packet),
	      "three slots, as a packet of three (got %u)", packet.slots);
	check_number(packet_sequence(&packet), 7, "its bytes");
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

static void
truncated_single(void)
{
	struct netmap_ring *tx;

	lan_open(2);
	tx = port_tx(&lan[0]);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	tx->slot[0].flags = NS_MOREFRAG;
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 1 &&
	      packet_is_marked(&packet), "one slot, without NS_MOREFRAG");
}

static void
empty_sync(void)
{
	lan_open(2);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
	lan_silent(1, "a sync with nothing to send");
}

/* ---- S-VALE-6: learning ---- */

static void
learns_and_moves(void)
{
	lan_open(3);
	lan_teach(2, mac_of(50));
	lan_send(1, mac_of(50), mac_of(1));
	lan_expect_only(2, "where it was seen");
	lan_teach(0, mac_of(50));
	lan_send(1, mac_of(50), mac_of(1));
	lan_expect_only(0, "where it has moved to");
}

static void
learns_from_unicast(void)
{
	lan_open(3);
	lan_teach(0, mac_of(0));
	lan_send(1, mac_of(0), mac_of(1));
	lan_expect_only(0, "unicast");
	lan_send(2, mac_of(1), mac_of(2));
	lan_expect_only(1, "to the sender of a unicast");
}

/*
 * The original does not learn a port's last address again, so that a machine
 * which has moved away and back is not reached until it speaks with another
 * address. Here it is learned again at once: machines do move, and to lose
 * what is for them helps nobody.
 */
static void
away_and_back(void)
{
	lan_open(3);
	lan_teach(1, mac_of(9));
	lan_teach(2, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(2, "away");
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "back, with the same address as last");
	lan_teach(2, mac_of(9));
	lan_teach(1, mac_of(8));
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "back, after another address");
}

/*
 * A group is no source that is learned, nor that changes what was. The end
 * differs from the original, as in the case before.
 */
static void
group_sources(void)
{
	struct mac group = { { 0x01, 0, 0x5e, 0, 0, 1 } };

	lan_open(3);
	lan_teach(1, mac_of(9));
	lan_teach(1, group);
	lan_send(0, group, mac_of(0));
	lan_expect_flood(0, "to the group");
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "to the port's own address");
	lan_teach(2, mac_of(9));
	lan_teach(1, group);
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(2, "to an address that has moved before");
	lan_teach(1, mac_of(9));
	lan_send(0, mac_of(9), mac_of(0));
	lan_expect_only(1, "to one that is back");
}

static void
short_frames(void)
{
	uint8_t frame[64];
	uint16_t length;

	lan_open(2);
	for (length = 0; length <= 17; length++) {
		frame_fill(frame, sizeof(frame), broadcast, mac_of(0), length);
		ring_put(port_tx(&lan[0]), frame, length);
	}
	port_txsync(&lan[0]);
	for (length = 14; length <= 17; length++) {
		frame_fill(frame, sizeof(frame), broadcast, mac_of(0), length);
		check(port_take_packet(&lan[1], &packet) &&
		      packet.length == length &&
		      memcmp(packet.byte, frame, length) == 0,
		      "%u bytes arrive (got %u)", length, packet.length);
	}
	lan_silent(1, "0 to 13 bytes");
}

/* No more is forgotten than 1024 addresses can hold. */
static void
table_size(void)
{
	enum { ADDRESSES = 4096 };
	struct mac mac = mac_of(0), other = mac_of(1);
	uint32_t i, reached = 0, flooded = 0;

	lan_open(3);
	for (i = 0; i < ADDRESSES; i++) {
		mac.byte[3] = (uint8_t)(i >> 8);
		mac.byte[4] = (uint8_t)i;
		port_put(&lan[1], mac_of(200), mac, i);
		if (i % 512 == 511) {
			port_txsync(&lan[1]);
			lan_drain(0, 0);
			lan_drain(2, 0);
		}
	}
	for (i = 0; i < ADDRESSES; i++) {
		mac.byte[3] = (uint8_t)(i >> 8);
		mac.byte[4] = (uint8_t)i;
		port_put(&lan[0], mac, other, i);
		if (i % 512 == 511) {
			port_txsync(&lan[0]);
			reached += lan_drain(1, 0);
			flooded += lan_drain(2, 0);
		}
	}
	check_number(reached, ADDRESSES, "all reach the one that has them");
	check(flooded >= ADDRESSES - 1024,
	      "1024 are known at most (got %u)", ADDRESSES - flooded);
	check(flooded <= ADDRESSES - 256,
	      "many are known (got %u)", ADDRESSES - flooded);
}

/* ---- S-VALE-7: destinations ---- */

static void
floods(void)
{
	struct mac group = { { 0x01, 0, 0x5e, 0, 0, 1 } },
		   six = { { 0x33, 0x33, 0, 0, 0, 1 } };
	int i;

	lan_open(4);
	for (i = 0; i < 4; i++)
		lan_teach(i, mac_of((uint8_t)(i + 1)));
	lan_send(0, mac_of(99), mac_of(1));
	lan_expect_flood(0, "unknown unicast");
	lan_send(1, group, mac_of(2));
	lan_expect_flood(1, "multicast");
	lan_send(2, six, mac_of(3));
	lan_expect_flood(2, "IPv6 multicast");
	lan_send(3, broadcast, mac_of(4));
	lan_expect_flood(3, "broadcast");
}

static void
known_unicast(void)
{
	uint8_t from, to;

	lan_open(4);
	for (from = 0; from < 4; from++)
		lan_teach(from, mac_of(from));
	for (from = 0; from < 4; from++)
		for (to = 0; to < 4; to++) {
			if (from == to)
				continue;
			lan_send(from, mac_of(to), mac_of(from));
			lan_expect_only(to, "to a known address");
		}
}

static void
own_address(void)
{
	int i;

	lan_open(3);
	lan_teach(1, mac_of(1));
	lan_send(1, mac_of(1), mac_of(1));
	for (i = 0; i < 3; i++)
		lan_silent(i, "to an address behind the sender");
}

/*
 * The original keeps what it has learned of a port that is gone: its addresses
 * are dropped, and the next port that takes its place gets them. Here they are
 * forgotten: a machine that comes back at another port is reached at once, and
 * nobody gets what was for somebody else alone. (The service has seen that a port
 * is gone when it says so.)
 */
static void
vanished_port(void)
{
	lan_open(3);
	lan_teach(1, mac_of(1));
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(1, "while it is there");
	port_close(&lan[1]);
	check(!port_exists(lan_name(1)), "the port is gone");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_flood(0, "to a port that is gone");
	lan_add(register_all());
	check_number(index_of(lan_name(3)), 1, "the next port at its place");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_flood(0, "to a port that was there before");
	lan_teach(2, mac_of(1));
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(2, "where it has come back");
}

static void
alone_on_a_switch(void)
{
	lan_open(1);
	lan_send(0, broadcast, mac_of(0));
	lan_silent(0, "a switch of one port");
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
}

/* ---- S-VALE-8: rings of a destination ---- */

static struct nmreq_register
register_rings(uint16_t rings)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_rings = reg.nr_rx_rings = rings;
	reg.nr_tx_slots = reg.nr_rx_slots = 64;
	return reg;
}

/* What each rx ring of a port has: frames of one number. */
static void
check_rings(int port, const uint32_t *expected, uint32_t rings)
{
	uint32_t i;

	for (i = 0; i < rings; i++) {
		uint32_t got = lan_drain(port, (int)i);

		check(got == expected[i], "ring %u of port %c (got %u, "
		      "expected %u)", i, 'a' + port, got, expected[i]);
	}
}

static void
ring_of_unicast(void)
{
	static const uint32_t four[] = { 1, 1, 1, 1 }, two[] = { 2, 2 },
			      three[] = { 2, 1, 1 }, eight[] = { 1, 1, 1, 1,
			      0, 0, 0, 0 };
	static const struct {
		uint16_t rings;
		const uint32_t *expected;
	} receivers[] = { { 4, four }, { 2, two }, { 3, three }, { 8, eight } };
	size_t i;

	lan_add(register_rings(4));
	for (i = 0; i < COUNT(receivers); i++)
		lan_add(register_rings(receivers[i].rings));
	for (i = 0; i < COUNT(receivers); i++) {
		int to = (int)i + 1, ring;

		port_send(&lan[to], mac_of(100), mac_of((uint8_t)to), 0);
		lan_drain(0, 0);
		for (ring = 1; ring <= (int)COUNT(receivers); ring++)
			lan_drain(ring, 0);
		for (ring = 0; ring < 4; ring++)
			ring_put_frame(NETMAP_TXRING(lan[0].nifp, ring),
				       mac_of((uint8_t)to), mac_of(0), 1, 60,
				       60);
		port_txsync(&lan[0]);
		check_rings(to, receivers[i].expected, receivers[i].rings);
	}
}

static void
ring_of_flood(void)
{
	static const uint32_t first[] = { 4, 0, 0, 0 };
	int ring;

	lan_add(register_rings(4));
	lan_add(register_rings(4));
	lan_add(register_rings(2));
	for (ring = 0; ring < 4; ring++)
		ring_put_frame(NETMAP_TXRING(lan[0].nifp, ring), broadcast,
			       mac_of(0), 1, 60, 60);
	port_txsync(&lan[0]);
	check_rings(1, first, 4);
	check_rings(2, first, 2);
}

static void
order_in_a_batch(void)
{
	uint32_t i;

	lan_open(3);
	lan_teach(1, mac_of(1));
	for (i = 0; i < 600; i++)
		port_put(&lan[0], i % 3 ? mac_of(1) : broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	for (i = 0; i < 600; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 600, "unicast and broadcast in the order sent");
	for (i = 0; i < 600; i += 3)
		if (port_take(&lan[2]) != i)
			break;
	check_number(i, 600, "broadcasts in the order sent");
}

/* ---- S-VALE-9: bad slots and NS_INDIRECT ---- */

static void
slot_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_put(&lan[0], broadcast, mac_of(0), 3);
	tx->slot[at].len = (uint16_t)(tx->nr_buf_size + 1);
	tx->slot[at + 1].len = UINT16_MAX;
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 3, "only the good one");
	lan_silent(1, "the others");
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

static void
whole_buffer(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 2048, 2048);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.length == 2048 &&
	      packet_sequence(&packet) == 1, "2048 bytes in one slot");
}

/* A packet whose middle slot is too long has an empty middle. */
static void
middle_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	ring_put_frame(tx, broadcast, mac_of(0), 1, 180, 60);
	tx->slot[at + 1].len = (uint16_t)(tx->nr_buf_size + 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet), "a packet arrives");
	check(packet.slots == 3 && packet.slot[0].len == 60 &&
	      packet.slot[1].len == 0 && packet.slot[2].len == 60,
	      "60, 0 and 60 bytes (got %u slots: %u, %u, %u)", packet.slots,
	      packet.slot[0].len, packet.slot[1].len, packet.slot[2].len);
	check_number(port_take(&lan[1]), 2, "the next is whole");
}

static void
first_too_long(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(2);
	tx = port_tx(&lan[0]);
	at = tx->head;
	ring_put_frame(tx, broadcast, mac_of(0), 1, 180, 60);
	tx->slot[at].len = (uint16_t)(tx->nr_buf_size + 1);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 2, "dropped to its end");
}

/* Memory of this process, with a page behind it that cannot be read. */
static uint8_t *
guarded_memory(size_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = (uint8_t *)mmap(NULL, 3 * page,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(memory != MAP_FAILED && mprotect(memory + 2 * page, page,
						 PROT_NONE) == 0, "memory");
	*size = 2 * page;
	return memory;
}

static void
put_indirect(struct netmap_ring *tx, const void *at, uint32_t length,
	     uint16_t flags)
{
	struct netmap_slot *slot = &tx->slot[tx->head];

	slot->ptr = (uintptr_t)at;
	slot->len = (uint16_t)length;
	slot->flags = NS_INDIRECT | flags;
	ring_advance(tx, 1);
}

static void
indirect(void)
{
	static const uint32_t lengths[] = { 14, 60, 61, 64, 1514, 2048 };
	uint8_t *memory;
	size_t size, i;

	lan_open(3);
	memory = guarded_memory(&size);
	for (i = 0; i < COUNT(lengths); i++) {
		frame_fill(memory + i, lengths[i] < 18 ? 18 : lengths[i],
			   broadcast, mac_of(0), (uint32_t)i);
		put_indirect(port_tx(&lan[0]), memory + i, lengths[i], 0);
		port_txsync(&lan[0]);
		if (!check(port_take_packet(&lan[1], &packet) &&
			   packet.length == lengths[i] &&
			   memcmp(packet.byte, memory + i, lengths[i]) == 0,
			   "%u bytes at an address", lengths[i]))
			return;
		check(port_take_packet(&lan[2], &packet) &&
		      packet.length == lengths[i] &&
		      memcmp(packet.byte, memory + i, lengths[i]) == 0,
		      "%u bytes, to the other port", lengths[i]);
	}
}

/* The learning and the look-up see the address in the user's memory. */
static void
indirect_is_learned(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(3);
	memory = guarded_memory(&size);
	frame_fill(memory, 60, broadcast, mac_of(5), 1);
	put_indirect(port_tx(&lan[1]), memory, 60, 0);
	port_txsync(&lan[1]);
	lan_sequence = 1;
	lan_expect_flood(1, "broadcast");
	frame_fill(memory, 60, mac_of(5), mac_of(6), ++lan_sequence);
	put_indirect(port_tx(&lan[0]), memory, 60, 0);
	port_txsync(&lan[0]);
	lan_expect_only(1, "to the address learned");
}

static void
indirect_null(void)
{
	lan_open(2);
	put_indirect(port_tx(&lan[0]), NULL, 60, 0);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 1, "only the next one");
	lan_silent(1, "address 0");
}

static void
indirect_unreadable(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(2);
	memory = guarded_memory(&size);
	put_indirect(port_tx(&lan[0]), memory + size, 60, 0);
	put_indirect(port_tx(&lan[0]), (void *)64, 60, 0);
	port_put(&lan[0], broadcast, mac_of(0), 1);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 1, "only the next one");
	lan_silent(1, "addresses that cannot be read");
}

/* The header can be read, the rest cannot. */
static void
indirect_half_readable(void)
{
	uint8_t *memory;
	size_t size;

	lan_open(2);
	memory = guarded_memory(&size);
	frame_fill(memory + size - 64, 64, broadcast, mac_of(0), 1);
	put_indirect(port_tx(&lan[0]), memory + size - 64, 512, 0);
	port_put(&lan[0], broadcast, mac_of(0), 2);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 1 &&
	      packet.length == 0, "an empty packet (got %u bytes)",
	      packet.length);
	check_number(port_take(&lan[1]), 2, "the next is whole");
}

static void
indirect_fragments(void)
{
	struct netmap_ring *tx;
	uint8_t *memory;
	size_t size;

	lan_open(2);
	tx = port_tx(&lan[0]);
	memory = guarded_memory(&size);
	frame_fill(memory, 300, broadcast, mac_of(0), 1);
	/* A header in a buffer, the rest where it lies, in two pieces. */
	ring_put(tx, memory, 100);
	tx->slot[0].flags = NS_MOREFRAG;
	put_indirect(tx, memory + 100, 150, NS_MOREFRAG);
	put_indirect(tx, memory + 250, 50, 0);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 3 &&
	      packet.length == 300 && packet_sequence(&packet) == 1 &&
	      packet_is_marked(&packet), "three slots, all bytes");
	ring_put(tx, memory, 100);
	tx->slot[3].flags = NS_MOREFRAG;
	put_indirect(tx, memory + size, 150, NS_MOREFRAG);
	put_indirect(tx, NULL, 150, NS_MOREFRAG);
	put_indirect(tx, memory + 250, 50, 0);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 4 &&
	      packet.slot[0].len == 100 && packet.slot[1].len == 0 &&
	      packet.slot[2].len == 0 && packet.slot[3].len == 50,
	      "what cannot be read has length 0");
}

/* ---- S-VALE-10: a full destination ---- */

static struct nmreq_register
register_slots(uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = slots;
	return reg;
}

static void
full_destination(void)
{
	struct netmap_ring *tx;
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	lan_add(register_slots(64));
	tx = port_tx(&lan[0]);
	for (i = 0; i < 40; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(tx), 63, "the sender is not held up");
	for (i = 0; i < 15; i++)
		if (port_take(&lan[1]) != i)
			break;
	check_number(i, 15, "the first n-1, in order");
	lan_silent(1, "the others are lost");
	check_number(lan_drain(2, 0), 40, "the other port gets all");
	port_put(&lan[0], broadcast, mac_of(0), 77);
	port_txsync(&lan[0]);
	check_number(port_take(&lan[1]), 77, "and it goes on");
}

/* A slot is free again when the receiver has synced past it. */
static void
freed_by_sync(void)
{
	struct netmap_ring *rx;
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	rx = port_rx(&lan[1]);
	for (i = 0; i < 15; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	ring_advance(rx, 5);
	for (i = 15; i < 25; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(rx), 10, "taken but not released: full");
	for (i = 30; i < 40; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(nm_ring_space(rx), 15, "5 released: 5 more");
	ring_advance(rx, 10);
	check_number(port_take(&lan[1]), 30, "those sent after the release");
}

static void
whole_packets_only(void)
{
	uint32_t i;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	for (i = 0; i < 6; i++)
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), i, 240,
			       60);
	port_txsync(&lan[0]);
	for (i = 0; i < 3; i++)
		if (!port_take_packet(&lan[1], &packet) ||
		    packet.slots != 4 || packet_sequence(&packet) != i)
			break;
	check_number(i, 3, "three packets of 4 slots in 15");
	lan_silent(1, "no part of the fourth");
}

/* S-VALE-10 says leading packets: none that is behind one that did not fit. */
static void
leading_packets(void)
{
	lan_add(register_slots(64));
	lan_add(register_slots(8));
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 240, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 240, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 3, 60, 60);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) &&
	      packet_sequence(&packet) == 1, "the first of 4 slots");
	lan_silent(1, "not the third, behind the second");
}

static void
not_bound_for_rx(void)
{
	struct nmreq_register reg = register_all();
	struct port late;

	lan_open(2);
	reg.nr_flags = NR_TX_RINGS_ONLY;
	late = port_open_as(own("vale$:z"), reg);
	lan_send(0, broadcast, mac_of(0));
	lan_expect(1, "the other port");
	reg.nr_flags = NR_RX_RINGS_ONLY;
	late = port_open_as(own("vale$:z"), reg);
	port_rxsync(&late);
	check(nm_ring_empty(port_rx(&late)), "nothing was kept for it");
	lan_send(0, broadcast, mac_of(0));
	check_number(port_take(&late), lan_sequence, "now it is bound");
}

/* ---- S-VALE-11: what is delivered ---- */

static void
fragments(void)
{
	uint32_t count;
	int good = 1;

	lan_open(3);
	for (count = 1; count <= NETMAP_MAX_FRAGS; count++) {
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), count,
			       count * 60 - 1, 60);
		port_txsync(&lan[0]);
		good &= port_take_packet(&lan[1], &packet) &&
			packet.slots == count &&
			packet.length == count * 60 - 1 &&
			packet_is_marked(&packet) &&
			packet_sequence(&packet) == count;
		if (!check(good, "%u slots", count))
			return;
		good &= port_take_packet(&lan[2], &packet) &&
			packet.slots == count &&
			packet_sequence(&packet) == count;
		port_rxsync(&lan[1]);
		port_rxsync(&lan[2]);
	}
	check(good, "and the same to the other port");
}

static void
largest_packet(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 5, 32 * 2048,
		       2048);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 32 &&
	      packet.length == 65536 && packet_sequence(&packet) == 5,
	      "64 KiB in 32 slots");
	port_rxsync(&lan[1]);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 6, 65536,
		       1024);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 64 &&
	      packet.length == 65536 && packet_sequence(&packet) == 6,
	      "64 KiB in 64 slots");
}

/* What happens to it is open; what comes behind it is not. */
static void
too_many_fragments(void)
{
	lan_open(2);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 65 * 60, 60);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 255 * 60,
		       60);
	port_put(&lan[0], broadcast, mac_of(0), 3);
	port_txsync(&lan[0]);
	check_number(nm_ring_space(port_tx(&lan[0])), 1023, "all slots free");
	while (port_take_packet(&lan[1], &packet) && packet.slots > 64)
		;
	check(packet.slots == 1 && packet_sequence(&packet) == 3,
	      "the packet behind is whole (got %u slots)", packet.slots);
}

static void
fragments_at_the_end_of_the_ring(void)
{
	uint32_t i, good = 0;

	lan_add(register_slots(64));
	lan_add(register_slots(64));
	for (i = 0; i < 40; i++) {
		ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), i, 420,
			       60);
		port_txsync(&lan[0]);
		good += port_take_packet(&lan[1], &packet) &&
			packet.slots == 7 && packet_is_marked(&packet) &&
			packet_sequence(&packet) == i;
		port_rxsync(&lan[1]);
	}
	check_number(good, 40, "packets of 7 slots round a ring of 64");
}

/* An empty slot within a packet stays a slot. */
static void
empty_fragment(void)
{
	static const uint16_t piece[] = { 60, 0, 40 };
	uint8_t frame[100];

	lan_open(2);
	frame_fill(frame, 100, broadcast, mac_of(0), 1);
	ring_put_pieces(port_tx(&lan[0]), frame, piece, 3);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 3 &&
	      packet.slot[1].len == 0 && packet_sequence(&packet) == 1,
	      "60, 0 and 40 bytes");
}

/* The first slot holds a header at least. */
static void
short_first_fragment(void)
{
	static const uint16_t short_piece[] = { 13, 87 }, piece[] = { 14, 86 };
	uint8_t frame[100];

	lan_open(2);
	frame_fill(frame, 100, broadcast, mac_of(0), 1);
	ring_put_pieces(port_tx(&lan[0]), frame, short_piece, 2);
	frame_fill(frame, 100, broadcast, mac_of(0), 2);
	ring_put_pieces(port_tx(&lan[0]), frame, piece, 2);
	port_txsync(&lan[0]);
	check(port_take_packet(&lan[1], &packet) && packet.slots == 2 &&
	      packet_sequence(&packet) == 2, "14 bytes will do, 13 do not");
}

/* A receiver with small buffers, in memory of its own (S-EXT). */
static void
small_destination_buffer(void)
{
	enum { SIZE = 1 << 20 };
	struct nmreq_register reg = register_slots(16);
	struct nmreq_opt_extmem extmem;
	struct nmreq_header header;
	struct port port;
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	require(memory != MAP_FAILED, "memory");
	lan_open(1);
	memset(&extmem, 0, sizeof(extmem));
	extmem.nro_opt.nro_reqtype = NETMAP_REQ_OPT_EXTMEM;
	extmem.nro_usrptr = (uintptr_t)memory;
	extmem.nro_info.nr_memsize = SIZE;
	extmem.nro_info.nr_if_pool_objtotal = 8;
	extmem.nro_info.nr_if_pool_objsize = 1024;
	extmem.nro_info.nr_ring_pool_objtotal = 16;
	extmem.nro_info.nr_ring_pool_objsize = 4096;
	extmem.nro_info.nr_buf_pool_objtotal = 1024;
	extmem.nro_info.nr_buf_pool_objsize = 512;
	port.fd = device_open();
	header = header_of(NETMAP_REQ_REGISTER, own("vale$:z"), &reg);
	header.nr_options = (uintptr_t)&extmem;
	require(ioctl(port.fd, NIOCCTRL, &header) == 0, "REGISTER in memory "
		"of the program's");
	port.reg = reg;
	port_map(&port);
	check_number(port_rx(&port)->nr_buf_size, 512, "its buffers");

	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 1, 600, 600);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 2, 700, 512);
	ring_put_frame(port_tx(&lan[0]), broadcast, mac_of(0), 3, 512, 512);
	port_txsync(&lan[0]);
	check(port_take_packet(&port, &packet) && packet.slots == 1 &&
	      packet.length == 0, "600 bytes do not fit: length 0");
	check(port_take_packet(&port, &packet) && packet.slots == 2 &&
	      packet_sequence(&packet) == 2, "512 and 188 bytes do");
	check(port_take_packet(&port, &packet) &&
	      packet_sequence(&packet) == 3, "a whole buffer");
}

/* A receiver asleep in poll is woken by the first frame. */
static void
wakes_receiver(void)
{
	int ready[2], status;
	pid_t child;
	char byte;

	lan_open(2);
	require(pipe(ready) == 0, "pipe");
	fflush(stdout);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		require(read(ready[0], &byte, 1) == 1, "start");
		port_send(&lan[0], broadcast, mac_of(0), 1);
		_exit(0);
	}
	require(write(ready[1], "", 1) == 1, "start");
	check_number(wait_events(lan[1].fd, POLLIN, PATIENCE_MS), POLLIN,
		     "poll ends");
	check_number(port_take(&lan[1]), 1, "with the frame");
	waitpid(child, &status, 0);
}

static void
receiver_keeps_its_buffers(void)
{
	struct netmap_ring *rx;
	uint32_t before, i, same = 0;

	lan_add(register_slots(64));
	lan_add(register_slots(16));
	rx = port_rx(&lan[1]);
	before = rx->slot[3].buf_idx;
	for (i = 0; i < 10; i++)
		port_put(&lan[0], broadcast, mac_of(0), i);
	port_txsync(&lan[0]);
	port_rxsync(&lan[1]);
	check_number(rx->slot[3].buf_idx, before, "the slot's own buffer");
	/* Its buffer is replaced while it is free, and used. */
	same = rx->slot[4].buf_idx;
	rx->slot[4].buf_idx = rx->slot[5].buf_idx;
	rx->slot[5].buf_idx = same;
	rx->slot[4].flags |= NS_BUF_CHANGED;
	rx->slot[5].flags |= NS_BUF_CHANGED;
	ring_advance(rx, 10);
	port_rxsync(&lan[1]);
	check(!(rx->slot[4].flags & NS_BUF_CHANGED) &&
	      !(rx->slot[5].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is consumed by the sync");
	for (i = 0; i < 16; i++) {
		port_send(&lan[0], broadcast, mac_of(0), i);
		port_rxsync(&lan[1]);
		if (rx->head == 5 && rx->slot[5].buf_idx != same)
			break;
		if (port_take(&lan[1]) != i)
			break;
	}
	check_number(i, 16, "frames in the buffers that were given");
}

/* ---- flags that the switch does not look at ---- */

static void
ignored_flags(void)
{
	struct netmap_ring *tx;
	uint32_t at;

	lan_open(3);
	tx = port_tx(&lan[1]);
	at = tx->head;
	port_put(&lan[1], broadcast, mac_of(1), ++lan_sequence);
	tx->slot[at].flags = NS_NO_LEARN | NS_REPORT | NS_FORWARD |
			     2 << NS_PORT_SHIFT;
	port_txsync(&lan[1]);
	lan_expect_flood(1, "NS_PORT_MASK chooses no port");
	lan_send(0, mac_of(1), mac_of(0));
	lan_expect_only(1, "NS_NO_LEARN hides no address");
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
	{ "S-VALE-5", "all slots at once", all_slots_at_once },
	{ "S-VALE-5", "up to head", up_to_head },
	{ "S-VALE-5", "several batches", many_batches },
	{ "S-VALE-5", "an incomplete packet is sent", truncated_packet },
	{ "S-VALE-5", "an incomplete packet of one slot", truncated_single },
	{ "S-VALE-5", "nothing to send", empty_sync },
	{ "S-VALE-6", "an address moves", learns_and_moves },
	{ "S-VALE-6", "from unicast frames", learns_from_unicast },
	{ "S-VALE-6", "an address that comes back", away_and_back },
	{ "S-VALE-6", "group addresses as source", group_sources },
	{ "S-VALE-6", "short frames", short_frames },
	{ "S-VALE-6", "the size of the table", table_size },
	{ "S-VALE-7", "floods", floods },
	{ "S-VALE-7", "known unicast", known_unicast },
	{ "S-VALE-7", "to the sender's own port", own_address },
	{ "S-VALE-7", "to a port that is gone", vanished_port },
	{ "S-VALE-7", "alone", alone_on_a_switch },
	{ "S-VALE-8", "unicast: ring of the same number", ring_of_unicast },
	{ "S-VALE-8", "flood: ring 0", ring_of_flood },
	{ "S-VALE-8", "order within a batch", order_in_a_batch },
	{ "S-VALE-9", "longer than the buffer", slot_too_long },
	{ "S-VALE-9", "as long as the buffer", whole_buffer },
	{ "S-VALE-9", "a later slot too long", middle_too_long },
	{ "S-VALE-9", "the first slot too long", first_too_long },
	{ "S-VALE-9", "NS_INDIRECT", indirect },
	{ "S-VALE-9", "NS_INDIRECT is learned from", indirect_is_learned },
	{ "S-VALE-9", "NS_INDIRECT to nowhere", indirect_null },
	{ "S-VALE-9", "NS_INDIRECT to what cannot be read",
	  indirect_unreadable },
	{ "S-VALE-9", "NS_INDIRECT to what can be read in part",
	  indirect_half_readable },
	{ "S-VALE-9", "NS_INDIRECT in fragments", indirect_fragments },
	{ "S-VALE-10", "a full ring", full_destination },
	{ "S-VALE-10", "released by a sync", freed_by_sync },
	{ "S-VALE-10", "whole packets only", whole_packets_only },
	{ "S-VALE-10", "leading packets", leading_packets },
	{ "S-VALE-10", "not bound for rx", not_bound_for_rx },
	{ "S-VALE-11", "1 to 64 slots", fragments },
	{ "S-VALE-11", "64 KiB", largest_packet },
	{ "S-VALE-11", "more than 64 slots", too_many_fragments },
	{ "S-VALE-11", "round the end of the ring",
	  fragments_at_the_end_of_the_ring },
	{ "S-VALE-11", "an empty slot within", empty_fragment },
	{ "S-VALE-11", "a short first slot", short_first_fragment },
	{ "S-VALE-11", "smaller buffers at the destination",
	  small_destination_buffer },
	{ "S-VALE-11", "wakes the receiver", wakes_receiver },
	{ "S-VALE-11", "the receiver's buffers", receiver_keeps_its_buffers },
	{ "S-FLAGS-NS_NO_LEARN", "not looked at, nor the port bits", ignored_flags },
};

CHAPTER(cases)
