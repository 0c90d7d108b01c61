/*
 * What frame queues, entries and messages look like. fsl_qman.h includes this.
 *
 * Fields have the places that they have on x86-64, and names as on the hardware. Bits of a number that has a name of its
 * own (opaque, orpc, dest_wq, word) lie as in that number. Addresses of frames are the exception: they are big-endian, as
 * addr_hi stands before addr_lo, and a compiler that knows scalar_storage_order hides that. Others have no addr, and
 * convert addr_lo; qm_fd_addr, qm_fd_addr_set64 and their like work with all.
 */
#ifndef USDPAA_QMAN_STRUCT_H
#define USDPAA_QMAN_STRUCT_H

#pragma GCC system_header
#include "compat.h"
#include "qman_const.h"

#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#define USDPAA_BIG_ENDIAN __attribute__((__packed__, scalar_storage_order("big-endian")))
#define USDPAA_HAS_BIG_ENDIAN 1
#else
#define USDPAA_BIG_ENDIAN __packed
#endif

/* The low bits of an address in memory, from bit 0 of a big-endian number of eight bytes. */
static inline u64 usdpaa_get_address(const void *place, unsigned int bits)
{
	u64 word;

	memcpy(&word, place, sizeof(word));
	return __builtin_bswap64(word) & ((1ULL << bits) - 1);
}

static inline void usdpaa_set_address(void *place, u64 address, unsigned int bits)
{
	u64 word = __builtin_bswap64(address);
	unsigned int front = 8 - bits / 8;

	/* What is in front stays as it is, and may be anything. */
	memcpy((char *)place + front, (const char *)&word + front, bits / 8);
}

enum qm_dc_portal {
	qm_dc_portal_fman0 = 0,
	qm_dc_portal_fman1 = 1,
	qm_dc_portal_caam = 2,
	qm_dc_portal_pme = 3
};

enum qm_fd_format {
	qm_fd_contig = QM_FD_CONTIG,
	qm_fd_contig_big = QM_FD_CONTIG_BIG,
	qm_fd_sg = QM_FD_SG,
	qm_fd_sg_big = QM_FD_SG_BIG,
	qm_fd_compound = QM_FD_COMPOUND
};

/* A frame: where it is, and what. */
struct qm_fd {
	union {
		struct {
			u8 liodn_offset : 6;
			u8 dd : 2;
			u8 bpid : 8;
			u8 __reserved : 4;
			u8 eliodn_offset : 4;
		} __packed;
		struct {
			u8 __notaddress_hi[3];
			u8 addr_hi;
			u32 addr_lo;
		} USDPAA_BIG_ENDIAN;
#ifdef USDPAA_HAS_BIG_ENDIAN
		struct {
			u64 __notaddress : 24;
			u64 addr : 40;
		} USDPAA_BIG_ENDIAN;
#endif
		u64 opaque_addr;
	};
	union {
		u32 opaque;
		struct {
			u32 length20 : 20;
			u32 offset : 9;
			enum qm_fd_format format : 3;
		} __packed;
		struct {
			u32 length29 : 29;
			enum qm_fd_format _format1 : 3;
		} __packed;
		struct {
			u32 cong_weight : 29;
			enum qm_fd_format _format2 : 3;
		} __packed;
	};
	union {
		u32 cmd;
		u32 status;
	};
} __attribute__((__aligned__(8)));

/* An entry of a table of buffers. */
struct qm_sg_entry {
	union {
		struct {
			u8 __reserved1[3];
			u8 addr_hi;
			u32 addr_lo;
		} USDPAA_BIG_ENDIAN;
#ifdef USDPAA_HAS_BIG_ENDIAN
		struct {
			u64 __notaddress : 24;
			u64 addr : 40;
		} USDPAA_BIG_ENDIAN;
#endif
	};
	u32 length : 30;
	u32 final : 1;
	u32 extension : 1;
	u8 __reserved2;
	u8 bpid;
	u16 offset : 13;
	u16 __reserved3 : 3;
} __packed;

/* An enqueue command. */
struct qm_eqcr_entry {
	u8 __dont_write_directly__verb;
	u8 dca;
	u16 seqnum;
	u32 orp;
	u32 fqid;
	u32 tag;
	struct qm_fd fd;
	u8 __reserved3[32];
} __packed;

/* A frame that was dequeued. */
struct qm_dqrr_entry {
	u8 verb;
	u8 stat;
	u16 seqnum;
	u8 tok;
	u8 __reserved2[3];
	u32 fqid;
	u32 contextB;
	struct qm_fd fd;
	u8 __reserved4[32];
};

/* A message: a frame that was not taken (ern, and dcern of an engine's), or a frame queue that has changed (fq). */
struct qm_mr_entry {
	u8 verb;
	union {
		struct {
			u8 dca;
			u16 seqnum;
			u8 rc;
			u32 orp : 24;
			u32 fqid;
			u32 tag;
			struct qm_fd fd;
		} __packed ern;
		struct {
			u8 portal : 2;
			u8 __reserved1 : 4;
			u8 colour : 2;
			u16 __reserved2;
			u8 rc;
			u32 __reserved3 : 24;
			u32 fqid;
			u32 tag;
			struct qm_fd fd;
		} __packed dcern;
		struct {
			u8 fqs;
			u8 __reserved1[6];
			u32 fqid;
			u32 contextB;
			u8 __reserved2[16];
		} __packed fq;
	};
	u8 __reserved2[32];
} __packed __attribute__((__aligned__(8)));

struct qm_fqd_stashing {
	u8 exclusive;
	u8 context_cl : 2;
	u8 data_cl : 2;
	u8 annotation_cl : 2;
	u8 __reserved1 : 2;
} __packed;

