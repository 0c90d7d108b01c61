/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ports, of which the one sends what the other receives. */
#ifndef PAIR_H
#define PAIR_H

#include "case.h"
#include "request.h"

#define SLOTS	16	/* of a pipe's rings: soon full, and soon wrapped around */

struct pair {
	struct port from, to;
};

/* Packets move when both sync. */
static inline struct pair
pipe_pair(void)
{
	struct pair pair;

	pair.from = port_open_slots(own("p${1"), SLOTS);
	pair.to = port_open(own("p$}1"));
	return pair;
}

static inline struct pair
switch_pair(void)
{
	struct pair pair;

	pair.from = port_open(own("vale$:a"));
	pair.to = port_open(own("vale$:b"));
	return pair;
}

/* For cases that hold whatever moves the packets. */
static struct pair (*const pairs[])(void) = { pipe_pair, switch_pair };

static inline void
pair_close(struct pair *pair)
{
	port_close(&pair->to);
	port_close(&pair->from);
}

#endif
