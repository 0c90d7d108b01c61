/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions, what is in them, and whose they are (S-MEM). */
#include "extra.h"
#include "monitor.h"
#include "netns.h"
#include "options.h"
#include "service.h"

#define PAGE		4096
#define GLOBAL		1	/* the region of interfaces */

/* ---- sizes, by the rules ---- */

struct objects {
	uint32_t total, size;
};

/*
 * A pool of at least so many objects: sizes in steps of 64 bytes, objects in
 * groups that fill pages, of 4 MB at most (S-MEM-5).
 */
static struct objects
rounded(uint32_t total, uint32_t size)
{
	struct objects objects;
	uint32_t group = 1;

	objects.size = (size + 63) / 64 * 64;
	while (group * objects.size % PAGE != 0)
		group++;
	if (group * objects.size > 4u << 20)
		group = 1;
	objects.total = (total + group - 1) / group * group;
	return objects;
}

static uint32_t
largest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* A private region by S-MEM-8; rings with the one of the host. */
static void
check_private(const struct nmreq_pools_info *pools,
	      const struct nmreq_register *reg, uint32_t pipes,
	      const char *text)
{
	uint32_t tx = reg->nr_tx_rings + 1u, rx = reg->nr_rx_rings + 1u;
	struct objects ifs = rounded(largest(2, 2 + 4 * pipes), 1024);
	struct objects rings = rounded(largest(4, tx + rx + 8 * pipes),
		largest(20480, 256 + 16 * largest(reg->nr_tx_slots,
						  reg->nr_rx_slots)));
	struct objects bufs = rounded(largest(4098,
		(4 * pipes + rx) * reg->nr_rx_slots +
		(4 * pipes + tx) * reg->nr_tx_slots + 2 +
		reg->nr_extra_bufs), 2048);

	check(pools->nr_if_pool_objtotal == ifs.total &&
	      pools->nr_if_pool_objsize == ifs.size,
	      "%s: interfaces %u x %u (got %u x %u)", text, ifs.total,
	      ifs.size, pools->nr_if_pool_objtotal, pools->nr_if_pool_objsize);
	check(pools->nr_ring_pool_objtotal == rings.total &&
	      pools->nr_ring_pool_objsize == rings.size,
	      "%s: rings %u x %u (got %u x %u)", text, rings.total,
	      rings.size, pools->nr_ring_pool_objtotal,
	      pools->nr_ring_pool_objsize);
	check(pools->nr_buf_pool_objtotal == bufs.total &&
	      pools->nr_buf_pool_objsize == bufs.size,
	      "%s: buffers %u x %u (got %u x %u)", text, bufs.total, bufs.size,
	      pools->nr_buf_pool_objtotal, pools->nr_buf_pool_objsize);
}

/* ---- S-MEM-1: layout ---- */

/* Three pools without gaps, and everything of the port in its own. */
static void
check_layout(const char *name, const struct port *port)
{
	struct nmreq_pools_info pools = pools_of(name);
	uint64_t ifs = (uint64_t)pools.nr_if_pool_objtotal *
		pools.nr_if_pool_objsize;
	uint64_t rings = (uint64_t)pools.nr_ring_pool_objtotal *
		pools.nr_ring_pool_objsize;
	uint64_t bufs = (uint64_t)pools.nr_buf_pool_objtotal *
		pools.nr_buf_pool_objsize;
	uint64_t at = (uint64_t)((char *)port_rx(port) - port->mem);
	char *first = NETMAP_BUF(port_rx(port), port_rx(port)->slot[0].buf_idx);

	check(pools.nr_if_pool_offset == 0 &&
	      pools.nr_ring_pool_offset == ifs &&
	      pools.nr_buf_pool_offset == ifs + rings,
	      "%s: interfaces, rings, buffers, without gaps", name);
	check(pools.nr_memsize == (ifs + rings + bufs + PAGE - 1) / PAGE *
	      PAGE, "%s: the size is their sum", name);
	check(port->reg.nr_memsize == pools.nr_memsize &&
	      port->reg.nr_mem_id == pools.nr_mem_id,
	      "%s: size and id as REGISTER tells", name);
	check(port->reg.nr_offset < ifs &&
	      port->reg.nr_offset % pools.nr_if_pool_objsize == 0,
	      "%s: the netmap_if is an object of its pool", name);
	check(at >= ifs && at < ifs + rings &&
	      (at - ifs) % pools.nr_ring_pool_objsize == 0,
	      "%s: so is a ring", name);
	check(first >= port->mem + ifs + rings && first +
	      port_rx(port)->nr_buf_size <= port->mem + pools.nr_memsize,
	      "%s: so is a buffer", name);
}

static void
layout(void)
{
	struct nmreq_register reg = register_all();
	struct port port = port_open(own("vale$:a"));
	struct port pipe = port_open(own("vale$:a{1"));

	check_layout(own("vale$:a"), &port);
	check_layout(own("vale$:a{1"), &pipe);
	check_number(NETMAP_BUF(port_rx(&port), 0) - port.mem,
		     (long long)pools_of(own("vale$:a")).nr_buf_pool_offset,
		     "buffer 0 is where their pool begins");
	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 77;
	reg.nr_rx_slots = 3000;
	reg.nr_extra_bufs = 999;
	port = port_open_as(own("vale$:b"), reg);
	check_layout(own("vale$:b"), &port);
}

static void
layout_of_the_global_region(void)
{
	struct cable cable = own_cable(2);
	struct port port = port_open(cable.near);

	check_layout(cable.near, &port);
}

/* ---- S-MEM-2: whose region ---- */

