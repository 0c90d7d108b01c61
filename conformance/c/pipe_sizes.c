/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes: how many, of what size, in which memory (S-PIPE-3 to 5). */
#include "pipe.h"

/* ---- S-PIPE-3: both ends, up to 64 ---- */

static void
made_together(void)
{
	struct port master = port_open(own("c${1")), other;
	struct nmreq_port_hdr hdr;

	memset(&hdr, 0, sizeof(hdr));
	check_call(control_once(NETMAP_REQ_PORT_HDR_GET, own("c$}1"), &hdr),
		   0, "the slave is there with the master");
	other = port_open(own("d${1"));
	check(other.reg.nr_mem_id != master.reg.nr_mem_id,
	      "the same id of another parent is another pipe");
}

/* A parent whose region, in this program's memory, has room for many. */
static struct port
spacious_parent(const char *name)
{
	enum { SIZE = 24 << 20 };
	struct nmreq_opt_extmem option = extmem_of(memory_new(SIZE), SIZE);
	struct nmreq_register reg = register_all();

	option.nro_info.nr_if_pool_objtotal = 100;
	option.nro_info.nr_if_pool_objsize = 1024;
	option.nro_info.nr_ring_pool_objtotal = 512;
	option.nro_info.nr_ring_pool_objsize = 1024;
	option.nro_info.nr_buf_pool_objtotal = 8192;
	option.nro_info.nr_buf_pool_objsize = 2048;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	return port_open_with(name, reg, &option);
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
	check_call(try_register(own("vale$:p{64"), register_all()), EINVAL,
		   "one more");
	slave = port_open(own("vale$:p}63"));
	check_works(&master[63], &slave);
	port_close(&master[5]);
	check_call(try_register(own("vale$:p}64"), register_all()), 0,
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
	check_call(try_register(own("vale$:p}0"), register_all()), 0,
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
	check_call(try_register(own("vale$:p{1"), reg), ENOMEM, "300 rings");
	reg.nr_tx_rings = 40;
	port = port_open_as(own("vale$:p{1"), reg);
	check_number(port.reg.nr_tx_rings, 40, "40 rings");
	memset(&info, 0, sizeof(info));
	check_call(port_info(own("vale$:p}1"), &info), 0, "PORT_INFO_GET");
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

static const struct test_case cases[] = {
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
};

CHAPTER(cases)
