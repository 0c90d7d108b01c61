/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints and sends back what comes, until a signal; then its counters.
 * usage: going_on_pcap DEVICE loop|dispatch|nonblock|next|select|listen
 */
#include "going_on.h"

#include <pcap/pcap.h>
#include <poll.h>

static pcap_t *p;
static const char *how;

static void
show(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	u_char answer[1514];
	unsigned length = answer_to(packet, header->caplen, answer);

	(void)user;
	if (length > 0 && strcmp(how, "listen") != 0)
		require(pcap_inject(p, answer, length) == (int)length, "%s", pcap_geterr(p));
}

static void
interrupted(int signal)
{
	(void)signal;
	pcap_breakloop(p);
}

/* One call that receives. */
static int
receive(struct pollfd *fd)
{
	struct pcap_pkthdr *header;
	const u_char *packet;
	int result;

	if (strcmp(how, "loop") == 0)
		return pcap_loop(p, -1, show, NULL);
	if (strcmp(how, "next") == 0) {
		result = pcap_next_ex(p, &header, &packet);
		if (result == 1)
			show(NULL, header, packet);
		return result;
	}
	if (strcmp(how, "select") == 0)
		poll(fd, 1, -1);
	result = pcap_dispatch(p, -1, show, NULL);
	if (result == 0 && strcmp(how, "nonblock") == 0)
		usleep(100);
	return result;
}

int
main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE];
	struct bpf_program program;
	struct pcap_stat stats;
	struct pollfd fd;
	int result;

	require(argc == 3, "usage: going_on_pcap DEVICE HOW");
	how = argv[2];
	p = pcap_open_live(argv[1], 200, 1, 50, error);
	require(p != NULL, "%s", error);
	require(pcap_compile(p, &program, "udp", 1, PCAP_NETMASK_UNKNOWN) == 0 &&
		pcap_setfilter(p, &program) == 0, "a filter");
	signal(SIGTERM, interrupted);
	fd = (struct pollfd){ .events = POLLIN };
	if (strcmp(how, "select") == 0 || strcmp(how, "nonblock") == 0)
		require(pcap_setnonblock(p, 1, error) == 0, "%s", error);
	if (strcmp(how, "select") == 0)
		fd.fd = pcap_get_selectable_fd(p);
	printf("ready\n");
	fflush(stdout);
	do
		result = receive(&fd);
	while (result >= 0);
	if (result != PCAP_ERROR_BREAK)
		printf("failed %s\n", pcap_geterr(p));
	if (strcmp(how, "select") == 0)
		check_number(pcap_get_selectable_fd(p), fd.fd, "the descriptor is the same");
	require(pcap_stats(p, &stats) == 0, "counters");
	printf("stats %u %u\n", stats.ps_recv - stats.ps_drop, stats.ps_drop);
	check_number(stats.ps_recv - stats.ps_drop, (long long)got, "it counts what it gives");
	pcap_close(p);
	return check_result();
}