/* Bytes, as mant << exp. */
struct qm_fqd_taildrop {
	u16 exp : 5;
	u16 mant : 8;
	u16 __reserved1 : 3;
} __packed;

struct qm_fqd_oac {
	u8 __reserved1 : 6;
	u8 oac : 2;
	signed char oal;
} __packed;

/* A frame queue's descriptor. */
struct qm_fqd {
	union {
		u8 orpc;
		struct {
			u8 olws : 2;
			u8 oa : 1;
			u8 orprws : 3;
			u8 __reserved1 : 2;
		} __packed;
	};
	u8 cgid;
	u16 fq_ctrl;
	union {
		u16 dest_wq;
		struct {
			u16 wq : 3;
			u16 channel : 13;
		} __packed dest;
	};
	u16 ics_cred : 15;
	u16 __reserved2 : 1;
	union {
		struct qm_fqd_taildrop td;
		struct qm_fqd_oac oac_init;
	};
	u32 context_b;
	union {
		u64 opaque;
		struct {
			u32 hi;
			u32 lo;
		} __packed;
		struct {
			struct qm_fqd_stashing stashing;
			u16 context_hi;
			u32 context_lo;
		} __packed;
	} __packed context_a;
	struct qm_fqd_oac oac_query;
} __packed;

struct qm_cgr_wr_parm {
	union {
		u32 word;
		struct {
			u32 Pn : 6;
			u32 Sn : 6;
			u32 SA : 7;
			u32 Mn : 5;
			u32 MA : 8;
		} __packed;
	};
} __packed;

/* Bytes or frames, as TA << Tn. */
struct qm_cgr_cs_thres {
	u16 Tn : 5;
	u16 TA : 8;
	u16 __reserved : 3;
} __packed;

struct __qm_mc_cgr {
	struct qm_cgr_wr_parm wr_parm_g;
	struct qm_cgr_wr_parm wr_parm_y;
	struct qm_cgr_wr_parm wr_parm_r;
	u8 wr_en_g;
	u8 wr_en_y;
	u8 wr_en_r;
	u8 cscn_en;
	union {
		struct {
			u16 cscn_targ_upd_ctrl;
			u16 cscn_targ_dcp_low;
		} __packed;
		u32 cscn_targ;
	};
	u8 cstd_en;
	u8 cs;
	struct qm_cgr_cs_thres cs_thres;
	u8 mode;
} __packed;

/* Only the fields that we_mask names are looked at. */
struct qm_mcc_initfq {
	u8 __reserved1;
	u16 we_mask;
	u32 fqid;
	u16 count;
	struct qm_fqd fqd;
	u8 __reserved3[30];
} __packed;

struct qm_mcc_initcgr {
	u8 __reserved1;
	u16 we_mask;
	struct __qm_mc_cgr cgr;
	u8 __reserved2[2];
	u8 cgid;
	u8 __reserved4[32];
} __packed;

struct qm_mcr_queryfq {
	u8 __reserved1[8];
	struct qm_fqd fqd;
	u8 __reserved2[30];
} __packed;

/* How a frame queue is now. */
struct qm_mcr_queryfq_np {
	u8 __reserved1;
	u8 state;
	u8 __reserved2;
	u32 fqd_link : 24;
	u16 odp_seq : 14;
	u16 __reserved3 : 2;
	u16 orp_nesn : 14;
	u16 __reserved4 : 2;
	u16 orp_ea_hseq : 15;
	u16 __reserved5 : 1;
	u16 orp_ea_tseq : 15;
	u16 __reserved6 : 1;
	u8 __reserved7;
	u32 orp_ea_hptr : 24;
	u8 __reserved8;
	u32 orp_ea_tptr : 24;
	u8 __reserved9;
	u32 pfdr_hptr : 24;
	u8 __reserved10;
	u32 pfdr_tptr : 24;
	u8 __reserved11[5];
	u8 is : 1;
	u8 __reserved12 : 7;
	u16 ics_surp;
	u32 byte_cnt;
	u8 __reserved13;
	u32 frm_cnt : 24;
	u32 __reserved14;
	u16 ra1_sfdr;
	u16 ra2_sfdr;
	u16 __reserved15;
	u16 od1_sfdr;
	u16 od2_sfdr;
	u16 od3_sfdr;
} __packed;

struct qm_mcr_querycgr {
	u16 __reserved1;
	struct __qm_mc_cgr cgr;
	u8 __reserved2[3];
	u32 __reserved3 : 24;
	u32 i_bcnt_hi : 8;
	u32 i_bcnt_lo;
	u32 __reserved4 : 24;
	u32 a_bcnt_hi : 8;
	u32 a_bcnt_lo;
	union {
		u32 cscn_targ_swp[4];
		u8 __reserved5[16];
	};
} __packed;

/* The same after a test write. */
struct qm_mcr_cgrtestwrite {
	u16 __reserved1;
	struct __qm_mc_cgr cgr;
	u8 __reserved2[3];
	u32 __reserved3 : 24;
	u32 i_bcnt_hi : 8;
	u32 i_bcnt_lo;
	u32 __reserved4 : 24;
	u32 a_bcnt_hi : 8;
	u32 a_bcnt_lo;
	u8 __reserved5[16];
} __packed;

/* A bit for each group, from the most significant of the first word. */
struct __qm_mcr_querycongestion {
	u32 state[8];
};

struct qm_mcr_querycongestion {
	u8 __reserved[32];
	struct __qm_mcr_querycongestion state;
};

/* How many frame queues wait on each work queue of a channel. */
struct qm_mcr_querywq {
	union {
		u16 channel_wq;
		struct {
			u16 __reserved : 3;
			u16 id : 13;
		} __packed channel;
	};
	u8 __reserved[28];
	u32 wq_len[8];
} __packed;

#endif
