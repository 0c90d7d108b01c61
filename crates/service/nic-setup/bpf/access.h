/*
 * Access lists of a switch's ports: filters in classic BPF, which the worker has checked and put into a map. They are
 * interpreted, so another filter is another few words in the map, and nothing has to be verified. A filter has up
 * to FILTER_LENGTH instructions and no scratch memory; the worker sees to ports with others.
 *
 * What is interpreted here, and in the worker, is the frame as the port sends or gets it: with its tag, which may
 * stand beside the frame's bytes.
 */
#ifndef RINGWAY_ACCESS_H
#define RINGWAY_ACCESS_H

#ifndef WITHOUT_FILTERS

enum { FILTER_LENGTH = 64 };

/* As classic BPF has it. */
struct instruction {
	__u16 code;
	__u8 if_true, if_false;
	__u32 k;
};

struct filter {
	struct instruction instructions[FILTER_LENGTH];
};

/* For each port two for what it sends, and two for what it gets: one is at work while the other is written. */
SHARED_ARRAY(filters, struct filter, 4 * PORTS);

static long (*const bpf_skb_load_bytes)(struct __sk_buff *skb, __u32 at, void *to, __u32 size) = (void *)26;
/* Kernel 5.17 and newer. */
static long (*const bpf_loop)(__u32 most, void *step, void *context, __u64 flags) = (void *)181;

struct machine {
	struct __sk_buff *skb;
	/* The filter, and its next instruction. */
	__u32 key, next;
	__u32 a, x;
	/* Of the frame, with its tag. */
	__u32 length;
	/* The tag beside the frame's bytes; 0: there is none. */
	__u32 tag;
	__u32 passes;
};

/*
 * A tag as a number: its type, by which a service's is told from a customer's, and its value. In a frame it stands in
 * the order of the wire.
 */
static inline __u32 tag_of(__u16 kind, __u32 value)
{
	return (__u32)kind << 16 | (value & 0xffff);
}

/*
 * The byte at `at` of a frame with a tag beside its bytes; -1: there is none. Global functions are verified once, and not for
 * each way that leads to them.
 */
__attribute__((noinline)) int tagged_byte(struct __sk_buff *skb, __u32 at, __u32 tag)
{
	__u8 byte = 0;

	if (at >= 12 && at < 16)
		return tag >> 8 * (15 - at) & 0xff;
	if (bpf_skb_load_bytes(skb, at < 12 ? at : at - 4, &byte, 1))
		return -1;
	return byte;
}

/* Bytes in the order of the wire; `size` is 1, 2 or 4. */
static inline __attribute__((always_inline)) int load(const struct machine *machine, __u64 at, __u32 size, __u32 *value)
{
	__u8 bytes[4] = { 0 };
	__u32 sum;

	if (at + size > machine->length)
		return -1;
	if (machine->tag && at < 16 && at + size > 12) {
#pragma unroll
		for (__u32 i = 0; i < 4; i++) {
			int byte = i < size ? tagged_byte(machine->skb, at + i, machine->tag) : 0;

			if (byte < 0)
				return -1;
			bytes[i] = byte;
		}
	} else {
		if (machine->tag && at >= 16)
			at -= 4;
		if (bpf_skb_load_bytes(machine->skb, at, bytes, size))
			return -1;
	}
	sum = (__u32)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
	*value = sum >> (32 - 8 * size);
	return 0;
}

static inline __attribute__((always_inline)) int compute(__u32 operation, __u32 *a, __u32 by)
{
	switch (operation) {
	case 0x00:
		*a += by;
		return 0;
	case 0x10:
		*a -= by;
		return 0;
	case 0x20:
		*a *= by;
		return 0;
	case 0x30:
		if (!by)
			return -1;
		*a /= by;
		return 0;
	case 0x40:
		*a |= by;
		return 0;
	case 0x50:
		*a &= by;
		return 0;
	case 0x60:
		*a = by < 32 ? *a << (by & 31) : 0;
		return 0;
	case 0x70:
		*a = by < 32 ? *a >> (by & 31) : 0;
		return 0;
	case 0x80:
		*a = -*a;
		return 0;
	case 0x90:
		if (!by)
			return -1;
		*a %= by;
		return 0;
	case 0xa0:
		*a ^= by;
		return 0;
	}
	return -1;
}

