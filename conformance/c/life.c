/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIFE: a descriptor of /dev/netmap is opened unbound, binds once, to one port,
 * and holds it until the last reference to it is gone: descriptors in any
 * process, and mappings.
 */
#include "case.h"
#include "request.h"
#include "waiter.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

/* Names of every kind of port that anybody may make. */
static const char *const anybodys[] = { "vale$:a", "p$}1", "vale$:a{x" };

static void
descriptors_are_independent(void)
{
	int a = device_open(), b = device_open();

	check(a != b, "two opens, two descriptors");
	check_call(bind_all(a, own("vale$:a")), 0, "the first binds");
	check_call(ioctl(b, NIOCTXSYNC, NULL), ENXIO,
		   "the second is still unbound");
	check_call(bind_all(b, own("p$}1")), 0, "it binds to another port");
	close(a);
	check_call(ioctl(b, NIOCTXSYNC, NULL), 0,
		   "and is bound when the first is closed");
	check(!port_exists(own("vale$:a")), "whose port is gone");
}

static void
ways_of_opening(void)
{
	static const int flags[] = {
		O_RDWR, O_RDWR | O_CLOEXEC, O_RDWR | O_NONBLOCK, O_RDONLY,
		O_WRONLY,
	};
	size_t i;
	int fd;

	for (i = 0; i < COUNT(flags); i++) {
		fd = open(NETMAP_DEVICE_NAME, flags[i]);
		check(fd >= 0, "open with flags 0x%x", (unsigned)flags[i]);
		check_call(bind_all(fd, own("vale$:a")), 0, "and bind");
		check_number((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0,
			     (flags[i] & O_CLOEXEC) != 0, "close-on-exec");
		check_number(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK),
			     flags[i] & (O_ACCMODE | O_NONBLOCK),
			     "access mode and O_NONBLOCK");
		close(fd);
	}
	fd = openat(AT_FDCWD, NETMAP_DEVICE_NAME, O_RDWR);
	check_call(bind_all(fd, own("vale$:a")), 0, "openat");
	close(fd);
	fd = openat(-1, NETMAP_DEVICE_NAME, O_RDWR);
	check_call(bind_all(fd, own("vale$:a")), 0,
		   "openat looks at no directory for an absolute path");
	close(fd);
}

static void
numbers_of_descriptors(void)
{
	int lowest = dup(STDIN_FILENO), fd;

	require(lowest >= 0, "a number");
	close(lowest);
	fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	check_number(fd, lowest, "the lowest that is free");
	check_call(bind_all(fd, own("vale$:a")), 0, "and bind");
	close(fd);
	check_number(open(NETMAP_DEVICE_NAME, O_RDWR), lowest, "and again");
}

static void
a_descriptor_binds_once(void)
{
	size_t i;

	for (i = 0; i < COUNT(anybodys); i++) {
		struct port port = port_open(own(anybodys[i]));
		struct nmreq legacy;

		check_call(bind_all(port.fd, own(anybodys[i])), EBUSY,
			   "a second REGISTER of the same port");
		check_call(bind_all(port.fd, own("vale$:other")), EBUSY,
			   "of another one");
		check_call(bind_all(port.fd, "nosuchif0"), EBUSY,
			   "of none at all");
		memset(&legacy, 0, sizeof(legacy));
		legacy.nr_version = api_version;
		snprintf(legacy.nr_name, sizeof(legacy.nr_name), "%s",
			 own("vale$:l"));
		check_call(ioctl(port.fd, NIOCREGIF, &legacy), EBUSY,
			   "by the legacy request");
		check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0,
			   "the binding is as it was");
		check(!port_exists(own("vale$:other")),
		      "and no port came into being");
		port_close(&port);
	}
}

static void
a_failure_leaves_it_unbound(void)
{
	static const struct {
		const char *name;
		uint32_t mode;
		uint16_t ring, mem_id;
	} failing[] = {
		{ "nosuchif0", NR_REG_ALL_NIC, 0, 0 },
		{ "", NR_REG_ALL_NIC, 0, 0 },
		{ "valeX", NR_REG_ALL_NIC, 0, 0 },
		{ "vale$:a", 0, 0, 0 },
		{ "vale$:a", NR_REG_ONE_NIC, 7, 0 },
		{ "vale$:a", NR_REG_SW, 0, 0 },
		{ "vale$:a", NR_REG_ALL_NIC, 0, NO_REGION },
		{ "p$}1", NR_REG_NIC_SW, 0, 0 },
		{ "}1", NR_REG_ALL_NIC, 0, 0 },
	};
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(failing); i++) {
		struct nmreq_register reg = register_all();

		reg.nr_mode = failing[i].mode;
		reg.nr_ringid = failing[i].ring;
		reg.nr_mem_id = failing[i].mem_id;
		check(control(fd, NETMAP_REQ_REGISTER, own(failing[i].name),
			      &reg) == -1, "REGISTER %zu fails", i);
		check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
			   "and leaves the descriptor unbound");
		check(!port_exists(own("vale$:a")), "and no port behind");
	}
	check_call(bind_all(fd, own("vale$:a")), 0,
		   "the descriptor can still bind");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0, "and is of use");
}

