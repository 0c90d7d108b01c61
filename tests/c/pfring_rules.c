/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules, and what else a ring may do with its packets.
 * usage: pfring_rules DEVICE PEER OTHER: three ports of one switch
 */
#include "check.h"

#include <unistd.h>
#include <pfring.h>

#define LAST	9999	/* the port of the packet that ends a round */

static pfring *ring, *peer;

/* A packet of UDP from 10.0.0.1:1000 to 10.0.0.2. */
static void
put(int port)
{
	static unsigned char packet[60] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 0,
		0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		3, 232, 0, 0, 0, 26, 0, 0, 'h', 'e', 'l', 'l', 'o'};

	packet[36] = (unsigned char)(port >> 8);
	packet[37] = (unsigned char)port;
	require(pfring_send(peer, (char *)packet, sizeof packet, 1) == sizeof packet,
		"a packet is sent");
}

/* Sends to these ports; which of them are received, as a text. */
static const char *
round_of(int first, int last)
{
	static char seen[256];
	struct pfring_pkthdr header;
	u_char *packet;
	int port;

	for (port = first; port <= last; port++)
		put(port);
	put(LAST);
	seen[0] = 0;
	for (;;) {
		require(pfring_recv(ring, &packet, 0, &header, 1) == 1, "a packet");
		port = header.extended_hdr.parsed_pkt.l4_dst_port;
		if (port == LAST)
			return seen;
		sprintf(seen + strlen(seen), "%d ", port);
	}
}

static void
expect(int first, int last, const char *ports, const char *text)
{
	const char *seen = round_of(first, last);

	check(strcmp(seen, ports) == 0, "%s: %s", text, seen);
}

static hash_filtering_rule
between(int port, rule_action_behaviour action)
{
	hash_filtering_rule rule;

	memset(&rule, 0, sizeof rule);
	rule.ip_version = 4;
	rule.proto = 17;
	rule.host_peer_a.v4 = 0x0a000002;
	rule.host_peer_b.v4 = 0x0a000001;
	rule.port_peer_a = (u_int16_t)port;
	rule.port_peer_b = 1000;
	rule.rule_action = action;
	return rule;
}

static void
hash_rules(void)
{
	hash_filtering_rule last, rule = between(7, dont_forward_packet_and_stop_rule_evaluation);
	hash_filtering_rule_stats stats;
	u_int length = sizeof stats;

	last = between(LAST, forward_packet_and_stop_rule_evaluation);
	errno = 0;
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 0), -1, "no rules yet");
	check_number(errno, EFAULT, "is told");
	check_number(pfring_handle_hash_filtering_rule(ring, &last, 1), 0, "a rule");
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 1), 0, "another");
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 1), -1, "the same");
	check_number(errno, EEXIST, "is told");
	expect(5, 9, "5 6 8 9 ", "one is dropped");
	check_number(pfring_get_hash_filtering_rule_stats(ring, &rule, (char *)&stats, &length),
		     0, "its counters");
	check_number((long long)stats.match, 1, "it has matched");
	check_number((long long)stats.filtered, 1, "and dropped");
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 0), 0, "it is removed");
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 0), -1, "once");
	expect(5, 9, "5 6 7 8 9 ", "none is dropped");
	rule.ip_version = 5;
	check_number(pfring_handle_hash_filtering_rule(ring, &rule, 1), -1, "no such version");
	check_number(errno, EINVAL, "is told");
}

