/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The netmap ABI as Ringway speaks it: shared-memory layout, requests, ioctls.
 *
 * A descriptor of /dev/netmap is bound to a port by NIOCCTRL (REGISTER); mmap
 * of it then shows the port's region:
 *
 *   mem                     offset 0 of the mapping, nr_memsize bytes
 *    |
 *    +-- nr_offset --> struct netmap_if
 *                        ring_ofs[]   relative to the netmap_if; 0 = not bound
 *                        | tx 0..ni_tx_rings-1      | host tx ...
 *                        | rx 0..ni_rx_rings-1      | host rx ...
 *                        |
 *                        +--> struct netmap_ring
 *                               head cur tail       indices of slots
 *                               slot[num_slots]
 *                                 buf_idx --+
 *                               buf_ofs ----+       relative to the ring
 *                                           |
 *                                           v
 *                        ring + buf_ofs + buf_idx * nr_buf_size: the packet
 *
 * Slots in [head, tail) belong to the program, the others to the port. The
 * program moves head (slots given back) and cur (wake me past this slot);
 * tail moves only in a sync: NIOCTXSYNC, NIOCRXSYNC or poll.
 */
#ifndef _NET_NETMAP_H_
#define _NET_NETMAP_H_

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/types.h>

#define NETMAP_API	14	/* the version that programs should ask for */
#define NETMAP_MIN_API	14
#define NETMAP_MAX_API	15

#define NM_CACHE_ALIGN	128

/* Flexible array members are C99; C++ compilers have them as an extension. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

struct netmap_slot {
	uint32_t buf_idx;	/* buffer; valid ones are >= 2 */
	uint16_t len;		/* bytes in the buffer */
	uint16_t flags;		/* NS_* */
	uint64_t ptr;		/* NS_INDIRECT address, or data offset */
};

/* netmap_slot.flags */
#define NS_BUF_CHANGED	0x0001	/* buf_idx is another one than before */
#define NS_REPORT	0x0002	/* tell of completion at this slot */
#define NS_FORWARD	0x0004	/* pass on, host <-> NIC, when released */
#define NS_NO_LEARN	0x0008	/* for custom switch look-ups */
#define NS_INDIRECT	0x0010	/* VALE tx: the data is at ptr */
#define NS_MOREFRAG	0x0020	/* the packet continues in the next slot */
#define NS_TXMON	0x0040	/* monitors: seen on a tx ring */
#define NS_PORT_SHIFT	8
#define NS_PORT_MASK	(0xff << NS_PORT_SHIFT)

/* Slots of the packet that this slot belongs to, as VALE reports on rx. */
#define NS_RFRAGS(_slot)	(((_slot)->flags >> 8) & 0xff)

#define NETMAP_MAX_FRAGS	64	/* slots of one packet, at most */

struct netmap_ring {
	const int64_t	buf_ofs;	/* bytes from the ring to buffer 0 */
	const uint32_t	num_slots;
	const uint32_t	nr_buf_size;	/* bytes of a buffer */
	const uint16_t	ringid;		/* host rings count after NIC rings */
	const uint16_t	dir;		/* not to be relied upon */

	uint32_t	head;		/* first slot of the program */
	uint32_t	cur;		/* wake-up point, head <= cur <= tail */
	uint32_t	tail;		/* first slot of the port; read only */
	uint32_t	flags;		/* NR_TIMESTAMP, NR_FORWARD */

	struct timeval	ts;		/* rx: wall clock of the last sync */
	const uint64_t	offset_mask;	/* bits of slot->ptr with the offset */
	const uint64_t	buf_align;
	const uint32_t	nr_data_size;	/* Ringway's own: most bytes of a slot */

	uint8_t		sem[128] __attribute__((aligned(NM_CACHE_ALIGN)));
	struct netmap_slot slot[];	/* num_slots of them */
};

/* netmap_ring.flags */
#define NR_TIMESTAMP	0x0002	/* stamp ts at each rx sync */
#define NR_FORWARD	0x0004	/* honour NS_FORWARD */

/* 1 when the program owns no slot of the ring. */
static inline int
nm_ring_empty(const struct netmap_ring *ring)
{
	return ring->head == ring->tail;
}

