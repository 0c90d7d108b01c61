/* SPDX-License-Identifier: BSD-2-Clause */
/* Persistent ports, and interfaces that are attached to switches. */
#ifndef ATTACH_H
#define ATTACH_H

#include "netns.h"
#include "request.h"

static inline int
newif_as(const char *name, struct nmreq_vale_newif *newif)
{
	return control_once(NETMAP_REQ_VALE_NEWIF, name, newif);
}

static inline int
newif(const char *name)
{
	struct nmreq_vale_newif newif;

	memset(&newif, 0, sizeof(newif));
	return newif_as(name, &newif);
}

static inline int
delif(const char *name)
{
	return control_once(NETMAP_REQ_VALE_DELIF, name, NULL);
}

/* A persistent port of the case's own; the namespace takes it away. */
static inline const char *
persistent(void)
{
	static char name[NETMAP_REQ_IFNAMSIZ];

	snprintf(name, sizeof(name), "%s", own("p$"));
	netns_own();
	require(newif(name) == 0, "VALE_NEWIF %s", name);
	return name;
}

/* "vale...:IFNAME" on switch 1 or 2 of the case. */
static inline const char *
on(int number, const char *interface)
{
	static char names[16][NETMAP_REQ_IFNAMSIZ];
	static unsigned next;
	char *out = names[next++ % COUNT(names)];

	snprintf(out, NETMAP_REQ_IFNAMSIZ, "%s_%d:%.15s", own("vale$"), number,
		 interface);
	return out;
}

static inline struct nmreq_vale_attach
attach_all(void)
{
	struct nmreq_vale_attach attach;

	memset(&attach, 0, sizeof(attach));
	attach.reg.nr_mode = NR_REG_ALL_NIC;
	return attach;
}

static inline int
attach_as(const char *name, struct nmreq_vale_attach *attach)
{
	return control_once(NETMAP_REQ_VALE_ATTACH, name, attach);
}

static inline int
attach(const char *name)
{
	struct nmreq_vale_attach request = attach_all();

	return attach_as(name, &request);
}

static inline int
detach(const char *name)
{
	struct nmreq_vale_detach request;

	memset(&request, 0, sizeof(request));
	return control_once(NETMAP_REQ_VALE_DETACH, name, &request);
}

#endif
