/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of whole ABIs have in common: every size, offset and constant. */
#ifndef TEST_ABI_H
#define TEST_ABI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "layout.h"

/* Compilers have opinions on null pointers and on constants of two types. */
#pragma GCC diagnostic ignored "-Wpedantic"
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#else
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif

#endif
