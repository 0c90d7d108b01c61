/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One bound descriptor in several hands: dup, fork, SCM_RIGHTS; and when the
 * port goes away (S-LIFE-5, S-LIFE-6).
 *
 * usage: fd_sharing [SWITCH [14|15]]
 */
#include "port.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static const char *vale = "vale2";

/* What a process that receives the descriptor must know to use it. */
struct parcel {
	uint64_t memsize, offset;
};

/*
 * Waits until the port is gone: the end of a process reaches the service
 * without an event that we could wait for.
 */
static int
gone_soon(const char *name)
{
	struct timespec pause = { 0, 1000000 };
	int turns;

	for (turns = 0; turns < PATIENCE_MS; turns++) {
		if (!port_exists(name))
			return 1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static void
reap(pid_t child, const char *text)
{
	int status = -1;

	require(waitpid(child, &status, 0) == child, "waitpid");
	check_number(status, 0, text);
}

/* A frame from one port reaches the other. */
static void
check_passes(const struct port *from, const struct port *to, const char *text)
{
	static uint32_t sequence = 1000;

	port_send(from, broadcast, mac_of(1), ++sequence);
	check_number(port_take(to), sequence, text);
}

static void
test_dup(const struct port *peer)
{
	const char *name = name_of(vale, "dup");
	struct port port = port_open(name);
	struct nmreq_register reg = register_all();
	int copy, target, old = port.fd;
	void *mem;

	copy = dup(port.fd);
	check(copy >= 0, "dup");
	check_call(control(copy, NETMAP_REQ_REGISTER, name, &reg), EBUSY,
		   "S-LIFE-6 the copy is the same bound object");
	close(old);
	port.fd = copy;
	check_passes(&port, peer, "dup: sends after the original is closed");
	check_passes(peer, &port, "dup: receives");

	target = open("/dev/null", O_RDWR);
	check_number(dup2(copy, target), target, "dup2 onto an open descriptor");
	close(copy);
	port.fd = target;
	check_passes(&port, peer, "dup2: sends");
	check_passes(peer, &port, "dup2: receives");

	copy = fcntl(target, F_DUPFD_CLOEXEC, 100);
	check(copy >= 100, "F_DUPFD_CLOEXEC");
	close(target);
	port.fd = dup3(copy, target, O_CLOEXEC);
	check_number(port.fd, target, "dup3");
	close(copy);
	check_passes(&port, peer, "dup3: sends");
	check_passes(peer, &port, "dup3: receives");
	mem = mmap(NULL, port.reg.nr_memsize, PROT_READ, MAP_SHARED, port.fd,
		   0);
	check(mem != MAP_FAILED && memcmp(mem, port.mem, 4096) == 0,
	      "dup3: maps the same region");
	munmap(mem, port.reg.nr_memsize);

	/* Another file in the number's place is no netmap descriptor. */
	copy = dup(port.fd);
	target = open("/dev/null", O_RDWR);
	dup2(target, port.fd);
	check(ioctl(port.fd, NIOCTXSYNC, NULL) == -1 && errno == ENOTTY,
	      "dup2 of another file over it");
	close(target);
	close(port.fd);
	port.fd = copy;
	check_passes(&port, peer, "and the last copy still sends");
	port_close(&port);
	check(!port_exists(name), "S-LIFE-5 gone after the last copy");
}

/* S-LIFE-5: a mapping is a reference as well. */
static void
test_mapping(void)
{
	const char *name = name_of(vale, "map");
	struct nmreq_register reg = register_all();
	struct port port;
	int fd = device_open();

	reg.nr_flags = NR_EXCLUSIVE;
	port = port_open_as(name, reg);
	close(port.fd);
	check(port_exists(name), "S-LIFE-5 the mapping keeps the port");
	reg = register_all();
	check_call(control(fd, NETMAP_REQ_REGISTER, name, &reg), EBUSY,
		   "S-LIFE-5 and its exclusive claim");
	munmap(port.mem, port.reg.nr_memsize);
	check(!port_exists(name), "S-LIFE-5 munmap lets it go");
	reg = register_all();
	check_call(control(fd, NETMAP_REQ_REGISTER, name, &reg), 0,
		   "S-LIFE-5 and the claim");
	close(fd);

	port = port_open(name);
	munmap(port.mem, port.reg.nr_memsize);
	check(port_exists(name), "S-LIFE-5 the descriptor alone keeps it");
	close(port.fd);
	check(!port_exists(name), "S-LIFE-5 close lets it go");
}

/* S-LIFE-6: descriptor and mapping are the child's as well. */
static void
test_fork(const struct port *peer)
{
	const char *name = name_of(vale, "fork");
	struct port port = port_open(name);
	pid_t child = fork();

	require(child >= 0, "fork");
	if (child == 0) {
		port_send(&port, broadcast, mac_of(2), 1);
		_exit(port_take(&port) != 2);
	}
	check_number(port_take(peer), 1, "fork: the child sends");
	port_send(peer, broadcast, mac_of(3), 2);
	reap(child, "fork: the child receives");
	check(port_exists(name), "S-LIFE-6 the child's end does not unbind");
	port_rxsync(&port);
	check_passes(&port, peer, "fork: the parent sends afterwards");
	check_passes(peer, &port, "fork: the parent receives afterwards");

	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		port_close(&port);
		_exit(0);
	}
	reap(child, "fork: a child that closes its copy");
	check(port_exists(name), "S-LIFE-6 leaves the port to its parent");
	check_passes(&port, peer, "fork: which goes on sending");
	port_close(&port);
	check(gone_soon(name), "S-LIFE-5 gone after the last user");
}

static void
give(int socket, int fd, struct parcel parcel)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec data = { &parcel, sizeof(parcel) };
	struct msghdr message;
	struct cmsghdr *header;

	memset(&message, 0, sizeof(message));
	memset(&ancillary, 0, sizeof(ancillary));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = &ancillary;
	message.msg_controllen = sizeof(ancillary.space);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	require(sendmsg(socket, &message, 0) == sizeof(parcel), "sendmsg");
}

