/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving (PF-RECEIVE). */
#include "case.h"

static void
in_place(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	u_char memory[64], *packet, *copy = memory;

	put(pair.peer, 1);
	put(pair.peer, 2);
	packet = take(pair.ring, &header);
	check(port_of(packet) == 1 && header.caplen == 60, "the first, where it lies");
	memset(memory, 0x5a, sizeof(memory));
	check_number(pfring_recv(pair.ring, &copy, 50, &header, 1), 1, "the second, copied");
	check(copy == memory && port_of(memory) == 2, "into this memory");
	check(memory[50] == 0x5a && header.caplen == 60, "as much as it holds");
}

static void
no_wait(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	u_char *packet;

	check_number(pfring_recv(pair.ring, &packet, 0, &header, 0), 0, "nothing");
	check_number(pfring_is_pkt_available(pair.ring), 0, "nothing is there");
	check_number(pfring_poll(pair.ring, 0), 0, "nothing yet");
	put(pair.peer, 1);
	check_number(pfring_poll(pair.ring, 60000), 1, "a packet");
	check_number(pfring_is_pkt_available(pair.ring), 1, "it is there");
	check_number(pfring_get_num_queued_pkts(pair.ring) >= 1, 1, "it is counted");
	check_number(pfring_recv(pair.ring, &packet, 0, &header, 0), 1, "it is received");
	check_number(port_of(packet), 1, "it is the one");
}

static void
short_headers(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	const u_char *bytes = (const u_char *)&header;
	size_t at;

	put(pair.peer, 1);
	take(pair.ring, &header);
	for (at = SHORT; at < LONG && bytes[at] == 0x5a; at++)
		;
	check_number((long long)at, LONG, "what is behind a short header is left alone");
}

static pfring *to_break;

static void
break_it(int signal)
{
	(void)signal;
	pfring_breakloop(to_break);
}

/* Interrupts the call that waits, by as many signals as it takes: one before is lost. */
static pid_t
interrupter(pfring *ring)
{
	pid_t parent = getpid(), child;

	to_break = ring;
	signal(SIGUSR1, break_it);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		for (;;) {
			struct timespec time = { 0, 10000000 };

			nanosleep(&time, NULL);
			if (kill(parent, SIGUSR1) != 0)
				_exit(0);
		}
	}
	return child;
}

static void
breaks(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	u_char *packet;
	pid_t child;

	pfring_breakloop(pair.ring);
	put(pair.peer, 1);
	check_number(pfring_recv(pair.ring, &packet, 0, &header, 1), 1, "one before is forgotten");
	child = interrupter(pair.ring);
	errno = 0;
	check_number(pfring_recv(pair.ring, &packet, 0, &header, 1), 0, "a break ends the wait");
	check_number(errno, EINTR, "and says so");
	kill(child, SIGKILL);
}

static void
reentrant(void)
{
	struct pair pair = pair_open(PF_RING_REENTRANT);
	struct pfring_pkthdr header;
	u_char memory[64], *packet = memory;

	check_number(pfring_recv(pair.ring, &packet, 0, &header, 0),
		     PF_RING_ERROR_INVALID_ARGUMENT, "not in place");
	put(pair.peer, 1);
	check_number(pfring_recv(pair.ring, &packet, sizeof(memory), &header, 1), 1, "copied");
	check_number(port_of(memory), 1, "it is the one");
}

static void
shut_down(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	u_char *packet;

	pfring_shutdown(pair.ring);
	check_number(pfring_recv(pair.ring, &packet, 0, &header, 1), -1, "nothing any more");
	check_number(pfring_loop(pair.ring, NULL, NULL, 1), -1, "no loop either");
}

static unsigned looped, loop_calls;

static void
on_packet(const struct pfring_pkthdr *header, const u_char *packet, const u_char *user)
{
	pfring_stat stats;

	require(user == (const u_char *)&looped && header->caplen == 60, "its argument");
	require(pfring_stats(to_break, &stats) == 0 && stats.recv == ++loop_calls, "it is counted");
	looped = looped * 10 + (unsigned)port_of(packet);
	if (port_of(packet) == 3)
		pfring_breakloop(to_break);
}

