/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet through a pipe.
 *
 *	cc -I include examples/c/hello.c -o hello
 *	ringway run -- ./hello
 */
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>
#include <poll.h>

int
main(void)
{
	/* The two ends of pipe 1 of port vale0:hello. */
	struct nm_desc *left = nm_open("vale0:hello{1", NULL, 0, NULL);
	struct nm_desc *right = nm_open("vale0:hello}1", NULL, 0, left);
	const char greeting[] = "hello, ring";
	struct nm_pkthdr header;
	struct pollfd wait = { 0 };
	unsigned char *packet;

	if (!left || !right) {
		perror("cannot open the pipe");
		return 1;
	}

	/* Into a slot of the left ring; the sync hands it over. */
	if (!nm_inject(left, greeting, sizeof(greeting)) ||
	    ioctl(left->fd, NIOCTXSYNC, NULL) == -1) {
		perror("cannot send");
		return 1;
	}

	/* The buffer is the sender's own: nothing was copied. */
	wait.fd = right->fd;
	wait.events = POLLIN;
	poll(&wait, 1, 5000);
	packet = nm_nextpkt(right, &header);
	if (!packet) {
		fprintf(stderr, "nothing came\n");
		return 1;
	}
	printf("%u bytes: %s\n", header.len, (const char *)packet);

	nm_close(right);
	nm_close(left);
	return 0;
}
