/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIFE: what processes and threads do with a descriptor that they share, at the
 * same time.
 */
#include "case.h"
#include "netns.h"
#include "request.h"

#include <pthread.h>
#include <sys/epoll.h>

enum { RINGS = 4, FRAMES = 4000 };

/* A pipe of several rings, both ends with all of them. */
static void
wide_pipe(struct port end[2])
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_rings = reg.nr_rx_rings = RINGS;
	reg.nr_tx_slots = reg.nr_rx_slots = 64;
	end[0] = port_open_as(own("p${1"), reg);
	end[1] = port_open_as(own("p$}1"), reg);
}

/* One thread's part of a port: a ring, of which it sends or receives all. */
struct part {
	const struct port *port;
	uint32_t index;
	int sends, syncs;	/* syncs: by ioctl, not by poll */
	pthread_t thread;
	uint64_t done, wrong;
};

static void
part_syncs(const struct part *part)
{
	if (part->syncs)
		require(ioctl(part->port->fd,
			      part->sends ? NIOCTXSYNC : NIOCRXSYNC, NULL) == 0,
			"sync");
	else
		require((wait_events(part->port->fd,
				     part->sends ? POLLOUT : POLLIN,
				     PATIENCE_MS) & POLLERR) == 0, "poll");
}

/* Numbers in order, one in each slot, through one ring. */
static void *
part_runs(void *argument)
{
	struct part *part = (struct part *)argument;
	struct netmap_if *nifp = part->port->nifp;
	struct netmap_ring *ring = part->sends ?
		NETMAP_TXRING(nifp, part->index) :
		NETMAP_RXRING(nifp, part->index);
	time_t end = time(NULL) + 60;

	while (part->done < FRAMES && time(NULL) < end) {
		while (part->done < FRAMES && !nm_ring_empty(ring)) {
			struct netmap_slot *slot = &ring->slot[ring->head];
			char *buffer = NETMAP_BUF(ring, slot->buf_idx);

			if (part->sends) {
				slot->len = 60;
				memcpy(buffer, &part->done, sizeof(part->done));
			} else {
				part->wrong += memcmp(buffer, &part->done,
						      sizeof(part->done)) != 0;
			}
			part->done++;
			ring_advance(ring, 1);
		}
		part_syncs(part);
	}
	return NULL;
}

static void
parts_start(struct part *parts, const struct port *port, int sends, int syncs)
{
	uint32_t i;

	for (i = 0; i < RINGS; i++) {
		parts[i] = (struct part){ port, i, sends, syncs, 0, 0, 0 };
		require(pthread_create(&parts[i].thread, NULL, part_runs,
				       &parts[i]) == 0, "a thread");
	}
}

static void
parts_end(struct part *parts, const char *what)
{
	uint32_t i;

	for (i = 0; i < RINGS; i++) {
		pthread_join(parts[i].thread, NULL);
		check(parts[i].done == FRAMES && parts[i].wrong == 0,
		      "ring %u %s %llu of %d, %llu wrong", i, what,
		      (unsigned long long)parts[i].done, FRAMES,
		      (unsigned long long)parts[i].wrong);
	}
}

/* A sync is for all rings of a direction, whoever is at work on one of them. */
static void
threads_with_a_ring_each(void)
{
	struct part senders[RINGS], receivers[RINGS];
	struct port end[2];
	int syncs;

	once();
	wide_pipe(end);
	for (syncs = 0; syncs < 2; syncs++) {
		/* A poll for room does not sync where another ring has some. */
		parts_start(senders, &end[0], 1, 1);
		parts_start(receivers, &end[1], 0, syncs);
		parts_end(senders, "has sent");
		parts_end(receivers, "has received");
	}
}

static void
processes_with_a_ring_each(void)
{
	struct part senders[RINGS], receivers[RINGS];
	struct port end[2];
	pid_t child;

	once();
	wide_pipe(end);
	child = forked();
	if (child == 0) {
		parts_start(senders, &end[0], 1, 1);
		parts_end(senders, "has sent");
		_exit(check_result());
	}
	/* The parent syncs them, too. */
	parts_start(receivers, &end[1], 0, 0);
	while (waitpid(child, NULL, WNOHANG) == 0)
		port_txsync(&end[0]);
	parts_end(receivers, "has received");
}

