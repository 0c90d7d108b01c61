/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters and rules (PF-FILTER). */
#include "case.h"

static hash_filtering_rule
between(int port, rule_action_behaviour action)
{
	hash_filtering_rule rule;

	memset(&rule, 0, sizeof(rule));
	rule.ip_version = 4;
	rule.proto = 17;
	rule.host_peer_a.v4 = 0x0a000002;
	rule.host_peer_b.v4 = 0x0a000001;
	rule.port_peer_a = (u_int16_t)port;
	rule.port_peer_b = 1000;
	rule.rule_action = action;
	return rule;
}

static filtering_rule
to_ports(int id, int low, int high, rule_action_behaviour action)
{
	filtering_rule rule;

	memset(&rule, 0, sizeof(rule));
	rule.rule_id = (u_int16_t)id;
	rule.rule_action = action;
	rule.core_fields.proto = 17;
	rule.core_fields.dport_low = (u_int16_t)low;
	rule.core_fields.dport_high = (u_int16_t)high;
	return rule;
}

static int
add(pfring *ring, filtering_rule rule)
{
	return pfring_add_filtering_rule(ring, &rule);
}

static int
hash(pfring *ring, hash_filtering_rule rule, int adds)
{
	return pfring_handle_hash_filtering_rule(ring, &rule, (u_char)adds);
}

static void
expressions(void)
{
	struct pair pair = pair_open(0);
	char nonsense[] = "no filter at all", ports[] = "udp dst port 5 or udp dst port 9999";

	check(pfring_set_bpf_filter(pair.ring, nonsense) < 0, "nonsense");
	check_number(pfring_remove_bpf_filter(pair.ring), -1, "none to remove");
	check_number(pfring_set_bpf_filter(pair.ring, ports), 0, "a filter");
	expect(&pair, 4, 7, "5 ", "what passes it");
	check_number(pfring_remove_bpf_filter(pair.ring), 0, "it is removed");
	expect(&pair, 4, 7, "4 5 6 7 ", "all");
}

static void
tags(void)
{
	struct pair pair = pair_open(0);
	char vlan[] = "vlan 7 and udp";

	check_number(pfring_set_bpf_filter(pair.ring, vlan), 0, "a filter");
	put_tagged(pair.peer, -1, 1);
	put_tagged(pair.peer, 8, 2);
	put_tagged(pair.peer, 7, 3);
	put_tagged(pair.peer, 7, LAST);
	check(strcmp(taken(pair.ring), "3 ") == 0, "sees tags");
}

static void
ends(void)
{
	struct pair pair = pair_open(0);
	hash_filtering_rule drop = between(7, dont_forward_packet_and_stop_rule_evaluation);
	hash_filtering_rule_stats stats;
	u_int length = sizeof(stats);

	errno = 0;
	check_number(hash(pair.ring, drop, 0), -1, "no rules yet");
	check_number(errno, EFAULT, "is told");
	check_number(hash(pair.ring, drop, 1), 0, "a rule");
	errno = 0;
	check_number(hash(pair.ring, drop, 1), -1, "the same");
	check_number(errno, EEXIST, "is told");
	expect(&pair, 6, 8, "6 8 ", "one is dropped");
	memset(&stats, 0, sizeof(stats));
	check(pfring_get_hash_filtering_rule_stats(pair.ring, &drop, (char *)&stats, &length) >= 0,
	      "its counters");
	check(stats.match == 1 && stats.filtered == 1, "matched and dropped");
	check_number(hash(pair.ring, drop, 0), 0, "it is removed");
	check_number(hash(pair.ring, drop, 0), -1, "once");
	expect(&pair, 6, 8, "6 7 8 ", "none is dropped");
	drop.ip_version = 5;
	errno = 0;
	check_number(hash(pair.ring, drop, 1), -1, "no such version");
	check_number(errno, EINVAL, "is told");
}