static void
mmap_takes_a_binding(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = device_open();

	check_call(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0) ==
		   MAP_FAILED ? -1 : 0, EINVAL, "before any REGISTER");
	require(bind_all(fd, "nosuchif0") == -1, "a REGISTER that fails");
	check_call(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0) ==
		   MAP_FAILED ? -1 : 0, EINVAL, "after one that failed");
	require(bind_all(fd, own("vale$:a")) == 0, "a REGISTER");
	check(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED,
	      "after one that succeeded");
}

static void
mmap_stays_in_the_region(void)
{
	struct port port = port_open(own("vale$:a"));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = port.reg.nr_memsize, at;
	const struct {
		size_t length;
		off_t offset;
		int error;
	} cases[] = {
		{ size + page, 0, EINVAL },
		{ size + 1, 0, EINVAL },
		{ size, (off_t)page, EINVAL },
		{ page, (off_t)size, EINVAL },
		{ 2 * page, (off_t)(size - page), EINVAL },
		{ page, (off_t)1 << 40, EINVAL },
		{ size, 0, 0 },
		{ size - 1, 0, 0 },
		{ 1, 0, 0 },
		{ page, (off_t)(size - page), 0 },
		{ size - page, (off_t)page, 0 },
	};
	char *mem;
	size_t i;

	check_number((long long)(size % page), 0, "its size is whole pages");
	for (i = 0; i < COUNT(cases); i++) {
		mem = (char *)mmap(NULL, cases[i].length, PROT_READ,
				   MAP_SHARED, port.fd, cases[i].offset);
		check_call(mem == MAP_FAILED ? -1 : 0, cases[i].error,
			   "mmap at the region's limits");
		if (mem != MAP_FAILED)
			munmap(mem, cases[i].length);
	}
	/* Offsets in the mapping are offsets in the region. */
	at = (size_t)((char *)port_tx(&port) - port.mem) / page * page;
	mem = (char *)mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, port.fd,
			   (off_t)at);
	require(mem != MAP_FAILED, "mmap of a ring's pages");
	port_tx(&port)->slot[0].ptr = 0x1234567812345678;
	check(memcmp(mem, port.mem + at, 2 * page) == 0,
	      "a mapping at an offset shows what is there");
}

static void
mmap_of_any_protection(void)
{
	static const int protections[] = {
		PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	struct port port = port_open(own("vale$:a"));
	size_t i;

	for (i = 0; i < COUNT(protections); i++) {
		void *mem = mmap(NULL, port.reg.nr_memsize, protections[i],
				 MAP_SHARED, port.fd, 0);

		check(mem != MAP_FAILED, "protection %d", protections[i]);
		check_call(mprotect(mem, port.reg.nr_memsize,
				    PROT_READ | PROT_WRITE), 0,
			   "and another one later");
		munmap(mem, port.reg.nr_memsize);
	}
}

static void
one_region_one_memory(void)
{
	struct port master = port_open(own("p${1"));
	struct port slave = port_open(own("p$}1"));
	uint64_t *there = (uint64_t *)(void *)(master.mem +
		((char *)&port_tx(&master)->slot[3].ptr - master.mem));

	check_number(slave.reg.nr_mem_id, master.reg.nr_mem_id,
		     "two ends of a pipe have one region");
	check_number((long long)slave.reg.nr_memsize,
		     (long long)master.reg.nr_memsize, "of one size");
	*there = 0x5eed;
	check(memcmp(slave.mem + ((char *)there - master.mem), there,
		     sizeof(*there)) == 0,
	      "each descriptor maps the same memory at offset 0");
}

static void
every_page_is_there(void)
{
	struct port port = port_open(own("vale$:a"));
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at;
	volatile char sum = 0;

	for (at = 0; at < port.reg.nr_memsize; at += 64 * page)
		sum = (char)(sum + port.mem[at]);
	sum = (char)(sum + port.mem[port.reg.nr_memsize - 1]);
	check(1, "every page of the region can be read");
}

static void
waiting_unbound(void)
{
	static const short events[] = {
		POLLIN, POLLOUT, POLLIN | POLLOUT, 0,
	};
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	struct timeval patience = { 5, 0 };
	int fd = device_open(), epoll = epoll_create1(0);
	fd_set in, out;
	size_t i;

	for (i = 0; i < COUNT(events); i++)
		check_number(wait_events(fd, events[i], -1), POLLERR,
			     "poll returns POLLERR at once");
	check_number(wait_events(fd, POLLIN, 0), POLLERR,
		     "with a timeout of zero as well");
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	check_number(select(fd + 1, &in, &out, NULL, &patience), 2,
		     "select finds it readable and writable");
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0,
		   "an unbound descriptor in an epoll set");
	check_number(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1,
		     "epoll_wait returns it");
	check((event.events & EPOLLERR) != 0, "with EPOLLERR (0x%x)",
	      event.events);
}

