/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every way to wait works on a netmap descriptor, alone and beside an ordinary
 * one (S-POLL-*).
 *
 * usage: wait_calls [SWITCH [14|15]]
 *
 * Frames come from a child process, which sends once it has seen this one
 * asleep, so that the wake-up is what is tested.
 */
#include "port.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static const char *vale = "vale1";

/*
 * A wait for events on fd and for input on other (-1: none), with the signal
 * mask of those calls that take one. Returns the events of fd, or -1; *input
 * tells whether other is readable.
 */
typedef int (*wait_fn)(int fd, short events, int other, int timeout_ms,
		       const sigset_t *mask, int *input);

static int
with_poll(int fd, short events, int other, int timeout_ms,
	  const sigset_t *mask, int *input)
{
	struct pollfd set[2] = { { fd, events, 0 }, { other, POLLIN, 0 } };
	int ready = poll(set, 2, timeout_ms);

	(void)mask;
	*input = ready > 0 && set[1].revents & POLLIN;
	return ready < 0 ? -1 : set[0].revents;
}

static struct timespec
timespec_of(int timeout_ms)
{
	struct timespec time;

	time.tv_sec = timeout_ms / 1000;
	time.tv_nsec = timeout_ms % 1000 * 1000000l;
	return time;
}

static int
with_ppoll(int fd, short events, int other, int timeout_ms,
	   const sigset_t *mask, int *input)
{
	struct pollfd set[2] = { { fd, events, 0 }, { other, POLLIN, 0 } };
	struct timespec timeout = timespec_of(timeout_ms);
	int ready = ppoll(set, 2, &timeout, mask);

	*input = ready > 0 && set[1].revents & POLLIN;
	return ready < 0 ? -1 : set[0].revents;
}

struct fd_sets {
	fd_set in, out;
	int count;
};

static struct fd_sets
sets_of(int fd, short events, int other)
{
	struct fd_sets sets;

	FD_ZERO(&sets.in);
	FD_ZERO(&sets.out);
	if (events & POLLIN)
		FD_SET(fd, &sets.in);
	if (events & POLLOUT)
		FD_SET(fd, &sets.out);
	if (other >= 0)
		FD_SET(other, &sets.in);
	sets.count = (fd > other ? fd : other) + 1;
	return sets;
}

static int
events_of(const struct fd_sets *sets, int ready, int fd, int other, int *input)
{
	int events = 0;

	*input = 0;
	if (ready <= 0)
		return ready;
	*input = other >= 0 && FD_ISSET(other, &sets->in);
	if (FD_ISSET(fd, &sets->in))
		events |= POLLIN;
	if (FD_ISSET(fd, &sets->out))
		events |= POLLOUT;
	return events;
}

static int
with_select(int fd, short events, int other, int timeout_ms,
	    const sigset_t *mask, int *input)
{
	struct fd_sets sets = sets_of(fd, events, other);
	struct timeval timeout;
	int ready;

	(void)mask;
	timeout.tv_sec = timeout_ms / 1000;
	timeout.tv_usec = timeout_ms % 1000 * 1000;
	ready = select(sets.count, &sets.in, &sets.out, NULL, &timeout);
	return events_of(&sets, ready, fd, other, input);
}

static int
with_pselect(int fd, short events, int other, int timeout_ms,
	     const sigset_t *mask, int *input)
{
	struct fd_sets sets = sets_of(fd, events, other);
	struct timespec timeout = timespec_of(timeout_ms);
	int ready = pselect(sets.count, &sets.in, &sets.out, NULL, &timeout,
			    mask);

	return events_of(&sets, ready, fd, other, input);
}

static int
with_epoll(int fd, short events, int other, int timeout_ms,
	   const sigset_t *mask, int *input)
{
	struct epoll_event event, got[2];
	int epoll = epoll_create1(EPOLL_CLOEXEC), ready, i, result = 0;

	/* The EPOLL* bits are the POLL* bits. */
	event.events = (uint32_t)events;
	event.data.u64 = 1;
	require(epoll >= 0 &&
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0,
		"EPOLL_CTL_ADD of a netmap descriptor");
	event.events = EPOLLIN;
	event.data.u64 = 2;
	require(other < 0 ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event) == 0,
		"EPOLL_CTL_ADD of a unix pipe");
	ready = mask ? epoll_pwait(epoll, got, 2, timeout_ms, mask) :
		epoll_wait(epoll, got, 2, timeout_ms);
	*input = 0;
	for (i = 0; i < ready; i++) {
		if (got[i].data.u64 == 1)
			result = (int)got[i].events;
		else
			*input = 1;
	}
	i = errno;
	close(epoll);
	errno = i;
	return ready < 0 ? -1 : result;
}

