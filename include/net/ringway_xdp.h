/*
 * For action programs: BPF that decides what becomes of each frame that an interface receives. A program
 * is a function that is compiled for BPF,
 *
 *   #include <net/ringway_xdp.h>
 *
 *   SEC("xdp") int program(struct xdp_md *ctx) { return XDP_PASS; }
 *
 *   clang -target bpf -O2 -c program.c
 *   ringway action set netmap:eth0 program.o
 *
 * It needs no other header. <linux/bpf.h>, <bpf/bpf_helpers.h> or vmlinux.h may be included before it.
 */
#ifndef NET_RINGWAY_XDP_H
#define NET_RINGWAY_XDP_H

#if !defined(__LINUX_BPF_H__) && !defined(__VMLINUX_H__)
/* The frame, and where it came in. */
struct xdp_md {
	unsigned int data;
	unsigned int data_end;
	unsigned int data_meta;
	unsigned int ingress_ifindex;
	unsigned int rx_queue_index;
	unsigned int egress_ifindex;
};

enum xdp_action {
	XDP_ABORTED,		/* gone, as by XDP_DROP; the kernel traces it */
	XDP_DROP,		/* gone */
	XDP_PASS,		/* to the port, as far as its filter lets it */
	XDP_TX,			/* out of the same interface */
	XDP_REDIRECT,		/* out of another: RINGWAY_REDIRECT(0) */
};
#endif

/* To the interface's stack; the port's filter is not asked. */
#define XDP_PASS_TO_KERNEL	5

/* Out of the interface with that number, of those that `ringway action set --redirect` names. */
#define RINGWAY_REDIRECT(number)	(XDP_REDIRECT | (number) << 8)

#ifndef SEC
#define SEC(name) __attribute__((section(name), used))
#endif

#if !defined(__BPF_HELPERS__) && defined(__bpf__)
/* What a program may ask the kernel: bpf-helpers(7). */
static unsigned long long (*const bpf_ktime_get_ns)(void) = (void *)5;
static unsigned int (*const bpf_get_prandom_u32)(void) = (void *)7;
static unsigned int (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long long (*const bpf_csum_diff)(void *from, unsigned int from_size, void *to,
					unsigned int to_size, unsigned int seed) = (void *)28;
static unsigned long long (*const bpf_ktime_get_boot_ns)(void) = (void *)125;
static unsigned long long (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*const bpf_xdp_load_bytes)(struct xdp_md *ctx, unsigned int offset, void *to,
					unsigned int len) = (void *)189;
static long (*const bpf_xdp_store_bytes)(struct xdp_md *ctx, unsigned int offset, void *from,
					 unsigned int len) = (void *)190;
static unsigned long long (*const bpf_ktime_get_tai_ns)(void) = (void *)208;
#endif

#endif
