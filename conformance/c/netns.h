/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace for one case; it goes with the case's process. */
#ifndef NETNS_H
#define NETNS_H

#include "cable.h"
#include "case.h"

#include <sched.h>

/* Moves this process into a new, quiet namespace; takes root. */
static inline void
netns_own(void)
{
	need_root();
	require(unshare(CLONE_NEWNET) == 0, "unshare");
	shell("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 && "
	      "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && "
	      "ip link set lo up");
}

/*
 * The host's own stack on an interface, as the far end of a cable that netmap
 * cuts: cable_send gives the stack a frame to transmit, cable_take is what the
 * stack has received.
 */
static inline struct cable
stack_of(const char *interface)
{
	struct cable cable;

	snprintf(cable.near, sizeof(cable.near), "%s", interface);
	snprintf(cable.far, sizeof(cable.far), "%s", interface);
	cable.socket = packet_socket(interface);
	return cable;
}

#endif
