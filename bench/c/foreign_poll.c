/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call costs on a descriptor that has nothing to do with Ringway: poll()
 * of a pipe that is empty, without a wait. Run under the preload library, and
 * without.
 *
 * usage: foreign_poll CPU
 */
#include "role.h"

#include <poll.h>
#include <unistd.h>

static uint64_t
ask(void *data)
{
	struct pollfd *pipe_end = (struct pollfd *)data;
	int i;

	for (i = 0; i < 1000; i++)
		if (poll(pipe_end, 1, 0) != 0)
			fail("poll of an empty pipe");
	return 1000;
}

int
main(int argc, char **argv)
{
	struct pollfd pipe_end = { .events = POLLIN };
	int ends[2];

	if (argc != 2 || pipe(ends) != 0)
		return 2;
	pipe_end.fd = ends[0];
	role_run(argv[1], ask, &pipe_end);
	return 0;
}
