/*
 * Frames from one port of a switch to another, by the switch's own table: what the program is sure of never
 * comes to user space. A port is an attached interface, at its ingress, or the host's stack behind one, at
 * the interface's egress.
 *
 * Sure is: one machine sends to another, the switch knows both, each behind a port that takes part and has the
 * frame's VLAN, and the source is the one by which the frame came. All else goes to the worker, by a pair of
 * interfaces: of tags, those that are in the frame's bytes, that name no VLAN, or that have another behind them.
 *
 * What no machine has as its address is no source: what an interface has received with a group's, or with zero, goes
 * nowhere.
 *
 * An interface and its stack are on one wire: what is for all, or perhaps for the other of the two, goes
 * on as it would without a switch, and the worker, which has a copy, gives it to the others alone. So a
 * capture of the interface sees each frame once.
 *
 * A flow changes its path when an address is learned. So that its frames stay in order, each frame that
 * goes to the worker has a number, and the last one of each of a port's pairs of addresses is noted: frames of that
 * pair go to the worker, too, until it has seen that one.
 *
 * The worker writes `table`, `ports`, `vlans`, `filters` and `settings`, the program the others; see the crate
 * ringway-fastpath, which has the same layouts.
 */
#include "classifier.h"

enum { BPF_F_MMAPABLE = 1 << 10 };

enum { SETS = 1024, WAYS = 4, PORTS = 256, PAIRS_OF_PORT = 256, PAIRS = PORTS * PAIRS_OF_PORT };

/*
 * Of a port: it takes part, is a stack, has nothing to do with others that are isolated, may send so much only, has
 * filters for what it sends and gets, and which of two they are.
 */
enum {
	TAKES_PART = 1,
	IS_STACK = 2,
	IS_ISOLATED = 4,
	IS_POLICED = 8,
	FILTERS_SENT = 16,
	FILTERS_RECEIVED = 32,
	SECOND_SENT = 64,
	SECOND_RECEIVED = 128,
};
/* Of the switch: it looks at VLAN tags. */
enum { LOOKS_AT_TAGS = 1 };

/* No VLAN, no port. */
#define NONE 0xffffffff

/*
 * In the word of an address's port: it does not age; and if so, the worker has had no frame from it yet that its
 * port may send. Above these are bits of the address's hash.
 */
#define IS_STATIC 0x100
#define IS_SILENT 0x200
#define TAG_SHIFT 10

/* In `places`: the port of the stack, where the other is the interface's. */
#define OF_STACK 0x80000000

enum { BPF_F_INGRESS = 1 };

/* Bytes of headers that each further segment of a frame has; as in ringway-fastpath. */
#define SEGMENT_HEADERS 66

/* Bytes that a port may have sent too many, for a frame was longer than its burst. */
#define DEBT (16 << 20)

/* How long frames wait for the worker to see those before them, in nanoseconds. */
#define PATIENCE 50000000ULL

static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*const bpf_redirect_peer)(__u32 ifindex, __u64 flags) = (void *)155;
static long (*const bpf_skb_vlan_push)(struct __sk_buff *skb, __u16 kind, __u16 tag) = (void *)18;
static long (*const bpf_skb_vlan_pop)(struct __sk_buff *skb) = (void *)19;
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;

struct set {
	__u64 key[WAYS];
	__u32 port[WAYS];
	__u32 unused[4];
};

struct seen {
	__u32 second[WAYS];
};

struct port {
	/* Its frames up to this number have been seen by the worker. */
	__u64 drained;
	__u32 flags;
	__u32 ifindex;
	/* The VLAN of its untagged frames. */
	__u32 vid;
	/* Bytes that it sends in one frame. */
	__u32 max_frame;
	/* The interface's stack, or the stack's interface, if frames pass between the two; or NONE. */
	__u32 beside;
	__u32 unused[9];
};

/* A bit for each VLAN in which a port's frames are tagged. */
struct vlans {
	__u64 tagged[64];
};

struct settings {
	__u64 secret[2];
	__u32 flags;
	/* Seconds; 0: for ever. */
	__u32 ageing;
	__u32 cpus;
	__u32 unused;
	/* Of the source of the worker's own frames, by which it looks for loops, the first five bytes; 0: it does not. */
	__u64 probe;
	__u32 unused_either[6];
};

