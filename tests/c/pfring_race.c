/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads whose rings become members of one cluster and leave it at the same time: none is refused.
 * usage: pfring_race DEVICE ID ROUNDS
 */
#include "check.h"

#include <pthread.h>
#include <pfring.h>

#define THREADS	3

static const char *device;
static u_int id;
static int rounds;

static void *
come_and_go(void *unused)
{
	pfring *ring;
	int round;

	(void)unused;
	for (round = 0; round < rounds; round++) {
		errno = 0;
		ring = pfring_open(device, 1536, 0);
		require(ring != NULL, "it opens in round %d: %s", round, strerror(errno));
		require(pfring_set_cluster(ring, id, cluster_per_flow) == 0,
			"it joins in round %d: %s", round, strerror(errno));
		require(pfring_enable_ring(ring) == 0, "it is enabled");
		if (round % 2 == 0)
			require(pfring_remove_from_cluster(ring) == 0, "it leaves in round %d: %s",
				round, strerror(errno));
		pfring_close(ring);
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int at;

	require(argc == 4, "usage: pfring_race DEVICE ID ROUNDS");
	device = argv[1];
	id = (u_int)atoi(argv[2]);
	rounds = atoi(argv[3]);
	for (at = 0; at < THREADS; at++)
		require(pthread_create(&threads[at], NULL, come_and_go, NULL) == 0, "a thread");
	for (at = 0; at < THREADS; at++)
		pthread_join(threads[at], NULL);
	return check_result();
}
