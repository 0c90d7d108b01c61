/* SPDX-License-Identifier: BSD-2-Clause */
/* POLL: sets of descriptors, of epoll and of every other call (S-POLL-1). */
#include "pair.h"
#include "waits.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

/* ---- epoll ---- */

/* An epoll set that lives on. */
static void
an_epoll_set(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 }, got[4];
	int epoll = epoll_create1(0);

	event.events = EPOLLIN;
	event.data.u64 = 0x1111111122222222;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event), 0,
		   "EPOLL_CTL_ADD");
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event),
		   EEXIST, "EPOLL_CTL_ADD again");
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.from.fd, &event),
		   ENOENT, "EPOLL_CTL_MOD of another");
	event.data.u64 = 2;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.from.fd, &event), 0,
		   "EPOLL_CTL_ADD of another");
	check_number(epoll_wait(epoll, got, 4, 0), 0, "nothing");
	port_send(&pair.from, broadcast, mac_of(1), 42);
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 1, "one");
	check(got[0].data.u64 == 0x1111111122222222 &&
	      got[0].events == EPOLLIN, "with its data");
	event.events = EPOLLOUT;
	event.data.u64 = 99;
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event), 0,
		   "EPOLL_CTL_MOD");
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 99 && got[0].events == EPOLLOUT,
	      "asks for something else");
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.from.fd, &event), 0,
		   "EPOLL_CTL_MOD of the other");
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 2, "both");
	check_number(epoll_wait(epoll, got, 1, PATIENCE_MS), 1,
		     "no more than there is room for");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.to.fd, NULL), 0,
		   "EPOLL_CTL_DEL");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.to.fd, NULL), ENOENT,
		   "EPOLL_CTL_DEL again");
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 99, "the other one is left");
	port_close(&pair.from);
	check_number(epoll_wait(epoll, got, 4, 0), 0,
		     "a closed descriptor is out by itself");
	check_call(epoll_wait(epoll, got, 0, 0), EINVAL, "room for none");
}

/* A member stays until the last number of its descriptor is closed. */
static void
an_epoll_member_by_other_numbers(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 }, got[4];
	int epoll = epoll_create1(0), inner = epoll_create1(0), outer;
	int first = pair.from.fd, second = dup(first), third, copy;

	event.events = EPOLLOUT;
	event.data.u64 = 1;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, first, &event), 0, "added");
	close(first);
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 1, "its first number is closed");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, first, NULL), EBADF,
		   "which is none any more");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, second, NULL), ENOENT,
		   "and the other is none of the set");
	event.data.u64 = 2;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, second, &event), 0,
		   "the other is added");
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 2,
		     "a member by each");
	check_number(dup2(pair.to.fd, first), first, "another port's number");
	event.data.u64 = 3;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, first, &event), 0,
		   "is another member");
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 3, "of all");
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 3, "again");
	third = dup(second);
	close(second);
	check_number(epoll_wait(epoll, got, 4, PATIENCE_MS), 3, "a third number");
	munmap(pair.from.mem, pair.from.reg.nr_memsize);
	close(third);
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 3, "the last number");

	outer = epoll_create1(0);
	copy = dup(inner);
	event.events = EPOLLIN;
	check_call(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0, "a set");
	event.events = EPOLLOUT;
	check_call(epoll_ctl(copy, EPOLL_CTL_ADD, pair.to.fd, &event), 0,
		   "with a port");
	close(inner);
	check_number(epoll_wait(outer, got, 4, PATIENCE_MS), 1,
		     "by another number");
}

static void
an_epoll_event_once(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int epoll = epoll_create1(0);

	event.events = EPOLLIN | EPOLLONESHOT;
	require(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "EPOLLONESHOT: once");
	check_number(epoll_wait(epoll, &event, 1, 0), 0, "and no more");
	event.events = EPOLLIN | EPOLLONESHOT;
	require(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_MOD");
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "until it is armed again");
}

static void
epoll_waits_for_nanoseconds(void)
{
	struct pair pair = pipe_pair();
	const struct wait_call *call = &newest_wait_call;

	check_events(wait_one(call, pair.to.fd, POLLIN, 0), 0, call->name,
		     "nothing to take");
	check_events(wait_one(call, pair.to.fd, POLLOUT, PATIENCE_MS), POLLOUT,
		     call->name, "slots to fill");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_events(wait_one(call, pair.to.fd, POLLIN, PATIENCE_MS), POLLIN,
		     call->name, "a packet");
}