static void
regions_by_kind(void)
{
	struct port a = port_open(own("vale$:a")), b = port_open(own("vale$:b"));
	struct port pipe = port_open(own("vale$:a}x"));
	struct port copy = monitor_open(own("vale$:a"), NR_MONITOR_RX);
	struct port zero = monitor_open(own("vale$:a"), NR_ZCOPY_MON);
	struct port of_pipe = monitor_open(own("vale$:a}x"), NR_ZCOPY_MON);
	struct port cookie = port_open(own("p${1"));
	uint16_t id = a.reg.nr_mem_id;

	check(id > GLOBAL && b.reg.nr_mem_id > GLOBAL &&
	      b.reg.nr_mem_id != id, "each port of a switch has its own");
	check_number(pipe.reg.nr_mem_id, id, "a pipe has its parent's");
	check(copy.reg.nr_mem_id > GLOBAL && copy.reg.nr_mem_id != id &&
	      copy.reg.nr_mem_id != b.reg.nr_mem_id,
	      "a copying monitor has its own");
	check_number(zero.reg.nr_mem_id, id, "a zero-copy one its target's");
	check_number(of_pipe.reg.nr_mem_id, id, "also that of a pipe");
	check(cookie.reg.nr_mem_id > GLOBAL && cookie.reg.nr_mem_id != id,
	      "a pipe whose parent came with it has that one's");
}

static void
region_of_interfaces(void)
{
	struct cable cable = own_cable(1);
	struct port near = port_open(cable.near), far = port_open(cable.far);
	struct port pipe = port_open(own("n${1"));
	struct port copy = monitor_open(cable.near, NR_MONITOR_RX);

	check(near.reg.nr_mem_id == GLOBAL && far.reg.nr_mem_id == GLOBAL,
	      "interfaces share the global one");
	check_number(near.nifp->ni_flags & NI_PRIV_MEM, 0, "not private");
	check_number(pipe.reg.nr_mem_id, GLOBAL, "with their pipes");
	check(copy.reg.nr_mem_id > GLOBAL, "not with copying monitors");
}

static void
ids_grow(void)
{
	struct port a, b;
	uint16_t last;
	int i;

	service_start("");
	a = port_open(own("vale$:a"));
	b = port_open(own("vale$:b"));
	last = b.reg.nr_mem_id;
	check_number(last, a.reg.nr_mem_id + 1, "the next id");
	for (i = 0; i < 5; i++) {
		port_close(&b);
		check(gone_soon(own("vale$:b")), "a port goes");
		check_number(region_error(last), EINVAL, "its id is free");
		b = port_open(own("vale$:b"));
		check_number(b.reg.nr_mem_id, last + 1,
			     "and is not given again at once");
		last = b.reg.nr_mem_id;
	}
	port_close(&a);
	port_close(&b);
}

/* ---- S-MEM-2a: life ---- */

static void
ephemeral_region_ends(void)
{
	struct port port = port_open(own("vale$:a")), hold;
	uint16_t id = port.reg.nr_mem_id;

	check_number(region_error(id), 0, "a region");
	port_close(&port);
	check(gone_soon(own("vale$:a")), "without its port");
	check_number(region_error(id), EINVAL, "is gone");
	port = port_open(own("vale$:a"));
	id = port.reg.nr_mem_id;
	hold = region_hold(id, 0);
	port_close(&port);
	check(gone_soon(own("vale$:a")), "without its first port");
	check_number(region_error(id), 0, "but with another");
	port_close(&hold);
	check_number(region_error(id), EINVAL, "until that goes");
}

/* What one user leaves in a buffer, the next may find. */
static void
contents_stay(void)
{
	struct nmreq_register reg = register_all();
	struct port port = port_open(own("vale$:a"));
	struct port hold = region_hold(port.reg.nr_mem_id, 0);
	char *at = NETMAP_BUF(port_rx(&port), port_rx(&port)->slot[5].buf_idx);
	size_t offset = (size_t)(at - port.mem);

	memcpy(at + 1000, "still there", 12);
	port_close(&port);
	check(gone_soon(own("vale$:a")), "one user goes");
	reg.nr_mem_id = hold.reg.nr_mem_id;
	port = port_open_as(own("vale$:b"), reg);
	check(strcmp(port.mem + offset + 1000, "still there") == 0,
	      "the next finds what it left");
}

static void
persistent_region_stays(void)
{
	struct nmreq_vale_newif newif;
	struct nmreq_port_info_get info;
	struct port port;
	uint16_t id;
	int fd = device_open(), i;

	netns_own();
	memset(&newif, 0, sizeof(newif));
	memset(&info, 0, sizeof(info));
	require(control(fd, NETMAP_REQ_VALE_NEWIF, own("v$"), &newif) == 0,
		"VALE_NEWIF");
	require(port_info(own("v$"), &info) == 0, "PORT_INFO_GET");
	id = info.nr_mem_id;
	check(id > GLOBAL, "a region of its own");
	for (i = 0; i < 3; i++) {
		port = port_open(own("v$"));
		check_number(port.reg.nr_mem_id, id, "the same each time");
		if (i > 0)
			check(strcmp(port.mem + port.reg.nr_memsize - 16,
				     "still there") == 0,
			      "with what was in it");
		memcpy(port.mem + port.reg.nr_memsize - 16, "still there", 12);
		port_close(&port);
	}
	check_number(region_error(id), 0, "there without a user");
	require(control(fd, NETMAP_REQ_VALE_DELIF, own("v$"), NULL) == 0,
		"VALE_DELIF");
	check_number(region_error(id), EINVAL, "gone with the port");
}

/* ---- S-MEM-3: asking for a region ---- */

