/* SPDX-License-Identifier: BSD-2-Clause */
/* POLL: sets of epoll that change while threads wait for them (S-POLL-1). */
#include "pair.h"
#include "waits.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define WAITERS	3

/* A thread that waits for a set: with epoll_wait, or in another set or call. */
struct set_waiter {
	int epoll, with_poll, tid, got;
	struct epoll_event event;
	pthread_t thread;
};

static void *
wait_for_set(void *argument)
{
	struct set_waiter *waiter = (struct set_waiter *)argument;
	struct pollfd one = { waiter->epoll, POLLIN, 0 };

	__atomic_store_n(&waiter->tid, (int)syscall(SYS_gettid),
			 __ATOMIC_RELEASE);
	if (waiter->with_poll)
		waiter->got = poll(&one, 1, PATIENCE_MS);
	else
		waiter->got = epoll_wait(waiter->epoll, &waiter->event, 1,
					 PATIENCE_MS);
	return NULL;
}

static int
is_asleep(const void *argument)
{
	const struct set_waiter *waiter = (const struct set_waiter *)argument;
	int tid = __atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE);

	return tid != 0 && thread_sleeps(&tid);
}

/* It is asleep when this returns. */
static void
begin_wait(struct set_waiter *waiter, int epoll, int with_poll)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->epoll = epoll;
	waiter->with_poll = with_poll;
	require(pthread_create(&waiter->thread, NULL, wait_for_set,
			       waiter) == 0, "a thread");
	require(soon(is_asleep, waiter), "the thread sleeps");
}

static void
put(int epoll, int operation, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { 0 };

	event.events = events;
	event.data.u64 = data;
	check_call(epoll_ctl(epoll, operation, fd, &event), 0, "epoll_ctl");
}

static int
set_with(int fd)
{
	int epoll = epoll_create1(0);

	require(epoll >= 0, "epoll_create1");
	put(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, 1);
	return epoll;
}

/* Threads wait for a set while a port with room is added. */
static void
check_added(int epoll, int waited, int fd, int with_poll, uint64_t data,
	    const char *text)
{
	struct set_waiter waiter[WAITERS];
	int i;

	for (i = 0; i < WAITERS; i++)
		begin_wait(&waiter[i], waited, with_poll);
	put(epoll, EPOLL_CTL_ADD, fd, EPOLLOUT, 7);
	for (i = 0; i < WAITERS; i++) {
		pthread_join(waiter[i].thread, NULL);
		check_number(waiter[i].got, 1, text);
		check(with_poll || waiter[i].event.data.u64 == data,
		      "%s: its data", text);
	}
}

static void
a_member_that_is_added(void)
{
	struct pair pair = pipe_pair();
	int event = eventfd(0, 0), set, outer;

	set = set_with(event);
	check_added(set, set, pair.from.fd, 0, 7, "a set without a port");
	set = set_with(pair.to.fd);
	check_added(set, set, pair.from.fd, 0, 7, "a set with a port");
	set = set_with(event);
	check_added(set, set, pair.from.fd, 1, 7, "poll for a set");
	set = set_with(event);
	outer = set_with(set);
	check_added(set, outer, pair.from.fd, 0, 1, "a set within a set");
	set = set_with(event);
	outer = set_with(set);
	check_added(set, outer, pair.from.fd, 1, 1, "poll for that");
	set = set_with(event);
	check_added(dup(set), set, pair.from.fd, 0, 7, "a copy of the set");
}

/* What came with the port is waited for as before, and nothing else is told. */
static void
a_set_goes_on(void)
{
	struct pair pair = pipe_pair();
	struct set_waiter waiter;
	struct epoll_event got[4];
	uint64_t number = 1;
	int event = eventfd(0, 0), set = set_with(event);

	begin_wait(&waiter, set, 0);
	put(set, EPOLL_CTL_ADD, pair.to.fd, EPOLLIN, 7);
	require(soon(is_asleep, &waiter), "the thread sleeps again");
	port_send(&pair.from, broadcast, mac_of(1), 1);
	pthread_join(waiter.thread, NULL);
	check(waiter.got == 1 && waiter.event.data.u64 == 7, "a packet");
	check_number(port_take(&pair.to), 1, "the packet");
	port_rxsync(&pair.to);
	check_number(epoll_wait(set, got, 4, 0), 0, "nothing else");

	begin_wait(&waiter, set, 0);
	put(set, EPOLL_CTL_MOD, pair.to.fd, EPOLLIN, 8);
	require(soon(is_asleep, &waiter), "the thread sleeps again");
	require(write(event, &number, sizeof(number)) == sizeof(number),
		"write");
	pthread_join(waiter.thread, NULL);
	check(waiter.got == 1 && waiter.event.data.u64 == 1,
	      "the kernel's descriptor");
}

static void
a_member_that_is_changed(void)
{
	struct pair pair = pipe_pair();
	struct set_waiter waiter;
	struct epoll_event got;
	int set = epoll_create1(0), turn;

	put(set, EPOLL_CTL_ADD, pair.from.fd, EPOLLIN, 1);
	begin_wait(&waiter, set, 0);
	put(set, EPOLL_CTL_MOD, pair.from.fd, EPOLLOUT | EPOLLONESHOT, 2);
	pthread_join(waiter.thread, NULL);
	check(waiter.got == 1 && waiter.event.data.u64 == 2, "EPOLL_CTL_MOD");
	for (turn = 0; turn < 3; turn++) {
		check_number(epoll_wait(set, &got, 1, 0), 0, "EPOLLONESHOT");
		begin_wait(&waiter, set, 0);
		put(set, EPOLL_CTL_MOD, pair.from.fd, EPOLLOUT | EPOLLONESHOT,
		    3);
		pthread_join(waiter.thread, NULL);
		check(waiter.got == 1 && waiter.event.data.u64 == 3,
		      "armed again");
	}
}

