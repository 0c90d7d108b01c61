/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening: what a device is, and what stays of it (PF-OPEN). */
#include "case.h"

static void
fails(const char *device, u_int32_t flags, int error)
{
	pfring *ring;

	errno = 0;
	ring = pfring_open(device, 128, flags);
	check(ring == NULL && errno == error, "%s is refused: %s",
	      device ? device : "no device", strerror(errno));
	if (ring != NULL)
		pfring_close(ring);
}

static void
refusals(void)
{
	fails(NULL, 0, EINVAL);
	/* Rights come first. */
	fails("nosuch0", 0, geteuid() == 0 ? ENODEV : EPERM);
	fails("zc:lo", 0, ENODEV);
	fails("", 0, ENODEV);
	fails("lo.x", 0, ENODEV);
	fails("lo@64", 0, ENODEV);
	fails("lo,,lo", 0, ENODEV);
	fails("averyveryverylongname", 0, ENODEV);
	fails(own("vale$:a"), PF_RING_L7_FILTERING, ENOTSUP);
}

static void
success(void)
{
	pfring *ring;

	errno = EBADF;
	ring = pfring_open(own("vale$:a"), 128, 0);
	require(ring != NULL, "it opens");
	check_number(errno, 0, "errno is 0");
	pfring_close(ring);
	ring = pfring_open(own("vale$:a"), 1u << 20, ~0u & ~(u_int32_t)PF_RING_L7_FILTERING);
	require(ring != NULL, "unknown flags are ignored");
	check_number(pfring_get_caplen(ring), 65600, "the most that is captured");
	pfring_close(ring);
}

static void
captured(void)
{
	pfring *ring = pfring_open(own("vale$:a"), 20, 0), *peer = ring_enabled(own("vale$:b"), 0);
	struct pfring_pkthdr header;

	require(ring != NULL && pfring_enable_ring(ring) == 0, "it opens");
	put(peer, 7);
	take(ring, &header);
	check_number(header.caplen, 20, "so many bytes are captured");
	check_number(header.len, 60, "of so many");
}

static void
none(void)
{
	pfring *ring = ring_enabled("none", 0);
	struct pfring_pkthdr header;
	u_char packet[64], *at;

	check_number(pfring_send(ring, (char *)packet, packet_make(packet, -1, 1), 1), 0,
		     "what is sent goes nowhere");
	check_number(pfring_recv(ring, &at, 0, &header, 0), 0, "nothing comes");
	check_number(pfring_get_mtu_size(ring), 0, "no MTU");
	pfring_close(ring);
}

static void
rights(void)
{
	need_ordinary_user();
	fails("lo", 0, EPERM);
}

/* A name with a VLAN is the interface's packets of that VLAN. */
static void
vlans(void)
{
	struct pair tagged, all;
	char device[64];

	wire_new();
	snprintf(device, sizeof(device), "%s.7", own("n$"));
	tagged.ring = ring_enabled(device, 0);
	all.ring = ring_enabled(own("n$"), 0);
	tagged.peer = all.peer = ring_enabled(own("f$"), 0);
	put_tagged(all.peer, -1, 1);
	put_tagged(all.peer, 7, 2);
	put_tagged(all.peer, 8, 3);
	put_tagged(all.peer, 7, LAST);
	check(strcmp(taken(tagged.ring), "2 ") == 0, "the VLAN's alone");
	check(strcmp(taken(all.ring), "1 2 3 ") == 0, "all of them without it");
}

static void
lists(void)
{
	char device[64];
	pfring *ring, *far, *other;

	wire_new();
	snprintf(device, sizeof(device), "%s;%s", own("n$"), own("vale$:a"));
	ring = ring_enabled(device, 0);
	far = ring_enabled(own("f$"), 0);
	other = ring_enabled(own("vale$:b"), 0);
	put(far, 3);
	put(far, LAST);
	check(strcmp(taken(ring), "3 ") == 0, "from the interface");
	put(other, 4);
	put(other, LAST);
	check(strcmp(taken(ring), "4 ") == 0, "from the port");
	check_number(pfring_get_mtu_size(ring), 0, "several devices have no MTU");
}