static int
try_region(const char *name, struct nmreq_register reg, uint16_t id,
	   uint16_t *got)
{
	int fd = device_open(), result, error;

	reg.nr_mem_id = id;
	result = control(fd, NETMAP_REQ_REGISTER, name, &reg);
	error = errno;
	*got = reg.nr_mem_id;
	close(fd);
	errno = error;
	return result;
}

static void
regions_asked_for(void)
{
	struct port a = port_open(own("vale$:a")), other;
	struct nmreq_register reg = register_all(), mon = register_all();
	uint16_t id = a.reg.nr_mem_id, mine, got;

	mon.nr_flags = NR_ZCOPY_MON;
	check_call(try_region(own("vale$:new"), reg, NO_REGION, &got), EINVAL,
		   "one that does not exist");
	check(!port_exists(own("vale$:new")), "and no port is made");
	check_call(try_region(own("vale$:a"), reg, NO_REGION, &got), EINVAL,
		   "nor where it would be ignored");
	check_call(try_region(own("vale$:new"), reg, id, &got), 0,
		   "a new port in the region of another");
	check_number(got, id, "is there");
	check_call(try_region(own("vale$:new"), reg, 0, &got), 0,
		   "0 is the default");
	check(got != id && got > GLOBAL, "a region of its own");

	other = port_open(own("vale$:b"));
	mine = other.reg.nr_mem_id;
	check_call(try_region(own("vale$:b"), reg, id, &got), 0,
		   "for a port in use");
	check_number(got, mine, "it is ignored");
	check_call(try_region(own("vale$:b{1"), reg, id, &got), 0,
		   "for a pipe");
	check_number(got, mine, "it is ignored");
	check_call(try_region(own("vale$:b"), mon, id, &got), 0,
		   "for a zero-copy monitor");
	check_number(got, mine, "it is ignored");
}

/* A region that one interface has, asked for by another. */
static void
region_of_an_interface_asked_for(void)
{
	struct cable cable = own_cable(1);
	void *memory = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nmreq_opt_extmem option = extmem_of(memory, 16 << 20);
	struct nmreq_register reg = register_all();
	struct port near, far;
	uint16_t got;

	option.nro_info.nr_if_pool_objtotal = 8;
	option.nro_info.nr_ring_pool_objtotal = 16;
	far = port_open_with(cable.far, reg, &option);
	reg.nr_mem_id = far.reg.nr_mem_id;
	near = port_open_as(cable.near, reg);
	check(far.reg.nr_mem_id != GLOBAL, "a region");
	check_number(near.reg.nr_mem_id, far.reg.nr_mem_id,
		     "another interface has it as well");
	check_passes(&near, &far, "sends");
	check_passes(&far, &near, "and receives");
	check_call(try_region(cable.near, register_all(), GLOBAL, &got), 0,
		   "another user of it");
	check_number(got, far.reg.nr_mem_id, "has the same region");
	port_close(&near);
	near = port_open(cable.near);
	check_number(near.reg.nr_mem_id, GLOBAL,
		     "after the last it has the global one again");
}

/*
 * The region of a port that is no interface. The kernel keeps room in front of
 * what it receives, which such a region may not have: nr_mem_id tells.
 */
static void
region_of_a_switch_asked_for(void)
{
	struct cable cable = own_cable(1);
	struct port vale = port_open(own("vale$:a")), nic;
	struct nmreq_register reg = register_all();

	reg.nr_mem_id = vale.reg.nr_mem_id;
	nic = port_open_as(cable.near, reg);
	check(nic.reg.nr_mem_id == vale.reg.nr_mem_id ||
	      nic.reg.nr_mem_id == GLOBAL, "that region, or the global one");
	port_send(&nic, broadcast, mac_of(1), 7);
	check_number(cable_take(&cable), 7, "sends");
	cable_send(&cable, broadcast, mac_of(2), 8);
	check_number(port_take(&nic), 8, "and receives");
}

/* ---- S-MEM-4: one region, buffers that can change places ---- */

static void
buffers_between_ports(void)
{
	struct port a = port_open(own("vale$:a")), b;
	struct port from = port_open(own("vale$:s"));
	struct port to = port_open(own("valex$:t"));
	struct nmreq_register reg = register_all();
	struct netmap_slot *in, *out;
	uint32_t i, low = 0, index;

	reg.nr_mem_id = a.reg.nr_mem_id;
	b = port_open_as(own("valex$:b"), reg);
	for (i = 0; i < port_rx(&a)->num_slots; i++)
		low += port_rx(&a)->slot[i].buf_idx < 2 ||
			port_tx(&b)->slot[i].buf_idx < 2;
	check_number(low, 0, "no slot has buffer 0 or 1");
	port_send(&from, broadcast, mac_of(1), 42);
	in = port_peek(&a);
	require(in != NULL, "a frame");
	out = &port_tx(&b)->slot[port_tx(&b)->head];
	index = in->buf_idx;
	in->buf_idx = out->buf_idx;
	out->buf_idx = index;
	out->len = in->len;
	in->flags = out->flags = NS_BUF_CHANGED;
	ring_advance(port_rx(&a), 1);
	ring_advance(port_tx(&b), 1);
	port_rxsync(&a);
	port_txsync(&b);
	check_number(port_take(&to), 42,
		     "a frame passes to another port's ring as it is");
	check_passes(&from, &a, "and the ring it came from goes on");
}

/* ---- S-MEM-5, 6: sizes that are asked for ---- */