static void
syncing_unbound(void)
{
	int fd = device_open();

	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO, "NIOCTXSYNC");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), ENXIO, "NIOCRXSYNC");
	require(bind_all(fd, "nosuchif0") == -1, "a REGISTER that fails");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
		   "NIOCTXSYNC after a REGISTER that failed");
}

static void
a_copy_holds_the_port(void)
{
	const char *name = own("vale$:a");
	int fd = device_open(), copy, another;

	require(bind_as(fd, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE) == 0,
		"an exclusive bind");
	copy = dup(fd);
	close(fd);
	check(port_exists(name), "the copy of a closed descriptor holds it");
	fd = device_open();
	check_call(bind_all(fd, name), EBUSY, "and its exclusive claim");
	another = fcntl(copy, F_DUPFD, 200);
	close(copy);
	check(port_exists(name), "so does a copy of the copy");
	close(another);
	check(!port_exists(name), "closing the last one lets it go");
	check_call(bind_all(fd, name), 0, "and the claim");
}

/* Whichever call made the copy: it sends, receives and maps. */
static void
copies_of_all_kinds(void)
{
	struct port port = port_open(own("vale$:a")), peer;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int null = open("/dev/null", O_RDWR), i;

	peer = port_open(own("vale$:b"));
	require(null >= 0, "/dev/null");
	for (i = 0; i < 5; i++) {
		int old = port.fd, other = dup(null);
		void *mem;

		port.fd = i == 0 ? dup(old) :
			i == 1 ? dup2(old, other) :
			i == 2 ? dup3(old, other, O_CLOEXEC) :
			i == 3 ? fcntl(old, F_DUPFD, 100) :
			fcntl(old, F_DUPFD_CLOEXEC, 100);
		check(port.fd >= 0 && (i < 1 || i > 2 || port.fd == other),
		      "copy %d", i);
		close(old);
		check_passes(&port, &peer, "sends");
		check_passes(&peer, &port, "receives");
		mem = mmap(NULL, page, PROT_READ, MAP_SHARED, port.fd, 0);
		check(mem != MAP_FAILED && memcmp(mem, port.mem, page) == 0,
		      "maps the same region");
		munmap(mem, page);
	}
	/* Another file in the number's place is no netmap descriptor. */
	i = dup(port.fd);
	dup2(null, port.fd);
	check(ioctl(port.fd, NIOCTXSYNC, NULL) == -1 && errno == ENOTTY,
	      "another file over it");
	close(port.fd);
	port.fd = i;
	check_passes(&port, &peer, "its last copy still sends");
	port_close(&port);
	check(!port_exists(own("vale$:a")), "and its close lets go");
}

