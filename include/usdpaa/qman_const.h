/* Constants of the queue manager, by what they are for. fsl_qman.h includes this. */
#ifndef USDPAA_QMAN_CONST_H
#define USDPAA_QMAN_CONST_H

/* Channels: of the first portal */
#define QM_CHANNEL_SWPORTAL0 0

/* Channels of the first pool, and of engines, by revision */
#define QMAN_CHANNEL_POOL1      0x21
#define QMAN_CHANNEL_CAAM       0x80
#define QMAN_CHANNEL_PME        0xa0
#define QMAN_CHANNEL_POOL1_REV3 0x401
#define QMAN_CHANNEL_CAAM_REV3  0x840
#define QMAN_CHANNEL_PME_REV3   0x860

/* Sources of interrupts */
#define QM_PIRQ_CCSCI 0x200000
#define QM_PIRQ_CSCI  0x100000
#define QM_PIRQ_EQCI  0x80000
#define QM_PIRQ_EQRI  0x40000
#define QM_PIRQ_DQRI  0x20000
#define QM_PIRQ_MRI   0x10000
#define QM_PIRQ_SLOW  0x3d0000

/* Static dequeues */
#define QM_SDQCR_CHANNELS_POOL_MASK 0x7fff

/* Volatile dequeues */
#define QM_VDQCR_PRECEDENCE_VDQCR    0
#define QM_VDQCR_PRECEDENCE_SDQCR    0x80000000
#define QM_VDQCR_EXACT               0x40000000
#define QM_VDQCR_NUMFRAMES_MASK      0x3f000000
#define QM_VDQCR_NUMFRAMES_TILLEMPTY 0

/* Formats of frames */
#define QM_FD_FORMAT_SG       4
#define QM_FD_FORMAT_LONG     2
#define QM_FD_FORMAT_COMPOUND 1
#define QM_FD_CONTIG          0
#define QM_FD_CONTIG_BIG      2
#define QM_FD_SG              4
#define QM_FD_SG_BIG          6
#define QM_FD_COMPOUND        1
#define QM_FD_DD_NULL         0
#define QM_FD_PID_MASK        0x3f

/* Enqueue commands */
#define QM_EQCR_VERB_VBIT            0x80
#define QM_EQCR_VERB_CMD_MASK        0x61
#define QM_EQCR_VERB_CMD_ENQUEUE     1
#define QM_EQCR_VERB_COLOUR_MASK     0x18
#define QM_EQCR_VERB_COLOUR_GREEN    0
#define QM_EQCR_VERB_COLOUR_YELLOW   8
#define QM_EQCR_VERB_COLOUR_RED      0x10
#define QM_EQCR_VERB_COLOUR_OVERRIDE 0x18
#define QM_EQCR_VERB_INTERRUPT       4
#define QM_EQCR_VERB_ORP             2
#define QM_EQCR_DCA_ENABLE           0x80
#define QM_EQCR_DCA_PARK             0x40
#define QM_EQCR_DCA_IDXMASK          0xf
#define QM_EQCR_SEQNUM_NESN          0x8000
#define QM_EQCR_SEQNUM_NLIS          0x4000
#define QM_EQCR_SEQNUM_SEQMASK       0x3fff
#define QM_EQCR_FQID_NULL            0

/* Entries */
#define QM_DQRR_VERB_VBIT             0x80
#define QM_DQRR_VERB_MASK             0x7f
#define QM_DQRR_VERB_FRAME_DEQUEUE    0x60
#define QM_DQRR_STAT_FQ_EMPTY         0x80
#define QM_DQRR_STAT_FQ_HELDACTIVE    0x40
#define QM_DQRR_STAT_FQ_FORCEELIGIBLE 0x20
#define QM_DQRR_STAT_FD_VALID         0x10
#define QM_DQRR_STAT_UNSCHEDULED      2
#define QM_DQRR_STAT_DQCR_EXPIRED     1

