/* SPDX-License-Identifier: BSD-2-Clause */
/* Children, other processes, and the end of one (V4-PROCESS). */
#include "case.h"

/* A child has the memory, and can have sockets of its own on it; its parent's rings are the parent's. */
static void
child(void)
{
	struct pair pair = pair_open();
	struct v4 *one = &pair.one, *other = &pair.other;
	struct tpacket4_desc desc = frame_of(6, 64, 0);
	int status = -1, memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	void *area = mmap(NULL, FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	require(area != MAP_FAILED && v4_register(memory, area, FRAMES * FRAME_SIZE) == 0, "shared memory");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int own = v4_socket();
		int good = kick(one) == -1 && errno == EBADF;

		good = good && await(other, POLLIN, 0) == POLLERR;
		good = good && v4_ring(own, PACKET_TX_RING, memory, DESCS) == 0;
		close(one->fd);
		close(other->fd);
		_exit(good ? 0 : 1);
	}
	require(pid > 0 && waitpid(pid, &status, 0) == pid, "a child");
	check_number(status, 0, "a child uses the memory, and not the rings");
	close(memory);
	munmap(area, FRAMES * FRAME_SIZE);
	/* The parent goes on. */
	fill(other, 50, 1);
	build(one, &desc);
	send_one(one, desc);
	returned(one, 6, 0, "a frame");
	receive(other, &desc);
	check(desc.error == 0 && desc.len == 64, "the parent goes on");
}

/* A program that is killed leaves its ports free, and its peer alone. */
static void
killed(void)
{
	struct tpacket4_desc desc = frame_of(1, 64, 0), got = desc;
	struct v4 other = v4_open(own("vale$:b")), again;
	int ends[2], status, tries;
	char byte;

	require(pipe(ends) == 0, "pipe");
	for (tries = 0; tries < 10; tries++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct v4 one = v4_open(own("vale$:a"));

			require(write(ends[1], "x", 1) == 1, "write");
			fill(&one, 0, DESCS / 2);
			desc.idx = DESCS;
			build(&one, &desc);
			for (;;) {
				if (one.tx.avail - one.tx.used < DESCS)
					put(&one.tx, desc);
				kick(&one);
				while (get(&one.tx, &got))
					;
			}
		}
		require(pid > 0 && read(ends[0], &byte, 1) == 1, "a child");
		fill(&other, 0, 1);
		receive(&other, &got);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	/* The daemon hears of the end a moment after it. */
	{
		int fd = v4_socket(), memory = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), result;

		require(v4_register(memory, other.area, FRAMES * FRAME_SIZE) == 0, "memory");
		require(v4_ring(fd, PACKET_RX_RING, memory, DESCS) == 0, "a ring");
		do
			result = v4_bind(fd, if_nametoindex(own("vale$:a")));
		while (result != 0 && errno == EBUSY);
		check_call(result, 0, "the port is free");
		close(fd);
	}
	again = v4_open(own("vale$:a"));
	desc.idx = 1;
	build(&again, &desc);
	send_one(&again, desc);
	returned(&again, 1, 0, "a frame");
	check(1, "the other goes on");
}

static const struct test_case cases[] = {
	{ "V4-PROCESS-1", "a child", child },
	{ "V4-PROCESS-3", "a program that is killed", killed },
};

CHAPTER(cases)