/* A packet that matches in either direction, and the VLAN that counts. */
static void
orientation(void)
{
	struct pair pair = pair_open(0);
	hash_filtering_rule rule = between(7, dont_forward_packet_and_stop_rule_evaluation);
	ip_addr peer = rule.host_peer_a;

	rule.host_peer_a = rule.host_peer_b;
	rule.host_peer_b = peer;
	rule.port_peer_a = 1000;
	rule.port_peer_b = 7;
	check_number(hash(pair.ring, rule, 1), 0, "a rule, the other way round");
	expect(&pair, 6, 8, "6 8 ", "matches");
	put_tagged(pair.peer, 5, 7);
	put(pair.peer, LAST);
	check(strcmp(taken(pair.ring), "7 ") == 0, "not on a VLAN");
}

static void
order(void)
{
	struct pair pair = pair_open(PF_RING_LONG_HEADER);
	struct pfring_pkthdr header;

	check_number(add(pair.ring, to_ports(5, 1, 9, dont_forward_packet_and_stop_rule_evaluation)),
		     0, "a rule");
	check_number(add(pair.ring, to_ports(3, 4, 4, forward_packet_and_stop_rule_evaluation)), 0,
		     "one with a lower number");
	errno = 0;
	check_number(add(pair.ring, to_ports(3, 8, 8, forward_packet_and_stop_rule_evaluation)), -1,
		     "the same number");
	check_number(errno, EEXIST, "is refused");
	expect(&pair, 3, 5, "4 ", "the lower is first");
	put(pair.peer, 4);
	take(pair.ring, &header);
	check_number(header.extended_hdr.parsed_pkt.last_matched_rule_id, 3, "it is told");
	check_number(hash(pair.ring, between(6, forward_packet_and_stop_rule_evaluation), 1), 0,
		     "a rule between two ends");
	expect(&pair, 5, 7, "6 ", "is before all others");
	check_number(pfring_remove_filtering_rule(pair.ring, 5), 0, "one is removed");
	errno = 0;
	check_number(pfring_remove_filtering_rule(pair.ring, 5), -1, "once");
	check_number(errno, EFAULT, "is told");
	expect(&pair, 3, 5, "3 4 5 ", "none is dropped");
	check_number(add(pair.ring, to_ports(FILTERING_RULE_AUTO_RULE_ID, 3, 3,
					     dont_forward_packet_and_stop_rule_evaluation)), 0,
		     "a number of its own");
	check_number(add(pair.ring, to_ports(FILTERING_RULE_AUTO_RULE_ID, 5, 5,
					     dont_forward_packet_and_stop_rule_evaluation)), 0,
		     "another");
	expect(&pair, 3, 5, "4 ", "both hold");
}

static void
policy(void)
{
	struct pair pair = pair_open(0);

	check_number(add(pair.ring, to_ports(1, 7, 7, forward_packet_and_stop_rule_evaluation)), 0,
		     "a rule");
	check_number(add(pair.ring, to_ports(2, LAST, LAST,
					     forward_packet_and_stop_rule_evaluation)), 0, "another");
	check_number(pfring_toggle_filtering_policy(pair.ring, 0), 0, "nothing else passes");
	expect(&pair, 6, 8, "7 ", "one");
	check_number(hash(pair.ring, between(6, execute_action_and_continue_rule_evaluation), 1), 0,
		     "one that goes on");
	expect(&pair, 6, 8, "7 ", "is dropped unless another passes it");
	check_number(pfring_toggle_filtering_policy(pair.ring, 1), 0, "all passes");
	expect(&pair, 6, 8, "7 8 ", "but that");
}

static void
created(void)
{
	struct pair pair = pair_open(0);
	hash_filtering_rule made = between(7, forward_packet_and_stop_rule_evaluation);

	check_number(add(pair.ring, to_ports(1, 7, 7, forward_packet_add_rule_and_stop_rule_evaluation)),
		     0, "a rule that makes rules");
	check_number(hash(pair.ring, made, 0), -1, "there is none");
	expect(&pair, 6, 8, "6 7 8 ", "packets pass");
	check_number(hash(pair.ring, made, 0), 0, "there is one");
}

