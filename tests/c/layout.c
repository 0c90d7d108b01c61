/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public headers against the ABI of netmap on x86-64 Linux: every size,
 * offset, constant and request number. Compiling is the test; running it
 * checks what a compiler cannot.
 */
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

#include "check.h"
#include "layout.h"

SIZE(netmap_slot, 16);
FIELD(netmap_slot, buf_idx, 0, 4);
FIELD(netmap_slot, len, 4, 2);
FIELD(netmap_slot, flags, 6, 2);
FIELD(netmap_slot, ptr, 8, 8);

SIZE(netmap_ring, 256);
FIELD(netmap_ring, buf_ofs, 0, 8);
FIELD(netmap_ring, num_slots, 8, 4);
FIELD(netmap_ring, nr_buf_size, 12, 4);
FIELD(netmap_ring, ringid, 16, 2);
FIELD(netmap_ring, dir, 18, 2);
FIELD(netmap_ring, head, 20, 4);
FIELD(netmap_ring, cur, 24, 4);
FIELD(netmap_ring, tail, 28, 4);
FIELD(netmap_ring, flags, 32, 4);
FIELD(netmap_ring, ts, 40, 16);
FIELD(netmap_ring, offset_mask, 56, 8);
FIELD(netmap_ring, buf_align, 64, 8);
FIELD(netmap_ring, nr_data_size, 72, 4);
FIELD(netmap_ring, sem, 128, 128);
OFFSET(netmap_ring, slot, 256);
ASSERT(ALIGNMENT(struct netmap_ring) == NM_CACHE_ALIGN, "netmap_ring");

SIZE(netmap_if, 56);
FIELD(netmap_if, ni_name, 0, 16);
FIELD(netmap_if, ni_version, 16, 4);
FIELD(netmap_if, ni_flags, 20, 4);
FIELD(netmap_if, ni_tx_rings, 24, 4);
FIELD(netmap_if, ni_rx_rings, 28, 4);
FIELD(netmap_if, ni_bufs_head, 32, 4);
FIELD(netmap_if, ni_host_tx_rings, 36, 4);
FIELD(netmap_if, ni_host_rx_rings, 40, 4);
FIELD(netmap_if, ni_spare1, 44, 12);
OFFSET(netmap_if, ring_ofs, 56);

SIZE(nmreq_option, 24);
FIELD(nmreq_option, nro_next, 0, 8);
FIELD(nmreq_option, nro_reqtype, 8, 4);
FIELD(nmreq_option, nro_status, 12, 4);
FIELD(nmreq_option, nro_size, 16, 8);

SIZE(nmreq_header, 88);
FIELD(nmreq_header, nr_version, 0, 2);
FIELD(nmreq_header, nr_reqtype, 2, 2);
FIELD(nmreq_header, nr_reserved, 4, 4);
FIELD(nmreq_header, nr_name, 8, 64);
FIELD(nmreq_header, nr_options, 72, 8);
FIELD(nmreq_header, nr_body, 80, 8);

SIZE(nmreq_register, 56);
FIELD(nmreq_register, nr_offset, 0, 8);
FIELD(nmreq_register, nr_memsize, 8, 8);
FIELD(nmreq_register, nr_tx_slots, 16, 4);
FIELD(nmreq_register, nr_rx_slots, 20, 4);
FIELD(nmreq_register, nr_tx_rings, 24, 2);
FIELD(nmreq_register, nr_rx_rings, 26, 2);
FIELD(nmreq_register, nr_host_tx_rings, 28, 2);
FIELD(nmreq_register, nr_host_rx_rings, 30, 2);
FIELD(nmreq_register, nr_mem_id, 32, 2);
FIELD(nmreq_register, nr_ringid, 34, 2);
FIELD(nmreq_register, nr_mode, 36, 4);
FIELD(nmreq_register, nr_extra_bufs, 40, 4);
FIELD(nmreq_register, nr_flags, 48, 8);

