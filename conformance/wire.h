/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of interfaces of the kernel's, whose ends are each other's cable. */
#ifndef WIRE_H
#define WIRE_H

#include "chapter.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

/* The type of the frames that try a wire: none of those that cases send. */
#define WIRE_TYPE	0x88b6
#define WIRE_TRIES	100
#define WIRE_TRY_MS	200

static inline int
wire_socket(const char *name)
{
	struct sockaddr_ll end;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	memset(&end, 0, sizeof(end));
	end.sll_family = AF_PACKET;
	end.sll_protocol = htons(WIRE_TYPE);
	end.sll_ifindex = (int)if_nametoindex(name);
	require(fd >= 0 && bind(fd, (struct sockaddr *)&end, sizeof(end)) == 0, "a socket of %s", name);
	return fd;
}

/*
 * Waits until frames pass. An interface whose other end has just come up drops
 * what goes through its queueing discipline: the kernel attaches that later, and
 * tells nobody when.
 */
static inline void
wire_passes(const char *from, const char *to)
{
	unsigned char frame[ETH_ZLEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1,
		WIRE_TYPE >> 8, WIRE_TYPE & 0xff };
	int in = wire_socket(from), out = wire_socket(to), tries = 0;
	struct pollfd end = { .fd = out, .events = POLLIN };

	do {
		require(tries++ < WIRE_TRIES, "frames pass from %s to %s", from, to);
		require(send(in, frame, sizeof(frame), 0) == sizeof(frame), "send on %s", from);
	} while (poll(&end, 1, WIRE_TRY_MS) == 0);
	close(in);
	close(out);
}

/* Sets both ends up. Takes root. */
static inline void
wire_up(const char *near, const char *far)
{
	shell("ip link set %s up && ip link set %s up", near, far);
	wire_passes(near, far);
	wire_passes(far, near);
}

#endif
