/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_PACKET V4: what setting up is refused for, what a kick and a poll answer,
 * what becomes of descriptors that are not good, and which sockets are others'.
 *
 * tpacket4_rules ONE OTHER
 */
#include "tpacket4.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

static char page[8 * FRAME_SIZE] __attribute__((aligned(4096)));

static int
memreg(int fd, uint64_t addr, uint64_t len, uint32_t frame_size, uint32_t headroom)
{
	struct tpacket_memreg_req request;

	request.addr = addr;
	request.len = len;
	request.frame_size = frame_size;
	request.data_headroom = headroom;
	return v4_option(fd, PACKET_MEMREG, &request, sizeof(request));
}

static void
memory(void)
{
	uint64_t at = (uintptr_t)page, len = sizeof(page);
	struct { struct tpacket_memreg_req request; char tail[8]; } longer;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	check_call(memreg(fd, at, len, 1024, 0), EINVAL, "frames are no smaller than 2048");
	check_call(memreg(fd, at, len, 8192, 0), EINVAL, "nor larger than a page");
	check_call(memreg(fd, at, len, 3000, 0), EINVAL, "and a power of two");
	check_call(memreg(fd, at + 2048, len - 2048, 2048, 0), EINVAL, "memory begins at a page");
	check_call(memreg(fd, at, UINT64_MAX, 2048, 0), EINVAL, "and has an end");
	check_call(memreg(fd, at, 2047, 2048, 0), EINVAL, "and holds a frame");
	check_call(memreg(fd, at, len, 2048, 2048 - 255), EINVAL, "a headroom fits a frame");
	check_call(memreg(fd, 1 << 20, 1 << 20, 2048, 0), ENOMEM, "memory must be there");
	memset(&longer, 0, sizeof(longer));
	longer.request.addr = at;
	longer.request.len = len;
	longer.request.frame_size = 2048;
	check_call(v4_option(fd, PACKET_MEMREG, &longer, 16), EINVAL, "half an option");
	longer.tail[3] = 1;
	check_call(v4_option(fd, PACKET_MEMREG, &longer, sizeof(longer)), EINVAL, "a tail that means something");
	check_call(v4_option(fd, PACKET_MEMREG, (void *)8, 24), EFAULT, "an option that is not there");
	longer.tail[3] = 0;
	check_call(v4_option(fd, PACKET_MEMREG, &longer, sizeof(longer)), 0, "a tail of zeros");
	check_call(memreg(fd, at, len, 2048, 0), EBUSY, "memory is registered once");
	close(fd);
}

