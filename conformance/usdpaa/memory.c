/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for buffers (QB-DMA). */
#include "case.h"

static void
agreement(void)
{
	static const struct {
		uint32_t flags;
		const char *name;
		size_t len;
	} bad[] = {
		{ 0, "name", 4096 }, { DMA_MAP_FLAG_SHARED, NULL, 4096 }, { DMA_MAP_FLAG_SHARED, "", 4096 },
		{ DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW, "sixteen-bytes-16", 4096 },
		{ DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW, "../other", 4096 },
		{ DMA_MAP_FLAG_NEW, NULL, 4096 }, { DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_LAZY, "a", 4096 },
		{ DMA_MAP_FLAG_READONLY, NULL, 4096 }, { 0x100, NULL, 4096 }, { 0, NULL, 0 },
		{ DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_READONLY | DMA_MAP_FLAG_ALLOC, "a", 4096 },
		{ DMA_MAP_FLAG_ALLOC, NULL, SIZE_MAX }, { DMA_MAP_FLAG_ALLOC, NULL, (size_t)1 << 41 },
	};
	struct dma_mem *maps[65];
	size_t i, n;

	for (i = 0; i < COUNT(bad); i++)
		check(!dma_mem_create(bad[i].flags, bad[i].name, bad[i].len), "arguments %zu do not agree", i);
	for (n = 0; n < 65 && (maps[n] = dma_mem_create(0, NULL, 4096)); n++)
		;
	check_number((long long)n, 64, "there are 64 maps");
	for (i = 0; i < n; i++)
		dma_mem_destroy(maps[i]);
	dma_mem_destroy(maps[0]);
	dma_mem_destroy(NULL);
	maps[0] = dma_mem_create(0, NULL, 4096);
	check(maps[0] != NULL, "and again when they are destroyed");
}

static void
allocation(void)
{
	struct dma_mem *map = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, 1 << 20);
	uint64_t free_bytes = 0, total_bytes = 0;
	uint32_t flags = 0;
	const char *name = "";
	size_t len = 0, i;
	void *all[512];

	require(map != NULL, "dma_mem_create");
	dma_mem_params(map, &flags, &name, &len);
	check(flags == DMA_MAP_FLAG_ALLOC && !name && len == 1 << 20, "dma_mem_params");
	check(!dma_mem_raw(map, &len), "it is not for use as a whole");
	for (i = 0; i < 512; i++) {
		all[i] = dma_mem_memalign(map, 64, 2000);
		require(all[i] && (uintptr_t)all[i] % 64 == 0, "aligned");
		memset(all[i], (int)i, 2000);
	}
	for (i = 0; i < 512; i++)
		require(*(uint8_t *)all[i] == (uint8_t)i && ((uint8_t *)all[i])[1999] == (uint8_t)i, "apart from each other");
	check(!dma_mem_memalign(map, 64, 2048 * 12), "no more");
	check(!dma_mem_memalign(map, 3, 1), "a boundary is a power of two");
	check(dma_mem_memalign(map, 0, 1) != NULL, "none is one");
	check(!dma_mem_memalign(map, 1, SIZE_MAX), "nor without end");
	check_number(dma_mem_query(&free_bytes, &total_bytes), 0, "dma_mem_query");
	check(total_bytes == 1 << 20 && free_bytes < 1 << 16, "nearly all of it");
	for (i = 0; i < 512; i++)
		dma_mem_free(map, all[i]);
	dma_mem_free(map, all[0]);
	dma_mem_free(map, &map);
	check(dma_mem_memalign(map, 4096, (1 << 20) - 8192) != NULL, "what was freed joins");
	dma_mem_print(map);
}

static void
addresses(void)
{
	struct dma_mem *map = dma_mem_create(DMA_MAP_FLAG_ALLOC, NULL, 1 << 16);
	struct dma_mem *raw = dma_mem_create(0, NULL, 5000);
	size_t len;
	char *all, *part;

	require(map && raw, "dma_mem_create");
	dma_mem_generic = map;
	part = __dma_mem_memalign(64, 100);
	check(part && __dma_mem_vtop(part) < 1ULL << 40, "frames can carry its addresses");
	check(__dma_mem_ptov(__dma_mem_vtop(part) + 7) == part + 7, "they are linear");
	check(dma_mem_findv(part) == map && dma_mem_findp(__dma_mem_vtop(part)) == map, "its map");
	check(!dma_mem_findv(&len) && !dma_mem_findp(0), "others are in none");
	all = dma_mem_raw(raw, &len);
	check(all && len == 8192, "a map as a whole has pages");
	memset(all, 1, len);
	check(dma_mem_ptov(raw, dma_mem_vtop(raw, all + 8191)) == all + 8191, "to the last byte");
	check(!dma_mem_memalign(raw, 1, 1), "nothing is allocated from it");
	check_number(dma_mapping_error(NULL, dma_map_single(NULL, part, 1, DMA_TO_DEVICE)), 0, "dma_map_single");
	check(dma_mapping_error(NULL, dma_map_single(NULL, &len, 1, DMA_TO_DEVICE)) != 0, "of other memory");
	__dma_mem_free(part);
	dma_mem_destroy(map);
	check(!dma_mem_findp((uintptr_t)part), "a map that was destroyed is none");
}

