/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chapter of an API's rules: a table of cases, each named by its rule, each
 * run in a process of its own, so that one that crashes or hangs fails alone.
 *
 * usage: CHAPTER VARIANT PREFIX [WORD]
 *
 * VARIANT is for chapter_begin, which the API's own header defines. PREFIX goes
 * into every name that the cases use: two runs with different prefixes do not
 * meet. With WORD only the cases run whose rule or name has it, and everything
 * that they say is shown.
 *
 * One line per case: "ok RULE NAME", "not ok RULE NAME (DETAILS)",
 * "skip RULE NAME (REASON)" where the machine lacks something, or
 * "n/a RULE NAME (NEED)" where this way of running is not the one.
 */
#ifndef CHAPTER_H
#define CHAPTER_H

#include "../tests/c/check.h"

#include <net/if.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Takes the variant that the program is run in; nothing works before. */
static void chapter_begin(const char *variant);

/* Runs a shell command; the case cannot go on without it. */
__attribute__((format(printf, 1, 2))) static inline void
shell(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	require(system(line) == 0, "%s", line);
}

/* Removes an interface that a case has left behind; safe when it is not there. */
static inline void
interface_remove(const char *name)
{
	if (if_nametoindex(name) != 0)
		shell("ip link del %s", name);
}

/* How long a case may take, in seconds, before it counts as hanging. */
#define CASE_PATIENCE	120

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

struct test_case {
	const char *rule;
	const char *name;
	void (*run)(void);
};

/* What stands for $ in the names of the case that runs. */
static char case_id[24];

/* A name of this case alone: own("vale$:a"), own("p$}1"). */
static inline const char *
own(const char *pattern)
{
	static char names[32][64];
	static unsigned next;
	char *out = names[next++ % COUNT(names)];
	size_t at = strcspn(pattern, "$");

	snprintf(out, sizeof(names[0]), "%.*s%s%s", (int)at, pattern,
		 pattern[at] ? case_id : "", pattern[at] ? pattern + at + 1 : "");
	return out;
}

/* Ends the case with one line, and no failure. */
static inline void
case_end(const char *prefix, const char *reason)
{
	printf("%s%s\n", prefix, reason);
	fflush(stdout);
	exit(check_result());
}

/* Ends the case: the machine lacks something. Run by root, that is a failure. */
static inline void
skip(const char *reason)
{
	case_end("skip - ", reason);
}

/*
 * Ends the case: it needs another way of running, in which it is run too. The
 * needs are those that src/need.rs knows, which checks that they are true.
 */
static inline void
not_applicable(const char *need)
{
	case_end("n/a - ", need);
}

static inline void
need_root(void)
{
	if (geteuid() != 0)
		not_applicable("root");
}

static inline void
need_ordinary_user(void)
{
	if (geteuid() == 0)
		not_applicable("an ordinary user");
}

/* For what is costly and the same in all ways of running: not in this one. */
static inline void
once(void)
{
	if (!getenv("CONFORMANCE_ONCE"))
		not_applicable("the first way");
}

/* Everything that the case has printed, as one string. */
static inline char *
case_output(FILE *output)
{
	long size;
	char *text;

	fseek(output, 0, SEEK_END);
	size = ftell(output);
	rewind(output);
	text = (char *)calloc(1, (size_t)size + 1);
	require(text && fread(text, 1, (size_t)size, output) == (size_t)size,
		"output of a case");
	return text;
}

/* The lines that begin with prefix, without it, in parentheses. */
static inline void
case_details(const char *text, const char *prefix)
{
	const char *separator = " (";
	size_t length = strlen(prefix);

	while (*text) {
		size_t end = strcspn(text, "\n");

		if (strncmp(text, prefix, length) == 0) {
			printf("%s%.*s", separator, (int)(end - length),
			       text + length);
			separator = "; ";
		}
		text += end + (text[end] != 0);
	}
	if (*separator == ';')
		putchar(')');
}

