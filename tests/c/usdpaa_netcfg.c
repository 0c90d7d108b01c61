/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces and their configuration: what the structures look like, what the lists hold, what the functions say to
 * arguments that are none. Prints the configuration.
 *
 * usage: usdpaa_netcfg POLICIES CONFIG [wait]
 */
#include "check.h"

#include <fman.h>
#include <fsl_fman.h>
#include <fsl_qman.h>
#include <fsl_usd.h>
#include <of.h>
#include <ringway.h>
#include <usdpaa_netcfg.h>

#define SIZE(type, size) \
	check_number((long long)sizeof(struct type), size, "sizeof(struct " #type ")")
#define AT(type, field, offset, size) \
	do { \
		check_number((long long)offsetof(struct type, field), offset, "offset of " #type "." #field); \
		check_number((long long)sizeof(((struct type *)0)->field), size, "size of " #type "." #field); \
	} while (0)

static void
check_layout(void)
{
	SIZE(fman_if_bpool, 48);
	AT(fman_if_bpool, bpid, 0, 4);
	AT(fman_if_bpool, count, 8, 8);
	AT(fman_if_bpool, size, 16, 8);
	AT(fman_if_bpool, addr, 24, 8);
	AT(fman_if_bpool, node, 32, 16);
	SIZE(shared_mac_cfg, 16);
	AT(shared_mac_cfg, is_shared_mac, 0, 4);
	AT(shared_mac_cfg, shared_mac_name, 8, 8);
	SIZE(macless_port_cfg, 40);
	AT(macless_port_cfg, macless_name, 0, 8);
	AT(macless_port_cfg, rx_start, 8, 4);
	AT(macless_port_cfg, rx_count, 12, 4);
	AT(macless_port_cfg, tx_start, 16, 4);
	AT(macless_port_cfg, tx_count, 20, 4);
	AT(macless_port_cfg, src_mac, 24, 6);
	AT(macless_port_cfg, peer_mac, 30, 6);
	SIZE(fman_if, 120);
	AT(fman_if, fman_idx, 0, 1);
	AT(fman_if, mac_type, 4, 4);
	AT(fman_if, is_memac, 8, 1);
	AT(fman_if, mac_idx, 9, 1);
	AT(fman_if, mac_addr, 10, 6);
	AT(fman_if, tx_channel_id, 16, 2);
	AT(fman_if, fqid_rx_err, 20, 4);
	AT(fman_if, fqid_tx_err, 24, 4);
	AT(fman_if, fqid_tx_confirm, 28, 4);
	AT(fman_if, macless_info, 32, 40);
	AT(fman_if, shared_mac_info, 72, 16);
	AT(fman_if, bpool_list, 88, 16);
	AT(fman_if, node, 104, 16);
	SIZE(fm_eth_port_fqrange, 24);
	AT(fm_eth_port_fqrange, list, 0, 16);
	AT(fm_eth_port_fqrange, start, 16, 4);
	AT(fm_eth_port_fqrange, count, 20, 4);
	SIZE(fm_eth_port_cfg, 24);
	AT(fm_eth_port_cfg, list, 0, 8);
	AT(fm_eth_port_cfg, rx_def, 8, 4);
	AT(fm_eth_port_cfg, fman_if, 16, 8);
	SIZE(usdpaa_netcfg_info, 8);
	AT(usdpaa_netcfg_info, num_ethports, 0, 1);
	check_number((long long)offsetof(struct usdpaa_netcfg_info, port_cfg), 8, "offset of port_cfg");
	SIZE(list_head, 16);
	AT(list_head, prev, 0, 8);
	AT(list_head, next, 8, 8);
	check(fman_offline == 0 && fman_mac_1g == 1 && fman_mac_10g == 2 && fman_mac_less == 3 && fman_onic == 4,
	      "types of MACs");
	check(MEMAC_NUM_OF_PADDRS == 7 && MACCFG1_LOOPBACK == 0x100 && RCTRL_PROM == 9 && FMAN_IP_REV_1 == 0xc30c4 &&
	      FMAN_V3 == 6 && FMAN_V3_CONTEXTA_EN_A2V == 0x10000000 && FMAN_V3_CONTEXTA_EN_OVOM == 0x2000000 &&
	      FMAN_V3_CONTEXTA_EN_EBD == 0x80000000 && FMAN_CONTEXTA_DIS_CHECKSUM == 7 &&
	      FMAN_IP_REV_1_MAJOR_MASK == 0xff00 && FMAN_IP_REV_1_MAJOR_SHIFT == 8 && CMD_CFG_LOOPBACK_EN == 0x400 &&
	      CMD_CFG_PROMIS_EN == 0x10 && RCTRL_MPROM == 8 && RCTRL_UPROM == 1 && MAXFRM_SIZE_MEMAC == 32736 &&
	      MAXFRM_SIZE_DTSEC == 9600,
	      "constants");
}

static void
check_helpers(void)
{
	struct list_head list, nodes[3], *node, *next;
	uint8_t cells[8] = { 0, 0, 0, 1, 0x80, 0, 0, 2 };
	uint32_t aligned[2];
	uint64_t crc = fman_crc64_init();
	unsigned int count = 0;

	INIT_LIST_HEAD(&list);
	check(list_empty(&list), "an empty list");
	list_add_tail(&nodes[1], &list);
	list_add_tail(&nodes[2], &list);
	list_add(&nodes[0], &list);
	list_for_each_safe(node, next, &list) {
		check(node == &nodes[count++], "a list's order");
		list_del(node);
	}
	check(count == 3 && list_empty(&list), "a list that was emptied");
	memcpy(aligned, cells, sizeof(aligned));
	check(of_read_number(aligned, 2) == 0x180000002ull && of_read_number(aligned, 1) == 1, "of_read_number");
	check_number((long long)fman_crc64_finish(fman_crc64_update(crc, (void *)(uintptr_t) "123456789", 9)),
		     (long long)0x995dc9bbdf1939faull, "CRC-64");
	check(fman_crc64_compute_32bit(0x31323334, crc) == fman_crc64_update(crc, (void *)(uintptr_t) "1234", 4) &&
	      fman_crc64_compute_16bit(0x3132, crc) == fman_crc64_update(crc, (void *)(uintptr_t) "12", 2) &&
	      fman_crc64_compute_8bit(0x31, crc) == fman_crc64_update(crc, (void *)(uintptr_t) "1", 1),
	      "CRC-64 of numbers, in network order");
	check(lower_32_bits(0x123456789ull) == 0x23456789 && upper_32_bits(0x123456789ull) == 1, "halves of a number");
}

static void
check_hostile(const char *pcd, const char *cfg)
{
	struct fman_if nowhere;
	struct ether_addr address;
	struct ringway_usdpaa_counters counters;
	uint8_t mac[6] = { 0 };
	const struct fman_if *bad[3] = { NULL, &nowhere, (const struct fman_if *)(uintptr_t)0x10 };

	memset(&nowhere, 0xff, sizeof(nowhere));
	for (unsigned int i = 0; i < 3; i++) {
		fman_if_enable_rx(bad[i]);
		fman_if_disable_rx(bad[i]);
		fman_if_promiscuous_enable(bad[i]);
		fman_if_promiscuous_disable(bad[i]);
		fman_if_loopback_enable(bad[i]);
		fman_if_loopback_disable(bad[i]);
		usdpaa_netcfg_enable_disable_shared_rx(bad[i], 1);
		check_number(memac_add_hash_mac_addr(bad[i], mac), -EINVAL, "a hash of no interface");
		check(fm_mac_set_promiscuous(bad[i]) == -EINVAL && fm_mac_config_loopback(bad[i], true) == -EINVAL &&
		      fm_mac_config(bad[i], mac) == -EINVAL && fm_mac_add_exact_match_mac_addr(bad[i], mac) == -EINVAL &&
		      fm_mac_set_rx_ignore_pause_frames(bad[i], true) == -EINVAL &&
		      fm_mac_conf_max_frame_len(bad[i], 1500) == -EINVAL, "the MAC of no interface");
		check_number(ringway_usdpaa_count(bad[i], &counters), -EINVAL, "counters of no interface");
	}
	check_number(memac_add_hash_mac_addr(NULL, NULL), -EINVAL, "no address");
	check(!usdpaa_netcfg_acquire(NULL, NULL) && !usdpaa_netcfg_acquire(pcd, NULL) &&
	      !usdpaa_netcfg_acquire(NULL, cfg), "no files");
	check(!usdpaa_netcfg_acquire(cfg, pcd), "files the wrong way round");
	check(!usdpaa_netcfg_acquire("/", "/") && !usdpaa_netcfg_acquire("", "") &&
	      !usdpaa_netcfg_acquire("/nonesuch", cfg), "files that are none");
	usdpaa_netcfg_release(NULL);
	dump_usdpaa_netcfg(NULL);
	check_number(get_mac_addr(NULL, &address), -EINVAL, "the address of nothing");
	check_number(get_mac_addr("lo", NULL), -EINVAL, "an address to nowhere");
	check_number(get_mac_addr("../../../etc", &address), -ENODEV, "an address of a path");
	check_number(get_mac_addr("lo", &address), 0, "an address");
	check(set_mac_addr("lo", &address) < 0 && set_mac_addr(NULL, NULL) < 0, "setting an address");
	check_number(of_init_path(NULL), 0, "of_init_path(NULL)");
	of_finish();
}

/* A queue that an interface takes frames from is retired while it has some, and says so. */
static void
check_interface_queue(void)
{
	struct qman_fq fq = { .fqid = 0 };
	struct qm_mcc_initfq opts;
	struct qm_fd fd;
	enum qman_fq_state state;
	cpu_set_t cpus;
	u32 flags = 0;

	require(sched_getaffinity(0, sizeof(cpus), &cpus) == 0, "sched_getaffinity");
	for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &cpus) && found++)
			CPU_CLR(cpu, &cpus);
	}
	require(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
	require(qman_global_init() == 0 && qman_thread_init() == 0, "qman_thread_init");
	check_number(qman_create_fq(0, QMAN_FQ_FLAG_DYNAMIC_FQID | QMAN_FQ_FLAG_TO_DCPORTAL, &fq), 0, "qman_create_fq");
	opts.we_mask = QM_INITFQ_WE_DESTWQ | QM_INITFQ_WE_CONTEXTB;
	/* Of no interface: the frame stays. */
	opts.fqd.dest.channel = 0xf0;
	opts.fqd.dest.wq = 3;
	opts.fqd.context_b = 0;
	check_number(qman_init_fq(&fq, QMAN_INITFQ_FLAG_SCHED, &opts), 0, "qman_init_fq");
	memset(&fd, 0, sizeof(fd));
	check_number(qman_enqueue(&fq, &fd, 0), 0, "qman_enqueue");
	check_number(qman_retire_fq(&fq, &flags), 1, "qman_retire_fq of a queue with frames");
	for (int turn = 0; turn < 1000; turn++) {
		qman_poll();
		qman_fq_state(&fq, &state, &flags);
		if (state == qman_fq_state_retired)
			break;
	}
	check(state == qman_fq_state_retired && flags & QMAN_FQ_STATE_NE, "it is retired, and not empty");
	check_number(qman_volatile_dequeue(&fq, 0, QM_VDQCR_NUMFRAMES_TILLEMPTY), 0, "qman_volatile_dequeue");
	qman_fq_state(&fq, &state, &flags);
	for (int turn = 0; turn < 1000 && flags & QMAN_FQ_STATE_VDQCR; turn++) {
		qman_poll();
		qman_fq_state(&fq, &state, &flags);
	}
	check_number(qman_oos_fq(&fq), 0, "qman_oos_fq");
	qman_destroy_fq(&fq, 0);
	check_number(qman_thread_finish(), 0, "qman_thread_finish");
}

int
main(int argc, char **argv)
{
	struct usdpaa_netcfg_info *info;
	const struct fman_if *fif;
	int count = 0, pools;

	require(argc >= 3, "usage: usdpaa_netcfg POLICIES CONFIG [wait]");
	check_number(of_init(), 0, "of_init");
	if (argc > 3) {
		info = usdpaa_netcfg_acquire(argv[1], argv[2]);
		require(info != NULL, "usdpaa_netcfg_acquire");
		fman_if_enable_all_rx();
		puts("waiting");
		fflush(stdout);
		for (;;)
			pause();
	}
	check_layout();
	check_helpers();
	check_interface_queue();
	check_hostile(argv[1], argv[2]);
	check_number(fman_init(), 0, "fman_init");
	check_number(fman_init(), 0, "fman_init once more");
	require(fman_if_list != NULL, "a list of interfaces");
	list_for_each_entry(fif, fman_if_list, node) {
		struct fman_if_bpool *bp;

		pools = 0;
		fman_if_for_each_bpool(bp, fif)
			pools += (int)bp->bpid;
		check_number(pools, 7 + 8 + 9, "the interface's pools");
		check(fif->mac_addr.ether_addr_octet[0] == 2, "an address of its own");
		count++;
	}
	check_number(count, 3, "interfaces");
	fman_if_enable_all_rx();
	fman_if_disable_all_rx();
	info = usdpaa_netcfg_acquire(argv[1], argv[2]);
	require(info != NULL, "usdpaa_netcfg_acquire");
	check_number(info->num_ethports, 3, "ports");
	dump_usdpaa_netcfg(info);
	usdpaa_netcfg_release(info);
	fman_finish();
	check(fman_if_list == NULL, "no interfaces any more");
	check_number(fman_init(), 0, "fman_init anew");
	fman_finish();
	fman_finish();
	return check_failures != 0;
}
