/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NIFP: what a program finds in the memory that it has mapped: the netmap_if,
 * the rings that it has bound, their slots and buffers.
 */
#include "case.h"
#include "request.h"

static struct port
open_counts(const char *name, uint16_t tx, uint16_t rx, uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_tx_rings = tx;
	reg.nr_rx_rings = rx;
	reg.nr_flags = flags;
	return port_open_as(name, reg);
}

static uint32_t
offset_count(const struct netmap_if *nifp)
{
	return nifp->ni_tx_rings + nifp->ni_host_tx_rings +
		nifp->ni_rx_rings + nifp->ni_host_rx_rings;
}

static void
offsets_in_their_order(void)
{
	struct port port = open_counts(own("vale$:a"), 3, 2, 0);
	const struct netmap_if *nifp = port.nifp;
	uint32_t i;

	check(nifp->ni_tx_rings == 3 && nifp->ni_rx_rings == 2,
	      "3 tx rings and 2 rx rings");
	check(nifp->ni_host_tx_rings == 1 && nifp->ni_host_rx_rings == 1,
	      "a host ring each way, even if there is none");
	check_number(offset_count(nifp), 7, "7 offsets");
	for (i = 0; i < 3; i++)
		check(NETMAP_TXRING(nifp, i) == (struct netmap_ring *)(void *)
		      ((char *)port.nifp + nifp->ring_ofs[i]) &&
		      NETMAP_TXRING(nifp, i)->ringid == i,
		      "tx ring %u first", i);
	for (i = 0; i < 2; i++)
		check(NETMAP_RXRING(nifp, i) == (struct netmap_ring *)(void *)
		      ((char *)port.nifp + nifp->ring_ofs[4 + i]) &&
		      NETMAP_RXRING(nifp, i)->ringid == i,
		      "rx ring %u behind the host's tx ring", i);
}

static void
offsets_of_other_ports(void)
{
	struct nmreq_register reg = register_all();
	struct port pipe = port_open(own("p${1")), null;

	check(pipe.nifp->ni_tx_rings == 1 && pipe.nifp->ni_rx_rings == 1 &&
	      pipe.nifp->ni_host_tx_rings == 1 &&
	      pipe.nifp->ni_host_rx_rings == 1, "a pipe end");
	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = pipe.reg.nr_mem_id;
	reg.nr_tx_rings = 2;
	reg.nr_rx_rings = 0;
	reg.nr_tx_slots = 16;
	null = port_open_as(own("null$"), reg);
	check(null.nifp->ni_tx_rings == 2 && null.nifp->ni_rx_rings == 0 &&
	      null.nifp->ni_host_tx_rings == 1 &&
	      null.nifp->ni_host_rx_rings == 1, "a null port without rx rings");
}

static void
host_rings_of_an_interface(void)
{
	struct cable cable = own_cable(2);
	struct nmreq_register reg = register_all();
	struct port port;

	reg.nr_mode = NR_REG_NIC_SW;
	port = port_open_as(cable.near, reg);
	check(port.nifp->ni_tx_rings == 2 && port.nifp->ni_rx_rings == 2 &&
	      port.nifp->ni_host_tx_rings == 1 &&
	      port.nifp->ni_host_rx_rings == 1, "counts");
	check(NETMAP_TXRING(port.nifp, 2)->ringid == 2 &&
	      NETMAP_RXRING(port.nifp, 2)->ringid == 2,
	      "host rings count after those of the interface");
}

static void
what_is_not_bound_is_not_seen(void)
{
	static const struct {
		uint32_t mode;
		uint16_t ring;
		uint64_t flags;
		uint32_t seen;
	} cases[] = {
		{ NR_REG_ALL_NIC, 0, 0, 0x37 },
		{ NR_REG_ALL_NIC, 0, NR_TX_RINGS_ONLY, 0x07 },
		{ NR_REG_ALL_NIC, 0, NR_RX_RINGS_ONLY, 0x30 },
		{ NR_REG_ONE_NIC, 1, 0, 0x22 },
	};
	struct port port = open_counts(own("vale$:a"), 3, 2, 0);
	size_t i;
	uint32_t k;

	for (i = 0; i < COUNT(cases); i++) {
		struct nmreq_register reg = register_all();
		struct port other;

		reg.nr_mode = cases[i].mode;
		reg.nr_ringid = cases[i].ring;
		reg.nr_flags = cases[i].flags;
		other = port_open_as(own("vale$:a"), reg);
		for (k = 0; k < 7; k++)
			check((other.nifp->ring_ofs[k] != 0) ==
			      ((cases[i].seen >> k & 1) != 0),
			      "descriptor %zu, ring %u", i, k);
		check(port.nifp != other.nifp, "each has its own netmap_if");
		port_close(&other);
	}
}

