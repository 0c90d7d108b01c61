/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program as a debugger does: it follows the program's threads and children. What the kernel
 * calls a new thread must be one. usage: tracer PROGRAM ARGUMENT...
 */
#include "check.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process that a task belongs to. */
static int
process_of(unsigned long task)
{
	char name[64], line[256];
	int process = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%lu/status", task);
	file = fopen(name, "r");
	while (file != NULL && process == 0 && fgets(line, sizeof(line), file) != NULL)
		sscanf(line, "Tgid: %d", &process);
	if (file != NULL)
		fclose(file);
	return process;
}

int
main(int argc, char **argv)
{
	int program, status, task, seen = 0;

	if (argc < 2)
		return 2;
	program = fork();
	if (program == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	waitpid(program, &status, 0);
	ptrace(PTRACE_SETOPTIONS, program, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK);
	ptrace(PTRACE_CONT, program, NULL, NULL);
	while ((task = waitpid(-1, &status, __WALL)) > 0) {
		unsigned long made, signal = 0;

		if (!WIFSTOPPED(status)) {
			if (task == program)
				break;
			continue;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			ptrace(PTRACE_GETEVENTMSG, task, NULL, &made);
			check_number(process_of(made), program, "a new thread is the program's");
		} else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8)) {
			seen++;
		} else if (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_CONT, task, NULL, signal);
	}
	check_number(seen, 0, "a daemon is no child of the program's");
	check(task == program && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the program ends well");
	return 0;
}