static void
rings(const char *interface)
{
	int version = TPACKET_V3, queue = 0, reserve = 64, value = 1;
	unsigned int index = if_nametoindex(interface);
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	socklen_t len = sizeof(version);
	struct sockaddr_ll address;
	struct tpacket_stats_v3 stats;
	void *map;

	require(memreg(fd, (uintptr_t)page, sizeof(page), 2048, 0) == 0, "memory");
	check_call(v4_ring(fd, PACKET_RX_RING, fd, 64), EINVAL, "rings are of version 4");
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), EINVAL, "no way back");
	version = TPACKET_V4;
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), 0, "version 4");
	version = 0;
	check_call(getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &len), 0, "is told");
	check_number(version, TPACKET_V4, "the version");
	check_call(v4_option(fd, PACKET_RESERVE, &reserve, sizeof(reserve)), 0, "a reserve");
	check_call(v4_option(fd, PACKET_QDISC_BYPASS, &value, sizeof(value)), 0, "no discipline");
	check_call(v4_ring(fd, PACKET_RX_RING, fd, 63), EINVAL, "a power of two of descriptors");
	check_call(v4_ring(fd, PACKET_RX_RING, 0, 64), EINVAL, "memory of another descriptor");
	check_call(v4_ring(fd, PACKET_RX_RING, -1, 64), EBADF, "memory of none");
	map = mmap(NULL, 1024, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map == MAP_FAILED && errno == EINVAL, "nothing to map");
	check_call(v4_ring(fd, PACKET_TX_RING, fd, 256), 0, "a transmit ring");
	check_call(v4_ring(fd, PACKET_TX_RING, fd, 256), EBUSY, "one");
	check_call(v4_ring(fd, PACKET_RX_RING, fd, 512), 0, "a receive ring, on its own memory");
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), EBUSY, "the version is settled");
	check_call(v4_option(fd, PACKET_RESERVE, &reserve, sizeof(reserve)), EBUSY, "so is the reserve");
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map == MAP_FAILED && errno == EINVAL, "half of the rings");
	map = mmap(NULL, 768 * 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	check(map == MAP_FAILED && errno == EINVAL, "rings from somewhere");
	map = mmap(NULL, 768 * 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED, "both rings");
	check_call(v4_ring(fd, PACKET_RX_RING, -1, 0), EBUSY, "mapped rings stay");
	check_call(munmap(map, 768 * 16), 0, "until they are not");
	check_call(v4_ring(fd, PACKET_RX_RING, -1, 0), 0, "a ring goes");
	check_call(v4_ring(fd, PACKET_RX_RING, fd, 512), 0, "and comes");
	check_call(sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0), ENXIO, "a kick of a socket that is not bound");
	check_call(v4_bind(fd, 12345678), ENODEV, "no such interface");
	memset(&address, 0, sizeof(address));
	address.sll_family = AF_INET;
	address.sll_ifindex = (int)index;
	check_call(bind(fd, (struct sockaddr *)&address, sizeof(address)), EINVAL, "another family");
	check_call(bind(fd, (struct sockaddr *)&address, 4), EINVAL, "half an address");
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(ETH_P_IP);
	check_call(bind(fd, (struct sockaddr *)&address, sizeof(address)), EINVAL, "one protocol");
	check_call(v4_option(fd, PACKET_ZEROCOPY, &queue, sizeof(queue)), 0, "queue pair 0 before it is bound");
	check_call(v4_bind(fd, index), 0, "binds");
	queue = 1000;
	check_call(v4_option(fd, PACKET_ZEROCOPY, &queue, sizeof(queue)), EOPNOTSUPP, "no such queue pair");
	queue = -1;
	check_call(v4_option(fd, PACKET_ZEROCOPY, &queue, sizeof(queue)), EINVAL, "no number of one");
	queue = 0;
	check_call(v4_option(fd, PACKET_ZEROCOPY, &queue, sizeof(queue)), 0, "queue pair 0 after it is bound");
	check_call(sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0), 0, "a kick without anything");
	check_call(v4_option(fd, PACKET_FANOUT, &value, sizeof(value)), ENOPROTOOPT, "an option that is not there");
	len = sizeof(stats);
	check_call(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0, "statistics");
	check(len == sizeof(stats) && stats.tp_packets == 0 && stats.tp_drops == 0 && stats.tp_freeze_q_cnt == 0,
	      "of nothing");
	close(fd);
}

/* Ports and the kernel's interfaces, by name and index. */
static void
names(const char *interface)
{
	char name[IF_NAMESIZE];
	struct ifreq request;
	unsigned int index = if_nametoindex(interface);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	check(if_indextoname(index, name) && strcmp(name, interface) == 0, "an index has its name");
	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	check_call(ioctl(fd, SIOCGIFINDEX, &request), 0, "SIOCGIFINDEX");
	check_number(request.ifr_ifindex, index, "and the same index");
	memset(request.ifr_name, 0, IFNAMSIZ);
	check_call(ioctl(fd, SIOCGIFNAME, &request), 0, "SIOCGIFNAME");
	check(strcmp(request.ifr_name, interface) == 0, "and the same name");
	check_number(if_nametoindex("lo"), 1, "the kernel's interfaces are the kernel's");
	check(if_nametoindex("no-such-one") == 0, "and so are those that are not there");
	close(fd);
}

/* A frame to all. */
static void
build(struct v4 *v4, const struct tpacket4_desc *desc)
{
	static const char head[14] = { -1, -1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 1, (char)0x88, (char)0xb5 };

	memset(data_of(v4, desc), 0xee, desc->len);
	memcpy(data_of(v4, desc), head, sizeof(head));
}

/* The next packet, which must come. */
static void
receive(struct v4 *v4, struct tpacket4_desc *desc)
{
	while (!get(&v4->rx, desc))
		require(await(v4, POLLIN, 20000) == POLLIN, "something comes");
}

static void
send_one(struct v4 *v4, struct tpacket4_desc desc)
{
	put(&v4->tx, desc);
	check_call(kick(v4), 0, "kick");
}

static void
returned(struct v4 *v4, uint64_t idx, int error, const char *text)
{
	struct tpacket4_desc desc = frame_of(0, 0, 0);

	if (!check(get(&v4->tx, &desc), "%s comes back", text))
		return;
	check(desc.idx == idx && desc.error == error && !(desc.flags & TP4_DESC_KERNEL),
	      "%s: frame %llu, error %d", text, (unsigned long long)desc.idx, desc.error);
}