static void
ageing(void)
{
	struct pair pair = pair_open(0);
	filtering_rule locked = to_ports(1, 5, 5, dont_forward_packet_and_stop_rule_evaluation);

	locked.locked = 1;
	check_number(add(pair.ring, locked), 0, "a rule that stays");
	check_number(add(pair.ring, to_ports(2, 6, 6, dont_forward_packet_and_stop_rule_evaluation)),
		     0, "and one that does not");
	check_number(hash(pair.ring, between(7, dont_forward_packet_and_stop_rule_evaluation), 1), 0,
		     "one between two ends");
	check_number(pfring_purge_idle_rules(pair.ring, 3600), 0, "none is that old");
	expect(&pair, 4, 8, "4 8 ", "all hold");
	sleep(2);
	check_number(pfring_purge_idle_rules(pair.ring, 1), 0, "old rules go");
	check_number(pfring_purge_idle_hash_rules(pair.ring, 1), 0, "of both kinds");
	expect(&pair, 4, 8, "4 6 7 8 ", "but for the locked one");
}

/* Rules name devices by seven characters: these two are no other case's. */
static void
bounces(void)
{
	struct pair pair = { ring_enabled("valeB:a", 0), ring_enabled("valeB:b", 0) };
	filtering_rule rule = to_ports(1, 77, 77, bounce_packet_and_continue_rule_evaluation);
	struct pfring_pkthdr header;
	u_char *packet;

	strcpy(rule.reflector_device_name, "nosuch0");
	errno = 0;
	check_number(add(pair.ring, rule), -1, "no such device");
	check_number(errno, EFAULT, "is told");
	strcpy(rule.reflector_device_name, "valeB:a");
	check_number(add(pair.ring, rule), 0, "back by where it came from");
	expect(&pair, 77, 77, "77 ", "it is received");
	packet = take(pair.peer, &header);
	check(packet[0] == 2 && packet[6] == 0xff && port_of(packet) == 77,
	      "and comes back with its addresses swapped");
	check_number(pfring_remove_filtering_rule(pair.ring, 1), 0, "the rule is removed");
	rule.rule_action = reflect_packet_and_stop_rule_evaluation;
	errno = 0;
	check_number(add(pair.ring, rule), -1, "unchanged it may not go back");
	check_number(errno, EFAULT, "is told");
}

/*
 * Rules send whole packets, also where the program gets their first bytes alone,
 * and several send by one port. Devices as above.
 */
static void
reflections(void)
{
	pfring *peer = ring_enabled("valeD:b", 0), *far = ring_enabled("valeE:b", 0), *ring, *third;
	filtering_rule rule = to_ports(1, 77, 77, reflect_packet_and_stop_rule_evaluation);
	hash_filtering_rule other = between(78, reflect_packet_and_stop_rule_evaluation);
	struct pfring_pkthdr header;
	int port, status, ends[2];
	char byte;
	pid_t child;

	ring = pfring_open("valeD:a", 20, 0);
	require(ring != NULL && pfring_enable_ring(ring) == 0, "a ring for 20 bytes");
	strcpy(rule.reflector_device_name, "valeE:a");
	check_number(add(ring, rule), 0, "a rule");
	strcpy(other.reflector_device_name, "valeE:a");
	check_number(hash(ring, other, 1), 0, "another, by the same port");
	third = ring_enabled("valeE:c", 0);
	rule.rule_id = 2;
	rule.core_fields.dport_low = rule.core_fields.dport_high = 79;
	strcpy(rule.reflector_device_name, "valeE:c");
	check_number(add(ring, rule), 0, "and one by a port of the program's");
	for (port = 77; port <= 79; port++) {
		put(peer, port);
		check_number(port_of(take(far, &header)), port, "it is sent");
		check_number(header.len, 60, "whole");
	}
	pfring_close(third);
	require(pipe(ends) == 0, "pipe");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		ring_enabled("valeE:d", 0);
		require(write(ends[1], "x", 1) == 1, "write");
		pause();
	}
	require(read(ends[0], &byte, 1) == 1, "another program has a port");
	rule.rule_id = 3;
	strcpy(rule.reflector_device_name, "valeE:d");
	errno = 0;
	check_number(add(ring, rule), -1, "which only that sends by");
	check_number(errno, EFAULT, "is told");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

