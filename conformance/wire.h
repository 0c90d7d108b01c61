/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of interfaces of the kernel's, whose ends are each other's cable. */
#ifndef WIRE_H
#define WIRE_H

#include "chapter.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* How long the kernel may take to notice that the other end is up. */
#define WIRE_PATIENCE_MS	20000

/*
 * Waits until an interface sends. One whose other end has just come up loses
 * what goes through its queueing discipline: the kernel gives it one a little
 * later, and says so in the flag.
 */
static inline void
wire_running(const char *name)
{
	struct sockaddr_nl links = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK };
	int news = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd change = { .fd = news, .events = POLLIN };
	struct ifreq request;
	char message[16384];

	require(control >= 0 && bind(news, (struct sockaddr *)&links, sizeof(links)) == 0, "news of links");
	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	for (;;) {
		require(ioctl(control, SIOCGIFFLAGS, &request) == 0, "the flags of %s", name);
		if (request.ifr_flags & IFF_RUNNING)
			break;
		require(poll(&change, 1, WIRE_PATIENCE_MS) == 1, "%s comes up", name);
		/* Whatever it says, and if some were lost: the flags tell. */
		(void)!recv(news, message, sizeof(message), 0);
	}
	/* The flag comes first, the rest under a lock that this takes as well. */
	request.ifr_data = (char *)&link;
	require(ioctl(control, SIOCETHTOOL, &request) == 0, "the link of %s", name);
	close(control);
	close(news);
}

/* Sets both ends up. Takes root. */
static inline void
wire_up(const char *near, const char *far)
{
	shell("ip link set %s up && ip link set %s up", near, far);
	wire_running(near);
	wire_running(far);
}

#endif