static void
objects_are_rounded(void)
{
	static const struct {
		const char *settings;
		uint32_t if_num, if_size, ring_num, ring_size, buf_num,
			buf_size;
	} asked[] = {
		{ "", 100, 1024, 200, 36864, 163840, 2048 },
		{ "if_num = 10\nif_size = 1000\nring_num = 10\n"
		  "ring_size = 20000\nbuf_num = 4097\nbuf_size = 2000\n",
		  10, 1000, 10, 20000, 4097, 2000 },
		{ "if_num = 11\nif_size = 56\nring_num = 2\nring_size = 300\n"
		  "buf_num = 401\nbuf_size = 4096\n",
		  11, 56, 2, 300, 401, 4096 },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		struct objects ifs = rounded(asked[i].if_num,
					     asked[i].if_size);
		struct objects rings = rounded(asked[i].ring_num,
					       asked[i].ring_size);
		struct objects bufs = rounded(asked[i].buf_num,
					      asked[i].buf_size);
		uint64_t sum = (uint64_t)ifs.total * ifs.size +
			(uint64_t)rings.total * rings.size +
			(uint64_t)bufs.total * bufs.size;
		struct nmreq_port_info_get info;

		service_start(line("[global_region]\n%s",
				   asked[i].settings));
		memset(&info, 0, sizeof(info));
		check_call(port_info("", &info), 0, "PORT_INFO_GET");
		check_number((long long)info.nr_memsize, (long long)sum,
			     "sizes in steps of 64, counts that fill pages");
	}
}

static void
objects_have_limits(void)
{
	static const char *const wrong[] = {
		"if_size = 55", "if_size = 4097", "if_num = 0",
		"if_num = 10001", "ring_size = 255", "ring_size = 131073",
		"ring_num = 1", "ring_num = 1025", "buf_size = 63",
		"buf_size = 65537", "buf_num = 3", "buf_num = 1000001",
	};
	size_t i;

	for (i = 0; i < COUNT(wrong); i++)
		check(service_refuses(line("[global_region]\n%s\n", wrong[i])),
		      "%s", wrong[i]);
}

static void
changed_sizes(void)
{
	static const struct {
		const char *settings;
		uint32_t buffers;
	} next[] = {
		{ "[global_region]\nbuf_num = 4096\n", 4096 },
		{ "[global_region]\nbuf_num = 8192\n", 8192 },
	};
	size_t i;

	for (i = 0; i < COUNT(next); i++) {
		struct port port;

		service_start(next[i].settings);
		port = region_hold(GLOBAL, 1u << 20);
		check(port.reg.nr_extra_bufs <= next[i].buffers &&
		      port.reg.nr_extra_bufs > next[i].buffers - 4,
		      "%u buffers, less those of nobody (got %u)",
		      next[i].buffers, port.reg.nr_extra_bufs);
		port_close(&port);
	}
}

/* ---- S-MEM-7, 8: sizes that are not asked for ---- */

static void
default_sizes(void)
{
	struct port port = port_open(own("vale$:a"));
	struct port monitor = monitor_open(own("vale$:a"), NR_MONITOR_RX);
	struct nmreq_pools_info pools = pools_of(own("vale$:a"));

	check_number((long long)port.reg.nr_memsize, 42369024,
		     "size of a VALE port's");
	check(pools.nr_if_pool_objtotal == 12 &&
	      pools.nr_if_pool_objsize == 1024, "12 interfaces of 1024");
	check(pools.nr_ring_pool_objtotal == 20 &&
	      pools.nr_ring_pool_objsize == 20480, "20 rings of 20480");
	check(pools.nr_buf_pool_objtotal == 20482 &&
	      pools.nr_buf_pool_objsize == 2048, "20482 buffers of 2048");
	check_number((long long)monitor.reg.nr_memsize, 8478720,
		     "size of a monitor's");
}

static void
default_size_of_the_global_region(void)
{
	struct nmreq_port_info_get info;

	memset(&info, 0, sizeof(info));
	check_call(port_info("", &info), 0, "PORT_INFO_GET");
	check_number((long long)info.nr_memsize, 343019520, "its size");
	check_number(info.nr_mem_id, GLOBAL, "its id");
}

static void
default_pools_of_the_global_region(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_pools_info pools = pools_of(cable.near);

	check(pools.nr_if_pool_objtotal == 100 &&
	      pools.nr_if_pool_objsize == 1024, "100 interfaces of 1024");
	check(pools.nr_ring_pool_objtotal == 200 &&
	      pools.nr_ring_pool_objsize == 36864, "200 rings of 36864");
	check(pools.nr_buf_pool_objtotal == 163840 &&
	      pools.nr_buf_pool_objsize == 2048, "163840 buffers of 2048");
	check_number((long long)pools.nr_memsize, 343019520, "all of it");
}

