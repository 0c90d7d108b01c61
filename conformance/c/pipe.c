/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes: their parents, and what travels through them (S-PIPE). */
#include "netns.h"
#include "packet.h"
#include "request.h"

static struct packet packet;

struct pipe_ends {
	struct port master, slave;
};

static const char *
end_name(const char *parent, char side, const char *id)
{
	static char names[8][NETMAP_REQ_IFNAMSIZ];
	static unsigned next;
	char *out = names[next++ % 8];

	snprintf(out, NETMAP_REQ_IFNAMSIZ, "%s%c%s", parent, side, id);
	return out;
}

static struct pipe_ends
pipe_open_as(const char *parent, const char *id, struct nmreq_register reg)
{
	struct pipe_ends ends;

	ends.master = port_open_as(end_name(parent, '{', id), reg);
	ends.slave = port_open_as(end_name(parent, '}', id), reg);
	return ends;
}

static struct pipe_ends
pipe_open(void)
{
	return pipe_open_as(own("c$"), "1", register_all());
}

static int
try_open(const char *name, struct nmreq_register reg)
{
	int fd = device_open();
	int result = control(fd, NETMAP_REQ_REGISTER, name, &reg);
	int cause = errno;

	close(fd);
	errno = cause;
	return result;
}

static void
send_frames(const struct port *from, uint32_t first, uint32_t count)
{
	while (count--)
		port_put(from, mac_of(2), mac_of(1), first++);
	port_txsync(from);
}

/* Takes frames with these numbers; tells whether all came. */
static int
take_frames(const struct port *to, uint32_t first, uint32_t count)
{
	for (; count--; first++)
		if (port_take(to) != first)
			return 0;
	return 1;
}

static uint32_t
tx_room(const struct port *port)
{
	port_txsync(port);
	return nm_ring_space(port_tx(port));
}

static uint32_t
rx_count(const struct port *port)
{
	port_rxsync(port);
	return nm_ring_space(port_rx(port));
}

