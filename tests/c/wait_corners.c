/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The corners of waiting: epoll's triggers and sets within sets, descriptors
 * above 1024, pointers that lead nowhere, mappings that vanish under others,
 * signals (S-POLL-*, S-LIFE-4, S-LIFE-5).
 *
 * usage: wait_corners [SWITCH [14|15]]
 */
#include "port.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>

static const char *vale = "valew";

/* ---- somebody who sends once this thread is asleep ---- */

static char
state_of_main(void)
{
	char line[512], *end;
	ssize_t length;
	int fd = open("/proc/self/stat", O_RDONLY);

	if (fd < 0)
		return 0;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length < 0 ? 0 : length] = 0;
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 0;
}

struct order {
	const struct port *port;
	pthread_t main, thread;
	uint32_t sequence;
	int signal;	/* instead of a frame */
};

static void *
obey(void *argument)
{
	struct order *order = (struct order *)argument;

	while (state_of_main() != 'S')
		;
	if (order->signal)
		pthread_kill(order->main, order->signal);
	else
		port_send(order->port, broadcast, mac_of(1), order->sequence);
	return NULL;
}

static struct order *
when_asleep(const struct port *port, uint32_t sequence, int signal)
{
	static struct order order;

	order.port = port;
	order.sequence = sequence;
	order.signal = signal;
	order.main = pthread_self();
	require(pthread_create(&order.thread, NULL, obey, &order) == 0,
		"pthread_create");
	return &order;
}

static void
done(struct order *order)
{
	require(pthread_join(order->thread, NULL) == 0, "pthread_join");
}

/* ---- epoll ---- */

static int
set_add(int set, int operation, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event;

	event.events = events;
	event.data.u64 = data;
	return epoll_ctl(set, operation, fd, &event);
}

/* What a set reports of one member: its events; -1 for anything else. */
static int
set_wait(int set, uint64_t data, int timeout_ms)
{
	struct epoll_event got[4];
	int count = epoll_wait(set, got, 4, timeout_ms);

	if (count == 0)
		return 0;
	return count == 1 && got[0].data.u64 == data ? (int)got[0].events : -1;
}

static void
test_edge(const struct port *from, const struct port *to)
{
	int set = epoll_create1(0), i;
	struct order *order;
	uint32_t all = port_tx(from)->num_slots - 1;

	require(set_add(set, EPOLL_CTL_ADD, to->fd, EPOLLIN | EPOLLET, 7) == 0,
		"EPOLL_CTL_ADD");
	check_number(set_wait(set, 7, 0), 0, "EPOLLET nothing there");
	port_send(from, broadcast, mac_of(1), 1);
	check_number(set_wait(set, 7, PATIENCE_MS), EPOLLIN, "EPOLLET a frame");
	check_number(set_wait(set, 7, 0), 0, "EPOLLET the same frame");
	check_number(set_wait(set, 7, 20), 0, "EPOLLET nor after a while");
	order = when_asleep(from, 2, 0);
	check_number(set_wait(set, 7, PATIENCE_MS), EPOLLIN,
		     "EPOLLET one more wakes");
	done(order);
	check_number(port_take(to), 1, "EPOLLET first frame");
	check_number(set_wait(set, 7, 0), 0, "EPOLLET one left, not new");
	check_number(port_take(to), 2, "EPOLLET second frame");
	check_number(set_wait(set, 7, 0), 0, "EPOLLET all taken");
	/* The ring comes round to just where it was. */
	for (i = 0; i < 2; i++) {
		uint32_t sent;

		for (sent = 0; sent < all + 1; sent++) {
			port_send(from, broadcast, mac_of(1), sent);
			require(port_take(to) == (long long)sent, "a frame");
			port_rxsync(to);
		}
		check_number(set_wait(set, 7, 0), 0, "EPOLLET all taken");
		port_send(from, broadcast, mac_of(1), 3);
		check_number(set_wait(set, 7, 0), EPOLLIN,
			     "EPOLLET a frame in the same slot");
		check_number(port_take(to), 3, "EPOLLET it");
		port_rxsync(to);
		port_txsync(from);
	}
	require(set_add(set, EPOLL_CTL_MOD, to->fd, EPOLLOUT | EPOLLET, 8)
		== 0, "EPOLL_CTL_MOD");
	check_number(set_wait(set, 8, 0), EPOLLOUT, "EPOLLET room");
	check_number(set_wait(set, 8, 0), 0, "EPOLLET the same room");
	require(set_add(set, EPOLL_CTL_MOD, to->fd, EPOLLOUT | EPOLLET, 8)
		== 0, "EPOLL_CTL_MOD");
	check_number(set_wait(set, 8, 0), EPOLLOUT,
		     "EPOLLET again after EPOLL_CTL_MOD");
	require(set_add(set, EPOLL_CTL_MOD, to->fd, EPOLLIN | EPOLLONESHOT, 9)
		== 0, "EPOLL_CTL_MOD");
	port_send(from, broadcast, mac_of(1), 4);
	check_number(set_wait(set, 9, 0), EPOLLIN, "EPOLLONESHOT once");
	check_number(set_wait(set, 9, 0), 0, "EPOLLONESHOT and no more");
	require(set_add(set, EPOLL_CTL_MOD, to->fd, EPOLLIN | EPOLLONESHOT, 9)
		== 0, "EPOLL_CTL_MOD");
	check_number(set_wait(set, 9, 0), EPOLLIN, "EPOLLONESHOT armed again");
	check_number(port_take(to), 4, "EPOLLONESHOT the frame");
	port_rxsync(to);
	close(set);
}