static void
private_sizes(void)
{
	static const struct {
		uint16_t tx_rings, rx_rings;
		uint32_t tx_slots, rx_slots, extra;
	} shapes[] = {
		{ 1, 1, 1024, 1024, 0 }, { 1, 1, 16, 16, 0 },
		{ 1, 1, 1, 1, 0 }, { 1, 1, 16, 16, 5000 },
		{ 4, 2, 512, 256, 0 }, { 16, 16, 64, 64, 100 },
		{ 1, 1, 1264, 1264, 0 }, { 1, 1, 1265, 1, 0 },
		{ 1, 3, 2000, 1000, 7 }, { 2, 1, 4096, 4096, 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(shapes); i++) {
		struct nmreq_register reg = register_all();
		struct nmreq_pools_info pools;
		struct port port;

		reg.nr_tx_rings = shapes[i].tx_rings;
		reg.nr_rx_rings = shapes[i].rx_rings;
		reg.nr_tx_slots = shapes[i].tx_slots;
		reg.nr_rx_slots = shapes[i].rx_slots;
		reg.nr_extra_bufs = shapes[i].extra;
		port = port_open_as(own("vale$:a"), reg);
		pools = pools_of(own("vale$:a"));
		check_private(&pools, &reg, 2, line("shape %zu", i));
		check_number(port.reg.nr_extra_bufs, shapes[i].extra,
			     "the buffers asked for");
		port_close(&port);
	}
}

/* A monitor's region can be asked about by a null port's name only: its size. */
static void
private_sizes_of_monitors(void)
{
	static const struct {
		uint16_t rings;
		uint32_t slots;
	} shapes[] = { { 1, 16 }, { 8, 64 }, { 8, 2048 }, { 3, 3000 } };
	size_t i;

	for (i = 0; i < COUNT(shapes); i++) {
		struct nmreq_register reg = register_all();
		uint32_t slots = shapes[i].slots, rx = shapes[i].rings + 1u;
		struct objects ifs = rounded(2, 1024);
		struct objects rings = rounded(largest(4, 2 + rx),
					       largest(20480,
						       256 + 16 * slots));
		struct objects bufs = rounded(largest(4098, (rx + 2) * slots +
						      2), 2048);
		struct port target, monitor;

		reg.nr_tx_rings = reg.nr_rx_rings = shapes[i].rings;
		reg.nr_tx_slots = reg.nr_rx_slots = slots;
		target = port_open_as(own("vale$:a"), reg);
		monitor = monitor_open(own("vale$:a"), MONITOR_BOTH);
		check_number((long long)monitor.reg.nr_memsize,
			     ((long long)ifs.total * ifs.size +
			      (long long)rings.total * rings.size +
			      (long long)bufs.total * bufs.size + PAGE - 1) /
			     PAGE * PAGE,
			     line("of %u rings of %u slots", rx - 1, slots));
		port_close(&monitor);
		port_close(&target);
	}
}

/* ---- S-MEM-9: extra buffers ---- */

/* A good list of so many: indices in range, each once. */
static void
check_list(const struct port *port, struct netmap_ring *ring, uint32_t total,
	   const char *text)
{
	uint32_t want = port->reg.nr_extra_bufs, index, count, bad = 0;
	uint8_t *seen = (uint8_t *)calloc(total, 1);

	require(seen != NULL, "memory");
	index = port->nifp->ni_bufs_head;
	for (count = 0; index != 0 && count <= want; count++) {
		bad += index < 2 || index >= total || seen[index];
		if (bad)
			break;
		seen[index] = 1;
		memcpy(&index, NETMAP_BUF(ring, index), sizeof(index));
	}
	check(!bad && count == want, "%s: a list of %u (got %u, bad: %u)",
	      text, want, count, bad);
	free(seen);
}

static void
lists(void)
{
	static const char *const names[] = {
		"vale$:a", "vale$:a{1", "vale$:a}1", "p${1", "p$}2",
	};
	static const uint32_t counts[] = { 0, 1, 2, 500 };
	struct port keeper = port_open(own("vale$:a"));
	size_t i, j;

	for (i = 0; i < COUNT(names); i++) {
		for (j = 0; j < COUNT(counts); j++) {
			struct port port = port_open_extra(own(names[i]),
							   counts[j]);

			check_number(port.reg.nr_extra_bufs, counts[j],
				     own(names[i]));
			check((port.nifp->ni_bufs_head == 0) ==
			      (counts[j] == 0), "0 for none");
			check_list(&port, port_rx(&port), 20482,
				   own(names[i]));
			port_close(&port);
		}
	}
	port_close(&keeper);
}

static void
lists_of_an_interface(void)
{
	static const uint32_t modes[] = { NR_REG_ALL_NIC, NR_REG_SW };
	struct cable cable = own_cable(1);
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		struct nmreq_register reg = register_all();
		struct port port;
		struct netmap_ring *ring;

		reg.nr_mode = modes[i];
		reg.nr_extra_bufs = 300;
		port = port_open_as(cable.near, reg);
		ring = NETMAP_RXRING(port.nifp, modes[i] == NR_REG_SW ?
				     port.nifp->ni_rx_rings : 0);
		check_number(port.reg.nr_extra_bufs, 300, "granted");
		check_list(&port, ring, 163840, "an interface's");
		port_close(&port);
	}
}

static void
lists_by_the_old_request(void)
{
	struct port port;
	struct nmreq req;

	memset(&req, 0, sizeof(req));
	memset(&port, 0, sizeof(port));
	req.nr_version = api_version;
	snprintf(req.nr_name, sizeof(req.nr_name), "%s", own("vale$:a"));
	req.nr_arg3 = 20;
	port.fd = device_open();
	check_call(ioctl(port.fd, NIOCREGIF, &req), 0, "NIOCREGIF");
	port.reg.nr_extra_bufs = req.nr_arg3;
	port.reg.nr_memsize = req.nr_memsize;
	port.reg.nr_offset = req.nr_offset;
	port_map(&port);
	check_number(req.nr_arg3, 20, "granted");
	check_list(&port, port_rx(&port), 20482, "the old request's");
}

/* More than there are: those that there are, and no error. */
static void
fewer_than_asked(void)
{
	struct port parent = port_open(own("vale$:a")), port, none;
	uint16_t id = parent.reg.nr_mem_id;
	uint32_t left = region_free_buffers(id);

	port = region_hold(id, 1u << 20);
	check(port.reg.nr_extra_bufs == left && left > 0 && left < 20482,
	      "all that are left (%u)", left);
	none = port_open_extra(own("vale$:a"), 10);
	check_number(none.reg.nr_extra_bufs, 0, "none are left");
	check_number(none.nifp->ni_bufs_head, 0, "an empty list");
	port_close(&port);
	check_number(region_free_buffers(id), left, "all come back");
}

