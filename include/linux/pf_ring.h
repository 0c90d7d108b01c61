/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PF_RING 8.9: the constants and structures that a program and its rings have
 * in common. Ringway serves them in the program's process (libpfring.so):
 * there is no module, so the socket options are numbers alone.
 *
 * Structures are packed unless it is said otherwise: their fields may be
 * unaligned.
 */
#ifndef _LINUX_PF_RING_H
#define _LINUX_PF_RING_H

#include <stdint.h>
#include <time.h>
#include <sys/time.h>
#include <sys/types.h>
#include <netinet/in.h>

#define PF_RING_PACKED		__attribute__((packed))

/* What a program may have from other headers. */
#ifndef ETH_ALEN
#define ETH_ALEN		6
#endif
#ifndef IFNAMSIZ
#define IFNAMSIZ		16
#endif
#ifndef IN6ADDR_ANY_INIT
#define IN6ADDR_ANY_INIT	{ { { 0 } } }
#endif

/* C++ has std::min and std::max. */
#ifndef __cplusplus
#define min_val(a, b)		(((a) < (b)) ? (a) : (b))
#define max_val(a, b)		(((a) > (b)) ? (a) : (b))
#endif

/* The version of the interface. */
#define RING_VERSION		"8.9.0"
#define RING_VERSION_NUM	0x080900
#define RING_FLOWSLOT_VERSION	21
#define RING_MAGIC		/* each slot ends with the value */
#define RING_MAGIC_VALUE	0x88

#define PF_RING			27
#define SOCK_RING		PF_RING
#define SIORINGPOLL		0x8888

/* Errors of the library: negative results. */
#define PF_RING_ERROR_GENERIC			-1
#define PF_RING_ERROR_INVALID_ARGUMENT		-2
#define PF_RING_ERROR_NO_PKT_AVAILABLE		-3
#define PF_RING_ERROR_NO_TX_SLOT_AVAILABLE	-4
#define PF_RING_ERROR_WRONG_CONFIGURATION	-5
#define PF_RING_ERROR_END_OF_DEMO_MODE		-6
#define PF_RING_ERROR_NOT_SUPPORTED		-7
#define PF_RING_ERROR_INVALID_LIB_VERSION	-8
#define PF_RING_ERROR_UNKNOWN_ADAPTER		-9
#define PF_RING_ERROR_NOT_ENOUGH_MEMORY		-10
#define PF_RING_ERROR_INVALID_STATUS		-11
#define PF_RING_ERROR_RING_NOT_ENABLED		-12
#define PF_RING_ERROR_BAD_IFNAME		-13
#define PF_RING_ERROR_MOD_NOT_LOADED		-14
#define PF_RING_ERROR_UNABLE_TO_MAP		-15
#define PF_RING_ERROR_UNABLE_TO_GET_INFO	-16
#define PF_RING_ERROR_MMAP_FAILURE		-17
#define PF_RING_ERROR_INIT_FAILURE		-18

/* How much there can be of what. */
#define MIN_NUM_SLOTS			512
#define DEFAULT_NUM_SLOTS		4096
#define DEFAULT_BUCKET_LEN		128
#define MAX_NUM_DEVICES			256
#define MAX_NUM_RING_SOCKETS		512
#define MAX_NUM_LIST_ELEMENTS		MAX_NUM_RING_SOCKETS
#define DEFAULT_RING_HASH_SIZE		4096
#define DEFAULT_MIN_PKT_QUEUED		128
#define DEFAULT_POLL_WATERMARK_TIMEOUT	0
#define FILTERING_SAMPLING_RATIO	10
#define RING_MIN_SLOT_SIZE		(60 + sizeof(struct pfring_pkthdr))
#define RING_MAX_SLOT_SIZE		(1514 + sizeof(struct pfring_pkthdr))

/* Receive queues and VLANs. */
#define RING_ANY_CHANNEL		((u_int64_t)-1)
#define MAX_NUM_RX_CHANNELS		64
#define UNKNOWN_NUM_RX_CHANNELS		1
#define RING_ANY_VLAN			((u_int16_t)0xffff)
#define RING_NO_VLAN			((u_int16_t)0)

/* Interfaces that a packet may be said to be from. */
#define UNKNOWN_INTERFACE		-1
#define FAKE_PACKET			-2