static void
test_nested(const struct port *from, const struct port *to)
{
	int inner = epoll_create1(0), outer = epoll_create(1), copy, ends[2];
	struct pollfd polled = { inner, POLLIN, 0 };
	struct epoll_event got[4];
	struct order *order;
	fd_set read_set;

	require(pipe(ends) == 0, "pipe");
	check_call(set_add(outer, EPOLL_CTL_ADD, inner, EPOLLIN, 1), 0,
		   "nested: a set into a set");
	check_call(set_add(inner, EPOLL_CTL_ADD, to->fd, EPOLLIN, 2), 0,
		   "nested: a port into the inner set, afterwards");
	require(set_add(inner, EPOLL_CTL_ADD, ends[0], EPOLLIN, 3) == 0,
		"EPOLL_CTL_ADD");
	check_number(set_wait(outer, 1, 0), 0, "nested: nothing");
	check_number(poll(&polled, 1, 0), 0, "nested: nothing by poll");
	order = when_asleep(from, 1, 0);
	check_number(set_wait(outer, 1, PATIENCE_MS), EPOLLIN,
		     "nested: a frame wakes the outer set");
	done(order);
	check_number(set_wait(inner, 2, 0), EPOLLIN, "nested: the inner set");
	check(poll(&polled, 1, PATIENCE_MS) == 1 && polled.revents == POLLIN,
	      "nested: poll of the inner set");
	polled.fd = outer;
	check(poll(&polled, 1, PATIENCE_MS) == 1 && polled.revents == POLLIN,
	      "nested: poll of the outer set");
	FD_ZERO(&read_set);
	FD_SET(outer, &read_set);
	check(select(outer + 1, &read_set, NULL, NULL, NULL) == 1 &&
	      FD_ISSET(outer, &read_set), "nested: select of the outer set");
	require(write(ends[1], "x", 1) == 1, "write");
	check(epoll_wait(outer, got, 4, 0) == 1 && got[0].data.u64 == 1,
	      "nested: reported once, with members of both kinds ready");
	check_number(port_take(to), 1, "nested: the frame");
	port_rxsync(to);
	check_number(set_wait(outer, 1, 0), EPOLLIN, "nested: the other kind");
	check(poll(&polled, 1, 0) == 1, "nested: and by poll");
	require(read(ends[0], got, 1) == 1, "read");
	check_number(set_wait(outer, 1, 0), 0, "nested: none");

	copy = dup(inner);
	close(inner);
	polled.fd = copy;
	order = when_asleep(from, 2, 0);
	check(poll(&polled, 1, PATIENCE_MS) == 1 && polled.revents == POLLIN,
	      "nested: a copy of the inner set");
	done(order);
	check_number(set_wait(copy, 2, 0), EPOLLIN, "nested: has its members");
	check_number(port_take(to), 2, "nested: the frame");
	port_rxsync(to);
	close(copy);
	close(outer);
	close(ends[0]);
	close(ends[1]);
}

