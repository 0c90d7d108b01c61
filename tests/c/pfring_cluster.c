/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of a cluster: prints what it receives until a signal, its counters
 * with each SIGUSR1, and what comes of sending a frame with each SIGUSR2.
 * usage: pfring_cluster DEVICE ID TYPE QUEUE
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>
#include <pfring.h>

static pfring *ring;

static void
interrupted(int signal)
{
	(void)signal;
	pfring_breakloop(ring);
}

/* PF_RING's programs ask for counters in handlers. */
static void
counters(int signal)
{
	pfring_stat stats;
	char line[80];
	int length;

	(void)signal;
	if (pfring_stats(ring, &stats) != 0)
		return;
	length = snprintf(line, sizeof(line), "stats %llu %llu\n",
	    (unsigned long long)stats.recv, (unsigned long long)stats.drop);
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(1);
}

static volatile sig_atomic_t sends;

static void
send_one(int signal)
{
	(void)signal;
	sends = 1;
	pfring_breakloop(ring);
}

int
main(int argc, char **argv)
{
	struct pfring_pkthdr header;
	u_char *packet;
	char frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0 };
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
	signal(SIGUSR1, counters);
	signal(SIGUSR2, send_one);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		if (pfring_recv(ring, &packet, 0, &header, 1) != 1) {
			if (!sends)
				break;
			sends = 0;
			errno = 0;
			result = pfring_send(ring, frame, sizeof(frame), 0);
			printf("sent %d %d\n", result, errno);
			fflush(stdout);
			continue;
		}
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
