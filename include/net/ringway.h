/*
 * What Ringway has for C programs beyond netmap's API.
 */
#ifndef NET_RINGWAY_H
#define NET_RINGWAY_H

#include <stdint.h>
#include <string.h>

#include <net/netmap_user.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * When the packet in slot `i` of a receive ring was received, in nanoseconds; 0 where that is not
 * known. It is right in front of the buffer, and goes with the buffer to another ring. A packet of
 * several slots has it in the first.
 *
 * Only for rings of a network interface (not for its host rings) that was opened with timestamps;
 * otherwise, what it returns has no meaning. A program asks for them by its environment, and is
 * refused the interface where it cannot have them:
 *
 *   RINGWAY_NIC_TIMESTAMPS=hardware	the NIC's own clock
 *   RINGWAY_NIC_TIMESTAMPS=software	the kernel's, CLOCK_TAI
 */
static inline uint64_t
ringway_timestamp(const struct netmap_ring *ring, uint32_t i)
{
	uint64_t nanoseconds;

	memcpy(&nanoseconds,
	       NETMAP_BUF(ring, ring->slot[i].buf_idx) - sizeof(nanoseconds),
	       sizeof(nanoseconds));
	return nanoseconds;
}

/*
 * When the packet in slot `i` of a monitor's receive ring was received or sent by the port that it
 * watches, in nanoseconds of CLOCK_TAI, or of the clock by which the interface was opened with
 * timestamps; 0 where that is not known. Not for monitors that were opened with offsets, which are
 * in its place.
 */
static inline uint64_t
ringway_monitor_timestamp(const struct netmap_ring *ring, uint32_t i)
{
	return ring->slot[i].ptr;
}

#ifdef __cplusplus
}
#endif

#endif