/* No member keeps the others from being reported. */
static void
test_turns(const struct port *from, const struct port *to)
{
	int set = epoll_create1(0), ends[2], seen[4] = { 0 }, i;
	struct epoll_event got;

	require(pipe(ends) == 0 && write(ends[1], "x", 1) == 1, "pipe");
	require(set_add(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0) == 0 &&
		set_add(set, EPOLL_CTL_ADD, from->fd, EPOLLOUT, 1) == 0 &&
		set_add(set, EPOLL_CTL_ADD, to->fd, EPOLLOUT, 2) == 0,
		"EPOLL_CTL_ADD");
	for (i = 0; i < 12; i++) {
		require(epoll_wait(set, &got, 1, PATIENCE_MS) == 1,
			"epoll_wait");
		seen[got.data.u64]++;
	}
	check(seen[0] && seen[1] && seen[2],
	      "epoll: room for one event: each in turn (%d, %d, %d)",
	      seen[0], seen[1], seen[2]);
	close(set);
	close(ends[0]);
	close(ends[1]);
}

static void
ignore_signal(int number)
{
	(void)number;
}

static _Atomic int handled;

static void
count_signal(int number)
{
	(void)number;
	handled++;
}

static void
test_pwait2(const struct port *from, const struct port *to)
{
	struct timespec none = { 0, 0 }, bad = { 0, 1000000000 };
	struct timespec patience = { PATIENCE_MS / 1000, 0 };
	int set = epoll_create1(0);
	struct epoll_event got;
	struct order *order;

	require(set_add(set, EPOLL_CTL_ADD, to->fd, EPOLLIN, 5) == 0,
		"EPOLL_CTL_ADD");
	check_number(epoll_pwait2(set, &got, 1, &none, NULL), 0,
		     "epoll_pwait2: nothing");
	check_call(epoll_pwait2(set, &got, 1, &bad, NULL), EINVAL,
		   "epoll_pwait2: no time");
	order = when_asleep(from, 1, 0);
	check(epoll_pwait2(set, &got, 1, &patience, NULL) == 1 &&
	      got.data.u64 == 5 && got.events == EPOLLIN,
	      "epoll_pwait2: a frame wakes it");
	done(order);
	check_number(epoll_pwait2(set, &got, 1, NULL, NULL), 1,
		     "epoll_pwait2: without a timeout");
	check_number(port_take(to), 1, "epoll_pwait2: the frame");
	port_rxsync(to);
	close(set);
}

/* ---- pointers that lead nowhere ---- */

/* A page that is forbidden, with one before it that is not. */
static char *
forbidden_page(void)
{
	char *pages = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(pages != MAP_FAILED &&
		mprotect(pages + 4096, 4096, PROT_NONE) == 0, "mprotect");
	return pages + 4096;
}