/* Frames both ways, and the slots back. */
static void
check_works(const struct port *one, const struct port *other)
{
	uint32_t all = port_tx(one)->num_slots - 1;

	send_frames(one, 10, 3);
	check(take_frames(other, 10, 3), "three one way");
	port_rxsync(other);
	send_frames(other, 20, 3);
	check(take_frames(one, 20, 3), "three the other way");
	port_rxsync(one);
	check(tx_room(one) == all && tx_room(other) == all,
	      "all slots are free again");
}

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
		check_call(try_open(own(table[i].name), register_all()),
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

/* Makes a persistent port of that name. */
static int
new_interface(const char *name)
{
	struct nmreq_vale_newif newif;
	int fd = device_open(), result, cause;

	memset(&newif, 0, sizeof(newif));
	result = control(fd, NETMAP_REQ_VALE_NEWIF, name, &newif);
	cause = errno;
	close(fd);
	errno = cause;
	return result;
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
	int fd;

	netns_own();
	one = port_open(own("c${1"));
	region = one.reg.nr_mem_id;
	check(if_nametoindex(own("c$")) == 0, "no device with a pipe");
	check_call(new_interface(own("c$")), EEXIST, "the name is taken");
	check(region_exists(region), "there is its region");
	two = port_open(own("c$}2"));
	check_number(two.reg.nr_mem_id, region, "the region of all its pipes");
	port_close(&one);
	check(if_nametoindex(own("c$")) == 0, "no device with its last pipe");
	check_call(new_interface(own("c$")), EEXIST, "the name is still taken");
	check(region_exists(region), "there is still its region");
	port_close(&two);
	check(!region_exists(region), "the region goes with the last pipe");
	check_call(new_interface(own("c$")), 0, "so does the name");
	fd = device_open();
	check_call(control(fd, NETMAP_REQ_VALE_DELIF, own("c$"), NULL), 0,
		   "VALE_DELIF");
	close(fd);
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
	struct nmreq_vale_newif newif;
	struct pipe_ends ends;
	int fd = device_open();

	netns_own();
	memset(&newif, 0, sizeof(newif));
	require(control(fd, NETMAP_REQ_VALE_NEWIF, own("p$"), &newif) == 0,
		"VALE_NEWIF");
	ends = pipe_open_as(own("p$"), "1", register_all());
	check_works(&ends.master, &ends.slave);
	port_close(&ends.master);
	port_close(&ends.slave);
	check(if_nametoindex(own("p$")) != 0, "it does not go with the pipe");
	check_call(control(fd, NETMAP_REQ_VALE_DELIF, own("p$"), NULL), 0,
		   "VALE_DELIF");
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
	struct nmreq_vale_attach attach;
	struct nmreq_vale_detach detach;
	char name[NETMAP_REQ_IFNAMSIZ];
	int fd = device_open();

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	memset(&attach, 0, sizeof(attach));
	attach.reg.nr_mode = NR_REG_ALL_NIC;
	snprintf(name, sizeof(name), "%s:%s", own("vale$"), own("n$"));
	require(control(fd, NETMAP_REQ_VALE_ATTACH, name, &attach) == 0,
		"VALE_ATTACH");
	check_call(try_open(own("n${1"), register_all()), EBUSY,
		   "a pipe on an attached interface");
	memset(&detach, 0, sizeof(detach));
	check_call(control(fd, NETMAP_REQ_VALE_DETACH, name, &detach), 0,
		   "VALE_DETACH");
}

static void
absent_pipe(void)
{
	struct nmreq_port_hdr hdr;
	int fd = device_open();

	memset(&hdr, 0, sizeof(hdr));
	check_call(control(fd, NETMAP_REQ_PORT_HDR_GET, own("c${1"), &hdr),
		   ENODEV, "asked without creating it");
	check(!port_exists(own("vale$:p")), "no parent either");
	check_call(control(fd, NETMAP_REQ_PORT_HDR_GET, own("vale$:p{1"),
			   &hdr), ENODEV, "on a switch");
	check(!port_exists(own("vale$:p")), "no port is left");
}

/* ---- S-PIPE-3: both ends, up to 64 ---- */

static void
made_together(void)
{
	struct port master = port_open(own("c${1")), other;
	struct nmreq_port_hdr hdr;
	int fd = device_open();

	memset(&hdr, 0, sizeof(hdr));
	check_call(control(fd, NETMAP_REQ_PORT_HDR_GET, own("c$}1"), &hdr), 0,
		   "the slave is there with the master");
	other = port_open(own("d${1"));
	check(other.reg.nr_mem_id != master.reg.nr_mem_id,
	      "the same id of another parent is another pipe");
}

/* A parent whose region, in this program's memory, has room for many. */
static struct port
spacious_parent(const char *name)
{
	enum { SIZE = 24 << 20 };
	struct nmreq_register reg = register_all();
	struct nmreq_opt_extmem extmem;
	struct nmreq_header header;
	struct port port;
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	require(memory != MAP_FAILED, "memory");
	memset(&extmem, 0, sizeof(extmem));
	extmem.nro_opt.nro_reqtype = NETMAP_REQ_OPT_EXTMEM;
	extmem.nro_usrptr = (uintptr_t)memory;
	extmem.nro_info.nr_memsize = SIZE;
	extmem.nro_info.nr_if_pool_objtotal = 100;
	extmem.nro_info.nr_if_pool_objsize = 1024;
	extmem.nro_info.nr_ring_pool_objtotal = 512;
	extmem.nro_info.nr_ring_pool_objsize = 1024;
	extmem.nro_info.nr_buf_pool_objtotal = 8192;
	extmem.nro_info.nr_buf_pool_objsize = 2048;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	port.fd = device_open();
	header = header_of(NETMAP_REQ_REGISTER, name, &reg);
	header.nr_options = (uintptr_t)&extmem;
	require(ioctl(port.fd, NIOCCTRL, &header) == 0,
		"REGISTER in memory of the program's");
	port.reg = reg;
	port_map(&port);
	return port;
}

static void
sixty_four(void)
{
	struct port parent = spacious_parent(own("vale$:p"));
	struct port master[65], slave;
	char id[8];
	int i;

	for (i = 0; i < 64; i++) {
		snprintf(id, sizeof(id), "%d", i);
		master[i] = port_open(end_name(own("vale$:p"), '{', id));
	}
	check_number(master[63].reg.nr_tx_slots, 16, "64 pipes");
	check_number(master[63].reg.nr_mem_id, parent.reg.nr_mem_id,
		     "in the parent's region");
	check_call(try_open(own("vale$:p{64"), register_all()), EINVAL,
		   "one more");
	slave = port_open(own("vale$:p}63"));
	check_works(&master[63], &slave);
	port_close(&master[5]);
	check_call(try_open(own("vale$:p}64"), register_all()), 0,
		   "one more after one has gone");
}

/* The region of a VALE port has room for two pipes, and some more. */
static void
out_of_memory(void)
{
	char id[8];
	int i, result = 0;

	for (i = 0; i < 64; i++) {
		struct nmreq_register reg = register_all();
		int fd = device_open();

		snprintf(id, sizeof(id), "%d", i);
		result = control(fd, NETMAP_REQ_REGISTER,
				 end_name(own("vale$:p"), '{', id), &reg);
		if (result == -1)
			break;
	}
	check_call(result, ENOMEM, "no room for another");
	check(i >= 2, "two at least (got %d)", i);
	check_call(try_open(own("vale$:p}0"), register_all()), 0,
		   "the ends of those there are");
}

/* ---- S-PIPE-4: counts ---- */

static void
counts(char first)
{
	struct nmreq_register reg = register_all();
	struct port end[2];
	const struct port *master, *slave;

	reg.nr_tx_slots = 128;
	reg.nr_rx_slots = 256;
	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 1;
	end[0] = port_open_as(end_name(own("c$"), first, "1"), reg);
	end[1] = port_open(end_name(own("c$"), first == '{' ? '}' : '{',
				    "1"));
	master = &end[first == '}'];
	slave = &end[first == '{'];
	check(master->reg.nr_tx_slots == 128 &&
	      master->reg.nr_rx_slots == 256, "slots of the master (got tx "
	      "%u, rx %u)", master->reg.nr_tx_slots, master->reg.nr_rx_slots);
	check(slave->reg.nr_tx_slots == 256 && slave->reg.nr_rx_slots == 128,
	      "slots of the slave (got tx %u, rx %u)",
	      slave->reg.nr_tx_slots, slave->reg.nr_rx_slots);
	check(master->reg.nr_tx_rings == 2 && master->reg.nr_rx_rings == 1,
	      "rings of the master");
	check(slave->reg.nr_tx_rings == 1 && slave->reg.nr_rx_rings == 2,
	      "rings of the slave");
}

static void
counts_by_master(void)
{
	counts('{');
}

static void
counts_by_slave(void)
{
	counts('}');
}

static void
default_counts(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	struct port parent;

	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 32;
	reg.nr_tx_rings = 3;
	parent = port_open_as(own("vale$:p"), reg);
	ends = pipe_open_as(own("vale$:p"), "1", register_all());
	check(ends.master.reg.nr_tx_slots == 64 &&
	      ends.master.reg.nr_rx_slots == 32, "the parent's slots "
	      "(got tx %u, rx %u)", ends.master.reg.nr_tx_slots,
	      ends.master.reg.nr_rx_slots);
	check(ends.slave.reg.nr_tx_slots == 32 &&
	      ends.slave.reg.nr_rx_slots == 64, "the other way round for "
	      "the slave");
	check(ends.master.reg.nr_tx_rings == 1 &&
	      ends.master.reg.nr_rx_rings == 1, "one ring each way, however "
	      "many the parent has");
	port_close(&parent);
}

static void
counts_within_limits(void)
{
	static const uint32_t slots[][2] = {
		{ 1, 1 }, { 2, 2 }, { 1000, 1000 }, { 4096, 4096 },
		{ 4097, 4096 }, { UINT32_MAX, 4096 },
	};
	size_t i;

	for (i = 0; i < COUNT(slots); i++) {
		struct nmreq_register reg = register_all();
		struct port parent, port;

		reg.nr_tx_slots = reg.nr_rx_slots = 4096;
		parent = port_open_as(own("vale$:p"), reg);
		reg.nr_tx_slots = reg.nr_rx_slots = slots[i][0];
		port = port_open_as(own("vale$:p{1"), reg);
		check_number(port.reg.nr_tx_slots, slots[i][1], "tx slots");
		check_number(port.reg.nr_rx_slots, slots[i][1], "rx slots");
		port_close(&port);
		port_close(&parent);
	}
}

static void
rings_within_limits(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_port_info_get info;
	struct port parent = spacious_parent(own("vale$:p"));
	struct port port;

	check_number(parent.reg.nr_tx_rings, 1, "rings of the parent");
	reg.nr_tx_rings = 300;
	reg.nr_tx_slots = reg.nr_rx_slots = 2;
	/* 256 rings are more than an interface object of 1024 bytes names. */
	check_call(try_open(own("vale$:p{1"), reg), ENOMEM, "300 rings");
	reg.nr_tx_rings = 40;
	port = port_open_as(own("vale$:p{1"), reg);
	check_number(port.reg.nr_tx_rings, 40, "40 rings");
	memset(&info, 0, sizeof(info));
	check_call(control(device_open(), NETMAP_REQ_PORT_INFO_GET,
			   own("vale$:p}1"), &info), 0, "PORT_INFO_GET");
	check_number(info.nr_rx_rings, 40, "the slave's");
}

/* ---- S-PIPE-5: memory ---- */

static void
extra_buffers(void)
{
	struct nmreq_register reg = register_all();
	struct port parent, master;
	uint32_t index, count = 0;

	reg.nr_extra_bufs = 8;
	master = port_open_as(own("vale$:p{1"), reg);
	parent = port_open(own("vale$:p"));
	check_number(parent.reg.nr_mem_id, master.reg.nr_mem_id,
		     "the parent's region");
	check_number(parent.reg.nr_memsize, master.reg.nr_memsize,
		     "all of it");
	check_number(master.reg.nr_extra_bufs, 8, "buffers granted");
	for (index = master.nifp->ni_bufs_head; index >= 2 && count < 9;
	     count++)
		memcpy(&index, NETMAP_BUF(port_tx(&master), index),
		       sizeof(index));
	check_number(count, 8, "buffers in the list");
}

/* A frame from one pipe to another of the same parent, without a copy. */
static void
zero_copy_between_pipes(void)
{
	struct pipe_ends one = pipe_open_as(own("c$"), "1", register_all()),
			 two = pipe_open_as(own("c$"), "2", register_all());
	struct netmap_slot *from, *to;
	uint32_t index, back;

	check_number(one.master.reg.nr_mem_id, two.master.reg.nr_mem_id,
		     "one region");
	send_frames(&one.master, 42, 1);
	require(port_peek(&one.slave) != NULL, "a frame");
	from = &port_rx(&one.slave)->slot[port_rx(&one.slave)->head];
	to = &port_tx(&two.master)->slot[port_tx(&two.master)->head];
	index = from->buf_idx;
	back = to->buf_idx;
	to->buf_idx = index;
	to->len = from->len;
	from->buf_idx = back;
	to->flags = from->flags = NS_BUF_CHANGED;
	ring_advance(port_rx(&one.slave), 1);
	ring_advance(port_tx(&two.master), 1);
	port_rxsync(&one.slave);
	port_txsync(&two.master);
	check(port_peek(&two.slave) != NULL &&
	      port_rx(&two.slave)->slot[0].buf_idx == index,
	      "the same buffer arrives");
	check_number(port_take(&two.slave), 42, "with the frame");
	port_txsync(&one.master);
	check_number(port_tx(&one.master)->slot[0].buf_idx, back,
		     "the first sender gets the other buffer");
}

/* ---- S-PIPE-6: rings ---- */

static void
ring_meets_ring(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	uint32_t i, j;

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	ends = pipe_open_as(own("vale$:p"), "1", reg);
	for (i = 0; i < 3; i++)
		for (j = 0; j <= i; j++) {
			ring_put_frame(NETMAP_TXRING(ends.master.nifp, i),
				       broadcast, mac_of(1), i, 60, 60);
			ring_put_frame(NETMAP_TXRING(ends.slave.nifp, i),
				       broadcast, mac_of(2), 10 + i, 60, 60);
		}
	port_txsync(&ends.master);
	port_txsync(&ends.slave);
	port_rxsync(&ends.master);
	port_rxsync(&ends.slave);
	for (i = 0; i < 3; i++) {
		struct netmap_ring *rx = NETMAP_RXRING(ends.slave.nifp, i);

		check(nm_ring_space(rx) == i + 1 && ring_take(rx, &packet) &&
		      packet_sequence(&packet) == i,
		      "ring %u of the slave (got %u)", i, nm_ring_space(rx));
		rx = NETMAP_RXRING(ends.master.nifp, i);
		check(nm_ring_space(rx) == i + 1 && ring_take(rx, &packet) &&
		      packet_sequence(&packet) == 10 + i,
		      "ring %u of the master", i);
	}
	check(ends.master.reg.nr_host_tx_rings == 0 &&
	      ends.master.reg.nr_host_rx_rings == 0 &&
	      ends.slave.reg.nr_host_tx_rings == 0 &&
	      ends.slave.reg.nr_host_rx_rings == 0, "no host rings");
}

/* One descriptor for each ring. */
static void
ring_by_ring(void)
{
	struct nmreq_register reg = register_all();
	struct port master[2], slave;

	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	master[0] = port_open_as(own("c${1"), reg);
	reg.nr_ringid = 1;
	master[1] = port_open_as(own("c${1"), reg);
	slave = port_open(own("c$}1"));
	ring_put_frame(NETMAP_TXRING(master[1].nifp, 1), broadcast, mac_of(1),
		       5, 60, 60);
	port_txsync(&master[0]);
	port_rxsync(&slave);
	check(nm_ring_empty(NETMAP_RXRING(slave.nifp, 1)),
	      "not sent by the descriptor of another ring");
	port_txsync(&master[1]);
	port_rxsync(&slave);
	check(ring_take(NETMAP_RXRING(slave.nifp, 1), &packet) &&
	      packet_sequence(&packet) == 5, "sent by its own");
}

/* ---- S-PIPE-7: sending and releasing ---- */

static void
arithmetic_of(const struct port *from, const struct port *to)
{
	uint32_t all = port_tx(from)->num_slots - 1;

	check_number(tx_room(from), all, "a new ring has n-1 slots");
	send_frames(from, 0, 10);
	check_number(nm_ring_space(port_tx(from)), all - 10, "10 sent");
	check_number(rx_count(to), 10, "the peer has 10");
	check(take_frames(to, 0, 7), "the first 7 are intact");
	check_number(tx_room(from), all - 10, "taken, but not released");
	port_rxsync(to);
	check_number(tx_room(from), all - 3, "7 released, 3 missing");
	check(take_frames(to, 7, 3), "the other 3 are intact");
	port_rxsync(to);
	check_number(tx_room(from), all, "all released");
	check_number(rx_count(to), 0, "nothing is left");
}

static void
arithmetic(void)
{
	struct pipe_ends ends = pipe_open();

	arithmetic_of(&ends.master, &ends.slave);
	arithmetic_of(&ends.slave, &ends.master);
}

/* Around the ring, many times, with steps that do not divide it. */
static void
many_rounds(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	uint32_t sent = 0, i;

	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	ends = pipe_open_as(own("c$"), "1", reg);
	for (i = 0; i < 200; i++) {
		uint32_t step = i % 15 + 1;

		send_frames(&ends.master, sent, step);
		if (!take_frames(&ends.slave, sent, step))
			break;
		sent += step;
		port_rxsync(&ends.slave);
	}
	check_number(i, 200, "rounds without loss");
}

static void
full(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t all = port_tx(&ends.master)->num_slots - 1;

	send_frames(&ends.master, 100, all);
	check_number(tx_room(&ends.master), 0, "n-1 sent, no room");
	check_number(wait_events(ends.master.fd, POLLOUT, 0), 0,
		     "no POLLOUT on a full ring");
	check_number(rx_count(&ends.slave), all, "the peer has n-1");
	check(take_frames(&ends.slave, 100, 1), "the oldest first");
	port_rxsync(&ends.slave);
	check_number(wait_events(ends.master.fd, POLLOUT, PATIENCE_MS),
		     POLLOUT, "one released: POLLOUT");
	check_number(nm_ring_space(port_tx(&ends.master)), 1, "room for one");
	check(take_frames(&ends.slave, 101, all - 1), "nothing is lost");
}

static void
incomplete(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master);
	uint32_t i;

	send_frames(&ends.master, 1, 2);
	for (i = 0; i < 5; i++) {
		uint32_t at = tx->head;

		port_put(&ends.master, mac_of(2), mac_of(1), 3 + i);
		tx->slot[at].flags = NS_MOREFRAG;
		port_txsync(&ends.master);
		check_number(rx_count(&ends.slave), 2,
			     "only whole packets are visible");
	}
	send_frames(&ends.master, 8, 1);
	check_number(rx_count(&ends.slave), 8, "the whole packet");
	check(take_frames(&ends.slave, 1, 8), "all its slots");
}

