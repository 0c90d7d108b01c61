/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints and sends back what comes, until a signal; then its counters.
 * usage: going_on_pfring DEVICE recv|loop|poll|select
 */
#include "going_on.h"

#include <poll.h>
#include <pfring.h>

static pfring *ring;
static const char *how;
static volatile sig_atomic_t ends;

static void
show(const struct pfring_pkthdr *header, const u_char *packet, const u_char *user)
{
	u_char answer[1514];
	unsigned length = answer_to(packet, header->caplen, answer);

	(void)user;
	while (length > 0 && pfring_send(ring, (char *)answer, length, 1) == -1)
		usleep(100);
}

static void
interrupted(int signal)
{
	(void)signal;
	ends = 1;
	pfring_breakloop(ring);
}

/* One call that receives. */
static int
receive(struct pollfd *fd)
{
	struct pfring_pkthdr header;
	u_char *packet;
	int result, waits = strcmp(how, "recv") == 0;

	if (strcmp(how, "loop") == 0)
		return pfring_loop(ring, show, NULL, 1);
	if (strcmp(how, "poll") == 0)
		pfring_poll(ring, 100);
	if (strcmp(how, "select") == 0)
		poll(fd, 1, -1);
	while ((result = pfring_recv(ring, &packet, 0, &header, (u_int8_t)waits)) == 1)
		show(&header, packet, NULL);
	return result;
}

int
main(int argc, char **argv)
{
	struct pollfd fd = { .events = POLLIN };
	pfring_stat stats;
	int result = 0;

	require(argc == 3, "usage: going_on_pfring DEVICE HOW");
	how = argv[2];
	signal(SIGTERM, interrupted);
	ring = pfring_open(argv[1], 1536, 0);
	require(ring != NULL, "%s opens", argv[1]);
	check_number(pfring_set_bpf_filter(ring, (char *)"udp"), 0, "a filter");
	require(pfring_enable_ring(ring) == 0, "it is enabled");
	if (strcmp(how, "select") == 0)
		fd.fd = pfring_get_selectable_fd(ring);
	printf("ready\n");
	fflush(stdout);
	while (!ends && result >= 0)
		result = receive(&fd);
	if (result < 0)
		printf("failed %d\n", result);
	if (strcmp(how, "select") == 0)
		check_number(pfring_get_selectable_fd(ring), fd.fd, "the descriptor is the same");
	require(pfring_stats(ring, &stats) == 0, "counters");
	printf("stats %llu %llu\n", (unsigned long long)stats.recv, (unsigned long long)stats.drop);
	check_number((long long)stats.recv, (long long)got, "it counts what it gives");
	pfring_close(ring);
	return check_result();
}
