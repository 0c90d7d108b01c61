/* SPDX-License-Identifier: BSD-2-Clause */
/* A chapter of the rules of USDPAA's managers. */
#ifndef CASE_H
#define CASE_H

#include "portals.h"

static void
chapter_begin(const char *variant)
{
	require(strcmp(variant, "sdk") == 0, "the variant");
}

#endif