static const struct {
	const char *name;
	wait_fn wait;
	int takes_mask;
	int has_error;	/* reports POLLERR, rather than all that is asked */
} calls[] = {
	{ "poll", with_poll, 0, 1 },
	{ "ppoll", with_ppoll, 1, 1 },
	{ "select", with_select, 0, 0 },
	{ "pselect", with_pselect, 1, 0 },
	{ "epoll", with_epoll, 1, 1 },
};

static const char *call_name;
static wait_fn call;
static int has_error;

static void
check_wait(int got, int expected, const char *text)
{
	if (got == expected)
		check(1, "%s: %s", call_name, text);
	else
		check(0, "%s: %s (events 0x%x, expected 0x%x)", call_name,
		      text, (unsigned)got, (unsigned)expected);
}

/* The events of one descriptor, nothing else being waited for. */
static int
events_now(int fd, short events)
{
	int input;

	return call(fd, events, -1, 0, NULL, &input);
}

static int
events_soon(int fd, short events)
{
	int input;

	return call(fd, events, -1, PATIENCE_MS, NULL, &input);
}

/* Invalid indices and unbound descriptors (S-POLL-6). */
static void
check_error(int fd, short events, const char *text)
{
	int got = events_soon(fd, events);

	if (has_error)
		check(got >= 0 && got & POLLERR, "%s: %s: POLLERR (0x%x)",
		      call_name, text, (unsigned)got);
	else
		check_wait(got, events, text);
}

/* ---- the child that sends ---- */

static char
state_of(pid_t pid)
{
	char path[64], line[512], *end;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length < 0 ? 0 : length] = 0;
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 0;
}

struct order {
	int kind;
	uint32_t sequence;
};

/* Sends a frame for each order, when the process that ordered it sleeps. */
static void
serve(int orders, const char *const name[2])
{
	pid_t parent = getppid();
	struct port port[2];
	struct order order;

	port[0] = port_open(name[0]);
	port[1] = port_open(name[1]);
	require(write(orders, "r", 1) == 1, "ready");
	while (read(orders, &order, sizeof(order)) == sizeof(order)) {
		while (state_of(parent) == 'R')
			;
		port_send(&port[order.kind], broadcast, mac_of(1),
			  order.sequence);
	}
	_exit(0);
}

static void
test_wakeup(const struct port *port, int orders, int kind)
{
	static uint32_t sequence;
	struct order order;
	int unix_pipe[2], input;
	char byte;

	require(pipe(unix_pipe) == 0, "pipe");
	check_wait(call(port->fd, POLLIN, unix_pipe[0], 0, NULL, &input), 0,
		   "nothing there, zero timeout");
	check_wait(call(port->fd, POLLIN, unix_pipe[0], 10, NULL, &input), 0,
		   "nothing there, the timeout expires");
	require(write(unix_pipe[1], "x", 1) == 1, "write");
	check_wait(call(port->fd, POLLIN, unix_pipe[0], PATIENCE_MS, NULL,
			&input), 0, "only the ordinary descriptor is ready");
	check(input, "%s: and it is", call_name);
	require(read(unix_pipe[0], &byte, 1) == 1, "read");

	order.kind = kind;
	order.sequence = ++sequence;
	require(write(orders, &order, sizeof(order)) == sizeof(order),
		"order");
	check_wait(call(port->fd, POLLIN, unix_pipe[0], PATIENCE_MS, NULL,
			&input), POLLIN, "a frame wakes it");
	check(!input, "%s: the ordinary descriptor is not ready", call_name);
	check_wait(events_now(port->fd, POLLIN), POLLIN,
		   "S-POLL-1 level-triggered");
	require(write(unix_pipe[1], "x", 1) == 1, "write");
	check_wait(call(port->fd, POLLIN, unix_pipe[0], PATIENCE_MS, NULL,
			&input), POLLIN, "both are ready");
	check(input, "%s: the ordinary one as well", call_name);
	check_number(port_take(port), sequence, "the frame is the one sent");
	check_wait(events_now(port->fd, POLLIN), 0, "nothing more");
	close(unix_pipe[0]);
	close(unix_pipe[1]);
}

