/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every wrong request gives its errno and changes nothing; right ones fill in
 * their outputs (S-LIFE, S-CTRL, S-REG, S-NIFP, S-VALE, S-PIPE-1, S-MEM,
 * S-LEG).
 *
 * usage: errno_rules [14|15 [SWITCH [newif]]]
 *
 * With "newif" it also creates a network device, which takes privileges.
 */
#include "port.h"

#include <net/if.h>
#include <stddef.h>

#define NO_REGION	60001	/* a mem_id that does not exist */
#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static const char *vale = "valeE";
static void *forbidden;		/* a page without access */
static void *straddling;	/* 8 bytes before it */

/* Names in the tables: $ stands for the switch. */
static const char *
expand(const char *name)
{
	return name[0] == '$' ? name_of(vale, name + 2) : name;
}

static const char *
text_of(const char *rule, const char *name)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s: \"%s\"", rule, name);
	return text;
}

static void
make_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(pages != MAP_FAILED && mprotect(pages + page, page,
						PROT_NONE) == 0, "guard page");
	forbidden = pages + page;
	straddling = pages + page - 8;
}

/* REGISTER requests on a fresh descriptor; those that succeed are undone. */
static const struct {
	const char *rule, *name;
	uint32_t mode;
	uint16_t ring, mem_id;
	uint64_t flags;
	int error;
} registers[] = {
	{ "S-REG-1 unknown region", "$:r", NR_REG_ALL_NIC, 0, NO_REGION, 0,
	  EINVAL },
	{ "S-REG-2 no such interface", "nosuchif0", NR_REG_ALL_NIC, 0, 0, 0,
	  ENXIO },
	{ "S-REG-2 empty name", "", NR_REG_ALL_NIC, 0, 0, 0, ENXIO },
	{ "S-REG-2 legacy master mode", "$:r", NR_REG_PIPE_MASTER, 1, 0, 0,
	  EINVAL },
	{ "S-REG-2 legacy slave mode", "$:r", NR_REG_PIPE_SLAVE, 1, 0, 0,
	  EINVAL },
	{ "S-REG-4 mode 0", "$:r", NR_REG_DEFAULT, 0, 0, 0, EINVAL },
	{ "S-REG-4 mode 9", "$:r", 9, 0, 0, 0, EINVAL },
	{ "S-REG-4 mode 2^32-1", "$:r", UINT32_MAX, 0, 0, 0, EINVAL },
	{ "S-REG-4 no host rings: SW", "$:r", NR_REG_SW, 0, 0, 0, EINVAL },
	{ "S-REG-4 no host rings: NIC_SW", "$:r", NR_REG_NIC_SW, 0, 0, 0,
	  EINVAL },
	{ "S-REG-4 no host rings: ONE_SW", "$:r", NR_REG_ONE_SW, 0, 0, 0,
	  EINVAL },
	{ "S-REG-4 ring 0 of 1", "$:r", NR_REG_ONE_NIC, 0, 0, 0, 0 },
	{ "S-REG-4 ring 1 of 1", "$:r", NR_REG_ONE_NIC, 1, 0, 0, EINVAL },
	{ "S-REG-4 ring 65535 of 1", "$:r", NR_REG_ONE_NIC, 65535, 0, 0,
	  EINVAL },
	{ "S-REG-4 neither direction", "$:r", NR_REG_ALL_NIC, 0, 0,
	  NR_RX_RINGS_ONLY | NR_TX_RINGS_ONLY, 0 },
	{ "S-REG-11 unknown flags", "$:r", NR_REG_ALL_NIC, 0, 0,
	  0x1000 | 1ull << 40, 0 },
	{ "S-REG-11 NR_ACCEPT_VNET_HDR", "$:r", NR_REG_ALL_NIC, 0, 0,
	  NR_ACCEPT_VNET_HDR, 0 },
	{ "S-POLL-5 NR_DO_RX_POLL", "$:r", NR_REG_ALL_NIC, 0, 0,
	  NR_DO_RX_POLL, 0 },
	{ "S-NULL-1 no region", "null", NR_REG_NULL, 0, 0, 0, EINVAL },
	{ "S-NULL-1 unknown region", "null", NR_REG_NULL, 0, NO_REGION, 0,
	  EINVAL },
	{ "S-MON-1 target not in use", "$:r", NR_REG_ALL_NIC, 0, 0,
	  NR_MONITOR_RX, EINVAL },
	{ "S-VALE-1 no colon", "valeX", NR_REG_ALL_NIC, 0, 0, 0, ENOMEM },
	{ "S-VALE-1 val is enough", "valX", NR_REG_ALL_NIC, 0, 0, 0, ENOMEM },
	{ "S-VALE-1 bad switch id", "vale.x:p", NR_REG_ALL_NIC, 0, 0, 0,
	  ENOMEM },
	{ "S-VALE-1 long switch id", "vale01234567890123:p", NR_REG_ALL_NIC,
	  0, 0, 0, ENOMEM },
	{ "S-VALE-1 long port name", "$:0123456789abcdef", NR_REG_ALL_NIC, 0,
	  0, 0, ENOMEM },
	{ "S-VALE-4 an interface not attached", "$:lo", NR_REG_ALL_NIC, 0, 0,
	  0, EINVAL },
	{ "S-PIPE-1 empty parent", "{1", NR_REG_ALL_NIC, 0, 0, 0, EINVAL },
	{ "S-PIPE-1 empty parent of a slave", "}1", NR_REG_ALL_NIC, 0, 0, 0,
	  EINVAL },
	{ "S-PIPE-1 empty master id", "$:p{", NR_REG_ALL_NIC, 0, 0, 0,
	  EINVAL },
	{ "S-PIPE-1 empty slave id", "$:p}", NR_REG_ALL_NIC, 0, 0, 0, EINVAL },
	{ "S-PIPE-1 mode SW", "$:p{1", NR_REG_SW, 0, 0, 0, EINVAL },
	{ "S-PIPE-1 mode NIC_SW", "$:p}1", NR_REG_NIC_SW, 0, 0, 0, EINVAL },
	{ "S-PIPE-1 mode ONE_NIC", "$:p{1", NR_REG_ONE_NIC, 0, 0, 0, 0 },
	{ "S-PIPE-1 any text is an id", "$:p}in-7", NR_REG_ALL_NIC, 0, 0, 0,
	  0 },
};