/* Of socket options: what the library calls instead of these. */
#define SO_ADD_TO_CLUSTER			99
#define SO_REMOVE_FROM_CLUSTER			100
#define SO_SET_STRING				101
#define SO_ADD_FILTERING_RULE			102
#define SO_REMOVE_FILTERING_RULE		103
#define SO_TOGGLE_FILTER_POLICY			104
#define SO_SET_SAMPLING_RATE			105
#define SO_ACTIVATE_RING			106
#define SO_RING_BUCKET_LEN			107
#define SO_SET_CHANNEL_ID			108
#define SO_PURGE_IDLE_HASH_RULES		109
#define SO_SET_APPL_NAME			110
#define SO_SET_PACKET_DIRECTION			111
#define SO_SET_MASTER_RING			112
#define SO_ADD_HW_FILTERING_RULE		113
#define SO_DEL_HW_FILTERING_RULE		114
#define SO_DISCARD_INJECTED_PKTS		115
#define SO_DEACTIVATE_RING			116
#define SO_SET_POLL_WATERMARK			117
#define SO_SET_VIRTUAL_FILTERING_DEVICE		118
#define SO_REHASH_RSS_PACKET			119
#define SO_SET_FILTERING_SAMPLING_RATE		120
#define SO_SET_POLL_WATERMARK_TIMEOUT		121
#define SO_SET_DEV_TIME				122
#define SO_ADJ_DEV_TIME				123
#define SO_SHUTDOWN_RING			124
#define SO_PURGE_IDLE_RULES			125
#define SO_SET_SOCKET_MODE			126
#define SO_USE_SHORT_PKT_HEADER			127
#define SO_CONTROL_DEV_QUEUE			128
#define SO_ENABLE_RX_PACKET_BOUNCE		131
#define SO_SET_APPL_STATS			133
#define SO_SET_STACK_INJECTION_MODE		134
#define SO_CREATE_CLUSTER_REFEREE		135
#define SO_PUBLISH_CLUSTER_OBJECT		136
#define SO_LOCK_CLUSTER_OBJECT			137
#define SO_UNLOCK_CLUSTER_OBJECT		138
#define SO_SET_CUSTOM_BOUND_DEV_NAME		139
#define SO_SET_IFF_PROMISC			140
#define SO_SET_VLAN_ID				141

#define SO_GET_RING_VERSION			170
#define SO_GET_FILTERING_RULE_STATS		171
#define SO_GET_HASH_FILTERING_RULE_STATS	172
#define SO_GET_ZC_DEVICE_INFO			173
#define SO_GET_NUM_RX_CHANNELS			174
#define SO_GET_RING_ID				175
#define SO_GET_BPF_EXTENSIONS			176
#define SO_GET_BOUND_DEVICE_ADDRESS		177
#define SO_GET_NUM_QUEUED_PKTS			178
#define SO_GET_PKT_HEADER_LEN			179
#define SO_GET_LOOPBACK_TEST			180
#define SO_GET_BUCKET_LEN			181
#define SO_GET_DEVICE_TYPE			182
#define SO_GET_EXTRA_DMA_MEMORY			183
#define SO_GET_BOUND_DEVICE_IFINDEX		184
#define SO_GET_DEVICE_IFINDEX			185
#define SO_GET_APPL_STATS_FILE_NAME		186
#define SO_GET_LINK_STATUS			187
#define SO_GET_DEV_TX_TIME			188
#define SO_GET_DEV_STATS			189
#define SO_SELECT_ZC_DEVICE			190

/* Protocols behind an IPv6 header. */
#define NEXTHDR_HOP		0
#define NEXTHDR_IPV6		41
#define NEXTHDR_ROUTING		43
#define NEXTHDR_FRAGMENT	44
#define NEXTHDR_ESP		50
#define NEXTHDR_AUTH		51
#define NEXTHDR_NONE		59
#define NEXTHDR_DEST		60
#define NEXTHDR_MOBILITY	135

