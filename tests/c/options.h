/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests with options; registration in memory of the program's own, or with offsets. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "port.h"

/* An option that comes back with this status was not written to. */
#define STATUS_UNTOUCHED	12345

static inline struct nmreq_option
option_of(uint32_t type, const void *next)
{
	struct nmreq_option option;

	memset(&option, 0, sizeof(option));
	option.nro_reqtype = type;
	option.nro_next = (uintptr_t)next;
	option.nro_status = STATUS_UNTOUCHED;
	return option;
}

/* One request with a list of options. */
static inline int
control_with(int fd, uint16_t type, const char *name, void *body,
	     const void *options)
{
	struct nmreq_header header = header_of(type, name, body);

	header.nr_options = (uintptr_t)options;
	return ioctl(fd, NIOCCTRL, &header);
}

/* Memory for a region: zero, private, and of ordinary pages. */
static inline void *
memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(memory != MAP_FAILED, "%zu bytes of memory", bytes);
	return memory;
}

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
