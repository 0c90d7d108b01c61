/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces without a driver of netmap's own: here, all of them (S-EMU). */
#include "netns.h"
#include "packet.h"
#include "request.h"

static struct packet packet;

static void
shape(void)
{
	static const unsigned queues[] = { 1, 2, 4 };
	size_t i;

	netns_own();
	for (i = 0; i < COUNT(queues); i++) {
		struct cable cable;
		struct port port;

		interface_remove(own("n$"));
		cable = cable_new(own("n$"), own("f$"), queues[i]);
		port = port_open(cable.near);
		check(port.reg.nr_tx_rings == queues[i] &&
		      port.reg.nr_rx_rings == queues[i],
		      "%u queues (got tx %u, rx %u)", queues[i],
		      port.reg.nr_tx_rings, port.reg.nr_rx_rings);
		check(port.reg.nr_tx_slots == 1024 &&
		      port.reg.nr_rx_slots == 1024, "1024 slots (got tx %u, "
		      "rx %u)", port.reg.nr_tx_slots, port.reg.nr_rx_slots);
		check(port.reg.nr_host_tx_rings == 1 &&
		      port.reg.nr_host_rx_rings == 1, "1 + 1 host rings");
		check_number(port.reg.nr_mem_id, 1, "the global region");
		port_close(&port);
		close(cable.socket);
	}
}

static void
counts_are_ignored(void)
{
	struct nmreq_register reg = register_all();
	struct port port;

	netns_own();
	cable_new(own("n$"), own("f$"), 1);
	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	reg.nr_tx_slots = reg.nr_rx_slots = 64;
	port = port_open_as(own("n$"), reg);
	check(port.reg.nr_tx_rings == 1 && port.reg.nr_rx_rings == 1 &&
	      port.reg.nr_tx_slots == 1024 && port.reg.nr_rx_slots == 1024,
	      "the interface's, whatever is asked (S-REG-8)");
}

static void
sends(void)
{
	static const uint32_t lengths[] = { 60, 61, 64, 65, 128, 999, 1514 };
	struct cable cable;
	struct port port;
	size_t i;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	port = port_open(cable.near);
	for (i = 0; i < COUNT(lengths); i++) {
		ring_put_frame(port_tx(&port), broadcast, mac_of(1),
			       (uint32_t)i, lengths[i], 2048);
		port_txsync(&port);
		check_number(cable_take(&cable), (long long)i,
			     "a frame on the wire, intact");
	}
}

/* Round the ring: slots come back. */
static void
sends_many(void)
{
	struct cable cable;
	struct port port;
	uint32_t i;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	port = port_open(cable.near);
	for (i = 0; i < 5000; i++) {
		port_send(&port, broadcast, mac_of(1), i);
		if (cable_take(&cable) != i)
			break;
	}
	check_number(i, 5000, "frames, in order");
}

static void
receives(void)
{
	static const uint32_t lengths[] = { 60, 61, 64, 65, 128, 999, 1514 };
	uint8_t frame[1514];
	struct cable cable;
	struct port port;
	size_t i;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	port = port_open(cable.near);
	for (i = 0; i < COUNT(lengths); i++) {
		frame_fill(frame, lengths[i], broadcast, mac_of(1),
			   (uint32_t)i);
		require(send(cable.socket, frame, lengths[i], 0) ==
			(ssize_t)lengths[i], "send");
		check(port_take_packet(&port, &packet) &&
		      packet.slots == 1 && packet.length == lengths[i] &&
		      packet_sequence(&packet) == (long long)i,
		      "%u bytes", lengths[i]);
	}
}

/* The stack does not see what netmap has taken. */
static void
steals(void)
{
	struct cable cable, stack;
	struct port port;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	stack = stack_of(cable.near);
	port = port_open(cable.near);
	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(port_take(&port), 1, "the port has it");
	port_close(&port);
	cable_send(&cable, broadcast, mac_of(1), 2);
	check_number(cable_take(&stack), 2, "the stack has the next one only");
}

/* A queue that nobody empties holds about a ring, and recovers. */
static void
overflow(void)
{
	struct cable cable;
	struct port port;
	uint32_t i, got = 0;
	long long last = -1;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	port = port_open(cable.near);
	for (i = 0; i < 6000; i++)
		cable_send(&cable, broadcast, mac_of(1), i);
	while (wait_events(port.fd, POLLIN, 0) & POLLIN) {
		while (ring_take(port_rx(&port), &packet)) {
			check(packet_sequence(&packet) > last, "in order");
			last = packet_sequence(&packet);
			got++;
		}
	}
	check(got >= 1023, "a ring's worth at least (got %u)", got);
	check(got < 6000, "and not all of them (got %u)", got);
	cable_send(&cable, broadcast, mac_of(1), 7000);
	check_number(port_take(&port), 7000, "and it goes on");
}

static void
several_queues(void)
{
	struct cable cable;
	struct port port;
	uint32_t i, seen = 0;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 2);
	port = port_open(cable.near);
	for (i = 0; i < 2; i++) {
		ring_put_frame(NETMAP_TXRING(port.nifp, i), broadcast,
			       mac_of(1), i, 60, 60);
		port_txsync(&port);
		check_number(cable_take(&cable), i, "from each tx ring");
	}
	for (i = 0; i < 20; i++) {
		struct netmap_ring *rx;

		cable_send(&cable, broadcast, mac_of(2), i);
		require(wait_events(port.fd, POLLIN, PATIENCE_MS) & POLLIN,
			"a frame");
		rx = NETMAP_RXRING(port.nifp, 0);
		if (nm_ring_empty(rx))
			rx = NETMAP_RXRING(port.nifp, 1);
		seen += ring_take(rx, &packet) &&
			packet_sequence(&packet) == i;
	}
	check_number(seen, 20, "to one of the rx rings");
}

static void
comes_and_goes(void)
{
	struct cable cable, stack;
	struct port port;
	uint32_t i;

	netns_own();
	cable = cable_new(own("n$"), own("f$"), 1);
	stack = stack_of(cable.near);
	for (i = 0; i < 4; i++) {
		port = port_open(cable.near);
		cable_send(&cable, broadcast, mac_of(1), i);
		if (port_take(&port) != i)
			break;
		port_close(&port);
		cable_send(&stack, broadcast, mac_of(2), 100 + i);
		if (cable_take(&cable) != 100 + i)
			break;
	}
	check_number(i, 4, "times netmap's, times the stack's");
}

static const struct test_case cases[] = {
	{ "S-EMU-1", "rings and slots", shape },
	{ "S-EMU-1", "counts are the interface's", counts_are_ignored },
	{ "S-EMU-2", "sends", sends },
	{ "S-EMU-2", "sends round the ring", sends_many },
	{ "S-EMU-2", "receives", receives },
	{ "S-EMU-2", "takes packets from the stack", steals },
	{ "S-EMU-2", "overflows", overflow },
	{ "S-EMU-2", "several queues", several_queues },
	{ "S-EMU-2", "comes and goes", comes_and_goes },
};

CHAPTER(cases)