static void
wildcard_rules(void)
{
	filtering_rule rule;

	memset(&rule, 0, sizeof rule);
	rule.rule_id = 3;
	rule.rule_action = dont_forward_packet_and_stop_rule_evaluation;
	rule.core_fields.proto = 17;
	rule.core_fields.dport_low = 6;
	rule.core_fields.dport_high = 7;
	check_number(pfring_add_filtering_rule(ring, &rule), 0, "a rule");
	check_number(pfring_add_filtering_rule(ring, &rule), -1, "the same");
	check_number(errno, EEXIST, "is told");
	expect(5, 9, "5 8 9 ", "some are dropped");
	check_number(pfring_toggle_filtering_policy(ring, 0), 0, "nothing passes");
	rule.rule_id = FILTERING_RULE_AUTO_RULE_ID;
	rule.rule_action = forward_packet_and_stop_rule_evaluation;
	rule.core_fields.dport_low = rule.core_fields.dport_high = 8;
	check_number(pfring_add_filtering_rule(ring, &rule), 0, "but what a rule says");
	expect(5, 9, "8 ", "one passes");
	check_number(pfring_toggle_filtering_policy(ring, 1), 0, "all passes");
	check_number(pfring_remove_filtering_rule(ring, 3), 0, "a rule is removed");
	check_number(pfring_remove_filtering_rule(ring, 3), -1, "once");
	check_number(errno, EFAULT, "is told");
	check_number(pfring_remove_filtering_rule(ring, 0), 0, "the other, by its number");
	expect(5, 9, "5 6 7 8 9 ", "none is dropped");
	check_number(pfring_set_vlan_id(ring, 0), 0, "untagged packets");
	expect(1, 2, "1 2 ", "are all");
	check_number(pfring_set_vlan_id(ring, RING_ANY_VLAN), 0, "any");
}

/* A packet comes back with its addresses swapped. */
static void
bounces(const char *device)
{
	struct pfring_pkthdr header;
	filtering_rule rule;
	u_char *packet;

	memset(&rule, 0, sizeof rule);
	rule.rule_action = bounce_packet_and_continue_rule_evaluation;
	rule.core_fields.dport_low = rule.core_fields.dport_high = 77;
	require(strlen(device) < sizeof rule.reflector_device_name, "a short name");
	strcpy(rule.reflector_device_name, device);
	check_number(pfring_add_filtering_rule(ring, &rule), 0, "a rule");
	expect(77, 77, "77 ", "the packet is received");
	require(pfring_recv(peer, &packet, 0, &header, 1) == 1, "and comes back");
	check(packet[0] == 2 && packet[6] == 0xff && packet[37] == 77, "it has swapped addresses");
	check_number(pfring_remove_filtering_rule(ring, 0), 0, "the rule is removed");
	rule.rule_action = reflect_packet_and_stop_rule_evaluation;
	check_number(pfring_add_filtering_rule(ring, &rule), -1, "not where it came from");
	check_number(errno, EFAULT, "is told");
}

/* The last packet goes out on another port when the next is asked for. */
static void
last_packet(const char *other)
{
	struct pfring_pkthdr header;
	u_char *packet;
	int index = 0, own = 0;

	check_number(pfring_get_device_ifindex(ring, (char *)other, &index), 0, "a number");
	check_number(pfring_get_bound_device_ifindex(ring, &own), 0, "its own");
	check(index != own, "they differ");
	check_number(pfring_send_last_rx_packet(peer, index), PF_RING_ERROR_WRONG_CONFIGURATION,
		     "not opened for it");
	put(55);
	require(pfring_recv(ring, &packet, 0, &header, 1) == 1, "a packet");
	check_number(pfring_send_last_rx_packet(ring, index), 0, "it is marked");
	/* It may be here again already: to all ports of the switch. */
	check(pfring_recv(ring, &packet, 0, &header, 0) >= 0, "the next");
	require(pfring_recv(peer, &packet, 0, &header, 1) == 1, "it comes from there");
	check(packet[37] == 55, "it is the one");
}