static void
name_version_and_flags(void)
{
	static const char *const names[] = { "vale$:a", "p${1" };
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct port port = port_open(own(names[i]));

		check(strncmp(port.nifp->ni_name, own(names[i]), 15) == 0 &&
		      port.nifp->ni_name[15] == 0, "the name \"%.16s\"",
		      port.nifp->ni_name);
		check_number(port.nifp->ni_version, 0, "no version");
		check_number(port.nifp->ni_flags & NI_PRIV_MEM, NI_PRIV_MEM,
			     "a private region");
		port_close(&port);
	}
}

static void
a_long_name_is_cut(void)
{
	char name[NETMAP_REQ_IFNAMSIZ];
	struct port port;

	snprintf(name, sizeof(name), "%s", own("vale$:0123456789"));
	port = port_open(name);
	check(strlen(name) > 15 && strlen(port.nifp->ni_name) == 15 &&
	      strncmp(port.nifp->ni_name, name, 15) == 0,
	      "15 characters of it: \"%.16s\"", port.nifp->ni_name);
}

static void
an_interface_has_the_global_region(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);

	check(strcmp(port.nifp->ni_name, cable.near) == 0, "its name");
	check_number(port.nifp->ni_flags & NI_PRIV_MEM, 0, "NI_PRIV_MEM");
}

/* Every slot of a fresh port: buffers that are nobody else's. */
static void
check_slots(const struct port *port, uint32_t rings, uint32_t buffers)
{
	char *seen = (char *)calloc(1, buffers);
	uint32_t r, i;
	int good = 1, distinct = 1;

	require(seen != NULL, "memory");
	for (r = 0; r < rings; r++) {
		const struct netmap_ring *ring = (struct netmap_ring *)(void *)
			((char *)port->nifp + port->nifp->ring_ofs[r]);

		if (port->nifp->ring_ofs[r] == 0)
			continue;
		for (i = 0; i < ring->num_slots; i++) {
			const struct netmap_slot *slot = &ring->slot[i];

			good &= slot->buf_idx >= 2 &&
				slot->buf_idx < buffers &&
				slot->len == ring->nr_buf_size &&
				slot->flags == 0 && slot->ptr == 0;
			if (slot->buf_idx < buffers)
				distinct &= !seen[slot->buf_idx]++;
		}
	}
	free(seen);
	check(good, "each slot has a whole buffer and nothing else");
	check(distinct, "no buffer is in two slots");
}

static void
check_fresh(const char *name, struct nmreq_register reg, const char *text)
{
	struct port port = port_open_as(name, reg);
	struct nmreq_pools_info pools = pools_of(name);
	uint32_t i;

	for (i = 0; i < reg.nr_tx_rings; i++) {
		const struct netmap_ring *tx = NETMAP_TXRING(port.nifp, i);

		check(tx->head == 0 && tx->cur == 0 &&
		      tx->tail == tx->num_slots - 1,
		      "%s: tx ring %u is empty", text, i);
		check_number(tx->num_slots, reg.nr_tx_slots, "its slots");
	}
	for (i = 0; i < reg.nr_rx_rings; i++) {
		const struct netmap_ring *rx = NETMAP_RXRING(port.nifp, i);

		check(rx->head == 0 && rx->cur == 0 && rx->tail == 0,
		      "%s: rx ring %u is empty", text, i);
		check_number(rx->num_slots, reg.nr_rx_slots, "its slots");
	}
	for (i = 0; i < offset_count(port.nifp); i++) {
		const struct netmap_ring *ring = (struct netmap_ring *)(void *)
			((char *)port.nifp + port.nifp->ring_ofs[i]);

		if (port.nifp->ring_ofs[i] == 0)
			continue;
		check_number(ring->nr_buf_size, pools.nr_buf_pool_objsize,
			     "nr_buf_size");
		check(NETMAP_BUF(ring, 0) ==
		      port.mem + pools.nr_buf_pool_offset,
		      "buf_ofs leads to the buffers");
		check(ring->flags == 0 && ring->offset_mask == 0,
		      "flags and offset_mask");
	}
	check_slots(&port, offset_count(port.nifp), pools.nr_buf_pool_objtotal);
	port_close(&port);
}

