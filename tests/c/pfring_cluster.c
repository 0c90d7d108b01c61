/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of a cluster: prints what it receives until a signal.
 * usage: pfring_cluster DEVICE ID TYPE QUEUE
 */
#include "check.h"

#include <signal.h>
#include <pfring.h>

static pfring *ring;

static void
interrupted(int signal)
{
	(void)signal;
	pfring_breakloop(ring);
}

int
main(int argc, char **argv)
{
	struct pfring_pkthdr header;
	u_char *packet;
	unsigned at;
	int result;

	require(argc == 5, "usage: pfring_cluster DEVICE ID TYPE QUEUE");
	signal(SIGTERM, interrupted);
	ring = pfring_open(argv[1], 1536, 0);
	require(ring != NULL, "%s opens", argv[1]);
	check_number(pfring_set_direction(ring, rx_only_direction), 0, "a direction");
	result = pfring_set_cluster_consumer(ring, (u_int16_t)atoi(argv[2]),
	    (u_int16_t)atoi(argv[4]), (cluster_type)atoi(argv[3]), 0);
	if (result != 0) {
		printf("refused %s\n", strerror(errno));
		return 0;
	}
	require(pfring_enable_ring(ring) == 0, "it is enabled");
	printf("ready\n");
	fflush(stdout);
	while (pfring_recv(ring, &packet, 0, &header, 1) == 1) {
		printf("got ");
		for (at = 0; at < header.caplen; at++)
			printf("%02x", packet[at]);
		printf("\n");
		fflush(stdout);
	}
	signal(SIGTERM, SIG_IGN);
	check_number(pfring_remove_from_cluster(ring), 0, "it leaves");
	pfring_close(ring);
	return check_result();
}