struct begun {
	__u64 number;
	__u64 unused[7];
};

struct counts {
	__u64 sent_packets;
	__u64 sent_bytes;
	__u64 received_packets;
	__u64 received_bytes;
	__u64 too_long;
	/* Frames that may have overtaken others. */
	__u64 reordered;
	/* Of which the worker did not get its copy. */
	__u64 not_copied;
	/* For a port that is isolated, from such a port. */
	__u64 isolated;
};

/* What a port may send; see rate.rs in ringway-fastpath. */
struct policing {
	/* Bytes that a nanosecond earns: whole ones, and 2^64ths of one. */
	__u64 whole;
	__u64 fraction;
	__u64 burst;
	/* Bytes that are spent of what was earned, and frames that were too many: the program's. */
	__u64 spent;
	__u64 over;
	/* Frames that the port's filters do not match, of what it has sent and of what is for it. */
	__u64 denied_sent;
	__u64 denied_received;
	/* Bytes of the frames that were too many, of those that the filter of what it has sent does not match, and of
	 * the following. */
	__u64 refused_bytes;
	/* Frames with a source that no machine has. */
	__u64 bad_source;
	__u64 unused[7];
};

/* Of a port's frames between all pairs of addresses with the same hash. */
struct pair {
	/* The last frame that has gone to the worker. */
	__u64 number;
	/* When frames of the pair began to wait; 0: they do not. */
	__u64 since;
};

struct place {
	__u32 port;
	/* The pair of interfaces that leads to the worker. */
	__u32 slow;
};

#define SHARED_ARRAY(name, type_of_value, entries)          \
	struct {                                            \
		int (*type)[BPF_MAP_TYPE_ARRAY];            \
		int (*map_flags)[BPF_F_MMAPABLE];           \
		int (*max_entries)[entries];                \
		__u32 *key;                                 \
		type_of_value *value;                       \
	} name SEC(".maps")

SHARED_ARRAY(table, struct set, SETS);
SHARED_ARRAY(seen, struct seen, SETS);
SHARED_ARRAY(ports, struct port, PORTS);
SHARED_ARRAY(vlans, struct vlans, PORTS);
SHARED_ARRAY(settings, struct settings, 1);
SHARED_ARRAY(begun, struct begun, PORTS);
/* For each port and each processor; as many as switch.rs says. */
SHARED_ARRAY(counts, struct counts, PORTS);
SHARED_ARRAY(policing, struct policing, PORTS);

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[PAIRS];
	__u32 *key;
	struct pair *value;
} pairs SEC(".maps");

#include "access.h"

/* By the interface's number. */
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[PORTS];
	__u32 *key;
	struct place *value;
} places SEC(".maps");

static inline __u64 upper_half(__u64 a, __u64 b)
{
	const __u64 a0 = (__u32)a, a1 = a >> 32, b0 = (__u32)b, b1 = b >> 32;
	const __u64 low = a0 * b0, middle = a1 * b0 + (low >> 32);

	return a1 * b1 + (middle >> 32) + ((a0 * b1 + (__u32)middle) >> 32);
}

/* As ringway-fastpath has it. The set is said by the upper ten bits, the tag by the lower ones of the upper half. */
static inline __u64 hash_of(const struct settings *settings, __u64 key)
{
	const __u64 a = key ^ settings->secret[0];
	const __u64 b = (key << 32 | key >> 32) ^ settings->secret[1];

	return (upper_half(a, b) ^ (a * b)) * 0x9e3779b97f4a7c15ULL;
}

/* Who knows an address: the port, and where it is noted when that was last seen. */
struct known {
	__u32 port;
	__u32 is_static;
	__u32 is_silent;
	__u32 *second;
};

static inline __attribute__((always_inline)) struct known
look_up(const struct settings *settings, __u64 key)
{
	const __u64 hash = hash_of(settings, key);
	const __u32 at = hash >> 54, tag = (__u32)(hash >> 32) << TAG_SHIFT;
	const struct set *set = bpf_map_lookup_elem(&table, &at);
	struct seen *times = bpf_map_lookup_elem(&seen, &at);
	struct known known = { NONE, 0, 0, 0 };

	if (!set || !times)
		return known;
#pragma unroll
	for (int way = 0; way < WAYS; way++) {
		if (*(const volatile __u64 *)&set->key[way] == key) {
			const __u32 word = *(const volatile __u32 *)&set->port[way];

			/* The worker may have put another address there, before the key was read or since. */
			if (!((word ^ tag) >> TAG_SHIFT)) {
				known.port = word & 0xff;
				known.is_static = word & IS_STATIC;
				known.is_silent = word & IS_SILENT;
				known.second = &times->second[way];
			}
		}
	}
	return known;
}

