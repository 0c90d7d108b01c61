/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of the benchmark that is a program in C: what src/roles.rs says of
 * its lines, and how it is pinned. A step moves a batch, and returns how many
 * packets it counts; it may sleep for NAP_MS when it finds none.
 */
#ifndef ROLE_H
#define ROLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define NAP_MS	20

enum phase { WARM_UP, COUNTING, STOPPED };

static _Atomic int role_phase = WARM_UP;

static inline void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t
role_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return 0;
#endif
}

static inline uint64_t
role_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t
role_nanoseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static inline void *
role_listen(void *nothing)
{
	char line[16];

	if (fgets(line, sizeof(line), stdin) && strcmp(line, "count\n") == 0) {
		atomic_store(&role_phase, COUNTING);
		while (fgets(line, sizeof(line), stdin))
			;
	}
	atomic_store(&role_phase, STOPPED);
	return nothing;
}

/* To be called when all is open: a daemon that was started by that is to have all CPUs. */
static inline void
role_run(const char *cpu, uint64_t (*step)(void *), void *data)
{
	uint64_t packets = 0, begin, ticks, took;
	struct rusage before, after;
	pthread_t listener;
	char line[16];
	cpu_set_t set;

	if (strcmp(cpu, "-") != 0) {
		CPU_ZERO(&set);
		CPU_SET(atoi(cpu), &set);
		if (sched_setaffinity(0, sizeof(set), &set) != 0)
			fail("sched_setaffinity");
	}
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	if (pthread_create(&listener, NULL, role_listen, NULL) != 0)
		fail("pthread_create");
	while (atomic_load_explicit(&role_phase, memory_order_relaxed) == WARM_UP)
		step(data);
	getrusage(RUSAGE_SELF, &before);
	begin = role_now();
	ticks = role_ticks();
	while (atomic_load_explicit(&role_phase, memory_order_relaxed) == COUNTING)
		packets += step(data);
	ticks = role_ticks() - ticks;
	took = role_now() - begin;
	getrusage(RUSAGE_SELF, &after);
	printf("{\"packets\": %llu, \"nanoseconds\": %llu, \"cycles\": %llu, "
	       "\"usage\": {\"user\": %llu, \"system\": %llu}}\n",
	       (unsigned long long)packets, (unsigned long long)took, (unsigned long long)ticks,
	       (unsigned long long)(role_nanoseconds(after.ru_utime) - role_nanoseconds(before.ru_utime)),
	       (unsigned long long)(role_nanoseconds(after.ru_stime) - role_nanoseconds(before.ru_stime)));
	fflush(stdout);
}

/* Every byte is looked at. */
static inline void
role_read(const void *packet, uint32_t length)
{
	const volatile unsigned char *byte = (const volatile unsigned char *)packet;
	const volatile uint64_t *word = (const volatile uint64_t *)packet;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < length / 8; i++)
		sum ^= word[i];
	for (i *= 8; i < length; i++)
		sum ^= byte[i];
	__asm__ volatile("" : : "r"(sum));
}

#endif