/* Buffers go into slots and back, and all are there in the end. */
static void
taken_and_returned(void)
{
	struct port keeper = port_open(own("vale$:a"));
	uint16_t id = keeper.reg.nr_mem_id;
	uint32_t before = region_free_buffers(id), taken[64], i;
	struct port port = port_open_extra(own("vale$:a{1"), COUNT(taken));
	struct netmap_ring *tx = port_tx(&port);

	for (i = 0; i < COUNT(taken); i++)
		taken[i] = extra_take(&port, tx);
	check_number(port.nifp->ni_bufs_head, 0, "all taken out");
	for (i = 0; i < COUNT(taken); i++) {
		extra_give(&port, tx, tx->slot[i].buf_idx);
		tx->slot[i].buf_idx = taken[i];
	}
	check_number(extra_count(&port, tx, 100), COUNT(taken),
		     "those of the slots in their place");
	port_close(&port);
	check_number(region_free_buffers(id), before, "all come back");
}

/* The walk ends at the first index that cannot be. */
static void
broken_lists(void)
{
	static const uint32_t wrong[] = { 1, 20482, 0x7fffffff, UINT32_MAX };
	struct port keeper = port_open(own("vale$:a"));
	uint16_t id = keeper.reg.nr_mem_id;
	uint32_t before = region_free_buffers(id), left;
	size_t i;

	for (i = 0; i < COUNT(wrong); i++) {
		struct port port = region_hold(id, 0);
		struct netmap_ring *ring = port_rx(&keeper);
		uint32_t second;

		port_close(&port);
		port = region_hold(id, 10);
		/* Two good ones, then nonsense: eight are lost. */
		memcpy(&second, NETMAP_BUF(ring, port.nifp->ni_bufs_head),
		       sizeof(second));
		memcpy(NETMAP_BUF(ring, second), &wrong[i], sizeof(second));
		port_close(&port);
		left = region_free_buffers(id);
		check_number(left, before - 8, line("after %u", wrong[i]));
		before = left;
	}
}

/* A list in a circle, and one that names a buffer of nobody. */
static void
circular_lists(void)
{
	struct port keeper = port_open(own("vale$:a"));
	uint16_t id = keeper.reg.nr_mem_id;
	struct netmap_ring *ring = port_rx(&keeper);
	struct port port = region_hold(id, 3);
	uint32_t before, second, third;

	memcpy(&second, NETMAP_BUF(ring, port.nifp->ni_bufs_head),
	       sizeof(second));
	memcpy(&third, NETMAP_BUF(ring, second), sizeof(third));
	port_close(&port);
	before = region_free_buffers(id);
	port = region_hold(id, 3);
	memcpy(&second, NETMAP_BUF(ring, port.nifp->ni_bufs_head),
	       sizeof(second));
	memcpy(&third, NETMAP_BUF(ring, second), sizeof(third));
	memcpy(NETMAP_BUF(ring, third), &port.nifp->ni_bufs_head,
	       sizeof(third));
	port_close(&port);
	check_number(region_free_buffers(id), before, "a circle ends");
	port = region_hold(id, 3);
	port.nifp->ni_bufs_head = 0;
	port_close(&port);
	check_number(region_free_buffers(id), before - 3,
		     "what is not in the list is lost");
}

/* 1 GB of buffers: in one way of running only. */
static void
more_than_a_port_may_have(void)
{
	struct port port;

	once();
	port = port_open_extra(own("vale$:a"), 600000);
	check_number(port.reg.nr_extra_bufs, 524288, "524288 at most");
	check_list(&port, port_rx(&port), 600000, "all of them");
}

/* ---- S-MEM-10: the buffers of a ring that ends ---- */

static void
buffers_of_rings(void)
{
	struct port keeper = port_open(own("vale$:a")), port;
	uint16_t id = keeper.reg.nr_mem_id;
	uint32_t before = region_free_buffers(id), i, j, index, again = 0;

	port = port_open_slots(own("vale$:a{1"), 64);
	/* Any order will do. */
	for (i = 0; i < 31; i++) {
		index = port_tx(&port)->slot[i].buf_idx;
		port_tx(&port)->slot[i].buf_idx =
			port_tx(&port)->slot[61 - i].buf_idx;
		port_tx(&port)->slot[61 - i].buf_idx = index;
	}
	port_close(&port);
	check_number(region_free_buffers(id), before, "all are free again");

	port = port_open_slots(own("vale$:a{1"), 64);
	port_tx(&port)->slot[0].buf_idx = 0;
	port_tx(&port)->slot[1].buf_idx = 1;
	port_tx(&port)->slot[2].buf_idx = 20482;
	port_tx(&port)->slot[3].buf_idx = UINT32_MAX;
	port_tx(&port)->slot[4].buf_idx = port_tx(&port)->slot[5].buf_idx;
	port_close(&port);
	check(region_free_buffers(id) >= before - 5 &&
	      region_free_buffers(id) <= before,
	      "all whose index is left (got %u of %u)",
	      region_free_buffers(id), before);
	port = port_open_slots(own("vale$:a{1"), 64);
	for (i = 0; i < 64; i++) {
		again += port_tx(&port)->slot[i].buf_idx < 2 ||
			port_tx(&port)->slot[i].buf_idx >= 20482;
		for (j = 0; j < i; j++)
			again += port_tx(&port)->slot[i].buf_idx ==
				port_tx(&port)->slot[j].buf_idx;
	}
	check_number(again, 0, "and none is given twice");
}

