/*
 * What USDPAA's headers and programs take for granted of the system: short names of types, macros and small functions
 * that the Linux kernel's sources have, and what programs say to the caches of their processor.
 */
#ifndef USDPAA_COMPAT_H
#define USDPAA_COMPAT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <net/ethernet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

#include "conf.h"
#include "compat_list.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u64 dma_addr_t;
typedef cpu_set_t cpumask_t;

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#ifndef __maybe_unused
#define __maybe_unused __attribute__((__unused__))
#endif
#ifndef __always_unused
#define __always_unused __attribute__((__unused__))
#endif
#ifndef __packed
#define __packed __attribute__((__packed__))
#endif
#ifndef __user
#define __user
#endif
#define ____cacheline_aligned __attribute__((__aligned__(L1_CACHE_BYTES)))
#define noinline __attribute__((__noinline__))

#define __stringify_1(x) #x
#define __stringify(x) __stringify_1(x)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* `a` is a power of two. */
#ifndef ALIGN
#define ALIGN(x, a) (((x) + ((__typeof__(x))(a) - 1)) & ~((__typeof__(x))(a) - 1))
#endif
#define lower_32_bits(x) ((u32)(x))
#define upper_32_bits(x) ((u32)((u64)(x) >> 32))

/* Does nothing, not even evaluate its argument, unless a program is built with CONFIG_BUGON. */
#ifdef CONFIG_BUGON
#define BUG_ON(c) \
	do { \
		if (c) { \
			fprintf(stderr, "BUG: %s:%d: %s\n", __FILE__, __LINE__, #c); \
			abort(); \
		} \
	} while (0)
#else
#define BUG_ON(c) ((void)sizeof(!(c)))
#endif
#define BUG() abort()
#define panic(str) \
	do { \
		fprintf(stderr, "panic: %s\n", (str)); \
		abort(); \
	} while (0)
#define WARN_ON(c, str) \
	do { \
		if (c) \
			fprintf(stderr, "WARN: %s:%d: %s\n", __FILE__, __LINE__, (str)); \
	} while (0)

#define __pr(prefix, ...) \
	do { \
		printf(prefix __VA_ARGS__); \
		fflush(stdout); \
	} while (0)
#define pr_crit(...) __pr("CRIT:", __VA_ARGS__)
#define pr_err(...) __pr("ERR:", __VA_ARGS__)
#define pr_warning(...) __pr("WARN:", __VA_ARGS__)
#define pr_warn(...) pr_warning(__VA_ARGS__)
#define pr_info(...) __pr("", __VA_ARGS__)
#ifdef CONFIG_DEBUG
#define pr_debug(...) __pr("", __VA_ARGS__)
#else
#define pr_debug(...) ((void)0)
#endif

#define prflush(...) __pr("", __VA_ARGS__)

/* Bits of words of unsigned long. */
#ifndef BITS_PER_LONG
#define BITS_PER_LONG (8 * (int)sizeof(unsigned long))
#endif
#define BITS_MASK(idx) (1UL << ((idx) & (BITS_PER_LONG - 1)))
#define BITS_IDX(idx) ((idx) / BITS_PER_LONG)

static inline unsigned long test_bits(unsigned long mask, volatile unsigned long *p)
{
	return *p & mask;
}
static inline int test_bit(int idx, volatile unsigned long *bits)
{
	return test_bits(BITS_MASK(idx), bits + BITS_IDX(idx)) != 0;
}
static inline void set_bits(unsigned long mask, volatile unsigned long *p)
{
	*p |= mask;
}
static inline void set_bit(int idx, volatile unsigned long *bits)
{
	set_bits(BITS_MASK(idx), bits + BITS_IDX(idx));
}
static inline void clear_bits(unsigned long mask, volatile unsigned long *p)
{
	*p &= ~mask;
}
static inline void clear_bit(int idx, volatile unsigned long *bits)
{
	clear_bits(BITS_MASK(idx), bits + BITS_IDX(idx));
}

static inline unsigned long test_and_set_bits(unsigned long mask, volatile unsigned long *p)
{
	unsigned long were = test_bits(mask, p);
	set_bits(mask, p);
	return were;
}
static inline int test_and_set_bit(int idx, volatile unsigned long *bits)
{
	int was = test_bit(idx, bits);
	set_bit(idx, bits);
	return was;
}
static inline int test_and_clear_bit(int idx, volatile unsigned long *bits)
{
	int was = test_bit(idx, bits);
	clear_bit(idx, bits);
	return was;
}
/* The first clear bit behind `idx`, and of all; `limit` if there is none. */
static inline int find_next_zero_bit(unsigned long *bits, int limit, int idx)
{
	for (idx++; idx < limit && test_bit(idx, bits); idx++)
		;
	return idx;
}
static inline int find_first_zero_bit(unsigned long *bits, int limit)
{
	return find_next_zero_bit(bits, limit, -1);
}

/* Sets of CPUs, and variables that each thread has for itself: it stays on one CPU. */
#define cpumask_test_cpu(cpu, mask) CPU_ISSET((cpu), (mask))
#define cpumask_set_cpu(cpu, mask) CPU_SET((cpu), (mask))
#define cpumask_clear_cpu(cpu, mask) CPU_CLR((cpu), (mask))
#define __PERCPU __thread
#define DEFINE_PER_CPU(type, name) __thread type per_cpu__##name
#define per_cpu(name, cpu) per_cpu__##name
#define get_cpu_var(name) per_cpu__##name
#define __get_cpu_var(name) per_cpu__##name
#define put_cpu_var(name) ((void)0)
/* More than there are. */
#define NR_CPUS 64

/* Pointers as numbers of 32 bits, which they are on the hardware. */
typedef u32 compat_uptr_t;
#define compat_ptr(number) ((void *)(uintptr_t)(compat_uptr_t)(number))
#define ptr_to_compat(pointer) ((compat_uptr_t)(uintptr_t)(pointer))

/*
 * Waiting for what a portal brings: the thread polls its portals until the condition holds. The
 * program includes fsl_qman.h and fsl_bman.h for it.
 */
typedef struct {
	char unused;
} wait_queue_head_t;
#define DECLARE_WAIT_QUEUE_HEAD(name) wait_queue_head_t name __maybe_unused
#define init_waitqueue_head(queue) ((void)(queue))
#define wake_up(queue) ((void)(queue))
#define might_sleep() ((void)0)
#define might_sleep_if(c) BUG_ON(c)
#define wait_event(queue, condition) \
	do { \
		while (!(condition)) { \
			bman_poll(); \
			qman_poll(); \
		} \
	} while (0)
#define wait_event_interruptible(queue, condition) \
	(__extension__({ \
		wait_event(queue, condition); \
		0; \
	}))

typedef pthread_mutex_t spinlock_t;
#define SPIN_LOCK_UNLOCKED PTHREAD_MUTEX_INITIALIZER
#define __SPIN_LOCK_UNLOCKED(x) PTHREAD_MUTEX_INITIALIZER
#define DEFINE_SPINLOCK(x) spinlock_t x = __SPIN_LOCK_UNLOCKED(x)
#define spin_lock_init(x) ((void)pthread_mutex_init((x), NULL))
#define spin_lock(x) ((void)pthread_mutex_lock(x))
#define spin_unlock(x) ((void)pthread_mutex_unlock(x))
#define spin_lock_irq(x) spin_lock(x)
#define spin_unlock_irq(x) spin_unlock(x)
#define spin_lock_irqsave(x, f) ((void)(f), spin_lock(x))
#define spin_unlock_irqrestore(x, f) ((void)(f), spin_unlock(x))

typedef struct {
	int counter;
} atomic_t;
#define ATOMIC_INIT(v) { (v) }
#define atomic_read(v) __atomic_load_n(&(v)->counter, __ATOMIC_RELAXED)
#define atomic_set(v, i) __atomic_store_n(&(v)->counter, (i), __ATOMIC_RELAXED)
#define atomic_inc(v) ((void)__atomic_add_fetch(&(v)->counter, 1, __ATOMIC_SEQ_CST))
#define atomic_dec(v) ((void)__atomic_sub_fetch(&(v)->counter, 1, __ATOMIC_SEQ_CST))
#define atomic_inc_return(v) __atomic_add_fetch(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_dec_return(v) __atomic_sub_fetch(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_inc_and_test(v) (atomic_inc_return(v) == 0)
#define atomic_dec_and_test(v) (atomic_dec_return(v) == 0)

#define barrier() __asm__ __volatile__("" : : : "memory")
#define hwsync() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define lwsync() __atomic_thread_fence(__ATOMIC_ACQ_REL)

/* A device's registers: words in the machine's own order, as the hardware's are. */
static inline u32 in_be32(volatile void *p)
{
	return *(volatile u32 *)p;
}
static inline void out_be32(volatile void *p, u32 value)
{
	*(volatile u32 *)p = value;
}
/* PowerPC's cache instructions. Memory is coherent here: to push a line out, or to make it invalid, does nothing. */
static inline void dcbz(void *p)
{
	memset((void *)((uintptr_t)p & ~(uintptr_t)(L1_CACHE_BYTES - 1)), 0, L1_CACHE_BYTES);
}
#define dcbz_64(p) dcbz(p)
#define dcbf(p) ((void)(p))
#define dcbf_64(p) dcbf(p)
#define dcbi(p) ((void)(p))
#define dcbzl(p) dcbz(p)
#define dcbit_ro(p) dcbt_ro(p)
#define dcbst(p) ((void)(p))
#define dcbt_ro(p) __builtin_prefetch(p, 0)
#define dcbt_rw(p) __builtin_prefetch(p, 1)
#define prefetch(p) __builtin_prefetch(p, 0)
#define prefetchw(p) __builtin_prefetch(p, 1)

/* Nothing is to be waited for that another thread would not do by itself. */
#define msleep(x) ((void)(x))
#define udelay(x) ((void)(x))

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	_mm_pause();
#else
	barrier();
#endif
}

