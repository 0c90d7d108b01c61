/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4 behind an action program: says so when it is bound, and prints the number of each frame of
 * the test's, its first four bytes of payload, up to the one that ends it.
 *
 *   tpacket4_action INTERFACE LAST
 */
#include "tpacket4.h"

int
main(int argc, char **argv)
{
	struct tpacket4_desc desc;
	uint32_t number = 0, last;
	struct v4 v4;

	require(argc == 3, "an interface and a number");
	last = (uint32_t)strtoul(argv[2], NULL, 10);
	v4 = v4_open(argv[1]);
	fill(&v4, 0, DESCS / 2);
	printf("bound\n");
	fflush(stdout);
	while (number != last) {
		const char *data;

		if (!get(&v4.rx, &desc)) {
			require(await(&v4, POLLIN, 20000) == POLLIN, "frames come");
			continue;
		}
		data = data_of(&v4, &desc);
		if (desc.len >= 18 && memcmp(data + 12, "\x88\xb5", 2) == 0) {
			memcpy(&number, data + 14, sizeof(number));
			number = ntohl(number);
			printf("frame %u\n", number);
			fflush(stdout);
		}
		put(&v4.rx, frame_of(desc.idx, 0, 0));
	}
	v4_close(&v4);
	return 0;
}
