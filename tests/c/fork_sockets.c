/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that forks while its threads use a socket of AF_PACKET V4, and
 * names of ports: the child asks for the same, and has a socket of its own.
 *
 * usage: fork_sockets PORT
 */
#include "tpacket4.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define FORKS	500

static int inherited;
static const char *name;
static volatile int done;

static int
version_of(int fd)
{
	int version = -1;
	socklen_t len = sizeof(version);

	if (getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &len))
		return -1;
	return version;
}

static void *
ask_for_names(void *unused)
{
	(void)unused;
	while (!done)
		if_nametoindex(name);
	return NULL;
}

static void *
ask_for_version(void *unused)
{
	(void)unused;
	while (!done)
		version_of(inherited);
	return NULL;
}

/* What the parent's threads do, and then with a socket of its own. */
static int
works(unsigned int index)
{
	int version = version_of(inherited), own;

	if (version != TPACKET_V4 && errno != EBADF)
		return 0;
	if (if_nametoindex(name) != index || close(inherited))
		return 0;
	own = v4_socket();
	return version_of(own) == TPACKET_V4 && close(own) == 0;
}

int
main(int argc, char **argv)
{
	pthread_t names, versions;
	unsigned int index;
	int i, good = 1;

	name = argc > 1 ? argv[1] : "valefork:s";
	inherited = v4_socket();
	index = if_nametoindex(name);
	check(index != 0, "a port has an index");
	require(!pthread_create(&names, NULL, ask_for_names, NULL)
		&& !pthread_create(&versions, NULL, ask_for_version, NULL),
		"pthread_create");
	for (i = 0; i < FORKS && good; i++) {
		pid_t child = fork();
		int status = -1;

		if (child == 0) {
			/* A child that hangs is ended. */
			alarm(PATIENCE_MS / 1000);
			_exit(!works(index));
		}
		good = waitpid(child, &status, 0) == child && status == 0;
	}
	check_number(i, FORKS, "children that were forked meanwhile go on");
	done = 1;
	pthread_join(names, NULL);
	pthread_join(versions, NULL);
	close(inherited);
	return check_result();
}
