/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of several APIs do with numbered frames: print the number, and
 * send them back, with the addresses exchanged.
 */
#ifndef GOING_ON_H
#define GOING_ON_H

#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#define NUMBER_AT 42

static unsigned long got;

/* The frame that goes back; its length, or 0 where none does. */
static inline unsigned
answer_to(const unsigned char *packet, unsigned length, unsigned char *answer)
{
	uint32_t number;

	if (length < NUMBER_AT + sizeof number || length > 1514 || packet[23] != 17) {
		printf("wrong %u\n", length);
		return 0;
	}
	got++;
	memcpy(&number, packet + NUMBER_AT, sizeof number);
	printf("got %u\n", number);
	fflush(stdout);
	memcpy(answer, packet + 6, 6);
	memcpy(answer + 6, packet, 6);
	memcpy(answer + 12, packet + 12, length - 12);
	return length;
}

#endif