/*
 * Whether a frame is more than its port may send. It is paid for if it is not. Processors pay into one bucket:
 * which of them was first is seen by the number.
 */
static inline __attribute__((always_inline)) int is_over_rate(struct __sk_buff *skb, __u32 port, __u32 tag)
{
	struct policing *policing_ = bpf_map_lookup_elem(&policing, &port);
	const __u32 size = skb->gso_size;
	__u64 bytes = skb->len, now, earned;
	__s64 burst;

	if (!policing_)
		return 0;
	if (size) {
		const __u32 known = skb->gso_segs, segments = known ? known : (__u32)bytes / size + 1;

		bytes += (segments - 1) * SEGMENT_HEADERS;
	}
	now = bpf_ktime_get_ns();
	earned = now * policing_->whole + upper_half(now, policing_->fraction);
	burst = policing_->burst;
#pragma unroll
	for (int attempt = 0; attempt < 4; attempt++) {
		const __u64 spent = *(const volatile __u64 *)&policing_->spent;
		__s64 left = earned - spent;

		/* What is not to be had by the rate and the burst is of another rate. */
		if (left > burst || left < -burst - DEBT)
			left = burst;
		if (left < (__s64)bytes && left < burst) {
			__sync_fetch_and_add(&policing_->over, 1);
			__sync_fetch_and_add(&policing_->refused_bytes, skb->len + tag);
			return 1;
		}
		if (__sync_val_compare_and_swap(&policing_->spent, spent, earned - left + bytes) == spent)
			return 0;
	}
	/* Others were first each time: they have brought the number up to date. */
	__sync_fetch_and_add(&policing_->spent, bytes);
	return 0;
}

/* Whether the source of a frame, behind the destination, is a group's address or zero. */
static inline int has_no_source(const __u8 *data)
{
	return data[6] & 1 || !(data[6] | data[7] | data[8] | data[9] | data[10] | data[11]);
}

/*
 * Whether a frame is one of those by which switches look for loops: the worker is to see it, which has the port's filter
 * as well; and if the port has sent too much, those of this switch alone, whose source nobody guesses.
 */
static inline __attribute__((always_inline)) int
is_probe(const __u8 *data, const struct settings *settings, int *is_own)
{
	__u64 source = 0;

	if (data[0] != 0xcf || data[1] | data[2] | data[3] | data[4] | data[5])
		return 0;
#pragma unroll
	for (int at = 4; at >= 0; at--)
		source = source << 8 | data[6 + at];
	*is_own = source == *(const volatile __u64 *)&settings->probe;
	return 1;
}

/* The type of a frame with a tag of a VLAN that the switch looks at; and the same in the order of the wire. */
#define CUSTOMERS 0x8100
#define TAG in_wires_order(CUSTOMERS)

/* There and back. */
static inline __u16 in_wires_order(__u16 number)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(number) : number;
}

/* The tag beside a frame's bytes; 0: there is none. */
static inline __u32 tag_beside(const struct __sk_buff *skb)
{
	return skb->vlan_present ? tag_of(in_wires_order(skb->vlan_proto), skb->vlan_tci) : 0;
}

static inline int is_tagged_in(__u32 port, __u32 vid)
{
	const struct vlans *of_port = bpf_map_lookup_elem(&vlans, &port);

	return of_port && *(const volatile __u64 *)&of_port->tagged[vid >> 6 & 63] >> (vid & 63) & 1;
}

static inline struct counts *counts_of(__u32 port, __u32 cpus)
{
	const __u32 at = port * cpus + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&counts, &at);
}

/*
 * To the worker, with a number that `pair` notes, if there is one. And if `known`, the port that the frame is
 * for, is the one beside or not known, on as without a switch: that comes after the number, as the worker sets
 * the one beside before it looks at the numbers. So it knows from which frame on they have passed.
 */
