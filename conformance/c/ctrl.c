/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CTRL: NIOCCTRL takes a header; behind it are a body, whose size follows from
 * the type of the request, and a list of options. What is wrong with any of
 * them is told before the request itself is looked at.
 */
#include "case.h"
#include "request.h"

#include <stddef.h>

/* What each type of request needs, and bodies of which nothing comes. */
static const struct {
	uint16_t type;
	uint16_t size;
	const char *name;	/* a port that it does not find */
	int error;
} requests[] = {
	{ NETMAP_REQ_REGISTER, 56, "nosuchif0", ENXIO },
	{ NETMAP_REQ_PORT_INFO_GET, 32, "nosuchif0", ENXIO },
	{ NETMAP_REQ_VALE_ATTACH, 64, "vale$:nosuchif0", EINVAL },
	{ NETMAP_REQ_VALE_DETACH, 8, "vale$:nosuchif0", ENXIO },
	{ NETMAP_REQ_VALE_LIST, 8, "vale$:x", ENOENT },
	{ NETMAP_REQ_PORT_HDR_SET, 8, "vale$:x", ENXIO },
	{ NETMAP_REQ_PORT_HDR_GET, 8, "vale$:x", ENXIO },
	{ NETMAP_REQ_VALE_NEWIF, 16, "valeX", EINVAL },
	{ NETMAP_REQ_VALE_DELIF, 0, "nosuchif0", ENXIO },
	{ NETMAP_REQ_VALE_POLLING_ENABLE, 16, "nosuchif0", EINVAL },
	{ NETMAP_REQ_VALE_POLLING_DISABLE, 16, "nosuchif0", EINVAL },
	{ NETMAP_REQ_POOLS_INFO_GET, 64, "nosuchif0", ENXIO },
	{ NETMAP_REQ_SYNC_KLOOP_START, 8, "", ENXIO },
	{ NETMAP_REQ_SYNC_KLOOP_STOP, 0, "", ENXIO },
	{ NETMAP_REQ_CSB_ENABLE, 0, "", EINVAL },
	{ 0, 0, "", EINVAL },
	{ 16, 0, "", EINVAL },
	{ 65535, 0, "", EINVAL },
};

static const char *
of_type(const char *text, uint32_t type)
{
	return line("type %u: %s", type, text);
}

static void
versions(void)
{
	static const uint16_t wrong[] = { 0, 1, 11, 12, 13, 16, 65535 };
	struct nmreq_port_info_get info;
	struct nmreq_header header;
	int fd = device_open();
	uint16_t version;
	size_t i;

	memset(&info, 0, sizeof(info));
	for (i = 0; i < COUNT(wrong); i++) {
		header = header_of(NETMAP_REQ_PORT_INFO_GET, "", &info);
		header.nr_version = wrong[i];
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL, "wrong");
		check_number(header.nr_version, wrong[i], "not modified");
	}
	for (version = 14; version <= 15; version++) {
		header = header_of(NETMAP_REQ_PORT_INFO_GET, "", &info);
		header.nr_version = version;
		check_call(ioctl(fd, NIOCCTRL, &header), 0, "14 or 15");
		check_number(header.nr_version, version, "not modified");
	}
}

static void
reserved_field(void)
{
	static const uint32_t wrong[] = { 1, 2, 0x80000000, UINT32_MAX };
	struct nmreq_port_info_get info;
	int fd = device_open();
	size_t i;

	memset(&info, 0, sizeof(info));
	for (i = 0; i < COUNT(wrong); i++) {
		struct nmreq_header header =
			header_of(NETMAP_REQ_PORT_INFO_GET, "", &info);

		header.nr_reserved = wrong[i];
		check_call(ioctl(fd, NIOCCTRL, &header), EINVAL,
			   "nr_reserved is not 0");
	}
}