/* Descriptors that are not good, and those behind them. */
static void
validation(struct v4 *one, struct v4 *other)
{
	struct tpacket4_desc desc = frame_of(3, 64, 0), bad, got;

	build(one, &desc);
	send_one(one, frame_of(FRAMES, 64, 0));
	returned(one, FRAMES, EBADF, "a frame that is not there");
	send_one(one, frame_of(UINT64_MAX, 64, 0));
	returned(one, UINT64_MAX, EBADF, "the last number");
	send_one(one, frame_of(1, 0, 0));
	returned(one, 1, EBADF, "nothing");
	send_one(one, frame_of(1, FRAME_SIZE + 1, 0));
	returned(one, 1, EBADF, "more than a frame");
	send_one(one, frame_of(1, 64, FRAME_SIZE - 63));
	returned(one, 1, EBADF, "what goes beyond it");
	send_one(one, frame_of(1, 64, 65535));
	returned(one, 1, EBADF, "what lies beyond it");
	send_one(one, frame_of(1, UINT32_MAX, 65535));
	returned(one, 1, EBADF, "a sum that goes round");
	/* The bad one of a packet takes the rest along; the packet behind it is good. */
	bad = frame_of(FRAMES, 64, 0);
	bad.flags = TP4_PKT_CONT;
	put(&one->tx, bad);
	send_one(one, frame_of(2, 64, 0));
	returned(one, FRAMES, EBADF, "a bad part");
	returned(one, 2, EBADF, "the other part");
	send_one(one, desc);
	returned(one, 3, 0, "a good one");
	/* A packet without its end waits for it. */
	bad = frame_of(3, 64, 0);
	bad.flags = TP4_PKT_CONT | 0x40;
	send_one(one, bad);
	check(!get(&one->tx, &got), "a packet without its end stays");
	send_one(one, frame_of(4, 10, 0));
	returned(one, 3, 0, "its first part");
	returned(one, 4, 0, "its end");
	check(await(one, POLLOUT, 0) == POLLOUT, "nothing is to come back");

	/* Frames to receive into. */
	put(&other->rx, frame_of(FRAMES, 0, 0));
	put(&other->rx, frame_of(9, 0, 0));
	put(&other->rx, frame_of(UINT64_MAX, 0, 0));
	put(&other->rx, frame_of(10, 0, 0));
	receive(other, &got);
	check(got.idx == FRAMES && got.error == EBADF, "a frame that is not there comes back first");
	receive(other, &got);
	check(got.idx == 9 && got.len == 64 && got.offset == 256 && got.error == 0 && got.flags == 0,
	      "the frame is received into the next: %u at %u", got.len, got.offset);
	check((data_of(other, &got)[63] & 0xff) == 0xee, "and is what was sent");
	receive(other, &got);
	check(got.error == EBADF, "the third is bad");
	receive(other, &got);
	check(got.idx == 10 && got.len == 74, "a packet of two parts is one: %u", got.len);
}

/* A packet longer than a frame, in and out. */
static void
long_packet(struct v4 *one, struct v4 *other)
{
	const unsigned int payload = FRAME_SIZE - 256;
	struct tpacket4_desc part, got;
	unsigned int sum = 0, parts = 0, total = 3 * 1000;

	for (unsigned int n = 0; n < 3; n++) {
		part = frame_of(20 + n, 1000, 24);
		part.flags = n < 2 ? TP4_PKT_CONT : 0;
		if (n == 0)
			build(one, &part);
		else
			memset(data_of(one, &part), (int)(n + 1), 1000);
		put(&one->tx, part);
	}
	check_call(kick(one), 0, "kick");
	for (unsigned int n = 0; n < 3; n++)
		returned(one, 20 + n, 0, "a part");
	fill(other, 30, 2);
	do {
		receive(other, &got);
		sum += got.len;
		parts++;
		check(got.offset == 256, "at the headroom's end");
		check(sum > total - 1 || got.len == payload, "full: %u", got.len);
	} while (got.flags & TP4_PKT_CONT);
	check_number(sum, total, "all of the packet");
	check_number(parts, 2, "in as many frames as it takes");
	check_number(data_of(other, &got)[got.len - 1], 3, "its last byte");
}

/* Random bytes in its own rings are a program's own affair. */
static void
noise(struct v4 *one, struct v4 *other)
{
	struct tpacket4_desc *all[2] = { one->tx.ring, other->rx.ring };
	unsigned char *bytes;

	srand(4711);
	for (int round = 0; round < 50; round++) {
		for (int ring = 0; ring < 2; ring++) {
			bytes = (unsigned char *)all[ring];
			for (size_t at = 0; at < DESCS * sizeof(*all[0]); at++)
				bytes[at] = (unsigned char)(rand() >> 7);
		}
		/* Frames that may be there. */
		for (int slot = 0; slot < DESCS; slot += 1 + round % 5) {
			all[0][slot].idx %= FRAMES + 2;
			all[0][slot].len %= FRAME_SIZE;
			all[1][slot].idx %= FRAMES + 2;
		}
		kick(one);
		await(one, POLLOUT, 0);
		await(other, POLLIN, 0);
	}
	check(1, "noise does no harm");
}

