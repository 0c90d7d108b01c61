/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that make no sense: an error, and no more (PF-ARGUMENT). */
#include "case.h"

/* Those that have not said that they fail. */
static char accepted[4096];

static void
note(int result, const char *call)
{
	size_t used = strlen(accepted);

	if (result >= 0)
		snprintf(accepted + used, sizeof(accepted) - used, " %.*s",
			 (int)strcspn(call, "("), call);
}

#define FAILS(call)	note(call, #call)

/* All functions of a ring, with nothing to read from or write to. */
static void
call_all(pfring *ring)
{
	struct pfring_pkthdr header;

	accepted[0] = 0;
	memset(&header, 0, sizeof(header));
	FAILS(pfring_recv(ring, NULL, 0, NULL, 0));
	FAILS(pfring_recv(ring, NULL, ~0u, &header, 0));
	FAILS(pfring_recv_parsed(ring, NULL, 0, NULL, 0, 5, 1, 1));
	FAILS(pfring_recv_burst(ring, NULL, 255, 0));
	FAILS(pfring_recv_chunk(ring, NULL, NULL, 0));
	FAILS(pfring_recv_flow(ring, NULL, 0));
	FAILS(pfring_get_metadata(ring, NULL, NULL));
	FAILS(pfring_loop(ring, NULL, NULL, 0));
	FAILS(pfring_poll(ring, 0));
	FAILS(pfring_is_pkt_available(ring));
	FAILS(pfring_next_pkt_time(ring, NULL));
	FAILS(pfring_next_pkt_raw_timestamp(ring, NULL));
	FAILS(pfring_get_selectable_fd(ring));
	FAILS(pfring_set_poll_watermark(ring, 0xffff));
	FAILS(pfring_set_poll_watermark_timeout(ring, 0xffff));
	FAILS(pfring_set_poll_duration(ring, ~0u));
	FAILS(pfring_send(ring, NULL, 0, 0));
	FAILS(pfring_send(ring, NULL, ~0u, 0));
	FAILS(pfring_send_get_time(ring, NULL, ~0u, NULL));
	FAILS(pfring_send_last_rx_packet(ring, -5));
	FAILS(pfring_flush_tx_packets(ring));
	FAILS(pfring_set_tx_watermark(ring, 0xffff));
	FAILS(pfring_set_direction(ring, (packet_direction)-1));
	FAILS(pfring_set_socket_mode(ring, (socket_mode)-1));
	FAILS(pfring_set_channel_id(ring, ~0u));
	FAILS(pfring_set_channel_mask(ring, 0));
	FAILS(pfring_set_channel_mask(ring, ~0ULL));
	FAILS(pfring_set_vlan_id(ring, RING_ANY_VLAN));
	FAILS(pfring_set_sampling_rate(ring, ~0u));
	FAILS(pfring_set_sampling_rate(ring, 0));
	FAILS(pfring_set_filtering_sampling_rate(ring, ~0u));
	FAILS(pfring_set_filtering_sampling_rate(ring, 0));
	FAILS(pfring_set_packet_slicing(ring, (packet_slicing_level)-1, ~0u));
	FAILS(pfring_set_promisc(ring, -1));
	FAILS(pfring_enable_rss_rehash(ring));
	FAILS(pfring_set_reflector_device(ring, NULL));
	FAILS(pfring_set_filtering_mode(ring, (filtering_mode)-1));
	FAILS(pfring_set_cluster(ring, 0, (cluster_type)-1));
	FAILS(pfring_set_cluster(ring, ~0u, (cluster_type)-1));
	FAILS(pfring_set_cluster_consumer(ring, 0xffff, 0xffff, (cluster_type)-1, ~0u));
	FAILS(pfring_remove_from_cluster(ring));
	FAILS(pfring_set_master(ring, NULL));
	FAILS(pfring_set_master_id(ring, ~0u));
	FAILS(pfring_set_bpf_filter(ring, NULL));
	FAILS(pfring_remove_bpf_filter(ring));
	FAILS(pfring_add_filtering_rule(ring, NULL));
	FAILS(pfring_remove_filtering_rule(ring, 0xffff));
	FAILS(pfring_get_filtering_rule_stats(ring, 0xffff, NULL, NULL));
	FAILS(pfring_handle_hash_filtering_rule(ring, NULL, 255));
	FAILS(pfring_get_hash_filtering_rule_stats(ring, NULL, NULL, NULL));
	FAILS(pfring_purge_idle_rules(ring, 0xffff));
	FAILS(pfring_purge_idle_hash_rules(ring, 0xffff));
	FAILS(pfring_toggle_filtering_policy(ring, 255));
	FAILS(pfring_search_payload(ring, NULL));
	FAILS(pfring_set_virtual_device(ring, NULL));
	FAILS(pfring_set_default_hw_action(ring, (generic_default_action_type)-1));
	FAILS(pfring_add_hw_rule(ring, NULL));
	FAILS(pfring_remove_hw_rule(ring, 0xffff));
	FAILS(pfring_stats(ring, NULL));
	FAILS(pfring_version(ring, NULL));
	pfring_get_ring_id(ring);
	pfring_get_num_queued_pkts(ring);
	pfring_get_num_rx_channels(ring);
	pfring_get_slot_header_len(ring);
	FAILS(pfring_get_caplen(ring));
	FAILS(pfring_get_link_type(ring));
	FAILS(pfring_get_link_status(ring));
	pfring_get_interface_speed(ring);
	/* 0 is no MTU. */
	FAILS(pfring_get_mtu_size(ring) - 1);
	FAILS(pfring_get_bound_device_address(ring, NULL));
	FAILS(pfring_get_bound_device_ifindex(ring, NULL));
	FAILS(pfring_get_device_ifindex(ring, NULL, NULL));
	FAILS(pfring_get_card_settings(ring, NULL));
	FAILS(pfring_set_application_name(ring, NULL));
	FAILS(pfring_set_application_stats(ring, NULL));
	pfring_get_appl_stats_file_name(ring, NULL, ~0u);
	FAILS(pfring_set_bound_dev_name(ring, NULL));
	pfring_sync_indexes_with_kernel(ring);
	FAILS(pfring_loopback_test(ring, NULL, ~0u, ~0u));
	FAILS(pfring_get_device_clock(ring, NULL));
	FAILS(pfring_set_device_clock(ring, NULL));
	FAILS(pfring_adjust_device_clock(ring, NULL, -1));
	FAILS(pfring_enable_hw_timestamp(ring, NULL, 255, 255));
	FAILS(pfring_bind(ring, NULL));
	pfring_breakloop(ring);
	FAILS(pfring_disable_ring(ring));
	FAILS(pfring_enable_ring(ring));
}