static void
test_register(void)
{
	size_t i;

	for (i = 0; i < COUNT(registers); i++) {
		struct nmreq_register reg = register_all(), before;
		const char *name = expand(registers[i].name);
		int fd = device_open(), result;

		reg.nr_mode = registers[i].mode;
		reg.nr_ringid = registers[i].ring;
		reg.nr_mem_id = registers[i].mem_id;
		reg.nr_flags = registers[i].flags;
		before = reg;
		result = control(fd, NETMAP_REQ_REGISTER, name, &reg);
		check_call(result, registers[i].error,
			   text_of(registers[i].rule, name));
		if (result == -1) {
			check(memcmp(&reg, &before, sizeof(reg)) == 0,
			      "S-CTRL-4 the body is as it was");
			check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
				   "S-LIFE-2 still unbound");
			reg = register_all();
			check_call(control(fd, NETMAP_REQ_REGISTER,
					   name_of(vale, "again"), &reg), 0,
				   "S-LIFE-2 and of use");
		} else {
			check(reg.nr_mode == before.nr_mode &&
			      reg.nr_ringid == before.nr_ringid &&
			      reg.nr_flags == before.nr_flags,
			      "S-REG-7 mode, ring and flags unchanged");
			check_call(control(fd, NETMAP_REQ_REGISTER, name,
					   &reg), EBUSY,
				   "S-LIFE-2 a second REGISTER");
		}
		close(fd);
		check(!port_exists(name_of(vale, "r")) &&
		      !port_exists(name_of(vale, "p")),
		      "S-VALE-3 no port is left");
	}
}

/* S-LIFE-3, S-LIFE-4, S-LIFE-11 */
static void
test_descriptor(void)
{
	static const struct {
		unsigned long number;
		const char *text;
	} ioctls[] = {
		{ NIOCCTRL, "NIOCCTRL" },
		{ NIOCREGIF, "NIOCREGIF" },
		{ NIOCGINFO, "NIOCGINFO" },
		{ NIOCCONFIG, "NIOCCONFIG" },
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
	struct port port;
	char *tail;
	int fd = device_open();

	check_call(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0) ==
		   MAP_FAILED ? -1 : 0, EINVAL, "S-LIFE-3 mmap when unbound");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
		   "S-LIFE-4 NIOCTXSYNC when unbound");
	check_call(ioctl(fd, NIOCRXSYNC, NULL), ENXIO,
		   "S-LIFE-4 NIOCRXSYNC when unbound");
	check_number(wait_events(fd, POLLIN | POLLOUT, PATIENCE_MS), POLLERR,
		     "S-LIFE-4 poll when unbound");
	check_call(ioctl(fd, _IO('i', 200), NULL), EOPNOTSUPP,
		   "S-LIFE-11 unknown request");
	check_call(ioctl(fd, _IOWR('i', 145, struct nmreq_header), NULL),
		   EOPNOTSUPP, "S-LIFE-11 known number, other size");
	for (i = 0; i < COUNT(ioctls); i++) {
		check_call(ioctl(fd, ioctls[i].number, NULL), EINVAL,
			   text_of("S-LIFE-11 NULL", ioctls[i].text));
		check_call(ioctl(fd, ioctls[i].number, forbidden), EFAULT,
			   text_of("S-LIFE-11 bad pointer", ioctls[i].text));
		check_call(ioctl(fd, ioctls[i].number, straddling), EFAULT,
			   text_of("S-LIFE-11 partly bad", ioctls[i].text));
		check_call(ioctl(fd, ioctls[i].number, (void *)8), EFAULT,
			   text_of("S-LIFE-11 address 8", ioctls[i].text));
	}
	close(fd);

	port = port_open(name_of(vale, "mm"));
	check_call(mmap(NULL, port.reg.nr_memsize + page, PROT_READ,
			MAP_SHARED, port.fd, 0) == MAP_FAILED ? -1 : 0,
		   EINVAL, "S-LIFE-3 mmap longer than the region");
	check_call(mmap(NULL, port.reg.nr_memsize, PROT_READ, MAP_SHARED,
			port.fd, (off_t)page) == MAP_FAILED ? -1 : 0,
		   EINVAL, "S-LIFE-3 mmap past the end");
	tail = (char *)mmap(NULL, page, PROT_READ, MAP_SHARED, port.fd,
			    (off_t)(port.reg.nr_memsize - page));
	check(tail != MAP_FAILED, "S-LIFE-3 mmap of the last page");
	munmap(tail, page);
	port_close(&port);
}