static void
a_mapping_holds_the_port(void)
{
	const char *name = own("vale$:a");
	struct port port = port_open_flags(name, NR_EXCLUSIVE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = port.reg.nr_memsize;
	void *second = mmap(NULL, page, PROT_READ, MAP_SHARED, port.fd, 0);
	int fd = device_open();

	require(second != MAP_FAILED, "a second mapping");
	close(port.fd);
	check(port_exists(name), "mappings hold it after the close");
	check_call(bind_all(fd, name), EBUSY, "and the exclusive claim");
	munmap(second, page);
	check(port_exists(name), "one of two mappings does");
	munmap(port.mem, size / page / 2 * page);
	check(port_exists(name), "half of the last one does");
	munmap(port.mem + size / page / 2 * page, size - size / page / 2 * page);
	check(!port_exists(name), "nothing mapped, nothing held");
	check_call(bind_all(fd, name), 0, "the claim is gone as well");
}

static void
a_mapping_replaced_is_gone(void)
{
	const char *name = own("vale$:a");
	struct port port = port_open(name);

	close(port.fd);
	require(mmap(port.mem, port.reg.nr_memsize, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		port.mem, "mmap over the mapping");
	check(!port_exists(name), "another mapping over it lets it go");
}

/* What is under way keeps its file open, whatever becomes of the number. */
static void
a_call_under_way_holds_the_port(void)
{
	const char *name = own("vale$:a");
	struct port port = port_open(name), peer = port_open(own("vale$:b"));
	struct waiter waiter;
	pthread_t thread = start_waiting(&waiter, &wait_calls[0], port.fd,
					 POLLIN);

	munmap(port.mem, port.reg.nr_memsize);
	close(port.fd);
	check(port_exists(name), "a poll under way holds the port");
	port_send(&peer, broadcast, mac_of(1), 1);
	check_woken(thread, &waiter, "and is woken by a frame");
	check(gone_soon(name), "its end lets the port go");
}

static void
the_end_of_a_process_lets_go(void)
{
	const char *name = own("vale$:a");
	pid_t child = forked();
	int signal_it;

	if (child == 0) {
		port_open_flags(name, NR_EXCLUSIVE);
		_exit(0);
	}
	check_child(child, "a process that ends without closing anything");
	check(gone_soon(name), "its port is gone");
	for (signal_it = 0; signal_it < 2; signal_it++) {
		int ready[2];
		char byte;

		require(pipe(ready) == 0, "pipe");
		child = forked();
		if (child == 0) {
			port_open(name);
			require(write(ready[1], "r", 1) == 1, "write");
			for (;;)
				pause();
		}
		require(read(ready[0], &byte, 1) == 1, "the child is ready");
		check(port_exists(name), "a process has the port");
		kill(child, signal_it ? SIGTERM : SIGKILL);
		require(waitpid(child, NULL, 0) == child, "waitpid");
		check(gone_soon(name), "killed, it has none");
	}
}

static void
a_child_shares_the_binding(void)
{
	const char *name = own("vale$:a");
	struct port port = port_open(name), peer = port_open(own("vale$:b"));
	pid_t child = forked();

	if (child == 0) {
		port_send(&port, broadcast, mac_of(2), 1);
		_exit(port_take(&port) != 2 ||
		      bind_all(port.fd, name) != -1 || errno != EBUSY);
	}
	check_number(port_take(&peer), 1, "the child sends");
	port_send(&peer, broadcast, mac_of(3), 2);
	check_child(child, "the child receives");
	check(port_exists(name), "its end does not unbind");
	check_number(port_tx(&port)->head, 1, "its indices are the parent's");
	check_number(port_rx(&port)->head, 1, "in both directions");
	port_rxsync(&port);
	check_passes(&port, &peer, "the parent sends afterwards");
	check_passes(&peer, &port, "and receives");

	child = forked();
	if (child == 0) {
		port_close(&port);
		_exit(0);
	}
	check_child(child, "a child that closes and unmaps");
	check(port_exists(name), "leaves the port to its parent");
	check_passes(&port, &peer, "which goes on");
}

static void
a_child_outlives_its_parent(void)
{
	const char *name = own("vale$:a");
	struct port port = port_open(name), peer = port_open(own("vale$:b"));
	int go[2];
	pid_t child;
	char byte;

	require(pipe(go) == 0, "pipe");
	child = forked();
	if (child == 0) {
		require(read(go[0], &byte, 1) == 1, "the word to go on");
		port_send(&port, broadcast, mac_of(2), 5);
		_exit(0);
	}
	port_close(&port);
	check(port_exists(name), "the child holds the port");
	require(write(go[1], "g", 1) == 1, "write");
	check_number(port_take(&peer), 5, "and sends");
	check_child(child, "and ends");
	check(gone_soon(name), "and the port with it");
}

/* What a process that is handed a descriptor must know to use it. */
struct parcel {
	uint64_t memsize, offset;
};

union ancillary {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static struct msghdr
message_of(struct iovec *data, union ancillary *ancillary)
{
	struct msghdr message;

	memset(&message, 0, sizeof(message));
	message.msg_iov = data;
	message.msg_iovlen = 1;
	message.msg_control = ancillary;
	message.msg_controllen = sizeof(ancillary->space);
	return message;
}

static void
give(int socket, int fd, struct parcel parcel)
{
	struct iovec data = { &parcel, sizeof(parcel) };
	union ancillary ancillary;
	struct msghdr message = message_of(&data, &ancillary);
	struct cmsghdr *header;

	memset(&ancillary, 0, sizeof(ancillary));
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
	struct iovec data = { parcel, sizeof(*parcel) };
	union ancillary ancillary;
	struct msghdr message = message_of(&data, &ancillary);
	int fd;

	require(recvmsg(socket, &message, 0) == sizeof(*parcel) &&
		CMSG_FIRSTHDR(&message), "recvmsg with a descriptor");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* The life of the process that is handed the descriptor. */
static void
use_descriptor(int socket)
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
a_descriptor_passed_on(void)
{
	const char *name = own("vale$:a");
	struct port port, peer = port_open(own("vale$:b"));
	struct parcel parcel;
	int sockets[2];
	pid_t child;
	char byte;

	/* The other process is there before the port is. */
	require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0,
		"socketpair");
	child = forked();
	if (child == 0) {
		close(sockets[0]);
		use_descriptor(sockets[1]);
	}
	close(sockets[1]);
	port = port_open(name);
	parcel.memsize = port.reg.nr_memsize;
	parcel.offset = port.reg.nr_offset;
	give(sockets[0], port.fd, parcel);
	check(read(sockets[0], &byte, 1) == 1, "the receiver of it may mmap");
	port_send(&peer, broadcast, mac_of(3), 1);
	check_number(port_take(&peer), 2, "and sync");
	port_close(&port);
	check(port_exists(name), "the receiver holds the port");
	port_send(&peer, broadcast, mac_of(3), 3);
	check_child(child, "and goes on after the giver's close");
	check(gone_soon(name), "its end lets the port go");
}

static void
an_unbound_descriptor_passed_on(void)
{
	struct parcel parcel = { 0, 0 };
	int sockets[2], fd;
	pid_t child;
	char byte;

	require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0,
		"socketpair");
	fd = device_open();
	child = forked();
	if (child == 0) {
		int given = take(sockets[1], &parcel);

		require(bind_all(given, own("vale$:a")) == 0,
			"the receiver binds it");
		require(write(sockets[1], "b", 1) == 1, "write");
		_exit(0);
	}
	give(sockets[0], fd, parcel);
	require(read(sockets[0], &byte, 1) == 1, "the receiver has bound it");
	check_child(child, "a process binds a descriptor that it was given");
	check_call(bind_all(fd, own("vale$:a")), EBUSY,
		   "the giver's is bound now");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0, "and of use");
}

/* A region that somebody else holds loses nothing when users come and go. */
static void
everything_is_given_back(void)
{
	struct port holder = port_open(own("p${0")), port;
	struct nmreq_register reg;
	uint32_t granted = 0;
	int turn, good = 1;

	for (turn = 0; turn < 60; turn++) {
		reg = register_all();
		reg.nr_extra_bufs = 1000;
		port = port_open_as(own("p${1"), reg);
		if (turn == 0)
			granted = port.reg.nr_extra_bufs;
		good &= port.reg.nr_mem_id == holder.reg.nr_mem_id &&
			port.reg.nr_extra_bufs == granted && granted > 0;
		port_close(&port);
	}
	check(good, "rings, netmap_if and extra buffers, 60 times");
}

static void
rings_start_afresh(void)
{
	struct port port = port_open(own("vale$:a"));

	port_send(&port, broadcast, mac_of(1), 1);
	check_number(port_tx(&port)->head, 1, "a frame was sent");
	port_close(&port);
	port = port_open(own("vale$:a"));
	check(port_tx(&port)->head == 0 && port_tx(&port)->cur == 0 &&
	      port_tx(&port)->tail == port_tx(&port)->num_slots - 1,
	      "the next user finds the ring as new");
}

static void
claims_end_with_the_binding(void)
{
	size_t i;

	for (i = 0; i < COUNT(anybodys); i++) {
		const char *name = own(anybodys[i]);
		int fd = device_open(), other = device_open();

		require(bind_as(fd, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE) ==
			0, "an exclusive bind");
		check_call(bind_all(other, name), EBUSY, "claimed");
		close(fd);
		check_call(bind_all(other, name), 0, "and free again");
		close(other);
	}
}

static void
an_interface_goes_back(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);
	int stack = packet_socket(cable.near);
	char frame[FRAME_SIZE];

	port_rxsync(&port);
	cable_send(&cable, broadcast, mac_of(1), 1);
	check_number(port_take(&port), 1, "the program has the interface");
	check_number(recv(stack, frame, sizeof(frame), MSG_DONTWAIT), -1,
		     "the stack sees nothing");
	port_close(&port);
	cable_send(&cable, broadcast, mac_of(1), 2);
	check(wait_events(stack, POLLIN, PATIENCE_MS) & POLLIN,
	      "unbound, the interface is the stack's");
	check_number(recv(stack, frame, sizeof(frame), MSG_DONTWAIT),
		     FRAME_SIZE, "which has the frame");
}