static void
names_end(void)
{
	struct nmreq_port_info_get info;
	struct nmreq_header header = header_of(NETMAP_REQ_PORT_INFO_GET, "",
					       &info);
	int fd = device_open();

	memset(&info, 0, sizeof(info));
	memset(header.nr_name, 'x', sizeof(header.nr_name));
	check_call(ioctl(fd, NIOCCTRL, &header), ENXIO,
		   "64 characters, no NUL");
	check_number(header.nr_name[NETMAP_REQ_IFNAMSIZ - 1], 0,
		     "the last is a NUL now");
	check_number(header.nr_name[NETMAP_REQ_IFNAMSIZ - 2], 'x',
		     "the others are as they were");
	snprintf(header.nr_name, sizeof(header.nr_name), "%s",
		 own("vale$:a"));
	memset(header.nr_name + 20, 'y', 44);
	check_call(ioctl(fd, NIOCCTRL, &header), 0,
		   "what is behind a NUL is no part of the name");
}

static void
sizes_of_bodies(void)
{
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(requests); i++) {
		const char *name = own(requests[i].name);
		uint16_t type = requests[i].type, size = requests[i].size;

		if (size == 0)
			continue;
		check_call(control(fd, type, name, before_guard(size)),
			   requests[i].error, of_type("its size", type));
		check_call(control(fd, type, name, before_guard(size - 1)),
			   EFAULT, of_type("one byte less", type));
	}
}

static void
bodies_where_they_belong(void)
{
	char body[64];
	int fd = device_open();
	size_t i;

	memset(body, 0, sizeof(body));
	for (i = 0; i < COUNT(requests); i++) {
		uint16_t type = requests[i].type;
		const char *name = own(requests[i].name);

		if (requests[i].size == 0) {
			check_call(control(fd, type, name, body), EINVAL,
				   of_type("a body not expected", type));
			check_call(control(fd, type, name, NULL),
				   requests[i].error, of_type("none", type));
		} else {
			check_call(control(fd, type, name, NULL), EINVAL,
				   of_type("no body", type));
		}
	}
}

static void
unreadable_memory(void)
{
	struct nmreq_option option = option_of(77, before_guard(0));
	struct nmreq_register reg = register_all();
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(requests); i++)
		if (requests[i].size != 0)
			check_call(control(fd, requests[i].type, "",
					   before_guard(0)), EFAULT,
				   of_type("body", requests[i].type));
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				before_guard(0)), EFAULT, "option");
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				before_guard(sizeof(option) - 1)), EFAULT,
		   "half an option");
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&option), EFAULT, "second option");
	check(!port_exists(own("vale$:a")), "no port came into being");
}

/* A body that cannot be written back fails a request that has succeeded. */
static void
unwritable_memory(void)
{
	struct nmreq_port_info_get info;
	int fd = device_open();

	memset(&info, 0, sizeof(info));
	check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, "",
			   read_only(&info, sizeof(info))), EFAULT,
		   "read-only body");
}

static void
bodies_come_back_on_success_only(void)
{
	static const struct {
		const char *name;
		uint32_t mode;
	} failing[] = {
		{ "nosuchif0", NR_REG_ALL_NIC }, { "vale$:a", NR_REG_SW },
		{ "vale$:a", 9 }, { "vale$:a{", NR_REG_ALL_NIC },
	};
	struct nmreq_register reg, before;
	struct nmreq_port_info_get info, info_before;
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(failing); i++) {
		memset(&reg, 0xa5, sizeof(reg));
		reg.nr_mem_id = 0;
		reg.nr_flags = 0;
		reg.nr_mode = failing[i].mode;
		before = reg;
		check(control(fd, NETMAP_REQ_REGISTER, own(failing[i].name),
			      &reg) == -1, "REGISTER fails");
		check(memcmp(&reg, &before, sizeof(reg)) == 0,
		      "its body is as it was");
	}
	memset(&info, 0xa5, sizeof(info));
	info.nr_mem_id = 0;
	info_before = info;
	check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, "nosuchif0", &info),
		   ENXIO, "PORT_INFO_GET fails");
	check(memcmp(&info, &info_before, sizeof(info)) == 0,
	      "its body is as it was");
	memset(&info, 0xa5, sizeof(info));
	info.nr_mem_id = 0;
	check_call(control(fd, NETMAP_REQ_PORT_INFO_GET, own("vale$:a"),
			   &info), 0, "PORT_INFO_GET succeeds");
	check(info.nr_tx_slots == 1024 && info.nr_mem_id != 0,
	      "its body has the answer");
}