struct netmap_if {
	char		ni_name[16];	/* IFNAMSIZ; longer names are cut */
	const uint32_t	ni_version;
	const uint32_t	ni_flags;	/* NI_PRIV_MEM */
	const uint32_t	ni_tx_rings;	/* without host rings */
	const uint32_t	ni_rx_rings;
	uint32_t	ni_bufs_head;	/* list of extra buffers, 0 ends it */
	const uint32_t	ni_host_tx_rings;	/* at least 1, even if fake */
	const uint32_t	ni_host_rx_rings;
	uint32_t	ni_spare1[3];
	const ssize_t	ring_ofs[];	/* tx, host tx, rx, host rx */
};

#define NI_PRIV_MEM	0x1	/* the region is not the global one */

/*
 * Requests: NIOCCTRL takes a header; nr_body points to the struct that the
 * request type names, nr_options to a list of options, or 0.
 */
#define NETMAP_REQ_MAXSIZE	4096	/* body and options, bytes */
#define NETMAP_REQ_IFNAMSIZ	64

struct nmreq_option {
	uint64_t nro_next;	/* address of the next option, or 0 */
	uint32_t nro_reqtype;	/* NETMAP_REQ_OPT_* */
	uint32_t nro_status;	/* out: 0 or an errno */
	uint64_t nro_size;	/* bytes, for options of variable size */
};

struct nmreq_header {
	uint16_t nr_version;	/* NETMAP_MIN_API..NETMAP_MAX_API */
	uint16_t nr_reqtype;	/* NETMAP_REQ_* */
	uint32_t nr_reserved;	/* 0 */
	char	 nr_name[NETMAP_REQ_IFNAMSIZ];
	uint64_t nr_options;
	uint64_t nr_body;
};

enum {
	NETMAP_REQ_REGISTER = 1,		/* struct nmreq_register */
	NETMAP_REQ_PORT_INFO_GET,		/* struct nmreq_port_info_get */
	NETMAP_REQ_VALE_ATTACH,			/* struct nmreq_vale_attach */
	NETMAP_REQ_VALE_DETACH,			/* struct nmreq_vale_detach */
	NETMAP_REQ_VALE_LIST,			/* struct nmreq_vale_list */
	NETMAP_REQ_PORT_HDR_SET,		/* struct nmreq_port_hdr */
	NETMAP_REQ_PORT_HDR_GET,		/* struct nmreq_port_hdr */
	NETMAP_REQ_VALE_NEWIF,			/* struct nmreq_vale_newif */
	NETMAP_REQ_VALE_DELIF,			/* no body */
	NETMAP_REQ_VALE_POLLING_ENABLE,		/* struct nmreq_vale_polling */
	NETMAP_REQ_VALE_POLLING_DISABLE,	/* struct nmreq_vale_polling */
	NETMAP_REQ_POOLS_INFO_GET,		/* struct nmreq_pools_info */
	NETMAP_REQ_SYNC_KLOOP_START,	/* struct nmreq_sync_kloop_start */
	NETMAP_REQ_SYNC_KLOOP_STOP,		/* no body */
	NETMAP_REQ_CSB_ENABLE			/* no body */
};

enum {
	NETMAP_REQ_OPT_EXTMEM = 1,		/* struct nmreq_opt_extmem */
	NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS,
	NETMAP_REQ_OPT_CSB,			/* struct nmreq_opt_csb */
	NETMAP_REQ_OPT_SYNC_KLOOP_MODE,
	NETMAP_REQ_OPT_OFFSETS,			/* struct nmreq_opt_offsets */
	NETMAP_REQ_OPT_MAX			/* first unknown type */
};

/*
 * Ringway's own option of NETMAP_REQ_REGISTER, which others refuse by
 * EOPNOTSUPP: nro_size - 24 bytes of text follow the head, without a nul, in
 * the form that names have: "@filter=udp port 53@sample=10@mode=copy".
 */
#define NETMAP_REQ_OPT_RINGWAY	0x52574159

