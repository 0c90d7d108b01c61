/* What programs of tc have in common. One that has SETTINGS, numbers by their place, says how many. */
#ifndef RINGWAY_CLASSIFIER_H
#define RINGWAY_CLASSIFIER_H

#include "kernel.h"

/* The fields that the programs use. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 not_needed[2];
	__u32 ifindex;
	__u32 not_needed_either[8];
	__u32 data;
	__u32 data_end;
	__u32 nor_these[20];
	__u32 gso_segs;
	__u32 nor_this[2];
	__u32 gso_size;
};

/* A copy for the stack of what it has sent to a group: no interface has received it. */
enum { PACKET_LOOPBACK = 5 };

enum { TC_ACT_SHOT = 2 };
/* tcx's "the next program", and a classifier's "go on". */
enum { TC_ACT_UNSPEC = -1 };

/* The verifier wants the address of a field from the start of the structure: the compiler is to keep no other. */
static inline void set_mark(struct __sk_buff *skb, __u32 mark)
{
	asm volatile("" : "+r"(skb));
	skb->mark = mark;
}

#ifdef SETTINGS

/* Which the daemon fills in. */
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

#endif

#endif