/* A packet of as many slots as there are. */
static void
fragments(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t count;
	int good = 1;

	for (count = 2; count <= 64 && good; count += 3) {
		ring_put_frame(port_tx(&ends.master), broadcast, mac_of(1),
			       count, count * 100 - 7, 100);
		port_txsync(&ends.master);
		good = port_take_packet(&ends.slave, &packet) &&
		       packet.slots == count &&
		       packet_sequence(&packet) == count;
		port_rxsync(&ends.slave);
		check(good, "%u slots", count);
	}
}

/* head counts, not cur; cur may be ahead. */
static void
up_to_head(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master);

	port_put(&ends.master, mac_of(2), mac_of(1), 1);
	port_put(&ends.master, mac_of(2), mac_of(1), 2);
	tx->head = 1;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 1, "one of two");
	check(tx->head == 1 && tx->cur == 2, "head and cur are as set");
	tx->head = 2;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 2, "both");
}

/* ---- S-PIPE-8: ends that come and go ---- */

static void
peer_not_open(void)
{
	struct port master = port_open(own("c${1")), slave;
	uint32_t all = port_tx(&master)->num_slots - 1;

	send_frames(&master, 0, all);
	check_number(tx_room(&master), 0, "n-1 slots wait for the peer");
	check_number(wait_events(master.fd, POLLIN | POLLOUT, 0), 0,
		     "no event, no hang-up");
	slave = port_open(own("c$}1"));
	check(take_frames(&slave, 0, all), "it gets them all");
	port_rxsync(&slave);
	check_number(tx_room(&master), all, "all released");
}