static void
test_pointers(const struct port *port)
{
	char *forbidden = forbidden_page();
	/* Not to be seen through by the compiler. */
	void *volatile bad[] = { NULL, (void *)8, (void *)-16, forbidden };
	struct pollfd polled = { port->fd, POLLOUT, 0 }, *edge;
	struct timespec *time;
	struct epoll_event event;
	struct rlimit limit;
	int set = epoll_create1(0);
	char *name, *read_only;
	fd_set writes;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check_call(open((const char *)bad[i], O_RDWR), EFAULT,
			   "EFAULT open");
		check_call(poll((struct pollfd *)bad[i], 1, 0), EFAULT,
			   "EFAULT poll");
		check_number(poll((struct pollfd *)bad[i / 2], 0, 0), 0,
			     "no list, and none needed");
		if (!bad[i])
			continue;
		check_call(ppoll(&polled, 1, (struct timespec *)bad[i], NULL),
			   EFAULT, "EFAULT ppoll's timeout");
		check_call(ppoll(&polled, 1, NULL, (sigset_t *)bad[i]), EFAULT,
			   "EFAULT ppoll's mask");
		check_call(select(port->fd + 1, (fd_set *)bad[i], NULL, NULL,
				  NULL), EFAULT, "EFAULT select's set");
		FD_ZERO(&writes);
		FD_SET(port->fd, &writes);
		check_call(select(port->fd + 1, NULL, &writes, NULL,
				  (struct timeval *)bad[i]), EFAULT,
			   "EFAULT select's timeout");
		check_call(epoll_ctl(set, EPOLL_CTL_ADD, port->fd,
				     (struct epoll_event *)bad[i]), EFAULT,
			   "EFAULT epoll_ctl");
	}
	time = (struct timespec *)(forbidden - sizeof(*time));
	time->tv_sec = time->tv_nsec = 0;
	check_number(ppoll(&polled, 1, time, NULL), 1,
		     "a timeout at the end of a page");
	edge = (struct pollfd *)forbidden - 1;
	*edge = polled;
	check(poll(edge, 1, 0) == 1 && edge->revents == POLLOUT,
	      "a list at the end of a page");
	check_call(poll(edge, 2, 0), EFAULT, "EFAULT a list that goes on");
	name = forbidden - sizeof(NETMAP_DEVICE_NAME);
	strcpy(name, NETMAP_DEVICE_NAME);
	i = (size_t)open(name, O_RDWR);
	check((int)i >= 0, "a name at the end of a page");
	close((int)i);
	strcpy(forbidden - 4, "/no");
	check_call(open(forbidden - 4, O_RDWR), ENOENT,
		   "another, that is short");

	read_only = forbidden - 4096;
	*(struct pollfd *)read_only = polled;
	require(mprotect(read_only, 4096, PROT_READ) == 0, "mprotect");
	check_call(poll((struct pollfd *)read_only, 1, 0), EFAULT,
		   "EFAULT a list that cannot be written");

	read_only = forbidden_page() - 4096;
	*(struct pollfd *)read_only = polled;
	check_number(poll((struct pollfd *)read_only, 1, 0), 1, "a good list");
	require(munmap(read_only, 4096) == 0, "munmap");
	check_call(poll((struct pollfd *)read_only, 1, 0), EFAULT,
		   "EFAULT that is not there any more");

	event.events = EPOLLOUT;
	require(epoll_ctl(set, EPOLL_CTL_ADD, port->fd, &event) == 0,
		"EPOLL_CTL_ADD");
	check_call(epoll_wait(set, (struct epoll_event *)forbidden, 1, 0),
		   EFAULT, "EFAULT epoll_wait");
	check_call(epoll_wait(set, &event, 0, 0), EINVAL,
		   "EINVAL epoll_wait for no events");
	check_call(set_add(-1, EPOLL_CTL_ADD, port->fd, EPOLLIN, 0), EBADF,
		   "EBADF no set");
	check_call(set_add(STDOUT_FILENO, EPOLL_CTL_ADD, port->fd, EPOLLIN,
			   0), EINVAL, "EINVAL not a set");
	check_call(set_add(port->fd, EPOLL_CTL_ADD, port->fd, EPOLLIN, 0),
		   EINVAL, "EINVAL a port is no set");
	check_call(set_add(set, 99, port->fd, EPOLLIN, 0), EINVAL,
		   "EINVAL no operation");
	close(set);
	check_call(epoll_wait(set, &event, 1, 0), EBADF, "EBADF a closed set");

	require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	check_call(poll(&polled, limit.rlim_cur + 1, 0), EINVAL,
		   "EINVAL more descriptors than there can be");
}

