/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listens on a port that is opened by nm_open, or by a request with its name.
 *
 * usage: listen nm_open|request NAME COUNT
 */
#define NETMAP_WITH_LIBS
#include "listen.h"
#include "port.h"

int
main(int argc, char **argv)
{
	require(argc == 4, "usage: listen nm_open|request NAME COUNT");
	if (strcmp(argv[1], "nm_open") == 0) {
		struct nm_desc *d = nm_open(argv[2], NULL, 0, NULL);

		require(d != NULL, "nm_open %s", argv[2]);
		listen_to(d->fd, d->nifp, atol(argv[3]));
		nm_close(d);
	} else {
		struct port port = port_open(argv[2]);

		listen_to(port.fd, port.nifp, atol(argv[3]));
		port_close(&port);
	}
	return 0;
}