static void
loops(void)
{
	struct pair pair = { ring_open(own("vale$:a"), 0), ring_enabled(own("vale$:b"), 0) };
	int port;
	pid_t child;

	check_number(pfring_loop(pair.ring, NULL, NULL, 0), -1, "no function");
	check_number(pfring_enable_ring(pair.ring), 0, "it is enabled");
	for (port = 1; port <= 3; port++)
		put(pair.peer, port);
	to_break = pair.ring;
	check_number(pfring_loop(pair.ring, on_packet, (u_char *)&looped, 1), 0, "it ends");
	check_number(looped, 123, "after the third");
	child = interrupter(pair.ring);
	check_number(pfring_loop(pair.ring, on_packet, (u_char *)&looped, 1), 0,
		     "a break ends its wait");
	kill(child, SIGKILL);
}

static void
descriptors(void)
{
	struct pair pair = pair_open(0);
	struct pollfd fd = { pfring_get_selectable_fd(pair.ring), POLLIN, 0 };
	struct pfring_pkthdr header;
	struct timespec time = { 0, 0 };

	require(fd.fd >= 0, "a descriptor");
	check_number(poll(&fd, 1, 0), 0, "nothing yet");
	check_number(pfring_next_pkt_time(pair.ring, &time), PF_RING_ERROR_NO_PKT_AVAILABLE,
		     "no packet has no time");
	put(pair.peer, 1);
	check_number(poll(&fd, 1, -1), 1, "it is readable");
	check_number(pfring_next_pkt_time(pair.ring, &time), 0, "when the next has come");
	check(time.tv_sec > 1700000000, "a time of day");
	take(pair.ring, &header);
	check_number(time.tv_sec, header.ts.tv_sec, "the packet's");
}

/* What is received goes out on another device, too; also by a port that the program has. */
static void
reflector(void)
{
	struct pair pair = pair_open(0);
	pfring *far = ring_enabled(own("vale$x:b"), 0), *other;
	struct pfring_pkthdr header;

	check_number(pfring_set_reflector_device(pair.ring, NULL), -1, "no device");
	check_number(pfring_set_reflector_device(pair.ring, (char *)"nosuch0"), -1, "none there");
	check_number(pfring_set_reflector_device(pair.ring, (char *)own("vale$x:a")), 0, "one");
	check_number(pfring_set_reflector_device(pair.ring, (char *)own("vale$x:a")), -1,
		     "one and no other");
	put(pair.peer, 7);
	put(pair.peer, 8);
	check_number(port_of(take(pair.ring, &header)), 7, "it is received");
	check_number(port_of(take(far, &header)), 7, "and sent");
	check_number(port_of(take(pair.ring, &header)), 8, "so is the next");
	check_number(port_of(take(far, &header)), 8, "and sent");
	other = ring_enabled(own("vale$:c"), 0);
	require(ring_enabled(own("vale$x:c"), 0) != NULL, "a ring of the program's");
	check_number(pfring_set_reflector_device(other, (char *)own("vale$x:c")), 0, "as reflector");
	put(pair.peer, 9);
	check_number(port_of(take(other, &header)), 9, "it is received");
	check_number(port_of(take(far, &header)), 9, "and sent");
}

static void
directions(void)
{
	pfring *both, *received, *sent, *far;
	struct pfring_pkthdr header;

	wire_new();
	both = ring_enabled(own("n$"), 0);
	received = ring_open(own("n$"), 0);
	sent = ring_open(own("n$"), 0);
	far = ring_enabled(own("f$"), 0);
	check_number(pfring_set_direction(received, rx_only_direction), 0, "received packets");
	check_number(pfring_set_direction(sent, tx_only_direction), 0, "sent packets");
	check_number(pfring_set_vlan_id(sent, 7), -1, "no VLAN for those");
	require(pfring_enable_ring(received) == 0 && pfring_enable_ring(sent) == 0, "enabled");
	put(far, 1);
	check_number(port_of(take(both, &header)), 1, "received");
	check_number(header.extended_hdr.rx_direction, 1, "as its header says");
	put(both, 2);
	check_number(port_of(take(both, &header)), 2, "its own is seen");
	check_number(header.extended_hdr.rx_direction, 0, "as sent");
	check_number(port_of(take(sent, &header)), 2, "sent packets alone");
	check_number(header.extended_hdr.rx_direction, 0, "as its header says");
	put(far, LAST);
	check(strcmp(taken(received), "1 ") == 0, "received packets alone");
}

