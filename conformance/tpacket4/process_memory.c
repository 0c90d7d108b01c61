/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory in several processes (V4-PROCESS). */
#define _GNU_SOURCE
#include "case.h"

#include <sys/uio.h>

#define SIZE	(FRAMES * FRAME_SIZE)
/* The program on the other side, which has the descriptor by this number. */
#define OTHER	"other"
#define ONLY	"only"
#define NUMBER	100

/* Passes a descriptor on. */
static void
pass(int through, int fd)
{
	char byte = 'x', room[CMSG_SPACE(sizeof(int))];
	struct iovec data = { &byte, 1 };
	struct msghdr message;
	struct cmsghdr *control;

	memset(&message, 0, sizeof(message));
	memset(room, 0, sizeof(room));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = room;
	message.msg_controllen = sizeof(room);
	control = CMSG_FIRSTHDR(&message);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(control), &fd, sizeof(int));
	require(sendmsg(through, &message, 0) == 1, "a descriptor is passed on");
}

static int
passed(int through)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec data = { &byte, 1 };
	struct msghdr message;
	int fd;

	memset(&message, 0, sizeof(message));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = room;
	message.msg_controllen = sizeof(room);
	require(recvmsg(through, &message, 0) == 1, "a descriptor comes");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* The same descriptor, as another process would get it. */
static int
sent(int fd)
{
	int ends[2], got;

	require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
	pass(ends[0], fd);
	got = passed(ends[1]);
	require(got >= 0 && got != fd, "by another number");
	close(ends[0]);
	close(ends[1]);
	return got;
}

static int
registered(void *area)
{
	int memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	require(v4_register(memory, area, SIZE) == 0, "memory");
	return memory;
}

static int
memfd(unsigned int flags)
{
	int fd = memfd_create("frames", flags);

	require(fd >= 0 && ftruncate(fd, SIZE) == 0, "a memfd");
	return fd;
}

static void *
mapped(int fd)
{
	void *area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	require(area != MAP_FAILED, "memory is mapped");
	return area;
}

/* A socket with both rings for frames of memory that another process has registered. */
static struct v4
open_with(const char *interface, int memory, void *area)
{
	size_t size = DESCS * sizeof(struct tpacket4_desc);
	struct v4 v4;
	void *rings;

	memset(&v4, 0, sizeof(v4));
	v4.fd = v4_socket();
	v4.area = (char *)area;
	require(v4_ring(v4.fd, PACKET_RX_RING, memory, DESCS) == 0, "a receive ring: %s", strerror(errno));
	require(v4_ring(v4.fd, PACKET_TX_RING, memory, DESCS) == 0, "a transmit ring");
	rings = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, v4.fd, 0);
	require(rings != MAP_FAILED, "maps the rings");
	v4.rx.ring = (struct tpacket4_desc *)rings;
	v4.tx.ring = v4.rx.ring + DESCS;
	v4.rx.mask = v4.tx.mask = DESCS - 1;
	require(v4_bind(v4.fd, if_nametoindex(interface)) == 0, "binds");
	return v4;
}

/* The other side: receives a packet into frame 300, and sends it back from there. */
static int
reflect(const char *interface, int memory, void *area)
{
	struct v4 v4 = open_with(interface, memory, area);
	struct tpacket4_desc desc = frame_of(300, 0, 0);

	fill(&v4, desc.idx, 1);
	desc.len = 60;
	desc.idx = 301;
	build(&v4, &desc);
	/* The one that waits may send now. */
	send_one(&v4, desc);
	receive(&v4, &desc);
	check(desc.idx == 300 && desc.len == 64 && desc.error == 0, "a packet");
	send_one(&v4, desc);
	while (!get(&v4.tx, &desc))
		require(await(&v4, POLLOUT, 20000) == POLLOUT, "the first comes back");
	while (!get(&v4.tx, &desc))
		require(await(&v4, POLLOUT, 20000) == POLLOUT, "the second comes back");
	return check_result();
}

/* This side: what it sends from frame 7 is in the same memory, where the other has received it. */
static void
exchange(struct v4 *one)
{
	struct tpacket4_desc desc, sent = frame_of(7, 64, 0);

	receive(one, &desc);
	check_number(desc.len, 60, "the other is there");
	build(one, &sent);
	strcpy(data_of(one, &sent) + 20, "shared");
	send_one(one, sent);
	receive(one, &desc);
	check(desc.len == 64 && strcmp(data_of(one, &desc) + 20, "shared") == 0, "it comes back");
	desc.idx = 300;
	check(strcmp(data_of(one, &desc) + 20, "shared") == 0, "and was in the same memory");
}

/* A child that gets the descriptor only when it runs. */
static void
of_a_parent(void)
{
	void *area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1, memory, ends[2];
	struct v4 one;
	pid_t pid;

	require(area != MAP_FAILED, "shared memory");
	require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(reflect(own("vale$:b"), passed(ends[1]), area));
	require(pid > 0, "a child");
	memory = registered(area);
	one = open_with(own("vale$:a"), memory, area);
	fill(&one, 0, 4);
	pass(ends[0], memory);
	close(memory);
	exchange(&one);
	require(waitpid(pid, &status, 0) == pid, "a child");
	check_number(status, 0, "the child");
}

