/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc/net/pf_ring has (PF-FILE). */
#include "case.h"

static char text[8192];

/* Reads a file beside that of the program's own text; whether it is there. */
static int
read_file(pfring *ring, const char *name)
{
	char path[512], *stats;
	FILE *file;
	size_t length;

	require(pfring_get_appl_stats_file_name(ring, path, sizeof(path)) == path, "where");
	stats = strstr(path, "/stats/");
	require(stats != NULL, "it is among others");
	if (name == NULL)
		memmove(stats, stats + strlen("/stats"), strlen(stats + strlen("/stats")) + 1);
	else if (*name)
		snprintf(stats, sizeof(path) - (size_t)(stats - path), "/%s", name);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = 0;
	fclose(file);
	return 1;
}

static void
has(const char *line)
{
	check(strstr(text, line) != NULL, "it has: %.40s", line);
}

/* Waits until the file of a ring, which is written soon after its counters were asked for, has a line. */
static void
await(pfring *ring, const char *line)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 20;
	do {
		require(read_file(ring, NULL), "a ring's file");
		clock_gettime(CLOCK_MONOTONIC, &now);
		sched_yield();
	} while (!strstr(text, line) && now.tv_sec < end.tv_sec);
	has(line);
}

static void
own_text(void)
{
	pfring *ring = ring_enabled(own("vale$:a"), 0);
	char path[512], longest[1025];
	FILE *file;

	check_number(pfring_set_application_stats(ring, (char *)"Packets: 7\n"), 0, "its text");
	check(read_file(ring, "") && strcmp(text, "Packets: 7\n") == 0, "as it has said");
	memset(longest, 'x', sizeof(longest));
	longest[1024] = 0;
	errno = 0;
	check_number(pfring_set_application_stats(ring, longest), -1, "too long");
	check_number(errno, EINVAL, "is told");
	check(pfring_get_appl_stats_file_name(ring, path, 3) == NULL, "no room for the name");
	pfring_get_appl_stats_file_name(ring, path, sizeof(path));
	pfring_close(ring);
	file = fopen(path, "r");
	check(file == NULL, "it goes with the ring");
}

static void
of_ring(void)
{
	struct pair pair = pair_open(0);
	pfring_stat stats;

	expect(&pair, 1, 3, "1 2 3 ", "packets");
	check_number(pfring_set_application_name(pair.ring, (char *)"chapter"), 0, "a name");
	pfring_set_vlan_id(pair.ring, 12);
	pfring_stats(pair.ring, &stats);
	await(pair.ring, "VLAN Id                : 12\n");
	has("Appl. Name             : chapter\n");
	has("Active                 : 1\n");
	has("Breed                  : Standard\n");
	has("Socket Mode            : RX+TX\n");
	has("Capture Direction      : RX+TX\n");
	has("Sampling Rate          : 0\n");
	has("BPF Filtering          : Disabled\n");
	has("Sw Filt Hash Rules     : 0\n");
	has("Channel Id Mask        : 0xFFFFFFFFFFFFFFFF\n");
	has("Tot Packets            : 4\n");
	has("Tot Pkt Lost           : 0\n");
	has("TX: Send Ok            : 0\n");
	has("Reflect: Fwd Ok        : 0\n");
	pfring_stats(pair.peer, &stats);
	await(pair.peer, "TX: Send Ok            : 4\n");
	has("Appl. Name             : <unknown>\n");
	check_number(pfring_set_bound_dev_name(pair.peer, (char *)"else"), 0, "another name");
	require(read_file(pair.peer, NULL), "its file");
	has("Bound Device(s)        : else\n");
}

static void
of_all(void)
{
	pfring *ring = ring_open(own("vale$:a"), 0);

	require(read_file(ring, "info"), "the file of all");
	has("PF_RING Version          : 8.9.0");
	has("Total rings              : ");
	has("Capture TX               : Yes [RX+TX]\n");
	check(!strstr(text, "Total rings              : 0\n"), "this ring is one of them");
}

static void
of_interfaces(void)
{
	pfring *ring;
	char name[64];

	wire_new();
	ring = ring_open(own("n$"), PF_RING_PROMISC);
	snprintf(name, sizeof(name), "dev/%s/info", own("n$"));
	require(read_file(ring, name), "an interface's file");
	snprintf(name, sizeof(name), "Name          : %s\n", own("n$"));
	has(name);
	snprintf(name, sizeof(name), "Index         : %u\n", if_nametoindex(own("n$")));
	has(name);
	has("Type          : Ethernet\n");
	has("Family        : Standard NIC\n");
	has("# Bound Sockets: 1\n");
}

static const struct test_case cases[] = {
	{ "PF-FILE-1", "the program's own text", own_text },
	{ "PF-FILE-2", "of a ring", of_ring },
	{ "PF-FILE-3", "of all", of_all },
	{ "PF-FILE-4", "of interfaces", of_interfaces },
};

CHAPTER(cases)
