/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop: it polls the selectable descriptor, and reads one packet each time that this is readable.
 * usage: pcap_singly DEVICE PEER [late]: what is sent on PEER is received by DEVICE; with "late", the descriptor is
 * asked for after the first packet
 */
#include "check.h"

#include <pcap/pcap.h>
#include <poll.h>

static pcap_t *handle, *peer;
static struct pollfd fd = {.events = POLLIN};
static const u_char *seen;

static void send_frame(unsigned number)
{
	u_char frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};

	frame[14] = (u_char)(number >> 8);
	frame[15] = (u_char)number;
	while (pcap_inject(peer, frame, sizeof frame) != sizeof frame)
		;
}

static void packet(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
	(void)user;
	(void)header;
	seen = bytes;
}

/* Reads one packet: by another function each time, or by the same. */
static int read_one(unsigned turn)
{
	struct pcap_pkthdr *header, own;

	switch (turn % 4) {
	case 2:
		return (seen = pcap_next(handle, &own)) != NULL;
	case 3:
		return pcap_dispatch(handle, 1, packet, NULL);
	default:
		return pcap_next_ex(handle, &header, &seen);
	}
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = {6, 1, 2, 300, 1};
	char errbuf[PCAP_ERRBUF_SIZE];
	unsigned number = 0, is_late = argc > 3;

	/* First: news of its interface would make the other's descriptor readable. */
	peer = pcap_open_live(argv[2], 65535, 1, 100, errbuf);
	require(peer != NULL, "%s", errbuf);
	handle = pcap_open_live(argv[1], 65535, 1, 100, errbuf);
	require(handle != NULL, "%s", errbuf);
	pcap_setdirection(handle, PCAP_D_IN);
	if (!is_late)
		fd.fd = pcap_get_selectable_fd(handle);
	for (unsigned round = 0; round < sizeof counts / sizeof counts[0]; round++) {
		unsigned count = counts[round], packets = 0, in_order = 0;

		for (unsigned at = 0; at < count; at++)
			send_frame(number + at);
		if (round == 0 && is_late) {
			while (read_one(0) != 1)
				;
			packets = in_order = 1;
			number++;
		}
		fd.fd = pcap_get_selectable_fd(handle);
		while (packets < count && poll(&fd, 1, PATIENCE_MS) == 1) {
			/* Only pcap_next_ex has runs of packets. */
			if (read_one(round == 3 ? 0 : packets) != 1)
				continue;
			in_order += (unsigned)(seen[14] << 8 | seen[15]) == number;
			packets++;
			number++;
		}
		check_number(packets, count, "packets, one after each poll");
		check_number(in_order, count, "all in order");
		/* News of the interface keep it readable until a read finds nothing. */
		if (is_late)
			read_one(0);
		if (strchr(argv[1], '/') == NULL)
			check_number(poll(&fd, 1, 0), 0, "none is left, and the descriptor not readable");
	}
	pcap_close(peer);
	pcap_close(handle);
	return check_result();
}
