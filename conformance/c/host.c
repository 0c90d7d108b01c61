/* SPDX-License-Identifier: BSD-2-Clause */
/* Host rings, and forwarding between them and the interface's (S-HOST, S-FWD). */
#include "flow.h"
#include "netns.h"
#include "packet.h"
#include "request.h"

#include <linux/virtio_net.h>
#include <sys/uio.h>

static struct packet packet;

/* An interface, the machine at its other end, and the host's own stack. */
struct host {
	struct cable wire, stack;
	struct port port;
};

static struct host
host_open_mtu(uint32_t mode, unsigned mtu)
{
	struct nmreq_register reg = register_all();
	struct host host;

	netns_own();
	host.wire = cable_new(own("n$"), own("f$"), 1);
	shell("ip link set %s mtu %u && ip link set %s mtu %u",
	      host.wire.near, mtu, host.wire.far, mtu);
	host.stack = stack_of(host.wire.near);
	reg.nr_mode = mode;
	host.port = port_open_as(host.wire.near, reg);
	return host;
}

static struct host
host_open(uint32_t mode)
{
	return host_open_mtu(mode, 1500);
}

static struct netmap_ring *
host_tx(const struct port *port)
{
	return NETMAP_TXRING(port->nifp, port->nifp->ni_tx_rings);
}

static struct netmap_ring *
host_rx(const struct port *port)
{
	return NETMAP_RXRING(port->nifp, port->nifp->ni_rx_rings);
}

/* The next frame of a ring, waited for; its number, or -1. */
static long long
ring_next(const struct port *port, struct netmap_ring *ring)
{
	if (nm_ring_empty(ring))
		wait_events(port->fd, POLLIN, PATIENCE_MS);
	return ring_take(ring, &packet) ? packet_sequence(&packet) : -1;
}

static int
ring_waiting(const struct port *port, struct netmap_ring *ring)
{
	return !nm_ring_empty(ring) ||
	       (wait_events(port->fd, POLLIN, PATIENCE_MS) & POLLIN &&
		!nm_ring_empty(ring));
}

/* ---- S-HOST-1: how many, how large ---- */

static void
counts(void)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct nmreq_port_info_get info;

	check_number(host.port.reg.nr_host_tx_rings, 1, "host tx rings");
	check_number(host.port.reg.nr_host_rx_rings, 1, "host rx rings");
	check_number(host_tx(&host.port)->num_slots,
		     port_tx(&host.port)->num_slots, "slots of the tx ring");
	check_number(host_rx(&host.port)->num_slots,
		     port_rx(&host.port)->num_slots, "slots of the rx ring");
	check_number(host_tx(&host.port)->ringid,
		     host.port.reg.nr_tx_rings, "its number");
	memset(&info, 0, sizeof(info));
	check_call(port_info(host.wire.near, &info), 0, "PORT_INFO_GET");
	check(info.nr_host_tx_rings == 1 && info.nr_host_rx_rings == 1,
	      "one each way");
}

static void
more_of_them(void)
{
	struct nmreq_register reg = register_all();
	struct host host = host_open(NR_REG_SW);
	struct port second;

	reg.nr_mode = NR_REG_SW;
	reg.nr_host_tx_rings = 2;
	reg.nr_host_rx_rings = 3;
	second = port_open_as(host.wire.near, reg);
	check(second.reg.nr_host_tx_rings == 1 &&
	      second.reg.nr_host_rx_rings == 1, "not while it is in use");
	port_close(&second);
	port_close(&host.port);
	second = port_open_as(host.wire.near, reg);
	check(second.reg.nr_host_tx_rings == 2 &&
	      second.reg.nr_host_rx_rings == 3, "when it is not (got %u, %u)",
	      second.reg.nr_host_tx_rings, second.reg.nr_host_rx_rings);
	check(second.nifp->ni_host_tx_rings == 2 &&
	      second.nifp->ni_host_rx_rings == 3, "in the interface");
	port_close(&second);
	reg.nr_host_tx_rings = reg.nr_host_rx_rings = 0;
	second = port_open_as(host.wire.near, reg);
	check(second.reg.nr_host_tx_rings == 1 &&
	      second.reg.nr_host_rx_rings == 1, "one again after the last "
	      "user");
}

