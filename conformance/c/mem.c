/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions: what is where, whose they are, and how long (S-MEM-1 to 4). */
#include "attach.h"
#include "extra.h"
#include "monitor.h"
#include "service.h"

#define PAGE	4096

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
	const char *name = persistent();
	struct nmreq_port_info_get info;
	struct port port;
	uint16_t id;
	int i;

	memset(&info, 0, sizeof(info));
	require(port_info(name, &info) == 0, "PORT_INFO_GET");
	id = info.nr_mem_id;
	check(id > GLOBAL, "a region of its own");
	for (i = 0; i < 3; i++) {
		port = port_open(name);
		check_number(port.reg.nr_mem_id, id, "the same each time");
		if (i > 0)
			check(strcmp(port.mem + port.reg.nr_memsize - 16,
				     "still there") == 0,
			      "with what was in it");
		memcpy(port.mem + port.reg.nr_memsize - 16, "still there", 12);
		port_close(&port);
	}
	check_number(region_error(id), 0, "there without a user");
	require(delif(name) == 0, "VALE_DELIF");
	check_number(region_error(id), EINVAL, "gone with the port");
}

/* ---- S-MEM-3: asking for a region ---- */

static int
try_region(const char *name, struct nmreq_register reg, uint16_t id,
	   uint16_t *got)
{
	int result;

	reg.nr_mem_id = id;
	result = control_once(NETMAP_REQ_REGISTER, name, &reg);
	*got = reg.nr_mem_id;
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
	struct nmreq_opt_extmem option = extmem_of(memory_new(16 << 20),
						   16 << 20);
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
};

CHAPTER(cases)
