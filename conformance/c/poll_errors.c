/* SPDX-License-Identifier: BSD-2-Clause */
/* POLL: what is wrong is told at once (S-POLL-6). */
#include "pair.h"
#include "waits.h"

/* Of a call that has no errors, all that was asked for. */
static void
check_error(const struct wait_call *call, int fd, short events,
	    const char *text)
{
	int got = wait_one(call, fd, events, PATIENCE_MS);

	if (call->has_error)
		check(got >= 0 && got & POLLERR, "%s: %s (events 0x%x)",
		      call->name, text, (unsigned)got);
	else
		check_events(got, events, call->name, text);
}

static void
errors_of_unbound_descriptors(void)
{
	static const short events[] = { POLLIN, POLLOUT, POLLIN | POLLOUT };
	int fd = device_open();
	size_t c, e;

	for (c = 0; c < WAIT_CALLS; c++)
		for (e = 0; e < COUNT(events); e++)
			check_error(&wait_calls[c], fd, events[e], "unbound");
}

static void
errors_of_indices(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		struct pair pair = pipe_pair();
		struct netmap_ring *tx = port_tx(&pair.from);
		struct netmap_ring *rx = port_rx(&pair.to);

		rx->cur = SLOTS + 3;
		check_error(call, pair.to.fd, POLLIN, "rx cur");
		check(rx->head == 0 && rx->cur == 0, "the ring was reset");
		check_events(wait_one(call, pair.to.fd, POLLIN, 0), 0,
			     call->name, "and is of use");
		tx->head = SLOTS;
		check_error(call, pair.from.fd, POLLOUT, "tx head");
		check(tx->head == 0 && tx->cur == 0, "the ring was reset");
		check_events(wait_one(call, pair.from.fd, POLLOUT, 0),
			     POLLOUT, call->name, "and is of use");
		tx->head = tx->cur = SLOTS + 9;
		check_error(call, pair.from.fd, POLLIN,
			    "tx head, in a wait for input");
		rx->head = SLOTS;
		check_events(wait_one(call, pair.to.fd, POLLOUT, 0), POLLOUT,
			     call->name, "rx head, in a wait for room");
		pair_close(&pair);
	}
}

static void
errors_of_other_rings_indices(void)
{
	struct port quiet = port_open_flags(own("p${1"), NR_NO_TX_POLL);

	port_tx(&quiet)->head = 5000;
	check_number(wait_events(quiet.fd, POLLIN, 0), 0,
		     "NR_NO_TX_POLL: tx rings are not looked at");
	check_number(wait_events(quiet.fd, POLLOUT, 0) & POLLERR, POLLERR,
		     "until a wait asks for room");
}

static void
errors_of_csb_mode(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_opt_csb csb;
	char *mem = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = device_open();
	size_t c;

	memset(&csb, 0, sizeof(csb));
	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	csb.csb_atok = (uintptr_t)mem;
	csb.csb_ktoa = (uintptr_t)(mem + 2048);
	reg.nr_flags = NR_EXCLUSIVE;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&csb), 0, "REGISTER with CSB");
	for (c = 0; c < WAIT_CALLS; c++)
		check_error(&wait_calls[c], fd, POLLIN | POLLOUT, "CSB mode");
}

static void
errors_of_monitors(void)
{
	struct port port = port_open(own("vale$:a"));
	struct port monitor = port_open_flags(own("vale$:a"), NR_MONITOR_RX);
	size_t c;

	check(port.fd >= 0, "a target");
	for (c = 0; c < WAIT_CALLS; c++)
		check_error(&wait_calls[c], monitor.fd, POLLOUT,
			    "a monitor cannot send");
}

/* What a sync of a tx ring finds wrong does not keep packets back. */
static void
errors_beside_packets(void)
{
	size_t c;

	for (c = 0; c < WAIT_CALLS; c++) {
		const struct wait_call *call = &wait_calls[c];
		short expected = call->has_error ? POLLIN | POLLERR :
			POLLIN | POLLOUT;
		struct port from = port_open(own("vale$:a"));
		struct port to = port_open(own("vale$:b"));
		struct port monitor = port_open_flags(own("vale$:b"),
						      NR_MONITOR_RX);
		struct netmap_ring *tx = port_tx(&to);

		port_send(&from, broadcast, mac_of(1), 1);
		check_events(wait_one(call, to.fd, POLLIN, PATIENCE_MS),
			     POLLIN, call->name, "a packet");
		tx->head = tx->cur = tx->num_slots + 9;
		check_events(wait_one(call, to.fd, POLLIN | POLLOUT, 0),
			     expected, call->name, "wrong tx cursors");
		tx->head = tx->cur = tx->num_slots + 9;
		check_events(wait_one(call, to.fd, POLLIN, 0),
			     call->has_error ? expected : POLLIN, call->name,
			     "which are looked at in a wait for input, too");
		check_number(port_take(&to), 1, "the packet");
		check_events(wait_one(call, monitor.fd, POLLIN | POLLOUT,
				      PATIENCE_MS), expected, call->name,
			     "a monitor that is asked for room");
		check_number(port_rx(&monitor)->tail, 1,
			     "its packet was received");
		port_close(&monitor);
		port_close(&to);
		port_close(&from);
	}
}

/* Wrong cursors of one ring do not hide the room of another. */
static void
errors_of_one_ring(void)
{
	struct nmreq_register reg = register_all();
	struct port port;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	port = port_open_as(own("p${1"), reg);
	NETMAP_TXRING(port.nifp, 0)->head = 5000;
	check_number(wait_events(port.fd, POLLOUT, 0), POLLOUT | POLLERR,
		     "a wrong ring and one with room");
}

static const struct test_case cases[] = {
	{ "S-POLL-6", "unbound descriptors", errors_of_unbound_descriptors },
	{ "S-POLL-6", "wrong indices", errors_of_indices },
	{ "S-POLL-6", "wrong indices that are not looked at",
	  errors_of_other_rings_indices },
	{ "S-POLL-6", "CSB mode", errors_of_csb_mode },
	{ "S-POLL-6", "monitors", errors_of_monitors },
	{ "S-POLL-6", "errors beside packets", errors_beside_packets },
	{ "S-POLL-6", "errors of one ring of two", errors_of_one_ring },
};

CHAPTER(cases)