/* ---- descriptors above 1024 ---- */

static int
bit_is_set(const unsigned long *bits, int fd)
{
	return bits[fd / 64] >> (fd % 64) & 1;
}

static void
test_high(const struct port *from, const struct port *to)
{
	unsigned long in[64], out[64];
	struct timeval none = { 0, 0 };
	struct pollfd polled[2];
	struct rlimit limit;
	struct order *order;
	int high, ends[2], foreign;

	require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	if (limit.rlim_cur < 4096) {
		limit.rlim_cur = 4096;
		require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	}
	require(pipe(ends) == 0, "pipe");
	high = fcntl(to->fd, F_DUPFD, 2000);
	foreign = fcntl(ends[0], F_DUPFD, 3000);
	require(high >= 2000 && foreign >= 3000, "F_DUPFD");
	polled[0].fd = high;
	polled[1].fd = foreign;
	polled[0].events = polled[1].events = POLLIN;
	check_number(poll(polled, 2, 0), 0, "above 1024: nothing");
	order = when_asleep(from, 1, 0);
	check(poll(polled, 2, PATIENCE_MS) == 1 && polled[0].revents == POLLIN,
	      "above 1024: a frame wakes poll");
	done(order);
	require(write(ends[1], "x", 1) == 1, "write");
	check(poll(polled, 2, PATIENCE_MS) == 2 && polled[1].revents == POLLIN,
	      "above 1024: both by poll");
	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	in[high / 64] |= 1ul << (high % 64);
	in[foreign / 64] |= 1ul << (foreign % 64);
	out[high / 64] |= 1ul << (high % 64);
	check(select(foreign + 1, (fd_set *)in, (fd_set *)out, NULL, NULL) == 3
	      && bit_is_set(in, high) && bit_is_set(in, foreign) &&
	      bit_is_set(out, high), "above 1024: both by select");
	check_number(port_take(to), 1, "above 1024: the frame");
	port_rxsync(to);
	check(select(foreign + 1, (fd_set *)in, (fd_set *)out, NULL, &none)
	      == 2 && !bit_is_set(in, high) && bit_is_set(in, foreign),
	      "above 1024: one left");
	check_number(select(1 << 20, NULL, (fd_set *)out, NULL, NULL), 1,
		     "above 1024: a count beyond what is open");
	close(high);
	close(foreign);
	close(ends[0]);
	close(ends[1]);
}

/* ---- mappings ---- */

static int
bound(const char *name)
{
	return port_exists(name);
}

static struct port
mapped_only(const char *name)
{
	struct port port = port_open(name);

	close(port.fd);
	require(bound(name), "S-LIFE-5 the mapping keeps the port");
	return port;
}

