/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test frames: Ethernet header of an experimental type, a 32-bit sequence
 * number in host order, then bytes that follow from the number, so that a
 * receiver can tell a frame from any other and from a damaged one.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>
#include <string.h>

struct mac {
	uint8_t byte[6];
};

#define FRAME_TYPE	0x88b5
#define FRAME_SEQUENCE	14	/* where the number is */
#define FRAME_MIN	18
#define FRAME_SIZE	60	/* the smallest that Ethernet allows */

static const struct mac broadcast = { { 255, 255, 255, 255, 255, 255 } };

/* A unicast address of our own for each number. */
static inline struct mac
mac_of(uint8_t number)
{
	struct mac mac = { { 0x02, 'r', 'w', 0, 0, number } };

	return mac;
}

static inline uint8_t
frame_byte(uint32_t sequence, uint32_t at)
{
	return (uint8_t)(sequence * 7 + at);
}

static inline void
frame_fill(void *frame, uint32_t length, struct mac to, struct mac from,
	   uint32_t sequence)
{
	uint8_t *byte = (uint8_t *)frame;
	uint32_t i;

	memcpy(byte, &to, 6);
	memcpy(byte + 6, &from, 6);
	byte[12] = FRAME_TYPE >> 8;
	byte[13] = FRAME_TYPE & 0xff;
	memcpy(byte + FRAME_SEQUENCE, &sequence, 4);
	for (i = FRAME_MIN; i < length; i++)
		byte[i] = frame_byte(sequence, i);
}

static inline uint32_t
frame_sequence(const void *frame)
{
	uint32_t sequence;

	memcpy(&sequence, (const uint8_t *)frame + FRAME_SEQUENCE, 4);
	return sequence;
}

/* 1 when it is a test frame at all. */
static inline int
frame_is_ours(const void *frame, uint32_t length)
{
	const uint8_t *byte = (const uint8_t *)frame;

	return length >= FRAME_MIN && byte[12] == FRAME_TYPE >> 8 &&
	       byte[13] == (FRAME_TYPE & 0xff);
}

/* 1 when every byte after the number is what the number asks for. */
static inline int
frame_is_intact(const void *frame, uint32_t length)
{
	const uint8_t *byte = (const uint8_t *)frame;
	uint32_t sequence, i;

	if (!frame_is_ours(frame, length))
		return 0;
	sequence = frame_sequence(frame);
	for (i = FRAME_MIN; i < length; i++)
		if (byte[i] != frame_byte(sequence, i))
			return 0;
	return 1;
}

#endif
