/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs take from compat.h and fman.h beside an ABI: macros and small functions. */
#include "check.h"

#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/fman.h>
#include <usdpaa/internal/compat.h>

static __PERCPU int of_thread = 7;
static DEFINE_PER_CPU(int, counter);
static spinlock_t lock = SPIN_LOCK_UNLOCKED;
static DECLARE_WAIT_QUEUE_HEAD(queue);

static void *
another(void *seen)
{
	*(int *)seen = of_thread + get_cpu_var(counter);
	put_cpu_var(counter);
	return NULL;
}

static void
threads(void)
{
	int seen = 0, i = 0, __user *there = &i;
	pthread_t thread;
	cpumask_t mask;
	DECLARE_COMPLETION(done);

	of_thread = 8;
	per_cpu(counter, 0) = 5;
	__get_cpu_var(counter) += 1;
	require(pthread_create(&thread, NULL, another, &seen) == 0, "a thread");
	pthread_join(thread, NULL);
	check_number(seen, 7, "another thread has variables of its own");
	check_number(of_thread + per_cpu(counter, 0), 14, "and this one its own");
	CPU_ZERO(&mask);
	cpumask_set_cpu(3, &mask);
	check(cpumask_test_cpu(3, &mask) && NR_CPUS >= 64, "a CPU is in a set");
	cpumask_clear_cpu(3, &mask);
	check(!cpumask_test_cpu(3, &mask), "and is not");
	spin_lock(&lock);
	spin_unlock(&lock);
	init_waitqueue_head(&queue);
	might_sleep();
	might_sleep_if(seen == 0);
	wake_up(&queue);
	*there = 1;
	wait_event(queue, i == 1);
	check_number(wait_event_interruptible(queue, i == 1), 0, "a wait for what is there");
	complete(&done);
	wait_for_completion(&done);
	check_number(done, 0, "it is taken");
	check_number(test_and_clear_bit(0, (unsigned long[1]){ 1 }), 1, "a bit");
}

static void
numbers(void)
{
	unsigned long bits = 0x0f;
	struct kmem_cache *cache = kmem_cache_create("elements", 100, 64, SLAB_HWCACHE_ALIGN, NULL);
	struct ether_addr address = { { 2, 0, 0, 0x1a, 0xff, 9 } };
	u32 word = 0;
	u64 before = mfatb();
	char text[20], *element;

	check_number(find_first_zero_bit(&bits, 64), 4, "the first clear bit");
	check_number(test_and_set_bit(4, &bits), 0, "it is set");
	check_number(find_next_zero_bit(&bits, 64, 1), 5, "the next");
	check_number(find_next_zero_bit(&bits, 5, 1), 5, "none");
	check_number(ALIGN(65, 64), 128, "the next multiple");
	check_number(ALIGN(64, 64), 64, "a multiple");
	cpu_spin(1000);
	check(mfatb() - before >= 1000 && mftb() >= before, "time goes by");
	out_be32(&word, 0x01020304);
	check_number((int)in_be32(&word), 0x01020304, "a register");
	check_number((int)__raw_readl(&word), 0x01020304, "the same");
	dcbit_ro(&word);
	snprintf(text, sizeof(text), ETH_MAC_PRINTF_FMT, ETH_MAC_PRINTF_ARGS(&address));
	check(strcmp(text, "02:00:00:1a:ff:09") == 0, "an address: %s", text);
	require(cache != NULL, "a cache");
	element = kmem_cache_zalloc(cache, GFP_KERNEL);
	check(element != NULL && (uintptr_t)element % 64 == 0 && element[99] == 0, "an element");
	kmem_cache_free(cache, element);
	kmem_cache_destroy(cache);
	hexdump(&address, sizeof(address));
}

int
main(void)
{
	threads();
	numbers();
	return check_result();
}