/* NETMAP_REQ_REGISTER: bind the descriptor to rings of a port. */
struct nmreq_register {
	uint64_t nr_offset;	/* out: netmap_if within the mapping */
	uint64_t nr_memsize;	/* out: bytes to map */
	uint32_t nr_tx_slots;	/* counts: asked when the port is created; */
	uint32_t nr_rx_slots;	/* out: those that the port has */
	uint16_t nr_tx_rings;
	uint16_t nr_rx_rings;
	uint16_t nr_host_tx_rings;
	uint16_t nr_host_rx_rings;
	uint16_t nr_mem_id;	/* in/out: region, 0 = default */
	uint16_t nr_ringid;	/* ring of the NR_REG_ONE_* modes */
	uint32_t nr_mode;	/* NR_REG_* */
	uint32_t nr_extra_bufs;	/* in/out: buffers for ni_bufs_head */
	uint64_t nr_flags;
};

/* nmreq_register.nr_mode: which rings */
enum {
	NR_REG_DEFAULT = 0,	/* refused here; legacy requests only */
	NR_REG_ALL_NIC = 1,
	NR_REG_SW = 2,		/* host rings */
	NR_REG_NIC_SW = 3,	/* NIC and host rings */
	NR_REG_ONE_NIC = 4,
	NR_REG_PIPE_MASTER = 5,	/* legacy; pipes are named PORT{ID */
	NR_REG_PIPE_SLAVE = 6,	/* legacy; pipes are named PORT}ID */
	NR_REG_NULL = 7,	/* a port that goes nowhere */
	NR_REG_ONE_SW = 8
};

/* nmreq_register.nr_flags */
#define NR_MONITOR_TX		0x100	/* copy what the port sends */
#define NR_MONITOR_RX		0x200	/* copy what the port receives */
#define NR_ZCOPY_MON		0x400	/* the same, sharing the buffers */
#define NR_EXCLUSIVE		0x800	/* nobody else on these rings */
#define NR_RX_RINGS_ONLY	0x2000
#define NR_TX_RINGS_ONLY	0x4000
#define NR_ACCEPT_VNET_HDR	0x8000
#define NR_DO_RX_POLL		0x10000	/* no effect */
#define NR_NO_TX_POLL		0x20000	/* only POLLOUT transmits */

#define NIOCCTRL	_IOWR('i', 151, struct nmreq_header)
#define NIOCTXSYNC	_IO('i', 148)
#define NIOCRXSYNC	_IO('i', 149)

/* NETMAP_REQ_PORT_INFO_GET: what REGISTER would report, without binding. */
struct nmreq_port_info_get {
	uint64_t nr_memsize;
	uint32_t nr_tx_slots;
	uint32_t nr_rx_slots;
	uint16_t nr_tx_rings;
	uint16_t nr_rx_rings;
	uint16_t nr_host_tx_rings;
	uint16_t nr_host_rx_rings;
	uint16_t nr_mem_id;
	uint16_t pad[3];
};

#define NM_BDG_NAME	"vale"	/* how the names of switch ports begin */

/* NETMAP_REQ_VALE_ATTACH: put interface Y on switch valeX, name valeX:Y. */
struct nmreq_vale_attach {
	struct nmreq_register reg;
	uint32_t port_index;	/* out */
	uint32_t pad1;
};

/* NETMAP_REQ_VALE_DETACH */
struct nmreq_vale_detach {
	uint32_t port_index;	/* out */
	uint32_t pad1;
};

/* NETMAP_REQ_VALE_LIST: find a name, or walk all ports with an empty name. */
struct nmreq_vale_list {
	uint16_t nr_bridge_idx;
	uint16_t pad1;
	uint32_t nr_port_idx;
};

/* NETMAP_REQ_PORT_HDR_SET, _GET: virtio-net header length (0, 10, 12). */
struct nmreq_port_hdr {
	uint32_t nr_hdr_len;
	uint32_t pad1;
};

/* NETMAP_REQ_VALE_NEWIF: create a port that outlives its users. */
struct nmreq_vale_newif {
	uint32_t nr_tx_slots;
	uint32_t nr_rx_slots;
	uint16_t nr_tx_rings;
	uint16_t nr_rx_rings;
	uint16_t nr_mem_id;
	uint16_t pad1;
};

/* NETMAP_REQ_VALE_POLLING_ENABLE, _DISABLE */
struct nmreq_vale_polling {
	uint32_t nr_mode;
#define NETMAP_POLLING_MODE_SINGLE_CPU	1
#define NETMAP_POLLING_MODE_MULTI_CPU	2
	uint32_t nr_first_cpu_id;
	uint32_t nr_num_polling_cpus;
	uint32_t pad1;
};

