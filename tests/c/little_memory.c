/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that may not have as much memory as a port is told so, and can
 * use the descriptor when it may.
 *
 * usage: little_memory SWITCH
 */
#include "port.h"

#include <sys/resource.h>

/* Bytes that the program may map besides what it has: a port has more. */
#define ROOM	(8 << 20)

static rlim_t
mapped(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	require(file && fscanf(file, "%lu", &pages) == 1, "statm");
	fclose(file);
	return (rlim_t)pages * 4096;
}

int
main(int argc, char **argv)
{
	const char *name = name_of(argc > 1 ? argv[1] : "valeLittle", "a");
	struct rlimit before, limit;
	struct nmreq_register reg = register_all();
	struct port port = { .fd = device_open() };
	int result;

	require(getrlimit(RLIMIT_AS, &before) == 0, "getrlimit");
	limit = before;
	limit.rlim_cur = mapped() + ROOM;
	require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
	result = control(port.fd, NETMAP_REQ_REGISTER, name, &reg);
	check_call(result, ENOMEM, "there is no room for the port's memory");
	require(setrlimit(RLIMIT_AS, &before) == 0, "setrlimit");

	/* S-LIFE-2 */
	port.reg = register_all();
	result = control(port.fd, NETMAP_REQ_REGISTER, name, &port.reg);
	check_call(result, 0, "the descriptor can be used when there is");
	port_map(&port);
	port_close(&port);
	return check_result();
}
