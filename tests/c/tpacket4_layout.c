/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of AF_PACKET V4: every size, offset and constant. */
#include "check.h"

#include <linux/if_packet_v4.h>

#include "layout.h"

SIZE(tpacket4_desc, 16);
FIELD(tpacket4_desc, idx, 0, 8);
FIELD(tpacket4_desc, len, 8, 4);
FIELD(tpacket4_desc, offset, 12, 2);
FIELD(tpacket4_desc, error, 14, 1);
FIELD(tpacket4_desc, flags, 15, 1);

SIZE(tpacket_memreg_req, 24);
FIELD(tpacket_memreg_req, addr, 0, 8);
FIELD(tpacket_memreg_req, len, 8, 8);
FIELD(tpacket_memreg_req, frame_size, 16, 4);
FIELD(tpacket_memreg_req, data_headroom, 20, 4);

SIZE(tpacket_req4, 8);
FIELD(tpacket_req4, mr_fd, 0, 4);
FIELD(tpacket_req4, desc_nr, 4, 4);

SIZE(tpacket4_queue, sizeof(void *) + 16);
FIELD(tpacket4_queue, ring, 0, sizeof(void *));
FIELD(tpacket4_queue, avail_idx, sizeof(void *), 4);
FIELD(tpacket4_queue, last_used_idx, sizeof(void *) + 4, 4);
FIELD(tpacket4_queue, num_free, sizeof(void *) + 8, 4);
FIELD(tpacket4_queue, ring_mask, sizeof(void *) + 12, 4);

VALUE(TPACKET_V4, 3);
VALUE(PACKET_MEMREG, 200);
VALUE(PACKET_ZEROCOPY, 201);
VALUE(TP4_DESC_KERNEL, 0x80);
VALUE(TP4_PKT_CONT, 0x01);
VALUE(TP4_UMEM_MIN_FRAME_SIZE, 2048);
VALUE(TP4_KERNEL_HEADROOM, 256);
VALUE(TP4_DATA_HEADROOM_ALIGN, 64);

/* What it stands beside. */
ASSERT(TPACKET_V1 == 0 && TPACKET_V2 == 1 && TPACKET_V3 == 2, "versions");
VALUE(PACKET_RX_RING, 5);
VALUE(PACKET_STATISTICS, 6);
VALUE(PACKET_VERSION, 10);
VALUE(PACKET_RESERVE, 12);
VALUE(PACKET_TX_RING, 13);
VALUE(PACKET_QDISC_BYPASS, 20);

int
main(void)
{
	check(1, "the header has the ABI's layout");
	return check_result();
}