/* NETMAP_REQ_POOLS_INFO_GET: how a region is divided. */
struct nmreq_pools_info {
	uint64_t nr_memsize;
	uint16_t nr_mem_id;
	uint16_t pad1[3];
	uint64_t nr_if_pool_offset;
	uint32_t nr_if_pool_objtotal;
	uint32_t nr_if_pool_objsize;
	uint64_t nr_ring_pool_offset;
	uint32_t nr_ring_pool_objtotal;
	uint32_t nr_ring_pool_objsize;
	uint64_t nr_buf_pool_offset;
	uint32_t nr_buf_pool_objtotal;
	uint32_t nr_buf_pool_objsize;
};

/* NETMAP_REQ_SYNC_KLOOP_START */
struct nmreq_sync_kloop_start {
	uint32_t sleep_us;	/* between rounds; at most 1000000 */
	uint32_t pad1;
};

/*
 * CSB mode: instead of ring->head/cur/tail each bound ring has one entry that
 * only the program writes (atok) and one that only the port writes (ktoa).
 */
struct nm_csb_atok {
	uint32_t head;
	uint32_t cur;
	uint32_t appl_need_kick;	/* wake me when hwtail moves */
	uint32_t sync_flags;
	uint32_t pad[12];
};

struct nm_csb_ktoa {
	uint32_t hwcur;
	uint32_t hwtail;
	uint32_t kern_need_kick;	/* the port asks to be woken */
	uint32_t pad[13];
};

/* Orders stores among themselves, and loads among themselves. */
static inline void
nm_stst_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void
nm_ldld_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/*
 * Publish cur, then head: the port reads them in the opposite order, so it
 * never sees a head beyond the cur that came with it.
 */
static inline void
nm_sync_kloop_appl_write(struct nm_csb_atok *atok, uint32_t cur, uint32_t head)
{
	nm_stst_barrier();	/* the slots come before the indices */
	__atomic_store_n(&atok->cur, cur, __ATOMIC_RELAXED);
	nm_stst_barrier();
	__atomic_store_n(&atok->head, head, __ATOMIC_RELAXED);
}

/* Read hwtail, then hwcur; the slots may be read afterwards. */
static inline void
nm_sync_kloop_appl_read(struct nm_csb_ktoa *ktoa, uint32_t *hwtail,
			uint32_t *hwcur)
{
	*hwtail = __atomic_load_n(&ktoa->hwtail, __ATOMIC_RELAXED);
	nm_ldld_barrier();
	*hwcur = __atomic_load_n(&ktoa->hwcur, __ATOMIC_RELAXED);
	nm_ldld_barrier();
}

/* One pair for each bound ring, tx first; nro_size = 24 + 8 * rings. */
struct nmreq_opt_sync_kloop_eventfds {
	struct nmreq_option nro_opt;
	struct {
		int32_t ioeventfd;	/* program -> port */
		int32_t irqfd;		/* port -> program; -1 = none */
	} eventfds[];
};

struct nmreq_opt_sync_kloop_mode {
	struct nmreq_option nro_opt;
#define NM_OPT_SYNC_KLOOP_DIRECT_TX	0x0001
#define NM_OPT_SYNC_KLOOP_DIRECT_RX	0x0002
	uint32_t mode;
};

/* A region in memory that the program provides. */
struct nmreq_opt_extmem {
	struct nmreq_option nro_opt;
	uint64_t nro_usrptr;
	struct nmreq_pools_info nro_info;
};

/* Both arrays aligned to 64 bytes; needs NR_EXCLUSIVE. */
struct nmreq_opt_csb {
	struct nmreq_option nro_opt;
	uint64_t csb_atok;
	uint64_t csb_ktoa;
};

/* Packets that do not start at the start of their buffer. */
struct nmreq_opt_offsets {
	struct nmreq_option nro_opt;
	uint64_t nro_max_offset;	/* in/out */
	uint64_t nro_initial_offset;
	uint32_t nro_offset_bits;	/* of slot->ptr; 0 = 64 */
	uint32_t nro_tx_align;
	uint64_t nro_min_gap;
};

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#include <net/netmap_legacy.h>

#endif /* _NET_NETMAP_H_ */