/* One of several devices goes: the ring goes on with the other, and fails when that goes, too. */
static void
one_goes(void)
{
	struct pfring_pkthdr header;
	struct pollfd fd = { .events = POLLIN };
	u_char *packet;
	char device[64];
	pfring *ring, *other;

	wire_new();
	snprintf(device, sizeof(device), "netmap:%s;%s", own("n$"), own("vale$:a"));
	ring = ring_enabled(device, 0);
	other = ring_enabled(own("vale$:b"), 0);
	fd.fd = pfring_get_selectable_fd(ring);
	check_number(poll(&fd, 1, 0), 0, "nothing yet");
	shell("ip link del %s", own("n$"));
	check_number(poll(&fd, 1, -1), 1, "the end of one is news");
	check_number(pfring_recv(ring, &packet, 0, &header, 0), 0, "the other lives");
	check_number(poll(&fd, 1, 0), 0, "and has nothing yet");
	put(other, 4);
	check_number(poll(&fd, 1, -1), 1, "a packet comes");
	put(other, LAST);
	check(strcmp(taken(ring), "4 ") == 0, "from the other");
}

/* The count of those who want it promiscuous, as the kernel has it. */
static int
promiscuity(const char *name)
{
	char line[256];
	FILE *pipe;
	int count = -1;

	snprintf(line, sizeof(line), "ip -d link show %s", name);
	pipe = popen(line, "r");
	require(pipe != NULL, "ip");
	while (fgets(line, sizeof(line), pipe)) {
		char *at = strstr(line, "promiscuity ");

		if (at)
			count = atoi(at + strlen("promiscuity "));
	}
	pclose(pipe);
	return count;
}

static void
promiscuous(void)
{
	pfring *ring;
	int status, ends[2];
	char byte;
	pid_t child;

	wire_new();
	check_number(promiscuity(own("n$")), 0, "it is not");
	ring = ring_open(own("n$"), PF_RING_PROMISC);
	check_number(promiscuity(own("n$")), 1, "it is, by the flag");
	check_number(pfring_set_promisc(ring, 0), 0, "it is switched off");
	check_number(promiscuity(own("n$")), 0, "it is not");
	check_number(pfring_set_promisc(ring, 1), 0, "and on again");
	check_number(promiscuity(own("n$")), 1, "it is");
	pfring_close(ring);
	check_number(promiscuity(own("n$")), 0, "undone by the close");
	ring = ring_open(own("n$"), 0);
	check_number(pfring_set_promisc(ring, 1), 0, "it is switched on");
	check_number(pfring_set_promisc(ring, 1), 0, "twice");
	check_number(promiscuity(own("n$")), 1, "it is, once for a ring");
	check_number(pfring_set_promisc(ring, 0), 0, "and off");
	check_number(promiscuity(own("n$")), 0, "it is not");
	pfring_close(ring);
	/* A program that is killed closes nothing itself. */
	require(pipe(ends) == 0, "pipe");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		ring_open(own("n$"), PF_RING_PROMISC);
		require(write(ends[1], "x", 1) == 1, "write");
		pause();
	}
	require(read(ends[0], &byte, 1) == 1, "the child is ready");
	check_number(promiscuity(own("n$")), 1, "it is");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	check_number(promiscuity(own("n$")), 0, "undone by the end");
}

static void
whole_interface(void)
{
	wire_new();
	check_number(pfring_set_if_promisc(own("n$"), 1), 0, "it was not promiscuous");
	check_number(pfring_set_if_promisc(own("n$"), 0), 0x100, "now it was");
	check_number(pfring_set_if_promisc("nosuch0", 1), -2, "no such device");
	check_number(pfring_set_if_promisc(NULL, 1), -3, "no device");
}

