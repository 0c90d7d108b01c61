/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace for one case, with veth pairs and the stack's own view of
 * them. All of it goes with the process.
 */
#ifndef NETNS_H
#define NETNS_H

#include "case.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sched.h>

/* Runs a shell command, which must succeed. */
__attribute__((format(printf, 1, 2))) static inline void
shell(const char *format, ...)
{
	char line[512] = "unset LD_PRELOAD; ";
	size_t used = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, sizeof(line) - used, format, args);
	va_end(args);
	fflush(stdout);
	require(system(line) == 0, "%s", line + used);
}

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

/* A pair of interfaces with that many queues each way, both up. */
static inline void
veth_queues(const char *one, const char *other, unsigned queues)
{
	shell("ip link add %s numtxqueues %u numrxqueues %u type veth "
	      "peer name %s numtxqueues %u numrxqueues %u && "
	      "ip link set %s up && ip link set %s up",
	      one, queues, queues, other, queues, queues, one, other);
}

static inline void
veth(const char *one, const char *other)
{
	veth_queues(one, other, 1);
}

/* What the host's stack sends and receives through an interface. */
static inline int
stack_open(const char *interface)
{
	struct sockaddr_ll address;
	int fd, one = 1;

	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_ALL);
	address.sll_ifindex = (int)if_nametoindex(interface);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	require(fd >= 0 && address.sll_ifindex != 0 &&
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
			   sizeof(one)) == 0 &&
		bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
		"packet socket on %s", interface);
	return fd;
}

static inline void
stack_send(int fd, const void *frame, size_t length)
{
	require(send(fd, frame, length, 0) == (ssize_t)length, "send");
}

static inline void
stack_send_frame(int fd, struct mac to, struct mac from, uint32_t sequence)
{
	uint8_t frame[FRAME_SIZE];

	frame_fill(frame, sizeof(frame), to, from, sequence);
	stack_send(fd, frame, sizeof(frame));
}

/*
 * The next test frame that comes up from an interface; its length, or 0 when
 * none comes in time. Other frames are passed over.
 */
static inline uint32_t
stack_receive(int fd, void *frame, size_t size)
{
	while (wait_events(fd, POLLIN, PATIENCE_MS) & POLLIN) {
		ssize_t length = recv(fd, frame, size, 0);

		require(length >= 0, "recv");
		if (frame_is_ours(frame, (uint32_t)length))
			return (uint32_t)length;
	}
	return 0;
}

/* Its number, or -1 if none or a damaged one. */
static inline long long
stack_take(int fd)
{
	uint8_t frame[65536];
	uint32_t length = stack_receive(fd, frame, sizeof(frame));

	return length && frame_is_intact(frame, length) ?
		frame_sequence(frame) : -1;
}

#endif