/* Tunnels. */
#define GRE_HEADER_CHECKSUM		0x8000
#define GRE_HEADER_ROUTING		0x4000
#define GRE_HEADER_KEY			0x2000
#define GRE_HEADER_SEQ_NUM		0x1000
#define GRE_HEADER_VERSION		0x0007
#define GTP_SIGNALING_PORT		2123
#define GTP_U_DATA_PORT			2152
#define GTP_VERSION_1			1
#define GTP_VERSION_2			2
#define GTP_PROTOCOL_TYPE		1
#define GTP_FLAGS_VERSION		0xe0
#define GTP_FLAGS_VERSION_SHIFT		5
#define GTP_FLAGS_PROTOCOL_TYPE		0x10
#define GTP_FLAGS_RESERVED		0x08
#define GTP_FLAGS_EXTENSION		0x04
#define GTP_FLAGS_SEQ_NUM		0x02
#define GTP_FLAGS_NPDU_NUM		0x01
#define GTP_EXT_HDR_LEN_UNIT_BYTES	4
#define NO_TUNNEL_ID			0xffffffff
#define MOBILE_IP_PORT			434
#define VXLAN_IP_PORT			4789

/* Flags of a packet: pfring_extended_pkthdr.flags. */
#define PKT_FLAGS_CHECKSUM_OFFLOAD	(1 << 0)
#define PKT_FLAGS_CHECKSUM_OK		(1 << 1)
#define PKT_FLAGS_IP_MORE_FRAG		(1 << 2)
#define PKT_FLAGS_IP_FRAG_OFFSET	(1 << 3)
#define PKT_FLAGS_VLAN_HWACCEL		(1 << 4)
#define PKT_FLAGS_FLOW_HIT		(1 << 5)
#define PKT_FLAGS_FLOW_MISS		(1 << 6)
#define PKT_FLAGS_FLOW_UNHANDLED	(1 << 7)

/* Names of before. */
#define PKT_FLAGS_FLOW_OFFLOAD_UPDATE	(1 << 5)
#define PKT_FLAGS_FLOW_OFFLOAD_PACKET	(1 << 6)
#define PKT_FLAGS_FLOW_OFFLOAD_MARKER	(1 << 7)

/* Rules. */
#define REFLECTOR_NAME_LEN		8
#define REFLECT_PACKET_DEVICE_NONE	0
#define FILTER_TUNNEL_ID_FLAG		1
#define FILTERING_RULE_AUTO_RULE_ID	0xffff
#define MAGIC_HW_FILTERING_RULE_REQUEST	0x29010020

#define PF_RING_FLOW_UPDATE_CAUSE_SW		0
#define PF_RING_FLOW_UPDATE_CAUSE_TIMEOUT	1
#define PF_RING_FLOW_UPDATE_CAUSE_TCP_TERM	2
#define PF_RING_FLOW_UPDATE_CAUSE_PROBE		4
#define PF_RING_FLOW_UPDATE_CAUSE_UNKNOWN	5

/* Clusters. */
#define MAX_CLUSTER_QUEUES			64
#define MAX_CLUSTER_TYPE_ID			cluster_per_flow_ip_with_dup_tuple
#define CLUSTER_OPTION_RELAXED_DISTRIBUTION	(1 << 0)

typedef enum pkt_header_len {
	long_pkt_header = 0,
	short_pkt_header
} pkt_header_len;

typedef enum {
	pkt_detail_flow = 0,
	pkt_detail_aggregation
} pkt_detail_mode;

/* What is done with a packet that a rule matches. */
typedef enum {
	forward_packet_and_stop_rule_evaluation = 0,
	dont_forward_packet_and_stop_rule_evaluation,
	execute_action_and_continue_rule_evaluation,
	execute_action_and_stop_rule_evaluation,
	forward_packet_add_rule_and_stop_rule_evaluation,
	reflect_packet_and_stop_rule_evaluation,
	reflect_packet_and_continue_rule_evaluation,
	bounce_packet_and_stop_rule_evaluation,
	bounce_packet_and_continue_rule_evaluation
} rule_action_behaviour;

typedef enum {
	rx_and_tx_direction = 0,
	rx_only_direction,
	tx_only_direction
} packet_direction;

typedef enum {
	send_and_recv_mode = 0,
	send_only_mode,
	recv_only_mode,
	management_only_mode
} socket_mode;

/* How the packets of a cluster are shared out. */
typedef enum {
	cluster_per_flow = 0,
	cluster_round_robin,
	cluster_per_flow_2_tuple,
	cluster_per_flow_4_tuple,
	cluster_per_flow_5_tuple,
	cluster_per_flow_tcp_5_tuple,
	cluster_per_inner_flow,
	cluster_per_inner_flow_2_tuple,
	cluster_per_inner_flow_4_tuple,
	cluster_per_inner_flow_5_tuple,
	cluster_per_inner_flow_tcp_5_tuple,
	cluster_per_flow_ip_5_tuple,
	cluster_per_inner_flow_ip_5_tuple,
	cluster_per_flow_ip_with_dup_tuple
} cluster_type;

