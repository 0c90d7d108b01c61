/* What programs of tc have in common. Whoever includes it has said how many SETTINGS there are. */
#ifndef RINGWAY_CLASSIFIER_H
#define RINGWAY_CLASSIFIER_H

#include "kernel.h"

/* As far as it is needed here. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
};

/* Numbers by their place, which the daemon fills in. */
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
