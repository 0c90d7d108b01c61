/*
 * Doubly linked lists, as USDPAA's headers and programs use them: a node lies within each element, and the head is a
 * node too. A list is empty when its head points to itself.
 */
#ifndef USDPAA_COMPAT_LIST_H
#define USDPAA_COMPAT_LIST_H

#include <stddef.h>

struct list_head {
	struct list_head *prev, *next;
};

#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
#endif

#define LIST_HEAD_INIT(head) { &(head), &(head) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
#define INIT_LIST_HEAD(p) ((void)((p)->prev = (p)->next = (p)))

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_empty(head) ((head)->next == (head))

static inline void __list_insert(struct list_head *node, struct list_head *before, struct list_head *after)
{
	node->prev = before;
	node->next = after;
	before->next = node;
	after->prev = node;
}

/* In front of all others. */
static inline void list_add(struct list_head *node, struct list_head *head)
{
	__list_insert(node, head, head->next);
}

/* Behind all others. */
static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	__list_insert(node, head->prev, head);
}

/* The node's own pointers stay as they are. */
static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

static inline void list_del_init(struct list_head *node)
{
	list_del(node);
	INIT_LIST_HEAD(node);
}

#define list_for_each(i, head) for ((i) = (head)->next; (i) != (head); (i) = (i)->next)

/* The element that is looked at may be deleted. */
#define list_for_each_safe(i, j, head) \
	for ((i) = (head)->next, (j) = (i)->next; (i) != (head); (i) = (j), (j) = (i)->next)

#define list_for_each_entry(i, head, member) \
	for ((i) = list_entry((head)->next, __typeof__(*(i)), member); &(i)->member != (head); \
	     (i) = list_entry((i)->member.next, __typeof__(*(i)), member))

#define list_for_each_entry_safe(i, j, head, member) \
	for ((i) = list_entry((head)->next, __typeof__(*(i)), member), \
	     (j) = list_entry((i)->member.next, __typeof__(*(i)), member); \
	     &(i)->member != (head); \
	     (i) = (j), (j) = list_entry((j)->member.next, __typeof__(*(j)), member))

#endif
