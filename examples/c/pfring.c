/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PF_RING: counts what a ring receives, or the members of a cluster, each a
 * process, for a number of seconds. It prints `ready` when all are open.
 *
 *   cc -O2 -Iinclude examples/c/pfring.c -o pfring -lpfring
 *   ringway run -- ./pfring DEVICE SECONDS short|parsed [MEMBERS [FILTER]]
 */
#define _GNU_SOURCE
#include <pfring.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLUSTER	4711

/* What a member has counted, from its first packet to its last look at the clock. */
struct counted {
	uint64_t packets;
	double first, last;
};

static pfring *ring;
static const char *filter;
static struct counted counted;
static uint64_t ports;
static volatile unsigned char bytes;

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void
ended(int signal)
{
	(void)signal;
	pfring_breakloop(ring);
	/* A break outside of the loop is forgotten. */
	alarm(1);
}

static void
on_packet(const struct pfring_pkthdr *header, const u_char *packet, const u_char *parsed)
{
	unsigned char sum = 0;
	uint32_t i;

	for (i = 0; i < header->caplen; i++)
		sum ^= packet[i];
	bytes ^= sum;
	if (parsed)
		ports += header->extended_hdr.parsed_pkt.l4_dst_port;
	if (counted.packets++ % 4096 == 0) {
		counted.last = now();
		if (counted.packets == 1)
			counted.first = counted.last;
	}
}

/* Opens the ring: of a cluster, if it has several members. */
static void
open_ring(const char *device, int parsed, int members)
{
	ring = pfring_open(device, 1536, parsed ? PF_RING_LONG_HEADER : 0);
	if (ring == NULL)
		fail(device);
	pfring_set_application_name(ring, (char *)"pfring");
	if (filter && pfring_set_bpf_filter(ring, filter) != 0)
		fail(filter);
	if (members > 1 && pfring_set_cluster(ring, CLUSTER, cluster_per_flow_5_tuple) != 0)
		fail("pfring_set_cluster");
	if (pfring_set_direction(ring, rx_only_direction) != 0 || pfring_enable_ring(ring) != 0)
		fail("pfring_enable_ring");
}

/* One member, which says when it is ready, and then what it has counted. */
static void
member(const char *device, unsigned seconds, int parsed, int members, int out)
{
	struct sigaction action;

	open_ring(device, parsed, members);
	if (write(out, &counted, sizeof(counted)) != sizeof(counted))
		fail("write");
	memset(&action, 0, sizeof(action));
	action.sa_handler = ended;
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
	pfring_loop(ring, on_packet, parsed ? (const u_char *)"" : NULL, 1);
	signal(SIGALRM, SIG_IGN);
	if (write(out, &counted, sizeof(counted)) != sizeof(counted))
		fail("write");
	pfring_close(ring);
	exit(ports == 1);
}

int
main(int argc, char **argv)
{
	int members = argc > 4 ? atoi(argv[4]) : 1, pipes[64][2], at;
	struct counted all = { 0, 0, 0 }, one;

	if (argc < 4 || members < 1 || members > 64) {
		fprintf(stderr, "usage: %s DEVICE SECONDS short|parsed [MEMBERS [FILTER]]\n", argv[0]);
		return 2;
	}
	filter = argc > 5 ? argv[5] : NULL;
	for (at = 0; at < members; at++) {
		if (pipe(pipes[at]) != 0)
			fail("pipe");
		if (fork() == 0)
			member(argv[1], (unsigned)atoi(argv[2]), strcmp(argv[3], "parsed") == 0, members,
			       pipes[at][1]);
		close(pipes[at][1]);
		/* One after the other: the first has the port, the others its monitors. */
		if (read(pipes[at][0], &one, sizeof(one)) != sizeof(one))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (at = 0; at < members; at++) {
		if (read(pipes[at][0], &one, sizeof(one)) != sizeof(one))
			return 1;
		all.packets += one.packets;
		if (one.packets && (all.first == 0 || one.first < all.first))
			all.first = one.first;
		if (one.packets && one.last > all.last)
			all.last = one.last;
	}
	while (wait(NULL) > 0)
		;
	printf("%s %s rx %llu rx_mpps %.2f\n", argv[1], argv[3], (unsigned long long)all.packets,
	       all.last > all.first ? (double)all.packets / (all.last - all.first) * 1e-6 : 0.0);
	return 0;
}
