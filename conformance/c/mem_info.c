/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions: what can be asked about them (S-MEM-11, 12). */
#include "attach.h"
#include "extra.h"

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
	const char *there = on(1, cable.near);

	memset(&info, 0, sizeof(info));
	check_call(port_info(cable.near, &info), 0, "an interface");
	check(info.nr_tx_rings == 2 && info.nr_rx_rings == 2 &&
	      info.nr_host_tx_rings == 1 && info.nr_host_rx_rings == 1,
	      "its queues and the host's");
	check(info.nr_tx_slots == 1024 && info.nr_mem_id == GLOBAL,
	      "slots and region");
	require(attach(there) == 0, "VALE_ATTACH");
	memset(&info, 0, sizeof(info));
	check_call(port_info(cable.near, &info), 0, "attached to a switch");
	check_number(info.nr_tx_rings, 2, "its queues");
	check_call(port_info(there, &info), 0, "by its name there");
	check_call(detach(there), 0, "VALE_DETACH");
}

/* ---- S-MEM-12: POOLS_INFO_GET ---- */

static int
pools_try(const char *name, struct nmreq_pools_info *pools)
{
	return control_once(NETMAP_REQ_POOLS_INFO_GET, name, pools);
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
	{ "S-MEM-11", "makes and unmakes", info_makes_and_unmakes },
	{ "S-MEM-11", "ports in use", info_of_ports_in_use },
	{ "S-MEM-11", "errors", info_errors },
	{ "S-MEM-11", "a region", info_of_a_region },
	{ "S-MEM-11", "interfaces", info_of_interfaces },
	{ "S-MEM-12", "before and after binding", pools_at_any_time },
	{ "S-MEM-12", "errors", pools_errors },
};

CHAPTER(cases)