/* Both kinds of epoll, and a socket of another kind in the same set. */
static void
events(struct v4 *one, struct v4 *other)
{
	struct epoll_event event, got[2];
	struct tpacket4_desc desc = frame_of(5, 64, 0);
	int set = epoll_create1(0), pipes[2];

	require(pipe(pipes) == 0, "a pipe");
	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	event.data.fd = other->fd;
	check_call(epoll_ctl(set, EPOLL_CTL_ADD, other->fd, &event), 0, "a member");
	event.data.fd = pipes[0];
	check_call(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event), 0, "another");
	/* As many as it has got back before, and two: it has seen all. */
	fill(other, 40, 8);
	await(other, POLLIN, 0);
	check_number(epoll_wait(set, got, 2, 0), 0, "nothing yet");
	build(one, &desc);
	send_one(one, desc);
	returned(one, 5, 0, "a frame");
	check_number(epoll_wait(set, got, 2, 20000), 1, "one is ready");
	check_number(got[0].data.fd, other->fd, "the socket");
	require(get(&other->rx, &desc), "a packet");
	check_number(desc.idx, 40, "in the first frame");
	put(&other->rx, frame_of(desc.idx, 0, 0));
	check_number(epoll_wait(set, got, 2, 0), 0, "nothing any more");
	close(set);
	close(pipes[0]);
	close(pipes[1]);
}

/* Sockets of the same process that are none of ours. */
static void
others(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL)), version = TPACKET_V4, got = -1;
	socklen_t len = sizeof(got);
	struct tpacket_req request;
	void *map;

	if (fd < 0) {
		check(errno == EPERM, "no packet sockets without the privilege");
		fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
		check(fd >= 0, "but one for Ringway's ports");
		version = TPACKET_V2;
		check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), EPERM, "and for nothing else");
		check_call(v4_bind(fd, 1), EPERM, "not even the kernel's interfaces");
		close(fd);
		return;
	}
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), EINVAL, "a cooked socket stays the kernel's");
	close(fd);
	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	version = TPACKET_V2;
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), 0, "version 2");
	check_call(getsockopt(fd, SOL_PACKET, PACKET_VERSION, &got, &len), 0, "is the kernel's");
	check_number(got, TPACKET_V2, "as it was set");
	memset(&request, 0, sizeof(request));
	request.tp_block_size = 4096;
	request.tp_frame_size = 2048;
	request.tp_block_nr = 4;
	request.tp_frame_nr = 8;
	check_call(v4_option(fd, PACKET_RX_RING, &request, sizeof(request)), 0, "a ring of version 2");
	map = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED, "is mapped");
	check_call(v4_bind(fd, 1), 0, "and bound to lo");
	munmap(map, 4 * 4096);
	close(fd);
}

/* A child has the memory, and can have sockets of its own on it; its parent's rings are the parent's. */
static void
child(struct v4 *one, struct v4 *other)
{
	struct tpacket4_desc desc = frame_of(6, 64, 0);
	int status = -1, memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	void *area = mmap(NULL, FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	require(area != MAP_FAILED && v4_register(memory, area, FRAMES * FRAME_SIZE) == 0, "shared memory");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int own = v4_socket();
		int good = kick(one) == -1 && errno == EBADF;

		good = good && await(other, POLLIN, 0) == POLLERR;
		good = good && v4_ring(own, PACKET_TX_RING, memory, DESCS) == 0;
		close(one->fd);
		close(other->fd);
		_exit(good ? 0 : 1);
	}
	require(pid > 0 && waitpid(pid, &status, 0) == pid, "a child");
	check_number(status, 0, "a child uses the memory, and not the rings");
	close(memory);
	munmap(area, FRAMES * FRAME_SIZE);
	/* The parent goes on. */
	fill(other, 50, 1);
	build(one, &desc);
	send_one(one, desc);
	returned(one, 6, 0, "a frame");
	receive(other, &desc);
	check(desc.error == 0 && desc.len == 64, "the parent goes on");
}

int
main(int argc, char **argv)
{
	struct v4 one, other;

	require(argc == 3, "arguments");
	memory();
	rings(argv[1]);
	names(argv[1]);
	others();
	one = v4_open(argv[1]);
	other = v4_open(argv[2]);
	validation(&one, &other);
	long_packet(&one, &other);
	events(&one, &other);
	child(&one, &other);
	noise(&one, &other);
	v4_close(&one);
	v4_close(&other);
	/* What was closed can be opened again. */
	one = v4_open(argv[1]);
	v4_close(&one);
	check(1, "a port that was closed can be opened again");
	return check_result();
}
