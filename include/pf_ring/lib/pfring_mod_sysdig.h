/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of sysdig, of which Ringway has none. */
#ifndef _PFRING_MOD_SYSDIG_H
#define _PFRING_MOD_SYSDIG_H

#include <sys/types.h>

struct sysdig_event_header {
	u_int64_t ts;
	u_int64_t thread_id;
	u_int32_t event_len;
	u_int16_t event_type;
} __attribute__((packed));

static inline const char *
sysdig_event2name(u_int16_t id)
{
	(void)id;
	return "unknown";
}

#endif