static void
an_interface_goes_back_at_the_end(void)
{
	struct cable cable = own_cable(1);
	int stack = packet_socket(cable.near);
	char frame[FRAME_SIZE];
	pid_t child;

	fflush(NULL);
	child = forked();
	if (child == 0) {
		port_open(cable.near);
		exit(0);
	}
	check_child(child, "a process that ends with an interface open");
	cable_send(&cable, broadcast, mac_of(1), 1);
	check(wait_events(stack, POLLIN, PATIENCE_MS) & POLLIN,
	      "the stack has it back");
	check_number(recv(stack, frame, sizeof(frame), MSG_DONTWAIT),
		     FRAME_SIZE, "and the frame");
}

static void
host_rings_go_back_to_one(void)
{
	struct cable cable = own_cable(1);
	struct nmreq_register reg = register_all();
	struct port port;

	reg.nr_host_tx_rings = reg.nr_host_rx_rings = 2;
	port = port_open_as(cable.near, reg);
	check(port.reg.nr_host_tx_rings == 2 && port.reg.nr_host_rx_rings == 2,
	      "two host rings were asked for");
	port_close(&port);
	port = port_open(cable.near);
	check(port.reg.nr_host_tx_rings == 1 && port.reg.nr_host_rx_rings == 1,
	      "the next user has one");
}

