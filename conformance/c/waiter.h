/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that waits for a port, asleep before the case goes on. */
#ifndef WAITER_H
#define WAITER_H

#include "case.h"
#include "request.h"
#include "waits.h"

#include <pthread.h>
#include <sys/syscall.h>

struct waiter {
	const struct wait_call *call;
	int fd;
	short events;
	int tid, got;
};

static inline void *
wait_in_a_thread(void *argument)
{
	struct waiter *waiter = (struct waiter *)argument;

	__atomic_store_n(&waiter->tid, (int)syscall(SYS_gettid),
			 __ATOMIC_RELEASE);
	waiter->got = wait_one(waiter->call, waiter->fd, waiter->events,
			       2 * PATIENCE_MS);
	return NULL;
}

static inline int
waiter_sleeps(const void *argument)
{
	const struct waiter *waiter = (const struct waiter *)argument;
	int tid = __atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE);

	return tid != 0 && thread_sleeps(&tid);
}

/* A thread that waits, and is asleep when this returns. */
static inline pthread_t
start_waiting(struct waiter *waiter, const struct wait_call *call, int fd,
	      short events)
{
	pthread_t thread;

	waiter->call = call;
	waiter->fd = fd;
	waiter->events = events;
	waiter->tid = waiter->got = 0;
	require(pthread_create(&thread, NULL, wait_in_a_thread, waiter) == 0,
		"a thread");
	require(soon(waiter_sleeps, waiter), "the thread sleeps");
	return thread;
}

/* All the events that it waits for have come, and nothing else. */
static inline void
check_woken(pthread_t thread, const struct waiter *waiter, const char *text)
{
	pthread_join(thread, NULL);
	check_events(waiter->got, waiter->events, waiter->call->name, text);
}

#endif
