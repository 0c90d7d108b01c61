/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>

int main(void)
{
	struct nm_desc *a = nm_open("vale0:a", NULL, 0, NULL); /* a switch and two ports on it */
	struct nm_desc *b = nm_open("vale0:b", NULL, 0, NULL);
	const char frame[] = "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5" "hello";
	struct nm_pkthdr header = { 0 };

	if (!a || !b || !nm_inject(a, frame, sizeof(frame)) || ioctl(a->fd, NIOCTXSYNC, NULL) == -1)
		return 1;
	poll(&(struct pollfd){ .fd = b->fd, .events = POLLIN }, 1, 1000);
	unsigned char *received = nm_nextpkt(b, &header);
	printf("%u bytes: %s\n", header.len, received ? (char *)received + 14 : "none");
	return !received;
}
