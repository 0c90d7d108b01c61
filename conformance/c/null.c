/* SPDX-License-Identifier: BSD-2-Clause */
/* Null ports: memory and rings that go nowhere (S-NULL). */
#include "packet.h"
#include "request.h"

static struct packet packet;

static struct nmreq_register
register_null(uint16_t mem_id, uint16_t rings, uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = mem_id;
	reg.nr_tx_rings = reg.nr_rx_rings = rings;
	reg.nr_tx_slots = reg.nr_rx_slots = slots;
	return reg;
}

static int
try_null(const char *name, uint16_t mem_id)
{
	return try_register(name, register_null(mem_id, 1, 16));
}

static void
region_is_needed(void)
{
	struct port port = port_open(own("vale$:p"));

	check_call(try_null("null", 0), EINVAL, "no region");
	check_call(try_null("null", NO_REGION), EINVAL, "no such region");
	check_call(try_null("null", port.reg.nr_mem_id), 0, "a port's region");
	check_call(try_null("null", 1), 0, "the global region");
}

static void
name_is_a_label(void)
{
	struct port port = port_open(own("vale$:p"));
	const char *const names[] = {
		"", "nosuchif0", own("vale$:p"), own("vale$:q"), "vale", "a{b",
		"{", "any text at all, as long as 63 characters, which is plenty",
	};
	size_t i;

	for (i = 0; i < COUNT(names); i++)
		check_call(try_null(names[i], port.reg.nr_mem_id), 0,
			   names[i]);
	check(!port_exists(own("vale$:q")), "no port of that name");
}

static void
each_bind_is_new(void)
{
	struct port port = port_open(own("vale$:p"));
	struct nmreq_register reg = register_null(port.reg.nr_mem_id, 1, 16);
	struct port one, two;

	reg.nr_flags = NR_EXCLUSIVE;
	one = port_open_as("same", reg);
	two = port_open_as("same", reg);
	check(one.reg.nr_offset != two.reg.nr_offset &&
	      port_tx(&one)->slot[0].buf_idx != port_tx(&two)->slot[0].buf_idx,
	      "two exclusive ones of the same name");
}

static void
counts_as_given(void)
{
	struct port port = port_open(own("vale$:p"));
	struct nmreq_register reg = register_null(port.reg.nr_mem_id, 0, 0);
	struct port null;

	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 100;
	reg.nr_rx_slots = 37;
	null = port_open_as("null", reg);
	check(null.reg.nr_tx_rings == 3 && null.reg.nr_rx_rings == 2 &&
	      null.reg.nr_tx_slots == 100 && null.reg.nr_rx_slots == 37,
	      "3 tx rings of 100, 2 rx rings of 37");
	check(NETMAP_TXRING(null.nifp, 2)->num_slots == 100 &&
	      NETMAP_RXRING(null.nifp, 1)->num_slots == 37, "in the rings");
	check_number(null.reg.nr_mem_id, port.reg.nr_mem_id, "the region");
	check(null.reg.nr_host_tx_rings == 0 && null.reg.nr_host_rx_rings == 0,
	      "no host rings");
}

static void
all_zeros(void)
{
	struct port port = port_open(own("vale$:p"));
	struct nmreq_register reg = register_null(port.reg.nr_mem_id, 0, 0);
	struct port null;

	reg.nr_extra_bufs = 4;
	null = port_open_as("null", reg);
	check(null.reg.nr_tx_rings == 0 && null.reg.nr_rx_rings == 0 &&
	      null.reg.nr_tx_slots == 0 && null.reg.nr_rx_slots == 0,
	      "no rings, no slots");
	check(null.nifp->ni_tx_rings == 0 && null.nifp->ni_rx_rings == 0,
	      "none in the interface");
	check_number(null.reg.nr_extra_bufs, 4, "buffers");
	check_call(ioctl(null.fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	check_call(ioctl(null.fd, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
	check_number(wait_events(null.fd, POLLIN | POLLOUT, 0), 0,
		     "no event");
}

static void
nothing_moves(void)
{
	struct port port = port_open(own("vale$:p"));
	struct port null = port_open_as("null",
		register_null(port.reg.nr_mem_id, 1, 16));
	struct netmap_ring *tx = port_tx(&null), *rx = port_rx(&null);

	check_call(ioctl(null.fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	check_call(ioctl(null.fd, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
	check(tx->tail == 15 && rx->tail == 0, "as at the start");
	ring_put_frame(tx, broadcast, mac_of(1), 1, 60, 60);
	ring_put_frame(tx, broadcast, mac_of(1), 2, 60, 60);
	port_txsync(&null);
	port_rxsync(&null);
	check(tx->head == 2 && tx->cur == 2 && tx->tail == 15,
	      "what is sent does not come back (got tail %u)", tx->tail);
	check(rx->tail == 0, "nor does it arrive");
	check_number(wait_events(null.fd, POLLOUT | POLLIN, 0), POLLOUT,
		     "room is left");
	ring_advance(tx, 13);
	port_txsync(&null);
	check_number(wait_events(null.fd, POLLOUT | POLLIN, 0), 0,
		     "no room is left");
}

/* What it is for: buffers to exchange with another port of the region. */
static void
buffers_for_others(void)
{
	struct port port = port_open(own("vale$:p")),
		    other = port_open(own("vale$:q"));
	struct nmreq_register reg = register_null(port.reg.nr_mem_id, 0, 0);
	struct netmap_slot *slot = &port_tx(&port)->slot[0];
	struct port null;
	uint32_t index;

	reg.nr_extra_bufs = 1;
	null = port_open_as("null", reg);
	require(null.reg.nr_extra_bufs == 1, "a buffer");
	index = null.nifp->ni_bufs_head;
	null.nifp->ni_bufs_head = slot->buf_idx;
	memset(NETMAP_BUF(port_tx(&port), slot->buf_idx), 0, 4);
	slot->buf_idx = index;
	port_put(&port, broadcast, mac_of(1), 9);
	slot->flags = NS_BUF_CHANGED;
	port_txsync(&port);
	check(port_take_packet(&other, &packet) &&
	      packet_sequence(&packet) == 9, "a frame in its buffer");
	port_close(&null);
	check_passes(&port, &other, "the port goes on");
}

/* The region lives as long as the last port in it. */
static void
keeps_the_region(void)
{
	struct port port = port_open(own("vale$:p"));
	uint16_t mem_id = port.reg.nr_mem_id;
	struct port null = port_open_as("null", register_null(mem_id, 1, 16));

	port_close(&port);
	check(!port_exists(own("vale$:p")), "the port is gone");
	check_call(try_null("null", mem_id), 0, "its region is not");
	port_close(&null);
	check_call(try_null("null", mem_id), EINVAL, "now it is");
}

static const struct test_case cases[] = {
	{ "S-NULL-1", "a region is needed", region_is_needed },
	{ "S-NULL-1", "the name is a label", name_is_a_label },
	{ "S-NULL-1", "each bind is a new port", each_bind_is_new },
	{ "S-NULL-1", "counts as given", counts_as_given },
	{ "S-NULL-1", "all zeros", all_zeros },
	{ "S-NULL-1", "nothing moves", nothing_moves },
	{ "S-NULL-1", "buffers for other ports", buffers_for_others },
	{ "S-MEM-2a", "a null port keeps its region", keeps_the_region },
};

CHAPTER(cases)