/* Messages */
#define QM_MR_VERB_VBIT             0x80
#define QM_MR_VERB_TYPE_MASK        0x27
#define QM_MR_VERB_DC_ERN           0x20
#define QM_MR_VERB_FQRN             0x21
#define QM_MR_VERB_FQRNI            0x22
#define QM_MR_VERB_FQRL             0x23
#define QM_MR_VERB_FQPN             0x24
#define QM_MR_RC_MASK               0xf0
#define QM_MR_RC_CGR_TAILDROP       0
#define QM_MR_RC_WRED               0x10
#define QM_MR_RC_ERROR              0x20
#define QM_MR_RC_ORPWINDOW_EARLY    0x30
#define QM_MR_RC_ORPWINDOW_LATE     0x40
#define QM_MR_RC_FQ_TAILDROP        0x50
#define QM_MR_RC_ORPWINDOW_RETIRED  0x60
#define QM_MR_RC_ORP_ZERO           0x70
#define QM_MR_FQS_ORLPRESENT        2
#define QM_MR_FQS_NOTEMPTY          1
#define QM_MR_DCERN_COLOUR_GREEN    0
#define QM_MR_DCERN_COLOUR_YELLOW   1
#define QM_MR_DCERN_COLOUR_RED      2
#define QM_MR_DCERN_COLOUR_OVERRIDE 3

/* Control of a frame queue */
#define QM_FQCTRL_MASK          0x7ff
#define QM_FQCTRL_CGE           0x400
#define QM_FQCTRL_TDE           0x200
#define QM_FQCTRL_ORP           0x100
#define QM_FQCTRL_CTXASTASHING  0x80
#define QM_FQCTRL_CPCSTASH      0x40
#define QM_FQCTRL_FORCESFDR     8
#define QM_FQCTRL_AVOIDBLOCK    4
#define QM_FQCTRL_HOLDACTIVE    2
#define QM_FQCTRL_PREFERINCACHE 1
#define QM_FQCTRL_LOCKINCACHE   1

/* Stashing */
#define QM_STASHING_EXCL_ANNOTATION 4
#define QM_STASHING_EXCL_DATA       2
#define QM_STASHING_EXCL_CTX        1

/* Overhead accounting */
#define QM_OAC_ICS 2
#define QM_OAC_CG  1

/* Fields of a group that are written */
#define QM_CGR_WE_MASK      0x7ff
#define QM_CGR_WE_WR_PARM_G 0x400
#define QM_CGR_WE_WR_PARM_Y 0x200
#define QM_CGR_WE_WR_PARM_R 0x100
#define QM_CGR_WE_WR_EN_G   0x80
#define QM_CGR_WE_WR_EN_Y   0x40
#define QM_CGR_WE_WR_EN_R   0x20
#define QM_CGR_WE_CSCN_EN   0x10
#define QM_CGR_WE_CSCN_TARG 8
#define QM_CGR_WE_CSTD_EN   4
#define QM_CGR_WE_CS_THRES  2
#define QM_CGR_WE_MODE      1

/* Congestion groups */
#define QM_CGR_EN                      1
#define QM_CGR_TARG_UDP_CTRL_WRITE_BIT 0x8000
#define QM_CGR_TARG_UDP_CTRL_DCP       0x4000
#define QM_CGR_TARG_FMAN0              0x200000
#define QM_CGR_TARG_FMAN1              0x100000