/* S-CTRL-1, S-CTRL-3 */
static void
test_envelope(void)
{
	static const uint16_t bad_version[] = { 0, 1, 11, 13, 16, 65535 };
	static const uint16_t with_body[] = {
		NETMAP_REQ_REGISTER, NETMAP_REQ_PORT_INFO_GET,
		NETMAP_REQ_VALE_ATTACH, NETMAP_REQ_VALE_DETACH,
		NETMAP_REQ_VALE_LIST, NETMAP_REQ_PORT_HDR_SET,
		NETMAP_REQ_PORT_HDR_GET, NETMAP_REQ_VALE_NEWIF,
		NETMAP_REQ_VALE_POLLING_ENABLE,
		NETMAP_REQ_VALE_POLLING_DISABLE, NETMAP_REQ_POOLS_INFO_GET,
		NETMAP_REQ_SYNC_KLOOP_START,
	};
	static const uint16_t without_body[] = {
		NETMAP_REQ_VALE_DELIF, NETMAP_REQ_SYNC_KLOOP_STOP,
		NETMAP_REQ_CSB_ENABLE, 0, 16, 65535,
	};
	const char *name = name_of(vale, "ctrl");
	struct nmreq_register reg = register_all();
	struct nmreq_header header;
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(bad_version); i++) {
		header = header_of(NETMAP_REQ_REGISTER, name, &reg);
		header.nr_version = bad_version[i];
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
			   "S-CTRL-1 bad version");
		check_number(header.nr_version, bad_version[i],
			     "S-CTRL-1 the version is not modified");
	}
	header = header_of(NETMAP_REQ_REGISTER, name, &reg);
	header.nr_reserved = 1;
	check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
		   "S-CTRL-1 nr_reserved");
	header = header_of(NETMAP_REQ_REGISTER, "", &reg);
	memset(header.nr_name, 'x', sizeof(header.nr_name));
	check_call(ioctl(fd, NIOCCTRL, &header), ENXIO,
		   "S-CTRL-1 a name without its NUL");
	check_number(header.nr_name[NETMAP_REQ_IFNAMSIZ - 1], 0,
		     "S-CTRL-1 has one afterwards");

	for (i = 0; i < COUNT(with_body); i++) {
		header = header_of(with_body[i], name, NULL);
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
			   "S-CTRL-3 body missing");
		header = header_of(with_body[i], name, forbidden);
		check_call(ioctl(fd, NIOCCTRL, &header), EFAULT,
			   "S-CTRL-3 body unreadable");
	}
	header = header_of(NETMAP_REQ_REGISTER, name, straddling);
	check_call(ioctl(fd, NIOCCTRL, &header), EFAULT,
		   "S-CTRL-3 body partly unreadable");
	for (i = 0; i < COUNT(without_body); i++) {
		header = header_of(without_body[i], name, &reg);
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
			   "S-CTRL-3 body not expected");
	}
	for (i = 3; i < COUNT(without_body); i++) {
		header = header_of(without_body[i], name, NULL);
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
			   "S-CTRL-3 unknown type");
	}
	check_call(ioctl(fd, NIOCRXSYNC, NULL), ENXIO,
		   "S-LIFE-2 after all of it unbound");
	close(fd);
	check(!port_exists(name), "S-CTRL no port came into being");
}

static int
control_with(int fd, uint16_t type, const char *name, void *body,
	     void *option)
{
	struct nmreq_header header = header_of(type, name, body);
	int result;

	header.nr_options = (uintptr_t)option;
	result = ioctl(fd, NIOCCTRL, &header);
	if (header.nr_options != (uintptr_t)option ||
	    header.nr_body != (uintptr_t)body)
		check(0, "S-CTRL-4 nr_options and nr_body are unchanged");
	return result;
}

static struct nmreq_option
option_of(uint32_t type, void *next)
{
	struct nmreq_option option;

	memset(&option, 0, sizeof(option));
	option.nro_reqtype = type;
	option.nro_next = (uintptr_t)next;
	option.nro_status = 12345;
	return option;
}

/* S-CTRL-4 to S-CTRL-11 */
static void
test_options(void)
{
	const char *name = name_of(vale, "opt");
	struct nmreq_register reg = register_all();
	struct nmreq_port_info_get info;
	struct nmreq_option unknown = option_of(77, NULL), list[100];
	struct nmreq_opt_csb first, second;
	struct {
		struct nmreq_option opt;
		char body[4096];
	} eventfds;
	int fd = device_open(), i;

	memset(&info, 0, sizeof(info));
	check_call(control_with(fd, NETMAP_REQ_PORT_INFO_GET, name, &info,
				&unknown), 0,
		   "S-CTRL-10 PORT_INFO_GET with an unknown option");
	check_number(unknown.nro_status, EOPNOTSUPP, "S-CTRL-10 its status");
	unknown = option_of(77, NULL);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&unknown), EOPNOTSUPP,
		   "S-CTRL-10 REGISTER with an unknown option");
	check_number(unknown.nro_status, EOPNOTSUPP, "S-CTRL-10 its status");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
		   "S-CTRL-10 everything is undone");
	unknown = option_of(77, NULL);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "nosuchif0", &reg,
				&unknown), ENXIO,
		   "S-CTRL-9 failure before the option is looked at");
	check_number(unknown.nro_status, EOPNOTSUPP, "S-CTRL-9 its status");

	unknown = option_of(0, NULL);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&unknown), EINVAL, "S-CTRL-5 type 0");
	check_number(unknown.nro_status, EINVAL, "S-CTRL-5 its status");
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	second.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	first.nro_opt = option_of(NETMAP_REQ_OPT_CSB, &second);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &first),
		   EINVAL, "S-CTRL-5 an option twice");
	check(first.nro_opt.nro_status == EINVAL &&
	      second.nro_opt.nro_status == EINVAL,
	      "S-CTRL-5 both have status EINVAL");
	check(first.nro_opt.nro_next == (uintptr_t)&second,
	      "S-CTRL-4 nro_next is unchanged");

	memset(&eventfds, 0, sizeof(eventfds));
	eventfds.opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NULL);
	eventfds.opt.nro_size = 4097;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&eventfds), EMSGSIZE,
		   "S-CTRL-6 nro_size over 4096");
	eventfds.opt.nro_size = 24;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&eventfds), EOPNOTSUPP,
		   "S-CTRL-11 EVENTFDS on REGISTER");

	unknown = option_of(77, &unknown);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&unknown), EMSGSIZE,
		   "S-CTRL-7 an unknown option linked to itself");
	first.nro_opt = option_of(NETMAP_REQ_OPT_CSB, &first);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, &first),
		   EINVAL, "S-CTRL-7 a known option linked to itself");
	eventfds.opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NULL);
	eventfds.opt.nro_size = 1000;
	for (i = 0; i < 99; i++)
		list[i] = option_of(77, i == 98 ? (void *)&eventfds :
						  (void *)&list[i + 1]);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg, list),
		   EMSGSIZE, "S-CTRL-7 99 unknown options and a long one");

	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				forbidden), EFAULT,
		   "S-CTRL-3 unreadable option");
	unknown = option_of(77, forbidden);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, name, &reg,
				&unknown), EFAULT,
		   "S-CTRL-3 unreadable second option");
	close(fd);
	check(!port_exists(name), "S-CTRL-10 no port is left");
}