static void
one_of_them(void)
{
	struct host host = host_open(NR_REG_ONE_SW);
	struct nmreq_register reg = register_all();
	int fd = device_open();

	check((void *)port_tx(&host.port) == (void *)host.port.nifp &&
	      (void *)port_rx(&host.port) == (void *)host.port.nifp,
	      "no ring of the interface's");
	check_number(host_rx(&host.port)->num_slots,
		     host.port.reg.nr_rx_slots, "the host's");
	reg.nr_mode = NR_REG_ONE_SW;
	reg.nr_ringid = 1;
	check_call(control(fd, NETMAP_REQ_REGISTER, host.wire.near, &reg),
		   EINVAL, "there is no other");
}

/* ---- S-HOST-2: when the host's packets are diverted ---- */

static void
diverted(void)
{
	struct host host = host_open(NR_REG_NIC_SW);
	uint32_t i;

	for (i = 0; i < 20; i++)
		cable_send(&host.stack, broadcast, mac_of(1), i);
	for (i = 0; i < 20; i++)
		if (ring_next(&host.port, host_rx(&host.port)) != i)
			break;
	check_number(i, 20, "what the host sends is in its ring");
	port_send(&host.port, broadcast, mac_of(2), 100);
	check_number(cable_take(&host.wire), 100, "and not on the wire");
}

static void
not_diverted_by_host_rings(void)
{
	struct host host = host_open(NR_REG_SW);

	cable_send(&host.stack, broadcast, mac_of(1), 1);
	check_number(cable_take(&host.wire), 1, "the wire has it");
	port_rxsync(&host.port);
	check(nm_ring_empty(host_rx(&host.port)), "the ring has not");
	cable_send(&host.wire, broadcast, mac_of(2), 2);
	check_number(cable_take(&host.stack), 2, "what comes in is the "
		     "stack's");
}

/* The interface's rings alone: the host is cut off. */
static void
cut_off(void)
{
	struct host host = host_open(NR_REG_ALL_NIC);

	cable_send(&host.stack, broadcast, mac_of(1), 1);
	port_send(&host.port, broadcast, mac_of(2), 2);
	check_number(cable_take(&host.wire), 2, "the host's frame is not on "
		     "the wire");
	port_close(&host.port);
	cable_send(&host.stack, broadcast, mac_of(1), 3);
	check_number(cable_take(&host.wire), 3, "with the port closed it is");
}

static void
receive_rings_alone(void)
{
	struct nmreq_register reg = register_all();
	struct host host = host_open(NR_REG_SW);
	struct port rx;

	reg.nr_flags = NR_RX_RINGS_ONLY;
	rx = port_open_as(host.wire.near, reg);
	cable_send(&host.stack, broadcast, mac_of(1), 1);
	check_number(cable_take(&host.wire), 1,
		     "without the tx ring the host still sends");
	cable_send(&host.wire, broadcast, mac_of(2), 2);
	check_number(port_take(&rx), 2, "and the rx ring receives");
}

/* Two descriptors: one has the interface's rings, one the host's. */
static void
two_descriptors(void)
{
	struct nmreq_register reg = register_all();
	struct host host = host_open(NR_REG_ALL_NIC);
	struct port sw;

	reg.nr_mode = NR_REG_SW;
	sw = port_open_as(host.wire.near, reg);
	check_number(sw.reg.nr_mem_id, host.port.reg.nr_mem_id, "one region");
	cable_send(&host.stack, broadcast, mac_of(1), 1);
	check_number(ring_next(&sw, host_rx(&sw)), 1, "from the host");
	cable_send(&host.wire, broadcast, mac_of(2), 2);
	check_number(port_take(&host.port), 2, "from the wire");
}

/* ---- S-HOST-3: what is dropped ---- */

static void
backlog(void)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *rx = host_rx(&host.port);
	uint32_t all = rx->num_slots, i, got = 0;

	for (i = 0; i < 3 * all; i++)
		cable_send(&host.stack, broadcast, mac_of(1), i);
	check(ring_waiting(&host.port, rx), "the listener is woken");
	port_rxsync(&host.port);
	check(nm_ring_space(rx) <= all - 1, "n-1 at most (got %u)",
	      nm_ring_space(rx));
	for (; ring_take(rx, &packet); got++)
		if (packet_sequence(&packet) != got)
			break;
	check(nm_ring_empty(rx), "the first ones, in order (%u)", got);
	port_rxsync(&host.port);
	ring_advance(rx, nm_ring_space(rx));
	port_rxsync(&host.port);
	cable_send(&host.stack, broadcast, mac_of(1), 90000);
	while (ring_waiting(&host.port, rx) && ring_take(rx, &packet))
		if (packet_sequence(&packet) == 90000)
			break;
	check_number(packet_sequence(&packet), 90000, "and it goes on");
}

