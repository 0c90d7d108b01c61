/* SPDX-License-Identifier: BSD-2-Clause */
/* CSB mode: ring indices in memory of the program's (S-CSB). */
#include "csb.h"

static struct csb csb;

/* ---- S-CSB-1: where the entries are ---- */

static void
one_entry_per_ring(void)
{
	struct nmreq_register reg = register_all();
	struct nm_csb_ktoa *ktoa = csb.ktoa;
	struct port port;
	int i;

	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 3;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 32;
	port = csb_open_as(own("vale$:p"), reg, &csb);
	check(port.fd >= 0, "2 tx and 3 rx rings");
	for (i = 0; i < 5; i++)
		check(ktoa[i].hwcur == 0 && ktoa[i].hwtail == (i < 2 ? 63 : 0),
		      "entry %d: %s (got hwcur %u, hwtail %u)", i,
		      i < 2 ? "tx" : "rx", ktoa[i].hwcur, ktoa[i].hwtail);
	check(ktoa[5].hwcur == 0xeeeeeeee && csb.atok[5].head == 0xeeeeeeee,
	      "no entry behind them is touched");
}

static void
only_bound_rings(void)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_rings = reg.nr_rx_rings = 3;
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_ringid = 1;
	reg.nr_tx_slots = 64;
	csb_open_as(own("vale$:p"), reg, &csb);
	check(csb.ktoa[0].hwtail == 63 && csb.ktoa[1].hwtail == 0,
	      "one tx and one rx ring");
	check(csb.ktoa[2].hwcur == 0xeeeeeeee, "no entry for the others");
	reg.nr_mode = NR_REG_ALL_NIC;
	reg.nr_flags = NR_RX_RINGS_ONLY;
	csb_open_as(own("vale$:q"), reg, &csb);
	check(csb.ktoa[0].hwtail == 0 && csb.ktoa[2].hwtail == 0 &&
	      csb.ktoa[3].hwcur == 0xeeeeeeee, "three rx rings");
}

static void
enabled_later(void)
{
	struct port port = port_open_flags(own("vale$:p"), NR_EXCLUSIVE),
		    other = port_open(own("vale$:q"));
	uint32_t status;

	check_passes(&port, &other, "before");
	check_passes(&other, &port, "before");
	port_send(&other, broadcast, mac_of(2), 1);
	port_send(&other, broadcast, mac_of(2), 2);
	port_rxsync(&port);
	memset(&csb, 0xee, sizeof(csb));
	check_call(csb_enable(port.fd, csb.atok, csb.ktoa, &status), 0,
		   "CSB_ENABLE");
	check_number(status, 0, "status of the option");
	check(csb.atok[0].head == 1 && csb.atok[0].cur == 1 &&
	      csb.ktoa[0].hwcur == 1 && csb.ktoa[0].hwtail == 0,
	      "the tx ring as it stands");
	check(csb.atok[1].head == 1 && csb.atok[1].cur == 1 &&
	      csb.ktoa[1].hwcur == 1 && csb.ktoa[1].hwtail == 3,
	      "the rx ring as it stands (got head %u, hwcur %u, hwtail %u)",
	      csb.atok[1].head, csb.ktoa[1].hwcur, csb.ktoa[1].hwtail);
}

/* ---- S-CSB-2: what it takes ---- */

static void
bind_error(uint64_t flags, void *atok, void *ktoa, int error, const char *text)
{
	struct nmreq_register reg = register_all();
	uint32_t status;
	int fd = device_open();

	reg.nr_flags = flags;
	check_call(csb_bind(fd, own("vale$:p"), &reg, atok, ktoa, &status),
		   error, text);
	check_number(status, error, "status of the option");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO, "nothing is bound");
	check(!port_exists(own("vale$:p")), "no port is left");
	check_call(bind_all(fd, own("vale$:p")), 0,
		   "the descriptor stays usable");
	close(fd);
}

static void
errors(void)
{
	char *guard = (char *)before_guard(4096) + 4096;
	static struct csb zero;
	void *constant = read_only(&zero, sizeof(zero));

	bind_error(0, csb.atok, csb.ktoa, EINVAL, "not exclusive");
	bind_error(NR_EXCLUSIVE, (char *)csb.atok + 32, csb.ktoa, EINVAL,
		   "atok not aligned");
	bind_error(NR_EXCLUSIVE, csb.atok, (char *)csb.ktoa + 4, EINVAL,
		   "ktoa not aligned");
	bind_error(NR_EXCLUSIVE, NULL, csb.ktoa, EFAULT, "no atok");
	bind_error(NR_EXCLUSIVE, csb.atok, NULL, EFAULT, "no ktoa");
	bind_error(NR_EXCLUSIVE, guard, csb.ktoa, EFAULT,
		   "atok that cannot be read");
	bind_error(NR_EXCLUSIVE, guard - 64, csb.ktoa, EFAULT,
		   "atok that cannot be read at its end");
	bind_error(NR_EXCLUSIVE, csb.atok, guard - 64, EFAULT,
		   "ktoa that cannot be written at its end");
	bind_error(NR_EXCLUSIVE, csb.atok, constant, EFAULT,
		   "ktoa that cannot be written");
}

static void
errors_of_enable(void)
{
	struct port port = port_open(own("vale$:p")),
		    other = port_open_flags(own("vale$:q"), NR_EXCLUSIVE);
	uint32_t status;

	check_call(csb_enable(port.fd, csb.atok, csb.ktoa, &status), EINVAL,
		   "not exclusive");
	check_number(status, EINVAL, "status of the option");
	check_call(csb_enable(other.fd, (char *)csb.atok + 8, csb.ktoa,
			      &status), EINVAL, "not aligned");
	check_number(status, EINVAL, "status of the option");
	check_call(csb_enable(other.fd, NULL, csb.ktoa, &status), EFAULT,
		   "no atok");
	check_number(status, EFAULT, "status of the option");
	check_passes(&other, &port, "neither is in CSB mode");
}