/* REGISTER of a name with flags on a descriptor that stays open. */
static int
bind_with(int fd, const char *name, uint32_t mode, uint16_t ring,
	  uint64_t flags)
{
	struct nmreq_register reg = register_all();

	reg.nr_mode = mode;
	reg.nr_ringid = ring;
	reg.nr_flags = flags;
	return control(fd, NETMAP_REQ_REGISTER, name, &reg);
}

/* S-REG-5, S-REG-6 */
static void
test_exclusive(void)
{
	const char *name = name_of(vale, "ex"), *two = name_of(vale, "two");
	struct nmreq_register reg = register_all();
	int a = device_open(), b = device_open(), c = device_open();

	check_call(bind_with(a, name, NR_REG_ALL_NIC, 0, 0), 0,
		   "S-REG-5 a plain bind");
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE), EBUSY,
		   "S-REG-5 exclusive on a ring with a user");
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0, 0), 0,
		   "S-REG-5 plain binds share");
	close(a);
	close(b);

	a = device_open();
	b = device_open();
	check_call(bind_with(a, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE), 0,
		   "S-REG-5 exclusive on a free port");
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0, 0), EBUSY,
		   "S-SCEN-1 a plain second bind");
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE), EBUSY,
		   "S-SCEN-1 an exclusive second bind");
	close(a);
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0, NR_EXCLUSIVE), 0,
		   "S-REG-5 the claim ends with its holder");
	close(b);

	reg.nr_tx_rings = reg.nr_rx_rings = 2;
	reg.nr_mode = NR_REG_ONE_NIC;
	reg.nr_flags = NR_EXCLUSIVE;
	a = device_open();
	b = device_open();
	check_call(control(a, NETMAP_REQ_REGISTER, two, &reg), 0,
		   "S-REG-5 ring 0 of 2");
	check_call(bind_with(b, two, NR_REG_ONE_NIC, 1, NR_EXCLUSIVE), 0,
		   "S-REG-5 disjoint selections do not conflict");
	check_call(bind_with(c, two, NR_REG_ALL_NIC, 0, 0), EBUSY,
		   "S-REG-5 any held ring is enough");
	close(a);
	close(b);

	a = device_open();
	b = device_open();
	check_call(bind_with(a, name, NR_REG_ALL_NIC, 0,
			     NR_EXCLUSIVE | NR_RX_RINGS_ONLY), 0,
		   "S-REG-5 the rx side");
	check_call(bind_with(b, name, NR_REG_ALL_NIC, 0,
			     NR_EXCLUSIVE | NR_TX_RINGS_ONLY), 0,
		   "S-REG-5 and the tx side do not conflict");
	close(a);
	close(b);

	a = device_open();
	b = device_open();
	check_call(bind_with(a, name_of(vale, "p{x"), NR_REG_ALL_NIC, 0,
			     NR_EXCLUSIVE), 0, "S-REG-5 a pipe's master");
	check_call(bind_with(b, name_of(vale, "p}x"), NR_REG_ALL_NIC, 0,
			     NR_EXCLUSIVE), 0, "S-REG-5 and its slave");
	check_call(bind_with(c, name_of(vale, "p}x"), NR_REG_ALL_NIC, 0, 0),
		   EBUSY, "S-SCEN-1 a second bind of a pipe end");
	close(a);
	close(b);
	close(c);
}

