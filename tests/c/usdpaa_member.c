/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that allocates from a shared map for as long as it lives, or a number of times, together with others: what it has
 * is filled with its own mark, and must be so still when it is given back.
 *
 * usage: usdpaa_member NAME BYTES SEED TIMES
 *
 * Says "going" when it has given back the first place. TIMES 0: without end. Says what is free in the end.
 */
#include "check.h"

#include <unistd.h>

#include <usdpaa/dma_mem.h>

#define MOST	8

struct place {
	uint64_t *at;
	size_t words;
	uint64_t mark;
};

static uint64_t random_state;

static uint64_t
draw(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

static void
fill(struct place *place, uint64_t mark)
{
	place->mark = mark;
	for (size_t i = 0; i < place->words; i++)
		place->at[i] = mark + i;
}

static void
give(struct dma_mem *map, struct place *place)
{
	for (size_t i = 0; i < place->words; i++)
		require(place->at[i] == place->mark + i, "word %zu of %zu is another's", i, place->words);
	dma_mem_free(map, place->at);
	place->at = NULL;
}

int
main(int argc, char **argv)
{
	struct place places[MOST] = { { NULL, 0, 0 } };
	unsigned long times, i;
	struct dma_mem *map;

	require(argc == 5, "four arguments");
	map = dma_mem_create(DMA_MAP_FLAG_SHARED | DMA_MAP_FLAG_NEW | DMA_MAP_FLAG_LAZY | DMA_MAP_FLAG_ALLOC,
			     argv[1], strtoul(argv[2], NULL, 0));
	require(map != NULL, "dma_mem_create");
	random_state = strtoul(argv[3], NULL, 0);
	times = strtoul(argv[4], NULL, 0);
	for (i = 0; times == 0 || i < times; i++) {
		struct place *place = &places[draw() % MOST];
		size_t boundary = (size_t)1 << draw() % 13;

		if (place->at)
			give(map, place);
		place->words = draw() % 200 + 1;
		place->at = dma_mem_memalign(map, boundary, place->words * sizeof(uint64_t));
		require(place->at && (uintptr_t)place->at % boundary == 0, "a place of %zu words", place->words);
		fill(place, draw());
		if (i == MOST)
			check(1, "going");
	}
	for (i = 0; i < MOST; i++)
		if (places[i].at)
			give(map, &places[i]);
	dma_mem_destroy(map);
	return check_result();
}