static void
pointers_come_back_unchanged(void)
{
	struct nmreq_option second = option_of(78, NULL);
	struct nmreq_option first = option_of(77, &second);
	static const char *const names[] = { "vale$:a", "nosuchif0" };
	struct nmreq_port_info_get info;
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		struct nmreq_header header = header_of(
			NETMAP_REQ_PORT_INFO_GET, own(names[i]), &info);

		memset(&info, 0, sizeof(info));
		header.nr_options = (uintptr_t)&first;
		check_call(ioctl(fd, NIOCCTRL, &header), i ? ENXIO : 0,
			   "a request with two options");
		check(header.nr_options == (uintptr_t)&first &&
		      header.nr_body == (uintptr_t)&info &&
		      first.nro_next == (uintptr_t)&second &&
		      second.nro_next == 0, "every pointer is as it was");
		check(first.nro_reqtype == 77 && second.nro_reqtype == 78,
		      "and the types of the options");
	}
}

/* Of an option that failed, or of a failed request, the body stays. */
static void
bodies_of_options(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_opt_offsets offsets, before;
	int fd = device_open();

	memset(&offsets, 0, sizeof(offsets));
	offsets.nro_opt = option_of(NETMAP_REQ_OPT_OFFSETS, NULL);
	offsets.nro_max_offset = 100000;
	before = offsets;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&offsets), EINVAL, "an offset too large");
	check_number(offsets.nro_opt.nro_status, EINVAL, "says its status");
	check(memcmp((char *)&offsets + sizeof(offsets.nro_opt),
		     (char *)&before + sizeof(before.nro_opt),
		     sizeof(offsets) - sizeof(offsets.nro_opt)) == 0,
	      "the body of the option is as it was");
}

static int
try_options(void *options)
{
	return try_with(own("vale$:a"), register_all(), options);
}

static void
an_option_of_type_0(void)
{
	struct nmreq_option third = option_of(78, NULL);
	struct nmreq_option second = option_of(0, &third);
	struct nmreq_option first = option_of(77, &second);

	check_call(try_options(&first), EINVAL, "type 0");
	check_number(second.nro_status, EINVAL, "its status");
	check_number(first.nro_status, 0, "of one before it: cleared");
	check_number(third.nro_status, STATUS_UNTOUCHED,
		     "of one after it: not looked at");
}

static void
unknown_options_are_kept(void)
{
	static const uint32_t types[] = {
		NETMAP_REQ_OPT_MAX, 7, 77, 0x80000000, UINT32_MAX,
	};
	struct nmreq_port_info_get info;
	int fd = device_open();
	size_t i;

	for (i = 0; i < COUNT(types); i++) {
		/* Nothing behind the head is read, and two are no repetition. */
		struct nmreq_option *second = (struct nmreq_option *)
			before_guard(sizeof(*second));
		struct nmreq_option first = option_of(types[i], second);

		memset(&info, 0, sizeof(info));
		*second = option_of(types[i], NULL);
		check_call(control_with(fd, NETMAP_REQ_PORT_INFO_GET,
					own("vale$:a"), &info, &first), 0,
			   "an unknown option, twice");
		check(first.nro_status == EOPNOTSUPP &&
		      second->nro_status == EOPNOTSUPP, "their status");
	}
}

static void
an_option_twice(void)
{
	struct nmreq_opt_csb last;
	struct nmreq_option between;
	struct nmreq_opt_csb first;

	memset(&first, 0, sizeof(first));
	memset(&last, 0, sizeof(last));
	last.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	between = option_of(77, &last);
	first.nro_opt = option_of(NETMAP_REQ_OPT_CSB, &between);
	check_call(try_options(&first), EINVAL, "an option twice");
	check_number(first.nro_opt.nro_status, EINVAL, "status of the first");
	check_number(last.nro_opt.nro_status, EINVAL, "status of the second");
	check_number(between.nro_status, 0, "of one between them: cleared");
}

static const struct {
	uint32_t type;
	uint16_t size;	/* behind the head */
} options[] = {
	{ NETMAP_REQ_OPT_EXTMEM, 72 },
	{ NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, 0 },
	{ NETMAP_REQ_OPT_CSB, 16 },
	{ NETMAP_REQ_OPT_SYNC_KLOOP_MODE, 8 },
	{ NETMAP_REQ_OPT_OFFSETS, 32 },
};