/* S-REG-7, S-REG-8, S-VALE-3, S-NIFP-1 to S-NIFP-4 */
static void
test_outputs(void)
{
	struct nmreq_register reg = register_all();
	struct port port = port_open(name_of(vale, "out"));
	struct netmap_ring *tx = port_tx(&port), *rx = port_rx(&port);
	struct netmap_if *nifp = port.nifp;
	uint32_t i;
	int good = 1;

	check(port.reg.nr_tx_rings == 1 && port.reg.nr_rx_rings == 1 &&
	      port.reg.nr_tx_slots == 1024 && port.reg.nr_rx_slots == 1024,
	      "S-VALE-3 defaults: 1 ring, 1024 slots");
	check(port.reg.nr_host_tx_rings == 0 && port.reg.nr_host_rx_rings == 0,
	      "S-REG-7 no host rings");
	check(port.reg.nr_offset < port.reg.nr_memsize,
	      "S-REG-7 nr_offset is in the region");
	check(port.reg.nr_mem_id > 1, "S-MEM-2 a private region");
	check(port.reg.nr_extra_bufs == 0 && nifp->ni_bufs_head == 0,
	      "S-MEM-9 no extra buffers unless asked");
	check(strncmp(nifp->ni_name, name_of(vale, "out"), 15) == 0,
	      "S-NIFP-3 ni_name");
	check(nifp->ni_flags & NI_PRIV_MEM, "S-NIFP-3 NI_PRIV_MEM");
	check(nifp->ni_tx_rings == 1 && nifp->ni_rx_rings == 1 &&
	      nifp->ni_host_tx_rings == 1 && nifp->ni_host_rx_rings == 1,
	      "S-NIFP-1 ring counts, the host rings fake");
	check(nifp->ring_ofs[0] != 0 && nifp->ring_ofs[1] == 0 &&
	      nifp->ring_ofs[2] != 0 && nifp->ring_ofs[3] == 0,
	      "S-NIFP-2 fake host rings have offset 0");
	check(tx->num_slots == 1024 && rx->num_slots == 1024 &&
	      tx->ringid == 0 && rx->ringid == 0 && tx->nr_buf_size == 2048,
	      "S-NIFP-4 num_slots, ringid, nr_buf_size");
	check(tx->head == 0 && tx->cur == 0 && tx->tail == 1023 &&
	      rx->head == 0 && rx->cur == 0 && rx->tail == 0,
	      "S-NIFP-4 indices");
	check(tx->flags == 0 && rx->flags == 0 && tx->offset_mask == 0,
	      "S-NIFP-4 flags and offset_mask");
	for (i = 0; i < 1024; i++)
		good &= tx->slot[i].buf_idx >= 2 &&
			rx->slot[i].buf_idx >= 2 &&
			tx->slot[i].buf_idx != rx->slot[i].buf_idx &&
			tx->slot[i].len == 2048 && tx->slot[i].flags == 0 &&
			tx->slot[i].ptr == 0;
	check(good, "S-NIFP-4 slots");
	port_close(&port);

	reg.nr_tx_rings = 17;
	reg.nr_rx_rings = 2;
	reg.nr_tx_slots = 64;
	reg.nr_rx_slots = 5000;
	port = port_open_as(name_of(vale, "clamp"), reg);
	check(port.reg.nr_tx_rings == 16 && port.reg.nr_rx_rings == 2,
	      "S-VALE-3 rings are clamped to 16");
	check(port.reg.nr_tx_slots == 64 && port.reg.nr_rx_slots == 4096,
	      "S-VALE-3 slots are clamped to 4096");
	port_close(&port);

	reg = register_all();
	reg.nr_flags = NR_RX_RINGS_ONLY;
	port = port_open_as(name_of(vale, "half"), reg);
	check(port.nifp->ring_ofs[0] == 0 && port.nifp->ring_ofs[2] != 0,
	      "S-NIFP-2 RX_RINGS_ONLY shows no tx ring");
	port_close(&port);
}

/* S-SYNC-3, S-SYNC-6, S-SYNC-8 */
static void
test_indices(void)
{
	struct port port = port_open(name_of(vale, "idx"));
	struct netmap_ring *tx = port_tx(&port), *rx = port_rx(&port);

	tx->tail = 5;
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0,
		   "S-SYNC-6 a tail that the program has changed");
	check_number(tx->tail, 1023, "S-SYNC-6 is restored");
	tx->head = 5000;
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0,
		   "S-SYNC-3 a head beyond the ring");
	check(tx->head == 0 && tx->cur == 0 && tx->tail == 1023,
	      "S-SYNC-8 resets the indices");
	tx->cur = UINT32_MAX;
	tx->slot[1].buf_idx = 0xffffff;
	tx->slot[2].len = 0xffff;
	check_call(ioctl(port.fd, NIOCTXSYNC, NULL), 0,
		   "S-SYNC-3 a cur beyond the ring");
	check(tx->cur == 0 && tx->slot[1].buf_idx == 0 &&
	      tx->slot[1].len == 0 && tx->slot[2].len == 0,
	      "S-SYNC-8 resets bad slots");
	rx->head = 2000;
	check_call(ioctl(port.fd, NIOCRXSYNC, NULL), 0,
		   "S-SYNC-3 the same on the rx side");
	check(rx->head == 0 && rx->cur == 0 && rx->tail == 0,
	      "S-SYNC-8 resets the indices");
	port_close(&port);
}

