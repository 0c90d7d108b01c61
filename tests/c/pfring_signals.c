/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handler of a signal asks for a ring's counters, as in the examples of
 * PF_RING, while the ring looks at packets. A handler that waited for what it
 * has interrupted would wait for ever, and one that allocates beside an
 * allocation that it has interrupted spoils the heap.
 */
#include "check.h"
#include <pfring.h>
#include <signal.h>

#define SIGNALS	100

static pfring *ring, *peer;
static volatile sig_atomic_t handled, is_over;
static int bad;

static void
again(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 1000 } };

	setitimer(ITIMER_REAL, &soon, NULL);
}

static void
on_alarm(int signal)
{
	pfring_stat stats;

	(void)signal;
	bad |= pfring_stats(ring, &stats) != 0;
	if (++handled < SIGNALS)
		again();
	else
		pfring_breakloop(ring);
}

static void *
send_all(void *unused)
{
	u_char packet[60];

	memset(packet, 0xff, sizeof(packet));
	while (!is_over)
		pfring_send(peer, (char *)packet, sizeof(packet), 1);
	return unused;
}

static void
on_packet(const struct pfring_pkthdr *header, const u_char *packet, const u_char *user)
{
	(void)header;
	(void)packet;
	(void)user;
}

/* What a program does beside: most handlers interrupt the allocator. */
static void
allocate(void)
{
	void *parts[64];
	size_t at;

	for (at = 0; at < sizeof(parts) / sizeof(parts[0]); at++)
		parts[at] = malloc(8 + at % 16 * 16);
	while (at-- > 0)
		free(parts[at]);
}

int
main(int argc, char **argv)
{
	filtering_rule rule;
	pthread_t sender;
	sigset_t alarm_only;

	if (argc < 3)
		return 2;
	ring = pfring_open(argv[1], 128, PF_RING_LONG_HEADER);
	peer = pfring_open(argv[2], 128, 0);
	if (ring == NULL || peer == NULL)
		return 1;
	memset(&rule, 0, sizeof(rule));
	rule.rule_action = forward_packet_and_stop_rule_evaluation;
	check_number(pfring_add_filtering_rule(ring, &rule), 0, "a rule");
	check_number(pfring_set_sampling_rate(ring, 2), 0, "samples");
	check_number(pfring_enable_ring(ring) | pfring_enable_ring(peer), 0, "enabled");
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	pthread_create(&sender, NULL, send_all, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	signal(SIGALRM, on_alarm);
	again();
	while (handled < SIGNALS)
		pfring_loop(ring, on_packet, NULL, 1);
	handled = 0;
	again();
	while (handled < SIGNALS)
		allocate();
	is_over = 1;
	pthread_join(sender, NULL);
	check_number(bad, 0, "counters in a handler");
	pfring_close(peer);
	pfring_close(ring);
	return 0;
}
