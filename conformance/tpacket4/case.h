/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chapter of the rules of AF_PACKET V4. Cases have sockets on ports of a
 * switch or on the ends of a pipe.
 */
#ifndef CASE_H
#define CASE_H

#include "../chapter.h"
#include "../../tests/c/tpacket4.h"

static void
chapter_begin(const char *variant)
{
	require(atoi(variant) == 4, "version 4");
}

struct pair {
	struct v4 one, other;
};

/* The case is about a pipe, and not about a switch. */
static int on_pipe;

/* A case again, on a pipe. */
#define ON_PIPE(name)							\
	static void							\
	name##_on_pipe(void)						\
	{								\
		on_pipe = 1;						\
		name();							\
	}

/* Two ports of a switch, or the ends of a pipe, of this case alone. */
static inline struct pair
pair_open(void)
{
	struct pair pair = {
		v4_open(on_pipe ? own("p${1") : own("vale$:a")),
		v4_open(on_pipe ? own("p$}1") : own("vale$:b")),
	};

	return pair;
}

/* A frame to all. */
static inline void
build(struct v4 *v4, const struct tpacket4_desc *desc)
{
	static const char head[14] = { -1, -1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 1, (char)0x88, (char)0xb5 };

	memset(data_of(v4, desc), 0xee, desc->len);
	memcpy(data_of(v4, desc), head, sizeof(head));
}

/* The next packet, which must come. */
static inline void
receive(struct v4 *v4, struct tpacket4_desc *desc)
{
	while (!get(&v4->rx, desc)) {
		int events = await(v4, POLLIN, 20000);

		require(events == POLLIN, "something comes: events %#x", (unsigned int)events);
	}
}

static inline void
send_one(struct v4 *v4, struct tpacket4_desc desc)
{
	put(&v4->tx, desc);
	check_call(kick(v4), 0, "kick");
}

static inline void
returned(struct v4 *v4, uint64_t idx, int error, const char *text)
{
	struct tpacket4_desc desc = frame_of(0, 0, 0);

	if (!check(get(&v4->tx, &desc), "%s comes back", text))
		return;
	check(desc.idx == idx && desc.error == error && !(desc.flags & TP4_DESC_KERNEL),
	      "%s: frame %llu, error %d", text, (unsigned long long)desc.idx, desc.error);
}

#endif
