/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that no program means: with RINGWAY_VERBOSE set, standard error
 * says what is wrong with each.
 */
#include "options.h"

static int
legacy(uint32_t version)
{
	struct nmreq req;
	int fd = device_open(), result;

	memset(&req, 0, sizeof(req));
	req.nr_version = version;
	strcpy(req.nr_name, "valeMalformed:a");
	result = ioctl(fd, NIOCREGIF, &req);
	close(fd);
	return result;
}

int
main(void)
{
	struct nmreq_register reg = register_all();
	struct nmreq_option option;
	struct nmreq_header header;
	struct nmreq_opt_extmem extmem;
	struct nmreq_opt_csb csb;
	char *memory;
	int fd = device_open();

	check_call(legacy(11), EINVAL, "version 11");
	header = header_of(NETMAP_REQ_REGISTER, "valeMalformed:a", &reg);
	header.nr_version = 16;
	check_call(ioctl(fd, NIOCCTRL, &header), EINVAL, "version 16");
	header = header_of(NETMAP_REQ_REGISTER, "valeMalformed:a", NULL);
	check_call(ioctl(fd, NIOCCTRL, &header), EINVAL, "no body");
	header = header_of(999, "valeMalformed:a", &reg);
	check_call(ioctl(fd, NIOCCTRL, &header), EINVAL, "an unknown request");
	memset(&option, 0, sizeof(option));
	option.nro_reqtype = 77;
	header = header_of(NETMAP_REQ_REGISTER, "valeMalformed:a", &reg);
	header.nr_options = (uintptr_t)&option;
	check_call(ioctl(fd, NIOCCTRL, &header), EOPNOTSUPP,
		   "an unknown option");
	memory = memory_new(1 << 20);
	extmem = extmem_of(memory + 8, 1 << 19);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&extmem), EINVAL, "memory within a page");
	extmem = extmem_of(memory, 0);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&extmem), EINVAL, "memory without a size");
	munmap(memory, 1 << 20);
	extmem = extmem_of(memory, 1 << 19);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&extmem), EFAULT, "memory that is not there");
	memset(&csb, 0, sizeof(csb));
	csb.nro_opt = option_of(NETMAP_REQ_OPT_CSB, NULL);
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&csb), EINVAL, "CSB mode of shared rings");
	reg.nr_flags |= NR_EXCLUSIVE;
	csb.csb_atok = 8;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&csb), EINVAL, "CSB entries that are not aligned");
	csb.csb_atok = 0;
	check_call(control_with(fd, NETMAP_REQ_REGISTER, "valeMalformed:a", &reg,
				&csb), EFAULT, "CSB entries that are not there");
	close(fd);
	return check_result();
}