static void
peer_comes_back(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t all = port_tx(&ends.master)->num_slots - 1;

	send_frames(&ends.master, 0, 5);
	send_frames(&ends.slave, 50, 4);
	check(take_frames(&ends.slave, 0, 2), "2 of 5 before");
	port_rxsync(&ends.slave);
	port_close(&ends.slave);
	check_number(wait_events(ends.master.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "what it sent can be read, no hang-up is signalled");
	check(take_frames(&ends.master, 50, 4), "all of it");
	send_frames(&ends.master, 5, 15);
	check_number(tx_room(&ends.master), all - 18, "sending goes on");
	ends.slave = port_open(own("c$}1"));
	check_number(rx_count(&ends.slave), 18, "18 are there");
	check(take_frames(&ends.slave, 2, 18), "in order");
	port_rxsync(&ends.slave);
	check_works(&ends.master, &ends.slave);
}

/* Indices are the pair's, not the descriptor's. */
static void
reopened_in_the_middle(void)
{
	struct pipe_ends ends = pipe_open();
	uint32_t i;

	for (i = 0; i < 20; i++) {
		send_frames(&ends.master, i * 10, 10);
		if (!take_frames(&ends.slave, i * 10, 10))
			break;
		port_rxsync(&ends.slave);
		if (i % 2) {
			port_close(&ends.slave);
			ends.slave = port_open(own("c$}1"));
		} else {
			port_close(&ends.master);
			ends.master = port_open(own("c${1"));
		}
	}
	check_number(i, 20, "rounds, with an end reopened after each");
}

static void
both_closed(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends = pipe_open();

	send_frames(&ends.master, 7, 3);
	port_close(&ends.master);
	check(take_frames(&ends.slave, 7, 1), "the last frames of a sender");
	port_close(&ends.slave);
	reg.nr_tx_slots = 64;
	ends.master = port_open_as(own("c${1"), reg);
	check_number(ends.master.reg.nr_tx_slots, 64, "a new pair");
	check_number(rx_count(&ends.master), 0, "is empty");
	check_number(tx_room(&ends.master), 63, "both ways");
}

/* The peer is another process, which dies. */
static void
peer_dies(void)
{
	struct port master = port_open(own("c${1")), slave;
	int status;
	pid_t child;

	send_frames(&master, 0, 10);
	fflush(stdout);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		slave = port_open(own("c$}1"));
		if (take_frames(&slave, 0, 4))
			port_rxsync(&slave);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &status, 0);
	check(WIFSIGNALED(status), "the peer is dead");
	check_number(tx_room(&master), 1023 - 6, "what it released");
	slave = port_open(own("c$}1"));
	check(take_frames(&slave, 4, 6), "the rest");
}