/* Whatever is lost: the last user's end brings it back. */
static void
everything_comes_back(void)
{
	struct nmreq_vale_newif newif;
	struct port port;
	uint32_t before;
	int fd = device_open(), i;

	netns_own();
	memset(&newif, 0, sizeof(newif));
	require(control(fd, NETMAP_REQ_VALE_NEWIF, own("v$"), &newif) == 0,
		"VALE_NEWIF");
	port = port_open_extra(own("v$"), 10000);
	before = port.reg.nr_extra_bufs;
	check_number(before, 10000, "buffers");
	for (i = 0; i < 3; i++) {
		port.nifp->ni_bufs_head = 0;
		memset(port_tx(&port)->slot, 0, 64 * sizeof(struct netmap_slot));
		port_close(&port);
		port = port_open_extra(own("v$"), 10000);
		check_number(port.reg.nr_extra_bufs, before, "all of them");
	}
}

/* ---- S-MEM-11: PORT_INFO_GET ---- */

static void
info_makes_and_unmakes(void)
{
	static const char *const names[] = {
		"vale$:a", "vale$:a{1", "vale$:a}x", "p${1", "p$}1",
	};
	struct nmreq_port_info_get info;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		memset(&info, 0, sizeof(info));
		check_call(port_info(own(names[i]), &info), 0, own(names[i]));
		check(info.nr_tx_rings == 1 && info.nr_rx_rings == 1 &&
		      info.nr_tx_slots == 1024 && info.nr_rx_slots == 1024,
		      "one ring of 1024 slots each way");
		check(info.nr_host_tx_rings == 0 && info.nr_host_rx_rings == 0,
		      "no host rings");
		check(info.nr_memsize == 42369024 && info.nr_mem_id > GLOBAL,
		      "a region");
		check_number(region_error(info.nr_mem_id), EINVAL,
			     "which is gone");
		check(!port_exists(own("vale$:a")), "with the port");
	}
}

static void
info_of_ports_in_use(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_port_info_get info;
	struct port port, pipe;

	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 128;
	port = port_open_as(own("vale$:a"), reg);
	memset(&info, 0, sizeof(info));
	check_call(port_info(own("vale$:a"), &info), 0, "a port in use");
	check(info.nr_tx_rings == 3 && info.nr_rx_rings == 2 &&
	      info.nr_tx_slots == 64 && info.nr_rx_slots == 128,
	      "its rings and slots");
	check(info.nr_mem_id == port.reg.nr_mem_id &&
	      info.nr_memsize == port.reg.nr_memsize, "its region");
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	pipe = port_open_as(own("vale$:a{1"), reg);
	memset(&info, 0, sizeof(info));
	check_call(port_info(own("vale$:a}1"), &info), 0, "the other end");
	check(info.nr_tx_slots == 128 && info.nr_rx_slots == 64 &&
	      info.nr_mem_id == pipe.reg.nr_mem_id,
	      "the other way round");
	/* Also on the descriptor that is bound. */
	check_call(control(port.fd, NETMAP_REQ_PORT_INFO_GET, own("vale$:a"),
			   &info), 0, "a bound descriptor");
}

static void
info_errors(void)
{
	static const struct {
		const char *name;
		uint16_t id;
		int error;
	} asked[] = {
		{ "nosuchif0", 0, ENXIO }, { "valeX", 0, ENOMEM },
		{ "val", 0, ENOMEM }, { "p${", 0, EINVAL }, { "}1", 0, EINVAL },
		{ "vale$:a", NO_REGION, EINVAL }, { "", NO_REGION, EINVAL },
		{ "nosuchif0", NO_REGION, EINVAL },
	};
	struct nmreq_port_info_get info;
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		memset(&info, 0, sizeof(info));
		info.nr_mem_id = asked[i].id;
		check_call(port_info(own(asked[i].name), &info),
			   asked[i].error, line("\"%s\", region %u",
						asked[i].name, asked[i].id));
	}
}

static void
info_of_a_region(void)
{
	struct port port = port_open(own("vale$:a"));
	struct nmreq_port_info_get info;

	memset(&info, 0x55, sizeof(info));
	info.nr_mem_id = port.reg.nr_mem_id;
	check_call(port_info("", &info), 0, "no name, a region");
	check(info.nr_memsize == port.reg.nr_memsize &&
	      info.nr_mem_id == port.reg.nr_mem_id, "its size and id");
	memset(&info, 0, sizeof(info));
	check_call(port_info("", &info), 0, "no name, region 0");
	check_number(info.nr_mem_id, GLOBAL, "is the global one");
	check(info.nr_memsize > 0, "with its size");
	check(info.nr_tx_rings == 0 && info.nr_rx_rings == 0 &&
	      info.nr_tx_slots == 0 && info.nr_rx_slots == 0,
	      "and no rings");
}

static void
info_of_interfaces(void)
{
	struct cable cable = own_cable(2);
	struct nmreq_port_info_get info;
	struct nmreq_vale_attach attach;
	struct nmreq_vale_detach detach;
	char there[NETMAP_REQ_IFNAMSIZ];
	int fd = device_open();

	memset(&info, 0, sizeof(info));
	check_call(port_info(cable.near, &info), 0, "an interface");
	check(info.nr_tx_rings == 2 && info.nr_rx_rings == 2 &&
	      info.nr_host_tx_rings == 1 && info.nr_host_rx_rings == 1,
	      "its queues and the host's");
	check(info.nr_tx_slots == 1024 && info.nr_mem_id == GLOBAL,
	      "slots and region");
	snprintf(there, sizeof(there), "%s%s", own("vale$:"), cable.near);
	memset(&attach, 0, sizeof(attach));
	attach.reg = register_all();
	require(control(fd, NETMAP_REQ_VALE_ATTACH, there, &attach) == 0,
		"VALE_ATTACH");
	memset(&info, 0, sizeof(info));
	check_call(port_info(cable.near, &info), 0, "attached to a switch");
	check_number(info.nr_tx_rings, 2, "its queues");
	check_call(port_info(there, &info), 0, "by its name there");
	memset(&detach, 0, sizeof(detach));
	check_call(control(fd, NETMAP_REQ_VALE_DETACH, there, &detach), 0,
		   "VALE_DETACH");
}

