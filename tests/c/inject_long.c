/*
 * Sends a frame that is longer than a slot's data, but not than its buffer,
 * with nm_inject and with nmport_inject: PORT LENGTH.
 */
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>
#include <libnetmap.h>

#include <stdlib.h>
#include <sys/ioctl.h>

static unsigned char frame[65536];

static void
fill(int length)
{
	static const unsigned char head[14] = { 255, 255, 255, 255, 255, 255,
		2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	int i;

	memcpy(frame, head, sizeof(head));
	for (i = (int)sizeof(head); i < length; i++)
		frame[i] = (unsigned char)(i * 7 + length);
}

int
main(int argc, char **argv)
{
	int length = argc > 2 ? atoi(argv[2]) : 0, sent;
	struct nm_desc *old;
	struct nmport_d *port;

	if (argc != 3)
		return 2;
	fill(length);
	old = nm_open(argv[1], NULL, 0, NULL);
	if (old == NULL) {
		perror(argv[1]);
		return 1;
	}
	sent = nm_inject(old, frame, (size_t)length);
	printf("%s nm_inject\n", sent == length ? "ok" : "not ok");
	ioctl(old->fd, NIOCTXSYNC, NULL);
	nm_close(old);

	port = nmport_open(argv[1]);
	if (port == NULL) {
		perror(argv[1]);
		return 1;
	}
	sent = nmport_inject(port, frame, (size_t)length);
	printf("%s nmport_inject\n", sent == length ? "ok" : "not ok");
	ioctl(port->fd, NIOCTXSYNC, NULL);
	nmport_close(port);
	return 0;
}