/* An option of which so much can be read, on a request that ignores it. */
static int
ask_with(uint32_t type, uint64_t nro_size, size_t readable)
{
	struct nmreq_option *option =
		(struct nmreq_option *)before_guard(readable);
	struct nmreq_port_info_get info;
	int fd = device_open(), result, error;

	memset(&info, 0, sizeof(info));
	*option = option_of(type, NULL);
	option->nro_size = nro_size;
	result = control_with(fd, NETMAP_REQ_PORT_INFO_GET, "", &info, option);
	error = errno;
	close(fd);
	errno = error;
	return result;
}

static void
sizes_of_options(void)
{
	const size_t head = sizeof(struct nmreq_option);
	size_t i;

	for (i = 0; i < COUNT(options); i++) {
		uint32_t type = options[i].type;
		size_t size = head + options[i].size;

		check_call(ask_with(type, 0, size), 0,
			   of_type("an option of its size", type));
		if (options[i].size != 0) {
			check_call(ask_with(type, 0, size - 1), EFAULT,
				   of_type("cut short", type));
			check_call(ask_with(type, 4096, size), 0,
				   of_type("nro_size is ignored", type));
		}
		check_call(ask_with(type, 4097, 5000), EMSGSIZE,
			   of_type("nro_size over 4096", type));
	}
	check_call(ask_with(77, UINT64_MAX, head), 0,
		   "of an unknown option it is ignored");
}

static void
size_of_eventfds(void)
{
	const uint32_t type = NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS;

	check_call(ask_with(type, 23, 24), 0, "less than the head: no body");
	check_call(ask_with(type, 24, 24), 0, "no event");
	check_call(ask_with(type, 25, 24), EFAULT, "one byte, not there");
	check_call(ask_with(type, 40, 40), 0, "two events");
	check_call(ask_with(type, 40, 39), EFAULT, "cut short");
}

/*
 * The longest lists that fit. PORT_INFO_GET's body has 32 bytes, REGISTER's 56;
 * each option counts for 32 bytes besides its own.
 */
static void
limits_of_the_list(void)
{
	enum { MANY = 130 };
	static struct nmreq_option list[MANY];
	static const struct {
		uint16_t type;
		int count, error;
	} counts[] = {
		{ NETMAP_REQ_PORT_INFO_GET, 128, 0 },
		{ NETMAP_REQ_PORT_INFO_GET, 129, EMSGSIZE },
		{ NETMAP_REQ_REGISTER, 127, EOPNOTSUPP },
		{ NETMAP_REQ_REGISTER, 128, EMSGSIZE },
	};
	static const struct {
		uint32_t last;
		int before, error;
	} tails[] = {
		{ NETMAP_REQ_OPT_OFFSETS, 125, EOPNOTSUPP },
		{ NETMAP_REQ_OPT_OFFSETS, 126, EMSGSIZE },
		{ NETMAP_REQ_OPT_SYNC_KLOOP_MODE, 126, EOPNOTSUPP },
		{ NETMAP_REQ_OPT_SYNC_KLOOP_MODE, 127, EMSGSIZE },
	};
	struct {
		struct nmreq_option opt;
		char body[72];
	} last;
	size_t i;
	int k;

	for (i = 0; i < COUNT(counts); i++) {
		char body[56];
		int fd = device_open();

		memset(body, 0, sizeof(body));
		if (counts[i].type == NETMAP_REQ_REGISTER) {
			struct nmreq_register reg = register_all();

			memcpy(body, &reg, sizeof(body));
		}
		for (k = 0; k < counts[i].count; k++)
			list[k] = option_of(77, k + 1 < counts[i].count ?
					    &list[k + 1] : NULL);
		check_call(control_with(fd, counts[i].type, own("vale$:a"),
					body, list), counts[i].error,
			   "a list of unknown options");
		close(fd);
	}
	for (i = 0; i < COUNT(tails); i++) {
		memset(&last, 0, sizeof(last));
		last.opt = option_of(tails[i].last, NULL);
		for (k = 0; k < tails[i].before; k++)
			list[k] = option_of(77, k + 1 < tails[i].before ?
					    (void *)&list[k + 1] : &last);
		check_call(try_options(list), tails[i].error,
			   "and one with a body at the end");
	}
}

