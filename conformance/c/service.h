/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A system service of a case's own, with its own configuration: what the
 * parameters of netmap's module are here (S-PARAM). It ends with the case.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "case.h"
#include "request.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct {
	pid_t pid;		/* 0: none runs */
	char folder[80];	/* of its configuration and its socket */
} service;

static inline char *
service_path(const char *file)
{
	static char path[2][100];
	static unsigned next;
	char *out = path[next++ % 2];

	snprintf(out, sizeof(path[0]), "%s/%s", service.folder, file);
	return out;
}

/* The program, which ends when this process does. */
static inline void
service_run(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent) {
		unsetenv("LD_PRELOAD");
		execlp("ringwayd", "ringwayd", "--config",
		       service_path("ringwayd.toml"), (char *)NULL);
	}
	_exit(127);
}

/* Whether it answers, or has ended. */
static inline int
service_settled(const void *answers)
{
	struct sockaddr_un address;
	siginfo_t ended;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		 service_path("sock"));
	*(int *)answers = connect(fd, (struct sockaddr *)&address,
				  sizeof(address)) == 0;
	close(fd);
	ended.si_pid = 0;
	waitid(P_PID, (id_t)service.pid, &ended, WEXITED | WNOHANG | WNOWAIT);
	return *(int *)answers || ended.si_pid != 0;
}

/* Ends what runs, and removes its folder; returns its status. */
static inline int
service_end(void)
{
	int status = -1;

	kill(service.pid, SIGTERM);
	waitpid(service.pid, &status, 0);
	unlink(service_path("sock"));
	unlink(service_path("ringwayd.toml"));
	rmdir(service.folder);
	service.pid = 0;
	return status;
}

static inline void
service_end_well(void)
{
	if (service.pid != 0)
		check(service_end() == 0, "the service ends well");
}

/* Starts one with these settings; returns whether it answers. */
static inline int
service_try(const char *settings)
{
	const char *temporary = getenv("TMPDIR");
	pid_t parent = getpid();
	int answers = 0;
	FILE *file;

	snprintf(service.folder, sizeof(service.folder),
		 "%s/conformance-XXXXXX", temporary ? temporary : "/tmp");
	require(mkdtemp(service.folder) != NULL, "a folder");
	file = fopen(service_path("ringwayd.toml"), "w");
	require(file && fprintf(file, "socket = \"%s\"\n%s",
				service_path("sock"), settings) > 0 &&
		fclose(file) == 0, "a configuration");
	service.pid = forked();
	if (service.pid == 0)
		service_run(parent);
	require(soon(service_settled, &answers), "ringwayd");
	return answers;
}

/* This process talks to the new one from now on; the one before ends. */
static inline void
service_start(const char *settings)
{
	static int registered;

	service_end_well();
	if (!registered++)
		atexit(service_end_well);
	require(service_try(settings), "a service with these settings: %s",
		settings);
	setenv("RINGWAY_SOCKET", service_path("sock"), 1);
}

/* Whether a service refuses to start with these settings. */
static inline int
service_refuses(const char *settings)
{
	int answers, status;

	service_end_well();
	answers = service_try(settings);
	status = service_end();
	return !answers && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

#endif
