/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program at its limit of descriptors cannot have the rings of a monitor
 * that another process opens. It has them when it can.
 *
 * usage: late_monitor PIPE
 */
#include "port.h"

#include <sys/resource.h>
#include <sys/wait.h>

#define LIMIT	64

static int full[2], ready[2];

/* The monitor: 0 when it has had a packet. */
static int
monitor(const char *name)
{
	struct nmreq_register reg = register_all();
	struct port port;
	char byte;

	require(read(full[0], &byte, 1) == 1, "the program");
	reg.nr_flags = NR_MONITOR_TX;
	port = port_open_as(name, reg);
	require(write(ready[1], "", 1) == 1, "the program");
	return port_peek(&port) == NULL;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "late{1";
	struct port port = port_open(name);
	struct rlimit limit;
	int taken[LIMIT], count = 0, status = 0;
	uint32_t sent = 0;
	pid_t child;
	char byte;

	require(pipe(full) == 0 && pipe(ready) == 0, "pipes");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		close(port.fd);
		_exit(monitor(name));
	}
	require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = LIMIT;
	require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	while (count < LIMIT && (taken[count] = dup(STDIN_FILENO)) >= 0)
		count++;
	require(write(full[1], "", 1) == 1 && read(ready[0], &byte, 1) == 1,
		"the monitor");
	port_send(&port, broadcast, mac_of(1), sent++);
	while (count > 0)
		close(taken[--count]);

	/* It asks again after a while, in some sync. */
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (!nm_ring_empty(port_tx(&port)))
			port_put(&port, broadcast, mac_of(1), sent++);
		port_txsync(&port);
		poll(NULL, 0, 1);
	}
	check_number(status, 0, "the monitor gets packets");
	port_close(&port);
	return check_result();
}
