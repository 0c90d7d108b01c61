/*
 * The stack's side of an interface that programs have. What the stack sends through the interface
 * goes to the private pair that ends at the host rings; what comes out of the pair is received by
 * the interface.
 */
#include "kernel.h"

struct __sk_buff;

enum { TC_ACT_SHOT = 2 };
enum { BPF_F_INGRESS = 1 };

static long (*const bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from,
					 __u32 len, __u64 flags) = (void *)9;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*const bpf_skb_change_head)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)43;

/* As host.rs fills them in. */
enum { PAIR, INTERFACE, MARKED, SETTINGS };

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[SETTINGS];
	__u32 *key;
	__u32 *value;
} settings SEC(".maps");

static inline __u32 setting(__u32 key)
{
	const __u32 *value = bpf_map_lookup_elem(&settings, &key);

	return value ? *value : 0;
}

/* Egress of the interface. Where there is no pair, interface 0, the kernel drops without a word. */
SEC("classifier") int ringway_divert(struct __sk_buff *skb)
{
	return bpf_redirect(setting(PAIR), 0);
}

/* Ingress of the pair's end in the stack's namespace. */
SEC("classifier") int ringway_inject(struct __sk_buff *skb)
{
	if (setting(MARKED)) {
		const struct mark mark = { { MARK_0, MARK_1 } };

		if (bpf_skb_change_head(skb, sizeof(mark), 0) ||
		    bpf_skb_store_bytes(skb, 0, &mark, sizeof(mark), 0))
			return TC_ACT_SHOT;
	}
	return bpf_redirect(setting(INTERFACE), BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
