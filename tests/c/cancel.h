/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait, and are cancelled. For programs with _GNU_SOURCE.
 */
#ifndef CANCEL_H
#define CANCEL_H

#include <pthread.h>
#include <time.h>

/*
 * Cancels a thread: some before it sleeps, and some after, by the number of
 * the attempt. 1 if it ends as cancelled within so many seconds.
 */
static inline int
is_cancelled(pthread_t thread, int attempt, int patience)
{
	struct timespec moment = { 0, attempt % 10 * 20000 }, limit;
	void *result = NULL;

	nanosleep(&moment, NULL);
	if (pthread_cancel(thread) != 0)
		return 0;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += patience;
	return pthread_timedjoin_np(thread, &result, &limit) == 0
	    && result == PTHREAD_CANCELED;
}

#endif
