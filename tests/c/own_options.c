/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a port with options of Ringway's own, by libnetmap and by nm_open, and
 * prints for each "result" and 0 or an errno, in order with the messages of the
 * libraries.
 *
 * usage: own_options NAME
 *
 * "null" is a port without a peer (NR_REG_NULL): only a request can open it,
 * whose name has the options.
 */
#define NETMAP_WITH_LIBS
#include "port.h"

#include <libnetmap.h>

static const char null_port[] = "null";

static int
by_libnetmap(const char *name)
{
	struct nmport_d *d;

	errno = 0;
	d = nmport_open(name);
	if (!d)
		return errno ? errno : -1;
	nmport_close(d);
	return 0;
}

static int
by_nm_open(const char *name)
{
	struct nm_desc *d;

	errno = 0;
	d = nm_open(name, NULL, 0, NULL);
	if (!d)
		return errno ? errno : -1;
	nm_close(d);
	return 0;
}

static int
by_request(const char *name)
{
	struct nmreq_register body;
	struct nmreq_header header;
	int fd = open(NETMAP_DEVICE_NAME, O_RDWR), result;

	require(fd != -1, "open %s", NETMAP_DEVICE_NAME);
	memset(&body, 0, sizeof(body));
	body.nr_mode = NR_REG_NULL;
	body.nr_mem_id = 1;
	header = header_of(NETMAP_REQ_REGISTER, name, &body);
	result = ioctl(fd, NIOCCTRL, &header) == -1 ? errno : 0;
	close(fd);
	return result;
}

int
main(int argc, char **argv)
{
	require(argc == 2, "usage: own_options NAME");
	if (strncmp(argv[1], null_port, strlen(null_port)) == 0) {
		fprintf(stderr, "result %d\n", by_request(argv[1]));
		return 0;
	}
	fprintf(stderr, "result %d\n", by_libnetmap(argv[1]));
	fprintf(stderr, "result %d\n", by_nm_open(argv[1]));
	return 0;
}