/* ---- S-PIPE-9: slots travel whole ---- */

static void
slots_travel(void)
{
	struct pipe_ends ends = pipe_open();
	struct netmap_ring *tx = port_tx(&ends.master),
			   *rx = port_rx(&ends.slave);
	struct netmap_slot sent[4];
	uint32_t i;
	int same = 1;

	for (i = 0; i < 4; i++) {
		tx->slot[i].len = (uint16_t)(i == 3 ? UINT16_MAX : i * 100);
		tx->slot[i].flags = (uint16_t)(i == 0 ? NS_REPORT :
			i == 1 ? NS_FORWARD | NS_NO_LEARN :
			i == 2 ? 5 << NS_PORT_SHIFT : 0);
		tx->slot[i].ptr = UINT64_MAX - i;
		sent[i] = tx->slot[i];
	}
	ring_advance(tx, 4);
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 4, "four arrive");
	for (i = 0; i < 4; i++)
		same &= memcmp(&rx->slot[i], &sent[i], sizeof(sent[i])) == 0;
	check(same, "buf_idx, len, flags and ptr as sent");
	for (i = 0; i < 4; i++) {
		rx->slot[i].len = (uint16_t)(7 + i);
		rx->slot[i].ptr = 1000 + i;
		sent[i] = rx->slot[i];
	}
	ring_advance(rx, 4);
	port_rxsync(&ends.slave);
	port_txsync(&ends.master);
	for (i = 0, same = 1; i < 4; i++)
		same &= memcmp(&tx->slot[i], &sent[i], sizeof(sent[i])) == 0;
	check(same, "and back as released");
}