/* A port that has no part in any of it is as it was. */
static void
a_bystander(void)
{
	struct port port = port_open(own("vale$:by")), peer;
	struct port other = port_open(own("vale$o:a")), pipe;
	int fd = device_open();

	pipe = port_open(own("p${1"));
	port_put(&port, broadcast, mac_of(1), 1);
	port_tx(&other)->head = port_rx(&other)->cur = 5000;
	port_tx(&pipe)->cur = UINT32_MAX;
	ioctl(other.fd, NIOCTXSYNC, NULL);
	ioctl(other.fd, NIOCRXSYNC, NULL);
	ioctl(pipe.fd, NIOCTXSYNC, NULL);
	check(bind_all(fd, "nosuchif0") == -1 &&
	      bind_as(fd, own("vale$:by"), 99, 0, 0) == -1 &&
	      bind_as(fd, own("vale$:by"), NR_REG_ALL_NIC, 0, NR_EXCLUSIVE) ==
	      -1, "requests that fail");
	port_close(&other);
	port_close(&pipe);
	check(port_tx(&port)->head == 1 && port_tx(&port)->tail == 1023 &&
	      port_rx(&port)->head == 0 && port_rx(&port)->tail == 0,
	      "its indices are as they were");
	peer = port_open(own("vale$:peer"));
	port_txsync(&port);
	check_number(port_take(&peer), 1, "it sends");
	check_passes(&peer, &port, "and receives");
}

static void
requests_of_an_unbound_descriptor(void)
{
	struct port port = port_open(own("vale$:a"));
	int unbound = device_open(), fds[2] = { unbound, port.fd }, i;

	for (i = 0; i < 2; i++) {
		struct nmreq_port_info_get info;
		struct nmreq_pools_info pools;
		struct nmreq_vale_list list;
		struct nmreq_port_hdr hdr;

		memset(&info, 0, sizeof(info));
		memset(&pools, 0, sizeof(pools));
		memset(&list, 0, sizeof(list));
		memset(&hdr, 0, sizeof(hdr));
		check_call(control(fds[i], NETMAP_REQ_PORT_INFO_GET,
				   own("vale$:a"), &info), 0, "PORT_INFO_GET");
		check_call(control(fds[i], NETMAP_REQ_POOLS_INFO_GET,
				   own("vale$:a"), &pools), 0,
			   "POOLS_INFO_GET");
		check_call(control(fds[i], NETMAP_REQ_VALE_LIST,
				   own("vale$:a"), &list), 0, "VALE_LIST");
		check_call(control(fds[i], NETMAP_REQ_PORT_HDR_GET,
				   own("vale$:a"), &hdr), 0, "PORT_HDR_GET");
		check_call(control(fds[i], NETMAP_REQ_PORT_HDR_SET,
				   own("vale$:a"), &hdr), 0, "PORT_HDR_SET");
		check_call(control(fds[i], NETMAP_REQ_VALE_DELIF, "nosuchif0",
				   NULL), ENXIO, "VALE_DELIF");
	}
	check_call(ioctl(unbound, NIOCTXSYNC, NULL), ENXIO,
		   "the unbound one is still unbound");
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0,
		   "the bound one still bound");
}

static void
requests_of_a_bound_descriptor(void)
{
	struct nmreq_sync_kloop_start start = { 0, 0 };
	int fd = device_open();

	check_call(control(fd, NETMAP_REQ_SYNC_KLOOP_START, "", &start), ENXIO,
		   "SYNC_KLOOP_START, unbound");
	check_call(control(fd, NETMAP_REQ_SYNC_KLOOP_STOP, "", NULL), ENXIO,
		   "SYNC_KLOOP_STOP, unbound");
}

