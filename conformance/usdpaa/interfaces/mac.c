/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface is, and what is set of it (FM-MAC). */
#include "case.h"

static void
nodes(void)
{
	const struct fman_if *fif;
	uint32_t ids[12], count = 0, i, k;
	char ports[256];

	wire_new();
	snprintf(ports, sizeof(ports), "fm1-1g2=%s fm0-offline1= fm0-10g0=%s", near_end(), own("vale$:c"));
	setenv("RINGWAY_USDPAA_PORTS", ports, 1);
	check(fman_if_list == NULL, "no list before");
	check_number(fman_init(), 0, "fman_init");
	require(fman_if_list != NULL, "a list");
	list_for_each_entry(fif, fman_if_list, node) {
		static const struct {
			int fman, type, number;
		} places[] = { { 0, fman_offline, 1 }, { 0, fman_mac_10g, 0 }, { 1, fman_mac_1g, 2 } };
		struct fman_if_bpool *bp;

		require(count < COUNT(places), "three interfaces");
		check(fif->fman_idx == places[count].fman && (int)fif->mac_type == places[count].type &&
		      fif->mac_idx == places[count].number, "in the order of their places");
		check(!fif->shared_mac_info.is_shared_mac && !fif->macless_info.macless_name, "none is shared");
		i = 0;
		fman_if_for_each_bpool(bp, fif) {
			check(bp->bpid == 7 + i && bp->size == buffer_sizes[i], "its pools, the smallest first");
			i++;
		}
		check_number(i, 3, "three pools");
		ids[4 * count] = fif->tx_channel_id;
		ids[4 * count + 1] = fif->fqid_rx_err;
		ids[4 * count + 2] = fif->fqid_tx_err;
		ids[4 * count + 3] = fif->fqid_tx_confirm;
		count++;
	}
	check_number(count, 3, "three interfaces");
	for (i = 0; i < COUNT(ids); i++)
		for (k = 0; k < i; k++)
			check(ids[i] != ids[k], "numbers of its own");
}

static void
addresses(void)
{
	static const uint8_t made[] = { 2, 0, 0, 0, fman_mac_10g, 0 };
	struct ether_addr address, before;

	interface_new(USUAL_POLICY, 0, 0, 0);
	if (wire == VETH) {
		check_number(get_mac_addr(own("n$"), &address), 0, "get_mac_addr");
		check(memcmp(&it.fif->mac_addr, &address, 6) == 0, "the address of the interface of Linux");
		check_number(set_mac_addr(own("n$"), &before), -ENOTSUP, "is its administrator's to change");
	} else {
		check(memcmp(&it.fif->mac_addr, made, 6) == 0, "an address made of its place");
	}
	check_number(get_mac_addr(own("m$"), &address), -ENODEV, "there is no such interface");
	check_number(get_mac_addr(NULL, &address), -EINVAL, "nor one without a name");
}

static void
filters(void)
{
	static const uint8_t addresses[][6] = {
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, { 1, 0, 0x5e, 0, 0, 1 }, { 2, 0xaa, 0, 0, 0, 9 } };
	uint8_t *frame = ip_frame(60, 1, 2, 0), group[] = { 1, 0, 0x5e, 0, 0, 1 };
	uint32_t i, k;

	interface_new(USUAL_POLICY, 16, 0, 0);
	fman_if_enable_rx(it.fif);
	frame[12] = 0x99;
	check_number(memac_add_hash_mac_addr(it.fif, group), -EINVAL, "nothing filters by addresses");
	for (i = 0; i < 3; i++) {
		if (i == 1)
			fman_if_promiscuous_enable(it.fif);
		if (i == 2)
			fman_if_promiscuous_disable(it.fif);
		for (k = 0; k < COUNT(addresses); k++) {
			memcpy(frame, addresses[k], 6);
			far_send(frame, 60);
			wait_frames(it.rest, 3 * i + k + 1);
			check(memcmp(bytes_of(&it.rest->fds[3 * i + k]), addresses[k], 6) == 0, "it is received");
		}
	}
}

static void
later_names(void)
{
	uint8_t address[6], *frame = ip_frame(60, 1, 2, 0);
	struct qm_fd fd;

	interface_new(USUAL_POLICY, 4, 0, 0);
	check(fm_mac_config(it.fif, address) == 0 && memcmp(address, &it.fif->mac_addr, 6) == 0, "its address");
	check_number(fm_mac_config(it.fif, NULL), -EINVAL, "to nowhere");
	check_number(fm_mac_set_promiscuous(it.fif), 0, "it gets everything already");
	check_number(fm_mac_add_exact_match_mac_addr(it.fif, address), -ENOTSUP, "one address it has");
	check_number(fm_mac_set_rx_ignore_pause_frames(it.fif, true), -ENOTSUP, "no pause frames");
	check_number(fm_mac_conf_max_frame_len(it.fif, 1500), -ENOTSUP, "the port's own length");
	check_number(fm_mac_config_loopback(it.fif, true), 0, "fm_mac_config_loopback");
	fman_if_enable_rx(it.fif);
	fd = frame_of(0, frame, 60);
	send_fd(&it.tx, &fd);
	frame[12] = 0x99;
	fd = frame_of(0, frame, 60);
	send_fd(&it.tx, &fd);
	wait_frames(it.rest, 1);
	check_number(fm_mac_config_loopback(it.fif, false), 0, "and back");
	fd = frame_of(0, frame, 60);
	send_fd(&it.tx, &fd);
	check(far_gets(frame, 60), "it is sent again");
	fman_finish();
	check(fm_mac_config_loopback(it.fif, true) == -EINVAL && fm_mac_config(it.fif, address) == -EINVAL,
	      "of an interface that is no more");
}

static void
counters(void)
{
	struct ringway_usdpaa_counters none, other;

	interface_new(USUAL_POLICY, 0, 0, 0);
	memset(&none, 0, sizeof(none));
	other = counted();
	check(memcmp(&none, &other, sizeof(none)) == 0, "they begin at 0");
	check_number(ringway_usdpaa_count(NULL, &other), -EINVAL, "of nothing");
	check_number(ringway_usdpaa_count(it.fif, NULL), -EINVAL, "to nowhere");
	fman_finish();
	check_number(ringway_usdpaa_count(it.fif, &other), -EINVAL, "of an interface that is no more");
}

static void
gone(void)
{
	struct sink *other;
	struct qm_fd fd;

	if (wire != VETH)
		not_applicable("veth");
	interface_new(USUAL_POLICY, 4, 0, 0);
	fman_if_enable_rx(it.fif);
	shell("ip link del %s", own("n$"));
	fd = frame_of(0, ip_frame(60, 1, 2, 0), 60);
	send_fd(&it.tx, &fd);
	other = sink_new(0x700, it.channel);
	other->fq.flags &= ~(u32)QMAN_FQ_FLAG_NO_ENQUEUE;
	send_fd(&other->fq, &fd);
	wait_frames(other, 1);
	check_number(other->frames, 1, "the managers go on");
	fman_if_disable_rx(it.fif);
	fman_finish();
	check(fman_if_list == NULL, "and it can be finished");
}

static const struct test_case cases[] = {
	{ "FM-MAC-1", "nodes", nodes },
	{ "FM-MAC-2", "addresses", addresses },
	{ "FM-MAC-3", "filters", filters },
	{ "FM-MAC-4", "counters", counters },
	{ "FM-MAC-5", "gone", gone },
	{ "FM-MAC-6", "later names", later_names },
};

CHAPTER(cases)