static sigjmp_buf out;

static void
jump(int signal)
{
	siglongjmp(out, signal);
}

/* A handler jumps out of the kernel's wait: nothing waits for that thread. */
static void
a_wait_that_is_left_by_a_jump(void)
{
	struct pair pair = pipe_pair();
	struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
	struct epoll_event got[4];
	uint64_t number = 1;
	int event = eventfd(0, 0), set = set_with(event), turn;

	signal(SIGALRM, jump);
	if (sigsetjmp(out, 1) == 0) {
		setitimer(ITIMER_REAL, &soon, NULL);
		epoll_wait(set, got, 4, -1);
	}
	put(set, EPOLL_CTL_ADD, pair.to.fd, EPOLLIN, 7);
	for (turn = 0; turn < 3; turn++) {
		check_number(epoll_wait(set, got, 4, 200), 0, "nothing");
		port_send(&pair.from, broadcast, mac_of(1), 1);
		check(epoll_wait(set, got, 4, PATIENCE_MS) == 1 &&
		      got[0].data.u64 == 7, "a packet");
		check_number(port_take(&pair.to), 1, "the packet");
		port_rxsync(&pair.to);
		port_txsync(&pair.from);
		require(write(event, &number, sizeof(number)) ==
			sizeof(number), "write");
		check(epoll_wait(set, got, 4, PATIENCE_MS) == 1 &&
		      got[0].data.u64 == 1, "the kernel's descriptor");
		require(read(event, &number, sizeof(number)) ==
			sizeof(number), "read");
	}
}

/* ---- waits without end ---- */

#define EVENTS	200

static int shared_set, taken, empty;

static void *
take_events(void *argument)
{
	struct epoll_event event;
	int got;

	while ((got = epoll_wait(shared_set, &event, 1, -1)) >= 0) {
		if (got == 0)
			__atomic_add_fetch(&empty, 1, __ATOMIC_RELAXED);
		else if (event.data.u64 == 0)
			break;
		else
			__atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
	}
	return argument;
}

static int
are_taken(const void *argument)
{
	return __atomic_load_n(&taken, __ATOMIC_ACQUIRE) >=
		*(const int *)argument;
}

/* Several threads wait for one event each time. */
static void
check_events_of_threads(void (*next)(void *), void *argument,
			const char *text)
{
	pthread_t threads[4];
	uint64_t number = 1;
	int end = eventfd(0, 0), i, events;

	taken = empty = 0;
	for (i = 0; i < 4; i++)
		require(pthread_create(&threads[i], NULL, take_events,
				       NULL) == 0, "a thread");
	for (events = 1; events <= EVENTS; events++) {
		next(argument);
		require(soon(are_taken, &events), "%s: an event", text);
	}
	put(shared_set, EPOLL_CTL_ADD, end, EPOLLIN, 0);
	require(write(end, &number, sizeof(number)) == sizeof(number),
		"write");
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_number(empty, 0, line("%s: no wait ends without one", text));
	check_number(taken, EVENTS, line("%s: each is told once", text));
}

static void
write_event(void *argument)
{
	uint64_t number = 1;

	require(write(*(int *)argument, &number, sizeof(number)) ==
		sizeof(number), "write");
}

static void
send_packet(void *argument)
{
	struct pair *pair = (struct pair *)argument;

	port_txsync(&pair->from);
	port_send(&pair->from, broadcast, mac_of(1), 1);
}

static void
arm(void *argument)
{
	put(shared_set, EPOLL_CTL_MOD, *(int *)argument,
	    EPOLLOUT | EPOLLONESHOT, 1);
}

static void
waits_without_end(void)
{
	struct pair pair = pipe_pair(), wide;
	int event = eventfd(0, EFD_NONBLOCK);

	shared_set = epoll_create1(0);
	put(shared_set, EPOLL_CTL_ADD, pair.to.fd, EPOLLIN, 1);
	put(shared_set, EPOLL_CTL_ADD, event, EPOLLIN | EPOLLET, 1);
	check_events_of_threads(write_event, &event, "EPOLLET");
	shared_set = epoll_create1(0);
	put(shared_set, EPOLL_CTL_ADD, pair.from.fd, EPOLLONESHOT, 1);
	check_events_of_threads(arm, &pair.from.fd, "EPOLLONESHOT");
	wide.from = port_open_slots(own("q${1"), 2 * EVENTS);
	wide.to = port_open(own("q$}1"));
	shared_set = epoll_create1(0);
	put(shared_set, EPOLL_CTL_ADD, wide.to.fd, EPOLLIN | EPOLLET, 1);
	check_events_of_threads(send_packet, &wide, "EPOLLET of a port");
}

static const struct test_case cases[] = {
	{ "S-POLL-1", "an epoll wait ends with an event", waits_without_end },
	{ "S-POLL-1", "a member that is added during a wait",
	  a_member_that_is_added },
	{ "S-POLL-1", "a member that is changed during a wait",
	  a_member_that_is_changed },
	{ "S-POLL-1", "a wait goes on with a set that has changed",
	  a_set_goes_on },
	{ "S-POLL-1", "a wait that is left by a jump",
	  a_wait_that_is_left_by_a_jump },
};

CHAPTER(cases)
