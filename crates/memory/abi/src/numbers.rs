//! Constants of the ABI, with the original's names.

/// The version of the API that these headers speak: `nr_version` of a request.
pub const NETMAP_API: u16 = 14;
/// The oldest `nr_version` that is answered by `NIOCCTRL`; older ones belong to the legacy requests.
pub const NETMAP_MIN_API: u16 = 14;
/// The newest `nr_version` that is answered.
pub const NETMAP_MAX_API: u16 = 15;
/// Length of `nr_name` in a request.
pub const NETMAP_REQ_IFNAMSIZ: usize = 64;
/// Largest request, options included.
pub const NETMAP_REQ_MAXSIZE: usize = 4096;

// Slot flags.
/// The program has put another `buf_idx` into the slot. Cleared by the sync.
pub const NS_BUF_CHANGED: u16 = 0x1;
/// The program wants to know when this slot has been sent: the sync does not defer its completion.
pub const NS_REPORT: u16 = 0x2;
/// In a receive ring: pass the frame on to the host stack, or from there to the wire (S-HOST).
pub const NS_FORWARD: u16 = 0x4;
/// A switch does not learn the frame's source address.
pub const NS_NO_LEARN: u16 = 0x8;
/// `ptr` is an address of the program's own memory, at which the data is; `buf_idx` is not used.
pub const NS_INDIRECT: u16 = 0x10;
/// The packet goes on in the next slot.
pub const NS_MOREFRAG: u16 = 0x20;
/// Set by a zero-copy monitor: the buffer belongs to a tx ring. For the service side alone.
pub const NS_TXMON: u16 = 0x40;
/// Place of the byte of `flags` that a switch reads as destination port, and that counts the fragments
/// of a received packet.
pub const NS_PORT_SHIFT: u16 = 8;
/// The bits of that byte.
pub const NS_PORT_MASK: u16 = 0xff00;
/// Slots of one packet at most.
pub const NETMAP_MAX_FRAGS: u32 = 64;

// Ring flags.
/// The sync writes the time into `ts`.
pub const NR_TIMESTAMP: u32 = 0x2;
/// Slots with `NS_FORWARD` are passed on at the next sync.
pub const NR_FORWARD: u32 = 0x4;

/// The region is private to the port.
pub const NI_PRIV_MEM: u32 = 0x1;

// `nr_mode`.
/// Legacy: the rings are chosen by `nr_ringid`.
pub const NR_REG_DEFAULT: u32 = 0;
/// All rings but the host rings.
pub const NR_REG_ALL_NIC: u32 = 1;
/// The host rings.
pub const NR_REG_SW: u32 = 2;
/// All rings, the host rings included.
pub const NR_REG_NIC_SW: u32 = 3;
/// The tx and the rx ring of index `nr_ringid`.
pub const NR_REG_ONE_NIC: u32 = 4;
/// Legacy: the `{` end of the pipe `nr_ringid`.
pub const NR_REG_PIPE_MASTER: u32 = 5;
/// Legacy: the `}` end of the pipe `nr_ringid`.
pub const NR_REG_PIPE_SLAVE: u32 = 6;
/// A port that moves no packets, made for this handle.
pub const NR_REG_NULL: u32 = 7;
/// The host rings of index `nr_ringid`.
pub const NR_REG_ONE_SW: u32 = 8;

// `nr_flags`.
/// A monitor of what the port sends.
pub const NR_MONITOR_TX: u64 = 0x100;
/// A monitor of what the port receives.
pub const NR_MONITOR_RX: u64 = 0x200;
/// The monitor exchanges buffers with the monitored rings in place of copying.
pub const NR_ZCOPY_MON: u64 = 0x400;
/// No other handle may have the same rings (S-REG).
pub const NR_EXCLUSIVE: u64 = 0x800;
/// Of the chosen rings, those that receive.
pub const NR_RX_RINGS_ONLY: u64 = 0x2000;
/// Of the chosen rings, those that send.
pub const NR_TX_RINGS_ONLY: u64 = 0x4000;
/// The program expects a virtio-net header in front of each packet, if the port has them.
pub const NR_ACCEPT_VNET_HDR: u64 = 0x8000;
/// `poll` syncs rx rings also when it is not asked for `POLLIN`.
pub const NR_DO_RX_POLL: u64 = 0x10000;
/// `poll` does not sync tx rings unless it is asked for `POLLOUT`.
pub const NR_NO_TX_POLL: u64 = 0x20000;
/// Ringway's own: a null port that takes what is sent. netmap knows no flags so high.
pub const NR_SINK: u64 = 1 << 63;

// `nr_reqtype`.
/// Bind the descriptor to a port: `nmreq_register`.
pub const NETMAP_REQ_REGISTER: u16 = 1;
/// Rings and memory of a port: `nmreq_port_info_get`.
pub const NETMAP_REQ_PORT_INFO_GET: u16 = 2;
/// Attach a port to a switch: `nmreq_vale_attach`.
pub const NETMAP_REQ_VALE_ATTACH: u16 = 3;
/// Take a port off its switch: `nmreq_vale_detach`.
pub const NETMAP_REQ_VALE_DETACH: u16 = 4;
/// Find switches and their ports: `nmreq_vale_list`.
pub const NETMAP_REQ_VALE_LIST: u16 = 5;
/// Set the bytes of a port's virtio-net header: `nmreq_port_hdr`.
pub const NETMAP_REQ_PORT_HDR_SET: u16 = 6;
/// Ask for that length: `nmreq_port_hdr`.
pub const NETMAP_REQ_PORT_HDR_GET: u16 = 7;
/// Make a persistent port: `nmreq_vale_newif`.
pub const NETMAP_REQ_VALE_NEWIF: u16 = 8;
/// Delete a persistent port. It has no body.
pub const NETMAP_REQ_VALE_DELIF: u16 = 9;
/// Have processors poll an attached interface: `nmreq_vale_polling`.
pub const NETMAP_REQ_VALE_POLLING_ENABLE: u16 = 10;
/// Stop that: `nmreq_vale_polling`.
pub const NETMAP_REQ_VALE_POLLING_DISABLE: u16 = 11;
/// The pools of a region: `nmreq_pools_info`.
pub const NETMAP_REQ_POOLS_INFO_GET: u16 = 12;
/// Sync the rings in this call, until it is stopped: `nmreq_sync_kloop_start`.
pub const NETMAP_REQ_SYNC_KLOOP_START: u16 = 13;
/// Stop that loop. It has no body.
pub const NETMAP_REQ_SYNC_KLOOP_STOP: u16 = 14;
/// Put the descriptor into CSB mode, by the option of that name. It has no body.
pub const NETMAP_REQ_CSB_ENABLE: u16 = 15;