SIZE(nmreq_port_info_get, 32);
FIELD(nmreq_port_info_get, nr_memsize, 0, 8);
FIELD(nmreq_port_info_get, nr_tx_slots, 8, 4);
FIELD(nmreq_port_info_get, nr_rx_slots, 12, 4);
FIELD(nmreq_port_info_get, nr_tx_rings, 16, 2);
FIELD(nmreq_port_info_get, nr_rx_rings, 18, 2);
FIELD(nmreq_port_info_get, nr_host_tx_rings, 20, 2);
FIELD(nmreq_port_info_get, nr_host_rx_rings, 22, 2);
FIELD(nmreq_port_info_get, nr_mem_id, 24, 2);
FIELD(nmreq_port_info_get, pad, 26, 6);

SIZE(nmreq_vale_attach, 64);
FIELD(nmreq_vale_attach, reg, 0, 56);
FIELD(nmreq_vale_attach, port_index, 56, 4);
FIELD(nmreq_vale_attach, pad1, 60, 4);

SIZE(nmreq_vale_detach, 8);
FIELD(nmreq_vale_detach, port_index, 0, 4);
FIELD(nmreq_vale_detach, pad1, 4, 4);

SIZE(nmreq_vale_list, 8);
FIELD(nmreq_vale_list, nr_bridge_idx, 0, 2);
FIELD(nmreq_vale_list, pad1, 2, 2);
FIELD(nmreq_vale_list, nr_port_idx, 4, 4);

SIZE(nmreq_port_hdr, 8);
FIELD(nmreq_port_hdr, nr_hdr_len, 0, 4);
FIELD(nmreq_port_hdr, pad1, 4, 4);

SIZE(nmreq_vale_newif, 16);
FIELD(nmreq_vale_newif, nr_tx_slots, 0, 4);
FIELD(nmreq_vale_newif, nr_rx_slots, 4, 4);
FIELD(nmreq_vale_newif, nr_tx_rings, 8, 2);
FIELD(nmreq_vale_newif, nr_rx_rings, 10, 2);
FIELD(nmreq_vale_newif, nr_mem_id, 12, 2);
FIELD(nmreq_vale_newif, pad1, 14, 2);

SIZE(nmreq_vale_polling, 16);
FIELD(nmreq_vale_polling, nr_mode, 0, 4);
FIELD(nmreq_vale_polling, nr_first_cpu_id, 4, 4);
FIELD(nmreq_vale_polling, nr_num_polling_cpus, 8, 4);
FIELD(nmreq_vale_polling, pad1, 12, 4);

SIZE(nmreq_pools_info, 64);
FIELD(nmreq_pools_info, nr_memsize, 0, 8);
FIELD(nmreq_pools_info, nr_mem_id, 8, 2);
FIELD(nmreq_pools_info, pad1, 10, 6);
FIELD(nmreq_pools_info, nr_if_pool_offset, 16, 8);
FIELD(nmreq_pools_info, nr_if_pool_objtotal, 24, 4);
FIELD(nmreq_pools_info, nr_if_pool_objsize, 28, 4);
FIELD(nmreq_pools_info, nr_ring_pool_offset, 32, 8);
FIELD(nmreq_pools_info, nr_ring_pool_objtotal, 40, 4);
FIELD(nmreq_pools_info, nr_ring_pool_objsize, 44, 4);
FIELD(nmreq_pools_info, nr_buf_pool_offset, 48, 8);
FIELD(nmreq_pools_info, nr_buf_pool_objtotal, 56, 4);
FIELD(nmreq_pools_info, nr_buf_pool_objsize, 60, 4);

SIZE(nmreq_sync_kloop_start, 8);
FIELD(nmreq_sync_kloop_start, sleep_us, 0, 4);
FIELD(nmreq_sync_kloop_start, pad1, 4, 4);

SIZE(nm_csb_atok, 64);
FIELD(nm_csb_atok, head, 0, 4);
FIELD(nm_csb_atok, cur, 4, 4);
FIELD(nm_csb_atok, appl_need_kick, 8, 4);
FIELD(nm_csb_atok, sync_flags, 12, 4);
FIELD(nm_csb_atok, pad, 16, 48);

