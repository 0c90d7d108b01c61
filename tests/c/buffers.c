/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens an interface with buffers of 4096 bytes, in memory of its own, in a
 * region by its number, or as the environment asks, and receives a frame of
 * 3014 bytes in one slot.
 *
 * usage: buffers memory|environment|REGION INTERFACE
 */
#include "options.h"

#define MEMORY	(16u << 20)
#define LENGTH	3014

static struct port
open_in_memory(const char *name)
{
	struct nmreq_opt_extmem option = extmem_of(memory_new(MEMORY), MEMORY);

	option.nro_info.nr_buf_pool_objsize = 4096;
	/* Two rings of 1024 slots. */
	option.nro_info.nr_buf_pool_objtotal = 2100;
	return port_open_with(name, register_all(), &option);
}

int
main(int argc, char **argv)
{
	struct nmreq_register reg = register_all();
	struct netmap_slot *slot;
	struct port port;
	int i, good = 1;

	require(argc == 3, "usage: buffers memory|environment|REGION INTERFACE");
	if (strcmp(argv[1], "memory") == 0) {
		port = open_in_memory(argv[2]);
	} else {
		reg.nr_mem_id = (uint16_t)atoi(argv[1]);
		port = port_open_as(argv[2], reg);
	}
	check_number(port_rx(&port)->nr_buf_size, 4096, "buffers of 4096");
	check(port.reg.nr_mem_id > 1, "not in the global region");
	fputs("ready\n", stderr);

	slot = port_peek(&port);
	require(slot != NULL, "a frame arrives");
	check_number(slot->len, LENGTH, "all of it in a slot");
	check_number(slot->flags & NS_MOREFRAG, 0, "which is the last");
	for (i = 14; i < LENGTH; i++)
		good &= (unsigned char)NETMAP_BUF(port_rx(&port),
			slot->buf_idx)[i] == (unsigned char)(i * 7 + LENGTH);
	check(good, "every byte of it");
	return check_result();
}