static void
without_ring(void)
{
	pfring_stat stats;

	call_all(NULL);
	check(!*accepted, "without a ring these do not fail:%s", accepted);
	pfring_set_if_promisc(NULL, 1);
	pfring_version_noring(NULL);
	pfring_get_ethtool_link_speed(NULL);
	pfring_freealldevs(NULL);
	pfring_parse_pkt(NULL, NULL, 255, 255, 255);
	pfring_print_parsed_pkt(NULL, ~0u, NULL, NULL);
	pfring_print_pkt(NULL, ~0u, NULL, ~0u, ~0u);
	pfring_format_numbers(1e300, NULL, ~0u, 255);
	pfring_open_multichannel(NULL, ~0u, ~0u, NULL);
	pfring_shutdown(NULL);
	pfring_close(NULL);
	errno = 0;
	check_number(pfring_stats(NULL, &stats), -1, "no ring");
	check_number(errno, EINVAL, "is told");
}

static void
without_places(void)
{
	struct pair pair = pair_open(PF_RING_LONG_HEADER | PF_RING_RX_PACKET_BOUNCE);

	call_all(pair.ring);
	expect(&pair, 1, 3, "1 2 3 ", "the ring goes on");
	call_all(pair.ring);
	expect(&pair, 1, 3, "1 2 3 ", "and on");
}

static void
closed(void)
{
	pfring *ring = ring_enabled(own("vale$:a"), 0), *other;
	struct pfring_pkthdr header;
	u_char *packet;

	pfring_close(ring);
	call_all(ring);
	check(!*accepted, "with a closed one these do not fail:%s", accepted);
	pfring_shutdown(ring);
	pfring_close(ring);
	check_number(pfring_recv(ring, &packet, 0, &header, 1), -1, "a closed ring");
	other = ring_enabled(own("vale$:a"), 0);
	check_number(pfring_recv(other, &packet, 0, &header, 0), 0, "another is open");
}

/* Texts of every length, and with every byte. */
static void
names(void)
{
	char device[5000];
	size_t length;
	int byte, opened = 0;
	pfring *ring;

	for (length = 1; length < sizeof(device); length *= 3) {
		for (byte = 1; byte < 256; byte += 7) {
			memset(device, byte, length);
			device[length] = 0;
			ring = pfring_open(device, 64, 0);
			opened += ring != NULL;
			pfring_close(ring);
		}
	}
	check_number(opened, 0, "none is a device");
}

/* Rules of random bytes are taken or refused. */
static void
random_rules(void)
{
	struct pair pair = pair_open(PF_RING_LONG_HEADER);
	filtering_rule rule;
	hash_filtering_rule ends;
	unsigned seed = 7, taken_rules = 0;
	size_t at;
	int n;

	for (n = 0; n < 500; n++) {
		u_char *bytes = (u_char *)&rule, *others = (u_char *)&ends;

		for (at = 0; at < sizeof(rule); at++)
			bytes[at] = (u_char)((seed = seed * 1103515245 + 12345) >> 16);
		for (at = 0; at < sizeof(ends); at++)
			others[at] = (u_char)((seed = seed * 1103515245 + 12345) >> 16);
		rule.rule_action = (rule_action_behaviour)(n % 10);
		if (n % 2)
			memset(rule.reflector_device_name, 0, sizeof(rule.reflector_device_name));
		taken_rules += pfring_add_filtering_rule(pair.ring, &rule) == 0;
		pfring_handle_hash_filtering_rule(pair.ring, &ends, 1);
		if (n % 50 == 0)
			put(pair.peer, n);
	}
	check(taken_rules > 0, "some are rules");
	put(pair.peer, LAST);
	check_number(pfring_is_pkt_available(pair.ring) >= 0, 1, "the ring goes on");
}

static const struct test_case cases[] = {
	{ "PF-ARGUMENT-1", "no ring", without_ring },
	{ "PF-ARGUMENT-1", "no places", without_places },
	{ "PF-ARGUMENT-1", "a closed ring", closed },
	{ "PF-ARGUMENT-2", "names", names },
	{ "PF-ARGUMENT-2", "rules", random_rules },
};

CHAPTER(cases)