/* Each with a descriptor of its own, bound to one ring of the port. */
static void
descriptors_with_a_ring_each(void)
{
	struct nmreq_register reg = register_all();
	struct part part = { 0 };
	struct port end[2], mine;
	pid_t child[RINGS];
	uint32_t i;

	once();
	wide_pipe(end);
	for (i = 0; i < RINGS; i++) {
		child[i] = forked();
		if (child[i] != 0)
			continue;
		reg.nr_mode = NR_REG_ONE_NIC;
		reg.nr_ringid = (uint16_t)i;
		mine = port_open_as(own("p${1"), reg);
		part = (struct part){ &mine, i, 1, (int)i % 2, 0, 0, 0 };
		part_runs(&part);
		_exit(part.done != FRAMES);
	}
	port_close(&end[0]);
	{
		struct part receivers[RINGS];

		parts_start(receivers, &end[1], 0, 0);
		for (i = 0; i < RINGS; i++)
			check_child(child[i], "a sender");
		parts_end(receivers, "has received");
	}
}

/* Parent and child take turns, each with all that the port is there for. */
static void
an_interface_in_two_processes(void)
{
	enum { TURNS = 400, BURST = 16 };
	struct cable cable;
	struct port port;
	uint32_t turn, i;
	int word[2][2];
	pid_t child;
	char byte;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	port = port_open(cable.near);
	require(pipe(word[0]) == 0 && pipe(word[1]) == 0, "pipe");
	child = forked();
	for (turn = 0; turn < TURNS; turn++) {
		int mine = turn % 2 == (child == 0);

		if (!mine)
			continue;
		if (turn > 0)
			require(read(word[turn % 2][0], &byte, 1) == 1,
				"a turn");
		for (i = 0; i < BURST; i++) {
			uint32_t number = turn * BURST + i;

			port_put(&port, broadcast, mac_of(1), number);
			cable_send(&cable, broadcast, mac_of(2), number);
		}
		port_txsync(&port);
		for (i = 0; i < BURST; i++) {
			uint32_t number = turn * BURST + i;

			require(cable_take(&cable) == number &&
				port_take(&port) == number,
				"frame %u, both ways", number);
		}
		/* What was taken is given back by whoever is next. */
		require(write(word[(turn + 1) % 2][1], "t", 1) == 1, "write");
	}
	if (child == 0)
		_exit(0);
	check_child(child, "both have had their turns");
}

/*
 * A child of vfork has descriptors of its own, but no memory: what it does to
 * the former is nothing to its parent.
 */
static void
a_child_in_the_same_memory(void)
{
	struct port port = port_open(own("vale$:a")), peer;
	int set = epoll_create1(0), null = open("/dev/null", O_RDWR), status;
	struct epoll_event event = { EPOLLIN, { 0 } };
	volatile int fd;
	pid_t child;

	peer = port_open(own("vale$:b"));
	require(set >= 0 && null >= 0 &&
		epoll_ctl(set, EPOLL_CTL_ADD, port.fd, &event) == 0,
		"an epoll set");
	child = vfork();
	if (child == 0) {
		dup2(port.fd, null);
		for (fd = 3; fd < 64; fd++)
			close(fd);
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	require(child > 0 && waitpid(child, &status, 0) == child, "vfork");
	check_number(status, 0, "the child runs another program");
	check(ioctl(null, NIOCTXSYNC, NULL) == -1 && errno == ENOTTY,
	      "what it has copied a descriptor to is what it was");
	port_send(&peer, broadcast, mac_of(1), 1);
	check_number(epoll_wait(set, &event, 1, PATIENCE_MS), 1,
		     "what it has closed is in the set");
	check_number(port_take(&port), 1, "and receives");
	port_close(&port);
	check(!port_exists(own("vale$:a")), "its close is the last");
}

static const struct test_case cases[] = {
	{ "S-LIFE-6", "threads with a ring each", threads_with_a_ring_each },
	{ "S-LIFE-6", "processes with a ring each",
	  processes_with_a_ring_each },
	{ "S-LIFE-6", "descriptors with a ring each",
	  descriptors_with_a_ring_each },
	{ "S-LIFE-6", "an interface in two processes",
	  an_interface_in_two_processes },
	{ "S-LIFE-6", "a child in the same memory",
	  a_child_in_the_same_memory },
};

CHAPTER(cases)