/* The kernel's own rules for EPOLLEXCLUSIVE: few events go with it, and nothing changes it. */
static void
an_exclusive_member_of_a_set(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int epoll = epoll_create1(0);

	event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event), EINVAL,
		   "EPOLLEXCLUSIVE with EPOLLONESHOT");
	event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLET;
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event), EINVAL,
		   "EPOLL_CTL_MOD with it");
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event), 0,
		   "EPOLL_CTL_ADD with it");
	event.events = EPOLLIN;
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.to.fd, &event), EINVAL,
		   "EPOLL_CTL_MOD of such a member");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "which has events");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.to.fd, NULL), 0,
		   "EPOLL_CTL_DEL of it");
}

/* The kernel's own rule for EPOLLET: told when it comes, not while it lasts. */
static void
an_epoll_event_by_its_edge(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int epoll = epoll_create1(0);

	event.events = EPOLLIN | EPOLLET;
	require(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1, "EPOLLET");
	check_number(epoll_wait(epoll, &event, 1, 0), 0, "not told again");
	port_send(&pair.from, broadcast, mac_of(1), 2);
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "another packet is told");
}

static void
an_epoll_set_within_a_set(void)
{
	struct pair pair = pipe_pair();
	struct epoll_event event = { 0 };
	int inner = epoll_create1(0);
	size_t c;

	event.events = EPOLLIN;
	require(epoll_ctl(inner, EPOLL_CTL_ADD, pair.to.fd, &event) == 0,
		"EPOLL_CTL_ADD");
	for (c = 0; c < WAIT_CALLS; c++) {
		check_events(wait_one(&wait_calls[c], inner, POLLIN, 0), 0,
			     wait_calls[c].name, "nothing in the inner set");
		port_send(&pair.from, broadcast, mac_of(1), 1);
		if (wait_one(&wait_calls[c], inner, POLLIN, PATIENCE_MS) !=
		    POLLIN) {
			check(0, "%s: a packet", wait_calls[c].name);
			return;
		}
		check_number(port_take(&pair.to), 1, "the packet");
		port_rxsync(&pair.to);
		port_txsync(&pair.from);
	}
}

/* ---- every call ---- */

static void
sets_of_all_kinds(void)
{
	enum { VALE, PIPE, MASTER, UNBOUND, UNIX_PIPE, SOCKET, EVENT, KINDS };
	struct pair vale = switch_pair(), pipes = pipe_pair();
	int unix_pipe[2], sockets[2], event = eventfd(0, 0);
	size_t c;
	int i;

	require(pipe(unix_pipe) == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 &&
		event >= 0, "ordinary descriptors");
	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct wanted set[KINDS] = {
			{ vale.to.fd, POLLIN, 0 }, { pipes.to.fd, POLLIN, 0 },
			{ pipes.from.fd, POLLIN | POLLOUT, 0 },
			{ device_open(), POLLIN, 0 },
			{ unix_pipe[0], POLLIN, 0 },
			{ sockets[0], POLLIN | POLLOUT, 0 },
			{ event, POLLIN, 0 },
		};

		check_number(call->wait(set, KINDS, PATIENCE_MS, NULL), 3,
			     "an unbound one, and two with room");
		check_events(set[UNBOUND].got, call->has_error ? POLLERR :
			     POLLIN, call->name, "the unbound one");
		check_events(set[MASTER].got, POLLOUT, call->name, "a port");
		check_events(set[SOCKET].got, POLLOUT, call->name, "a socket");
		close(set[UNBOUND].fd);

		/* One at a time, all others silent. */
		set[MASTER].events = set[SOCKET].events = POLLIN;
		set[UNBOUND].fd = vale.from.fd;
		check_number(call->wait(set, KINDS, 0, NULL), 0, "silence");
		for (i = 0; i < KINDS; i++) {
			uint64_t number = 1;

			if (i == MASTER || i == UNBOUND)
				continue;
			if (i == VALE)
				port_send(&vale.from, broadcast, mac_of(1), 1);
			else if (i == PIPE)
				port_send(&pipes.from, broadcast, mac_of(1), 1);
			else
				require(write(i == UNIX_PIPE ? unix_pipe[1] :
					      i == SOCKET ? sockets[1] : event,
					      &number, sizeof(number)) ==
					sizeof(number), "write");
			check_number(call->wait(set, KINDS, PATIENCE_MS, NULL),
				     1, line("%s: one", call->name));
			check_events(set[i].got, POLLIN, call->name,
				     line("number %d", i));
			if (i == VALE || i == PIPE)
				port_take(i == VALE ? &vale.to : &pipes.to);
			else
				require(read(set[i].fd, &number,
					     sizeof(number)) ==
					sizeof(number), "read");
		}
		port_rxsync(&pipes.to);
		port_txsync(&pipes.from);
	}
}

