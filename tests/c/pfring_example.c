/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Written as the examples of PF_RING are: it includes little, has the rest by
 * pfring.h, and uses names that PF_RING had before. It opens a device, and
 * says what is wrong with it.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "pfring.h"
#include "../lib/config.h"
#include "pfring_priv.h"
#include "pfring_mod_sysdig.h"

static int failures;

static void
expect(int holds, const char *format, ...)
{
	va_list all;

	va_start(all, format);
	fputs(holds ? "ok - " : "not ok - ", stdout);
	vprintf(format, all);
	putchar('\n');
	va_end(all);
	failures += !holds;
}

/* A rule for a card, in words of before. */
static int
add_rule(pfring *ring)
{
	hw_filtering_rule rule;

	memset(&rule, 0, sizeof(rule));
	rule.rule_family_type = accolade_rule;
	rule.rule_family.accolade_rule.action = accolade_pass;
	rule.rule_family.accolade_rule.ip_version = 4;
	rule.rule_family.accolade_rule.protocol = IPPROTO_TCP;
	rule.rule_family.accolade_rule.src_addr.v4 = ntohl(inet_addr("10.0.0.1"));
	rule.rule_family.accolade_rule.src_addr_bits = 32;
	rule.rule_family.accolade_rule.dst_port_low = 80;
	rule.rule_family.accolade_rule.steer_to_ring = 1;
	return pfring_add_hw_rule(ring, &rule);
}

int
main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "none";
	struct ether_header header;
	cpu_set_t cores;
	pfring *ring;

	rmb();
	wmb();
	expect(sizeof(header.ether_dhost) == ETH_ALEN && isprint('a') && min(1, 2) == 1,
	       "names of others' headers");
	CPU_ZERO(&cores);
#if HAVE_PTHREAD_SETAFFINITY_NP
	CPU_SET(0, &cores);
	pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
#endif
	expect(CPU_COUNT(&cores) == 1, "threads have cores");
	expect(sysdig_event2name(0) != NULL, "events have names");
	expect(PKT_FLAGS_FLOW_OFFLOAD_MARKER == PKT_FLAGS_FLOW_UNHANDLED, "the same flag");
	ring = pfring_open(device, 1536, PF_RING_DNA_SYMMETRIC_RSS);
	if (unlikely(ring == NULL)) {
		fprintf(stderr, "%s: %s\n", device, strerror(errno));
		exit(EXIT_FAILURE);
	}
	expect(add_rule(ring) == 0, "a rule for a card");
	expect(ring->mtu == pfring_get_mtu_size(ring), "the MTU in a ring: %u", ring->mtu);
	expect(ring->caplen == 1536 && ring->slot_header_len == 48, "its numbers");
	pfring_close(ring);
	usleep(0);
	return failures != 0;
}