static inline __attribute__((always_inline)) int
slow_path(struct __sk_buff *skb, const struct place *place, const struct port *from, struct pair *pair,
	  __u32 known, __u32 cpus, const int is_stack)
{
	const __u32 port = place->port, slow = place->slow;
	struct begun *number = bpf_map_lookup_elem(&begun, &port);
	__u32 beside = NONE;

	if (number) {
		const __u64 own = __sync_fetch_and_add(&number->number, 1) + 1;

		if (pair)
			pair->number = own;
	}
	if (from)
		beside = *(const volatile __u32 *)&from->beside;
	if (beside != NONE && (known == NONE || known == beside)) {
		struct counts *received = counts_of(beside, cpus), *sent = counts_of(port, cpus);

		if (received) {
			received->received_packets++;
			received->received_bytes += skb->len + (skb->vlan_present ? 4 : 0);
		}
		if (bpf_clone_redirect(skb, slow, 0) && sent)
			sent->not_copied++;
		return TC_ACT_UNSPEC;
	}
	return is_stack ? bpf_redirect(slow, 0) : bpf_redirect_peer(slow, 0);
}

static inline __attribute__((always_inline)) int forward(struct __sk_buff *skb, const int is_stack)
{
	const __u32 only = 0, index = skb->ifindex | (is_stack ? OF_STACK : 0);
	const __u8 *const data = (void *)(__u64)skb->data, *const end = (void *)(__u64)skb->data_end;
	const struct place *place;
	const struct settings *settings_;
	const struct port *from, *to;
	struct known source, destination;
	struct counts *sent, *received;
	struct policing *policing_;
	struct pair *pair;
	const __u32 tag = skb->vlan_present ? 4 : 0;
	__u64 dst = 0, src = 0, vlan;
	__u32 second, cpus, hash, key, vid, leaves_with = tag, known = NONE;
	int looks = 0, is_own = 0;

	place = bpf_map_lookup_elem(&places, &index);
	if (!place)
		return TC_ACT_SHOT;
	settings_ = bpf_map_lookup_elem(&settings, &only);
	key = place->port;
	from = bpf_map_lookup_elem(&ports, &key);
	cpus = settings_ ? settings_->cpus : 0;
	if (!is_stack && data + 14 <= end && has_no_source(data)) {
		policing_ = bpf_map_lookup_elem(&policing, &key);
		if (policing_) {
			__sync_fetch_and_add(&policing_->bad_source, 1);
			__sync_fetch_and_add(&policing_->refused_bytes, skb->len + tag);
		}
		return TC_ACT_SHOT;
	}
	if (settings_ && data + 14 <= end)
		looks = is_probe(data, settings_, &is_own);
	if (from && from->flags & FILTERS_SENT && !looks &&
	    !passes(skb, 4 * key + !!(from->flags & SECOND_SENT), tag_beside(skb))) {
		policing_ = bpf_map_lookup_elem(&policing, &key);
		if (policing_) {
			__sync_fetch_and_add(&policing_->denied_sent, 1);
			__sync_fetch_and_add(&policing_->refused_bytes, skb->len + tag);
		}
		return TC_ACT_SHOT;
	}
	if (from && from->flags & IS_POLICED && !is_own && is_over_rate(skb, key, tag))
		return TC_ACT_SHOT;
	if (!settings_ || !from || data + 14 > end || data[0] & 1)
		return slow_path(skb, place, from, 0, NONE, cpus, is_stack);
#pragma unroll
	for (int at = 5; at >= 0; at--) {
		dst = dst << 8 | data[at];
		src = src << 8 | data[6 + at];
	}
	/* Numbers are a port's own, so no other's are in its place. */
	hash = key * PAIRS_OF_PORT + (((dst ^ (src << 7 | src >> 41)) * 0x9e3779b97f4a7c15ULL) >> 56);
	pair = bpf_map_lookup_elem(&pairs, &hash);
	if (!pair)
		return slow_path(skb, place, 0, 0, NONE, cpus, is_stack);
	if (!(from->flags & TAKES_PART))
		goto unsure;
	vid = from->vid;
	if (settings_->flags & LOOKS_AT_TAGS) {
		if (data[12] == 0x81 && data[13] == 0)
			goto unsure;
		if (tag) {
			vid = skb->vlan_tci & 0xfff;
			if ((__u16)skb->vlan_proto != TAG || !vid || !is_tagged_in(place->port, vid))
				goto unsure;
		}
	}
	if (vid == NONE)
		goto unsure;
	vlan = (__u64)vid << 48;
	destination = look_up(settings_, dst | vlan);
	second = bpf_ktime_get_coarse_ns() / 1000000000;
	if (!destination.second ||
	    (settings_->ageing && !destination.is_static &&
	     (__u64)*destination.second + settings_->ageing < second))
		goto unsure;
	known = key = destination.port;
	source = look_up(settings_, src | vlan);
	if (source.port != place->port || source.is_silent || !source.second || key == place->port)
		goto unsure;
	to = bpf_map_lookup_elem(&ports, &key);
	if (!to || !(to->flags & TAKES_PART))
		goto unsure;
	if (settings_->flags & LOOKS_AT_TAGS)
		leaves_with = to->vid == vid ? 0 : 4;
	if (to->vid != vid && !is_tagged_in(key, vid))
		goto unsure;
	if (*source.second != second)
		*source.second = second;
	sent = counts_of(place->port, cpus);
	received = counts_of(key, cpus);
	if (!sent || !received)
		goto unsure;
	if (from->flags & to->flags & IS_ISOLATED) {
		sent->sent_packets++;
		sent->sent_bytes += skb->len + tag;
		sent->isolated++;
		return TC_ACT_SHOT;
	}
	/* What passes to the one beside does not wait for the worker. */
	if (pair->number > *(const volatile __u64 *)&from->drained && key != from->beside) {
		const __u64 now = bpf_ktime_get_coarse_ns();

		if (!pair->since)
			pair->since = now;
		if (now - pair->since < PATIENCE)
			return slow_path(skb, place, from, pair, known, cpus, is_stack);
		/* The worker does not keep up with what comes: waiting would end with losses. */
		sent->reordered++;
		pair->number = 0;
	}
	pair->since = 0;
	sent->sent_bytes += skb->len + tag;
	/* A tag is not counted. */
	if (!skb->gso_size && skb->len > to->max_frame + 4) {
		sent->sent_packets++;
		received->too_long++;
		return TC_ACT_SHOT;
	}
	if (to->flags & FILTERS_RECEIVED &&
	    !passes(skb, 4 * key + 2 + !!(to->flags & SECOND_RECEIVED),
		    !leaves_with ? 0 : tag ? tag_beside(skb) : tag_of(CUSTOMERS, vid))) {
		sent->sent_packets++;
		policing_ = bpf_map_lookup_elem(&policing, &key);
		if (policing_)
			__sync_fetch_and_add(&policing_->denied_received, 1);
		return TC_ACT_SHOT;
	}
	/*
	 * It fails for want of memory, and for a frame that ends within the tag behind that which is taken. What is not
	 * copied counts as sent by itself.
	 */
	if (leaves_with != tag && (tag ? bpf_skb_vlan_pop(skb) : bpf_skb_vlan_push(skb, TAG, vid))) {
		sent->not_copied++;
		return TC_ACT_SHOT;
	}
	sent->sent_packets++;
	received->received_packets++;
	/* Behind a tag that was taken there may be another, which is beside the frame then. */
	received->received_bytes += skb->len + (skb->vlan_present ? 4 : 0);
	if (to->ifindex == from->ifindex)
		return TC_ACT_UNSPEC;
	set_mark(skb, to->flags & IS_STACK ? INJECTED : FORWARDED);
	return bpf_redirect(to->ifindex, to->flags & IS_STACK ? BPF_F_INGRESS : 0);
unsure:
	pair->since = 0;
	return slow_path(skb, place, from, pair, known, cpus, is_stack);
}

SEC("classifier") int ringway_switch(struct __sk_buff *skb)
{
	/* What the stack says to itself, without a header of Ethernet. */
	if (skb->pkt_type == PACKET_LOOPBACK)
		return TC_ACT_UNSPEC;
	if (skb->mark == INJECTED) {
		set_mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	return forward(skb, 0);
}

/* What the switch has sent goes on to the wire. */
SEC("classifier") int ringway_stack(struct __sk_buff *skb)
{
	if (skb->mark == FORWARDED) {
		set_mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	return forward(skb, 1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
