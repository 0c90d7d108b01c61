/*
 * Network interfaces of the Frame Manager. Each is a port of Ringway's; the configuration says which (see
 * docs/guide/usdpaa.md).
 */
#ifndef USDPAA_FMAN_H
#define USDPAA_FMAN_H

#include <net/ethernet.h>

#include "compat.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MEMAC_NUM_OF_PADDRS 7
#define MACCFG1_LOOPBACK 0x00000100
#define RCTRL_MPROM 0x00000008
#define RCTRL_UPROM 0x00000001
#define RCTRL_PROM (RCTRL_MPROM | RCTRL_UPROM)
#define CMD_CFG_LOOPBACK_EN 0x00000400
#define CMD_CFG_PROMIS_EN 0x00000010
#define FMAN_IP_REV_1 0xC30C4
#define FMAN_IP_REV_1_MAJOR_MASK 0x0000FF00
#define FMAN_IP_REV_1_MAJOR_SHIFT 8
#define FMAN_V3 0x06
#define FMAN_V3_CONTEXTA_EN_A2V 0x10000000
#define FMAN_V3_CONTEXTA_EN_OVOM 0x02000000
#define FMAN_V3_CONTEXTA_EN_EBD 0x80000000
#define FMAN_CONTEXTA_DIS_CHECKSUM 0x7
/* The longest frames of a MAC, in bytes. */
#define MAXFRM_SIZE_MEMAC 0x7fe0
#define MAXFRM_SIZE_DTSEC 0x2580

/* To print an address, with its six bytes as arguments. */
#define ETH_MAC_PRINTF_FMT "%02x:%02x:%02x:%02x:%02x:%02x"
#define ETH_MAC_PRINTF_ARGS(a) \
	(a)->ether_addr_octet[0], (a)->ether_addr_octet[1], (a)->ether_addr_octet[2], \
	(a)->ether_addr_octet[3], (a)->ether_addr_octet[4], (a)->ether_addr_octet[5]

enum fman_mac_type {
	fman_offline = 0,
	fman_mac_1g,
	fman_mac_10g,
	fman_mac_less,
	/* Of the kernel's, over the Frame Manager; no interface here is one. */
	fman_onic
};

/* A buffer pool that the interface takes buffers from. */
struct fman_if_bpool {
	uint32_t bpid;
	uint64_t count;
	/* Bytes of a buffer. */
	uint64_t size;
	uint64_t addr;
	struct list_head node;
};

struct macless_port_cfg {
	char *macless_name;
	uint32_t rx_start;
	uint32_t rx_count;
	uint32_t tx_start;
	uint32_t tx_count;
	struct ether_addr src_mac;
	struct ether_addr peer_mac;
};

struct shared_mac_cfg {
	int is_shared_mac;
	char *shared_mac_name;
};

struct fman_if {
	uint8_t fman_idx;
	/*
	 * Of an interface of the type fman_onic; others' default queue is in their
	 * `struct fm_eth_port_cfg`. It lies where earlier releases have padding.
	 */
	uint32_t fqid_rx_def : 24;
	enum fman_mac_type mac_type;
	uint8_t is_memac;
	uint8_t mac_idx;
	struct ether_addr mac_addr;
	/* Of frame queues whose frames the interface transmits. */
	u16 tx_channel_id;
	uint32_t fqid_rx_err;
	uint32_t fqid_tx_err;
	uint32_t fqid_tx_confirm;
	struct macless_port_cfg macless_info;
	struct shared_mac_cfg shared_mac_info;
	/* Of `struct fman_if_bpool`. */
	struct list_head bpool_list;
	/* In `fman_if_list`. */
	struct list_head node;
};

/* Of `struct fman_if`; NULL before fman_init(). */
extern const struct list_head *fman_if_list;

/* What is ORed to context A of frame queues for transmission, so that buffers are released by the interface. */
extern u32 fman_dealloc_bufs_mask_hi;
extern u32 fman_dealloc_bufs_mask_lo;

#define fman_if_for_each_bpool(bp, fif) list_for_each_entry(bp, &(fif)->bpool_list, node)

/* Opens the ports of the configuration, once; 0, or a negative error number, with a line on stderr. */
int fman_init(void);
/* Closes them. Nobody may use an interface any more. */
void fman_finish(void);

void fman_if_promiscuous_enable(const struct fman_if *fif);
void fman_if_promiscuous_disable(const struct fman_if *fif);
/* -EINVAL: no interface of Ringway's filters by addresses; all of them get what their port gets. */
int memac_add_hash_mac_addr(const struct fman_if *fif, uint8_t *eth);
void fman_if_enable_rx(const struct fman_if *fif);
void fman_if_disable_rx(const struct fman_if *fif);
/* What is transmitted is received by the same interface, and not sent. */
void fman_if_loopback_enable(const struct fman_if *fif);
void fman_if_loopback_disable(const struct fman_if *fif);

/* The same by later names. 0, or a negative error number: -ENOTSUP of what only a MAC has, -EINVAL of no interface. */
int fm_mac_set_promiscuous(const struct fman_if *fif);
int fm_mac_config_loopback(const struct fman_if *fif, bool enable);
/* The interface's address. */
int fm_mac_config(const struct fman_if *fif, uint8_t *eth);
int fm_mac_add_exact_match_mac_addr(const struct fman_if *fif, uint8_t *eth);
int fm_mac_set_rx_ignore_pause_frames(const struct fman_if *fif, bool enable);
int fm_mac_conf_max_frame_len(const struct fman_if *fif, unsigned int len);

static inline void fman_if_enable_all_rx(void)
{
	const struct fman_if *fif;
	if (fman_if_list)
		list_for_each_entry(fif, fman_if_list, node)
			fman_if_enable_rx(fif);
}

static inline void fman_if_disable_all_rx(void)
{
	const struct fman_if *fif;
	if (fman_if_list)
		list_for_each_entry(fif, fman_if_list, node)
			fman_if_disable_rx(fif);
}

#ifdef __cplusplus
}
#endif

#endif