/* Management commands */
#define QM_MCC_VERB_VBIT              0x80
#define QM_MCC_VERB_MASK              0x7f
#define QM_MCC_VERB_INITFQ_PARKED     0x40
#define QM_MCC_VERB_INITFQ_SCHED      0x41
#define QM_MCC_VERB_QUERYFQ           0x44
#define QM_MCC_VERB_QUERYFQ_NP        0x45
#define QM_MCC_VERB_QUERYWQ           0x46
#define QM_MCC_VERB_QUERYWQ_DEDICATED 0x47
#define QM_MCC_VERB_ALTER_SCHED       0x48
#define QM_MCC_VERB_ALTER_FE          0x49
#define QM_MCC_VERB_ALTER_RETIRE      0x4a
#define QM_MCC_VERB_ALTER_OOS         0x4b
#define QM_MCC_VERB_ALTER_FQXON       0x4d
#define QM_MCC_VERB_ALTER_FQXOFF      0x4e
#define QM_MCC_VERB_INITCGR           0x50
#define QM_MCC_VERB_MODIFYCGR         0x51
#define QM_MCC_VERB_CGRTESTWRITE      0x52
#define QM_MCC_VERB_QUERYCGR          0x58
#define QM_MCC_VERB_QUERYCONGESTION   0x59

/* Fields of a frame queue that are written */
#define QM_INITFQ_WE_MASK     0x1ff
#define QM_INITFQ_WE_OAC      0x100
#define QM_INITFQ_WE_ORPC     0x80
#define QM_INITFQ_WE_CGID     0x40
#define QM_INITFQ_WE_FQCTRL   0x20
#define QM_INITFQ_WE_DESTWQ   0x10
#define QM_INITFQ_WE_ICSCRED  8
#define QM_INITFQ_WE_TDTHRESH 4
#define QM_INITFQ_WE_CONTEXTB 2
#define QM_INITFQ_WE_CONTEXTA 1

/* Results of management commands */
#define QM_MCR_VERB_RRID              0x80
#define QM_MCR_VERB_MASK              0x7f
#define QM_MCR_VERB_INITFQ_PARKED     0x40
#define QM_MCR_VERB_INITFQ_SCHED      0x41
#define QM_MCR_VERB_QUERYFQ           0x44
#define QM_MCR_VERB_QUERYFQ_NP        0x45
#define QM_MCR_VERB_QUERYWQ           0x46
#define QM_MCR_VERB_QUERYWQ_DEDICATED 0x47
#define QM_MCR_VERB_ALTER_SCHED       0x48
#define QM_MCR_VERB_ALTER_FE          0x49
#define QM_MCR_VERB_ALTER_RETIRE      0x4a
#define QM_MCR_VERB_ALTER_OOS         0x4b
#define QM_MCR_RESULT_NULL            0
#define QM_MCR_RESULT_OK              0xf0
#define QM_MCR_RESULT_ERR_FQID        0xf1
#define QM_MCR_RESULT_ERR_FQSTATE     0xf2
#define QM_MCR_RESULT_ERR_NOTEMPTY    0xf3
#define QM_MCR_RESULT_ERR_BADCHANNEL  0xf4
#define QM_MCR_RESULT_PENDING         0xf8
#define QM_MCR_RESULT_ERR_BADCOMMAND  0xff
#define QM_MCR_NP_STATE_FE            0x10
#define QM_MCR_NP_STATE_R             8
#define QM_MCR_NP_STATE_MASK          7
#define QM_MCR_NP_STATE_OOS           0
#define QM_MCR_NP_STATE_RETIRED       1
#define QM_MCR_NP_STATE_TEN_SCHED     2
#define QM_MCR_NP_STATE_TRU_SCHED     3
#define QM_MCR_NP_STATE_PARKED        4
#define QM_MCR_NP_STATE_ACTIVE        5
#define QM_MCR_NP_PTR_MASK            0x7ff
#define QM_MCR_FQS_ORLPRESENT         2
#define QM_MCR_FQS_NOTEMPTY           1

/* Flags of qman_create_fq */
#define QMAN_FQ_FLAG_NO_ENQUEUE   1
#define QMAN_FQ_FLAG_NO_MODIFY    2
#define QMAN_FQ_FLAG_TO_DCPORTAL  4
#define QMAN_FQ_FLAG_LOCKED       8
#define QMAN_FQ_FLAG_AS_IS        0x10
#define QMAN_FQ_FLAG_DYNAMIC_FQID 0x20