SIZE(nm_csb_ktoa, 64);
FIELD(nm_csb_ktoa, hwcur, 0, 4);
FIELD(nm_csb_ktoa, hwtail, 4, 4);
FIELD(nm_csb_ktoa, kern_need_kick, 8, 4);
FIELD(nm_csb_ktoa, pad, 12, 52);

SIZE(nmreq_opt_sync_kloop_eventfds, 24);
FIELD(nmreq_opt_sync_kloop_eventfds, nro_opt, 0, 24);
OFFSET(nmreq_opt_sync_kloop_eventfds, eventfds, 24);
FIELD(nmreq_opt_sync_kloop_eventfds, eventfds[0].ioeventfd, 24, 4);
FIELD(nmreq_opt_sync_kloop_eventfds, eventfds[0].irqfd, 28, 4);

SIZE(nmreq_opt_sync_kloop_mode, 32);
FIELD(nmreq_opt_sync_kloop_mode, nro_opt, 0, 24);
FIELD(nmreq_opt_sync_kloop_mode, mode, 24, 4);

SIZE(nmreq_opt_extmem, 96);
FIELD(nmreq_opt_extmem, nro_opt, 0, 24);
FIELD(nmreq_opt_extmem, nro_usrptr, 24, 8);
FIELD(nmreq_opt_extmem, nro_info, 32, 64);

SIZE(nmreq_opt_csb, 40);
FIELD(nmreq_opt_csb, nro_opt, 0, 24);
FIELD(nmreq_opt_csb, csb_atok, 24, 8);
FIELD(nmreq_opt_csb, csb_ktoa, 32, 8);

SIZE(nmreq_opt_offsets, 56);
FIELD(nmreq_opt_offsets, nro_opt, 0, 24);
FIELD(nmreq_opt_offsets, nro_max_offset, 24, 8);
FIELD(nmreq_opt_offsets, nro_initial_offset, 32, 8);
FIELD(nmreq_opt_offsets, nro_offset_bits, 40, 4);
FIELD(nmreq_opt_offsets, nro_tx_align, 44, 4);
FIELD(nmreq_opt_offsets, nro_min_gap, 48, 8);

SIZE(nmreq, 60);
FIELD(nmreq, nr_name, 0, 16);
FIELD(nmreq, nr_version, 16, 4);
FIELD(nmreq, nr_offset, 20, 4);
FIELD(nmreq, nr_memsize, 24, 4);
FIELD(nmreq, nr_tx_slots, 28, 4);
FIELD(nmreq, nr_rx_slots, 32, 4);
FIELD(nmreq, nr_tx_rings, 36, 2);
FIELD(nmreq, nr_rx_rings, 38, 2);
FIELD(nmreq, nr_ringid, 40, 2);
FIELD(nmreq, nr_cmd, 42, 2);
FIELD(nmreq, nr_arg1, 44, 2);
FIELD(nmreq, nr_arg2, 46, 2);
FIELD(nmreq, nr_arg3, 48, 4);
FIELD(nmreq, nr_flags, 52, 4);
FIELD(nmreq, spare2, 56, 4);

SIZE(nm_ifreq, 272);
FIELD(nm_ifreq, nifr_name, 0, 16);
FIELD(nm_ifreq, data, 16, 256);

SIZE(nm_pkthdr, 56);
FIELD(nm_pkthdr, ts, 0, 16);
FIELD(nm_pkthdr, caplen, 16, 4);
FIELD(nm_pkthdr, len, 20, 4);
FIELD(nm_pkthdr, flags, 24, 8);
FIELD(nm_pkthdr, d, 32, 8);
FIELD(nm_pkthdr, slot, 40, 8);
FIELD(nm_pkthdr, buf, 48, 8);

SIZE(nm_stat, 12);
FIELD(nm_stat, ps_recv, 0, 4);
FIELD(nm_stat, ps_drop, 4, 4);
FIELD(nm_stat, ps_ifdrop, 8, 4);

