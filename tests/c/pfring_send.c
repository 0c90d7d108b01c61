/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends packets by a ring: a program of PF_RING that sends.
 * usage: pfring_send DEVICE < lines of hexadecimal bytes
 */
#include "check.h"

#include <pfring.h>

int
main(int argc, char **argv)
{
	static char line[8192], packet[4096];
	pfring *ring;
	int length, sent;

	require(argc == 2, "usage: pfring_send DEVICE");
	ring = pfring_open(argv[1], 1536, 0);
	require(ring != NULL, "%s opens", argv[1]);
	check_number(pfring_send(ring, packet, 60, 1),
		     PF_RING_ERROR_RING_NOT_ENABLED, "a new ring is disabled");
	check_number(pfring_set_socket_mode(ring, send_only_mode), 0, "a mode");
	check_number(pfring_enable_ring(ring), 0, "it is enabled");
	errno = 0;
	check_number(pfring_send(ring, NULL, 60, 1), PF_RING_ERROR_INVALID_ARGUMENT,
		     "no packet");
	if (pfring_get_mtu_size(ring) <= 1500) {
		check_number(pfring_send(ring, packet, 4000, 1),
			     PF_RING_ERROR_INVALID_ARGUMENT, "too long");
		check_number(errno, EMSGSIZE, "is told");
	}
	while (fgets(line, sizeof line, stdin) != NULL) {
		unsigned byte;
		for (length = 0; sscanf(line + 2 * length, "%2x", &byte) == 1; length++)
			packet[length] = (char)byte;
		do {
			errno = 0;
			sent = pfring_send(ring, packet, (u_int)length, 0);
		} while (sent == -1 && errno == ENOBUFS);
		require(sent == length, "%d of %d bytes are sent", sent, length);
	}
	pfring_flush_tx_packets(ring);
	pfring_close(ring);
	return check_result();
}
