/* The few kernel names that the programs use, declared here so that clang alone can compile them. */
#ifndef RINGWAY_KERNEL_H
#define RINGWAY_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef long long __s64;

#define SEC(name) __attribute__((section(name), used))

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_XSKMAP = 17 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

/*
 * The kernel's mark of a frame that a program has sent to the stack, where sockets listen.
 * ingress_drop.rs has it, too.
 */
#define INJECTED 0x72696e67

/*
 * The kernel's mark of a frame that a switch's program sends from one interface to another: what takes
 * from an interface what its stack sends lets it pass.
 */
#define FORWARDED 0x72696e66

#endif
