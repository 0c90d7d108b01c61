/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interface on which somebody sends frames all the time: its rx ring is
 * stamped at each sync (S-SYNC-10), its tx ring never, and its frames have
 * timestamps of software.
 *
 * usage: timestamps INTERFACE
 */
#include "port.h"

#include <sys/time.h>
#include <time.h>

#include <net/ringway.h>

static int
is_between(struct timeval at, struct timeval from, struct timeval to)
{
	return !timercmp(&at, &from, <) && !timercmp(&at, &to, >);
}

static uint64_t
nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int
main(int argc, char **argv)
{
	uint64_t opened = nanoseconds(), time;
	struct timeval before, after;
	struct netmap_ring *rx, *tx;
	struct port port;
	int how;

	require(argc == 2, "usage: timestamps INTERFACE");
	port = port_open(argv[1]);
	rx = port_rx(&port);
	tx = port_tx(&port);
	for (how = 0; how < 4; how++) {
		memset(&rx->ts, 0, sizeof(rx->ts));
		rx->flags = how & 1 ? NR_TIMESTAMP : 0;
		gettimeofday(&before, NULL);
		if (how < 2)
			port_rxsync(&port);
		else
			wait_events(port.fd, POLLIN, 0);
		gettimeofday(&after, NULL);
		check(is_between(rx->ts, before, after), "%s stamps %s",
		      how < 2 ? "NIOCRXSYNC" : "poll",
		      how & 1 ? "with NR_TIMESTAMP" : "without");
	}
	tx->flags = NR_TIMESTAMP;
	port_txsync(&port);
	check(tx->ts.tv_sec == 0 && tx->ts.tv_usec == 0,
	      "a tx ring is never stamped");
	fputs("ready\n", stderr);

	require(port_peek(&port) != NULL, "a frame arrives");
	time = ringway_timestamp(rx, rx->head);
	check(time >= opened && time <= nanoseconds(),
	      "it has a timestamp (%llu)", (unsigned long long)time);
	puts("done");
	return check_result();
}
