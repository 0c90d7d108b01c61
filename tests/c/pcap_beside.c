/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs do with a handle beside their reads: they watch its
 * descriptor, ask for counters in the handler of a signal, and send in
 * another thread.
 * usage: pcap_beside ONE_END OTHER_END
 */
#include "check.h"
#include <pcap/pcap.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#define SIGNALS	200
#define ROUNDS	20000

static pcap_t *p, *peer;
static volatile sig_atomic_t handled, bad;
static atomic_int is_sent, is_over;
static u_char frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };

static pcap_t *
opened(const char *device)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	pcap_t *handle = pcap_open_live(device, 128, 1, 10, text);

	require(handle != NULL, "%s: %s", device, text);
	return handle;
}

static void
nothing(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	(void)user, (void)header, (void)packet;
}

static void
the_descriptor_is_exact(int (*descriptor_of)(pcap_t *), const char *device)
{
	char text[PCAP_ERRBUF_SIZE];
	struct pollfd fd = { .events = POLLIN };

	p = opened(device);
	fd.fd = descriptor_of(p);
	check_number(poll(&fd, 1, 0), 0, "nothing has come, and it is not readable");
	check_number(pcap_setnonblock(p, 1, text), 0, "reads do not wait");
	check_number(pcap_dispatch(p, -1, nothing, NULL), 0, "nothing is read");
	check_number(poll(&fd, 1, 0), 0, "and it is not readable");
	check_number(pcap_inject(peer, frame, sizeof(frame)), sizeof(frame), "a packet");
	check_number(poll(&fd, 1, PATIENCE_MS), 1, "makes it readable");
	check_number(pcap_dispatch(p, -1, nothing, NULL), 1, "it is read");
	check_number(poll(&fd, 1, 0), 0, "that was all");
	pcap_close(p);
}

static void
count(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	unsigned int *seen = (unsigned int *)user;
	struct pcap_stat stats;

	(void)header, (void)packet;
	bad |= pcap_stats(p, &stats) != 0 || stats.ps_recv != ++*seen;
}

static void
counters_keep_up_with_the_packets(void)
{
	unsigned int seen = 0;
	int at;

	for (at = 0; at < 50; at++)
		require(pcap_inject(peer, frame, sizeof(frame)) > 0, "a packet");
	while (seen < 50)
		require(pcap_dispatch(p, -1, count, (u_char *)&seen) >= 0, "packets");
	check(!bad, "what a function has been given is counted");
}

static void
without_a_packet_there_is_a_header(void)
{
	struct pcap_pkthdr *header = NULL;
	const u_char *packet = frame;

	check_number(pcap_next_ex(p, &header, &packet), 0, "nothing comes");
	check(header != NULL && packet == frame, "the header is there, and the packet is let alone");
	check_number(pcap_setfilter(p, NULL), -1, "no filter");
	check(strcmp(pcap_geterr(p), "setfilter: No filter specified") == 0, "%s", pcap_geterr(p));
}

static void
on_alarm(int signal)
{
	struct pcap_stat stats;

	(void)signal;
	bad |= pcap_stats(p, &stats) != 0;
	if (++handled == SIGNALS)
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
}

static void
handlers_ask_for_counters(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	char text[PCAP_ERRBUF_SIZE];

	require(sigaction(SIGALRM, &action, NULL) == 0, "a handler");
	pcap_setnonblock(p, 1, text);
	require(setitimer(ITIMER_REAL, &often, NULL) == 0, "signals");
	while (handled < SIGNALS)
		bad |= pcap_dispatch(p, -1, nothing, NULL) < 0;
	check(!bad, "each has got them");
}

static void *
send_in_vain(void *unused)
{
	int at, sent = 0;

	for (at = 0; at < ROUNDS; at++)
		sent += pcap_inject(p, frame, sizeof(frame)) > 0;
	is_over = 1;
	return sent < ROUNDS ? unused : &is_over;
}

static void
one_reads_and_one_sends(void)
{
	pthread_t thread;
	void *result;

	/* Nothing reads the other end: from some packet on, there is no room. */
	require(pthread_create(&thread, NULL, send_in_vain, NULL) == 0, "a thread");
	while (!is_over)
		bad |= pcap_dispatch(p, -1, nothing, NULL) < 0;
	pthread_join(thread, &result);
	check(!bad && result == NULL, "both have done so");
}

static void *
send_and_wait(void *unused)
{
	int result = pcap_inject(p, frame, sizeof(frame));

	is_sent = 1;
	return result == sizeof(frame) ? unused : &is_over;
}

static void
reads_go_on_while_one_waits_to_send(void)
{
	char text[PCAP_ERRBUF_SIZE];
	pthread_t thread;
	void *result;
	int at;

	check_number(pcap_setnonblock(p, 0, text), 0, "calls wait");
	require(pthread_create(&thread, NULL, send_and_wait, NULL) == 0, "a thread");
	for (at = 0; at < 10; at++)
		bad |= pcap_dispatch(p, -1, nothing, NULL) < 0;
	check(!bad && !is_sent, "reads end after their timeout, and it still waits");
	while (!is_sent)
		bad |= pcap_dispatch(peer, -1, nothing, NULL) < 0;
	pthread_join(thread, &result);
	check(!bad && result == NULL, "once there is room, it has sent");
}

int
main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	peer = opened(argv[2]);
	the_descriptor_is_exact(pcap_get_selectable_fd, argv[1]);
	the_descriptor_is_exact(pcap_fileno, argv[1]);
	p = opened(argv[1]);
	without_a_packet_there_is_a_header();
	counters_keep_up_with_the_packets();
	handlers_ask_for_counters();
	one_reads_and_one_sends();
	reads_go_on_while_one_waits_to_send();
	pcap_close(p);
	pcap_close(peer);
	return check_result();
}
