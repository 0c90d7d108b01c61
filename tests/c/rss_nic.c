/*
 * A NIC with an RSS table of 16 places over 4 queues and room for 8 flow rules, in place of the
 * interface `n0`, which has neither: preloaded into the daemon, it answers ethtool's requests. Its
 * state is in the file that RSS_NIC names, so that a test, and the next process, see it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { QUEUES = 4, TABLE = 16, RULES = 8 };

struct state {
	unsigned table[TABLE];
	unsigned ntuple;
	/* flow_type, or 0, and queue */
	unsigned rules[RULES][2];
};

static struct state *state(void)
{
	static struct state *mapped;
	const char *path = getenv("RSS_NIC");
	int fd;

	if (mapped || !path)
		return mapped;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	mapped = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		mapped = NULL;
	return mapped;
}

/* Before the daemon confines itself: its helper may open no file to write. */
__attribute__((constructor)) static void at_load(void)
{
	state();
}

static int answer(struct state *nic, void *data)
{
	struct ethtool_rxnfc *rule = data;
	struct ethtool_rxfh_indir *table = data;
	struct ethtool_value *value = data;
	unsigned i;

	switch (*(unsigned *)data) {
	case ETHTOOL_GRXRINGS:
		rule->data = QUEUES;
		return 0;
	case ETHTOOL_GRXFHINDIR:
		if (table->size)
			memcpy(table->ring_index, nic->table, sizeof(nic->table));
		table->size = TABLE;
		return 0;
	case ETHTOOL_SRXFHINDIR:
		if (table->size && table->size != TABLE)
			return EINVAL;
		for (i = 0; i < TABLE; i++)
			nic->table[i] = table->size ? table->ring_index[i] : i % QUEUES;
		return 0;
	case ETHTOOL_GFLAGS:
		value->data = nic->ntuple ? ETH_FLAG_NTUPLE : 0;
		return 0;
	case ETHTOOL_SFLAGS:
		nic->ntuple = !!(value->data & ETH_FLAG_NTUPLE);
		return 0;
	case ETHTOOL_GRXCLSRLCNT:
		rule->rule_cnt = 0;
		for (i = 0; i < RULES; i++)
			rule->rule_cnt += !!nic->rules[i][0];
		rule->data = RULES;
		return 0;
	case ETHTOOL_GRXCLSRLALL: {
		unsigned found = 0;

		for (i = 0; i < RULES; i++)
			if (nic->rules[i][0])
				rule->rule_locs[found++] = i;
		rule->rule_cnt = found;
		rule->data = RULES;
		return 0;
	}
	case ETHTOOL_SRXCLSRLINS:
		if (!nic->ntuple)
			return EOPNOTSUPP;
		i = rule->fs.location;
		if (i >= RULES || nic->rules[i][0])
			return EINVAL;
		/* Like many, this one has no rules for IPv6. */
		if (rule->fs.flow_type == UDP_V6_FLOW)
			return EOPNOTSUPP;
		nic->rules[i][0] = rule->fs.flow_type;
		nic->rules[i][1] = (unsigned)rule->fs.ring_cookie;
		return 0;
	case ETHTOOL_SRXCLSRLDEL:
		i = rule->fs.location;
		if (i >= RULES || !nic->rules[i][0])
			return ENOENT;
		memset(nic->rules[i], 0, sizeof(nic->rules[i]));
		return 0;
	default:
		return -1;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	struct state *nic = state();
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == SIOCETHTOOL && nic) {
		struct ifreq *ifr = arg;

		if (!strcmp(ifr->ifr_name, "n0")) {
			int error = answer(nic, ifr->ifr_data);

			if (error >= 0) {
				errno = error;
				return error ? -1 : 0;
			}
		}
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	return next(fd, request, arg);
}
