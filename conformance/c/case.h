/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chapter of netmap's rules; the variant is the generation of the API that
 * its requests name, 14 or 15.
 */
#ifndef CASE_H
#define CASE_H

#include "../chapter.h"
#include "../../tests/c/port.h"

#include "cable.h"

static void
chapter_begin(const char *variant)
{
	api_select(variant);
}

/* Two interfaces of this case alone, which vanish with it. */
static inline struct cable
own_cable(unsigned queues)
{
	need_root();
	return cable_new(own("n$"), own("f$"), queues);
}

#endif