static void
limits_of_one_option(void)
{
	struct {
		struct nmreq_option opt;
		char body[4096];
	} eventfds;
	struct nmreq_option unknown;

	memset(&eventfds, 0, sizeof(eventfds));
	eventfds.opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NULL);
	eventfds.opt.nro_size = 4040;
	check_call(try_options(&eventfds), EOPNOTSUPP,
		   "body and option are 4096 bytes");
	eventfds.opt.nro_size = 4041;
	check_call(try_options(&eventfds), EMSGSIZE, "one more");
	unknown = option_of(77, &eventfds);
	eventfds.opt.nro_size = 4017;
	check_call(try_options(&unknown), EMSGSIZE,
		   "the head of another one counts");
}

static void
examples_of_lists(void)
{
	struct nmreq_option unknown = option_of(77, &unknown), list[99];
	struct nmreq_opt_csb csb;
	struct {
		struct nmreq_option opt;
		char body[1000];
	} eventfds;
	int i;

	check_call(try_options(&unknown), EMSGSIZE,
		   "an unknown option that follows itself");
	memset(&csb, 0, sizeof(csb));
	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, &csb);
	check_call(try_options(&csb), EINVAL,
		   "a known option that follows itself");
	memset(&eventfds, 0, sizeof(eventfds));
	eventfds.opt = option_of(NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NULL);
	eventfds.opt.nro_size = 1000;
	for (i = 0; i < 99; i++)
		list[i] = option_of(77, i < 98 ? (void *)&list[i + 1] :
						 &eventfds);
	check_call(try_options(list), EMSGSIZE,
		   "99 unknown options and a long one");
	check(!port_exists(own("vale$:a")), "no port is left");
}

static void
a_list_without_end(void)
{
	struct nmreq_option second = option_of(78, NULL);
	struct nmreq_option first = option_of(77, &second);

	second.nro_next = (uintptr_t)&first;
	check_call(try_options(&first), EMSGSIZE, "two options in a circle");
	check(first.nro_status == STATUS_UNTOUCHED &&
	      second.nro_status == STATUS_UNTOUCHED,
	      "no option was written to");
}

static void
failures_before_an_option(void)
{
	static const struct {
		const char *name;
		uint32_t mode;
		int error;
	} failing[] = {
		{ "nosuchif0", NR_REG_ALL_NIC, ENXIO },
		{ "vale$:a", 0, EINVAL },
		{ "vale$:a", NR_REG_SW, EINVAL },
		{ "valeX", NR_REG_ALL_NIC, ENOMEM },
	};
	size_t i, k;

	for (i = 0; i < COUNT(failing); i++) {
		for (k = 0; k < 2; k++) {
			struct nmreq_opt_offsets offsets;
			struct nmreq_register reg = register_all();
			int fd = device_open();

			memset(&offsets, 0, sizeof(offsets));
			offsets.nro_opt = option_of(
				k ? NETMAP_REQ_OPT_OFFSETS : 77, NULL);
			reg.nr_mode = failing[i].mode;
			check_call(control_with(fd, NETMAP_REQ_REGISTER,
						own(failing[i].name), &reg,
						&offsets), failing[i].error,
				   line("REGISTER %zu", i));
			check_number(offsets.nro_opt.nro_status, EOPNOTSUPP,
				     "its option was not looked at");
			close(fd);
		}
	}
}

static void
register_insists_on_its_options(void)
{
	struct nmreq_option option = option_of(77, NULL);
	struct nmreq_register reg = register_all(), before = reg;
	int fd = device_open();

	check_call(control_with(fd, NETMAP_REQ_REGISTER, own("vale$:a"), &reg,
				&option), EOPNOTSUPP,
		   "REGISTER with an unknown option");
	check_number(option.nro_status, EOPNOTSUPP, "its status");
	check(memcmp(&reg, &before, sizeof(reg)) == 0,
	      "the body is as it was");
	check_call(ioctl(fd, NIOCTXSYNC, NULL), ENXIO,
		   "the descriptor is unbound");
	check(!port_exists(own("vale$:a")), "no port is left");
	check_call(bind_all(fd, own("vale$:a")), 0, "it can bind without");
}