/* A program that has nothing but the descriptors, which it inherits. */
static void
of_a_program(void)
{
	int file = memfd(MFD_ALLOW_SEALING), status = -1, memory;
	void *area = mapped(file);
	struct v4 one;
	pid_t pid;

	memory = registered(area);
	one = open_with(own("vale$:a"), memory, area);
	fill(&one, 0, 4);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		require(dup2(memory, NUMBER) == NUMBER && dup2(file, NUMBER + 1) == NUMBER + 1, "numbers");
		execl("/proc/self/exe", "it", OTHER, own("vale$:b"), NULL);
		_exit(127);
	}
	require(pid > 0, "a child");
	close(memory);
	exchange(&one);
	require(waitpid(pid, &status, 0) == pid, "a child");
	check_number(status, 0, "the other program");
	check_call(ftruncate(file, 0), EPERM, "the memory cannot become shorter any more");
}

static int
other(const char *interface)
{
	char *area = (char *)mapped(NUMBER + 1);

	return reflect(interface, NUMBER, area);
}

static void
refused(int memory, const char *text)
{
	int fd = v4_socket(), got = sent(memory);

	check(v4_ring(fd, PACKET_RX_RING, got, DESCS) == -1 && errno == EINVAL, "%s: %s", text, strerror(errno));
	check_call(v4_ring(fd, PACKET_RX_RING, memory, DESCS), 0, "it is memory of this process");
	close(got);
	close(fd);
	close(memory);
}

static void
not_shared(void)
{
	char path[] = "/dev/shm/ringway-XXXXXX";
	int file = memfd(0), ends[2], fd = v4_socket();

	refused(registered(v4_area()), "private memory");
	refused(registered(mapped(file)), "a memfd that cannot be sealed");
	close(file);
	file = memfd(MFD_ALLOW_SEALING);
	{
		void *area = mapped(file);

		close(file);
		refused(registered(area), "a memfd without a descriptor");
	}
	file = mkstemp(path);
	require(file >= 0 && unlink(path) == 0 && ftruncate(file, SIZE) == 0, "a file");
	refused(registered(mapped(file)), "a file");
	require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && write(ends[0], "text", 4) == 4, "sockets");
	check_call(v4_ring(fd, PACKET_RX_RING, ends[1], DESCS), EINVAL, "another socket");
	check_number(read(ends[1], path, sizeof(path)), 4, "keeps what it has");
}

/* How a program asks a socket for a message. */
static long
received(int fd, int how)
{
	char text[64];
	struct iovec data = { text, sizeof(text) };
	struct mmsghdr message;

	memset(&message, 0, sizeof(message));
	message.msg_hdr.msg_iov = &data;
	message.msg_hdr.msg_iovlen = 1;
	switch (how) {
	case 0:
		return recv(fd, text, sizeof(text), MSG_DONTWAIT);
	case 1:
		return recvfrom(fd, text, sizeof(text), 0, NULL, NULL);
	case 2:
		return recvmsg(fd, &message.msg_hdr, 0);
	case 3:
		return recvmmsg(fd, &message, 1, 0, NULL);
	case 4:
		return read(fd, text, sizeof(text));
	}
	return readv(fd, &data, 1);
}

/* What lets other processes find the memory is no message for the program. */
static void
nothing_to_receive(void)
{
	int file = memfd(MFD_ALLOW_SEALING), memory = registered(mapped(file)), how, status, pid;

	for (how = 0; how < 6; how++)
		check_call(received(memory, how), EAGAIN, "nothing is received there");
	pid = fork();
	if (pid == 0) {
		require(dup2(memory, NUMBER) == NUMBER && dup2(file, NUMBER + 1) == NUMBER + 1, "numbers");
		execl("/proc/self/exe", "it", ONLY, NULL);
		_exit(127);
	}
	require(pid > 0 && waitpid(pid, &status, 0) == pid, "a child");
	check_number(status, 0, "and another program finds the memory");
}

/* In the process itself any number will do. */
static void
copies(void)
{
	int memory = registered(v4_area()), fd = v4_socket(), file = memfd(MFD_ALLOW_SEALING);

	check_call(v4_ring(fd, PACKET_RX_RING, dup(memory), DESCS), 0, "a copy");
	check_call(v4_ring(fd, PACKET_TX_RING, sent(registered(mapped(file))), DESCS), 0, "and one that was passed on");
	check_call(v4_bind(fd, if_nametoindex(own("vale$:a"))), 0, "binds");
}

static const struct test_case cases[] = {
	{ "V4-PROCESS-2", "copies of a descriptor", copies },
	{ "V4-PROCESS-2", "memory of a parent", of_a_parent },
	{ "V4-PROCESS-2", "memory of another program", of_a_program },
	{ "V4-PROCESS-2", "nothing to receive", nothing_to_receive },
	{ "V4-PROCESS-4", "memory that is not passed on", not_shared },
};

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], OTHER) == 0)
		return other(argv[2]);
	if (argc == 2 && strcmp(argv[1], ONLY) == 0)
		return v4_ring(v4_socket(), PACKET_RX_RING, NUMBER, DESCS) != 0;
	return chapter_run(cases, COUNT(cases), argc, argv);
}
