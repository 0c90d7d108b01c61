/* The sum by which interfaces distribute frames: CRC-64 of the fields of a distribution's key, in network order. */
#ifndef USDPAA_FSL_FMAN_H
#define USDPAA_FSL_FMAN_H

#include "compat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ECMA-182's polynomial, its bits reversed. */
#define FMAN_CRC64_POLYNOMIAL 0xC96C5795D7870F42ull

static inline uint64_t __fman_crc64_byte(uint64_t crc, uint8_t byte)
{
	static uint64_t table[256];
	static volatile int made;
	if (unlikely(!__atomic_load_n(&made, __ATOMIC_ACQUIRE))) {
		/* Threads that do it at the same time store the same. */
		for (unsigned int i = 0; i < 256; i++) {
			uint64_t sum = i;
			for (int bit = 0; bit < 8; bit++)
				sum = sum >> 1 ^ (sum & 1 ? FMAN_CRC64_POLYNOMIAL : 0);
			table[i] = sum;
		}
		__atomic_store_n(&made, 1, __ATOMIC_RELEASE);
	}
	return table[(crc ^ byte) & 0xFF] ^ crc >> 8;
}

static inline uint64_t fman_crc64_init(void)
{
	return ~(uint64_t)0;
}

static inline uint64_t fman_crc64_update(uint64_t crc, void *data, unsigned int len)
{
	const uint8_t *bytes = (const uint8_t *)data;
	while (len--)
		crc = __fman_crc64_byte(crc, *bytes++);
	return crc;
}

/* A number, its most significant byte first. */
static inline uint64_t fman_crc64_compute_8bit(uint8_t data, uint64_t crc)
{
	return __fman_crc64_byte(crc, data);
}

static inline uint64_t fman_crc64_compute_16bit(uint16_t data, uint64_t crc)
{
	return fman_crc64_compute_8bit(data & 0xFF, fman_crc64_compute_8bit(data >> 8, crc));
}

static inline uint64_t fman_crc64_compute_32bit(uint32_t data, uint64_t crc)
{
	return fman_crc64_compute_16bit(data & 0xFFFF, fman_crc64_compute_16bit(data >> 16, crc));
}

static inline uint64_t fman_crc64_finish(uint64_t seed)
{
	return ~seed;
}

#ifdef __cplusplus
}
#endif

#endif
