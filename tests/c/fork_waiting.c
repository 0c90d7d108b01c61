/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that forks while another of its threads waits for a port: the
 * wait is not the child's, which lets go of the port when it closes it. A
 * wait that a handler has interrupted, and forks in, goes on in the child.
 *
 * usage: fork_waiting PORT
 */
#include "port.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static struct port port;
static int set, with_set, descriptors_before;
static volatile pid_t waiter;

static void *
wait_for_news(void *unused)
{
	struct pollfd fd = { port.fd, POLLIN, 0 };
	struct epoll_event event;

	(void)unused;
	waiter = gettid();
	if (with_set)
		epoll_wait(set, &event, 1, -1);
	else
		poll(&fd, 1, -1);
	return NULL;
}

/* Until the waiter sleeps. */
static void
wait_for_waiter(void)
{
	char path[64], line[256], state = 0;

	while (!waiter)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)waiter);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		require(file && fgets(line, sizeof(line), file), "%s", path);
		state = strrchr(line, ')')[2];
		fclose(file);
	}
}

/* All but eventfds, of which the library keeps one for the waits to come. */
static int
descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	require(dir != NULL, "/proc/self/fd");
	while ((entry = readdir(dir)) != NULL) {
		char file[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, file, sizeof(file) - 1)
		    > 0)
			count += !strstr(file, "eventfd");
	}
	closedir(dir);
	return count;
}

/* Whether any region is mapped. */
static int
has_region(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;

	require(maps != NULL, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "memfd:ringway") != NULL;
	fclose(maps);
	return found;
}

static int
is_free(void)
{
	return descriptors() == descriptors_before && !has_region();
}

static int
is_good(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/* What a child has that was forked now, when it has closed the port. */
static int
child_lets_go(int closes)
{
	pid_t child = fork();

	if (child == 0) {
		if (closes)
			port_close(&port);
		_exit(!is_free());
	}
	return is_good(child);
}

static void
check_waiting(const char *name, const char *kind)
{
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t thread;
	int fd;

	set = epoll_create1(0);
	descriptors_before = descriptors();
	port = port_open(name);
	require(!epoll_ctl(set, EPOLL_CTL_ADD, port.fd, &event), "epoll_ctl");
	waiter = 0;
	require(!pthread_create(&thread, NULL, wait_for_news, NULL),
		"pthread_create");
	wait_for_waiter();
	check(child_lets_go(1), "%s: a child lets go of the port", kind);

	/* The wait alone has the port then. */
	fd = port.fd;
	munmap(port.mem, port.reg.nr_memsize);
	close(fd);
	check(child_lets_go(0), "%s: a child has nothing of it", kind);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	check(is_free(), "%s: the program has let go of it", kind);
	close(set);
}

static volatile pid_t child_of_handler = -1;

static void
on_signal(int signal)
{
	(void)signal;
	child_of_handler = fork();
	if (child_of_handler == 0)
		port_close(&port);
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "valefork:w";
	struct sigaction action;
	struct pollfd fd = { -1, POLLIN, 0 };
	int result;

	check_waiting(name, "poll");
	with_set = 1;
	check_waiting(name, "epoll_wait");

	descriptors_before = descriptors();
	port = port_open(name);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGALRM, &action, NULL);
	ualarm(100000, 0);
	fd.fd = port.fd;
	result = poll(&fd, 1, PATIENCE_MS);
	if (child_of_handler == 0)
		_exit(!(result == -1 && errno == EINTR && is_free()));
	check(result == -1 && errno == EINTR, "a handler interrupts a wait");
	check(is_good(child_of_handler),
	      "which ends in the handler's child, too, and lets go");
	port_close(&port);
	check(is_free(), "and in the parent");
	return check_result();
}
