/*
 * A program whose table of descriptors is full: pcap_full_table DEVICE PACKETS.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static char errbuf[PCAP_ERRBUF_SIZE];

static void
count(u_char *seen, const struct pcap_pkthdr *header, const u_char *bytes)
{
	(void)header;
	(void)bytes;
	++*(int *)seen;
}

static void
fill(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(0) >= 0)
		;
	printf("full: %d\n", errno == EMFILE);
}

static void
say(const char *what, int code)
{
	printf("%s: %d\n", what, code);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct bpf_program all;
	struct pcap_stat stats;
	struct pollfd fd;
	u_char frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 };
	int seen = 0, wanted;
	pcap_t *p;

	if (argc < 3)
		return 2;
	wanted = atoi(argv[2]);
	p = pcap_open_live(argv[1], 65535, 0, 10, errbuf);
	if (p == NULL) {
		fprintf(stderr, "%s\n", errbuf);
		return 1;
	}
	pcap_compile(p, &all, "", 1, PCAP_NETMASK_UNKNOWN);
	fill();
	say("setnonblock", pcap_setnonblock(p, 1, errbuf));
	say("getnonblock", pcap_getnonblock(p, errbuf));
	say("dispatch of nothing", pcap_dispatch(p, -1, count, (u_char *)&seen));
	fd.fd = pcap_get_selectable_fd(p);
	fd.events = POLLIN;
	say("ready", 0);
	while (seen < wanted && poll(&fd, 1, 20000) > 0)
		if (pcap_dispatch(p, -1, count, (u_char *)&seen) < 0)
			break;
	say("nonblocking", seen == wanted);
	say("setnonblock", pcap_setnonblock(p, 0, errbuf));
	say("getnonblock", pcap_getnonblock(p, errbuf));
	say("again", 0);
	for (seen = 0; seen < wanted;)
		if (pcap_dispatch(p, -1, count, (u_char *)&seen) < 0)
			break;
	say("blocking", seen == wanted);
	say("setfilter", pcap_setfilter(p, &all));
	say("setdirection", pcap_setdirection(p, PCAP_D_INOUT));
	say("inject", pcap_inject(p, frame, sizeof(frame)));
	say("stats", pcap_stats(p, &stats));
	pcap_breakloop(p);
	say("loop", pcap_loop(p, -1, count, (u_char *)&seen));
	pcap_freecode(&all);
	pcap_close(p);
	return 0;
}
