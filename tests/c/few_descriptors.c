/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program at its limit of descriptors: opening a port either succeeds or
 * says EMFILE, and all programs still find the daemon that runs, with the
 * ports that it has.
 *
 * usage: few_descriptors SWITCH
 */
#include "port.h"

#include <sys/resource.h>

/* Descriptors below this number may be left free. */
#define LIMIT	64

/* Leaves as many descriptors free; returns how many it took. */
static int
take_all_but(int left, int taken[LIMIT])
{
	int count = 0;

	while (count < LIMIT && (taken[count] = dup(STDIN_FILENO)) >= 0)
		count++;
	require(errno == EMFILE && count >= left, "the limit of descriptors");
	while (left--)
		close(taken[--count]);
	return count;
}

static void
release(const int taken[LIMIT], int count)
{
	while (count--)
		close(taken[count]);
}

/* Tries with so many descriptors; 1 if that was enough. */
static int
try_with(int left, const char *name)
{
	struct nmreq_register reg = register_all();
	int taken[LIMIT], count, fd, result = -1, cause;

	count = take_all_but(left, taken);
	fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	if (fd >= 0)
		result = control(fd, NETMAP_REQ_REGISTER, name, &reg);
	cause = errno;
	release(taken, count);
	check(result == 0 || cause == EMFILE, "with %d descriptors: %s", left,
	      result == 0 ? "open" : strerror(cause));
	if (fd >= 0 && result != 0) {
		/* S-LIFE-2 */
		reg = register_all();
		check_call(control(fd, NETMAP_REQ_REGISTER, name, &reg), 0,
			   "the descriptor can be used when there are more");
	}
	if (fd >= 0)
		close(fd);
	return result == 0;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "valeFew";
	struct rlimit limit;
	struct port first, second;
	int left;

	require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = LIMIT;
	require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");

	/* With no daemon yet, and with that of the first port. */
	check(!try_with(0, name_of(name, "b")), "none is too few");
	for (left = 1; left < 4; left++)
		try_with(left, name_of(name, "b"));
	first = port_open(name_of(name, "a"));
	for (left = 0; left < LIMIT / 4 && !try_with(left, name_of(name, "b"));
	     left++)
		;
	check(left > 0 && left < LIMIT / 4, "%d descriptors are enough", left);

	/* The daemon is still that of the first port. */
	second = port_open(name_of(name, "b"));
	port_send(&first, broadcast, mac_of(1), 7);
	check_number(port_take(&second), 7, "both ports are on one switch");
	port_close(&second);
	port_close(&first);
	return check_result();
}