static const struct flow tcp4;

/* A frame whose checksum, and perhaps segmentation, is left to the hardware. */
static void
send_unfinished(const struct host *host, const uint8_t *whole, uint32_t length,
		uint8_t gso)
{
	static uint8_t frame[1 << 16];
	struct flow_layout at = flow_layout(&tcp4);
	struct virtio_net_hdr hdr;
	struct iovec parts[2] = {
		{ &hdr, sizeof(hdr) }, { frame, length }
	};
	int on = 1, off = 0, fd = host->stack.socket;

	memset(&hdr, 0, sizeof(hdr));
	hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr.gso_type = gso;
	hdr.hdr_len = (uint16_t)at.payload;
	hdr.gso_size = gso == VIRTIO_NET_HDR_GSO_NONE ? 0 : 1000;
	hdr.csum_start = (uint16_t)at.l4;
	hdr.csum_offset = (uint16_t)(at.checksum - at.l4);
	memcpy(frame, whole, length);
	put16(frame + at.checksum, pseudo_sum(&tcp4, whole, length - at.l4));
	require(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on,
			   sizeof(on)) == 0, "PACKET_VNET_HDR");
	require(writev(fd, parts, 2) == (ssize_t)(sizeof(hdr) + length),
		"send of an unfinished frame");
	require(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &off,
			   sizeof(off)) == 0, "PACKET_VNET_HDR");
}

/*
 * The original drops what is unfinished, unless told otherwise, and asks users
 * to turn offloads off. Here it arrives finished, as the hardware would have
 * sent it: nothing that a machine's own stack sends is lost.
 */
static void
unfinished(void)
{
	enum { PAYLOAD = 5000, MTU = 1500 };
	static uint8_t whole[1 << 16], segment[1 << 16];
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *rx = host_rx(&host.port);
	uint32_t headers = flow_layout(&tcp4).payload, length, done = 0, i;

	length = flow_frame(&tcp4, whole, 700);
	send_unfinished(&host, whole, length, VIRTIO_NET_HDR_GSO_NONE);
	cable_send(&host.stack, broadcast, mac_of(1), 1);
	check(ring_waiting(&host.port, rx) && ring_take(rx, &packet) &&
	      packet.length == length &&
	      memcmp(packet.byte, whole, length) == 0,
	      "a frame without its checksum arrives with it");
	check_number(ring_next(&host.port, rx), 1, "the next");

	length = flow_frame(&tcp4, whole, PAYLOAD);
	send_unfinished(&host, whole, length, VIRTIO_NET_HDR_GSO_TCPV4);
	cable_send(&host.stack, broadcast, mac_of(1), 2);
	for (i = 0; done < PAYLOAD; i++) {
		uint32_t part;

		if (!check(ring_waiting(&host.port, rx) &&
			   ring_take(rx, &packet) &&
			   packet.length > headers &&
			   packet.length <= 14 + MTU, "segment %u (got %u "
			   "bytes)", i, packet.length))
			return;
		part = packet.length - headers;
		length = flow_segment(&tcp4, whole, i, done, part,
				      part == PAYLOAD - done, segment);
		check(memcmp(packet.byte, segment, length) == 0,
		      "segment %u, its checksums, and its data", i);
		done += part;
	}
	check_number(done, PAYLOAD, "bytes of data");
	check_number(ring_next(&host.port, rx), 2, "the next");
}

/* ---- S-HOST-4: sending to the host ---- */

static void
to_the_host(void)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *tx = host_tx(&host.port);
	uint32_t i;

	for (i = 0; i < 20; i++)
		ring_put_frame(tx, broadcast, mac_of(1), i, 60 + i * 70,
			       2048);
	port_txsync(&host.port);
	check_number(nm_ring_space(tx), tx->num_slots - 1,
		     "completed at once");
	for (i = 0; i < 20; i++)
		if (cable_take(&host.stack) != i)
			break;
	check_number(i, 20, "frames received on the interface");
	port_send(&host.port, broadcast, mac_of(2), 99);
	check_number(cable_take(&host.wire), 99, "none of them on the wire");
}

