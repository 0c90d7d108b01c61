/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4: what it adds to <linux/if_packet.h>. It was proposed for Linux
 * and not taken up; the numbers are Ringway's where the proposal's are not
 * known, or are others' by now.
 *
 * A packet socket has a ring of descriptors for each direction. A descriptor
 * names a frame of memory that the program has registered:
 *
 *   address = area + idx * frame_size + offset
 *
 * Each slot belongs to the program or, while TP4_DESC_KERNEL is set, to the
 * kernel; only its owner writes it, the flags last.
 */
#ifndef _LINUX_IF_PACKET_V4_H
#define _LINUX_IF_PACKET_V4_H

#include <linux/if_packet.h>
#include <linux/types.h>

/* Behind TPACKET_V3, for PACKET_VERSION. */
#define TPACKET_V4		3

/* Options of level SOL_PACKET. */
#define PACKET_MEMREG		200	/* struct tpacket_memreg_req */
#define PACKET_ZEROCOPY		201	/* int: a queue pair */

/* Flags of a descriptor. */
#define TP4_DESC_KERNEL		0x80	/* the slot is the kernel's */
#define TP4_PKT_CONT		0x01	/* goes on in the next descriptor */

#define TP4_UMEM_MIN_FRAME_SIZE	2048
#define TP4_KERNEL_HEADROOM	256	/* in front of received data */
#define TP4_DATA_HEADROOM_ALIGN	64	/* data_headroom is rounded up to it */

struct tpacket4_desc {
	__u64	idx;		/* frame in the area */
	__u32	len;		/* bytes of data */
	__u16	offset;		/* of the data, from the frame's start */
	__u8	error;		/* errno, or 0 */
	__u8	flags;
};

/* PACKET_MEMREG */
struct tpacket_memreg_req {
	__u64	addr;		/* aligned to a page */
	__u64	len;
	__u32	frame_size;	/* a power of two from 2048 to a page */
	__u32	data_headroom;	/* in front of received data, besides 256 */
};

/* PACKET_RX_RING and PACKET_TX_RING */
struct tpacket_req4 {
	__s32	mr_fd;		/* socket that the memory was registered on */
	__u32	desc_nr;	/* a power of two; 0 destroys the ring */
};

/* A program's own view of a ring, of which the kernel knows nothing. */
struct tpacket4_queue {
	struct tpacket4_desc *ring;

	unsigned int	avail_idx;	/* the next slot to hand over */
	unsigned int	last_used_idx;	/* the next slot to get back */
	unsigned int	num_free;	/* slots that the program may fill */
	unsigned int	ring_mask;	/* desc_nr - 1 */
};

#endif