typedef enum {
	cluster_slave = 0,
	cluster_master
} cluster_client_type;

typedef enum {
	standard_nic_family = 0,
	intel_82599_family
} pfring_device_type;

/* IPv4 addresses are in host order, IPv6 addresses as on the wire. */
typedef union {
	struct in6_addr v6;
	u_int32_t v4;
} ip_addr;

/* Where the headers of a packet begin. */
struct pkt_offset {
	int16_t eth_offset;
	int16_t vlan_offset;
	int16_t l3_offset;
	int16_t l4_offset;
	int16_t payload_offset;
} PF_RING_PACKED;

typedef struct {
	u_int32_t tunnel_id;	/* NO_TUNNEL_ID outside of tunnels */
	u_int8_t tunneled_dmac[6], tunneled_smac[6];
	u_int16_t tunneled_eth_type;
	u_int8_t tunneled_ip_version;
	u_int8_t tunneled_proto;
	ip_addr tunneled_ip_src, tunneled_ip_dst;
	u_int16_t tunneled_l4_src_port, tunneled_l4_dst_port;
} PF_RING_PACKED tunnel_info;

/* What was read of a packet's headers; numbers in host order. */
struct pkt_parsing_info {
	u_int8_t dmac[6], smac[6];
	u_int16_t eth_type;
	u_int16_t vlan_id;
	u_int16_t qinq_vlan_id;
	u_int8_t ip_version;
	u_int8_t l3_proto;
	u_int8_t ip_tos;
	ip_addr ip_src, ip_dst;
	u_int16_t l4_src_port, l4_dst_port;
	u_int8_t icmp_type, icmp_code;
	struct {		/* 12 bytes: not packed within */
		u_int8_t flags;
		u_int32_t seq_num, ack_num;
	} tcp;
	tunnel_info tunnel;
	int32_t last_matched_rule_id;
	struct pkt_offset offset;
} PF_RING_PACKED;

#define ipv4_tos	ip_tos
#define ipv6_tos	ip_tos
#define ipv4_src	ip_src.v4
#define ipv4_dst	ip_dst.v4
#define ipv6_src	ip_src.v6
#define ipv6_dst	ip_dst.v6
#define host4_low	host_low.v4
#define host4_high	host_high.v4
#define host6_low	host_low.v6
#define host6_high	host_high.v6
#define host4_peer_a	host_peer_a.v4
#define host4_peer_b	host_peer_b.v4
#define host6_peer_a	host_peer_a.v6
#define host6_peer_b	host_peer_b.v6

struct pfring_extended_pkthdr {
	u_int64_t timestamp_ns;	/* 0 where there is none as fine */
	u_int32_t flags;	/* PKT_FLAGS_* */
	u_int8_t rx_direction;	/* 1 received, 0 sent */
	u_int8_t port_id;
	u_int16_t device_id;
	int32_t if_index;
	u_int32_t pkt_hash;
	/* The short header ends here. */
	struct {		/* 16 bytes: not packed within */
		int32_t bounce_interface;
		struct sk_buff *reserved;
	} tx;
	struct {
		u_int32_t pid;
	} process;
	struct pkt_parsing_info parsed_pkt;
} PF_RING_PACKED;

/* In front of each packet. It begins as libpcap's does. */
struct pfring_pkthdr {
	struct timeval ts;
	u_int32_t caplen;
	u_int32_t len;
	struct pfring_extended_pkthdr extended_hdr;
} PF_RING_PACKED;

/* Headers, as on the wire. */
struct eth_vlan_hdr {
	u_int16_t h_vlan_id;
	u_int16_t h_proto;
} PF_RING_PACKED;

struct kcompact_ipv6_hdr {
	u_int32_t flow_lbl:24, priority:4, version:4;
	u_int16_t payload_len;
	u_int8_t nexthdr;
	u_int8_t hop_limit;
	struct in6_addr saddr, daddr;
} PF_RING_PACKED;

struct kcompact_ipv6_opt_hdr {
	u_int8_t nexthdr;
	u_int8_t hdrlen;
	u_int8_t padding[6];
} PF_RING_PACKED;