static void
odd_members_of_a_poll_set(void)
{
	struct pair pair = pipe_pair();
	int closed = dup(pair.to.fd);
	struct pollfd set[5] = {
		{ -1, POLLIN, 7 }, { closed, POLLIN, 7 },
		{ pair.to.fd, POLLIN, 7 }, { pair.to.fd, POLLOUT, 7 },
		{ pair.to.fd, POLLIN | POLLOUT, 7 },
	};

	close(closed);
	port_send(&pair.from, broadcast, mac_of(1), 1);
	check_number(poll(set, 5, PATIENCE_MS), 4, "four answers");
	check_number(set[0].revents, 0, "a negative number is left out");
	check_number(set[1].revents, POLLNVAL, "a closed one is invalid");
	check_number(set[2].revents, POLLIN, "the same port");
	check_number(set[3].revents, POLLOUT, "three times");
	check_number(set[4].revents, POLLIN | POLLOUT, "as asked");
	check_number(poll(NULL, 0, 0), 0, "an empty set");
}

static void
bad_calls(void)
{
	struct port port = port_open(own("vale$:a"));
	struct pollfd one = { port.fd, POLLIN, 0 };
	volatile nfds_t many = (nfds_t)1 << 30;	/* the kernel has 32 bits */
	struct timespec bad = { 0, 1000000000 };
	struct timeval bad_time = { -1, 0 };
	int closed = dup(port.fd);
	fd_set set;

	close(closed);
	check_call(poll(&one, many, 0), EINVAL, "poll of too many");
	check_call(ppoll(&one, 1, &bad, NULL), EINVAL, "ppoll, no such time");
	FD_ZERO(&set);
	FD_SET(port.fd, &set);
	check_call(select(-1, &set, NULL, NULL, NULL), EINVAL, "select of -1");
	check_call(select(port.fd + 1, &set, NULL, NULL, &bad_time), EINVAL,
		   "select, no such time");
	FD_SET(closed, &set);
	check_call(select((closed > port.fd ? closed : port.fd) + 1, &set,
			  NULL, NULL, NULL), EBADF, "select of a closed one");
}

static long
milliseconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1000 +
		(now.tv_nsec - from->tv_nsec) / 1000000;
}

static void
timeouts(void)
{
	struct port port = port_open(own("vale$:a"));
	struct timeval time = { 0, 20000 };
	struct timespec before;
	fd_set set;
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		clock_gettime(CLOCK_MONOTONIC, &before);
		check_events(wait_one(&wait_calls[c], port.fd, POLLIN, 20), 0,
			     wait_calls[c].name, "nothing came");
		check(milliseconds_since(&before) >= 20,
		      "%s: not before its time", wait_calls[c].name);
	}
	FD_ZERO(&set);
	FD_SET(port.fd, &set);
	check_number(select(port.fd + 1, &set, NULL, NULL, &time), 0,
		     "select");
	check(time.tv_sec == 0 && time.tv_usec == 0,
	      "leaves the time that was left");
}

/*
 * What a set of select does not report ends no wait: the other end of a pipe
 * that has hung up, and an error, in the set of exceptions.
 */
