/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a descriptor. */
#include "case.h"

static void
one_binding(void)
{
	struct port port = port_open(own("vale$:a"));
	struct nmreq_register reg = register_all();

	check_call(control(port.fd, NETMAP_REQ_REGISTER, own("vale$:b"), &reg),
		   EBUSY, "a second REGISTER");
}

static const struct test_case cases[] = {
	{ "S-LIFE-2", "a descriptor binds once", one_binding },
};

CHAPTER(cases)
