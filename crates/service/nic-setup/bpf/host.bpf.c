/*
 * The stack's side of an interface that programs have. What the stack sends through the interface
 * goes to the private pair that ends at the host rings; what comes out of the pair is received by
 * the interface.
 */

/* As host.rs fills them in. */
enum { PAIR, INTERFACE, MARKED, QUEUES, RINGS, MARK, LAST = MARK + 4 };
#define SETTINGS LAST

#include "classifier.h"

enum { BPF_F_INGRESS = 1 };

static long (*const bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from,
					 __u32 len, __u64 flags) = (void *)9;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static __u32 (*const bpf_get_hash_recalc)(struct __sk_buff *skb) = (void *)34;
static long (*const bpf_skb_change_head)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)43;

/* Frames that the stack has sent while no host rings were open. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	__u32 *key;
	__u64 *value;
} dropped SEC(".maps");

/* How what is injected is marked: not at all, in front of the frame, beside it. */
enum { NOT_MARKED, MARKED_IN_FRONT, MARKED_BESIDE };

/*
 * The queue by which the stack would send. It chooses after this program only; so this chooses as it
 * does where nobody has told it otherwise: as it was received, or by the flow's hash.
 */
static inline __u32 queue_of(struct __sk_buff *skb)
{
	const __u32 queues = setting(QUEUES);

	if (skb->queue_mapping)
		return (skb->queue_mapping - 1) % queues;
	return (__u64)bpf_get_hash_recalc(skb) * queues >> 32;
}

static inline void count_dropped(void)
{
	const __u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&dropped, &only);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/*
 * Egress of the interface. Where there is no pair, interface 0, the kernel drops: the stack takes the frame
 * for sent, so it is counted here.
 */
SEC("classifier") int ringway_redirect(struct __sk_buff *skb)
{
	const __u32 rings = setting(RINGS), pair = setting(PAIR);

	if (skb->mark == FORWARDED) {
		set_mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	/* The pair's queues are the host rings. It takes this one, unless the socket has another. */
	if (rings > 1)
		skb->queue_mapping = queue_of(skb) % rings + 1;
	if (!pair)
		count_dropped();
	return bpf_redirect(pair, 0);
}

/* Ingress of the pair's end in the stack's namespace. */
SEC("classifier") int ringway_inject(struct __sk_buff *skb)
{
	__u32 marked = setting(MARKED);

	if (marked == MARKED_BESIDE)
		skb->mark = INJECTED;
	if (marked == MARKED_IN_FRONT) {
		const __u32 mark[] = { setting(MARK), setting(MARK + 1), setting(MARK + 2),
				       setting(MARK + 3) };

		if (bpf_skb_change_head(skb, sizeof(mark), 0) ||
		    bpf_skb_store_bytes(skb, 0, mark, sizeof(mark), 0))
			return TC_ACT_SHOT;
	}
	return bpf_redirect(setting(INTERFACE), BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