static int
take(int socket, struct parcel *parcel)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec data = { parcel, sizeof(*parcel) };
	struct msghdr message;
	int fd;

	memset(&message, 0, sizeof(message));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = &ancillary;
	message.msg_controllen = sizeof(ancillary.space);
	require(recvmsg(socket, &message, 0) == sizeof(*parcel) &&
		CMSG_FIRSTHDR(&message), "recvmsg with a descriptor");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* The process that knows of the port what the message says, and no more. */
static void
receive_descriptor(int socket)
{
	struct parcel parcel;
	struct port port;

	memset(&port, 0, sizeof(port));
	port.fd = take(socket, &parcel);
	port.reg.nr_memsize = parcel.memsize;
	port.reg.nr_offset = parcel.offset;
	port_map(&port);
	require(write(socket, "m", 1) == 1, "mapped");
	require(port_take(&port) == 1, "the receiver of the fd receives");
	port_send(&port, broadcast, mac_of(4), 2);
	require(port_take(&port) == 3, "and again");
	_exit(0);
}

static void
test_passing(const struct port *peer)
{
	const char *name = name_of(vale, "scm");
	struct port port;
	struct parcel parcel;
	int sockets[2];
	pid_t child;
	char byte;

	/* The other process exists, and is connected, before the port does. */
	require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0,
		"socketpair");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		close(sockets[0]);
		receive_descriptor(sockets[1]);
	}
	close(sockets[1]);
	port = port_open(name);
	parcel.memsize = port.reg.nr_memsize;
	parcel.offset = port.reg.nr_offset;
	give(sockets[0], port.fd, parcel);
	check(read(sockets[0], &byte, 1) == 1,
	      "S-LIFE-6 the receiver of the descriptor maps it");
	port_send(peer, broadcast, mac_of(3), 1);
	check_number(port_take(peer), 2, "S-LIFE-6 receives and sends");
	port_close(&port);
	check(port_exists(name), "S-LIFE-5 the receiver keeps the port");
	port_send(peer, broadcast, mac_of(3), 3);
	reap(child, "S-LIFE-6 the receiver goes on after the giver's close");
	check(gone_soon(name), "S-LIFE-5 the port goes with the receiver");
	close(sockets[0]);
}

int
main(int argc, char **argv)
{
	struct port peer;

	if (argc > 1)
		vale = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	peer = port_open(name_of(vale, "peer"));
	test_dup(&peer);
	test_mapping();
	test_fork(&peer);
	test_passing(&peer);
	port_close(&peer);
	return check_result();
}
