/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that waits for packets can be cancelled. The ring is as before
 * then.
 * usage: pfring_cancelled DEVICE SENDER
 */
#define _GNU_SOURCE
#include "cancel.h"

#include <pfring.h>

#define TIMES		50
#define PATIENCE	30

static const char *const kinds[] = { "recv", "loop", "poll" };
static const char *kind;
static pfring *ring;

static void
ignore(const struct pfring_pkthdr *header, const u_char *packet,
       const u_char *user)
{
	(void)header;
	(void)packet;
	(void)user;
}

static void *
wait_for_ever(void *unused)
{
	struct pfring_pkthdr header;
	u_char *packet = NULL;

	(void)unused;
	if (!strcmp(kind, "recv"))
		pfring_recv(ring, &packet, 0, &header, 1);
	else if (!strcmp(kind, "loop"))
		pfring_loop(ring, ignore, NULL, 1);
	else
		pfring_poll(ring, 3600000);
	return NULL;
}

int
main(int argc, char **argv)
{
	char frame[60] = "\xff\xff\xff\xff\xff\xff\2rw\0\0\1\x88\xb5";
	pfring *sender;
	size_t i;
	int n;

	if (argc != 3)
		return 1;
	ring = pfring_open(argv[1], 1536, PF_RING_PROMISC);
	sender = pfring_open(argv[2], 1536, PF_RING_PROMISC);
	if (!ring || !sender || pfring_enable_ring(ring) != 0
	    || pfring_enable_ring(sender) != 0)
		return 1;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct pfring_pkthdr header;
		u_char *packet = NULL;

		kind = kinds[i];
		for (n = 0; n < TIMES; n++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, wait_for_ever, NULL))
				return 1;
			if (!is_cancelled(thread, n, PATIENCE)) {
				printf("%s: not cancelled\n", kind);
				fflush(stdout);
				_exit(1);
			}
		}
		if (pfring_send(sender, frame, sizeof(frame), 1) < 0
		    || pfring_recv(ring, &packet, 0, &header, 1) != 1) {
			printf("%s: no packet\n", kind);
			return 1;
		}
		printf("%s: cancelled\n", kind);
	}
	pfring_close(sender);
	pfring_close(ring);
	return 0;
}
