/*
 * Keeps from the stack what an interface receives, behind the place where AF_PACKET sockets listen.
 * Ingress of the interface.
 */

/* As ingress_drop.rs fills it in: how many queues there are, and for each whether it is dropped. */
enum { QUEUES, FIRST, LAST = FIRST + 224 };
#define SETTINGS LAST

#include "classifier.h"

SEC("classifier") int ringway_ingress_drop(struct __sk_buff *skb)
{
	__u32 queues = setting(QUEUES);
	__u32 queue = skb->queue_mapping;

	if (skb->pkt_type == PACKET_LOOPBACK)
		return TC_ACT_UNSPEC;
	if (skb->mark == INJECTED) {
		set_mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	/* Counted from 1, as the sockets' filters do it. */
	if (queue && queues > 1)
		queue = (queue - 1) % queues;
	else
		queue = 0;
	return setting(FIRST + queue) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
