/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch has taken and delivered everything when a sync returns, and there
 * is always room to send (S-VALE-5, S-POLL-7).
 *
 * usage: vale_sync [SWITCH [14|15 [DAEMON]]]
 *
 * DAEMON is the process id of a daemon of ours alone, which is stopped and
 * killed: nobody waits for it for ever.
 */
#include "port.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#define ROUNDS	64

static const char *vale = "valey";

static void
put_many(const struct port *port, uint32_t count, uint32_t first)
{
	struct netmap_ring *ring = port_tx(port);
	struct netmap_slot *slot;
	uint32_t i;

	for (i = 0; i < count; i++) {
		slot = &ring->slot[ring->head];
		slot->len = FRAME_SIZE;
		slot->flags = 0;
		frame_fill(NETMAP_BUF(ring, slot->buf_idx), FRAME_SIZE,
			   broadcast, mac_of(1), first + i);
		ring_advance(ring, 1);
	}
}

/* What is there at once; returns whether it is the frames expected. */
static int
take_many(const struct port *port, uint32_t count, uint32_t first)
{
	struct netmap_ring *ring = port_rx(port);
	uint32_t i, space;
	int good = 1;

	port_rxsync(port);
	space = nm_ring_space(ring);
	for (i = 0; i < space; i++) {
		const char *frame = NETMAP_BUF(ring,
			ring->slot[ring->head].buf_idx);

		good &= frame_sequence(frame) == first + i;
		ring_advance(ring, 1);
	}
	port_rxsync(port);
	return good && space == count;
}

/* Whether every thread of a process stands still, as SIGSTOP has it do soon. */
static int
stands_still(pid_t process)
{
	char path[64];
	struct dirent *task;
	DIR *tasks;
	int still = 1;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	tasks = opendir(path);
	require(tasks != NULL, "its threads");
	while (still && (task = readdir(tasks)) != NULL) {
		char name[400], state = 0;
		FILE *stat;

		if (task->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s/stat", path, task->d_name);
		stat = fopen(name, "r");
		if (stat == NULL)
			continue;
		still = fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 &&
			state == 'T';
		fclose(stat);
	}
	closedir(tasks);
	return still;
}

static void
stop(pid_t process)
{
	require(kill(process, SIGSTOP) == 0, "SIGSTOP");
	while (!stands_still(process))
		sched_yield();
}

static void
test_stop(const struct port *port, pid_t daemon)
{
	uint32_t all = port_tx(port)->num_slots - 1;

	stop(daemon);
	put_many(port, all, 0);
	check_call(ioctl(port->fd, NIOCTXSYNC, NULL), 0,
		   "S-SYNC-1 a sync returns although the daemon stands still");
	check_number(nm_ring_space(port_tx(port)), 0, "nothing is taken");
	check_number(wait_events(port->fd, POLLOUT, 0), 0, "there is no room");
	require(kill(daemon, SIGCONT) == 0, "SIGCONT");
	port_txsync(port);
	check_number(nm_ring_space(port_tx(port)), all, "all is taken");

	stop(daemon);
	put_many(port, 1, 0);
	require(kill(daemon, SIGKILL) == 0, "SIGKILL");
	check_call(ioctl(port->fd, NIOCTXSYNC, NULL), EIO,
		   "S-LIFE-9 a sync without the daemon");
	check_number(wait_events(port->fd, POLLOUT, 0), POLLERR,
		     "S-LIFE-9 a poll without the daemon");
}

int
main(int argc, char **argv)
{
	uint32_t all, i, count, free = 0, delivered = 0, ready = 0, first = 0;
	struct port from, to;

	if (argc > 1)
		vale = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	from = port_open(name_of(vale, "from"));
	to = port_open(name_of(vale, "to"));
	all = port_tx(&from)->num_slots - 1;

	for (i = 0; i < ROUNDS; i++, first += count) {
		count = i % 2 ? all : i + 1;
		put_many(&from, count, first);
		port_txsync(&from);
		free += nm_ring_space(port_tx(&from)) == all;
		delivered += take_many(&to, count, first);
	}
	check_number(free, ROUNDS, "S-VALE-5 NIOCTXSYNC frees all slots");
	check_number(delivered, ROUNDS, "S-VALE-5 what was sent is delivered");

	for (i = 0; i < ROUNDS; i++) {
		put_many(&from, all, first);
		ready += wait_events(from.fd, POLLOUT, 0) == POLLOUT &&
			nm_ring_space(port_tx(&from)) > 0;
		port_txsync(&from);
		take_many(&to, all, first);
	}
	check_number(ready, ROUNDS, "S-POLL-7 there is room without waiting");
	if (argc > 3)
		test_stop(&from, atoi(argv[3]));
	port_close(&from);
	port_close(&to);
	return check_result();
}