/* ---- S-CSB-3: the entries at the start ---- */

static void
first_values(void)
{
	static const struct nm_csb_ktoa zero;
	struct port port = csb_open(own("vale$:p"), &csb);
	int i;

	check(port.fd >= 0, "a port");
	for (i = 0; i < 2; i++) {
		check(csb.atok[i].head == 0 && csb.atok[i].cur == 0,
		      "entry %d: head and cur", i);
		check_number(csb.atok[i].appl_need_kick, 1,
			     "appl_need_kick");
		check_number(csb.atok[i].sync_flags, 1, "sync_flags");
		check_number(csb.ktoa[i].hwcur, 0, "hwcur");
		check_number(csb.ktoa[i].hwtail, i ? 0 : 1023, "hwtail");
		check_number(csb.ktoa[i].kern_need_kick, 1,
			     "kern_need_kick");
		check(memcmp(csb.ktoa[i].pad, zero.pad, sizeof(zero.pad)) == 0,
		      "the rest of ktoa is zero");
	}
}

/* ---- S-CSB-4: no syncs ---- */

static void
no_syncs(void)
{
	struct port port = csb_open(own("vale$:p"), &csb);

	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EBUSY, "NIOCTXSYNC");
	check_call(ioctl(port.fd, NIOCRXSYNC, NULL), EBUSY, "NIOCRXSYNC");
	check_number(wait_events(port.fd, POLLIN, PATIENCE_MS), POLLERR,
		     "poll for input");
	check_number(wait_events(port.fd, POLLOUT, PATIENCE_MS), POLLERR,
		     "poll for output");
}

static void
one_descriptor_of_two(void)
{
	struct nmreq_register reg = register_all();
	struct port csb_port, plain, other;

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	reg.nr_mode = NR_REG_ONE_NIC;
	csb_port = csb_open_as(own("vale$:p"), reg, &csb);
	reg.nr_ringid = 1;
	plain = port_open_as(own("vale$:p"), reg);
	other = port_open(own("vale$:q"));
	check_call(ioctl(csb_port.fd, NIOCTXSYNC, NULL), EBUSY,
		   "ring 0 in CSB mode");
	ring_put_frame(NETMAP_TXRING(plain.nifp, 1), broadcast, mac_of(1), 1,
		       60, 60);
	check_call(ioctl(plain.fd, NIOCTXSYNC, NULL), 0, "ring 1 is not");
	check_number(port_take(&other), 1, "and sends");
}

/* ---- S-CSB-5: CSB_ENABLE ---- */

static void
enable_arguments(void)
{
	struct port port = port_open_flags(own("vale$:p"), NR_EXCLUSIVE);
	struct nmreq_opt_csb option = csb_option(csb.atok, csb.ktoa);
	uint64_t body = 0;
	uint32_t status;

	check_call(control(port.fd, NETMAP_REQ_CSB_ENABLE, "", NULL), EINVAL,
		   "without the option");
	check_call(control_with(port.fd, NETMAP_REQ_CSB_ENABLE, "", &body,
				&option), EINVAL, "with a body");
	check_call(csb_enable(port.fd, csb.atok, csb.ktoa, &status), 0,
		   "with the option");
	check_number(status, 0, "its status");
	check_call(csb_enable(port.fd, csb.atok, csb.ktoa, &status), 0,
		   "again");
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EBUSY, "in CSB mode");
}

/* ---- S-CSB-6: nothing bound ---- */

static void
nothing_bound(void)
{
	struct nmreq_register reg = register_all();
	uint32_t status;
	int fd = device_open();

	memset(&csb, 0xee, sizeof(csb));
	check_call(csb_enable(fd, csb.atok, csb.ktoa, &status), 0,
		   "CSB_ENABLE on an unbound descriptor");
	check_number(status, 0, "status of the option");
	check_number(csb.ktoa[0].hwcur, 0xeeeeeeee, "no entry is written");
	reg.nr_flags = NR_EXCLUSIVE | NR_TX_RINGS_ONLY | NR_RX_RINGS_ONLY;
	check_call(csb_bind(fd, own("vale$:p"), &reg, csb.atok, csb.ktoa,
			    &status), 0, "REGISTER of no rings");
	check_number(status, 0, "status of the option");
	check_number(csb.ktoa[0].hwcur, 0xeeeeeeee, "no entry is written");
}

static void
pipe_end(void)
{
	struct port port = csb_open(own("c${1"), &csb);

	check_number(csb.ktoa[0].hwtail, 1023, "a pipe's tx ring");
	check_number(csb.ktoa[1].hwtail, 0, "a pipe's rx ring");
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), EBUSY, "NIOCTXSYNC");
}

static const struct test_case cases[] = {
	{ "S-CSB-1", "one entry per ring", one_entry_per_ring },
	{ "S-CSB-1", "bound rings only", only_bound_rings },
	{ "S-CSB-1", "by CSB_ENABLE", enabled_later },
	{ "S-CSB-1", "a pipe", pipe_end },
	{ "S-CSB-2", "errors", errors },
	{ "S-CSB-2", "errors of CSB_ENABLE", errors_of_enable },
	{ "S-CSB-3", "first values", first_values },
	{ "S-CSB-4", "no syncs", no_syncs },
	{ "S-CSB-4", "one descriptor of two", one_descriptor_of_two },
	{ "S-CSB-5", "arguments", enable_arguments },
	{ "S-CSB-6", "nothing bound", nothing_bound },
};

CHAPTER(cases)
