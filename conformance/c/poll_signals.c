/* SPDX-License-Identifier: BSD-2-Clause */
/* POLL: signals that come during a wait (S-POLL-1). */
#include "pair.h"
#include "waits.h"

static volatile sig_atomic_t signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

static void
handle_signal(int number, int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	action.sa_flags = flags;
	sigaction(number, &action, NULL);
}

/* A signal ends a wait, whatever its handler's flags say. */
static void
a_signal_ends_a_wait(void)
{
	static const int flags[] = { 0, SA_RESTART };
	size_t p, c, f;

	for (p = 0; p < COUNT(pairs); p++) {
		struct pair pair = pairs[p]();

		for (c = 0; c < WAIT_CALLS; c++)
			for (f = 0; f < COUNT(flags); f++) {
				int self = getpid();
				pid_t child;

				handle_signal(SIGUSR1, flags[f]);
				child = forked();
				if (child == 0) {
					require(soon(thread_sleeps, &self),
						"it sleeps");
					kill(self, SIGUSR1);
					_exit(0);
				}
				check_call(wait_one(&wait_calls[c],
						    pair.to.fd, POLLIN,
						    2 * PATIENCE_MS), EINTR,
					   wait_calls[c].name);
				check_child(child, "the killer");
			}
		pair_close(&pair);
	}
}

static void
a_mask_holds_during_the_wait(void)
{
	struct port port = port_open(own("vale$:a"));
	sigset_t blocked, open_mask, now;
	size_t c;

	handle_signal(SIGUSR1, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &open_mask);
	sigdelset(&open_mask, SIGUSR1);
	for (c = 0; c < WAIT_CALLS; c++) {
		struct wanted set[1] = { { port.fd, POLLIN, 0 } };
		const struct wait_call *call = &wait_calls[c];

		if (!call->takes_mask)
			continue;
		signals = 0;
		raise(SIGUSR1);
		check_number(call->wait(set, 1, 5, NULL), 0,
			     line("%s: blocked", call->name));
		check_number(call->wait(set, 1, 5, &blocked), 0,
			     line("%s: blocked by the mask", call->name));
		check_number(signals, 0, "no signal yet");
		check_call(call->wait(set, 1, PATIENCE_MS, &open_mask), EINTR,
			   line("%s: let in", call->name));
		check_number(signals, 1, "one signal");
		sigprocmask(SIG_BLOCK, NULL, &now);
		check_number(sigismember(&now, SIGUSR1), 1,
			     "the mask is as before");
	}
}

static void
a_pending_signal_and_a_packet(void)
{
	struct pair pair = pipe_pair();
	sigset_t blocked, open_mask;
	size_t c;

	handle_signal(SIGUSR1, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &open_mask);
	port_send(&pair.from, broadcast, mac_of(1), 1);
	for (c = 0; c < WAIT_CALLS; c++) {
		struct wanted set[1] = { { pair.to.fd, POLLIN, 0 } };

		if (!wait_calls[c].takes_mask)
			continue;
		raise(SIGUSR1);
		check_number(wait_calls[c].wait(set, 1, PATIENCE_MS,
						&open_mask), 1,
			     line("%s: what is ready comes first",
				  wait_calls[c].name));
		sigprocmask(SIG_SETMASK, &open_mask, NULL);
		sigprocmask(SIG_BLOCK, &blocked, NULL);
	}
}

static const struct test_case cases[] = {
	{ "S-POLL-1", "a signal ends a wait", a_signal_ends_a_wait },
	{ "S-POLL-1", "a mask holds during the wait",
	  a_mask_holds_during_the_wait },
	{ "S-POLL-1", "a pending signal and a packet",
	  a_pending_signal_and_a_packet },
};

CHAPTER(cases)