static void
the_interface_goes_away(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);
	int fd = device_open();

	interface_remove(cable.near);
	check_number(wait_events(port.fd, POLLIN, PATIENCE_MS) & POLLERR,
		     POLLERR, "poll reports POLLERR");
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EIO, "NIOCTXSYNC fails");
	check_call(ioctl(port.fd, NIOCRXSYNC, NULL), EIO, "NIOCRXSYNC fails");
	check_call(bind_all(fd, cable.near), ENXIO, "nobody can bind it");
}

static void
unknown_requests(void)
{
	static const struct {
		unsigned long number;
		const char *text;
	} unknown[] = {
		{ _IO('i', 200), "_IO('i', 200)" },
		{ _IO('i', 0), "_IO('i', 0)" },
		{ _IO('i', 147), "_IO('i', 147)" },
		{ _IOWR('i', 145, struct nmreq_header), "145, other size" },
		{ _IOR('i', 151, struct nmreq_header), "151, one way" },
		{ SIOCGIFFLAGS, "SIOCGIFFLAGS" },
		{ 0, "0" },
	};
	struct port port = port_open(own("vale$:a"));
	char argument[512];
	int unbound = device_open();
	size_t i;

	memset(argument, 0, sizeof(argument));
	for (i = 0; i < COUNT(unknown); i++) {
		check_call(ioctl(unbound, unknown[i].number, argument),
			   EOPNOTSUPP, unknown[i].text);
		check_call(ioctl(port.fd, unknown[i].number, argument),
			   EOPNOTSUPP, unknown[i].text);
	}
}

static const struct {
	unsigned long number;
	size_t size;
	const char *text;
} ioctls[] = {
	{ NIOCCTRL, 88, "NIOCCTRL" },
	{ NIOCREGIF, 60, "NIOCREGIF" },
	{ NIOCGINFO, 60, "NIOCGINFO" },
	{ NIOCCONFIG, 272, "NIOCCONFIG" },
};

static void
bad_arguments(void)
{
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(ioctls); i++) {
		check_call(ioctl(fd, ioctls[i].number, NULL), EINVAL,
			   ioctls[i].text);
		check_call(ioctl(fd, ioctls[i].number, (void *)8), EFAULT,
			   ioctls[i].text);
		check_call(ioctl(fd, ioctls[i].number, before_guard(0)),
			   EFAULT, ioctls[i].text);
		check_call(ioctl(fd, ioctls[i].number,
				 before_guard(ioctls[i].size - 1)), EFAULT,
			   ioctls[i].text);
		/* All zero is a wrong version, or no switch. */
		check_call(ioctl(fd, ioctls[i].number,
				 before_guard(ioctls[i].size)), EINVAL,
			   ioctls[i].text);
	}
}

/* Those that the kernel answers for any file, before the driver is asked. */
static void
requests_of_any_file(void)
{
	struct nmreq_register reg = register_all();
	int fd = device_open(), on = 1, off = 0;

	check_call(ioctl(fd, FIONBIO, &on), 0, "FIONBIO");
	check(fcntl(fd, F_GETFL) & O_NONBLOCK, "sets O_NONBLOCK");
	check_call(control(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg), 0,
		   "REGISTER");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0, "NIOCTXSYNC");
	check_call(ioctl(fd, FIONBIO, &off), 0, "FIONBIO");
	check(!(fcntl(fd, F_GETFL) & O_NONBLOCK), "takes it back");
	check_call(ioctl(fd, FIONBIO, NULL), EFAULT, "FIONBIO of nothing");
	check_call(ioctl(fd, FIOCLEX, NULL), 0, "FIOCLEX");
	check_number(fcntl(fd, F_GETFD), FD_CLOEXEC, "sets FD_CLOEXEC");
	check_call(ioctl(fd, FIONCLEX, NULL), 0, "FIONCLEX");
	check_number(fcntl(fd, F_GETFD), 0, "takes it back");
}

static void
the_argument_is_written_back(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_header header = header_of(NETMAP_REQ_REGISTER, "", &reg);
	int fd = device_open();

	memset(header.nr_name, 'x', sizeof(header.nr_name));
	check_call(ioctl(fd, NIOCCTRL, &header), ENXIO, "a failing request");
	check_number(header.nr_name[NETMAP_REQ_IFNAMSIZ - 1], 0,
		     "its header was written back");
	check_call(ioctl(fd, NIOCCTRL, read_only(&header, sizeof(header))),
		   EFAULT, "a header that cannot be, of a failing request");
	header = header_of(NETMAP_REQ_REGISTER, own("vale$:a"), &reg);
	check_call(ioctl(fd, NIOCCTRL, read_only(&header, sizeof(header))),
		   EFAULT, "of one that succeeds");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), 0, "and has bound");
}

