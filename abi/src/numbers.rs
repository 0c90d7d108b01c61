//! Constants of the ABI, with the original's names.

pub const NETMAP_API: u16 = 14;
pub const NETMAP_MIN_API: u16 = 14;
pub const NETMAP_MAX_API: u16 = 15;
/// Length of `nr_name` in a request.
pub const NETMAP_REQ_IFNAMSIZ: usize = 64;
/// Largest request, options included.
pub const NETMAP_REQ_MAXSIZE: usize = 4096;

// Slot flags.
pub const NS_BUF_CHANGED: u16 = 0x1;
pub const NS_REPORT: u16 = 0x2;
pub const NS_FORWARD: u16 = 0x4;
pub const NS_NO_LEARN: u16 = 0x8;
pub const NS_INDIRECT: u16 = 0x10;
pub const NS_MOREFRAG: u16 = 0x20;
pub const NS_TXMON: u16 = 0x40;
pub const NS_PORT_SHIFT: u16 = 8;
pub const NS_PORT_MASK: u16 = 0xff00;
/// Slots of one packet at most.
pub const NETMAP_MAX_FRAGS: u32 = 64;

// Ring flags.
pub const NR_TIMESTAMP: u32 = 0x2;
pub const NR_FORWARD: u32 = 0x4;

/// The region is private to the port.
pub const NI_PRIV_MEM: u32 = 0x1;

// `nr_mode`.
pub const NR_REG_DEFAULT: u32 = 0;
pub const NR_REG_ALL_NIC: u32 = 1;
pub const NR_REG_SW: u32 = 2;
pub const NR_REG_NIC_SW: u32 = 3;
pub const NR_REG_ONE_NIC: u32 = 4;
pub const NR_REG_PIPE_MASTER: u32 = 5;
pub const NR_REG_PIPE_SLAVE: u32 = 6;
pub const NR_REG_NULL: u32 = 7;
pub const NR_REG_ONE_SW: u32 = 8;

// `nr_flags`.
pub const NR_MONITOR_TX: u64 = 0x100;
pub const NR_MONITOR_RX: u64 = 0x200;
pub const NR_ZCOPY_MON: u64 = 0x400;
pub const NR_EXCLUSIVE: u64 = 0x800;
pub const NR_RX_RINGS_ONLY: u64 = 0x2000;
pub const NR_TX_RINGS_ONLY: u64 = 0x4000;
pub const NR_ACCEPT_VNET_HDR: u64 = 0x8000;
pub const NR_DO_RX_POLL: u64 = 0x10000;
pub const NR_NO_TX_POLL: u64 = 0x20000;
/// Ringway's own: a null port that takes what is sent. netmap knows no flags so high.
pub const NR_SINK: u64 = 1 << 63;

// `nr_reqtype`.
pub const NETMAP_REQ_REGISTER: u16 = 1;
pub const NETMAP_REQ_PORT_INFO_GET: u16 = 2;
pub const NETMAP_REQ_VALE_ATTACH: u16 = 3;
pub const NETMAP_REQ_VALE_DETACH: u16 = 4;
pub const NETMAP_REQ_VALE_LIST: u16 = 5;
pub const NETMAP_REQ_PORT_HDR_SET: u16 = 6;
pub const NETMAP_REQ_PORT_HDR_GET: u16 = 7;
pub const NETMAP_REQ_VALE_NEWIF: u16 = 8;
pub const NETMAP_REQ_VALE_DELIF: u16 = 9;
pub const NETMAP_REQ_VALE_POLLING_ENABLE: u16 = 10;
pub const NETMAP_REQ_VALE_POLLING_DISABLE: u16 = 11;
pub const NETMAP_REQ_POOLS_INFO_GET: u16 = 12;
pub const NETMAP_REQ_SYNC_KLOOP_START: u16 = 13;
pub const NETMAP_REQ_SYNC_KLOOP_STOP: u16 = 14;
pub const NETMAP_REQ_CSB_ENABLE: u16 = 15;

// `nmreq_vale_polling.nr_mode`.
pub const NETMAP_POLLING_MODE_SINGLE_CPU: u32 = 1;
pub const NETMAP_POLLING_MODE_MULTI_CPU: u32 = 2;

// `nro_reqtype`.
pub const NETMAP_REQ_OPT_EXTMEM: u32 = 1;
pub const NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS: u32 = 2;
pub const NETMAP_REQ_OPT_CSB: u32 = 3;
pub const NETMAP_REQ_OPT_SYNC_KLOOP_MODE: u32 = 4;
pub const NETMAP_REQ_OPT_OFFSETS: u32 = 5;
pub const NETMAP_REQ_OPT_MAX: u32 = 6;
/// Ringway's own, far from netmap's: after the head a text without a nul, `@filter=udp@mode=copy`.
pub const NETMAP_REQ_OPT_RINGWAY: u32 = 0x5257_4159;

// Requests as `ioctl` numbers.
pub const NIOCCTRL: u32 = 0xc058_6997;
pub const NIOCTXSYNC: u32 = 0x0000_6994;
pub const NIOCRXSYNC: u32 = 0x0000_6995;
pub const NIOCGINFO: u32 = 0xc03c_6991;
pub const NIOCREGIF: u32 = 0xc03c_6992;
pub const NIOCCONFIG: u32 = 0xc110_6996;

// Legacy `nr_ringid` bits.
pub const NETMAP_HW_RING: u16 = 0x4000;
pub const NETMAP_SW_RING: u16 = 0x2000;
pub const NETMAP_RING_MASK: u16 = 0x0fff;
pub const NETMAP_NO_TX_POLL: u16 = 0x1000;
pub const NETMAP_DO_RX_POLL: u16 = 0x8000;
pub const NR_REG_MASK: u32 = 0xf;

// Legacy `nr_cmd`.
pub const NETMAP_BDG_ATTACH: u16 = 1;
pub const NETMAP_BDG_DETACH: u16 = 2;
pub const NETMAP_BDG_REGOPS: u16 = 3;
pub const NETMAP_BDG_LIST: u16 = 4;
pub const NETMAP_BDG_VNET_HDR: u16 = 5;
pub const NETMAP_BDG_NEWIF: u16 = 6;
pub const NETMAP_BDG_DELIF: u16 = 7;
pub const NETMAP_PT_HOST_CREATE: u16 = 8;
pub const NETMAP_PT_HOST_DELETE: u16 = 9;
pub const NETMAP_BDG_POLLING_ON: u16 = 10;
pub const NETMAP_BDG_POLLING_OFF: u16 = 11;
pub const NETMAP_VNET_HDR_GET: u16 = 12;
pub const NETMAP_BDG_HOST: u16 = 1;