/*
 * 0, which the verifier does not know: what it knows of the first step, it would follow through each of those that may
 * come, which takes a second and more.
 */
static inline __attribute__((always_inline)) __u32 unknown_zero(__u32 value)
{
	__u32 same = value;

	asm volatile("" : "+r"(same));
	return value - same;
}

/* One instruction. Not 0: the filter has come to its end. */
static long filter_step(__u32 step, void *context)
{
	struct machine *const machine = context;
	const __u32 key = machine->key, at = machine->next & (FILTER_LENGTH - 1);
	const struct filter *filter = bpf_map_lookup_elem(&filters, &key);
	const struct instruction *instruction;
	__u32 code, k, value = 0, is_so;

	(void)step;
	if (!filter)
		return 1;
	instruction = &filter->instructions[at];
	code = instruction->code;
	k = instruction->k;
	machine->next = at + 1 + unknown_zero(key);
	switch (code & 7) {
	case 0:
	case 1: {
		/* How much, and from where. */
		const __u32 size = (code & 0x18) == 0 ? 4 : (code & 0x18) == 8 ? 2 : 1, mode = code & 0xe0;

		if (mode == 0x00) {
			value = k;
		} else if (mode == 0x80) {
			value = machine->length;
		} else if (mode == 0x20 || mode == 0x40 || mode == 0xa0) {
			if (load(machine, (__u64)k + (mode == 0x40 ? machine->x : 0), size, &value))
				return 1;
			if (mode == 0xa0)
				value = 4 * (value & 0xf);
		} else {
			return 1;
		}
		value += unknown_zero(key);
		if (code & 1)
			machine->x = value;
		else
			machine->a = value;
		return 0;
	}
	case 4:
		value = machine->a;
		if (compute(code & 0xf0, &value, code & 8 ? machine->x : k))
			return 1;
		machine->a = value + unknown_zero(key);
		return 0;
	case 5:
		if ((code & 0xf0) == 0) {
			machine->next += k;
			return 0;
		}
		value = code & 8 ? machine->x : k;
		is_so = (code & 0xf0) == 0x10 ? machine->a == value :
			(code & 0xf0) == 0x20 ? machine->a > value :
			(code & 0xf0) == 0x30 ? machine->a >= value : (machine->a & value) != 0;
		machine->next += is_so ? instruction->if_true : instruction->if_false;
		return 0;
	case 6:
		machine->passes = (code & 0x18 ? machine->a : k) != 0;
		return 1;
	case 7:
		if (code & 0x80)
			machine->a = machine->x;
		else
			machine->x = machine->a;
		return 0;
	}
	return 1;
}

/* Whether a filter matches a frame, which has `tag` beside its bytes, if that is not 0. Global, too. */
__attribute__((noinline)) int passes(struct __sk_buff *skb, __u32 key, __u32 tag)
{
	struct machine machine = {
		.skb = skb,
		.key = key,
		.next = unknown_zero(skb->len),
		.a = unknown_zero(skb->len),
		.x = unknown_zero(skb->len),
		.length = skb->len + (tag ? 4 : 0),
		.tag = tag,
	};

	bpf_loop(FILTER_LENGTH, filter_step, &machine, 0);
	return machine.passes;
}

#else

/* No port has a filter. */
static inline __u32 tag_of(__u16 kind, __u32 value)
{
	(void)kind, (void)value;
	return 0;
}

static inline int passes(struct __sk_buff *skb, __u32 key, __u32 tag)
{
	(void)skb, (void)key, (void)tag;
	return 1;
}

#endif

#endif