/* S-MEM-11, S-MEM-12 */
static void
test_info(void)
{
	static const struct {
		const char *rule, *name;
		int info, pools;
	} cases[] = {
		{ "no such interface", "nosuchif0", ENXIO, ENXIO },
		{ "no colon", "valeX", ENOMEM, ENOMEM },
		{ "interface not attached", "$:lo", EINVAL, EINVAL },
		{ "empty pipe id", "$:i{", EINVAL, EINVAL },
		{ "a new port", "$:i", 0, 0 },
		{ "a new pipe", "$:i{9", 0, 0 },
	};
	struct port port;
	struct nmreq_port_info_get info;
	struct nmreq_pools_info pools;
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		const char *name = expand(cases[i].name);

		memset(&info, 0, sizeof(info));
		memset(&pools, 0, sizeof(pools));
		check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, name, &info),
			   cases[i].info,
			   text_of("S-MEM-11 PORT_INFO_GET", name));
		check_call(control(fd, NETMAP_REQ_POOLS_INFO_GET, name,
				   &pools), cases[i].pools,
			   text_of("S-MEM-12 POOLS_INFO_GET", name));
		check(!port_exists(name_of(vale, "i")),
		      "S-MEM-11 what came into being has vanished");
	}
	memset(&info, 0, sizeof(info));
	check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, "", &info), 0,
		   "S-MEM-11 empty name");
	check_number(info.nr_mem_id, 1, "S-MEM-11 is the global region");
	info.nr_mem_id = NO_REGION;
	check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, "", &info), EINVAL,
		   "S-MEM-11 unknown region");
	check_call(control(fd, NETMAP_REQ_POOLS_INFO_GET, "", &pools), ENXIO,
		   "S-MEM-12 empty name");

	port = port_open(name_of(vale, "bound"));
	memset(&info, 0, sizeof(info));
	memset(&pools, 0, sizeof(pools));
	check_call(control(port.fd, NETMAP_REQ_PORT_INFO_GET,
			   name_of(vale, "bound"), &info), 0,
		   "S-LIFE-8 PORT_INFO_GET on a bound descriptor");
	check(info.nr_memsize == port.reg.nr_memsize &&
	      info.nr_mem_id == port.reg.nr_mem_id &&
	      info.nr_tx_slots == 1024 && info.nr_rx_slots == 1024 &&
	      info.nr_tx_rings == 1 && info.nr_rx_rings == 1,
	      "S-MEM-11 agrees with REGISTER");
	check_call(control(port.fd, NETMAP_REQ_POOLS_INFO_GET,
			   name_of(vale, "bound"), &pools), 0,
		   "S-MEM-12 POOLS_INFO_GET on a bound descriptor");
	check(pools.nr_memsize == port.reg.nr_memsize &&
	      pools.nr_mem_id == port.reg.nr_mem_id,
	      "S-MEM-12 agrees with REGISTER");
	check(pools.nr_if_pool_offset < pools.nr_ring_pool_offset &&
	      pools.nr_ring_pool_offset < pools.nr_buf_pool_offset &&
	      pools.nr_buf_pool_offset + (uint64_t)pools.nr_buf_pool_objtotal *
	      pools.nr_buf_pool_objsize <= pools.nr_memsize,
	      "S-MEM-1 order of the pools");
	check(NETMAP_BUF(port_tx(&port), 0) ==
	      port.mem + pools.nr_buf_pool_offset,
	      "S-MEM-1 buffer 0 starts the buffer pool");
	check_number(pools.nr_buf_pool_objsize, 2048, "S-MEM-7 buffer size");
	port_close(&port);
	close(fd);
}

/* S-VALE-16 to S-VALE-18, S-VALE-12, S-VALE-15 */
static void
test_switch(void)
{
	static const struct {
		const char *rule, *name;
		uint16_t type;
		int error;
	} cases[] = {
		{ "S-VALE-16 ATTACH, no switch", "lo",
		  NETMAP_REQ_VALE_ATTACH, EINVAL },
		{ "S-VALE-16 ATTACH, no interface", "$:nosuchif0",
		  NETMAP_REQ_VALE_ATTACH, EINVAL },
		{ "S-VALE-1 ATTACH, malformed", "valeX",
		  NETMAP_REQ_VALE_ATTACH, ENOMEM },
		{ "S-VALE-17 DETACH, no switch", "lo",
		  NETMAP_REQ_VALE_DETACH, EINVAL },
		{ "S-VALE-17 DETACH, absent", "$:nosuchif0",
		  NETMAP_REQ_VALE_DETACH, ENXIO },
		{ "S-VALE-4 DETACH, not attached", "$:lo",
		  NETMAP_REQ_VALE_DETACH, ENXIO },
		{ "S-VALE-1 DETACH, malformed", "valeX",
		  NETMAP_REQ_VALE_DETACH, ENXIO },
		{ "S-VALE-17 DETACH, ephemeral", "$:eph",
		  NETMAP_REQ_VALE_DETACH, EBUSY },
		{ "S-VALE-18 LIST, not vale", "lo", NETMAP_REQ_VALE_LIST,
		  EINVAL },
		{ "S-VALE-18 LIST, no colon", "valeX", NETMAP_REQ_VALE_LIST,
		  ENOENT },
		{ "S-VALE-18 LIST, no such switch", "valeNone:p",
		  NETMAP_REQ_VALE_LIST, ENOENT },
		{ "S-VALE-18 LIST, a port", "$:eph", NETMAP_REQ_VALE_LIST,
		  0 },
		{ "S-VALE-18 LIST, an absent port", "$:absent",
		  NETMAP_REQ_VALE_LIST, 0 },
		{ "S-VALE-12 NEWIF, vale name", "vale7", NETMAP_REQ_VALE_NEWIF,
		  EINVAL },
		{ "S-VALE-12 NEWIF, 16 characters", "abcdefghijklmnop",
		  NETMAP_REQ_VALE_NEWIF, EINVAL },
		{ "S-VALE-12 NEWIF, name in use", "lo", NETMAP_REQ_VALE_NEWIF,
		  EEXIST },
		{ "S-VALE-15 DELIF, absent", "nosuchif0",
		  NETMAP_REQ_VALE_DELIF, ENXIO },
		{ "S-VALE-15 DELIF, not ours", "lo", NETMAP_REQ_VALE_DELIF,
		  EINVAL },
	};
	struct port port = port_open(name_of(vale, "eph"));
	union {
		struct nmreq_vale_attach attach;
		struct nmreq_vale_list list;
		struct nmreq_vale_newif newif;
	} body;
	struct nmreq_header header;
	uint32_t bridge = 0;
	int fd = device_open(), seen = 0, steps;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		const char *name = expand(cases[i].name);

		memset(&body, 0, sizeof(body));
		if (cases[i].type == NETMAP_REQ_VALE_ATTACH)
			body.attach.reg = register_all();
		check_call(control(fd, cases[i].type, name,
				   cases[i].type == NETMAP_REQ_VALE_DELIF ?
				   NULL : (void *)&body), cases[i].error,
			   text_of(cases[i].rule, name));
		if (strcmp(cases[i].name, "$:eph") == 0 &&
		    cases[i].error == 0) {
			bridge = body.list.nr_bridge_idx;
			check(body.list.nr_port_idx < 255,
			      "S-VALE-18 it has an index");
		}
		if (strcmp(cases[i].name, "$:absent") == 0)
			check_number(body.list.nr_port_idx, 255,
				     "S-VALE-18 index 255: absent");
	}
	memset(&body, 0, sizeof(body));
	body.attach.reg = register_all();
	body.attach.reg.nr_mem_id = NO_REGION;
	check_call(control(fd, NETMAP_REQ_VALE_ATTACH,
			   name_of(vale, "nosuchif0"), &body.attach), EINVAL,
		   "S-VALE-16 ATTACH, unknown region");
	memset(&body, 0, sizeof(body));
	body.newif.nr_mem_id = NO_REGION;
	check_call(control(fd, NETMAP_REQ_VALE_NEWIF, "rwnew0", &body.newif),
		   EINVAL, "S-VALE-12 NEWIF, unknown region");
	check_number(if_nametoindex("rwnew0"), 0,
		     "S-VALE-12 no device was made");

	/* The walk meets the port once, and ends. */
	memset(&body, 0, sizeof(body));
	for (steps = 0; steps < 10000; steps++) {
		header = header_of(NETMAP_REQ_VALE_LIST, "", &body.list);
		if (ioctl(fd, NIOCCTRL, &header) == -1)
			break;
		if (strcmp(header.nr_name, name_of(vale, "eph")) == 0 &&
		    body.list.nr_bridge_idx == bridge)
			seen++;
		body.list.nr_port_idx++;
	}
	check_call(-1, ENOENT, "S-VALE-18 the walk ends with ENOENT");
	check_number(seen, 1, "S-VALE-18 and has met the port once");
	port_close(&port);
	check(!port_exists(name_of(vale, "eph")),
	      "S-VALE-3 the port goes with its last user");
	close(fd);
}

