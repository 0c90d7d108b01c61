/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions: extra buffers, and those of rings that end (S-MEM-9, 10). */
#include "attach.h"
#include "extra.h"

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
	const char *name = persistent();
	struct port port = port_open_extra(name, 10000);
	uint32_t before;
	int i;

	before = port.reg.nr_extra_bufs;
	check_number(before, 10000, "buffers");
	for (i = 0; i < 3; i++) {
		port.nifp->ni_bufs_head = 0;
		memset(port_tx(&port)->slot, 0, 64 * sizeof(struct netmap_slot));
		port_close(&port);
		port = port_open_extra(name, 10000);
		check_number(port.reg.nr_extra_bufs, before, "all of them");
	}
}

static const struct test_case cases[] = {
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
};

CHAPTER(cases)