SIZE(nm_desc, 760);
FIELD(nm_desc, self, 0, 8);
FIELD(nm_desc, fd, 8, 4);
FIELD(nm_desc, mem, 16, 8);
FIELD(nm_desc, memsize, 24, 8);
FIELD(nm_desc, done_mmap, 32, 4);
FIELD(nm_desc, nifp, 40, 8);
FIELD(nm_desc, first_tx_ring, 48, 2);
FIELD(nm_desc, last_tx_ring, 50, 2);
FIELD(nm_desc, cur_tx_ring, 52, 2);
FIELD(nm_desc, first_rx_ring, 54, 2);
FIELD(nm_desc, last_rx_ring, 56, 2);
FIELD(nm_desc, cur_rx_ring, 58, 2);
FIELD(nm_desc, req, 60, 60);
FIELD(nm_desc, hdr, 120, 56);
FIELD(nm_desc, some_ring, 176, 8);
FIELD(nm_desc, buf_start, 184, 8);
FIELD(nm_desc, buf_end, 192, 8);
FIELD(nm_desc, snaplen, 200, 4);
FIELD(nm_desc, promisc, 204, 4);
FIELD(nm_desc, to_ms, 208, 4);
FIELD(nm_desc, errbuf, 216, 8);
FIELD(nm_desc, if_flags, 224, 4);
FIELD(nm_desc, if_reqcap, 228, 4);
FIELD(nm_desc, if_curcap, 232, 4);
FIELD(nm_desc, st, 236, 12);
FIELD(nm_desc, msg, 248, 512);

/* net/netmap.h */
VALUE(NETMAP_API, 0xe);
VALUE(NETMAP_MIN_API, 0xe);
VALUE(NETMAP_MAX_API, 0xf);
VALUE(NM_CACHE_ALIGN, 0x80);
VALUE(NS_BUF_CHANGED, 1);
VALUE(NS_REPORT, 2);
VALUE(NS_FORWARD, 4);
VALUE(NS_NO_LEARN, 8);
VALUE(NS_INDIRECT, 0x10);
VALUE(NS_MOREFRAG, 0x20);
VALUE(NS_TXMON, 0x40);
VALUE(NS_PORT_SHIFT, 8);
VALUE(NS_PORT_MASK, 0xff00);
VALUE(NETMAP_MAX_FRAGS, 0x40);
VALUE(NR_TIMESTAMP, 2);
VALUE(NR_FORWARD, 4);
VALUE(NI_PRIV_MEM, 1);
VALUE(NETMAP_REQ_MAXSIZE, 0x1000);
VALUE(NETMAP_REQ_IFNAMSIZ, 0x40);
VALUE(NR_MONITOR_TX, 0x100);
VALUE(NR_MONITOR_RX, 0x200);
VALUE(NR_ZCOPY_MON, 0x400);
VALUE(NR_EXCLUSIVE, 0x800);
VALUE(NR_RX_RINGS_ONLY, 0x2000);
VALUE(NR_TX_RINGS_ONLY, 0x4000);
VALUE(NR_ACCEPT_VNET_HDR, 0x8000);
VALUE(NR_DO_RX_POLL, 0x10000);
VALUE(NR_NO_TX_POLL, 0x20000);
VALUE(NETMAP_POLLING_MODE_SINGLE_CPU, 1);
VALUE(NETMAP_POLLING_MODE_MULTI_CPU, 2);
VALUE(NM_OPT_SYNC_KLOOP_DIRECT_TX, 1);
VALUE(NM_OPT_SYNC_KLOOP_DIRECT_RX, 2);

/* net/netmap_legacy.h */
VALUE(NETMAP_HW_RING, 0x4000);
VALUE(NETMAP_SW_RING, 0x2000);
VALUE(NETMAP_RING_MASK, 0xfff);
VALUE(NETMAP_NO_TX_POLL, 0x1000);
VALUE(NETMAP_DO_RX_POLL, 0x8000);
VALUE(NETMAP_BDG_ATTACH, 1);
VALUE(NETMAP_BDG_DETACH, 2);
VALUE(NETMAP_BDG_REGOPS, 3);
VALUE(NETMAP_BDG_LIST, 4);
VALUE(NETMAP_BDG_VNET_HDR, 5);
VALUE(NETMAP_BDG_NEWIF, 6);
VALUE(NETMAP_BDG_DELIF, 7);
VALUE(NETMAP_PT_HOST_CREATE, 8);
VALUE(NETMAP_PT_HOST_DELETE, 9);
VALUE(NETMAP_BDG_POLLING_ON, 0xa);
VALUE(NETMAP_BDG_POLLING_OFF, 0xb);
VALUE(NETMAP_VNET_HDR_GET, 0xc);
VALUE(NETMAP_BDG_HOST, 1);
VALUE(NR_REG_MASK, 0xf);
VALUE(NM_IFRDATA_LEN, 0x100);