static void
vlan_ids(void)
{
	struct pair pair = pair_open(0);
	static const struct {
		u_int16_t vlan;
		const char *ports;
	} rounds[] = {
		{ RING_ANY_VLAN, "1 2 3 " }, { 0, "1 " }, { 7, "2 " }, { 8, "3 " }, { 9, "" },
	};
	size_t at;

	for (at = 0; at < COUNT(rounds); at++) {
		check_number(pfring_set_vlan_id(pair.ring, rounds[at].vlan), 0, "a VLAN");
		put_tagged(pair.peer, -1, 1);
		put_tagged(pair.peer, 7, 2);
		put_tagged(pair.peer, 8, 3);
		put_tagged(pair.peer, rounds[at].vlan == 9 ? 9 : rounds[at].vlan == 7 ? 7 :
			   rounds[at].vlan == 8 ? 8 : -1, LAST);
		check(strcmp(taken(pair.ring), rounds[at].ports) == 0, "VLAN %u", rounds[at].vlan);
	}
}

static void
samples(void)
{
	struct pair pair = pair_open(0);
	struct pfring_pkthdr header;
	pfring_stat stats;
	int port, count = 0;

	check_number(pfring_set_sampling_rate(pair.ring, 10), 0, "one in ten");
	for (port = 1; port <= 200; port++)
		put(pair.peer, port);
	/* Of so many more one is sampled, too. */
	for (; port <= 220; port++)
		put(pair.peer, port);
	while (port_of(take(pair.ring, &header)) <= 200)
		count++;
	check(count >= 17 && count <= 23, "so many are sampled: %d", count);
	check_number(pfring_stats(pair.ring, &stats), 0, "counters");
	check(stats.recv == (unsigned)count + 1 && stats.drop == 0, "the others are none of them");
	check_number(pfring_set_sampling_rate(pair.ring, 1), 0, "all again");
	put(pair.peer, LAST);
	taken(pair.ring);
	expect(&pair, 1, 3, "1 2 3 ", "all");
}

/* Packets that come apart: each when another ring has got the one before. */
static void
not_read(void)
{
	struct pfring_pkthdr header;
	pfring *near, *idle, *clock;
	pfring_stat stats;
	int port;

	wire_new();
	near = ring_enabled(own("n$"), 0);
	idle = ring_enabled(own("f$"), 0);
	clock = ring_enabled(own("f$"), 0);
	for (port = 1; port <= 200; port++) {
		put(near, port);
		check(port_of(take(clock, &header)) == port, "one after the other");
	}
	for (port = 1; port <= 200; port++)
		check(port_of(take(idle, &header)) == port, "%d of those that were not read", port);
	check(pfring_stats(idle, &stats) == 0 && stats.drop == 0, "none of them is lost");
}

static const struct test_case cases[] = {
	{ "PF-RECEIVE-1", "in place and copied", in_place },
	{ "PF-RECEIVE-2", "without a wait", no_wait },
	{ "PF-RECEIVE-3", "short headers", short_headers },
	{ "PF-RECEIVE-4", "breaks", breaks },
	{ "PF-RECEIVE-5", "several threads", reentrant },
	{ "PF-RECEIVE-6", "the end", shut_down },
	{ "PF-RECEIVE-7", "loops", loops },
	{ "PF-RECEIVE-8", "descriptors and times", descriptors },
	{ "PF-RECEIVE-9", "a reflector", reflector },
	{ "PF-RECEIVE-10", "directions", directions },
	{ "PF-RECEIVE-11", "VLANs", vlan_ids },
	{ "PF-RECEIVE-12", "samples", samples },
	{ "PF-RECEIVE-13", "a ring that is not read", not_read },
};

CHAPTER(cases)
