/*
 * Keeps from the stack what an interface receives, behind the place where AF_PACKET sockets listen.
 * Ingress of the interface.
 */

/* As ingress_drop.rs fills it in: how many queues there are, and for each whether it is dropped. */
enum { QUEUES, FIRST, SETTINGS = FIRST + 64 };

#include "classifier.h"

enum { TCX_NEXT = -1, TCX_DROP = 2 };

SEC("classifier") int ringway_ingress_drop(struct __sk_buff *skb)
{
	__u32 queues = setting(QUEUES);
	__u32 queue = skb->queue_mapping;

	if (skb->mark == INJECTED) {
		skb->mark = 0;
		return TCX_NEXT;
	}
	/* Counted from 1, as the sockets' filters do it. */
	if (queue && queues > 1)
		queue = (queue - 1) % queues;
	else
		queue = 0;
	return setting(FIRST + queue) ? TCX_DROP : TCX_NEXT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
