/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that no program means: with RINGWAY_VERBOSE set, standard error
 * says what is wrong with each.
 */
#include "port.h"

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
	close(fd);
	return check_result();
}
