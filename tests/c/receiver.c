/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives and verifies what sender.c sends.
 *
 * usage: receiver [-g] [-f FIRST] [-t SECONDS] PORT COUNT
 *
 * Writes "ready" to stderr once the port is bound. Ends after COUNT frames, or
 * when none has come for SECONDS (5). With -g, numbers may be missing, and the
 * frame numbered FIRST + COUNT - 1 ends it as well. Frames of other kinds are
 * counted as foreign.
 *
 * Prints one JSON line: "missing" are numbers that were skipped, "misordered"
 * frames whose number was not above the one before. The exit status is 0 when
 * every frame was intact and in order and, without -g, none was missing.
 */
#include "port.h"

int
main(int argc, char **argv)
{
	uint64_t received = 0, missing = 0, misordered = 0, corrupt = 0;
	uint64_t foreign = 0, bytes = 0, count;
	uint32_t next = 0, last;
	int gaps = 0, patience = PATIENCE_MS, done = 0, option, good;
	struct netmap_ring *ring;
	struct port port;

	while ((option = getopt(argc, argv, "gf:t:")) != -1) {
		switch (option) {
		case 'g': gaps = 1; break;
		case 'f': next = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 't': patience = atoi(optarg) * 1000; break;
		default: return 2;
		}
	}
	require(argc - optind == 2,
		"usage: receiver [-g] [-f FIRST] [-t SECONDS] PORT COUNT");
	count = strtoull(argv[optind + 1], NULL, 0);
	last = next + (uint32_t)count - 1;
	port = port_open(argv[optind]);
	ring = port_rx(&port);
	fputs("ready\n", stderr);

	while (!done && received < count) {
		wait_events(port.fd, POLLIN, patience);
		if (nm_ring_empty(ring))
			break;
		while (!done && received < count && !nm_ring_empty(ring)) {
			struct netmap_slot *slot = &ring->slot[ring->head];
			const char *frame = NETMAP_BUF(ring, slot->buf_idx);
			uint32_t sequence, length = slot->len;

			if (length > ring->nr_buf_size) {
				corrupt++;
			} else if (!frame_is_ours(frame, length)) {
				foreign++;
			} else {
				sequence = frame_sequence(frame);
				received++;
				bytes += length;
				corrupt += !frame_is_intact(frame, length);
				/* The difference tells, also past 2^32. */
				if ((int32_t)(sequence - next) < 0) {
					misordered++;
				} else {
					missing += sequence - next;
					next = sequence + 1;
				}
				done = gaps && sequence == last;
			}
			ring_advance(ring, 1);
		}
	}
	port_rxsync(&port);
	good = !corrupt && !misordered &&
	       (gaps ? received > 0 : received == count && !missing);
	printf("{\"port\": \"%s\", \"received\": %llu, \"bytes\": %llu, "
	       "\"missing\": %llu, \"misordered\": %llu, \"corrupt\": %llu, "
	       "\"foreign\": %llu}\n", argv[optind],
	       (unsigned long long)received, (unsigned long long)bytes,
	       (unsigned long long)missing, (unsigned long long)misordered,
	       (unsigned long long)corrupt, (unsigned long long)foreign);
	port_close(&port);
	return !good;
}