static void
fresh_rings(void)
{
	struct nmreq_register reg = register_all();
	struct port parent;

	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	reg.nr_tx_slots = reg.nr_rx_slots = 1024;
	check_fresh(own("vale$:a"), reg, "VALE");
	check_fresh(own("p${1"), reg, "a pipe's master");
	check_fresh(own("p$}1"), reg, "a pipe's slave");
	reg.nr_tx_rings = 3;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 32;
	reg.nr_rx_slots = 100;
	check_fresh(own("vale$:b"), reg, "VALE, other counts");
	parent = port_open(own("vale$:h"));
	reg.nr_mode = NR_REG_NULL;
	reg.nr_mem_id = parent.reg.nr_mem_id;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	parent = port_open_as(own("null$"), reg);
	check_slots(&parent, 4, pools_of(own("vale$:h")).nr_buf_pool_objtotal);
}

static void
fresh_rings_of_an_interface(void)
{
	struct cable cable = own_cable(1);
	struct port port = port_open(cable.near);
	const struct netmap_ring *tx = port_tx(&port), *rx = port_rx(&port);

	check(tx->head == 0 && tx->cur == 0 && tx->tail == tx->num_slots - 1,
	      "the tx ring is empty");
	check(rx->head == 0 && rx->cur == 0 && rx->tail == 0,
	      "the rx ring is empty");
	check(NETMAP_BUF(tx, 5) == NETMAP_BUF(rx, 5),
	      "a buffer is the same in all rings");
	check_slots(&port, offset_count(port.nifp),
		    pools_of(cable.near).nr_buf_pool_objtotal);
}

/*
 * The header says 0 for tx and 1 for rx, the original stores the opposite:
 * programs can rely on nothing but that they differ.
 */
static void
directions_differ(void)
{
	struct port port = open_counts(own("vale$:a"), 2, 2, 0);

	check(port_tx(&port)->dir <= 1 && port_rx(&port)->dir <= 1 &&
	      port_tx(&port)->dir != port_rx(&port)->dir, "tx %u, rx %u",
	      port_tx(&port)->dir, port_rx(&port)->dir);
	check(NETMAP_TXRING(port.nifp, 1)->dir == port_tx(&port)->dir &&
	      NETMAP_RXRING(port.nifp, 1)->dir == port_rx(&port)->dir,
	      "all rings of a direction agree");
}

static void
a_later_descriptor_finds_the_indices(void)
{
	struct port a = port_open(own("p${1")), peer = port_open(own("p$}1"));
	struct port b;
	uint32_t i;

	for (i = 0; i < 5; i++)
		port_send(&a, broadcast, mac_of(1), i);
	for (i = 0; i < 2; i++)
		check_number(port_take(&peer), i, "a frame");
	port_rxsync(&peer);
	port_txsync(&a);
	b = port_open(own("p${1"));
	check(port_tx(&b)->head == 5 && port_tx(&b)->cur == 5 &&
	      port_tx(&b)->tail == 1, "head %u cur %u tail %u",
	      port_tx(&b)->head, port_tx(&b)->cur, port_tx(&b)->tail);
}

static void
one_slot_stays_empty(void)
{
	static const uint32_t counts[] = { 16, 64, 1024 };
	size_t i;

	for (i = 0; i < COUNT(counts); i++) {
		struct port a = port_open_slots(own("p${1"), counts[i]);
		struct port b = port_open(own("p$}1"));
		struct netmap_ring *tx = port_tx(&a);

		check_number(nm_ring_space(tx), counts[i] - 1, "n-1 slots");
		ring_advance(tx, counts[i] - 1);
		port_txsync(&a);
		check_number(nm_ring_space(tx), 0, "all in use");
		port_rxsync(&b);
		check_number(nm_ring_space(port_rx(&b)), counts[i] - 1,
			     "and received");
		port_close(&b);
		port_close(&a);
	}
}

static const struct test_case cases[] = {
	{ "S-NIFP-1", "offsets in their order", offsets_in_their_order },
	{ "S-NIFP-1", "offsets of other ports", offsets_of_other_ports },
	{ "S-NIFP-1", "host rings of an interface",
	  host_rings_of_an_interface },
	{ "S-NIFP-2", "what is not bound is not seen",
	  what_is_not_bound_is_not_seen },
	{ "S-NIFP-3", "name, version and flags", name_version_and_flags },
	{ "S-NIFP-3", "a long name is cut", a_long_name_is_cut },
	{ "S-NIFP-3", "an interface has the global region",
	  an_interface_has_the_global_region },
	{ "S-NIFP-4", "fresh rings", fresh_rings },
	{ "S-NIFP-4", "fresh rings of an interface",
	  fresh_rings_of_an_interface },
	{ "S-NIFP-5", "directions differ", directions_differ },
	{ "S-NIFP-6", "a later descriptor finds the indices",
	  a_later_descriptor_finds_the_indices },
	{ "S-NIFP-6", "one slot stays empty", one_slot_stays_empty },
};

CHAPTER(cases)
