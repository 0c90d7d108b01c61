/* The device tree, of which programs read nothing here: which interfaces there are says a configuration of Ringway's. */
#ifndef USDPAA_OF_H
#define USDPAA_OF_H

#include "compat.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OF_DEFAULT_DT_PATH "/proc/device-tree"

/* 0 always: there is no tree that could be missing. */
int of_init_path(const char *dt_path);

static inline int of_init(void)
{
	return of_init_path(OF_DEFAULT_DT_PATH);
}

void of_finish(void);

/* The number that `cell_size` cells make, which have the order of bytes of a device tree. */
static inline uint64_t of_read_number(const uint32_t *cell, uint32_t cell_size)
{
	uint64_t number = 0;
	while (cell_size--) {
		const uint8_t *bytes = (const uint8_t *)cell++;
		number = number << 32 | (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
			 (uint32_t)bytes[2] << 8 | bytes[3];
	}
	return number;
}

#ifdef __cplusplus
}
#endif

#endif
