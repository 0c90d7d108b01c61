/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All the calls that wait for descriptors, as one: a set of descriptors, each
 * with the events that are wanted and those that came.
 */
#ifndef WAITS_H
#define WAITS_H

#include "../../tests/c/port.h"

#include <limits.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define WAIT_MAX	32	/* descriptors in a set */
#define WAIT_FDS	4096	/* and their highest number */

struct wanted {
	int fd;
	short events, got;
};

/*
 * Waits as poll does; mask, if not NULL, holds during the wait. Where a call
 * knows of no errors, as select, an error is all that was asked for.
 */
typedef int (*wait_fn)(struct wanted *set, int count, int timeout_ms,
		       const sigset_t *mask);

static inline struct timespec
timespec_of(int timeout_ms)
{
	struct timespec time;

	time.tv_sec = timeout_ms / 1000;
	time.tv_nsec = timeout_ms % 1000 * 1000000l;
	return time;
}

static inline int
poll_or_ppoll(struct wanted *set, int count, int timeout_ms,
	      const sigset_t *mask, int with_mask)
{
	struct timespec timeout = timespec_of(timeout_ms);
	struct pollfd fds[WAIT_MAX];
	int i, ready;

	for (i = 0; i < count; i++) {
		fds[i].fd = set[i].fd;
		fds[i].events = set[i].events;
		fds[i].revents = 0x7fff;
	}
	if (with_mask)
		ready = ppoll(fds, (nfds_t)count,
			      timeout_ms < 0 ? NULL : &timeout, mask);
	else
		ready = poll(fds, (nfds_t)count, timeout_ms);
	for (i = 0; i < count; i++)
		set[i].got = ready < 0 ? 0 : fds[i].revents;
	return ready;
}

static inline int
with_poll(struct wanted *set, int count, int timeout_ms, const sigset_t *mask)
{
	return poll_or_ppoll(set, count, timeout_ms, mask, 0);
}

static inline int
with_ppoll(struct wanted *set, int count, int timeout_ms,
	   const sigset_t *mask)
{
	return poll_or_ppoll(set, count, timeout_ms, mask, 1);
}

/* Sets larger than fd_set, which the kernel takes as well. */
struct bits {
	unsigned long word[WAIT_FDS / (8 * sizeof(long))];
};

static inline void
bits_add(struct bits *bits, int fd)
{
	bits->word[(size_t)fd / (8 * sizeof(long))] |=
		1ul << (size_t)fd % (8 * sizeof(long));
}

static inline int
bits_have(const struct bits *bits, int fd)
{
	return bits->word[(size_t)fd / (8 * sizeof(long))] >>
		(size_t)fd % (8 * sizeof(long)) & 1;
}

static inline int
select_or_pselect(struct wanted *set, int count, int timeout_ms,
		  const sigset_t *mask, int with_mask)
{
	struct timespec timeout = timespec_of(timeout_ms);
	struct timeval time = { timeout.tv_sec, timeout.tv_nsec / 1000 };
	struct bits in, out;
	int i, ready, highest = -1;

	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	for (i = 0; i < count; i++) {
		if (set[i].events & POLLIN)
			bits_add(&in, set[i].fd);
		if (set[i].events & POLLOUT)
			bits_add(&out, set[i].fd);
		if (set[i].fd > highest)
			highest = set[i].fd;
	}
	if (with_mask)
		ready = pselect(highest + 1, (fd_set *)&in, (fd_set *)&out,
				NULL, timeout_ms < 0 ? NULL : &timeout, mask);
	else
		ready = select(highest + 1, (fd_set *)&in, (fd_set *)&out,
			       NULL, timeout_ms < 0 ? NULL : &time);
	for (i = 0; i < count; i++) {
		set[i].got = 0;
		if (ready > 0 && set[i].events & POLLIN &&
		    bits_have(&in, set[i].fd))
			set[i].got |= POLLIN;
		if (ready > 0 && set[i].events & POLLOUT &&
		    bits_have(&out, set[i].fd))
			set[i].got |= POLLOUT;
	}
	return ready;
}