static void
sets_that_report_nothing(void)
{
	enum { WRITE = 1, EXCEPT };
	struct pair pair = pipe_pair();
	int unbound = device_open(), hung_up[2], set, with;

	require(pipe(hung_up) == 0 && close(hung_up[1]) == 0, "a pipe");
	for (set = WRITE; set <= EXCEPT; set++)
		for (with = 0; with < 2; with++) {
			struct timeval time = { 0, 20000 };
			struct timespec before;
			fd_set sets[3];
			int i, got, fd = with ? unbound : hung_up[0];

			if (with && set == WRITE)
				continue;
			for (i = 0; i < 3; i++)
				FD_ZERO(&sets[i]);
			FD_SET(pair.to.fd, &sets[0]);
			FD_SET(fd, &sets[set]);
			clock_gettime(CLOCK_MONOTONIC, &before);
			got = select(FD_SETSIZE, &sets[0], &sets[1], &sets[2],
				     &time);
			check_number(got, 0, "nothing to report");
			check(milliseconds_since(&before) >= 20,
			      "not before its time");
			check(!FD_ISSET(pair.to.fd, &sets[0]) &&
			      !FD_ISSET(fd, &sets[set]), "no bit");

			FD_SET(pair.to.fd, &sets[0]);
			FD_SET(fd, &sets[set]);
			port_send(&pair.from, broadcast, mac_of(1), 1);
			got = select(FD_SETSIZE, &sets[0], &sets[1], &sets[2],
				     NULL);
			check_number(got, 1, "a packet");
			check(FD_ISSET(pair.to.fd, &sets[0]) &&
			      !FD_ISSET(fd, &sets[set]), "and no other bit");
			check_number(port_take(&pair.to), 1, "the packet");
			port_rxsync(&pair.to);
			port_txsync(&pair.from);
		}
}

/* Numbers that do not fit into an fd_set. */
static void
high_numbers(void)
{
	static const int numbers[] = { 1023, 1024, 1500, 4000 };
	struct pair pair = pipe_pair();
	struct rlimit limit;
	size_t i, c;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < WAIT_FDS)
		skip("may not open so many files");
	limit.rlim_cur = WAIT_FDS;
	require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	for (i = 0; i < COUNT(numbers); i++) {
		int high = dup2(pair.to.fd, numbers[i]);

		check_number(high, numbers[i], "dup2");
		check_call(ioctl(high, NIOCRXSYNC, NULL), 0, "NIOCRXSYNC");
		for (c = 0; c < WAIT_CALLS; c++) {
			const struct wait_call *call = &wait_calls[c];
			struct wanted set[2] = {
				{ pair.from.fd, POLLIN, 0 },
				{ high, POLLIN | POLLOUT, 0 },
			};

			if (!check_number(call->wait(set, 2, 1000, NULL), 1,
					  line("%s: fd %d", call->name, high)))
				continue;
			check_events(set[1].got, POLLOUT, call->name, "room");
			port_send(&pair.from, broadcast, mac_of(1), 1);
			set[1].events = POLLIN;
			check_number(call->wait(set, 2, PATIENCE_MS, NULL), 1,
				     "a packet");
			check_number(port_take(&pair.to), 1, "the packet");
			port_rxsync(&pair.to);
			port_txsync(&pair.from);
		}
		close(high);
	}
}

static const struct test_case cases[] = {
	{ "S-POLL-1", "an epoll set", an_epoll_set },
	{ "S-POLL-1", "an epoll member by other numbers",
	  an_epoll_member_by_other_numbers },
	{ "S-POLL-1", "an epoll event once", an_epoll_event_once },
	{ "S-POLL-1", "an exclusive member of a set",
	  an_exclusive_member_of_a_set },
	{ "S-POLL-1", "an epoll event by its edge",
	  an_epoll_event_by_its_edge },
	{ "S-POLL-1", "epoll_pwait2", epoll_waits_for_nanoseconds },
	{ "S-POLL-1", "an epoll set within a set", an_epoll_set_within_a_set },
	{ "S-POLL-1", "sets of all kinds", sets_of_all_kinds },
	{ "S-POLL-1", "odd members of a poll set", odd_members_of_a_poll_set },
	{ "S-POLL-1", "bad calls", bad_calls },
	{ "S-POLL-1", "timeouts", timeouts },
	{ "S-POLL-1", "sets that report nothing", sets_that_report_nothing },
	{ "S-POLL-1", "high numbers", high_numbers },
};

CHAPTER(cases)
