//! Every size and offset, checked by the compiler.

use crate::*;
use core::mem::offset_of;

/// Checks structures against their C counterparts when they are compiled: of each its size, and the
/// offsets of its fields, in bytes.
#[macro_export]
macro_rules! assert_layout {
    ($($name:ident: $size:literal { $($field:ident @ $offset:literal),* $(,)? },)*) => {
        $(const _: () = {
            assert!(::core::mem::size_of::<$name>() == $size, stringify!($name));
            $(assert!(
                ::core::mem::offset_of!($name, $field) == $offset,
                stringify!($name.$field)
            );)*
        };)*
    };
}

assert_layout! {
    netmap_slot: 16 { buf_idx @ 0, len @ 4, flags @ 6, ptr @ 8 },
    netmap_ring: 256 { buf_ofs @ 0, num_slots @ 8, nr_buf_size @ 12, ringid @ 16, dir @ 18, head @ 20, cur @ 24, tail @ 28, flags @ 32, ts @ 40, offset_mask @ 56, buf_align @ 64, nr_data_size @ 72 },
    netmap_if: 56 { ni_name @ 0, ni_version @ 16, ni_flags @ 20, ni_tx_rings @ 24, ni_rx_rings @ 28, ni_bufs_head @ 32, ni_host_tx_rings @ 36, ni_host_rx_rings @ 40 },
    nmreq_option: 24 { nro_next @ 0, nro_reqtype @ 8, nro_status @ 12, nro_size @ 16 },
    nmreq_header: 88 { nr_version @ 0, nr_reqtype @ 2, nr_reserved @ 4, nr_name @ 8, nr_options @ 72, nr_body @ 80 },
    nmreq_register: 56 { nr_offset @ 0, nr_memsize @ 8, nr_tx_slots @ 16, nr_rx_slots @ 20, nr_tx_rings @ 24, nr_rx_rings @ 26, nr_host_tx_rings @ 28, nr_host_rx_rings @ 30, nr_mem_id @ 32, nr_ringid @ 34, nr_mode @ 36, nr_extra_bufs @ 40, nr_flags @ 48 },
    nmreq_port_info_get: 32 { nr_memsize @ 0, nr_tx_slots @ 8, nr_rx_slots @ 12, nr_tx_rings @ 16, nr_rx_rings @ 18, nr_host_tx_rings @ 20, nr_host_rx_rings @ 22, nr_mem_id @ 24 },
    nmreq_vale_attach: 64 { reg @ 0, port_index @ 56 },
    nmreq_vale_detach: 8 { port_index @ 0 },
    nmreq_vale_list: 8 { nr_bridge_idx @ 0, nr_port_idx @ 4 },
    nmreq_port_hdr: 8 { nr_hdr_len @ 0 },
    nmreq_vale_newif: 16 { nr_tx_slots @ 0, nr_rx_slots @ 4, nr_tx_rings @ 8, nr_rx_rings @ 10, nr_mem_id @ 12 },
    nmreq_vale_polling: 16 { nr_mode @ 0, nr_first_cpu_id @ 4, nr_num_polling_cpus @ 8 },
    nmreq_pools_info: 64 { nr_memsize @ 0, nr_mem_id @ 8, nr_if_pool_offset @ 16, nr_if_pool_objtotal @ 24, nr_if_pool_objsize @ 28, nr_ring_pool_offset @ 32, nr_ring_pool_objtotal @ 40, nr_ring_pool_objsize @ 44, nr_buf_pool_offset @ 48, nr_buf_pool_objtotal @ 56, nr_buf_pool_objsize @ 60 },
    nmreq_sync_kloop_start: 8 { sleep_us @ 0 },
    nm_csb_atok: 64 { head @ 0, cur @ 4, appl_need_kick @ 8, sync_flags @ 12 },
    nm_csb_ktoa: 64 { hwcur @ 0, hwtail @ 4, kern_need_kick @ 8 },
    nmreq_opt_sync_kloop_mode: 32 { nro_opt @ 0, mode @ 24 },
    nmreq_opt_extmem: 96 { nro_opt @ 0, nro_usrptr @ 24, nro_info @ 32 },
    nmreq_opt_csb: 40 { nro_opt @ 0, csb_atok @ 24, csb_ktoa @ 32 },
    nmreq_opt_offsets: 56 { nro_opt @ 0, nro_max_offset @ 24, nro_initial_offset @ 32, nro_offset_bits @ 40, nro_tx_align @ 44, nro_min_gap @ 48 },
    nmreq: 60 { nr_name @ 0, nr_version @ 16, nr_offset @ 20, nr_memsize @ 24, nr_tx_slots @ 28, nr_rx_slots @ 32, nr_tx_rings @ 36, nr_rx_rings @ 38, nr_ringid @ 40, nr_cmd @ 42, nr_arg1 @ 44, nr_arg2 @ 46, nr_arg3 @ 48, nr_flags @ 52 },
    nm_ifreq: 272 { nifr_name @ 0, data @ 16 },
}

const _: () = assert!(core::mem::align_of::<netmap_ring>() == 128);
const _: () = assert!(offset_of!(netmap_ring, sem) == 128);
