/*
 * Gives each frame to the AF_XDP socket bound to the queue it came in by; a queue without a socket
 * goes on to the stack.
 *
 * The few kernel names used are declared here, so that clang alone can compile this.
 */
typedef unsigned int __u32;

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

enum { XDP_PASS = 2 };
enum { BPF_MAP_TYPE_XSKMAP = 17 };

static long (*const bpf_redirect_map)(void *map, unsigned long key, unsigned long flags) = (void *)51;

#define SEC(name) __attribute__((section(name), used))

/* queue -> socket; as many as program.rs says in QUEUES */
struct {
	int (*type)[BPF_MAP_TYPE_XSKMAP];
	int (*max_entries)[64];
	__u32 *key;
	__u32 *value;
} xsks SEC(".maps");

SEC("xdp") int ringway_xdp(struct xdp_md *ctx)
{
	/* The low bits of the flags are what happens to a queue without a socket. */
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
