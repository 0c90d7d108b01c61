/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that reads can be cancelled: while it waits, and in the program's
 * own function. The handle is as before then.
 * usage: pcap_cancelled DEVICE SENDER
 */
#define _GNU_SOURCE
#include "cancel.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES		50
#define PATIENCE	30

static const char *const kinds[] = { "loop", "dispatch", "next_ex", "next",
	"callback" };
static const char *kind;
static pcap_t *p;
static int called[2];

static pcap_t *
open_device(const char *name)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *handle = pcap_create(name, error);

	if (!handle || pcap_set_timeout(handle, 3600000) != 0
	    || pcap_set_immediate_mode(handle, 1) != 0
	    || pcap_activate(handle) < 0) {
		printf("%s: %s\n", name, handle ? pcap_geterr(handle) : error);
		exit(1);
	}
	return handle;
}

static void
take(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	(void)header;
	(void)packet;
	if (!strcmp(kind, "callback") && !user) {
		if (write(called[1], "", 1) == 1)
			pause();
	}
}

static void *
read_for_ever(void *unused)
{
	struct pcap_pkthdr *header, room;
	const u_char *packet;

	(void)unused;
	if (!strcmp(kind, "dispatch"))
		pcap_dispatch(p, -1, take, NULL);
	else if (!strcmp(kind, "next_ex"))
		pcap_next_ex(p, &header, &packet);
	else if (!strcmp(kind, "next"))
		pcap_next(p, &room);
	else
		pcap_loop(p, -1, take, NULL);
	return NULL;
}

int
main(int argc, char **argv)
{
	const unsigned char frame[60] = "\xff\xff\xff\xff\xff\xff\2rw\0\0\1\x88\xb5";
	pcap_t *sender;
	size_t i;
	int n;

	if (argc != 3 || pipe(called) != 0)
		return 1;
	p = open_device(argv[1]);
	sender = open_device(argv[2]);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int in_callback = !strcmp(kinds[i], "callback");

		kind = kinds[i];
		for (n = 0; n < TIMES; n++) {
			pthread_t thread;
			char byte;

			if (pthread_create(&thread, NULL, read_for_ever, NULL))
				return 1;
			if (in_callback
			    && (pcap_inject(sender, frame, sizeof(frame)) < 0
				|| read(called[0], &byte, 1) != 1))
				return 1;
			if (!is_cancelled(thread, n, PATIENCE)) {
				printf("%s: not cancelled\n", kind);
				fflush(stdout);
				_exit(1);
			}
		}
		/* The handle still reads. */
		if (pcap_inject(sender, frame, sizeof(frame)) < 0
		    || pcap_loop(p, 1, take, (u_char *)p) != 0) {
			printf("%s: %s\n", kind, pcap_geterr(p));
			return 1;
		}
		printf("%s: cancelled\n", kind);
	}
	pcap_close(sender);
	pcap_close(p);
	return 0;
}
