/* Memory for buffers, with addresses that frames carry: USDPAA's dma_mem.h. */
#ifndef DMA_MEM_H
#define DMA_MEM_H

#pragma GCC system_header
#include "compat.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Flags of dma_mem_create. A map is private and has no name; or it is shared with other processes of the user by a name of 1
 * to 15 bytes: with NEW it is made, or taken if it is there and LAZY is set, too. READONLY is for shared ones that are not
 * allocated from. A map that is to be allocated from has ALLOC; a shared one is so by all processes together that give it.
 */
#define DMA_MAP_FLAG_SHARED   0x1
#define DMA_MAP_FLAG_NEW      0x2
#define DMA_MAP_FLAG_LAZY     0x4
#define DMA_MAP_FLAG_READONLY 0x8
#define DMA_MAP_FLAG_ALLOC    0x10

/* What a map begins with: addresses of its first byte, for frames and for the program. */
struct __dma_mem_addr {
	dma_addr_t phys;
	void *virt;
};

struct dma_mem;

/* The map that functions use which do not name one. The program sets it. */
extern struct dma_mem *dma_mem_generic;

/*
 * NULL, and a line on standard error, if the arguments do not agree, there are 64 maps, or there is no memory. `len` 0: that of
 * the shared map that is there.
 */
struct dma_mem *dma_mem_create(uint32_t flags, const char *map_name, size_t len);
/* Nobody uses its memory any more. */
void dma_mem_destroy(struct dma_mem *map);
void dma_mem_params(struct dma_mem *map, uint32_t *flags, const char **map_name, size_t *len);
/* All of it: for maps without ALLOC. NULL otherwise. */
void *dma_mem_raw(struct dma_mem *map, size_t *len);
/* boundary is a power of two; 0 means 1. NULL when there is no room, or the map is not allocated from. */
void *dma_mem_memalign(struct dma_mem *map, size_t boundary, size_t size);
/* Any process that allocates from a shared map may free what another has: by its own address of it. */
void dma_mem_free(struct dma_mem *map, void *ptr);
/* The map that an address is in. */
struct dma_mem *dma_mem_findv(void *v);
struct dma_mem *dma_mem_findp(dma_addr_t p);
/* What is in it, to standard error. */
void dma_mem_print(struct dma_mem *map);
/* Bytes of all maps that are allocated from. */
int dma_mem_query(uint64_t *free_bytes, uint64_t *total_bytes);

static inline void *dma_mem_ptov(struct dma_mem *map, dma_addr_t p)
{
	struct __dma_mem_addr *base = (struct __dma_mem_addr *)(void *)map;

	return (void *)((char *)base->virt + (p - base->phys));
}
static inline dma_addr_t dma_mem_vtop(struct dma_mem *map, void *v)
{
	struct __dma_mem_addr *base = (struct __dma_mem_addr *)(void *)map;

	return base->phys + (dma_addr_t)((char *)v - (char *)base->virt);
}

static inline void *__dma_mem_ptov(dma_addr_t p)
{
	return dma_mem_ptov(dma_mem_generic, p);
}
static inline dma_addr_t __dma_mem_vtop(void *v)
{
	return dma_mem_vtop(dma_mem_generic, v);
}
static inline void *__dma_mem_memalign(size_t boundary, size_t size)
{
	return dma_mem_memalign(dma_mem_generic, boundary, size);
}
static inline void __dma_mem_free(void *ptr)
{
	dma_mem_free(dma_mem_generic, ptr);
}

/* As drivers of Linux have it. */
enum dma_data_direction {
	DMA_BIDIRECTIONAL = 0,
	DMA_TO_DEVICE = 1,
	DMA_FROM_DEVICE = 2,
	DMA_NONE = 3
};

int dma_set_mask(void *dev, uint64_t v);
/* 0 for what is in no map. */
dma_addr_t dma_map_single(void *dev, void *cpu_addr, size_t size, enum dma_data_direction direction);
int dma_mapping_error(void *dev, dma_addr_t dma_addr);

#ifdef __cplusplus
}
#endif

#endif