// `nmreq_vale_polling.nr_mode`.
/// One processor polls all rings.
pub const NETMAP_POLLING_MODE_SINGLE_CPU: u32 = 1;
/// Each of several processors polls the ring of its number.
pub const NETMAP_POLLING_MODE_MULTI_CPU: u32 = 2;

// `nro_reqtype`.
/// The region lies in the program's memory: `nmreq_opt_extmem`.
pub const NETMAP_REQ_OPT_EXTMEM: u32 = 1;
/// Eventfds of each ring for the sync loop; their number is that of the rings.
pub const NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS: u32 = 2;
/// Where the arrays of CSB mode are: `nmreq_opt_csb`.
pub const NETMAP_REQ_OPT_CSB: u32 = 3;
/// What the sync loop does by itself: `nmreq_opt_sync_kloop_mode`.
pub const NETMAP_REQ_OPT_SYNC_KLOOP_MODE: u32 = 4;
/// Packets begin somewhere in their buffers: `nmreq_opt_offsets`.
pub const NETMAP_REQ_OPT_OFFSETS: u32 = 5;
/// One more than the largest of netmap's options.
pub const NETMAP_REQ_OPT_MAX: u32 = 6;
/// Ringway's own, far from netmap's: after the head a text without a nul, `@filter=udp@mode=copy`.
pub const NETMAP_REQ_OPT_RINGWAY: u32 = 0x5257_4159;

// Requests as `ioctl` numbers.
/// A request: `nmreq_header`.
pub const NIOCCTRL: u32 = 0xc058_6997;
/// Send what is between `hwcur` and `head` of the tx rings, and take back what has been sent.
pub const NIOCTXSYNC: u32 = 0x0000_6994;
/// Release the slots before `head` of the rx rings, and take what has come.
pub const NIOCRXSYNC: u32 = 0x0000_6995;
/// Legacy: asks for a port, or by `nr_cmd` for a list, by `nmreq`.
pub const NIOCGINFO: u32 = 0xc03c_6991;
/// Legacy: registers, or does what `nr_cmd` says, by `nmreq`.
pub const NIOCREGIF: u32 = 0xc03c_6992;
/// Legacy: refused, after `nm_ifreq` has been read (S-LEG-5).
pub const NIOCCONFIG: u32 = 0xc110_6996;

// Legacy `nr_ringid` bits.
/// One pair of rings, by the low bits.
pub const NETMAP_HW_RING: u16 = 0x4000;
/// The host rings.
pub const NETMAP_SW_RING: u16 = 0x2000;
/// The number of the ring.
pub const NETMAP_RING_MASK: u16 = 0x0fff;
/// As `NR_NO_TX_POLL`.
pub const NETMAP_NO_TX_POLL: u16 = 0x1000;
/// As `NR_DO_RX_POLL`.
pub const NETMAP_DO_RX_POLL: u16 = 0x8000;
/// The bits of the legacy `nr_flags` that are a `nr_mode`.
pub const NR_REG_MASK: u32 = 0xf;

// Legacy `nr_cmd`.
/// As `NETMAP_REQ_VALE_ATTACH`.
pub const NETMAP_BDG_ATTACH: u16 = 1;
/// As `NETMAP_REQ_VALE_DETACH`.
pub const NETMAP_BDG_DETACH: u16 = 2;
/// Refused: forwarding functions are chosen by `ringway switch`.
pub const NETMAP_BDG_REGOPS: u16 = 3;
/// As `NETMAP_REQ_VALE_LIST`.
pub const NETMAP_BDG_LIST: u16 = 4;
/// As `NETMAP_REQ_PORT_HDR_SET`.
pub const NETMAP_BDG_VNET_HDR: u16 = 5;
/// As `NETMAP_REQ_VALE_NEWIF`.
pub const NETMAP_BDG_NEWIF: u16 = 6;
/// As `NETMAP_REQ_VALE_DELIF`.
pub const NETMAP_BDG_DELIF: u16 = 7;
/// Passthrough to a guest: refused.
pub const NETMAP_PT_HOST_CREATE: u16 = 8;
/// Passthrough to a guest: refused.
pub const NETMAP_PT_HOST_DELETE: u16 = 9;
/// As `NETMAP_REQ_VALE_POLLING_ENABLE`.
pub const NETMAP_BDG_POLLING_ON: u16 = 10;
/// As `NETMAP_REQ_VALE_POLLING_DISABLE`.
pub const NETMAP_BDG_POLLING_OFF: u16 = 11;
/// As `NETMAP_REQ_PORT_HDR_GET`.
pub const NETMAP_VNET_HDR_GET: u16 = 12;
/// In `nr_arg1` of an attachment: with the host rings.
pub const NETMAP_BDG_HOST: u16 = 1;