/* A buffer that an end puts in place of another. */
static void
buffers_travel(void)
{
	struct nmreq_register reg = register_all();
	struct pipe_ends ends;
	struct netmap_ring *tx, *rx;
	uint32_t first, second, extra, next;

	reg.nr_extra_bufs = 2;
	ends.master = port_open_as(own("c${1"), reg);
	ends.slave = port_open_as(own("c$}1"), reg);
	tx = port_tx(&ends.master);
	rx = port_rx(&ends.slave);
	require(ends.master.reg.nr_extra_bufs == 2 &&
		ends.slave.reg.nr_extra_bufs == 2, "extra buffers");

	/* The sender sends an extra one, and keeps its own. */
	extra = ends.master.nifp->ni_bufs_head;
	memcpy(&next, NETMAP_BUF(tx, extra), sizeof(next));
	first = tx->slot[0].buf_idx;
	second = tx->slot[1].buf_idx;
	memcpy(NETMAP_BUF(tx, first), &next, sizeof(next));
	ends.master.nifp->ni_bufs_head = first;
	tx->slot[0].buf_idx = extra;
	port_put(&ends.master, mac_of(2), mac_of(1), 1);
	port_put(&ends.master, mac_of(2), mac_of(1), 2);
	tx->slot[0].flags = NS_BUF_CHANGED;
	port_txsync(&ends.master);
	check_number(rx_count(&ends.slave), 2, "two arrive");
	check(!(tx->slot[0].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is cleared at the sender");
	check(rx->slot[0].buf_idx == extra && rx->slot[1].buf_idx == second,
	      "the buffers that were sent");
	check(rx->slot[0].flags == NS_BUF_CHANGED && rx->slot[1].flags == 0,
	      "NS_BUF_CHANGED travels (got %#x, %#x)", rx->slot[0].flags,
	      rx->slot[1].flags);

	/* The receiver keeps the second and gives an extra one. */
	extra = ends.slave.nifp->ni_bufs_head;
	memcpy(&next, NETMAP_BUF(rx, extra), sizeof(next));
	memcpy(NETMAP_BUF(rx, second), &next, sizeof(next));
	ends.slave.nifp->ni_bufs_head = second;
	rx->slot[0].flags = 0;
	rx->slot[1].buf_idx = extra;
	rx->slot[1].flags = NS_BUF_CHANGED;
	ring_advance(rx, 2);
	port_rxsync(&ends.slave);
	port_txsync(&ends.master);
	check(!(rx->slot[1].flags & NS_BUF_CHANGED),
	      "NS_BUF_CHANGED is cleared at the receiver");
	check(tx->slot[1].buf_idx == extra &&
	      tx->slot[1].flags & NS_BUF_CHANGED,
	      "the sender gets what the receiver gave");
	check(!(tx->slot[0].flags & NS_BUF_CHANGED),
	      "and no flag where nothing was replaced");
}

/* ---- S-PIPE-10: who is woken ---- */

/* Runs act in another process once this one may be asleep. */
static pid_t
meanwhile(void (*act)(const struct pipe_ends *), const struct pipe_ends *ends)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		act(ends);
		_exit(0);
	}
	return child;
}