struct gre_header {
	u_int16_t flags_and_version;
	u_int16_t proto;
} PF_RING_PACKED;

struct gtp_v1_hdr {
	u_int8_t flags;
	u_int8_t message_type;
	u_int16_t payload_len;
	u_int32_t teid;
} PF_RING_PACKED;

struct gtp_v1_opt_hdr {
	u_int16_t seq_num;
	u_int8_t npdu_num;
	u_int8_t next_ext_hdr;
} PF_RING_PACKED;

struct gtp_v1_ext_hdr {
	u_int8_t len;
} PF_RING_PACKED;

struct mobile_ip_hdr {
	u_int8_t message_type;
	u_int8_t next_header;
	u_int16_t reserved;
} PF_RING_PACKED;

struct vxlan_hdr {
	u_int8_t flags[2];
	u_int16_t gdp;
	u_int8_t vni[3];
	u_int8_t res;
} PF_RING_PACKED;

/* Belongs to the capture. */
typedef struct {
	unsigned long jiffies_last_match;
	struct net_device *reflector_dev;
} PF_RING_PACKED filtering_internals;

/* What a wildcard rule asks of a packet: zeros match everything. */
typedef struct {
	int32_t if_index;
	u_int8_t smac[6], dmac[6];
	u_int16_t vlan_id;
	u_int16_t eth_type;
	u_int8_t proto;
	ip_addr shost, dhost;
	ip_addr shost_mask, dhost_mask;
	u_int16_t sport_low, sport_high;
	u_int16_t dport_low, dport_high;
	struct {
		u_int8_t flags;
	} tcp;
} PF_RING_PACKED filtering_rule_core_fields;

typedef struct {
	u_int16_t optional_fields;	/* FILTER_TUNNEL_ID_FLAG */
	struct {
		u_int32_t tunnel_id;
		ip_addr shost, dhost;
		ip_addr shost_mask, dhost_mask;
	} PF_RING_PACKED tunnel;
	char payload_pattern[32];
} PF_RING_PACKED filtering_rule_extended_fields;

typedef struct {
	u_int16_t rule_id;
	rule_action_behaviour rule_action;
	u_int8_t balance_id, balance_pool;
	u_int8_t locked;	/* spared when idle rules are purged */
	u_int8_t bidirectional;
	filtering_rule_core_fields core_fields;
	filtering_rule_extended_fields extended_fields;
	char reflector_device_name[REFLECTOR_NAME_LEN];
	filtering_internals internals;
} PF_RING_PACKED filtering_rule;

/* A rule for the packets between two ends, in both directions. */
typedef struct {
	u_int16_t rule_id;
	u_int16_t vlan_id;
	u_int8_t ip_version;
	u_int8_t proto;
	ip_addr host_peer_a, host_peer_b;
	u_int16_t port_peer_a, port_peer_b;
	rule_action_behaviour rule_action;
	char reflector_device_name[REFLECTOR_NAME_LEN];
	filtering_internals internals;
} PF_RING_PACKED hash_filtering_rule;

typedef struct {
	u_int64_t match;
	u_int64_t filtered;
	u_int64_t match_forward;
	u_int32_t inactivity;	/* seconds */
} PF_RING_PACKED hash_filtering_rule_stats;

/* Rules of hardware. */
typedef enum {
	drop_rule = 0,
	redirect_rule,
	mirror_rule
} silicom_redirector_rule_type;

typedef enum {
	default_pass = 0,
	default_drop
} generic_default_action_type;

typedef enum {
	flow_drop_rule = 0,
	flow_mark_rule,
	flow_pass_rule,
	flow_steer_rule,
	flow_unlearn_rule
} generic_flow_rule_action_type;

typedef enum {
	intel_82599_five_tuple_rule = 0,
	intel_82599_perfect_filter_rule,
	silicom_redirector_rule,
	generic_flow_id_rule,
	generic_flow_tuple_rule,
	accolade_rule,		/* of before, as the next */
	accolade_default
} hw_filtering_rule_type;

typedef enum {
	accolade_drop = 0,
	accolade_pass
} accolade_rule_action_type;

typedef enum {
	add_hw_rule = 0,
	remove_hw_rule
} hw_filtering_rule_command;

typedef struct {
	u_int8_t proto;
	u_int32_t s_addr, d_addr;
	u_int16_t s_port, d_port;
	u_int16_t queue_id;
} PF_RING_PACKED intel_82599_five_tuple_filter_hw_rule;

