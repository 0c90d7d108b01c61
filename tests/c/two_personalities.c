/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of PF_RING and a socket of AF_PACKET V4 in one process, on two ports of
 * a switch: each receives what the other sends.
 * usage: two_personalities RING SOCKET
 */
#include "tpacket4.h"

#include <pfring.h>

#define PACKETS	100

static const unsigned char head[14] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 4, 0x88, 0xb5 };

int
main(int argc, char **argv)
{
	struct pfring_pkthdr header;
	struct tpacket4_desc desc = frame_of(0, 60, 0), got = desc;
	unsigned char packet[60];
	pfring *ring;
	struct v4 v4;
	u_char *at;
	int number;

	require(argc == 3, "usage: two_personalities RING SOCKET");
	ring = pfring_open(argv[1], 1536, 0);
	require(ring != NULL && pfring_enable_ring(ring) == 0, "a ring");
	v4 = v4_open(argv[2]);
	fill(&v4, 1, 8);
	memcpy(packet, head, sizeof(head));
	for (number = 0; number < PACKETS; number++) {
		memset(packet + sizeof(head), number, sizeof(packet) - sizeof(head));
		require(pfring_send(ring, (char *)packet, sizeof(packet), 1) == sizeof(packet),
			"the ring sends");
		while (!get(&v4.rx, &got))
			require(await(&v4, POLLIN, 20000) == POLLIN, "a packet comes");
		require(got.len == sizeof(packet) && memcmp(data_of(&v4, &got), packet, got.len) == 0,
			"as it was sent");
		put(&v4.rx, frame_of(got.idx, 0, 0));
		memcpy(data_of(&v4, &desc), packet, sizeof(packet));
		data_of(&v4, &desc)[59] = (char)~number;
		put(&v4.tx, desc);
		require(kick(&v4) == 0 && get(&v4.tx, &got) && got.error == 0, "the socket sends");
		require(pfring_recv(ring, &at, 0, &header, 1) == 1, "a packet comes");
		require(header.caplen == 60 && at[59] == (unsigned char)~number && at[20] == number,
			"as it was sent");
	}
	check(1, "%d packets each way", PACKETS);
	v4_close(&v4);
	pfring_close(ring);
	return check_result();
}