/* ---- S-MEM-12: POOLS_INFO_GET ---- */

static int
pools_try(const char *name, struct nmreq_pools_info *pools)
{
	int fd = device_open(), result, error;

	result = control(fd, NETMAP_REQ_POOLS_INFO_GET, name, pools);
	error = errno;
	close(fd);
	errno = error;
	return result;
}

static void
pools_at_any_time(void)
{
	static const char *const names[] = {
		"vale$:a", "vale$:a{1", "p${1", "p$}x",
	};
	struct nmreq_pools_info before, during;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct port port;

		memset(&before, 0, sizeof(before));
		memset(&during, 0, sizeof(during));
		check_call(pools_try(own(names[i]), &before), 0,
			   own(names[i]));
		check(!port_exists(own("vale$:a")), "nothing stays");
		port = port_open(own(names[i]));
		check_call(control(port.fd, NETMAP_REQ_POOLS_INFO_GET,
				   own(names[i]), &during), 0, "bound");
		check_number(during.nr_mem_id, port.reg.nr_mem_id, "its id");
		during.nr_mem_id = before.nr_mem_id;
		check(memcmp(&before, &during, sizeof(before)) == 0,
		      "otherwise as before");
		port_close(&port);
	}
}

static void
pools_errors(void)
{
	struct port port = port_open(own("vale$:b"));
	struct nmreq_pools_info pools;
	static const struct {
		const char *name;
		uint16_t id;
		int error;
	} asked[] = {
		{ "", 0, ENXIO }, { "nosuchif0", 0, ENXIO },
		{ "valeX", 0, ENOMEM }, { "p${", 0, EINVAL },
		{ "vale$:a", NO_REGION, EINVAL },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		memset(&pools, 0, sizeof(pools));
		pools.nr_mem_id = asked[i].id;
		check_call(pools_try(own(asked[i].name), &pools),
			   asked[i].error, line("\"%s\", region %u",
						asked[i].name, asked[i].id));
	}
	memset(&pools, 0, sizeof(pools));
	pools.nr_mem_id = port.reg.nr_mem_id;
	check_call(pools_try(own("vale$:a"), &pools), 0,
		   "a new port in a region that is there");
	check_number(pools.nr_mem_id, port.reg.nr_mem_id, "that region");
	pools.nr_mem_id = GLOBAL;
	check_call(pools_try(own("vale$:b"), &pools), 0, "a port in use");
	check_number(pools.nr_mem_id, port.reg.nr_mem_id, "its own");
}

static const struct test_case cases[] = {
	{ "S-MEM-1", "layout", layout },
	{ "S-MEM-1", "layout of the global region",
	  layout_of_the_global_region },
	{ "S-MEM-2", "regions by kind of port", regions_by_kind },
	{ "S-MEM-2", "interfaces", region_of_interfaces },
	{ "S-MEM-2", "ids grow", ids_grow },
	{ "S-MEM-2a", "ephemeral ports", ephemeral_region_ends },
	{ "S-MEM-2a", "contents stay", contents_stay },
	{ "S-MEM-2a", "persistent ports", persistent_region_stays },
	{ "S-MEM-3", "virtual ports", regions_asked_for },
	{ "S-MEM-3", "interfaces", region_of_an_interface_asked_for },
	{ "S-MEM-3", "interfaces in a port's", region_of_a_switch_asked_for },
	{ "S-MEM-4", "buffers of two ports", buffers_between_ports },
	{ "S-MEM-5", "rounding", objects_are_rounded },
	{ "S-MEM-5", "limits", objects_have_limits },
	{ "S-MEM-6", "changed sizes", changed_sizes },
	{ "S-MEM-7", "defaults", default_sizes },
	{ "S-MEM-7", "the global region", default_size_of_the_global_region },
	{ "S-MEM-7", "pools of the global region",
	  default_pools_of_the_global_region },
	{ "S-MEM-8", "ports of a switch", private_sizes },
	{ "S-MEM-8", "monitors", private_sizes_of_monitors },
	{ "S-MEM-9", "lists", lists },
	{ "S-MEM-9", "lists of interfaces", lists_of_an_interface },
	{ "S-MEM-9", "the old request", lists_by_the_old_request },
	{ "S-MEM-9", "fewer than asked", fewer_than_asked },
	{ "S-MEM-9", "taken and returned", taken_and_returned },
	{ "S-MEM-9", "broken lists", broken_lists },
	{ "S-MEM-9", "lists without end", circular_lists },
	{ "S-MEM-9", "more than a port may have",
	  more_than_a_port_may_have },
	{ "S-MEM-10", "buffers of rings", buffers_of_rings },
	{ "S-MEM-10", "the last user", everything_comes_back },
	{ "S-MEM-11", "makes and unmakes", info_makes_and_unmakes },
	{ "S-MEM-11", "ports in use", info_of_ports_in_use },
	{ "S-MEM-11", "errors", info_errors },
	{ "S-MEM-11", "a region", info_of_a_region },
	{ "S-MEM-11", "interfaces", info_of_interfaces },
	{ "S-MEM-12", "before and after binding", pools_at_any_time },
	{ "S-MEM-12", "errors", pools_errors },
};

CHAPTER(cases)