static void
sharing(void)
{
	char name[16];
	struct dma_mem *first, *second;
	char *mine, *its;
	size_t len = 0;
	pid_t child;
	int status;

	snprintf(name, sizeof(name), "t%d", (int)getpid());
	check(!dma_mem_create(DMA_MAP_FLAG_SHARED, name, 4096), "a shared map is made by somebody");
	first = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW, name, 4096);
	require(first != NULL, "dma_mem_create");
	check(!dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW, name, 4096), "once");
	check(!dma_mem_create(DMA_MAP_FLAG_SHARED, name, 8192), "with one length");
	second = dma_mem_create(DMA_MAP_FLAG_SHARED, name, 0);
	require(second != NULL, "dma_mem_create without a length");
	dma_mem_params(second, NULL, NULL, &len);
	check_number((long long)len, 4096, "is that of the map that is there");
	dma_mem_destroy(second);
	check(!dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW, "none-is-there", 0), "a new one has to be given");
	mine = dma_mem_raw(first, NULL);
	child = fork();
	if (child == 0) {
		second = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW | DMA_MAP_FLAG_LAZY, name, 4096);
		its = second ? dma_mem_raw(second, NULL) : NULL;
		if (its)
			strcpy(its, "here");
		_exit(!its);
	}
	require(waitpid(child, &status, 0) == child && status == 0, "another process");
	check(strcmp(mine, "here") == 0, "it is shared");
	second = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_READONLY, name, 4096);
	check(second && strcmp(dma_mem_raw(second, NULL), "here") == 0, "for reading alone");
	dma_mem_destroy(first);
	dma_mem_destroy(second);
	check(!dma_mem_create(DMA_MAP_FLAG_SHARED, name, 4096), "it goes with the last");
}

/* What another process does: frees a place, takes two, and frees all that is over. */
static void
member(const char *name, size_t offset)
{
	struct dma_mem *map = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW | DMA_MAP_FLAG_LAZY | DMA_MAP_FLAG_ALLOC,
					     name, 1 << 20);
	char *base, *first, *second;

	require(map != NULL, "dma_mem_create of another process");
	base = dma_mem_ptov(map, ((struct __dma_mem_addr *)(void *)map)->phys);
	first = dma_mem_memalign(map, 64, 1000);
	require(first == base + 2048, "the first place behind those of others (%zd)", first ? first - base : -1);
	strcpy(first, "mine");
	dma_mem_free(map, base + offset);
	second = dma_mem_memalign(map, 64, 1000);
	require(second == base + offset, "what another process had (%zd)", second ? second - base : -1);
	require(strcmp(base + 1024, "kept") == 0, "what it keeps");
	dma_mem_free(map, first);
	/* It ends without a word: what it has stays taken. */
}

static void
allocating(void)
{
	struct dma_mem *map, *whole;
	char name[16], *first, *second, *large;
	uint64_t free_bytes = 0, total_bytes = 0;
	pid_t child;
	int status;

	snprintf(name, sizeof(name), "a%d", (int)getpid());
	map = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW | DMA_MAP_FLAG_ALLOC, name, 1 << 20);
	require(map != NULL, "dma_mem_create");
	first = dma_mem_memalign(map, 64, 1000);
	second = dma_mem_memalign(map, 64, 1000);
	require(first && second == first + 1024, "places in multiples of 64 bytes");
	strcpy(second, "kept");
	child = fork();
	if (child == 0) {
		dma_mem_destroy(map);
		member(name, 0);
		_exit(check_result());
	}
	require(waitpid(child, &status, 0) == child && status == 0, "another process");
	dma_mem_query(&free_bytes, &total_bytes);
	check(total_bytes == 1 << 20 && free_bytes == total_bytes - 2048, "what it has taken is taken here");
	check(dma_mem_memalign(map, 64, 1) == first + 2048, "what it has freed is free");
	large = dma_mem_memalign(map, 1 << 18, 1 << 18);
	check(large && (uintptr_t)large % (1 << 18) == 0, "at a boundary");
	check(!dma_mem_memalign(map, 1, 1 << 20), "not more than there is");
	dma_mem_free(map, first);
	dma_mem_free(map, first);
	dma_mem_free(map, first + 1);
	dma_mem_free(map, large - 64);
	check(dma_mem_memalign(map, 1, 1000) == first, "and what it had, when it was freed here");
	check(strcmp(second, "kept") == 0, "nothing overlaps");
	whole = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_READONLY, name, 1 << 20);
	check(whole && strcmp((char *)dma_mem_raw(whole, NULL) + 1024, "kept") == 0, "readers see it");
	check(whole && !dma_mem_memalign(whole, 1, 1), "and allocate nothing");
	dma_mem_free(whole, dma_mem_raw(whole, NULL));
	dma_mem_destroy(whole);
	dma_mem_destroy(map);
}

static const struct test_case cases[] = {
	{ "QB-DMA-1", "arguments agree", agreement },
	{ "QB-DMA-2", "allocation", allocation },
	{ "QB-DMA-3", "addresses", addresses },
	{ "QB-DMA-4", "sharing", sharing },
	{ "QB-DMA-5", "allocating together", allocating },
};

CHAPTER(cases)