static struct nmreq
legacy_of(const char *name)
{
	struct nmreq req;

	memset(&req, 0, sizeof(req));
	req.nr_version = api_version;
	snprintf(req.nr_name, sizeof(req.nr_name), "%s", name);
	return req;
}

/* S-LEG-1 to S-LEG-5 */
static void
test_legacy(void)
{
	static const struct {
		const char *rule, *name;
		uint32_t version;
		uint16_t cmd, ringid;
		uint32_t flags;
		int error;
	} cases[] = {
		{ "S-LEG-1 version 13", "$:l", 13, 0, 0, 0, EINVAL },
		{ "S-LEG-1 version 0", "$:l", 0, 0, 0, 0, EINVAL },
		{ "S-LEG-1 any newer version", "$:l", 99, 0, 0, 0, 0 },
		{ "S-LEG-2 no mode: all rings", "$:l", 14, 0, 0, 0, 0 },
		{ "S-LEG-2 NETMAP_HW_RING, ring 0", "$:l", 14, 0,
		  NETMAP_HW_RING, 0, 0 },
		{ "S-LEG-2 NETMAP_HW_RING, ring 1 of 1", "$:l", 14, 0,
		  NETMAP_HW_RING | 1, 0, EINVAL },
		{ "S-LEG-2 NETMAP_SW_RING", "$:l", 14, 0, NETMAP_SW_RING, 0,
		  EINVAL },
		{ "S-LEG-2 NETMAP_NO_TX_POLL", "$:l", 14, 0,
		  NETMAP_NO_TX_POLL, NR_REG_ALL_NIC, 0 },
		{ "S-LEG-2 pipe by mode", "$:l", 14, 0, 3,
		  NR_REG_PIPE_MASTER, 0 },
		{ "S-LEG-2 pipe by name", "$:l}3", 14, 0, 0, NR_REG_ALL_NIC,
		  0 },
		{ "S-LEG-2 mode 9", "$:l", 14, 0, 0, 9, EINVAL },
		{ "S-LEG-2 no such interface", "nosuchif0", 14, 0, 0,
		  NR_REG_ALL_NIC, ENXIO },
		{ "S-LEG-3 nr_cmd 3", "$:l", 14, NETMAP_BDG_REGOPS, 0, 0,
		  EINVAL },
		{ "S-LEG-3 nr_cmd 4", "$:l", 14, NETMAP_BDG_LIST, 0, 0,
		  EINVAL },
		{ "S-LEG-3 nr_cmd 8", "$:l", 14, NETMAP_PT_HOST_CREATE, 0, 0,
		  ENOMEM },
		{ "S-LEG-3 nr_cmd 9", "$:l", 14, NETMAP_PT_HOST_DELETE, 0, 0,
		  ENOMEM },
		{ "S-LEG-3 nr_cmd 99", "$:l", 14, 99, 0, 0, EINVAL },
		{ "S-LEG-3 ATTACH, no interface", "$:nosuchif0", 14,
		  NETMAP_BDG_ATTACH, 0, 0, EINVAL },
		{ "S-LEG-3 DETACH, absent", "$:nosuchif0", 14,
		  NETMAP_BDG_DETACH, 0, 0, ENXIO },
		{ "S-LEG-3 DELIF, absent", "nosuchif0", 14,
		  NETMAP_BDG_DELIF, 0, 0, ENXIO },
	};
	struct nmreq req;
	struct port port;
	int fd;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		const char *name = expand(cases[i].name);

		fd = device_open();
		req = legacy_of(name);
		req.nr_version = cases[i].version;
		req.nr_cmd = cases[i].cmd;
		req.nr_ringid = cases[i].ringid;
		req.nr_flags = cases[i].flags;
		check_call(ioctl(fd, NIOCREGIF, &req), cases[i].error,
			   text_of(cases[i].rule, name));
		check(req.nr_version == cases[i].version &&
		      req.nr_ringid == cases[i].ringid &&
		      req.nr_flags == cases[i].flags,
		      "S-LEG-1 version, ring and flags unchanged");
		close(fd);
	}

	fd = device_open();
	req = legacy_of(name_of(vale, "l"));
	req.nr_arg3 = 3;
	check_call(ioctl(fd, NIOCREGIF, &req), 0, "S-LEG-2 NIOCREGIF");
	check(req.nr_tx_rings == 1 && req.nr_rx_rings == 1 &&
	      req.nr_tx_slots == 1024 && req.nr_rx_slots == 1024 &&
	      req.nr_offset < req.nr_memsize && req.nr_arg2 > 1,
	      "S-LEG-2 outputs");
	check_number(req.nr_arg3, 3, "S-LEG-2 extra buffers granted");
	check_call(ioctl(fd, NIOCREGIF, &req), EBUSY,
		   "S-LIFE-2 a second NIOCREGIF");
	close(fd);

	fd = device_open();
	req = legacy_of(name_of(vale, "l"));
	req.nr_version = 13;
	check_call(ioctl(fd, NIOCGINFO, &req), EINVAL,
		   "S-LEG-1 NIOCGINFO, version 13");
	req = legacy_of("nosuchif0");
	check_call(ioctl(fd, NIOCGINFO, &req), ENXIO,
		   "S-LEG-4 NIOCGINFO, no such interface");
	port = port_open(name_of(vale, "l"));
	req = legacy_of(name_of(vale, "l"));
	check_call(ioctl(fd, NIOCGINFO, &req), 0, "S-LEG-4 NIOCGINFO");
	check(req.nr_memsize == port.reg.nr_memsize &&
	      req.nr_arg2 == port.reg.nr_mem_id && req.nr_tx_slots == 1024,
	      "S-LEG-4 outputs");
	req = legacy_of(name_of(vale, "l"));
	req.nr_cmd = NETMAP_BDG_LIST;
	check_call(ioctl(fd, NIOCGINFO, &req), 0, "S-LEG-4 LIST, a port");
	req = legacy_of("valeNone:p");
	req.nr_cmd = NETMAP_BDG_LIST;
	check_call(ioctl(fd, NIOCGINFO, &req), ENOENT,
		   "S-LEG-4 LIST, no such switch");
	port_close(&port);
	close(fd);
}

