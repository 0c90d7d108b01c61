/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that forks while another of its threads maps and unmaps a port,
 * and again and again in a handler that interrupts mmap and munmap: the
 * children may map it, and nothing stands still.
 *
 * usage: fork_mapping PORT
 */
#include "port.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define FORKS	2000
#define HANDLED	300

static struct port port;
static volatile int done, handled;

static void
map_once(void)
{
	void *mem = mmap(NULL, port.reg.nr_memsize, PROT_READ | PROT_WRITE,
			 MAP_SHARED, port.fd, 0);

	if (mem != MAP_FAILED)
		munmap(mem, port.reg.nr_memsize);
}

static void *
map_again_and_again(void *unused)
{
	(void)unused;
	while (!done)
		map_once();
	return NULL;
}

/* A child that maps the port; a child that hangs is ended by SIGALRM. */
static int
forks(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		alarm(PATIENCE_MS / 1000);
		map_once();
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return status == 0;
}

static void
on_timer(int signal)
{
	int cause = errno;

	(void)signal;
	handled += forks();
	errno = cause;
}

int
main(int argc, char **argv)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never;
	sigset_t timer;
	pthread_t thread;
	int i, good = 0;

	port = port_open(argc > 1 ? argv[1] : "valefork:m");
	/* It is for the main thread. */
	sigemptyset(&timer);
	sigaddset(&timer, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &timer, NULL);
	require(!pthread_create(&thread, NULL, map_again_and_again, NULL),
		"pthread_create");
	pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
	for (i = 0; i < FORKS && good == i; i++)
		good += forks();
	check_number(good, i, "children that were forked meanwhile map it");

	/* This program is ended if it stands still. */
	alarm(2 * PATIENCE_MS / 1000);
	memset(&never, 0, sizeof(never));
	signal(SIGPROF, on_timer);
	setitimer(ITIMER_PROF, &often, NULL);
	while (handled < HANDLED)
		map_once();
	setitimer(ITIMER_PROF, &never, NULL);
	done = 1;
	pthread_join(thread, NULL);
	check(1, "%d children of a handler map it", handled);
	port_close(&port);
	return check_result();
}
