/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters (PF-CLUSTER). */
#include "case.h"

#define QUEUES	3
#define PORTS	30

/* A number that no other run's case has at the same time. */
static u_int
cluster_id(void)
{
	return 1 + (u_int)getpid() % 60000;
}

/* Rings of one cluster, each with its queue, on a port of a switch; all but the first are monitors of it. */
static void
join(pfring **rings, int count, cluster_type type)
{
	int at;

	for (at = 0; at < count; at++) {
		rings[at] = ring_open(own("vale$:a"), 0);
		require(pfring_set_cluster_consumer(rings[at], (u_int16_t)cluster_id(),
						    (u_int16_t)at, type, 0) == 0, "a member");
	}
	for (at = 0; at < count; at++)
		require(pfring_enable_ring(rings[at]) == 0, "enabled");
}

/* The queue that the rule has for a packet to that port. */
static int
queue_of(int port)
{
	return (int)((0x0a000001u + 0x0a000002u + 17 + 1000 + (u_int)port) % QUEUES);
}

/* The next packet of a ring must be this one. */
static void
next_is(pfring *ring, int port, const char *text)
{
	struct pfring_pkthdr header;
	int got = port_of(take(ring, &header));

	check(got == port, "%s: %d, and not %d", text, got, port);
}

static void
sums(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	int port;

	join(rings, QUEUES, cluster_per_flow_5_tuple);
	for (port = 1; port <= PORTS; port++)
		put(peer, port);
	for (port = 1; port <= PORTS; port++)
		next_is(rings[queue_of(port)], port, "the member with the sum's queue");
}

static void
members(void)
{
	pfring *one = ring_open(own("vale$:a"), 0), *other = ring_open(own("vale$:a"), 0);
	pfring *third = ring_open(own("vale$:c"), 0);
	u_int16_t id = (u_int16_t)cluster_id();

	check_number(pfring_set_cluster(one, 0, cluster_per_flow), -1, "no number");
	check_number(pfring_set_cluster(one, id, (cluster_type)99), -1, "no type");
	check_number(pfring_set_cluster_consumer(one, id, 0, cluster_per_flow, 0), 0, "a member");
	errno = 0;
	check_number(pfring_set_cluster_consumer(other, id, 0, cluster_per_flow, 0), -1,
		     "its queue is taken");
	check_number(errno, EBUSY, "is told");
	check_number(pfring_set_cluster(other, id, cluster_per_flow), 0, "the next is free");
	check_number(pfring_set_cluster(third, id, cluster_per_flow), -1, "of another device");
	check_number(pfring_remove_from_cluster(one), 0, "it leaves");
	check_number(pfring_set_cluster_consumer(one, id, 0, cluster_per_flow, 1), 0,
		     "and comes back, relaxed");
}

/* A queue that never had a member: its packets are lost, and count nowhere. */
static void
holes(void)
{
	pfring *peer = ring_enabled(own("vale$:b"), 0), *ring = ring_open(own("vale$:a"), 0);
	pfring_stat stats;
	int port;

	require(pfring_set_cluster_consumer(ring, (u_int16_t)cluster_id(), QUEUES - 1,
					    cluster_per_flow, 0) == 0, "a member");
	require(pfring_enable_ring(ring) == 0, "enabled");
	for (port = 1; port <= PORTS; port++)
		put(peer, port);
	for (port = 1; port <= PORTS; port++)
		if (queue_of(port) == QUEUES - 1)
			next_is(ring, port, "its own");
	check(pfring_stats(ring, &stats) == 0 && stats.recv == PORTS / QUEUES && stats.drop == 0,
	      "the others are not counted");
}

/* A member that dies: the next one gets what was its, until somebody takes its place. */
static void
dies(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0), *again;
	struct pfring_pkthdr header;
	int port, status, ends[2], sent = 0, dead;
	char byte;
	pid_t child;

	join(rings, QUEUES - 1, cluster_per_flow);
	require(pipe(ends) == 0, "pipe");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		/* The copies of the parent's rings are left alone. */
		pfring *ring = ring_open(own("vale$:a"), 0);

		require(pfring_set_cluster_consumer(ring, (u_int16_t)getppid() % 60000 + 1, QUEUES - 1,
						    cluster_per_flow, 0) == 0 &&
			pfring_enable_ring(ring) == 0, "the child is a member");
		require(write(ends[1], "x", 1) == 1, "write");
		pause();
	}
	require(read(ends[0], &byte, 1) == 1, "the child is ready");
	for (port = 1; queue_of(port) != QUEUES - 1; port++)
		;
	dead = port;
	for (port = 1; queue_of(port) != 0; port++)
		;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	/* Each comes with one that is the survivor's own: whether it comes is known then. */
	for (;;) {
		require(++sent <= 1000, "its share moves");
		put(peer, dead);
		put(peer, port);
		if (port_of(take(rings[0], &header)) == dead) {
			next_is(rings[0], port, "its own, too");
			break;
		}
	}
	check(1, "its share moves to the next");
	again = ring_open(own("vale$:a"), 0);
	check_number(pfring_set_cluster_consumer(again, (u_int16_t)cluster_id(), QUEUES - 1,
						 cluster_per_flow, 0), 0, "its place is free");
	require(pfring_enable_ring(again) == 0, "enabled");
	put(peer, dead);
	next_is(again, dead, "who takes it has the share");
}

/* Each packet goes to one, and there are no two alike. */
static void
turns(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	struct pollfd fds[QUEUES];
	struct pfring_pkthdr header;
	int at, port, got, seen[PORTS + 1] = { 0 }, members_with_some = 0;
	u_char *packet;

	join(rings, QUEUES, cluster_round_robin);
	for (at = 0; at < QUEUES; at++) {
		fds[at].fd = pfring_get_selectable_fd(rings[at]);
		fds[at].events = POLLIN;
	}
	for (port = 1; port <= PORTS; port++)
		put(peer, port);
	for (got = 0; got < PORTS;) {
		require(poll(fds, QUEUES, -1) > 0, "poll");
		for (at = 0; at < QUEUES; at++)
			while (pfring_recv(rings[at], &packet, 0, &header, 0) == 1) {
				members_with_some |= 1 << at;
				seen[port_of(packet)]++;
				got++;
			}
	}
	for (port = 1; port <= PORTS && seen[port] == 1; port++)
		;
	check_number(port, PORTS + 1, "each packet once");
	check_number(members_with_some, (1 << QUEUES) - 1, "each member has some");
}

static const struct test_case cases[] = {
	{ "PF-CLUSTER-1", "sums", sums },
	{ "PF-CLUSTER-2", "members", members },
	{ "PF-CLUSTER-3", "holes", holes },
	{ "PF-CLUSTER-4", "a member dies", dies },
	{ "PF-CLUSTER-5", "turns", turns },
};

CHAPTER(cases)
