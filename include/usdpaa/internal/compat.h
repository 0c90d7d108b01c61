/* Some programs include compat.h by this name. It has what the SDK's own sources use besides. */
#ifndef USDPAA_INTERNAL_COMPAT_H
#define USDPAA_INTERNAL_COMPAT_H

#include "../compat.h"

/* One thread waits for another, and polls its portals meanwhile. */
#define DECLARE_COMPLETION(name) int name = 0
#define complete(done) ((void)(*(done) = 1))
#define wait_for_completion(done) \
	do { \
		wait_event(0, *(volatile int *)(done)); \
		*(done) = 0; \
	} while (0)

#define __iomem
#define __raw_readb(p) (*(const volatile u8 *)(p))
#define __raw_readl(p) (*(const volatile u32 *)(p))
#define __raw_writel(v, p) ((void)(*(volatile u32 *)(p) = (v)))

/* Caches of elements of one size. */
struct kmem_cache {
	size_t sz;
	size_t align;
};
#define SLAB_HWCACHE_ALIGN 0
static inline struct kmem_cache *kmem_cache_create(const char *name, size_t bytes, size_t align,
						   unsigned long flags, void (*constructor)(void *))
{
	struct kmem_cache *cache = (struct kmem_cache *)malloc(sizeof(*cache));
	(void)name;
	(void)flags;
	(void)constructor;
	if (cache) {
		cache->sz = bytes;
		cache->align = align < sizeof(void *) ? sizeof(void *) : align;
	}
	return cache;
}
static inline void kmem_cache_destroy(struct kmem_cache *cache)
{
	free(cache);
}
static inline void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags)
{
	void *element;
	(void)flags;
	return posix_memalign(&element, cache->align, cache->sz) ? NULL : element;
}
static inline void *kmem_cache_zalloc(struct kmem_cache *cache, gfp_t flags)
{
	void *element = kmem_cache_alloc(cache, flags);
	return element ? memset(element, 0, cache->sz) : NULL;
}
static inline void kmem_cache_free(struct kmem_cache *cache, void *element)
{
	(void)cache;
	free(element);
}

/* Marks of the kernel's sources, which mean nothing in a program. */
typedef u32 phandle;
typedef u32 irqreturn_t;
#define IRQ_HANDLED 0
#define EXPORT_SYMBOL(name)
#define local_irq_disable() ((void)0)
#define local_irq_enable() ((void)0)
#define local_irq_save(flags) ((void)(flags))
#define local_irq_restore(flags) ((void)(flags))

#endif
