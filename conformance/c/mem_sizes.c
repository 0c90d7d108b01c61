/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions: how much is in them (S-MEM-5 to 8). */
#include "extra.h"
#include "monitor.h"
#include "service.h"

#define PAGE	4096

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

static const struct test_case cases[] = {
	{ "S-MEM-5", "rounding", objects_are_rounded },
	{ "S-MEM-5", "limits", objects_have_limits },
	{ "S-MEM-6", "changed sizes", changed_sizes },
	{ "S-MEM-7", "defaults", default_sizes },
	{ "S-MEM-7", "the global region", default_size_of_the_global_region },
	{ "S-MEM-7", "pools of the global region",
	  default_pools_of_the_global_region },
	{ "S-MEM-8", "ports of a switch", private_sizes },
	{ "S-MEM-8", "monitors", private_sizes_of_monitors },
};

CHAPTER(cases)
