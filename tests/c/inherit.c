/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A descriptor that another program has bound, under this program's own name
 * for the daemon's socket.
 *
 * usage: inherit PORT
 */
#include "port.h"

int
main(int argc, char **argv)
{
	char number[16];
	struct port port;

	require(argc >= 2, "usage: inherit PORT");
	if (argc == 2) {
		port = port_open(argv[1]);
		snprintf(number, sizeof(number), "%d", port.fd);
		execl(argv[0], argv[0], argv[1], number, (char *)NULL);
		require(0, "exec");
	}
	port.fd = atoi(argv[2]);
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0, "it syncs");
	check_number(wait_events(port.fd, POLLOUT, PATIENCE_MS), POLLOUT,
		     "and has room");
	check(port_exists(argv[1]), "the port is there");
	close(port.fd);
	check(!port_exists(argv[1]), "and gone with it");
	return check_result();
}