typedef struct {
	u_int16_t vlan_id;
	u_int8_t proto;
	u_int32_t s_addr, d_addr;
	u_int16_t s_port, d_port;
	u_int16_t queue_id;
} PF_RING_PACKED intel_82599_perfect_filter_hw_rule;

typedef struct {
	silicom_redirector_rule_type rule_type;
	u_int8_t rule_port;
	u_int8_t rule_target_port;
	u_int16_t vlan_id_low, vlan_id_high;
	u_int8_t l3_proto;
	ip_addr src_addr, dst_addr;
	u_int32_t src_mask, dst_mask;
	u_int16_t src_port_low, src_port_high;
	u_int16_t dst_port_low, dst_port_high;
} PF_RING_PACKED silicom_redirector_hw_rule;

typedef struct {
	generic_flow_rule_action_type action;
	u_int64_t flow_id;
	u_int32_t thread;
} PF_RING_PACKED generic_flow_id_hw_rule;

typedef struct {
	generic_flow_rule_action_type action;
	ip_addr src_ip, dst_ip;
	ip_addr src_ip_mask, dst_ip_mask;
	u_int16_t src_port, dst_port;
	u_int16_t vlan_id;
	u_int8_t ip_version;
	u_int8_t protocol;
	u_int8_t interface;
	u_int8_t queue_id;
	u_int64_t flow_id;
} PF_RING_PACKED generic_flow_tuple_hw_rule;

typedef struct {
	accolade_rule_action_type action;
	u_int8_t ip_version;
	u_int8_t protocol;
	u_int16_t vlan_id;
	u_int32_t mpls_label;
	ip_addr src_addr, dst_addr;
	u_int8_t src_addr_bits, dst_addr_bits;
	u_int16_t src_port_low, src_port_high;
	u_int16_t dst_port_low, dst_port_high;
	u_int8_t steer_to_ring, ring_id;
} PF_RING_PACKED accolade_hw_rule;

typedef struct {
	hw_filtering_rule_type rule_family_type;
	u_int16_t rule_id;
	u_int16_t priority;
	union {
		intel_82599_five_tuple_filter_hw_rule five_tuple_rule;
		intel_82599_perfect_filter_hw_rule perfect_rule;
		silicom_redirector_hw_rule redirector_rule;
		generic_flow_id_hw_rule flow_id_rule;
		generic_flow_tuple_hw_rule flow_tuple_rule;
		accolade_hw_rule accolade_rule;
	} rule_family;
} PF_RING_PACKED hw_filtering_rule;

/* Not packed. */
struct add_to_cluster {
	u_int16_t cluster_id;
	u_int16_t queue_id;
	u_int32_t options;
	cluster_type the_type;
};

typedef struct {
	char device_name[16];
	pfring_device_type device_type;
	struct proc_dir_entry *proc_entry;
} PF_RING_PACKED virtual_filtering_device_info;

struct pfring_timespec {
	u_int32_t tv_sec;
	u_int32_t tv_nsec;
} PF_RING_PACKED;

/* Of flows that hardware counts. Not packed. */
typedef struct {
	u_int64_t flow_id;
	u_int8_t cause;		/* PF_RING_FLOW_UPDATE_CAUSE_* */
	u_int8_t reserved0;
	u_int16_t reserved1;
	u_int16_t flags_a, flags_b;
	u_int32_t packets_a, packets_b;
	u_int64_t bytes_a, bytes_b;
	struct pfring_timespec last_seen;
} pfring_flow_update;

/* A ring's counters, where a ring is shared memory: a page of each side's. */
typedef struct flowSlotInfo {
	u_int16_t version, sample_rate;
	u_int32_t min_num_slots, slot_len, data_len;
	u_int64_t tot_mem;
	volatile u_int64_t insert_off;
	u_int64_t kernel_remove_off;
	u_int64_t tot_pkts, tot_lost;
	volatile u_int64_t tot_insert;
	u_int64_t kernel_tot_read;
	u_int64_t tot_fwd_ok, tot_fwd_notok;
	u_int64_t good_pkt_sent, pkt_send_error;
	char padding[24];
	char k_padding[3968];
	volatile u_int64_t tot_read;
	volatile u_int64_t remove_off;
	char u_padding[4080];
} PF_RING_PACKED FlowSlotInfo;

#endif