static inline int
case_says(const char *text, const char *prefix)
{
	char within[32];

	snprintf(within, sizeof(within), "\n%s", prefix);
	return strncmp(text, prefix, strlen(prefix)) == 0 ||
	       strstr(text, within) != NULL;
}

/* Prints the one line of a case; returns whether it is no failure. */
static inline int
case_report(const struct test_case *test, int status, int timed_out,
	    const char *text)
{
	static const struct {
		const char *word, *prefix;
	} ends[] = { { "skip", "skip - " }, { "n/a", "n/a - " } };
	int failed = case_says(text, "not ok - ");
	size_t i;

	if (!failed && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
	    case_says(text, "ok - ")) {
		printf("ok %s %s\n", test->rule, test->name);
		return 1;
	}
	for (i = 0; !failed && i < COUNT(ends); i++) {
		if (!case_says(text, ends[i].prefix))
			continue;
		printf("%s %s %s", ends[i].word, test->rule, test->name);
		case_details(text, ends[i].prefix);
		putchar('\n');
		return 1;
	}
	printf("not ok %s %s", test->rule, test->name);
	case_details(text, "not ok - ");
	if (timed_out)
		printf(" (hangs)");
	else if (WIFSIGNALED(status))
		printf(" (killed by signal %d)", WTERMSIG(status));
	else if (!failed)
		printf(" (checks nothing)");
	putchar('\n');
	return 0;
}

/* Waits for the case's process, and ends it with all its own when it hangs. */
static inline int
case_wait(pid_t child, const sigset_t *ended, int *timed_out)
{
	struct timespec patience = { CASE_PATIENCE, 0 };
	int status = 0, signal;

	siginfo_t info;

	/* A signal may be that of a case before, which had to be killed. */
	do {
		info.si_pid = 0;
		signal = sigtimedwait(ended, NULL, &patience);
		waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
	} while (info.si_pid == 0 && (signal != -1 || errno == EINTR));
	*timed_out = info.si_pid == 0;
	kill(-child, SIGKILL);
	require(waitpid(child, &status, 0) == child, "waitpid");
	return status;
}

static inline int
case_run(const struct test_case *test, int verbose)
{
	FILE *output = tmpfile();
	sigset_t ended, before;
	int status, timed_out, good;
	char *text;
	pid_t child;

	require(output != NULL, "a temporary file");
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, &before);
	fflush(stdout);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &before, NULL);
		dup2(fileno(output), STDOUT_FILENO);
		dup2(fileno(output), STDERR_FILENO);
		test->run();
		exit(check_result());
	}
	setpgid(child, child);
	status = case_wait(child, &ended, &timed_out);
	interface_remove(own("n$"));
	text = case_output(output);
	if (verbose)
		fputs(text, stdout);
	good = case_report(test, status, timed_out, text);
	fflush(stdout);
	free(text);
	fclose(output);
	return good;
}

static inline int
chapter_run(const struct test_case *cases, size_t count, int argc, char **argv)
{
	int failures = 0;
	size_t i;

	if (argc < 3) {
		fprintf(stderr, "usage: %s VARIANT PREFIX [WORD]\n", argv[0]);
		return 2;
	}
	chapter_begin(argv[1]);
	for (i = 0; i < count; i++) {
		const struct test_case *test = &cases[i];

		if (argc > 3 && !strstr(test->rule, argv[3]) &&
		    !strstr(test->name, argv[3]))
			continue;
		snprintf(case_id, sizeof(case_id), "%.4s_%zu", argv[2], i);
		failures += !case_run(test, argc > 3);
	}
	return failures != 0;
}

/* The whole program: every case of the table. */
#define CHAPTER(cases)							\
	int								\
	main(int argc, char **argv)					\
	{								\
		return chapter_run(cases, COUNT(cases), argc, argv);	\
	}

#endif

