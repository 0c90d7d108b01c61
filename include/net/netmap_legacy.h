/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of the API before version 12, still spoken by most programs.
 * A part of net/netmap.h, which includes it; not for direct inclusion.
 */
#ifndef _NET_NETMAP_LEGACY_H_
#define _NET_NETMAP_LEGACY_H_

#ifndef _NET_NETMAP_H_
#error "include net/netmap.h instead"
#endif

struct nmreq {
	char	 nr_name[16];	/* IFNAMSIZ, with the final NUL */
	uint32_t nr_version;	/* NETMAP_API or newer */
	uint32_t nr_offset;	/* out: netmap_if within the mapping */
	uint32_t nr_memsize;	/* out: bytes to map */
	uint32_t nr_tx_slots;	/* in/out, as in struct nmreq_register */
	uint32_t nr_rx_slots;
	uint16_t nr_tx_rings;
	uint16_t nr_rx_rings;
	uint16_t nr_ringid;	/* ring in the low 12 bits, and NETMAP_* */
#define NETMAP_HW_RING		0x4000	/* one NIC ring */
#define NETMAP_SW_RING		0x2000	/* host rings */
#define NETMAP_RING_MASK	0x0fff
#define NETMAP_NO_TX_POLL	0x1000	/* only POLLOUT transmits */
#define NETMAP_DO_RX_POLL	0x8000	/* no effect */
	uint16_t nr_cmd;	/* 0 = register, or NETMAP_BDG_* */
#define NETMAP_BDG_ATTACH	1
#define NETMAP_BDG_DETACH	2
#define NETMAP_BDG_REGOPS	3
#define NETMAP_BDG_LIST		4
#define NETMAP_BDG_VNET_HDR	5
#define NETMAP_BDG_NEWIF	6
#define NETMAP_BDG_DELIF	7
#define NETMAP_PT_HOST_CREATE	8
#define NETMAP_PT_HOST_DELETE	9
#define NETMAP_BDG_POLLING_ON	10
#define NETMAP_BDG_POLLING_OFF	11
#define NETMAP_VNET_HDR_GET	12
	uint16_t nr_arg1;	/* argument of nr_cmd */
#define NETMAP_BDG_HOST		1	/* attach the host stack as well */
	uint16_t nr_arg2;	/* in/out: region, 0 = default */
	uint32_t nr_arg3;	/* in/out: extra buffers */
	uint32_t nr_flags;	/* NR_REG_* in the low 4 bits, and flags */
	uint32_t spare2[1];
};

#define NR_REG_MASK	0xf	/* the mode in nmreq.nr_flags */

#define NM_IFRDATA_LEN	256

/* Argument of a switch's own configuration call. */
struct nm_ifreq {
	char nifr_name[16];
	char data[NM_IFRDATA_LEN];
};

#define NIOCGINFO	_IOWR('i', 145, struct nmreq)
#define NIOCREGIF	_IOWR('i', 146, struct nmreq)
#define NIOCCONFIG	_IOWR('i', 150, struct nm_ifreq)

#endif /* _NET_NETMAP_LEGACY_H_ */
