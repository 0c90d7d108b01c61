/* What Ringway's interfaces offer beside USDPAA. */
#ifndef USDPAA_RINGWAY_H
#define USDPAA_RINGWAY_H

#include "fman.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ringway_usdpaa_counters {
	/* Frames that were taken from the port and had a buffer, and that were sent. */
	uint64_t received;
	uint64_t transmitted;
	/* Lost: no pool that fits had a buffer; longer than any pool's; no frame queue took it. */
	uint64_t no_buffer;
	uint64_t too_long;
	uint64_t rejected;
	/* Given back unsent: not in DMA memory, of another form, or longer than the port takes. */
	uint64_t unsendable;
	/* Lost with a daemon that ended: sent, and not taken by the switch; received, while disabled. */
	uint64_t lost;
};

/* 0, or -EINVAL. */
int ringway_usdpaa_count(const struct fman_if *fif, struct ringway_usdpaa_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