/* libc closes the number of a stream by itself, without a call of close. */
static void
streams_close_numbers(void)
{
	FILE *stream = fopen("/dev/null", "r+");
	struct port port = port_open(own("vale$:a"));
	int number;

	require(stream != NULL, "a stream");
	number = fileno(stream);
	require(dup2(port.fd, number) == number, "whose number is a copy");
	close(port.fd);
	check_call(ioctl(number, NIOCTXSYNC, NULL), 0,
		   "which is bound like the first");
	require((stream = freopen("/dev/null", "r+", stream)) != NULL,
		"another file for the stream");
	check(ioctl(fileno(stream), NIOCTXSYNC, NULL) == -1 && errno == ENOTTY,
	      "has the number, and none of the port");
	munmap(port.mem, port.reg.nr_memsize);
	check(!port_exists(own("vale$:a")), "it was the last reference");
	fclose(stream);

	port = port_open(own("vale$:a"));
	munmap(port.mem, port.reg.nr_memsize);
	require((stream = fdopen(port.fd, "r+")) != NULL, "a stream of it");
	fclose(stream);
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EBADF,
		   "a stream that is closed closes its number");
	check(!port_exists(own("vale$:a")), "the last reference, too");
}

static const struct test_case cases[] = {
	{ "S-LIFE-1", "descriptors are independent",
	  descriptors_are_independent },
	{ "S-LIFE-1", "ways of opening", ways_of_opening },
	{ "S-LIFE-1", "numbers of descriptors", numbers_of_descriptors },
	{ "S-LIFE-1", "a bystander", a_bystander },
	{ "S-LIFE-2", "a descriptor binds once", a_descriptor_binds_once },
	{ "S-LIFE-2", "a failure leaves it unbound",
	  a_failure_leaves_it_unbound },
	{ "S-LIFE-3", "mmap takes a binding", mmap_takes_a_binding },
	{ "S-LIFE-3", "mmap stays in the region", mmap_stays_in_the_region },
	{ "S-LIFE-3", "mmap of any protection", mmap_of_any_protection },
	{ "S-LIFE-3", "one region, one memory", one_region_one_memory },
	{ "S-LIFE-3", "every page is there", every_page_is_there },
	{ "S-LIFE-4", "waiting, unbound", waiting_unbound },
	{ "S-LIFE-4", "syncing, unbound", syncing_unbound },
	{ "S-LIFE-5", "a copy holds the port", a_copy_holds_the_port },
	{ "S-LIFE-5", "streams close numbers", streams_close_numbers },
	{ "S-LIFE-5", "a mapping holds the port", a_mapping_holds_the_port },
	{ "S-LIFE-5", "a mapping replaced is gone",
	  a_mapping_replaced_is_gone },
	{ "S-LIFE-5", "a call under way holds the port",
	  a_call_under_way_holds_the_port },
	{ "S-LIFE-5", "the end of a process lets go",
	  the_end_of_a_process_lets_go },
	{ "S-LIFE-6", "copies of all kinds", copies_of_all_kinds },
	{ "S-LIFE-6", "a child shares the binding",
	  a_child_shares_the_binding },
	{ "S-LIFE-6", "a child outlives its parent",
	  a_child_outlives_its_parent },
	{ "S-LIFE-6", "a descriptor passed on", a_descriptor_passed_on },
	{ "S-LIFE-6", "an unbound descriptor passed on",
	  an_unbound_descriptor_passed_on },
	{ "S-LIFE-7", "everything is given back", everything_is_given_back },
	{ "S-LIFE-7", "rings start afresh", rings_start_afresh },
	{ "S-LIFE-7", "claims end with the binding",
	  claims_end_with_the_binding },
	{ "S-LIFE-7", "an interface goes back", an_interface_goes_back },
	{ "S-LIFE-7", "an interface goes back at the end",
	  an_interface_goes_back_at_the_end },
	{ "S-LIFE-7", "host rings go back to one",
	  host_rings_go_back_to_one },
	{ "S-LIFE-8", "requests of an unbound descriptor",
	  requests_of_an_unbound_descriptor },
	{ "S-LIFE-8", "requests that take a binding",
	  requests_of_a_bound_descriptor },
	{ "S-LIFE-9", "the interface goes away", the_interface_goes_away },
	{ "S-LIFE-11", "unknown requests", unknown_requests },
	{ "S-LIFE-11", "bad arguments", bad_arguments },
	{ "S-LIFE-11", "requests of any file", requests_of_any_file },
	{ "S-LIFE-11", "the argument is written back",
	  the_argument_is_written_back },
};

CHAPTER(cases)
