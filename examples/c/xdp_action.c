/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An action program: a small firewall in front of a port. UDP to port 9 is dropped, ARP and ICMP are the
 * kernel's, Ethernet test frames (0x9000) are sent back, UDP to port 4000 goes on by the first interface
 * that is named; the port gets all else.
 *
 *   clang -target bpf -O2 -Iinclude -c examples/c/xdp_action.c
 *   ringway action set netmap:eth0 xdp_action.o --redirect eth1
 */
#include <net/ringway_xdp.h>

#define ETHERNET	14
#define ICMP		1
#define UDP		17

static __attribute__((noinline)) int
udp(unsigned int port)
{
	switch (port) {
	case 9:
		return XDP_DROP;
	case 4000:
		return RINGWAY_REDIRECT(0);
	default:
		return XDP_PASS;
	}
}

/* Sends a frame back to where it came from. */
static int
echo(unsigned char *frame)
{
	for (int i = 0; i < 6; i++) {
		unsigned char byte = frame[i];

		frame[i] = frame[6 + i];
		frame[6 + i] = byte;
	}
	return XDP_TX;
}

/* The length of IP's header is in the packet: what is behind it is asked for. */
static int
ip(struct xdp_md *ctx, unsigned char first, unsigned char protocol)
{
	unsigned char port[2];
	unsigned int header = (first & 0xf) * 4;

	if (protocol == ICMP)
		return XDP_PASS_TO_KERNEL;
	if (protocol != UDP || bpf_xdp_load_bytes(ctx, ETHERNET + header + 2, port, sizeof(port)))
		return XDP_PASS;
	return udp(port[0] << 8 | port[1]);
}

SEC("xdp/firewall") int
firewall(struct xdp_md *ctx)
{
	unsigned char *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (frame + ETHERNET + 20 > end)
		return XDP_PASS;
	switch (frame[12] << 8 | frame[13]) {
	case 0x0800:
		return ip(ctx, frame[ETHERNET], frame[ETHERNET + 9]);
	case 0x0806:
		return XDP_PASS_TO_KERNEL;
	case 0x9000:
		return echo(frame);
	default:
		return XDP_PASS;
	}
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
