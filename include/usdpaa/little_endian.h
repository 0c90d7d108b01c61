/*
 * For programs that compare the type of an Ethernet frame with the system's constants as it lies in the frame, which are
 * written for big-endian machines. Give it to the compiler with `-include usdpaa/little_endian.h`: the constants then have
 * the order of bytes of frames.
 */
#ifndef USDPAA_LITTLE_ENDIAN_H
#define USDPAA_LITTLE_ENDIAN_H

/* As compat.h, which comes later. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <net/ethernet.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#undef ETHERTYPE_IP
#undef ETHERTYPE_ARP
#undef ETHERTYPE_VLAN
#undef ETHERTYPE_IPV6
#define ETHERTYPE_IP 0x0008
#define ETHERTYPE_ARP 0x0608
#define ETHERTYPE_VLAN 0x0081
#define ETHERTYPE_IPV6 0xdd86
#endif

#endif
