/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A handler of a signal jumps out of a call that waits for packets, as programs
 * do with alarm() and siglongjmp(). The handle is as before then.
 * usage: pcap_jumped DEVICE SENDER
 */
#define _GNU_SOURCE
#include <pcap/pcap.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMES 20

static const char *const kinds[] = { "loop", "dispatch", "next_ex", "next" };
#define COUNT (sizeof(kinds) / sizeof(*kinds))
static sigjmp_buf before;
static pthread_t reader;

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
	(void)user;
	(void)header;
	(void)packet;
}

static void
jump(int number)
{
	(void)number;
	siglongjmp(before, 1);
}

/* Interrupts the first thread as soon as it sleeps. */
static void *
interrupt(void *unused)
{
	char name[64], call[64], sleeps[16];
	FILE *file;

	(void)unused;
	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", getpid());
	snprintf(sleeps, sizeof(sleeps), "%d ", SYS_ppoll);
	do {
		usleep(1000);
		call[0] = '\0';
		if ((file = fopen(name, "r")) != NULL) {
			if (!fgets(call, sizeof(call), file))
				call[0] = '\0';
			fclose(file);
		}
	} while (strncmp(call, sleeps, strlen(sleeps)) != 0);
	pthread_kill(reader, SIGUSR1);
	return NULL;
}

static void
read_for_ever(pcap_t *p, const char *kind)
{
	struct pcap_pkthdr *header, room;
	const u_char *packet;

	if (!strcmp(kind, "dispatch"))
		pcap_dispatch(p, -1, take, NULL);
	else if (!strcmp(kind, "next_ex"))
		pcap_next_ex(p, &header, &packet);
	else if (!strcmp(kind, "next"))
		pcap_next(p, &room);
	else
		pcap_loop(p, -1, take, NULL);
}

int
main(int argc, char **argv)
{
	const unsigned char frame[60] = "\xff\xff\xff\xff\xff\xff\2rw\0\0\1\x88\xb5";
	struct sigaction action;
	struct pcap_stat stat;
	pcap_t *p, *sender;
	volatile size_t i;
	volatile int n;

	if (argc != 3)
		return 1;
	memset(&action, 0, sizeof(action));
	action.sa_handler = jump;
	sigaction(SIGUSR1, &action, NULL);
	reader = pthread_self();
	p = open_device(argv[1]);
	sender = open_device(argv[2]);
	/* Once more with a descriptor that is watched. */
	for (i = 0; i < 2 * COUNT; i++) {
		const char *kind = kinds[i % COUNT];

		if (i == COUNT && pcap_get_selectable_fd(p) < 0)
			return 1;
		for (n = 0; n < TIMES; n++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, interrupt, NULL))
				return 1;
			if (sigsetjmp(before, 1) == 0) {
				read_for_ever(p, kind);
				printf("%s: %s\n", kind, pcap_geterr(p));
				return 1;
			}
			pthread_join(thread, NULL);
		}
		if (pcap_stats(p, &stat) != 0
		    || pcap_inject(sender, frame, sizeof(frame)) < 0
		    || pcap_loop(p, 1, take, NULL) != 0) {
			printf("%s: %s\n", kind, pcap_geterr(p));
			return 1;
		}
		printf("%s: jumped out of\n", kind);
	}
	pcap_close(sender);
	pcap_close(p);
	return 0;
}
