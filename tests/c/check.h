/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of a test program, one line each: "ok - TEXT" or
 * "not ok - TEXT (DETAILS)". Include first: it asks libc for all it has.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

/*
 * How long an event that must come may take, in milliseconds. Who has failed
 * already need not wait long for the details.
 */
#define PATIENCE_MS	(check_failures ? 200 : 30000)

/* Prints one result; returns whether it is good. */
__attribute__((format(printf, 2, 3))) static inline int
check(int good, const char *format, ...)
{
	va_list args;

	fputs(good ? "ok - " : "not ok - ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	check_failures += !good;
	return good;
}

/* A number must be the one expected; the details show both. */
static inline int
check_number(long long got, long long expected, const char *text)
{
	if (got == expected)
		return check(1, "%s", text);
	return check(0, "%s (got %lld, expected %lld)", text, got, expected);
}

/*
 * The result of a system call, errno still in place: success when expected is
 * 0, else -1 with that errno.
 */
static inline int
check_call(long result, int expected, const char *text)
{
	int got = result == -1 ? errno : 0;

	if (got == expected)
		return check(1, "%s", text);
	return check(0, "%s (got %s, expected %s)", text,
		     got ? strerror(got) : "success",
		     expected ? strerror(expected) : "success");
}

/* What the program cannot go on without. */
__attribute__((format(printf, 2, 3))) static inline void
require(int good, const char *format, ...)
{
	int cause = errno;
	va_list args;

	if (good)
		return;
	fputs("not ok - ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" (%s)\n", strerror(cause));
	fflush(stdout);
	exit(1);
}

/* Exit status of the program. */
static inline int
check_result(void)
{
	if (check_failures)
		printf("# %d failed\n", check_failures);
	return check_failures != 0;
}

#endif
