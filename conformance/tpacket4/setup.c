/* SPDX-License-Identifier: BSD-2-Clause */
/* Setting up: memory, rings, names (V4-SETUP). */
#include "case.h"

#include <fcntl.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>

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
rings(void)
{
	const char *interface = own("vale$:a");
	int version = TPACKET_V3, queue = 0, reserve = 64, value = 1, loss = 0;
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
	check_call(v4_option(fd, PACKET_LOSS, &value, sizeof(value)), 0, "no errors in descriptors");
	check_call(getsockopt(fd, SOL_PACKET, PACKET_LOSS, &loss, &len), 0, "is told");
	check_number(loss, value, "whether they have errors");
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
	check_call(v4_option(fd, PACKET_LOSS, &value, sizeof(value)), EBUSY, "and what descriptors tell");
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
	check_call(v4_option(fd, PACKET_COPY_THRESH, &value, sizeof(value)), ENOPROTOOPT, "an option that is not there");
	value = 65536;
	check_call(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), 0, "an option of any socket");
	len = sizeof(value);
	check_call(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), 0, "is told");
	check(value >= 65536, "as it was set: %d", value);
	check_call(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len), 0, "the protocol");
	check_number(value, htons(ETH_P_ALL), "is that of the socket");
	len = sizeof(stats);
	check_call(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0, "statistics");
	check(len == sizeof(stats) && stats.tp_packets == 0 && stats.tp_drops == 0 && stats.tp_freeze_q_cnt == 0,
	      "of nothing");
	close(fd);
}

/* Ports and the kernel's interfaces, by name and index. */
static void
names(void)
{
	const char *interface = own("vale$:a");
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

/* A ring of a direction has one socket; after its close another may have it. */
static void
exclusive(void)
{
	struct v4 one = v4_open(own("vale$:a"));
	int fd = v4_socket(), memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	require(v4_register(memory, page, sizeof(page)) == 0, "memory");
	require(v4_ring(fd, PACKET_RX_RING, memory, DESCS) == 0, "a receive ring");
	check_call(v4_bind(fd, if_nametoindex(own("vale$:a"))), EBUSY, "another socket has it");
	v4_close(&one);
	check_call(v4_bind(fd, if_nametoindex(own("vale$:a"))), 0, "it is free again");
	close(fd);
	one = v4_open(own("vale$:a"));
	check(1, "and again");
	v4_close(&one);
}

/* What the kernel answers for any file. */
static void
requests_of_any_file(void)
{
	int version = TPACKET_V4, on = 1, off = 0;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), 0, "PACKET_VERSION");
	check_call(ioctl(fd, FIONBIO, &on), 0, "FIONBIO");
	check(fcntl(fd, F_GETFL) & O_NONBLOCK, "sets O_NONBLOCK");
	check_call(ioctl(fd, FIONBIO, &off), 0, "FIONBIO");
	check(!(fcntl(fd, F_GETFL) & O_NONBLOCK), "takes it back");
	check_call(ioctl(fd, FIOCLEX), 0, "FIOCLEX");
	check_number(fcntl(fd, F_GETFD), FD_CLOEXEC, "sets FD_CLOEXEC");
	check_call(ioctl(fd, FIONCLEX), 0, "FIONCLEX");
	check_number(fcntl(fd, F_GETFD), 0, "takes it back");
	check_call(ioctl(fd, 0x12345), ENOTTY, "others");
	close(fd);
}

/* What the socket is bound to. */
static void
address(void)
{
	struct sockaddr_ll bound;
	socklen_t len = sizeof(bound);
	struct v4 one = v4_open(own("vale$:a"));

	memset(&bound, 0x5a, sizeof(bound));
	check_call(getsockname(one.fd, (struct sockaddr *)&bound, &len), 0, "getsockname");
	check_number(len, 18, "a hardware address of 6 bytes");
	check(bound.sll_family == AF_PACKET && bound.sll_protocol == htons(ETH_P_ALL), "of all packets");
	check_number(bound.sll_ifindex, (int)if_nametoindex(own("vale$:a")), "the port's index");
	check(bound.sll_hatype == ARPHRD_ETHER && bound.sll_halen == 6, "of Ethernet");
	v4_close(&one);
}

/* Memberships are of the interface that is named, and counted. */
static void
memberships(void)
{
	struct packet_mreq request = { .mr_ifindex = 999999, .mr_type = PACKET_MR_PROMISC };
	int version = TPACKET_V4, fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	unsigned kind;

	need_root();
	shell("ip link add %s type veth peer name %s", own("n$"), own("f$"));
	check_call(v4_option(fd, PACKET_VERSION, &version, sizeof(version)), 0, "PACKET_VERSION");
	check_call(v4_option(fd, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)), ENODEV, "of none");
	request.mr_ifindex = (int)if_nametoindex(own("n$"));
	check_call(v4_option(fd, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)), 0, "one");
	check_call(v4_option(fd, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)), 0, "twice");
	shell("ip -d link show %s | grep -q 'promiscuity 1'", own("n$"));
	check_call(v4_option(fd, PACKET_DROP_MEMBERSHIP, &request, sizeof(request)), 0, "once less");
	shell("ip -d link show %s | grep -q 'promiscuity 1'", own("n$"));
	check_call(v4_option(fd, PACKET_DROP_MEMBERSHIP, &request, sizeof(request)), 0, "and less");
	shell("ip -d link show %s | grep -q 'promiscuity 0'", own("n$"));
	for (kind = PACKET_MR_PROMISC; kind <= PACKET_MR_ALLMULTI; kind++) {
		request.mr_type = (unsigned short)kind;
		check_call(v4_option(fd, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)), 0, "both");
	}
	shell("ip -d link show %s | grep -q 'promiscuity 1  *allmulti 1'", own("n$"));
	check_call(close(fd), 0, "the close");
	shell("ip -d link show %s | grep -q 'promiscuity 0  *allmulti 0'", own("n$"));
}

static const struct test_case cases[] = {
	{ "V4-SETUP-1", "memory", memory },
	{ "V4-SETUP-2", "rings", rings },
	{ "V4-SETUP-3", "names", names },
	{ "V4-SETUP-4", "one socket for a ring", exclusive },
	{ "V4-SETUP-5", "sockets of others", others },
	{ "V4-SETUP-6", "the address", address },
	{ "V4-SETUP-6", "memberships", memberships },
	{ "V4-SETUP-6", "requests of any file", requests_of_any_file },
};

CHAPTER(cases)