/* S-POLL-2, in one process over a pipe. */
static void
test_transmit(const struct port *from, const struct port *quiet,
	      const struct port *to, const struct port *quiet_to)
{
	port_put(from, broadcast, mac_of(1), 1);
	check_wait(events_now(from->fd, POLLIN), 0, "S-POLL-2 POLLIN alone");
	port_rxsync(to);
	check_number(nm_ring_space(port_rx(to)), 1, "S-POLL-2 transmits");
	check_number(port_take(to), 1, "S-POLL-2 the frame");

	port_put(quiet, broadcast, mac_of(1), 2);
	check_wait(events_now(quiet->fd, POLLIN), 0,
		   "S-POLL-2 POLLIN alone with NR_NO_TX_POLL");
	port_rxsync(quiet_to);
	check_number(nm_ring_space(port_rx(quiet_to)), 0,
		     "S-POLL-2 does not transmit");
	check_wait(events_now(quiet->fd, POLLOUT), POLLOUT,
		   "S-POLL-2 POLLOUT with NR_NO_TX_POLL");
	port_rxsync(quiet_to);
	check_number(nm_ring_space(port_rx(quiet_to)), 1,
		     "S-POLL-2 transmits");
	check_number(port_take(quiet_to), 2, "S-POLL-2 the frame");
	port_rxsync(to);
	port_rxsync(quiet_to);
}

/* S-POLL-3 */
static void
test_full(const struct port *from, const struct port *to)
{
	uint32_t all = port_tx(from)->num_slots - 1, i;

	check_wait(events_now(from->fd, POLLOUT), POLLOUT,
		   "S-POLL-3 room: POLLOUT");
	for (i = 0; i < all; i++)
		port_put(from, broadcast, mac_of(1), i);
	check_wait(events_now(from->fd, POLLOUT), 0,
		   "S-POLL-3 no room: no POLLOUT");
	port_rxsync(to);
	ring_advance(port_rx(to), nm_ring_space(port_rx(to)));
	port_rxsync(to);
	check_wait(events_soon(from->fd, POLLOUT), POLLOUT,
		   "S-POLL-3 room again: POLLOUT");
	check_wait(events_now(from->fd, POLLIN | POLLOUT), POLLOUT,
		   "S-POLL-1 each direction by itself");
}

/* S-POLL-4: cur ahead of head waits for more and releases nothing. */
static void
test_cur(const struct port *from, const struct port *to)
{
	struct netmap_ring *tx = port_tx(from), *rx = port_rx(to);
	uint32_t first = rx->head;
	int i;

	for (i = 0; i < 3; i++)
		port_send(from, broadcast, mac_of(1), (uint32_t)i);
	check_wait(events_soon(to->fd, POLLIN), POLLIN, "S-POLL-4 3 frames");
	rx->cur = rx->tail;
	check_wait(events_now(to->fd, POLLIN), 0, "S-POLL-4 cur == tail");
	port_txsync(from);
	check_number(nm_ring_space(tx), tx->num_slots - 1 - 3,
		     "S-POLL-4 nothing is released");
	port_send(from, broadcast, mac_of(1), 3);
	check_wait(events_soon(to->fd, POLLIN), POLLIN, "S-POLL-4 one more");
	check(rx->head == first && nm_ring_space(rx) == 4,
	      "%s: S-POLL-4 all 4 are there", call_name);
	for (i = 0; i < 4; i++)
		check_number(port_take(to), i, "S-POLL-4 in order");
	port_rxsync(to);
	port_txsync(from);
}

/* S-POLL-6, S-SYNC-8 */
static void
test_errors(const struct port *from, const struct port *to)
{
	struct netmap_ring *tx = port_tx(from), *rx = port_rx(to);
	uint32_t tx_head = tx->head, rx_head = rx->head;
	int fd = device_open();

	check_error(fd, POLLIN | POLLOUT, "S-LIFE-4 unbound");
	close(fd);
	rx->cur = rx->num_slots + 3;
	check_error(to->fd, POLLIN, "S-POLL-6 bad cur in the rx ring");
	check(rx->head == rx_head && rx->cur == rx_head,
	      "%s: S-SYNC-8 the rx ring was reset", call_name);
	tx->head = tx->num_slots;
	check_error(from->fd, POLLOUT, "S-POLL-6 bad head in the tx ring");
	check(tx->head == tx_head && tx->cur == tx_head,
	      "%s: S-SYNC-8 the tx ring was reset", call_name);
	check_wait(events_now(from->fd, POLLOUT), POLLOUT,
		   "S-SYNC-8 and is of use");
}

static void
ignore_signal(int number)
{
	(void)number;
}