/* S-VALE-12 to S-VALE-15, S-SCEN-5: needs the right to make devices. */
static void
test_newif(void)
{
	struct nmreq_vale_attach attach;
	struct nmreq_vale_detach detach;
	struct nmreq_vale_newif newif;
	const char *name = "rwnew0", *there = name_of(vale, "rwnew0");
	int fd = device_open(), round;

	for (round = 0; round < 2; round++) {
		memset(&newif, 0, sizeof(newif));
		memset(&attach, 0, sizeof(attach));
		memset(&detach, 0, sizeof(detach));
		attach.reg = register_all();
		check_call(control(fd, NETMAP_REQ_VALE_NEWIF, name, &newif),
			   0, "S-VALE-12 NEWIF");
		check_call(control(fd, NETMAP_REQ_VALE_NEWIF, name, &newif),
			   EEXIST, "S-VALE-12 NEWIF twice");
		check_call(control(fd, NETMAP_REQ_VALE_ATTACH, there,
				   &attach), 0, "S-VALE-13 ATTACH");
		check_call(control(fd, NETMAP_REQ_VALE_ATTACH, there,
				   &attach), EBUSY, "S-VALE-14 ATTACH twice");
		check_call(control(fd, NETMAP_REQ_VALE_NEWIF, name, &newif),
			   EEXIST, "S-SCEN-5 NEWIF of an attached one");
		check_call(control(fd, NETMAP_REQ_VALE_DELIF, name, NULL),
			   EBUSY, "S-VALE-14 DELIF while attached");
		check_call(control(fd, NETMAP_REQ_VALE_DETACH, there,
				   &detach), 0, "S-VALE-17 DETACH");
		check_number(detach.port_index, attach.port_index,
			     "S-VALE-2 the index that ATTACH gave");
		check_call(control(fd, NETMAP_REQ_VALE_DETACH, there,
				   &detach), ENXIO, "S-VALE-17 DETACH twice");
		check_call(control(fd, NETMAP_REQ_VALE_DELIF, name, NULL), 0,
			   "S-VALE-15 DELIF");
		check_number(if_nametoindex(name), 0,
			     "S-VALE-15 the device is gone");
	}
	close(fd);
}

int
main(int argc, char **argv)
{
	struct port bystander;
	struct netmap_ring *tx, *rx;

	if (argc > 1)
		api_select(argv[1]);
	if (argc > 2)
		vale = argv[2];
	make_pages();

	/* A port that uses none of it sees none of it. */
	bystander = port_open("valeBy:stander");
	tx = port_tx(&bystander);
	rx = port_rx(&bystander);

	test_descriptor();
	test_envelope();
	test_options();
	test_register();
	test_exclusive();
	test_outputs();
	test_indices();
	test_info();
	test_switch();
	test_legacy();
	if (argc > 3 && strcmp(argv[3], "newif") == 0)
		test_newif();

	port_txsync(&bystander);
	port_rxsync(&bystander);
	check(tx->head == 0 && tx->cur == 0 && tx->tail == 1023 &&
	      rx->head == 0 && rx->cur == 0 && rx->tail == 0 &&
	      port_exists("valeBy:stander"),
	      "a bystander's port is as it was");
	port_close(&bystander);
	return check_result();
}
