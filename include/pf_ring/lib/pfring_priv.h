/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros that the examples of PF_RING use. */
#ifndef _PFRING_PRIV_H
#define _PFRING_PRIV_H

#include "config.h"
#include <pfring.h>

#ifndef min
#define min(a, b)	((a) <= (b) ? (a) : (b))
#endif
#ifndef max
#define max(a, b)	((a) >= (b) ? (a) : (b))
#endif

/* Full, of loads, and of stores. */
#define gcc_mb()	__asm__ __volatile__("" : : : "memory")
#define mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)

#endif