/* net/netmap_user.h */
VALUE(NM_MORE_PKTS, 1);
VALUE(NM_ERRBUF_SIZE, 0x200);
VALUE(MAXERRMSG, 0x50);

/* net/netmap.h */
VALUE(NETMAP_REQ_REGISTER, 1);
VALUE(NETMAP_REQ_PORT_INFO_GET, 2);
VALUE(NETMAP_REQ_VALE_ATTACH, 3);
VALUE(NETMAP_REQ_VALE_DETACH, 4);
VALUE(NETMAP_REQ_VALE_LIST, 5);
VALUE(NETMAP_REQ_PORT_HDR_SET, 6);
VALUE(NETMAP_REQ_PORT_HDR_GET, 7);
VALUE(NETMAP_REQ_VALE_NEWIF, 8);
VALUE(NETMAP_REQ_VALE_DELIF, 9);
VALUE(NETMAP_REQ_VALE_POLLING_ENABLE, 10);
VALUE(NETMAP_REQ_VALE_POLLING_DISABLE, 11);
VALUE(NETMAP_REQ_POOLS_INFO_GET, 12);
VALUE(NETMAP_REQ_SYNC_KLOOP_START, 13);
VALUE(NETMAP_REQ_SYNC_KLOOP_STOP, 14);
VALUE(NETMAP_REQ_CSB_ENABLE, 15);
VALUE(NETMAP_REQ_OPT_EXTMEM, 1);
VALUE(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, 2);
VALUE(NETMAP_REQ_OPT_CSB, 3);
VALUE(NETMAP_REQ_OPT_SYNC_KLOOP_MODE, 4);
VALUE(NETMAP_REQ_OPT_OFFSETS, 5);
VALUE(NETMAP_REQ_OPT_MAX, 6);
VALUE(NETMAP_REQ_OPT_RINGWAY, 0x52574159);
VALUE(NR_REG_DEFAULT, 0);
VALUE(NR_REG_ALL_NIC, 1);
VALUE(NR_REG_SW, 2);
VALUE(NR_REG_NIC_SW, 3);
VALUE(NR_REG_ONE_NIC, 4);
VALUE(NR_REG_PIPE_MASTER, 5);
VALUE(NR_REG_PIPE_SLAVE, 6);
VALUE(NR_REG_NULL, 7);
VALUE(NR_REG_ONE_SW, 8);

/* net/netmap_user.h */
VALUE(NM_OPEN_NO_MMAP, 0x40000);
VALUE(NM_OPEN_IFNAME, 0x80000);
VALUE(NM_OPEN_ARG1, 0x100000);
VALUE(NM_OPEN_ARG2, 0x200000);
VALUE(NM_OPEN_ARG3, 0x400000);
VALUE(NM_OPEN_RING_CFG, 0x800000);

/* requests */
IOCTL(NIOCCTRL, 0xc0586997u, 88);
IOCTL(NIOCTXSYNC, 0x00006994u, 0);
IOCTL(NIOCRXSYNC, 0x00006995u, 0);
IOCTL(NIOCGINFO, 0xc03c6991u, 60);
IOCTL(NIOCREGIF, 0xc03c6992u, 60);
IOCTL(NIOCCONFIG, 0xc1106996u, 272);

int
main(void)
{
	check(1, "sizes, offsets and constants (checked by the compiler)");
	check(strcmp(NM_BDG_NAME, "vale") == 0, "NM_BDG_NAME is vale");
	check(strcmp(NETMAP_DEVICE_NAME, "/dev/netmap") == 0,
	      "NETMAP_DEVICE_NAME is /dev/netmap");
	return check_result();
}