static void
test_mappings(void)
{
	const char *name = name_of(vale, "m");
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	struct port port = mapped_only(name), other;
	size_t size = port.reg.nr_memsize, half = size / 8192 * 4096;
	char *moved;

	require(mmap(port.mem, half, PROT_NONE, how | MAP_FIXED, -1, 0)
		== port.mem, "mmap");
	check(bound(name), "S-LIFE-5 half of it covered by another mapping");
	require(mmap(port.mem + half, size - half, PROT_NONE, how | MAP_FIXED,
		     -1, 0) == port.mem + half, "mmap");
	check(!bound(name), "S-LIFE-5 covered by others, it is gone");
	munmap(port.mem, size);

	port = mapped_only(name);
	munmap(port.mem + 4096, 4096);
	munmap(port.mem, 4096);
	check(bound(name), "S-LIFE-5 the part behind a hole");
	munmap(port.mem + 8192, size - 8192);
	check(!bound(name), "S-LIFE-5 all parts unmapped");

	port = mapped_only(name);
	moved = (char *)mremap(port.mem, size, size - 4096, MREMAP_MAYMOVE);
	require(moved != MAP_FAILED, "mremap");
	moved = (char *)mmap(NULL, size, PROT_NONE, how, -1, 0);
	require(moved != MAP_FAILED &&
		mremap(port.mem, size - 4096, size - 4096,
		       MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved,
		"mremap");
	munmap(port.mem, size);
	check(bound(name), "S-LIFE-5 moved elsewhere");
	munmap(moved, size);
	check(!bound(name), "S-LIFE-5 and unmapped there");

	/* A region over a region: only the new one's port stays. */
	port = mapped_only(name);
	other = port_open(name_of(vale, "n"));
	require(other.reg.nr_memsize == size &&
		mmap(port.mem, size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, other.fd, 0) == port.mem, "mmap");
	check(!bound(name), "S-LIFE-5 covered by another region");
	munmap(other.mem, size);
	close(other.fd);
	check(bound(name_of(vale, "n")), "S-LIFE-5 which stays");
	munmap(port.mem, size);
	check(!bound(name_of(vale, "n")), "S-LIFE-5 until it goes");
}

/* ---- signals ---- */

static void
test_signals(const struct port *from, const struct port *to)
{
	struct pollfd polled = { to->fd, POLLIN, 0 };
	struct timespec none = { 0, 0 };
	struct timeval patience = { PATIENCE_MS / 1000, 0 };
	struct sigaction action;
	struct epoll_event got;
	struct order *order;
	sigset_t blocked, inside;
	int set = epoll_create1(0);
	fd_set reads;

	require(set_add(set, EPOLL_CTL_ADD, to->fd, EPOLLIN, 0) == 0,
		"EPOLL_CTL_ADD");
	memset(&action, 0, sizeof(action));
	action.sa_handler = ignore_signal;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	order = when_asleep(NULL, 0, SIGUSR1);
	check_call(poll(&polled, 1, PATIENCE_MS), EINTR,
		   "EINTR poll, SA_RESTART or not");
	done(order);
	check_number(polled.revents, 0, "EINTR revents are as they were");
	order = when_asleep(NULL, 0, SIGUSR1);
	check_call(epoll_wait(set, &got, 1, -1), EINTR, "EINTR epoll_wait");
	done(order);
	FD_ZERO(&reads);
	FD_SET(to->fd, &reads);
	order = when_asleep(NULL, 0, SIGUSR1);
	check_call(select(to->fd + 1, &reads, NULL, NULL, &patience), EINTR,
		   "EINTR select");
	done(order);
	check(FD_ISSET(to->fd, &reads), "EINTR the set is as it was");
	check(patience.tv_sec < PATIENCE_MS / 1000,
	      "EINTR the time that is left");

	action.sa_handler = count_signal;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &inside);
	sigdelset(&inside, SIGUSR1);
	raise(SIGUSR1);
	port_send(from, broadcast, mac_of(1), 1);
	check(ppoll(&polled, 1, NULL, &inside) == 1 &&
	      polled.revents == POLLIN && handled == 0,
	      "what is ready comes before a signal");
	check_number(port_take(to), 1, "the frame");
	port_rxsync(to);
	check_call(ppoll(&polled, 1, &none, &inside), EINTR,
		   "EINTR without time, with nothing ready");
	check_number(handled, 1, "EINTR the handler ran");
	sigprocmask(SIG_SETMASK, &inside, NULL);
	close(set);
}

int
main(int argc, char **argv)
{
	struct port from, to;

	if (argc > 1)
		vale = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	from = port_open(name_of(vale, "p{c"));
	to = port_open(name_of(vale, "p}c"));
	test_edge(&from, &to);
	test_nested(&from, &to);
	test_turns(&from, &to);
	test_pwait2(&from, &to);
	test_pointers(&from);
	test_high(&from, &to);
	test_signals(&from, &to);
	port_close(&from);
	port_close(&to);
	test_mappings();
	return check_result();
}
