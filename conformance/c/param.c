/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parameters of netmap's module set, as far as the configuration of a
 * system service sets it here (S-PARAM). Each case has a service of its own.
 */
#include "extra.h"
#include "monitor.h"
#include "netns.h"
#include "service.h"

#include <limits.h>

/* ---- log level ---- */

/* What a refused request says on standard error. */
static size_t
said_of_a_refusal(const char *verbose)
{
	FILE *said = tmpfile();
	pid_t child;
	long size;

	require(said != NULL, "a file");
	child = forked();
	if (child == 0) {
		struct nmreq_register reg = register_all();

		dup2(fileno(said), STDERR_FILENO);
		if (verbose)
			setenv("RINGWAY_VERBOSE", verbose, 1);
		else
			unsetenv("RINGWAY_VERBOSE");
		_exit(control(device_open(), NETMAP_REQ_REGISTER, "nosuchif0",
			      &reg) != -1);
	}
	check_child(child, "a request is refused");
	fseek(said, 0, SEEK_END);
	size = ftell(said);
	fclose(said);
	return (size_t)size;
}

static void
verbose(void)
{
	check_number((long long)said_of_a_refusal(NULL), 0,
		     "nothing is said by default");
	check(said_of_a_refusal("1") > 0, "the reason, if asked for");
}

/* ---- time stamps ---- */

/* Whether a sync stamps a ring with these flags. */
static int
stamps(const struct port *port, uint32_t flags)
{
	struct netmap_ring *rx = port_rx(port);

	rx->flags = flags;
	memset(&rx->ts, 0, sizeof(rx->ts));
	port_rxsync(port);
	return rx->ts.tv_sec != 0;
}

static void
time_stamps(void)
{
	static const struct {
		const char *settings;
		int stamped;
	} asked[] = {
		{ "", 1 }, { "timestamps = true\n", 1 },
		{ "timestamps = false\n", 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		service_start(asked[i].settings);
		struct port port = port_open(own("vale$:a"));

		check_number(stamps(&port, 0), asked[i].stamped,
			     "a ring is stamped");
		check_number(stamps(&port, NR_TIMESTAMP), 1,
			     "always with NR_TIMESTAMP");
		port_close(&port);
	}
}

/* ---- syncs look for packets ---- */

static int
has_frame(const void *argument)
{
	const struct port *port = (const struct port *)argument;

	port_rxsync(port);
	return !nm_ring_empty(port_rx(port));
}

static void
syncs_look(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);

	cable_send(&cable, broadcast, mac_of(1), 5);
	check(soon(has_frame, &port), "a sync finds what nobody waited for");
	check_number(port_take(&port), 5, "the frame");
}

/* ---- slots of emulated rings ---- */

static void
emulated_slots(void)
{
	static const uint32_t slots[] = { 3, 64, 2048 };
	size_t i;

	netns_own();
	for (i = 0; i < COUNT(slots); i++) {
		struct cable cable = cable_new("n0", "f0", 1);
		struct port port;

		service_start(line("nic_slots = %u\n", slots[i]));
		port = port_open(cable.near);
		check(port.reg.nr_tx_slots == slots[i] &&
		      port.reg.nr_rx_slots == slots[i], "%u slots (got %u, "
		      "%u)", slots[i], port.reg.nr_tx_slots,
		      port.reg.nr_rx_slots);
		port_close(&port);
		close(cable.socket);
		interface_remove("n0");
	}
	check(service_refuses("nic_slots = 2\n"), "no less than 3");
}

/* ---- number of switches ---- */

static void
switches(void)
{
	struct port a, b, more;

	service_start("max_bridges = 2\nswitches_per_user = 2\n");
	a = port_open(own("valea$:p"));
	b = port_open(own("valeb$:p"));
	more = port_open(own("valea$:q"));
	check_call(bind_all(device_open(), own("valec$:p")), ENOMEM,
		   "one more than there may be");
	port_close(&b);
	check(gone_soon(own("valeb$:p")), "one goes");
	b = port_open(own("valec$:p"));
	check_passes(&a, &more, "another may come");
	port_close(&a);
	port_close(&b);
	port_close(&more);
}

/* ---- objects of the global region ---- */

/* A null port with these rings in the global region; lives on. */
static int
null_port(uint16_t rings, uint32_t slots)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = GLOBAL;
	reg.nr_tx_rings = reg.nr_rx_rings = rings;
	reg.nr_tx_slots = reg.nr_rx_slots = slots;
	return control(device_open(), NETMAP_REQ_REGISTER, "null", &reg);
}

static void
if_size(void)
{
	service_start("[global_region]\n"
					       "if_size = 128\n");

	/* 56 bytes, and 8 for each ring and one of the host's either way. */
	check_call(null_port(3, 4), 0, "8 rings");
	check_call(null_port(4, 4), ENOMEM, "10 rings");
}