/* A signal that only the call's mask lets in ends the wait. */
static void
test_mask(const struct port *port)
{
	struct sigaction action;
	sigset_t blocked, open_mask;
	int input;

	memset(&action, 0, sizeof(action));
	action.sa_handler = ignore_signal;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &open_mask);
	sigdelset(&open_mask, SIGUSR1);
	raise(SIGUSR1);
	check_wait(call(port->fd, POLLIN, -1, 10, NULL, &input), 0,
		   "a blocked signal does not end the wait");
	check_call(call(port->fd, POLLIN, -1, PATIENCE_MS, &open_mask,
			&input), EINTR, "one that the mask lets in does");
	sigprocmask(SIG_SETMASK, &open_mask, NULL);
}

/* One epoll descriptor that lives on, over two ports. */
static void
test_epoll_set(const struct port *from, const struct port *to)
{
	int epoll = epoll_create1(0);
	struct epoll_event event, got[4];

	event.events = EPOLLIN;
	event.data.ptr = (void *)(uintptr_t)from;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, from->fd, &event), 0,
		   "epoll set: first port");
	event.data.ptr = (void *)(uintptr_t)to;
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, to->fd, &event), 0,
		   "epoll set: second port");
	check_call(epoll_ctl(epoll, EPOLL_CTL_ADD, to->fd, &event), EEXIST,
		   "epoll set: the same port twice");
	check_number(epoll_wait(epoll, got, 4, 0), 0, "epoll set: nothing");
	port_send(from, broadcast, mac_of(1), 42);
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.ptr == (const void *)to && got[0].events == EPOLLIN,
	      "epoll set: the port with the frame, with its data");
	event.events = EPOLLOUT;
	event.data.u64 = 99;
	check_call(epoll_ctl(epoll, EPOLL_CTL_MOD, to->fd, &event), 0,
		   "epoll set: EPOLL_CTL_MOD");
	check(epoll_wait(epoll, got, 4, PATIENCE_MS) == 1 &&
	      got[0].data.u64 == 99 && got[0].events == EPOLLOUT,
	      "epoll set: asks for EPOLLOUT now");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, to->fd, NULL), 0,
		   "epoll set: EPOLL_CTL_DEL");
	check_number(epoll_wait(epoll, got, 4, 0), 0, "epoll set: it is out");
	check_call(epoll_ctl(epoll, EPOLL_CTL_DEL, to->fd, NULL), ENOENT,
		   "epoll set: out twice");
	check_number(port_take(to), 42, "epoll set: the frame");
	close(epoll);
}

int
main(int argc, char **argv)
{
	struct nmreq_register reg = register_all();
	struct port flood, queue, from, to, quiet, quiet_to;
	const char *sender[2];
	int orders[2], status;
	pid_t child;
	size_t i;
	char byte;

	if (argc > 1)
		vale = argv[1];
	if (argc > 2)
		api_select(argv[2]);
	sender[0] = name_of(vale, "tx");
	sender[1] = name_of(vale, "p{w");
	require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, orders) == 0,
		"socketpair");
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		close(orders[0]);
		serve(orders[1], sender);
	}
	close(orders[1]);
	require(read(orders[0], &byte, 1) == 1, "the child is ready");

	flood = port_open(name_of(vale, "rx"));
	queue = port_open(name_of(vale, "p}w"));
	from = port_open(name_of(vale, "p{1"));
	to = port_open(name_of(vale, "p}1"));
	reg.nr_flags = NR_NO_TX_POLL;
	quiet = port_open_as(name_of(vale, "p{2"), reg);
	quiet_to = port_open(name_of(vale, "p}2"));

	for (i = 0; i < COUNT(calls); i++) {
		call = calls[i].wait;
		call_name = calls[i].name;
		has_error = calls[i].has_error;
		printf("# %s: VALE\n", call_name);
		test_wakeup(&flood, orders[0], 0);
		printf("# %s: pipe\n", call_name);
		test_wakeup(&queue, orders[0], 1);
		test_transmit(&from, &quiet, &to, &quiet_to);
		test_full(&from, &to);
		test_cur(&from, &to);
		test_errors(&from, &to);
		if (calls[i].takes_mask) {
			test_mask(&flood);
			test_mask(&queue);
		}
	}
	test_epoll_set(&from, &to);

	close(orders[0]);
	require(waitpid(child, &status, 0) == child, "waitpid");
	check_number(status, 0, "the child ends well");
	port_close(&flood);
	port_close(&queue);
	port_close(&from);
	port_close(&to);
	port_close(&quiet);
	port_close(&quiet_to);
	return check_result();
}
