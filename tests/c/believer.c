/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls what makes each library read its environment, of those that the program is linked to, and
 * prints what came. usage: believer DEVICE [become]: PF_RING opens the device; "become" takes all
 * of the rights of a set-user-ID bit first.
 */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <net/netmap_user.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define IF_LINKED	__attribute__((weak))

/* Of no header that they share. */
IF_LINKED extern void *pcap_open_dead(int, int);
IF_LINKED extern void *pfring_open(const char *, unsigned, unsigned);
IF_LINKED extern int fman_init(void);

static void
register_port(const char *name)
{
	struct nmreq_header header;
	struct nmreq_register port;
	int fd = open("/dev/netmap", O_RDWR), bad = fd < 0;

	memset(&header, 0, sizeof(header));
	memset(&port, 0, sizeof(port));
	header.nr_version = NETMAP_API;
	header.nr_reqtype = NETMAP_REQ_REGISTER;
	header.nr_body = (uintptr_t)&port;
	strcpy(header.nr_name, name);
	port.nr_mode = NR_REG_ALL_NIC;
	bad = bad || ioctl(fd, NIOCCTRL, &header) != 0;
	printf("%s: %s\n", name, bad ? strerror(errno) : "open");
	if (fd >= 0)
		close(fd);
}

int
main(int argc, char **argv)
{
	if (argc < 2 || (argc > 2 && setresuid(0, 0, 0) != 0))
		return 2;
	if (pcap_open_dead != NULL)
		printf("pcap: %s\n", pcap_open_dead(1, 65535) != NULL ? "open" : "missing");
	if (pfring_open != NULL) {
		void *ring = pfring_open(argv[1], 128, 0);

		printf("pfring: %s\n", ring != NULL ? "open" : strerror(errno));
	}
	if (fman_init != NULL)
		printf("usdpaa: %s\n", strerror(-fman_init()));
	if (pcap_open_dead == NULL && pfring_open == NULL && fman_init == NULL) {
		register_port("no_such_if");
		register_port("valet:a");
	}
	return 0;
}