/* Ticks of a clock that runs at a constant rate. */
static inline u64 usdpaa_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __rdtsc();
#elif defined(__aarch64__)
	u64 ticks;
	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
#endif
}

/* PowerPC's time bases, both of them. */
static inline u64 mfatb(void)
{
	return usdpaa_ticks();
}
static inline u64 mftb(void)
{
	return usdpaa_ticks();
}

/* Spins for so many ticks of that clock. */
static inline void cpu_spin(int cycles)
{
	u64 begin = usdpaa_ticks();
	while (cycles > 0 && usdpaa_ticks() - begin < (u64)cycles)
		cpu_relax();
}

static inline void copy_words(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}
#define copy_shorts(to, from, bytes) copy_words(to, from, bytes)
#define copy_bytes(to, from, bytes) copy_words(to, from, bytes)

/* Prints memory in rows of 16 bytes, each with its address; `..` is what is not part of it. */
static inline void hexdump(const void *memory, size_t bytes)
{
	const u8 *byte = (const u8 *)memory;
	uintptr_t first = (uintptr_t)memory, end = first + bytes, at;

	for (at = first & ~(uintptr_t)15; at < end || (at & 15) != 0; at++) {
		if ((at & 15) == 0)
			printf("%08lx: ", (unsigned long)at);
		if (at < first || at >= end)
			printf("..");
		else
			printf("%02x", byte[at - first]);
		printf("%s", (at & 15) == 15 ? "\n" : (at & 3) == 3 ? "  " : (at & 1) == 1 ? " " : "");
	}
	fflush(stdout);
}

typedef unsigned int gfp_t;
#define GFP_KERNEL 0
#define kmalloc(size, flags) ((void)(flags), malloc(size))
#define kzalloc(size, flags) ((void)(flags), calloc(1, size))
#define kfree(p) free((void *)(p))
#define vmalloc(size) malloc(size)
#define vfree(p) free((void *)(p))

#endif
