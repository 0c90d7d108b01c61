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
#include <sys/stat.h>

struct service {
	pid_t pid;
	char folder[32];	/* of its configuration and its socket */
};

static inline char *
service_path(const struct service *service, const char *file)
{
	static char path[2][64];
	static unsigned next;
	char *out = path[next++ % 2];

	snprintf(out, sizeof(path[0]), "%s/%s", service->folder, file);
	return out;
}

static inline void
service_configure(const struct service *service, const char *settings)
{
	FILE *file = fopen(service_path(service, "ringwayd.toml"), "w");

	require(file && fprintf(file, "socket = \"%s\"\n%s",
				service_path(service, "sock"),
				settings) > 0 && fclose(file) == 0,
		"a configuration");
}

/* Starts the program; it ends when this process does. */
static inline pid_t
service_spawn(const struct service *service)
{
	pid_t parent = getpid(), child = forked();

	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	unsetenv("LD_PRELOAD");
	execlp("ringwayd", "ringwayd", "--config",
	       service_path(service, "ringwayd.toml"), (char *)NULL);
	_exit(127);
}

static inline int
service_listens(const void *argument)
{
	const struct service *service = (const struct service *)argument;

	return access(service_path(service, "sock"), F_OK) == 0 ||
	       waitpid(service->pid, NULL, WNOHANG) != 0;
}

/* The one that this process talks to from now on. */
static inline struct service
service_start(const char *settings)
{
	struct service service;

	snprintf(service.folder, sizeof(service.folder),
		 "/tmp/conformance-XXXXXX");
	require(mkdtemp(service.folder) != NULL, "a folder");
	service_configure(&service, settings);
	service.pid = service_spawn(&service);
	require(soon(service_listens, &service) &&
		access(service_path(&service, "sock"), F_OK) == 0,
		"a service with its own configuration");
	setenv("RINGWAY_SOCKET", service_path(&service, "sock"), 1);
	return service;
}

/* Ends it; it must end well. */
static inline void
service_stop(struct service *service)
{
	kill(service->pid, SIGTERM);
	check_child(service->pid, "the service ends");
	unlink(service_path(service, "ringwayd.toml"));
	rmdir(service->folder);
}

/* Whether a service refuses to start with these settings. */
static inline int
service_refuses(const char *settings)
{
	struct service service;
	int status = 0, refuses;

	snprintf(service.folder, sizeof(service.folder),
		 "/tmp/conformance-XXXXXX");
	require(mkdtemp(service.folder) != NULL, "a folder");
	service_configure(&service, settings);
	service.pid = service_spawn(&service);
	while ((refuses = waitpid(service.pid, &status, WNOHANG)) == 0 &&
	       access(service_path(&service, "sock"), F_OK) != 0)
		usleep(1000);
	if (!refuses) {
		kill(service.pid, SIGTERM);
		waitpid(service.pid, &status, 0);
	}
	unlink(service_path(&service, "ringwayd.toml"));
	rmdir(service.folder);
	return refuses && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

#endif
