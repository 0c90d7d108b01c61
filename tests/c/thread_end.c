/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread does in a destructor of a key, when its own variables have
 * gone: it forks, and uses a port.
 *
 * usage: thread_end PORT
 */
#define _GNU_SOURCE
#include "check.h"
#include "port.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static const char *name;
static pthread_key_t key;
static int ended;

static void
fork_once(const char *text)
{
	pid_t child = fork();
	int status = -1;

	require(child >= 0, "fork");
	if (child == 0)
		_exit(0);
	check(waitpid(child, &status, 0) == child && status == 0, "%s", text);
}

static void
use_port(const char *text)
{
	struct port port = port_open(name);
	struct epoll_event event = { 0 };
	int set = epoll_create1(0);

	event.events = EPOLLOUT;
	check_call(epoll_ctl(set, EPOLL_CTL_ADD, port.fd, &event), 0, text);
	check_number(epoll_wait(set, &event, 1, PATIENCE_MS), 1, text);
	check_number(wait_events(port.fd, POLLOUT, PATIENCE_MS), POLLOUT, text);
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0, text);
	close(set);
	port_close(&port);
}

static void
at_end(void *argument)
{
	fork_once("fork in a destructor");
	use_port("a port in a destructor");
	fork_once("fork once more");
	*(int *)argument = 1;
}

static void *
thread(void *argument)
{
	pthread_setspecific(key, argument);
	fork_once("fork in a thread");
	use_port("a port in a thread");
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_t id;

	require(argc == 2, "usage: thread_end PORT");
	name = argv[1];
	require(pthread_key_create(&key, at_end) == 0, "a key");
	require(pthread_create(&id, NULL, thread, &ended) == 0, "a thread");
	pthread_join(id, NULL);
	check_number(ended, 1, "the destructor ran");
	return check_result();
}