static void
bad_frames_to_the_host(void)
{
	struct host host = host_open(NR_REG_SW);
	struct netmap_ring *tx = host_tx(&host.port);
	uint32_t at = tx->head;

	ring_put_frame(tx, broadcast, mac_of(1), 1, 60, 60);
	ring_put_frame(tx, broadcast, mac_of(1), 2, 60, 60);
	ring_put_frame(tx, broadcast, mac_of(1), 3, 60, 60);
	tx->slot[at].len = 13;
	tx->slot[at + 1].len = (uint16_t)(tx->nr_buf_size + 1);
	port_txsync(&host.port);
	check_number(cable_take(&host.stack), 3, "too short, too long: "
		     "dropped");
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

/* One slot per packet: what has more is dropped, and not cut in pieces. */
static void
slots_to_the_host(void)
{
	static const uint32_t slots[] = { 2, 3, 64, 65 };
	struct host host = host_open(NR_REG_SW);
	struct netmap_ring *tx = host_tx(&host.port);
	uint32_t i;

	for (i = 0; i < COUNT(slots); i++) {
		ring_put_frame(tx, broadcast, mac_of(1), 1, slots[i] * 20, 20);
		ring_put_frame(tx, broadcast, mac_of(1), 10 + i, 60, 60);
		port_txsync(&host.port);
		check_number(cable_take(&host.stack), 10 + i,
			     line("the packet after one of %u slots",
				  slots[i]));
	}
	check_number(nm_ring_space(tx), tx->num_slots - 1, "all slots free");
}

/* ---- S-FWD ---- */

static void
forward_up(uint32_t ring_flags, int with_poll, int expected, const char *text)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *rx = port_rx(&host.port);
	struct netmap_slot *slot;
	uint32_t at;

	rx->flags |= ring_flags;
	cable_send(&host.wire, broadcast, mac_of(1), 1);
	cable_send(&host.wire, broadcast, mac_of(1), 2);
	require(ring_waiting(&host.port, rx), "a frame");
	while (nm_ring_space(rx) < 2 && wait_events(host.port.fd, POLLIN, 0))
		port_rxsync(&host.port);
	at = rx->head;
	slot = &rx->slot[at];
	slot->flags |= NS_FORWARD;
	ring_advance(rx, 1);
	if (with_poll)
		wait_events(host.port.fd, POLLIN, 0);
	else
		port_rxsync(&host.port);
	/* A frame of ours behind it, for the case that there is none. */
	ring_put_frame(host_tx(&host.port), broadcast, mac_of(3), 50, 60, 60);
	port_txsync(&host.port);
	check_number(cable_take(&host.stack), expected, text);
	if (expected == 1)
		check(!(slot->flags & NS_FORWARD), "the flag is cleared");
}

static void
up_by_rxsync(void)
{
	forward_up(NR_FORWARD, 0, 1, "to the host");
}

static void
up_by_poll(void)
{
	forward_up(NR_FORWARD, 1, 1, "to the host");
}

static void
up_not_asked(void)
{
	forward_up(0, 0, 50, "without NR_FORWARD nothing happens");
}

static void
up_without_flag(void)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *rx = port_rx(&host.port);

	rx->flags |= NR_FORWARD;
	cable_send(&host.wire, broadcast, mac_of(1), 1);
	check_number(ring_next(&host.port, rx), 1, "a frame");
	port_rxsync(&host.port);
	ring_put_frame(host_tx(&host.port), broadcast, mac_of(3), 50, 60, 60);
	port_txsync(&host.port);
	check_number(cable_take(&host.stack), 50,
		     "a slot without NS_FORWARD is not forwarded");
}

/* A packet goes up in one, however many slots it has. */
static void
up_in_one(void)
{
	static uint8_t frame[5000];
	struct host host = host_open_mtu(NR_REG_NIC_SW, 9000);
	struct netmap_ring *rx = port_rx(&host.port);
	uint32_t at;

	rx->flags |= NR_FORWARD;
	frame_fill(frame, sizeof(frame), broadcast, mac_of(1), 1);
	require(send(host.wire.socket, frame, sizeof(frame), 0) ==
		(ssize_t)sizeof(frame), "send");
	cable_send(&host.wire, broadcast, mac_of(1), 2);
	check_number(ring_next(&host.port, rx), 1, "a frame of 5000 bytes");
	check(packet.slots > 1, "in several slots");
	for (at = 0; at != rx->head; at++)
		rx->slot[at].flags |= NS_FORWARD;
	check_number(ring_next(&host.port, rx), 2, "a short one");
	rx->slot[rx->head - 1].flags |= NS_FORWARD;
	port_rxsync(&host.port);
	check_number(cable_take(&host.stack), 1, "the long one is forwarded");
	check_number(cable_take(&host.stack), 2, "and the short one");
}

