//! What `qman_struct.h`, `fsl_qman.h` and `fsl_bman.h` declare, as it lies in memory on x86-64.

use std::{
    ffi::{c_int, c_ulong, c_void},
    mem::{offset_of, size_of},
};

use ringway_qbman::Frame;

/// A frame, with its address big-endian.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct qm_fd {
    pub opaque_addr: u64,
    pub opaque: u32,
    pub cmd: u32,
}

impl From<qm_fd> for Frame {
    #[inline]
    fn from(fd: qm_fd) -> Frame {
        Frame { buffer: fd.opaque_addr.swap_bytes(), shape: fd.opaque, command: fd.cmd }
    }
}

impl From<Frame> for qm_fd {
    #[inline]
    fn from(frame: Frame) -> qm_fd {
        let opaque_addr = frame.buffer.swap_bytes();
        qm_fd { opaque_addr, opaque: frame.shape, cmd: frame.command }
    }
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct qm_dqrr_entry {
    pub verb: u8,
    pub stat: u8,
    pub seqnum: u16,
    pub tok: u8,
    pub reserved2: [u8; 3],
    pub fqid: u32,
    pub context_b: u32,
    pub fd: qm_fd,
    pub reserved4: [u8; 32],
}

/// A message; which of its forms it has, `verb` says.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct qm_mr_entry {
    pub verb: u8,
    /// `ern.dca`, the bits of `dcern`, or `fq.fqs`.
    pub first: u8,
    pub seqnum: u16,
    pub rc: u8,
    pub orp: [u8; 3],
    pub fqid: u32,
    /// `tag`, or `contextB`.
    pub tag: u32,
    pub fd: qm_fd,
    pub reserved2: [u8; 32],
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct qm_fqd_oac {
    pub oac: u8,
    pub oal: i8,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct qm_fqd {
    pub orpc: u8,
    pub cgid: u8,
    pub fq_ctrl: u16,
    pub dest_wq: u16,
    pub ics_cred: u16,
    /// `td`, or `oac_init`.
    pub td: u16,
    pub context_b: u32,
    pub context_a_hi: u32,
    pub context_a_lo: u32,
    pub oac_query: qm_fqd_oac,
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct qm_mcc_initfq {
    pub reserved1: u8,
    pub we_mask: u16,
    pub fqid: u32,
    pub count: u16,
    pub fqd: qm_fqd,
    pub reserved3: [u8; 30],
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct mc_cgr {
    pub wr_parm: [u32; 3],
    pub wr_en: [u8; 3],
    pub cscn_en: u8,
    pub cscn_targ: u32,
    pub cstd_en: u8,
    pub cs: u8,
    pub cs_thres: u16,
    pub mode: u8,
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct qm_mcc_initcgr {
    pub reserved1: u8,
    pub we_mask: u16,
    pub cgr: mc_cgr,
    pub reserved2: [u8; 2],
    pub cgid: u8,
    pub reserved4: [u8; 32],
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct qm_mcr_queryfq_np {
    pub reserved1: u8,
    pub state: u8,
    pub reserved2: u8,
    pub fqd_link: [u8; 3],
    pub odp_seq: u16,
    pub orp_nesn: u16,
    pub early: [u8; 28],
    pub byte_cnt: u32,
    pub reserved13: u8,
    pub frm_cnt: [u8; 3],
    pub rest: [u8; 16],
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct qm_mcr_querycgr {
    pub reserved1: u16,
    pub cgr: mc_cgr,
    pub reserved2: [u8; 6],
    pub i_bcnt_hi: u8,
    pub i_bcnt_lo: u32,
    pub reserved4: [u8; 3],
    pub a_bcnt_hi: u8,
    pub a_bcnt_lo: u32,
    pub cscn_targ_swp: [u32; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct qm_mcr_querycongestion {
    pub reserved: [u8; 32],
    pub state: [u32; 8],
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct qm_mcr_querywq {
    pub channel_wq: u16,
    pub reserved: [u8; 28],
    pub wq_len: [u32; 8],
}

/// The thread's portal, as callbacks get it.
#[repr(C)]
pub struct qman_portal(u8);

pub type qman_cb_dqrr =
    unsafe extern "C" fn(*mut qman_portal, *mut qman_fq, *const qm_dqrr_entry) -> c_int;
pub type qman_cb_mr = unsafe extern "C" fn(*mut qman_portal, *mut qman_fq, *const qm_mr_entry);
pub type qman_cb_dc_ern = unsafe extern "C" fn(*mut qman_portal, *const qm_mr_entry);
pub type qman_cb_cgr = unsafe extern "C" fn(*mut qman_portal, *mut qman_cgr, c_int);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct qman_fq_cb {
    pub dqrr: Option<qman_cb_dqrr>,
    pub ern: Option<qman_cb_mr>,
    pub fqs: Option<qman_cb_mr>,
}

#[repr(C)]
pub struct qman_fq {
    pub cb: qman_fq_cb,
    pub fqlock: libc::pthread_mutex_t,
    pub fqid: u32,
    pub flags: c_ulong,
    pub state: c_int,
    pub cgr_groupid: c_int,
    /// `node`, which is ours: the queue's handle.
    pub handle: usize,
    pub node_next: usize,
}

#[repr(C)]
pub struct qman_cgr {
    pub cgrid: u32,
    pub cb: Option<qman_cb_cgr>,
    pub chan: u16,
    pub node: [usize; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct portal_config {
    pub cpu: c_int,
    pub irq: c_int,
    pub index: u32,
    pub is_shared: c_int,
    pub channel: u16,
    pub pools: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct bman_portal_config {
    pub cpu: c_int,
    pub irq: c_int,
    pub index: u32,
    pub is_shared: c_int,
    pub mask: [u32; 2],
}

/// A buffer, with its address big-endian.
pub type bm_buffer = u64;

#[repr(C)]
pub struct bman_portal(u8);
/// Points to a slot of `buffers.rs`.
#[repr(C)]
pub struct bman_pool(u8);

pub type bman_cb_depletion =
    unsafe extern "C" fn(*mut bman_portal, *mut bman_pool, *mut c_void, c_int);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bman_pool_params {
    pub bpid: u32,
    pub flags: u32,
    pub cb: Option<bman_cb_depletion>,
    pub cb_ctx: *mut c_void,
    pub thresholds: [u32; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bm_pool_state {
    pub reserved: [u32; 10],
    pub available: [u32; 2],
    pub reserved2: [u32; 2],
    pub depleted: [u32; 2],
}

const _: () = {
    assert!(size_of::<qm_fd>() == 16);
    assert!(size_of::<qm_dqrr_entry>() == 64 && offset_of!(qm_dqrr_entry, fd) == 16);
    assert!(size_of::<qm_mr_entry>() == 64 && offset_of!(qm_mr_entry, tag) == 12);
    assert!(size_of::<qm_fqd>() == 24 && offset_of!(qm_fqd, context_a_hi) == 14);
    assert!(size_of::<qm_mcc_initfq>() == 63 && offset_of!(qm_mcc_initfq, fqd) == 9);
    assert!(size_of::<mc_cgr>() == 25 && offset_of!(mc_cgr, cs_thres) == 22);
    assert!(size_of::<qm_mcc_initcgr>() == 63 && offset_of!(qm_mcc_initcgr, cgid) == 30);
    assert!(size_of::<qm_mcr_queryfq_np>() == 62);
    assert!(offset_of!(qm_mcr_queryfq_np, byte_cnt) == 38);
    assert!(size_of::<qm_mcr_querycgr>() == 62 && offset_of!(qm_mcr_querycgr, a_bcnt_hi) == 41);
    assert!(size_of::<qm_mcr_querycongestion>() == 64 && size_of::<qm_mcr_querywq>() == 62);
    assert!(size_of::<qman_fq>() == 104 && offset_of!(qman_fq, state) == 80);
    assert!(size_of::<qman_cgr>() == 40 && offset_of!(qman_cgr, node) == 24);
    assert!(size_of::<portal_config>() == 24 && size_of::<bman_portal_config>() == 24);
    assert!(size_of::<bman_pool_params>() == 40 && size_of::<bm_pool_state>() == 64);
};
