/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a registration: memory of the program's own, and offsets. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "case.h"
#include "request.h"

static inline struct nmreq_opt_extmem
extmem_of(void *memory, uint64_t bytes)
{
	struct nmreq_opt_extmem option;

	memset(&option, 0, sizeof(option));
	option.nro_opt = option_of(NETMAP_REQ_OPT_EXTMEM, NULL);
	option.nro_usrptr = (uintptr_t)memory;
	option.nro_info.nr_memsize = bytes;
	return option;
}

static inline struct nmreq_opt_offsets
offsets_of(uint64_t max, uint64_t initial, uint32_t bits)
{
	struct nmreq_opt_offsets option;

	memset(&option, 0, sizeof(option));
	option.nro_opt = option_of(NETMAP_REQ_OPT_OFFSETS, NULL);
	option.nro_max_offset = max;
	option.nro_initial_offset = initial;
	option.nro_offset_bits = bits;
	return option;
}

/* REGISTER with an option on a descriptor of its own; -1 if refused. */
static inline int
register_with(const char *name, struct nmreq_register *reg, void *option)
{
	int fd = device_open(), error;

	if (control_with(fd, NETMAP_REQ_REGISTER, name, reg, option) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The same, let go at once. */
static inline int
try_with(const char *name, struct nmreq_register reg, void *option)
{
	int fd = register_with(name, &reg, option);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

/* The same, which must succeed, and mapped. */
static inline struct port
port_open_with(const char *name, struct nmreq_register reg, void *option)
{
	struct port port;

	port.reg = reg;
	port.fd = register_with(name, &port.reg, option);
	require(port.fd >= 0, "REGISTER %s with an option", name);
	port_map(&port);
	return port;
}

#endif
