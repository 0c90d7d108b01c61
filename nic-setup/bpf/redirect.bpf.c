/*
 * Gives each frame to the AF_XDP socket bound to the queue it came in by; a queue without a socket
 * goes on to the stack.
 */
#include "kernel.h"

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

enum { XDP_PASS = 2 };

static long (*const bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*const bpf_redirect_map)(void *map, unsigned long key, unsigned long flags) = (void *)51;

/* queue -> socket; as many as program.rs says in QUEUES */
struct {
	int (*type)[BPF_MAP_TYPE_XSKMAP];
	int (*max_entries)[64];
	__u32 *key;
	__u32 *value;
} xsks SEC(".maps");

static inline int redirect(struct xdp_md *ctx)
{
	/* The low bits of the flags are what happens to a queue without a socket. */
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

SEC("xdp") int ringway_xdp(struct xdp_md *ctx)
{
	return redirect(ctx);
}

/* The same, for frames of several buffers too: kernel 5.18 and newer. */
SEC("xdp.frags") int ringway_frags(struct xdp_md *ctx)
{
	return redirect(ctx);
}

/* In generic mode all that the stack receives comes by here, what programs send to it included. */
SEC("xdp") int ringway_generic(struct xdp_md *ctx)
{
	const struct mark *mark = (void *)(__u64)ctx->data;
	const void *end = (void *)(__u64)ctx->data_end;

	if ((const void *)(mark + 1) > end || mark->word[0] != MARK_0 || mark->word[1] != MARK_1)
		return redirect(ctx);
	bpf_xdp_adjust_head(ctx, sizeof(*mark));
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