static void
send_one(const struct pipe_ends *ends)
{
	port_send(&ends->master, mac_of(2), mac_of(1), 77);
}

static void
release_one(const struct pipe_ends *ends)
{
	port_rxsync(&ends->slave);
	ring_advance(port_rx(&ends->slave), 1);
	port_rxsync(&ends->slave);
}

static void
wakes_receiver(void)
{
	struct pipe_ends ends = pipe_open();
	pid_t child = meanwhile(send_one, &ends);

	check_number(wait_events(ends.slave.fd, POLLIN, PATIENCE_MS), POLLIN,
		     "a receiver is woken");
	check_number(port_take(&ends.slave), 77, "by the frame");
	waitpid(child, NULL, 0);
}

static void
wakes_sender(void)
{
	struct pipe_ends ends = pipe_open();
	pid_t child;

	send_frames(&ends.master, 0, 1023);
	child = meanwhile(release_one, &ends);
	check_number(wait_events(ends.master.fd, POLLOUT, PATIENCE_MS),
		     POLLOUT, "a sender is woken");
	check_number(nm_ring_space(port_tx(&ends.master)), 1, "by one slot");
	waitpid(child, NULL, 0);
}

/* Several descriptors of one end share its rings. */
static void
several_descriptors(void)
{
	struct pipe_ends ends = pipe_open();
	struct port second = port_open(own("c$}1"));

	send_frames(&ends.master, 0, 6);
	check(take_frames(&ends.slave, 0, 3), "three through the first");
	port_rxsync(&ends.slave);
	check(take_frames(&second, 3, 3), "three through the second");
	port_rxsync(&second);
	check_number(tx_room(&ends.master), 1023, "all released");
	port_close(&second);
	check_works(&ends.master, &ends.slave);
}

