/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters (PF-CLUSTER). */
#include "case.h"

#include <pthread.h>

#define QUEUES	3
#define PORTS	30
#define MANY	1000000

/* A number that no other run's case has at the same time. */
static u_int
cluster_id(void)
{
	return 1 + (u_int)getpid() % 60000;
}

/* Rings of one cluster, each with its queue, on a port of a switch. */
static void
join(pfring **rings, int count, cluster_type type, u_int options)
{
	int at;

	for (at = 0; at < count; at++) {
		rings[at] = ring_open(own("vale$:a"), 0);
		require(pfring_set_cluster_consumer(rings[at], (u_int16_t)cluster_id(),
						    (u_int16_t)at, type, options) == 0, "a member");
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

	join(rings, QUEUES, cluster_per_flow_5_tuple, 0);
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

	join(rings, QUEUES - 1, cluster_per_flow, 0);
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

/* One after the other, whatever they are. */
static void
turns(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	int port;

	join(rings, QUEUES, cluster_round_robin, 0);
	for (port = 1; port <= PORTS; port++)
		put(peer, port);
	for (port = 1; port <= PORTS; port++)
		next_is(rings[(port - 1) % QUEUES], port, "the member whose turn it is");
}

/* A port whose packets are the first queue's, and one whose packets are the second's. */
static void
ports_of(int ports[2])
{
	int queue;

	for (queue = 0; queue < 2; queue++)
		for (ports[queue] = 1; queue_of(ports[queue]) != queue; ports[queue]++)
			;
}

/* What a member has no room for is its loss, and the others go on. */
static void
losses(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	pfring_stat stats = { 0, 0, 0 }, others;
	int ports[2], sent;

	join(rings, QUEUES, cluster_per_flow, 0);
	ports_of(ports);
	for (sent = 0; stats.drop == 0; sent++) {
		require(sent < MANY, "it is full in the end");
		put(peer, ports[0]);
		put(peer, ports[1]);
		next_is(rings[1], ports[1], "who reads gets its own");
		require(pfring_stats(rings[0], &stats) == 0, "counters");
	}
	check_number((int)stats.recv, 0, "it has read none");
	check(pfring_stats(rings[1], &others) == 0 && others.drop == 0,
	      "who reads has lost nothing");
	next_is(rings[0], ports[0], "the first is still there");
}

/* What a member has no room for is another's. */
static void
relaxed(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	struct pfring_pkthdr header;
	pfring_stat stats;
	u_char *packet;
	int ports[2], sent;

	join(rings, QUEUES, cluster_per_flow, CLUSTER_OPTION_RELAXED_DISTRIBUTION);
	ports_of(ports);
	for (sent = 0; pfring_recv(rings[1], &packet, 0, &header, 0) == 0; sent++) {
		require(sent < MANY, "it is full in the end");
		put(peer, ports[0]);
	}
	check_number(port_of(packet), ports[0], "the next has what was the first one's");
	check(pfring_stats(rings[0], &stats) == 0 && stats.drop == 0, "it is no loss");
}

/* The member that has the port leaves: the others go on, and it has all packets of its own. */
static void
leaves(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	struct pfring_pkthdr header;
	u_char *packet;
	int ports[2], sent;

	join(rings, 2, cluster_round_robin, 0);
	ports_of(ports);
	check_number(pfring_remove_from_cluster(rings[0]), 0, "it leaves");
	/* The other finds the port at once, but not in no time. */
	for (sent = 0; pfring_recv(rings[1], &packet, 0, &header, 0) == 0; sent++) {
		require(sent < MANY, "the other goes on");
		put(peer, ports[1]);
		next_is(rings[0], ports[1], "it has all packets");
	}
	check_number(port_of(packet), ports[1], "the other has all, too");
}

/* Members see whole packets, also where the program gets their first bytes alone. */
static void
cut(void)
{
	pfring *rings[QUEUES], *peer;
	struct pfring_pkthdr header;
	u_char *packet;
	int at, port;

	wire_new();
	peer = ring_enabled(own("f$"), 0);
	for (at = 0; at < QUEUES; at++) {
		rings[at] = pfring_open(own("n$"), 20, 0);
		require(rings[at] != NULL, "a ring for 20 bytes");
		require(pfring_set_cluster_consumer(rings[at], (u_int16_t)cluster_id(), (u_int16_t)at,
						    cluster_per_flow_5_tuple, 0) == 0, "a member");
		require(pfring_enable_ring(rings[at]) == 0, "enabled");
	}
	for (port = 1; port <= PORTS; port++)
		put(peer, port);
	for (port = 1; port <= PORTS; port++) {
		packet = take(rings[queue_of(port)], &header);
		check(packet != NULL && header.caplen == 20, "the member with the sum's queue");
	}
}

static int news[2];

/* Receives until the last, and tells of each. */
static void *
receives(void *ring)
{
	struct pfring_pkthdr header;
	u_char port;

	do {
		port = (u_char)port_of(take(ring, &header));
		require(write(news[1], &port, 1) == 1, "write");
	} while (port != (u_char)LAST);
	return NULL;
}

static void
told(int port, const char *text)
{
	u_char byte;

	require(read(news[0], &byte, 1) == 1, "read");
	check_number(byte, (u_char)port, text);
}

/* A member leaves while another thread receives, which goes on. */
static void
leaves_meanwhile(void)
{
	pfring *ring, *other, *peer = ring_enabled(own("vale$:b"), 0);
	u_int16_t id = (u_int16_t)cluster_id();
	pthread_t thread;

	require(pipe(news) == 0, "pipe");
	join(&ring, 1, cluster_per_flow, 0);
	require(pthread_create(&thread, NULL, receives, ring) == 0, "a thread");
	put(peer, 1);
	told(1, "it receives");
	/* Until the thread is in its next receive, the ring joins again. */
	while (pfring_set_cluster(ring, id, cluster_per_flow) == 0)
		sched_yield();
	check_number(errno, EBUSY, "it does not change its cluster while it receives");
	other = ring_open(own("vale$:a"), 0);
	check_number(pfring_set_cluster_consumer(other, id, 0, cluster_per_flow, 0), -1,
		     "and has its queue");
	pfring_close(other);
	check_number(pfring_remove_from_cluster(ring), 0, "it leaves");
	put(peer, 2);
	told(2, "it has the port");
	put(peer, LAST);
	told(LAST, "for good");
	require(pthread_join(thread, NULL) == 0, "the end");
	check_number(pfring_set_cluster(ring, (u_int16_t)(id + 1), cluster_per_flow), 0,
		     "it is in another cluster");
	put(peer, 3);
	next_is(ring, 3, "and receives");
}

/* A member on an interface leaves, and has all of its packets. */
static void
leaves_interface(void)
{
	struct pair all, other;
	u_int16_t id = (u_int16_t)cluster_id();
	int port;

	wire_new();
	all.peer = other.peer = ring_enabled(own("f$"), 0);
	all.ring = ring_open(own("n$"), 0);
	other.ring = ring_open(own("n$"), 0);
	require(pfring_set_cluster(all.ring, id, cluster_round_robin) == 0 &&
		pfring_set_cluster(other.ring, id, cluster_round_robin) == 0, "two members");
	require(pfring_enable_ring(all.ring) == 0 && pfring_enable_ring(other.ring) == 0, "enabled");
	for (port = 1; port <= 4; port++)
		put(all.peer, port);
	put(all.peer, LAST);
	put(all.peer, LAST);
	check(strlen(taken(all.ring)) == 4 && strlen(taken(other.ring)) == 4, "each has half");
	check_number(pfring_remove_from_cluster(other.ring), 0, "one leaves");
	expect(&all, 5, 8, "5 6 7 8 ", "the other is alone");
	check(strcmp(taken(other.ring), "5 6 7 8 ") == 0, "it has all, too");
	check_number(pfring_set_cluster(other.ring, (u_int16_t)(id + 1), cluster_round_robin), 0,
		     "it is in another cluster");
	expect(&all, 1, 3, "1 2 3 ", "the other is alone");
	check(strcmp(taken(other.ring), "1 2 3 ") == 0, "and so is it");
}

/* What members send goes out by the device, whichever has it. */
static void
sends(void)
{
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	int at;

	join(rings, QUEUES, cluster_per_flow, 0);
	for (at = 0; at < QUEUES; at++) {
		put(rings[at], at + 1);
		next_is(peer, at + 1, "what a member sends");
	}
}

/* What is no IP by its tag, and the middle of an IPv6 packet with these bytes for ports. */
static void
unlike(void)
{
	static const struct {
		u_char type[2], ports[4];
		int queue;
	} cases[] = {
		{ { 0x88, 0xa8 }, { 0 }, 0 },
		{ { 0x88, 0xa8 }, { 0, 0, 0, 1 }, 0 },
		/* UDP is 17. */
		{ { 0x86, 0xdd }, { 0 }, 17 % QUEUES },
		{ { 0x86, 0xdd }, { 0, 0, 0, 1 }, 18 % QUEUES },
		{ { 0x86, 0xdd }, { 0, 1, 0, 1 }, 19 % QUEUES },
	};
	pfring *rings[QUEUES], *peer = ring_enabled(own("vale$:b"), 0);
	struct pfring_pkthdr header;
	unsigned at;

	join(rings, QUEUES, cluster_per_flow_5_tuple, 0);
	for (at = 0; at < sizeof(cases) / sizeof(cases[0]); at++) {
		u_char frame[80] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7 }, *got;

		memcpy(frame + 12, cases[at].type, 2);
		frame[14] = 0x60;
		frame[19] = 26;
		frame[20] = NEXTHDR_FRAGMENT;
		frame[54] = 17;
		frame[56] = 3;
		frame[57] = 1;
		memcpy(frame + 62, cases[at].ports, 4);
		frame[79] = (u_char)at;
		check_number(pfring_send(peer, (char *)frame, sizeof(frame), 0), sizeof(frame), "sent");
		got = take(rings[cases[at].queue], &header);
		check(got != NULL && got[79] == at, "%u has the queue %d", at, cases[at].queue);
	}
}

static const struct test_case cases[] = {
	{ "PF-CLUSTER-1", "sums", sums },
	{ "PF-CLUSTER-1", "of packets that are cut", cut },
	{ "PF-CLUSTER-2", "members", members },
	{ "PF-CLUSTER-3", "holes", holes },
	{ "PF-CLUSTER-4", "a member dies", dies },
	{ "PF-CLUSTER-5", "turns", turns },
	{ "PF-CLUSTER-6", "a member that does not read", losses },
	{ "PF-CLUSTER-7", "relaxed", relaxed },
	{ "PF-CLUSTER-8", "the first leaves", leaves },
	{ "PF-CLUSTER-8", "while another thread receives", leaves_meanwhile },
	{ "PF-CLUSTER-8", "on an interface", leaves_interface },
	{ "PF-CLUSTER-9", "members send", sends },
	{ "PF-CLUSTER-10", "unlike others", unlike },
};

CHAPTER(cases)