static void
others_report_and_go_on(void)
{
	struct port port = port_open(own("vale$:a"));
	char body[64];
	static const struct {
		uint16_t type;
		const char *name;
	} good[] = {
		{ NETMAP_REQ_PORT_INFO_GET, "vale$:a" },
		{ NETMAP_REQ_PORT_INFO_GET, "" },
		{ NETMAP_REQ_POOLS_INFO_GET, "vale$:a" },
		{ NETMAP_REQ_VALE_LIST, "vale$:a" },
		{ NETMAP_REQ_PORT_HDR_SET, "vale$:a" },
		{ NETMAP_REQ_PORT_HDR_GET, "vale$:a" },
	};
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		struct nmreq_option option = option_of(77, NULL);

		memset(body, 0, sizeof(body));
		check_call(control_with(port.fd, good[i].type,
					own(good[i].name), body, &option), 0,
			   of_type("with an unknown option", good[i].type));
		check_number(option.nro_status, EOPNOTSUPP, "its status");
	}
}

static void
options_in_the_wrong_place(void)
{
	static const uint32_t not_register[] = {
		NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS,
		NETMAP_REQ_OPT_SYNC_KLOOP_MODE,
	};
	size_t i;

	for (i = 0; i < COUNT(not_register); i++) {
		struct nmreq_opt_sync_kloop_mode mode;

		memset(&mode, 0, sizeof(mode));
		mode.nro_opt = option_of(not_register[i], NULL);
		check_call(try_options(&mode), EOPNOTSUPP,
			   "an option of the loop on REGISTER");
		check_number(mode.nro_opt.nro_status, EOPNOTSUPP,
			     "its status");
	}
	for (i = 0; i < COUNT(options); i++) {
		struct {
			struct nmreq_option opt;
			char body[72];
		} option;
		struct nmreq_port_info_get info;
		int fd = device_open();

		memset(&info, 0, sizeof(info));
		memset(&option, 0, sizeof(option));
		option.opt = option_of(options[i].type, NULL);
		check_call(control_with(fd, NETMAP_REQ_PORT_INFO_GET,
					own("vale$:a"), &info, &option), 0,
			   "PORT_INFO_GET takes none");
		check_number(option.opt.nro_status, EOPNOTSUPP, "its status");
		close(fd);
	}
}

static const struct test_case cases[] = {
	{ "S-CTRL-1", "versions", versions },
	{ "S-CTRL-1", "the reserved field", reserved_field },
	{ "S-CTRL-1", "names end", names_end },
	{ "S-CTRL-2", "sizes of bodies", sizes_of_bodies },
	{ "S-CTRL-3", "bodies where they belong", bodies_where_they_belong },
	{ "S-CTRL-3", "unreadable memory", unreadable_memory },
	{ "S-CTRL-4", "unwritable memory", unwritable_memory },
	{ "S-CTRL-4", "bodies come back on success only",
	  bodies_come_back_on_success_only },
	{ "S-CTRL-4", "pointers come back unchanged",
	  pointers_come_back_unchanged },
	{ "S-CTRL-4", "bodies of options", bodies_of_options },
	{ "S-CTRL-5", "an option of type 0", an_option_of_type_0 },
	{ "S-CTRL-5", "unknown options are kept", unknown_options_are_kept },
	{ "S-CTRL-5", "an option twice", an_option_twice },
	{ "S-CTRL-6", "sizes of options", sizes_of_options },
	{ "S-CTRL-6", "size of EVENTFDS", size_of_eventfds },
	{ "S-CTRL-7", "limits of the list", limits_of_the_list },
	{ "S-CTRL-7", "limits of one option", limits_of_one_option },
	{ "S-CTRL-7", "examples", examples_of_lists },
	{ "S-CTRL-8", "a list without end", a_list_without_end },
	{ "S-CTRL-9", "failures before an option", failures_before_an_option },
	{ "S-CTRL-10", "REGISTER insists on its options",
	  register_insists_on_its_options },
	{ "S-CTRL-10", "others report and go on", others_report_and_go_on },
	{ "S-CTRL-11", "options in the wrong place",
	  options_in_the_wrong_place },
};

CHAPTER(cases)
