/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bridge of libpcap's functions: what comes in by one device goes out by the
 * other.
 *
 * usage: pcap_bridge CPU IN OUT
 */
#include "role.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>

#define BATCH	256
/* Looks of a program that finds nothing, before it sleeps: as the benchmark's own. */
#define LOOKS	100

static pcap_t *in, *out;
static int looks;

static pcap_t *
open_device(const char *name)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	pcap_t *device = pcap_create(name, error);

	if (!device || pcap_set_promisc(device, 1) != 0 || pcap_set_immediate_mode(device, 1) != 0 ||
	    pcap_set_snaplen(device, 2048) != 0 || pcap_activate(device) < 0 ||
	    pcap_setdirection(device, PCAP_D_IN) != 0 || pcap_setnonblock(device, 1, error) != 0) {
		fprintf(stderr, "%s: %s%s\n", name, error, device ? pcap_geterr(device) : "");
		exit(1);
	}
	return device;
}

static void
forward(unsigned char *nothing, const struct pcap_pkthdr *header, const unsigned char *packet)
{
	(void)nothing;
	/* What finds no room is lost, as in every forwarder. */
	pcap_inject(out, packet, header->caplen);
}

static uint64_t
step(void *nothing)
{
	int count = pcap_dispatch(in, BATCH, forward, NULL);

	(void)nothing;
	if (count > 0) {
		looks = 0;
	} else if (looks++ < LOOKS) {
		sched_yield();
	} else {
		struct pollfd wait = { pcap_get_selectable_fd(in), POLLIN, 0 };

		poll(&wait, 1, NAP_MS);
	}
	return count > 0 ? (uint64_t)count : 0;
}

int
main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: pcap_bridge CPU IN OUT\n");
		return 2;
	}
	in = open_device(argv[2]);
	out = open_device(argv[3]);
	role_run(argv[1], step, NULL);
	return 0;
}
