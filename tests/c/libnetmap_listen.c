/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listens on a port of libnetmap, or on a clone of one that is not registered.
 *
 * usage: libnetmap_listen open|clone NAME COUNT
 */
#include "listen.h"

#include <libnetmap.h>

int
main(int argc, char **argv)
{
	struct nmport_d *d;

	require(argc == 4, "usage: libnetmap_listen open|clone NAME COUNT");
	d = nmport_prepare(argv[2]);
	require(d != NULL, "nmport_prepare %s", argv[2]);
	if (strcmp(argv[1], "clone") == 0) {
		struct nmport_d *clone = nmport_clone(d);

		require(clone != NULL, "nmport_clone");
		nmport_undo_prepare(d);
		d = clone;
	}
	require(nmport_open_desc(d) == 0, "nmport_open_desc %s", argv[2]);
	listen_to(d->fd, d->nifp, atol(argv[3]));
	nmport_close(d);
	return 0;
}