static void
down(int with_poll)
{
	struct host host = host_open(NR_REG_NIC_SW);
	struct netmap_ring *rx = host_rx(&host.port),
			   *tx = port_tx(&host.port);
	uint32_t at, before, tx_at;

	rx->flags |= NR_FORWARD;
	cable_send(&host.stack, broadcast, mac_of(1), 1);
	require(ring_waiting(&host.port, rx), "a frame of the host's");
	at = rx->head;
	before = rx->slot[at].buf_idx;
	rx->slot[at].flags |= NS_FORWARD;
	ring_advance(rx, 1);
	tx_at = tx->head;
	if (with_poll) {
		wait_events(host.port.fd, POLLIN, 0);
	} else {
		port_rxsync(&host.port);
		check(rx->slot[at].buf_idx != before &&
		      rx->slot[at].flags & NS_BUF_CHANGED,
		      "the buffer is swapped");
		check_number(tx->slot[tx_at].buf_idx, before,
			     "into the tx ring");
		port_txsync(&host.port);
	}
	check_number(cable_take(&host.wire), 1, "on the wire");
	port_put(&host.port, broadcast, mac_of(2), 2);
	port_txsync(&host.port);
	check_number(cable_take(&host.wire), 2, "and the ring goes on");
}

static void down_by_rxsync(void) { down(0); }
static void down_by_poll(void) { down(1); }

/* The descriptor must have all tx rings of the interface. */
static void
down_without_tx_rings(void)
{
	struct host host = host_open(NR_REG_SW);
	struct netmap_ring *rx = host_rx(&host.port);
	struct port nic = port_open(host.wire.near);

	rx->flags |= NR_FORWARD;
	cable_send(&host.stack, broadcast, mac_of(1), 1);
	require(ring_waiting(&host.port, rx), "a frame of the host's");
	rx->slot[rx->head].flags |= NS_FORWARD;
	ring_advance(rx, 1);
	port_rxsync(&host.port);
	port_send(&nic, broadcast, mac_of(2), 2);
	check_number(cable_take(&host.wire), 2, "not forwarded");
}

static void
no_host_rings(void)
{
	struct port one = port_open(own("vale$:a")),
		    two = port_open(own("vale$:b"));
	struct netmap_ring *rx = port_rx(&two);

	rx->flags |= NR_FORWARD;
	port_send(&one, broadcast, mac_of(1), 1);
	require(port_peek(&two) != NULL, "a frame");
	rx->slot[rx->head].flags |= NS_FORWARD;
	ring_advance(rx, 1);
	check_call(ioctl(two.fd, NIOCRXSYNC, NULL), 0,
		   "on a port without host rings");
	check_passes(&one, &two, "nothing else happens");
}

static const struct test_case cases[] = {
	{ "S-HOST-1", "counts", counts },
	{ "S-HOST-1", "more of them", more_of_them },
	{ "S-HOST-1", "one of them", one_of_them },
	{ "S-HOST-2", "diverted", diverted },
	{ "S-HOST-2", "host rings alone", not_diverted_by_host_rings },
	{ "S-HOST-2", "interface rings alone", cut_off },
	{ "S-HOST-2", "receive rings alone", receive_rings_alone },
	{ "S-HOST-2", "two descriptors", two_descriptors },
	{ "S-HOST-3", "a backlog", backlog },
	{ "S-HOST-3", "unfinished frames", unfinished },
	{ "S-HOST-4", "to the host", to_the_host },
	{ "S-HOST-4", "bad frames", bad_frames_to_the_host },
	{ "S-HOST-4", "one slot per packet", slots_to_the_host },
	{ "S-FWD-1", "not asked for", up_not_asked },
	{ "S-FWD-1", "no host rings", no_host_rings },
	{ "S-FWD-2", "by NIOCRXSYNC", up_by_rxsync },
	{ "S-FWD-2", "by poll", up_by_poll },
	{ "S-FWD-2", "slots without the flag", up_without_flag },
	{ "S-FWD-2", "a packet in several slots", up_in_one },
	{ "S-FWD-3", "by NIOCRXSYNC and NIOCTXSYNC", down_by_rxsync },
	{ "S-FWD-3", "by poll", down_by_poll },
	{ "S-FWD-3", "without the tx rings", down_without_tx_rings },
};

CHAPTER(cases)