/* Nothing but an error comes of what is no ring, no packet, no text. */
static void
nonsense(void)
{
	char text[8];

	check(pfring_open(NULL, 128, 0) == NULL && errno == EINVAL, "no device");
	check(pfring_open("zc:eth0", 128, 0) == NULL && errno == ENODEV, "no module");
	check(pfring_open("nosuch0", 128, 0) == NULL && errno == ENODEV, "no interface");
	check(pfring_open("none", 128, PF_RING_L7_FILTERING) == NULL && errno == ENOTSUP, "no flows");
	check_number(pfring_recv(NULL, NULL, 0, NULL, 0), -1, "no ring");
	check_number(pfring_recv(ring, NULL, 0, NULL, 0), -2, "no place");
	check_number(pfring_loop(ring, NULL, NULL, 0), -1, "no function");
	check_number(pfring_send(ring, NULL, ~0u, 0), -2, "no packet");
	check_number(pfring_set_bpf_filter(ring, NULL), -1, "no filter");
	check_number(pfring_set_bpf_filter(ring, "no filter at all"), -1, "nonsense");
	check_number(pfring_remove_bpf_filter(ring), -1, "none to remove");
	check_number(pfring_set_application_name(ring, NULL), -1, "no name");
	check_number(pfring_set_direction(ring, (packet_direction)17), -1, "no direction");
	check_number(pfring_add_filtering_rule(ring, NULL), -1, "no rule");
	check_number(pfring_handle_hash_filtering_rule(ring, NULL, 1), -1, "no rule");
	check_number(pfring_parse_pkt(NULL, NULL, 5, 1, 1), -2, "nothing to parse");
	check_number(pfring_print_pkt(text, 0, NULL, 0, ~0u) > 0, 1, "no room");
	check_number(pfring_print_parsed_pkt(text, sizeof text, NULL, NULL), -2, "no header");
	check(pfring_format_numbers(1234567, text, sizeof text, 1) == text &&
	      strcmp(text, "1'234'5") == 0, "as much as fits");
	check_number(pfring_set_cluster(ring, 0, cluster_per_flow), -1, "no cluster");
	check_number(pfring_loopback_test(ring, text, sizeof text, 5 << 20), -1, "too much");
	check_number(pfring_recv_burst(ring, NULL, 1, 0), PF_RING_ERROR_NOT_SUPPORTED, "no bursts");
	check_number(pfring_add_hw_rule(ring, NULL), 0, "rules of hardware do nothing");
	check_number(pfring_stats(ring, NULL), -1, "nowhere to count");
	pfring_freealldevs(NULL);
	pfring_breakloop(NULL);
	pfring_close(NULL);
}

static void
lists(void)
{
	pfring_if_t *all = pfring_findalldevs(), *at;
	int found = 0;

	for (at = all; at != NULL; at = at->next)
		found += strcmp(at->name, "lo") == 0 && strcmp(at->module, "pf_ring") == 0;
	check_number(found, 1, "the loopback interface is in the list");
	pfring_freealldevs(all);
}

static void
files(void)
{
	char path[512], text[4096];
	FILE *file;
	size_t length;

	check_number(pfring_set_application_stats(ring, "Packets: 7\n"), 0, "its own counters");
	require(pfring_get_appl_stats_file_name(ring, path, sizeof path) == path, "where");
	file = fopen(path, "r");
	require(file != NULL, "%s is there", path);
	check(fgets(text, sizeof text, file) != NULL && strcmp(text, "Packets: 7\n") == 0, "as said");
	fclose(file);
	check(pfring_get_appl_stats_file_name(ring, path, 3) == NULL, "no room for the name");
	pfring_get_appl_stats_file_name(ring, path, sizeof path);
	memmove(strstr(path, "stats/"), strstr(path, "stats/") + 6, strlen(strstr(path, "stats/") + 5));
	check_number(pfring_set_application_name(ring, "rules"), 0, "a name");
	file = fopen(path, "r");
	require(file != NULL, "%s is there", path);
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = 0;
	fclose(file);
	check(strstr(text, "Appl. Name             : rules\n") != NULL, "the name is shown");
	check(strstr(text, "Active                 : 1\n") != NULL, "and that it is active");
}

int
main(int argc, char **argv)
{
	require(argc == 4, "usage: pfring_rules DEVICE PEER OTHER");
	ring = pfring_open(argv[1], 1536, PF_RING_LONG_HEADER | PF_RING_RX_PACKET_BOUNCE);
	peer = pfring_open(argv[2], 1536, 0);
	require(ring != NULL && peer != NULL, "both open");
	require(pfring_enable_ring(ring) == 0 && pfring_enable_ring(peer) == 0, "are enabled");
	hash_rules();
	wildcard_rules();
	bounces(argv[1]);
	last_packet(argv[3]);
	nonsense();
	lists();
	files();
	pfring_close(ring);
	pfring_close(peer);
	return check_result();
}