static inline int
with_select(struct wanted *set, int count, int timeout_ms,
	    const sigset_t *mask)
{
	return select_or_pselect(set, count, timeout_ms, mask, 0);
}

static inline int
with_pselect(struct wanted *set, int count, int timeout_ms,
	     const sigset_t *mask)
{
	return select_or_pselect(set, count, timeout_ms, mask, 1);
}

/* Which of its calls waits for an epoll set. */
enum epoll_call { EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2 };

static inline int
with_an_epoll(struct wanted *set, int count, int timeout_ms,
	      const sigset_t *mask, enum epoll_call which)
{
	struct timespec timeout = timespec_of(timeout_ms);
	struct epoll_event event, got[WAIT_MAX];
	int epoll = epoll_create1(EPOLL_CLOEXEC), i, ready, error;

	require(epoll >= 0, "epoll_create1");
	for (i = 0; i < count; i++) {
		/* The EPOLL* bits are the POLL* bits. */
		event.events = (uint32_t)set[i].events;
		event.data.u64 = (uint64_t)i;
		set[i].got = 0;
		require(epoll_ctl(epoll, EPOLL_CTL_ADD, set[i].fd,
				  &event) == 0, "EPOLL_CTL_ADD %d", i);
	}
	if (which == EPOLL_PWAIT2)
		ready = epoll_pwait2(epoll, got, WAIT_MAX,
				     timeout_ms < 0 ? NULL : &timeout, mask);
	else if (which == EPOLL_PWAIT)
		ready = epoll_pwait(epoll, got, WAIT_MAX, timeout_ms, mask);
	else
		ready = epoll_wait(epoll, got, WAIT_MAX, timeout_ms);
	error = errno;
	close(epoll);
	errno = error;
	for (i = 0; i < ready; i++)
		set[got[i].data.u64].got = (short)got[i].events;
	return ready;
}

static inline int
with_epoll(struct wanted *set, int count, int timeout_ms,
	   const sigset_t *mask)
{
	return with_an_epoll(set, count, timeout_ms, mask, EPOLL_WAIT);
}

static inline int
with_epoll_pwait(struct wanted *set, int count, int timeout_ms,
		 const sigset_t *mask)
{
	return with_an_epoll(set, count, timeout_ms, mask, EPOLL_PWAIT);
}

static inline int
with_epoll_pwait2(struct wanted *set, int count, int timeout_ms,
		  const sigset_t *mask)
{
	return with_an_epoll(set, count, timeout_ms, mask, EPOLL_PWAIT2);
}

static const struct wait_call {
	const char *name;
	wait_fn wait;
	int takes_mask;
	int has_error;	/* POLLERR, rather than all that is asked for */
} wait_calls[] = {
	{ "poll", with_poll, 0, 1 },
	{ "ppoll", with_ppoll, 1, 1 },
	{ "select", with_select, 0, 0 },
	{ "pselect", with_pselect, 1, 0 },
	{ "epoll_wait", with_epoll, 0, 1 },
	{ "epoll_pwait", with_epoll_pwait, 1, 1 },
};

/* The newest, by itself: a C library may not know it yet. */
static const struct wait_call newest_wait_call = {
	"epoll_pwait2", with_epoll_pwait2, 1, 1
};

#define WAIT_CALLS	(sizeof(wait_calls) / sizeof(wait_calls[0]))

/* The events of one descriptor; -1 if the call fails. */
static inline int
wait_one(const struct wait_call *call, int fd, short events, int timeout_ms)
{
	struct wanted set[1] = { { fd, events, 0 } };
	int ready = call->wait(set, 1, timeout_ms, NULL);

	return ready < 0 ? -1 : set[0].got;
}

static inline void
check_events(int got, int expected, const char *call, const char *text)
{
	if (got == expected)
		check(1, "%s: %s", call, text);
	else
		check(0, "%s: %s (events 0x%x, expected 0x%x)", call, text,
		      (unsigned)got, (unsigned)expected);
}

#endif