static void
if_num(void)
{
	service_start("[global_region]\n"
					       "if_num = 12\n");
	int i;

	for (i = 0; i < 12; i++)
		require(null_port(0, 0) == 0, "port %d", i);
	check_call(null_port(0, 0), ENOMEM, "a port more than interfaces");
}

static void
ring_size(void)
{
	service_start("[global_region]\n"
					       "ring_size = 1024\n");

	check_call(null_port(1, 48), 0, "48 slots");
	check_call(null_port(1, 49), ENOMEM, "49 slots");
}

static void
ring_num(void)
{
	service_start("[global_region]\n"
					       "ring_num = 4\n");

	check_call(null_port(1, 4), 0, "2 rings");
	check_call(null_port(2, 4), ENOMEM, "4 rings more");
	check_call(null_port(1, 4), 0, "2 rings more");
	check_call(null_port(1, 4), ENOMEM, "no more");
}

static void
buf_size(void)
{
	service_start("[global_region]\n"
					       "buf_size = 4096\n");
	struct nmreq_register reg = register_all();
	struct port port;
	uint32_t i;
	long distance = LONG_MAX;

	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = GLOBAL;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	reg.nr_tx_slots = reg.nr_rx_slots = 16;
	port = port_open_as("null", reg);
	for (i = 1; i < 16; i++) {
		struct netmap_ring *tx = port_tx(&port);
		long apart = labs(NETMAP_BUF(tx, tx->slot[i].buf_idx) -
				  NETMAP_BUF(tx, tx->slot[0].buf_idx));

		if (apart < distance)
			distance = apart;
	}
	check_number(port_tx(&port)->nr_buf_size, 4096, "nr_buf_size");
	check_number(distance, 4096, "as far are buffers from each other");
}

static void
buf_num(void)
{
	uint32_t have;

	service_start("[global_region]\nbuf_num = 1000\n");
	have = region_free_buffers(GLOBAL);
	check(have <= 998 && have > 990,
	      "1000, less those of nobody (got %u)", have);
}

static void
actual_values(void)
{
	struct nmreq_pools_info pools;
	struct cable cable;

	service_start("[global_region]\nif_num = 10\nif_size = 1000\n"
		      "ring_num = 30\nring_size = 20000\nbuf_num = 10001\n");
	netns_own();
	cable = cable_new("n0", "f0", 1);
	pools = pools_of(cable.near);
	check(pools.nr_if_pool_objtotal == 12 &&
	      pools.nr_if_pool_objsize == 1024, "interfaces, rounded up");
	check(pools.nr_ring_pool_objtotal == 64 &&
	      pools.nr_ring_pool_objsize == 20032, "rings, rounded up");
	check(pools.nr_buf_pool_objtotal == 10002 &&
	      pools.nr_buf_pool_objsize == 2048, "buffers, rounded up");
}

/* ---- private regions ---- */

static void
private_regions(void)
{
	struct nmreq_opt_extmem option = extmem_of(memory_new(16 << 20),
						   16 << 20);
	struct nmreq_pools_info *info = &option.nro_info;
	struct port target = port_open_slots(own("vale$:a"), 16);
	struct port monitor = monitor_open(own("vale$:a"), NR_MONITOR_RX);

	/* 4 interfaces fill a page; then 4 rings and 4098 buffers. */
	check_number((long long)monitor.reg.nr_memsize,
		     4 * 1024 + 4 * 20480 + 4098 * 2048,
		     "the least that a monitor's has");
	check_call(try_with(own("vale$:b"), register_all(), &option), 0,
		   "memory without numbers");
	check(info->nr_if_pool_objtotal == 2 &&
	      info->nr_if_pool_objsize == 1024 &&
	      info->nr_ring_pool_objtotal == 4 &&
	      info->nr_ring_pool_objsize == 20480 &&
	      info->nr_buf_pool_objtotal == 4098 &&
	      info->nr_buf_pool_objsize == 2048, "gets the same");
	port_close(&monitor);
	port_close(&target);
}

static const struct test_case cases[] = {
	{ "S-PARAM-verbose", "why a request is refused", verbose },
	{ "S-PARAM-no_timestamp", "timestamps", time_stamps },
	{ "S-PARAM-no_pendintr", "syncs look for packets", syncs_look },
	{ "S-PARAM-generic_ringsize", "nic_slots", emulated_slots },
	{ "S-PARAM-max_bridges", "max_bridges", switches },
	{ "S-PARAM-if_size", "if_size", if_size },
	{ "S-PARAM-if_num", "if_num", if_num },
	{ "S-PARAM-ring_size", "ring_size", ring_size },
	{ "S-PARAM-ring_num", "ring_num", ring_num },
	{ "S-PARAM-buf_size", "buf_size", buf_size },
	{ "S-PARAM-buf_num", "buf_num", buf_num },
	{ "S-PARAM-curr", "actual values", actual_values },
	{ "S-PARAM-priv", "the least of a region", private_regions },
};

CHAPTER(cases)
