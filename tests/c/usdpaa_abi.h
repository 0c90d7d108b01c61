/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of USDPAA's headers have in common. Compiling them is the test. */
#ifndef TEST_USDPAA_ABI_H
#define TEST_USDPAA_ABI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <usdpaa/compat.h>
#include <usdpaa/fsl_usd.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/dma_mem.h>
#include <usdpaa/of.h>
#include <usdpaa/fman.h>
#include <usdpaa/fsl_fman.h>
#include <usdpaa/usdpaa_netcfg.h>

#ifdef __cplusplus
#define ASSERT(what, text)	static_assert(what, text)
#else
#define ASSERT(what, text)	_Static_assert(what, text)
#endif
#define SIZE(type, size)	ASSERT(sizeof(type) == (size), #type)
#define FIELD(type, field, offset, size) \
	ASSERT(offsetof(type, field) == (offset) && \
	       sizeof(((type *)0)->field) == (size), #type "." #field)
#define VALUE(name, value)	ASSERT((name) == (value), #name)

/* Compilers have opinions on null pointers and on constants of two types. */
#pragma GCC diagnostic ignored "-Wpedantic"
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#else
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif

#endif
