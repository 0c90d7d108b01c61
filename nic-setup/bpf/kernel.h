/* The few kernel names that the programs use, declared here so that clang alone can compile them. */
#ifndef RINGWAY_KERNEL_H
#define RINGWAY_KERNEL_H

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_XSKMAP = 17 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

/*
 * Stands in front of a frame that a program has sent to the stack, where a generic XDP program
 * looks at what the stack receives: so it knows such a frame from those of the wire. Whoever sends
 * it from outside gains nothing: what follows goes to the stack, as all that he sends once did.
 */
#define MARK_0 0x52696e67776179ULL
#define MARK_1 0x746f737461636b21ULL

struct mark {
	__u64 word[2];
};

/* The same for who listens where frames have a mark of the kernel's. ingress_drop.rs has it, too. */
#define INJECTED 0x72696e67

#endif
