/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring after fork: the child receives so many packets, and then the parent so many.
 * usage: pfring_fork DEVICE CHILD PARENT
 */
#include "check.h"

#include <pfring.h>
#include <sys/wait.h>
#include <unistd.h>

static void
receive(pfring *ring, const char *who, int count)
{
	struct pfring_pkthdr header;
	u_char *packet;

	while (count-- > 0) {
		check_number(pfring_recv(ring, &packet, 0, &header, 1), 1, "a packet comes");
		printf("%s %u\n", who, header.len);
	}
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	pfring *ring;
	pfring_stat stat;
	pid_t child;
	int status;

	if (argc != 4)
		return 2;
	ring = pfring_open(argv[1], 2048, PF_RING_LONG_HEADER);
	check_number(ring != NULL, 1, "the ring is open");
	check_number(pfring_enable_ring(ring), 0, "the ring is enabled");
	child = fork();
	if (child == 0) {
		puts("ready");
		fflush(stdout);
		receive(ring, "child", atoi(argv[2]));
		check_number(pfring_stats(ring, &stat), 0, "the child has counters");
		check_number((long long)stat.recv, atoi(argv[2]), "the child's packets");
		pfring_close(ring);
		_exit(check_result());
	}
	check_number(waitpid(child, &status, 0), child, "the child ends");
	check_number(status, 0, "the child has had its packets");
	receive(ring, "parent", atoi(argv[3]));
	pfring_close(ring);
	return check_result();
}
