/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a device, and sets its filter when it gets SIGUSR1; then prints the
 * number in each packet, which it reads in a loop, or one by one as poll
 * tells, or in a loop as another user.
 * usage: pcap_late_filter DEVICE COUNT FILTER loop|poll|drop
 */
#define _GNU_SOURCE
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pcap_t *p;

static void
require(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s: %s\n", what, p ? pcap_geterr(p) : "");
		exit(1);
	}
}

static void
show(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	(void)user;
	if (header->caplen >= 18 && packet[12] == 0x88 && packet[13] == 0xb5)
		printf("packet %u\n", packet[16] << 8 | packet[17]);
}

static void
read_polled(int count)
{
	char error[PCAP_ERRBUF_SIZE];
	struct pollfd fd = {.fd = pcap_get_selectable_fd(p), .events = POLLIN};
	int read;

	require(pcap_setnonblock(p, 1, error) == 0, error);
	while (count > 0) {
		require(poll(&fd, 1, -1) == 1, "poll");
		read = pcap_dispatch(p, 1, show, NULL);
		require(read >= 0, "dispatch");
		count -= read;
	}
}

int
main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE];
	struct bpf_program program;
	struct pcap_stat stats;
	sigset_t set;
	int number;

	require(argc == 5, "usage: pcap_late_filter DEVICE COUNT FILTER HOW");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	require(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "signals");
	p = pcap_open_live(argv[1], 2000, 0, 10, error);
	require(p != NULL, error);
	if (argv[4][0] == 'd')
		require(setgid(65534) == 0 && setuid(65534) == 0, "a user");
	printf("open\n");
	fflush(stdout);
	require(sigwait(&set, &number) == 0, "a signal");
	require(pcap_compile(p, &program, argv[3], 1, 0) == 0, "compile");
	require(pcap_setfilter(p, &program) == 0, "filter");
	printf("filtered\n");
	fflush(stdout);
	if (argv[4][0] == 'p')
		read_polled(atoi(argv[2]));
	else
		require(pcap_loop(p, atoi(argv[2]), show, NULL) == 0, "loop");
	require(pcap_stats(p, &stats) == 0, "stats");
	printf("received %u dropped %u\n", stats.ps_recv, stats.ps_drop);
	pcap_close(p);
	return 0;
}