/* Nobody receives: rules send packets on all the same. Devices as above. */
static void
unattended(void)
{
	struct pair pair = { ring_enabled("valeC:a", 0), ring_enabled("valeC:b", 0) };
	pfring *other = ring_open("valeC:c", PF_RING_REENTRANT);
	filtering_rule rule = to_ports(1, 77, 77, bounce_packet_and_stop_rule_evaluation);
	struct pfring_pkthdr header;
	int round;

	strcpy(rule.reflector_device_name, "valeC:a");
	check_number(add(pair.ring, rule), 0, "back by where it came from");
	for (round = 0; round < 3; round++) {
		put(pair.peer, 77);
		check_number(port_of(take(pair.peer, &header)), 77, "comes back");
	}
	put(pair.peer, 5);
	put(pair.peer, 77);
	put(pair.peer, LAST);
	check(strcmp(taken(pair.ring), "5 ") == 0, "what is the program's has waited for it");
	check_number(port_of(take(pair.peer, &header)), 77, "what was behind comes back then");
	strcpy(rule.reflector_device_name, "valeC:c");
	check_number(add(other, rule), 0, "a rule before the ring is enabled");
	check_number(pfring_enable_ring(other), 0, "it is enabled");
	put(pair.peer, 77);
	check_number(port_of(take(pair.peer, &header)), 77, "comes back, too");
	check_number(pfring_disable_ring(other), 0, "it is disabled");
	check_number(pfring_enable_ring(other), 0, "and enabled");
	put(pair.peer, 77);
	check_number(port_of(take(pair.peer, &header)), 77, "and goes on");
	pfring_close(other);
	check(1, "it is closed");
}

static void
payload(void)
{
	struct pair pair = pair_open(0);
	filtering_rule rule = to_ports(1, 1, 9, dont_forward_packet_and_stop_rule_evaluation);

	snprintf(rule.extended_fields.payload_pattern, sizeof(rule.extended_fields.payload_pattern),
		 "none|HELLO");
	check_number(add(pair.ring, rule), 0, "a rule by what packets say");
	expect(&pair, 6, 12, "10 11 12 ", "in either case");
	check_number(pfring_remove_filtering_rule(pair.ring, 1), 0, "it is removed");
	snprintf(rule.extended_fields.payload_pattern, sizeof(rule.extended_fields.payload_pattern),
		 "goodbye");
	check_number(add(pair.ring, rule), 0, "another");
	expect(&pair, 6, 8, "6 7 8 ", "that they do not");
}

static const struct test_case cases[] = {
	{ "PF-FILTER-1", "expressions", expressions },
	{ "PF-FILTER-1", "tags", tags },
	{ "PF-FILTER-2", "rules between two ends", ends },
	{ "PF-FILTER-2", "either way", orientation },
	{ "PF-FILTER-3", "the order of rules", order },
	{ "PF-FILTER-4", "the policy", policy },
	{ "PF-FILTER-5", "rules that make rules", created },
	{ "PF-FILTER-6", "old rules", ageing },
	{ "PF-FILTER-7", "bounces", bounces },
	{ "PF-FILTER-7", "reflections", reflections },
	{ "PF-FILTER-8", "payloads", payload },
	{ "PF-FILTER-9", "nobody receives", unattended },
};

CHAPTER(cases)