/* The stack's end of an interface whose other end a ring has. */
static void
stack(void)
{
	pfring *interface, *host, *heard;
	struct pfring_pkthdr header;
	char device[64];
	u_char *packet;

	wire_new();
	snprintf(device, sizeof(device), "netmap:%s", own("n$"));
	interface = ring_enabled(device, 0);
	snprintf(device, sizeof(device), "stack:%s", own("n$"));
	host = ring_enabled(device, 0);
	heard = ring_open(own("n$"), 0);
	pfring_set_direction(heard, rx_only_direction);
	require(pfring_enable_ring(heard) == 0, "a ring that listens");
	shell("ip addr add 10.9.9.1/24 dev %s", own("n$"));
	shell("ping -c 1 -W 1 10.9.9.2 > /dev/null; true");
	do
		packet = take(host, &header);
	while (packet[12] != 8 || packet[13] != 6);
	check(packet[41] == 2 && packet[38] == 10, "the stack asks for 10.9.9.2");
	put(host, 7);
	put(host, LAST);
	check(strcmp(taken(heard), "7 ") == 0, "what is sent goes up the stack");
	pfring_close(host);
	pfring_close(interface);
}

static void
channels(void)
{
	pfring *rings[MAX_NUM_RX_CHANNELS];
	struct pair pair;

	memset(rings, 0, sizeof(rings));
	check_number(pfring_open_multichannel(own("vale$:a"), 128, 0, rings), 1,
		     "a port has one channel");
	require(rings[0] != NULL && pfring_enable_ring(rings[0]) == 0, "it is enabled");
	pair.ring = rings[0];
	pair.peer = ring_enabled(own("vale$:b"), 0);
	expect(&pair, 5, 6, "5 6 ", "it receives");
	check_number(pfring_open_multichannel("nosuch0", 128, 0, rings), 0, "no such device");
	check_number(pfring_get_num_rx_channels(pair.ring), 1, "one channel");
}

/* A file of libpcap's with two packets. */
static void
capture_files(void)
{
	static const u_int32_t head[] = { 0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1 };
	char device[] = "pcap:" P_tmpdir "/pfring-XXXXXX", *path = device + strlen("pcap:");
	struct pfring_pkthdr header;
	u_char packet[64];
	pfring *ring;
	FILE *file;
	int fd, port;

	fd = mkstemp(path);
	require(fd >= 0 && (file = fdopen(fd, "w")) != NULL, "a file");
	fwrite(head, sizeof(head), 1, file);
	for (port = 1; port <= 2; port++) {
		u_int32_t record[] = { 1000, (u_int32_t)port, packet_make(packet, -1, port), 60 };

		fwrite(record, sizeof(record), 1, file);
		fwrite(packet, 60, 1, file);
	}
	fclose(file);
	ring = ring_enabled(device, 0);
	for (port = 1; port <= 2; port++) {
		check_number(port_of(take(ring, &header)), port, "a packet of the file");
		check(header.ts.tv_sec == 1000 && header.ts.tv_usec == port, "with its time");
	}
	pfring_close(ring);
	unlink(path);
	fails(device, 0, ENODEV);
	check(access(path, F_OK) != 0, "no file is made");
}

static const struct test_case cases[] = {
	{ "PF-OPEN-1", "what is refused", refusals },
	{ "PF-OPEN-1", "what is not", success },
	{ "PF-OPEN-2", "packets are cut", captured },
	{ "PF-OPEN-3", "no device", none },
	{ "PF-OPEN-4", "an interface takes rights", rights },
	{ "PF-OPEN-5", "a VLAN of an interface", vlans },
	{ "PF-OPEN-6", "several devices", lists },
	{ "PF-OPEN-6", "one of them goes", one_goes },
	{ "PF-OPEN-7", "promiscuous mode", promiscuous },
	{ "PF-OPEN-7", "of an interface", whole_interface },
	{ "PF-OPEN-8", "the host stack", stack },
	{ "PF-OPEN-9", "channels", channels },
	{ "PF-OPEN-10", "capture files", capture_files },
};

CHAPTER(cases)