/* Flags of qman_destroy_fq */
#define QMAN_FQ_DESTROY_PARKED 1

/* Flags of qman_fq_state */
#define QMAN_FQ_STATE_CHANGING 0x80000000
#define QMAN_FQ_STATE_NE       0x40000000
#define QMAN_FQ_STATE_ORL      0x20000000
#define QMAN_FQ_STATE_BLOCKOOS 0xe0000000
#define QMAN_FQ_STATE_CGR_EN   0x10000000
#define QMAN_FQ_STATE_VDQCR    0x8000000

/* Flags of qman_init_fq */
#define QMAN_INITFQ_FLAG_SCHED 1
#define QMAN_INITFQ_FLAG_LOCAL 4

/* Flags of qman_enqueue and qman_enqueue_orp */
#define QMAN_ENQUEUE_FLAG_WATCH_CGR  0x80000
#define QMAN_ENQUEUE_FLAG_DCA        0x8000
#define QMAN_ENQUEUE_FLAG_DCA_PARK   0x4000
#define QMAN_ENQUEUE_FLAG_C_GREEN    0
#define QMAN_ENQUEUE_FLAG_C_YELLOW   8
#define QMAN_ENQUEUE_FLAG_C_RED      0x10
#define QMAN_ENQUEUE_FLAG_C_OVERRIDE 0x18
#define QMAN_ENQUEUE_FLAG_NLIS       0x1000000
#define QMAN_ENQUEUE_FLAG_HOLE       0x2000000
#define QMAN_ENQUEUE_FLAG_NESN       0x4000000

/* Flags and modes of groups */
#define QMAN_CGR_FLAG_USE_INIT 1
#define QMAN_CGR_MODE_FRAME    1

/* Fields of a customer-edge group that are written */
#define QM_CCGR_WE_CDV          0
#define QM_CCGR_WE_MODE         1
#define QM_CCGR_WE_CS_THRES_IN  2
#define QM_CCGR_WE_TD_EN        4
#define QM_CCGR_WE_CSCN_TUPD    8
#define QM_CCGR_WE_CSCN_EN      0x10
#define QM_CCGR_WE_WR_EN_R      0x20
#define QM_CCGR_WE_WR_EN_Y      0x40
#define QM_CCGR_WE_WR_EN_G      0x80
#define QM_CCGR_WE_WR_PARM_R    0x100
#define QM_CCGR_WE_WR_PARM_Y    0x200
#define QM_CCGR_WE_WR_PARM_G    0x400
#define QM_CCGR_WE_OAL          0x800
#define QM_CCGR_WE_CS_THRES_OUT 0x1000
#define QM_CCGR_WE_TD_THRES     0x2000
#define QM_CCGR_WE_TD_MODE      0x4000

/* A pool of portals, 1 to 15, in a mask of static dequeues. */
#define QM_SDQCR_CHANNELS_POOL(n) (0x8000 >> (n))

/* How many frames a volatile dequeue takes: 1 to 63. */
#define QM_VDQCR_NUMFRAMES_SET(n) (((n) & 0x3f) << 24)
#define QM_VDQCR_NUMFRAMES_GET(v) (((v) >> 24) & 0x3f)

/* A portal that is told of a group. */
#define QM_CGR_TARG_PORTAL(n) (0x80000000 >> (n))

/* Fields of what qman_query_fq_np gives. */
#define QM_MCR_NP_RA1_NRA(v) (((v) >> 14) & 0x3)
#define QM_MCR_NP_RA2_IT(v)  (((v) >> 14) & 0x1)
#define QM_MCR_NP_OD1_NOD(v) (((v) >> 14) & 0x3)
#define QM_MCR_NP_OD3_NPC(v) (((v) >> 14) & 0x3)

#endif