static void
each_waiter_is_woken(void)
{
	struct pipe_ends ends = pipe_open();
	int status[3] = { 1, 1, 1 }, ready[2], i;
	pid_t child[3];
	char byte;

	require(pipe(ready) == 0, "pipe");
	fflush(stdout);
	for (i = 0; i < 3; i++) {
		child[i] = fork();
		require(child[i] >= 0, "fork");
		if (child[i] == 0) {
			struct port own_end = port_open(own("c$}1"));

			require(write(ready[1], "", 1) == 1, "ready");
			_exit(!(wait_events(own_end.fd, POLLIN,
					    PATIENCE_MS) & POLLIN));
		}
	}
	for (i = 0; i < 3; i++)
		require(read(ready[0], &byte, 1) == 1, "ready");
	send_one(&ends);
	for (i = 0; i < 3; i++)
		waitpid(child[i], &status[i], 0);
	check(!status[0] && !status[1] && !status[2],
	      "three processes that wait on one end");
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
	{ "S-PIPE-3", "made together", made_together },
	{ "S-PIPE-3", "64 pipes", sixty_four },
	{ "S-PIPE-3", "as memory permits", out_of_memory },
	{ "S-PIPE-4", "counts given by the master", counts_by_master },
	{ "S-PIPE-4", "counts given by the slave", counts_by_slave },
	{ "S-PIPE-4", "default counts", default_counts },
	{ "S-PIPE-4", "slots within limits", counts_within_limits },
	{ "S-PIPE-4", "rings within limits", rings_within_limits },
	{ "S-PIPE-5", "extra buffers", extra_buffers },
	{ "S-PIPE-5", "no copy between pipes", zero_copy_between_pipes },
	{ "S-PIPE-6", "ring meets ring", ring_meets_ring },
	{ "S-PIPE-6", "ring by ring", ring_by_ring },
	{ "S-PIPE-7", "the arithmetic", arithmetic },
	{ "S-PIPE-7", "many rounds", many_rounds },
	{ "S-PIPE-7", "a full ring", full },
	{ "S-PIPE-7", "incomplete packets", incomplete },
	{ "S-PIPE-7", "packets of many slots", fragments },
	{ "S-PIPE-7", "up to head", up_to_head },
	{ "S-PIPE-8", "the peer is not open yet", peer_not_open },
	{ "S-PIPE-8", "the peer comes back", peer_comes_back },
	{ "S-PIPE-8", "either end reopened", reopened_in_the_middle },
	{ "S-PIPE-8", "both closed", both_closed },
	{ "S-PIPE-8", "the peer dies", peer_dies },
	{ "S-PIPE-9", "slots travel whole", slots_travel },
	{ "S-PIPE-9", "buffers that were replaced", buffers_travel },
	{ "S-PIPE-10", "a receiver", wakes_receiver },
	{ "S-PIPE-10", "a sender", wakes_sender },
	{ "S-PIPE-10", "several descriptors of one end",
	  several_descriptors },
	{ "S-PIPE-10", "several waiters", each_waiter_is_woken },
};

CHAPTER(cases)
