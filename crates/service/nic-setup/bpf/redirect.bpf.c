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
	int (*max_entries)[224];
	__u32 *key;
	__u32 *value;
} xsks SEC(".maps");

/*
 * Stands in front of a frame that a program has sent to the stack, where the program in generic mode
 * looks at what the stack receives: so it knows such a frame from those of the wire. It is a secret
 * of this program and the one that puts it there: see mark.rs.
 */
struct mark {
	__u64 word[2];
};

/* The mark, or zeros: there is none. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	__u32 *key;
	struct mark *value;
} marks SEC(".maps");

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
	const __u32 only = 0;
	const struct mark *known = bpf_map_lookup_elem(&marks, &only);
	const struct mark *mark = (void *)(__u64)ctx->data;
	const void *end = (void *)(__u64)ctx->data_end;

	if (!known || !known->word[0] || (const void *)(mark + 1) > end ||
	    mark->word[0] != known->word[0] || mark->word[1] != known->word[1])
		return redirect(ctx);
	bpf_xdp_adjust_head(ctx, sizeof(*mark));
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
