/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of ports and their options, as libnetmap turns them into requests.
 * Opens nothing, but for the option share.
 *
 * usage: libnetmap_names [SWITCH]
 */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

#include "context.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))
#define NONE		(-1)

static const char *vale = "vale0";

/* The reference: NULL for a name is a refused header. */
static const struct {
	const char *spec, *name, *rest;
	int mode;	/* NONE: the mode is refused */
	uint16_t ringid;
	uint64_t flags;
	uint16_t mem_id;
} vectors[] = {
	{ "netmap:eth0", "eth0", "", NR_REG_ALL_NIC, 0, 0, 0 },
	{ "netmap:eth0-1", "eth0", "", NR_REG_ONE_NIC, 1, 0, 0 },
	{ "netmap:eth0-", "eth0", "-", NONE, 0, 0, 0 },
	{ "netmap:eth0-2/Tx", "eth0", "", NR_REG_ONE_NIC, 2,
	  NR_TX_RINGS_ONLY | NR_EXCLUSIVE, 0 },
	{ "netmap:eth0*", "eth0", "", NR_REG_NIC_SW, 0, 0, 0 },
	{ "netmap:eth0^", "eth0", "", NR_REG_SW, 0, 0, 0 },
	{ "netmap:eth0^2", "eth0", "", NR_REG_ONE_SW, 2, 0, 0 },
	{ "netmap:eth0@2/R", "eth0", "", NR_REG_ALL_NIC, 0, NR_RX_RINGS_ONLY,
	  2 },
	{ "netmap:eth0@2/R@2", "eth0", "", NR_REG_ALL_NIC, 0,
	  NR_RX_RINGS_ONLY, 2 },
	{ "netmap:eth0@2/R@3", "eth0", "@2/R@3", NONE, 0, 0, 0 },
	{ "netmap:eth0@netmap:lo/R", "eth0", "@netmap:lo/R", NR_REG_ALL_NIC,
	  0, 0, 0 },
	{ "netmap:eth0/R@xxx", "eth0", "@xxx", NR_REG_ALL_NIC, 0,
	  NR_RX_RINGS_ONLY, 0 },
	{ "netmap:eth0/rtz", "eth0", "", NR_REG_ALL_NIC, 0,
	  NR_MONITOR_RX | NR_MONITOR_TX | NR_ZCOPY_MON, 0 },
	{ "netmap:eth0@", "eth0", "@", NONE, 0, 0, 0 },
	{ "vale0:0@", "vale0:0", "@", NONE, 0, 0, 0 },
	{ "netmap:eth0/", "eth0", "/", NONE, 0, 0, 0 },
	{ "netmap:eth0/q", "eth0", "/q", NONE, 0, 0, 0 },
	{ "netmap:eth0-4095", "eth0", "-4095", NONE, 0, 0, 0 },
	{ "netmap:eth0@0", "eth0", "@0", NONE, 0, 0, 0 },
	{ "netmap:", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:^", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:{", NULL, NULL, 0, 0, 0, 0 },
	{ "", NULL, NULL, 0, 0, 0, 0 },
	{ "eth0", NULL, NULL, 0, 0, 0, 0 },
	{ "vale0", NULL, NULL, 0, 0, 0, 0 },
	{ "netmapXXX:eth0", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:pipe{1}2", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:vale0:0", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:eth0&", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:0123456789012345678901234567890123456789"
	  "012345678901234567890123", NULL, NULL, 0, 0, 0, 0 },
	{ "netmap:pipe{in-7", "pipe{in", "", NR_REG_ONE_NIC, 7, 0, 0 },
	{ "vale0:0{0", "vale0:0{0", "", NR_REG_ALL_NIC, 0, 0, 0 },
	{ "vale:0", "vale:0", "", NR_REG_ALL_NIC, 0, 0, 0 },
	{ "valeXXX:YYY-4", "valeXXX:YYY", "", NR_REG_ONE_NIC, 4, 0, 0 },
	{ "vale0:0/Tx@opt", "vale0:0", "@opt", NR_REG_ALL_NIC, 0,
	  NR_TX_RINGS_ONLY | NR_EXCLUSIVE, 0 },
	{ "vale0:0-3@opt", "vale0:0", "@opt", NR_REG_ONE_NIC, 3, 0, 0 },
};

static void
test_vectors(void)
{
	size_t i;

	for (i = 0; i < COUNT(vectors); i++) {
		const char *spec = vectors[i].spec, *rest = spec;
		struct nmreq_header hdr, hdr_before;
		struct nmreq_register reg, reg_before;
		int result;

		memset(&hdr, 0x5a, sizeof(hdr));
		hdr_before = hdr;
		memset(&reg, 0x5a, sizeof(reg));
		reg.nr_mem_id = 0;
		reg_before = reg;
		errno = 0;
		result = nmreq_header_decode(&rest, &hdr, nmctx_get());
		if (!vectors[i].name) {
			check(result == -1 && errno == EINVAL &&
			      rest == spec &&
			      memcmp(&hdr, &hdr_before, sizeof(hdr)) == 0,
			      "\"%s\": refused, nothing touched", spec);
			continue;
		}
		check(result == 0 && strcmp(hdr.nr_name, vectors[i].name) == 0,
		      "\"%s\": name %s", spec, hdr.nr_name);
		memcpy(hdr.nr_name, hdr_before.nr_name, sizeof(hdr.nr_name));
		check(memcmp(&hdr, &hdr_before, sizeof(hdr)) == 0,
		      "\"%s\": only the name is written", spec);

		errno = 0;
		result = nmreq_register_decode(&rest, &reg, nmctx_get());
		check(strcmp(rest, vectors[i].rest) == 0,
		      "\"%s\": rest \"%s\"", spec, rest);
		if (vectors[i].mode == NONE) {
			check(result == -1 && errno == EINVAL &&
			      memcmp(&reg, &reg_before, sizeof(reg)) == 0,
			      "\"%s\": mode refused, nothing touched", spec);
			continue;
		}
		check(result == 0 && reg.nr_mode == (uint32_t)vectors[i].mode
		      && reg.nr_ringid == vectors[i].ringid
		      && reg.nr_flags == vectors[i].flags
		      && reg.nr_mem_id == vectors[i].mem_id,
		      "\"%s\": mode %u, ring %u, flags 0x%llx, region %u",
		      spec, reg.nr_mode, reg.nr_ringid,
		      (unsigned long long)reg.nr_flags, reg.nr_mem_id);
		check(reg.nr_tx_slots == reg_before.nr_tx_slots &&
		      reg.nr_extra_bufs == reg_before.nr_extra_bufs,
		      "\"%s\": the rest is kept", spec);
	}
}

/* A region that the registration has already. */
static void
test_region(void)
{
	struct nmreq_register reg;
	const char *rest = "@3";

	memset(&reg, 0, sizeof(reg));
	reg.nr_mem_id = 3;
	check_call(nmreq_register_decode(&rest, &reg, nmctx_get()), 0,
		   "the region that it has");
	rest = "@4";
	check_call(nmreq_register_decode(&rest, &reg, nmctx_get()), EINVAL,
		   "another region");
	check_number(reg.nr_mem_id, 3, "keeps the region");
}

/* A port from a name, or NULL with errno. */
static struct nmport_d *
prepare(const char *format, const char *argument)
{
	char spec[256];

	snprintf(spec, sizeof(spec), format, argument);
	errno = 0;
	return nmport_prepare(spec);
}

static void
refused(const char *spec, int error, const char *message)
{
	check(prepare("%s", spec) == NULL && errno == error,
	      "\"%s\" is refused: %s", spec, strerror(error));
	context_said(message);
	check_number(context.live, 0, "and nothing is left of it");
}

static void
test_conf(void)
{
	struct nmport_d *d = prepare(
		"netmap:eth0-1@conf:rings=2,host-rings=3,slots=512", "");

	require(d != NULL, "conf");
	check(d->reg.nr_tx_rings == 2 && d->reg.nr_rx_rings == 2 &&
	      d->reg.nr_host_tx_rings == 3 && d->reg.nr_host_rx_rings == 3 &&
	      d->reg.nr_tx_slots == 512 && d->reg.nr_rx_slots == 512,
	      "conf: both directions");
	check(d->reg.nr_mode == NR_REG_ONE_NIC && d->reg.nr_ringid == 1 &&
	      strcmp(d->hdr.nr_name, "eth0") == 0,
	      "conf: beside name and mode");
	check(d->hdr.nr_version == NETMAP_API &&
	      d->hdr.nr_reqtype == NETMAP_REQ_REGISTER &&
	      d->hdr.nr_body == (uintptr_t)&d->reg && d->hdr.nr_options == 0
	      && d->fd == -1 && d->ctx == nmctx_get(),
	      "a prepared port");
	nmport_undo_prepare(d);

	d = prepare("netmap:eth0@conf:tx_rings=1,rings=4,rx-slots=64,"
		    "tx_slots=,host_tx_rings=0x10,host_rx-rings= 7y,slots=9",
		    "");
	require(d != NULL, "conf");
	check(d->reg.nr_tx_rings == 1 && d->reg.nr_rx_rings == 4 &&
	      d->reg.nr_tx_slots == 9 && d->reg.nr_rx_slots == 64,
	      "conf: one direction comes before both");
	check(d->reg.nr_host_tx_rings == 0 && d->reg.nr_host_rx_rings == 7,
	      "conf: numbers as atoi reads them");
	nmport_undo_prepare(d);

	d = prepare("vale0:a@conf:rings=2@conf:slots=256", "");
	require(d != NULL, "two lists");
	check(d->reg.nr_tx_rings == 2 && d->reg.nr_tx_slots == 256,
	      "conf: twice");
	nmport_undo_prepare(d);
}

static void
test_refused(void)
{
	refused("eth0", EINVAL, "eth0: a port is named netmap:<name> or "
		"vale<switch>:<port>");
	refused("netmap:eth0-/x", EINVAL,
		"netmap:eth0-/x: a ring number goes after the `-`");
	refused("netmap:eth0@2@3", EINVAL,
		"netmap:eth0@2@3: the port is in another region already");
	refused("netmap:eth0@conf=4", EINVAL, "netmap:eth0@conf=4: option "
		"conf takes keys, as in @conf:KEY=VALUE");
	refused("netmap:eth0@conf", EINVAL,
		"netmap:eth0@conf: option conf takes a value");
	refused("netmap:eth0@conf:", EINVAL, "netmap:eth0@conf:: option conf: "
		"after `:` go keys, as in @conf:rings=2,slots=512");
	refused("netmap:e@conf:rings=1,rings=2", EINVAL,
		"netmap:e@conf:rings=1,rings=2: option conf: twice the key "
		"rings");
	refused("netmap:e@conf:ring=1", EINVAL,
		"netmap:e@conf:ring=1: option conf: there is no key ring");
	refused("netmap:e@conf:rings", EINVAL, "netmap:e@conf:rings: option "
		"conf: there is no value for key rings");
	refused("netmap:e@extmem:if_num=3", EINVAL, "netmap:e@extmem:if_num=3:"
		" option extmem: there is no file=");
	refused("netmap:e@nosuch=1", EINVAL,
		"netmap:e@nosuch=1: there is no option nosuch");
	refused("netmap:e@conf:rings=1@@", EINVAL, "netmap:e@conf:rings=1@@: "
		"the name of an option goes after the `@`");
	refused("netmap:e@csb", EINVAL,
		"netmap:e@csb: there is no option csb");
	refused("netmap:e@hwlen=3", EINVAL,
		"netmap:e@hwlen=3: there is no option hwlen");
	refused("netmap:e@offset=8", EOPNOTSUPP,
		"netmap:e@offset=8: option offset is disabled");
	refused("netmap:e@extmem=/nonexistent", ENOENT, "e: extmem: cannot "
		"map /nonexistent: No such file or directory");
	refused("netmap:e@extmem=/dev/null", EINVAL,
		"e: extmem: cannot map /dev/null: Invalid argument");
	refused("netmap:e@share=eth0", EINVAL, "eth0: a port is named "
		"netmap:<name> or vale<switch>:<port>");
	refused("netmap:e@share=netmap:nosuchif0/x", ENXIO,
		"netmap:nosuchif0/x: cannot find its region: "
		"No such device or address");
}

/* What is left of a descriptor when a name was refused. */
static void
test_undo(void)
{
	struct nmport_d *d = nmport_new();
	struct nmreq_register zero_reg;
	struct nmreq_header zero_hdr;

	require(d != NULL, "nmport_new");
	memset(&zero_reg, 0, sizeof(zero_reg));
	memset(&zero_hdr, 0, sizeof(zero_hdr));
	d->reg.nr_extra_bufs = 3;
	check_call(nmport_parse(d, "netmap:eth0"), 0, "nmport_parse");
	check_number(d->reg.nr_extra_bufs, 3, "keeps what it does not know");
	check_call(nmport_parse(d, "netmap:eth0@conf:rings=1@nosuch"), EINVAL,
		   "nmport_parse with a bad option");
	check(memcmp(&d->hdr, &zero_hdr, sizeof(zero_hdr)) == 0 &&
	      memcmp(&d->reg, &zero_reg, sizeof(zero_reg)) == 0 && !d->clist,
	      "leaves header and registration all zero");
	nmport_undo_prepare(d);
	nmport_undo_prepare(NULL);
	nmport_delete(NULL);
	check_number(context.live, 0, "nothing is left");
}

static void
test_share(void)
{
	struct nmport_d *other = prepare("%s:sh", vale), *d;
	const char *name, *start;
	char spec[256];
	int region;

	require(other && nmport_open_desc(other) == 0, "a port to share with");
	region = other->reg.nr_mem_id;
	snprintf(spec, sizeof(spec), "%s:sh/R@x", vale);
	name = start = spec;
	check_number(nmreq_get_mem_id(&name, nmctx_get()), region,
		     "nmreq_get_mem_id");
	check_number(name - start, (long)strlen(vale) + 3,
		     "nmreq_get_mem_id goes past the name");
	d = prepare("netmap:e@share=%s:sh", vale);
	check(d && d->reg.nr_mem_id == region, "share: the region");
	nmport_undo_prepare(d);
	d = prepare("netmap:e@share:port=%s:sh-0/R@conf:rings=1", vale);
	check(d && d->reg.nr_mem_id == region, "share: with its key");
	nmport_undo_prepare(d);

	snprintf(spec, sizeof(spec), "netmap:e@%d@share=%s:sh", region, vale);
	d = prepare("%s", spec);
	check(d && d->reg.nr_mem_id == region, "share: the same region");
	nmport_undo_prepare(d);
	d = prepare("netmap:e@65000@share=%s:sh", vale);
	check(!d && errno == EINVAL, "share: another region");
	snprintf(spec, sizeof(spec), "share: the port is to be in region "
		 "65000, not in %d", region);
	context_said(spec);
	nmport_close(other);
	check_number(context.live, 0, "nothing is left");
}

static void
test_extmem(void)
{
	char file[] = "/tmp/libnetmap_names.XXXXXX", spec[256];
	int fd = mkstemp(file);
	struct nmreq_option *option;
	struct nmreq_pools_info *info;
	struct nmport_d *d, *clone;
	static char memory[4096];

	require(fd >= 0 && ftruncate(fd, 12288) == 0, "a file");
	close(fd);
	snprintf(spec, sizeof(spec), "netmap:e@extmem:file=%s,if-num=1,"
		 "if_size=2,ring_num=3,ring-size=4,buf_num=5,buf_size=6",
		 file);
	d = prepare("%s", spec);
	require(d != NULL, "extmem");
	option = nmreq_find_option(&d->hdr, NETMAP_REQ_OPT_EXTMEM);
	info = nmport_extmem_getinfo(d);
	check(option && (void *)option == (void *)d->extmem &&
	      option->nro_next == 0 && option->nro_status == 0,
	      "extmem: the option");
	check(info == &d->extmem->nro_info && info->nr_memsize == 12288 &&
	      info->nr_if_pool_objtotal == 1 && info->nr_if_pool_objsize == 2
	      && info->nr_ring_pool_objtotal == 3
	      && info->nr_ring_pool_objsize == 4
	      && info->nr_buf_pool_objtotal == 5
	      && info->nr_buf_pool_objsize == 6, "extmem: pools");
	strcpy((char *)(uintptr_t)d->extmem->nro_usrptr, "written");
	fd = open(file, O_RDONLY);
	check(read(fd, spec, 8) == 8 && strcmp(spec, "written") == 0,
	      "extmem: the file is mapped shared");
	close(fd);
	check_call(nmport_extmem(d, memory, sizeof(memory)), EINVAL,
		   "extmem: twice");
	context_said("e: extmem: the port has external memory");
	clone = nmport_clone(d);
	check(!clone && errno == EINVAL, "extmem: no clone without region");
	context_said("e: register a port with external memory before you "
		     "clone it");
	nmport_undo_prepare(d);

	snprintf(spec, sizeof(spec), "netmap:e@extmem=%s@nosuch", file);
	check(!prepare("%s", spec) && errno == EINVAL,
	      "extmem is undone when another option is refused");
	check_number(context.live, 0, "nothing is left");

	d = prepare("netmap:e", "");
	check(nmport_extmem_getinfo(d) == NULL, "extmem: none yet");
	check_call(nmport_extmem(d, memory, sizeof(memory)), 0,
		   "nmport_extmem");
	check(d->extmem->nro_usrptr == (uintptr_t)memory &&
	      nmport_extmem_getinfo(d)->nr_memsize == sizeof(memory),
	      "nmport_extmem: the program's own memory");
	check_call(nmport_extmem_from_file(d, file), EINVAL,
		   "nmport_extmem_from_file: twice");
	nmport_undo_parse(d);
	check(!d->extmem && d->hdr.nr_options == 0 && !d->clist,
	      "nmport_undo_parse takes it away");
	nmport_delete(d);
	unlink(file);
	check_number(context.live, 0, "nothing is left");
}

/* A clone has an option of its own, which goes with it. */
static void
test_clone_of_own_options(void)
{
	struct nmport_d *d = prepare("netmap:e@filter=udp@sample=3", "");
	struct nmport_d *clone = nmport_clone(d);

	require(clone != NULL, "nmport_clone");
	check(clone->hdr.nr_options != 0 &&
	      clone->hdr.nr_options != d->hdr.nr_options,
	      "a clone has Ringway's own options");
	nmport_undo_prepare(d);
	nmport_delete(clone);
	check_number(context.live, 0, "nothing is left");
	nmport_delete(prepare("netmap:e@filter=udp", ""));
	check_number(context.live, 0, "nor of one that was parsed");
}

static void
test_offset(void)
{
	struct nmreq_opt_offsets *option;
	struct nmport_d *d;

	check_call(nmport_enable_option("nosuch"), EOPNOTSUPP,
		   "nmport_enable_option: unknown");
	nmport_disable_option("nosuch");
	check_call(nmport_enable_option("offset"), 0, "nmport_enable_option");
	d = prepare("netmap:e@offset:initial=16,bits=12", "");
	require(d != NULL, "offset");
	option = (struct nmreq_opt_offsets *)
		nmreq_find_option(&d->hdr, NETMAP_REQ_OPT_OFFSETS);
	check(option && option->nro_initial_offset == 16 &&
	      option->nro_max_offset == 16 && option->nro_offset_bits == 12 &&
	      option->nro_min_gap == 0 && option->nro_tx_align == 0 &&
	      option->nro_opt.nro_status == 0, "offset: with keys");
	check_call(nmport_offset(d, 1, 2, 3, 4), 0, "nmport_offset");
	option = (struct nmreq_opt_offsets *)(uintptr_t)d->hdr.nr_options;
	check(option->nro_opt.nro_reqtype == NETMAP_REQ_OPT_OFFSETS &&
	      option->nro_initial_offset == 1 && option->nro_max_offset == 2
	      && option->nro_offset_bits == 3 && option->nro_min_gap == 4,
	      "nmport_offset: in front");
	nmport_undo_prepare(d);
	d = prepare("netmap:e@offset=8", "");
	require(d != NULL, "offset");
	option = (struct nmreq_opt_offsets *)(uintptr_t)d->hdr.nr_options;
	check(option->nro_initial_offset == 8 && option->nro_offset_bits == 0,
	      "offset: with a value");
	nmport_undo_prepare(d);
	nmport_disable_option("offset");
	refused("netmap:e@offset=8", EOPNOTSUPP,
		"netmap:e@offset=8: option offset is disabled");
}

/* The last of Ringway's own can be disabled as well as the first. */
static void
test_disabled(void)
{
	static const char *const list[][2] = {
		{ "filter", "netmap:e@filter=udp" },
		{ "buffers", "netmap:e@buffers=4096" },
		{ "timestamps", "netmap:e@timestamps=software" },
		{ "user", "netmap:p{1@user=root" },
	};
	char message[128];
	size_t i;

	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		nmport_undo_prepare(prepare(list[i][1], ""));
		nmport_disable_option(list[i][0]);
		snprintf(message, sizeof(message), "%s: option %s is disabled",
			 list[i][1], list[i][0]);
		refused(list[i][1], EOPNOTSUPP, message);
		check_call(nmport_enable_option(list[i][0]), 0, list[i][0]);
	}
}

/* A list of parsers of the program's own. */
static const char *const unset = "(unset)";
static char seen[256];
static void *token_seen;

static int
see(struct nmreq_parse_ctx *p)
{
	size_t used = strlen(seen);

	token_seen = p->token;
	snprintf(seen + used, sizeof(seen) - used, "[%s %s %s]",
		 p->keys[2] ? p->keys[2] : unset,
		 p->keys[5] ? p->keys[5] : unset,
		 p->keys[9] ? p->keys[9] : unset);
	if (p->keys[2] && strcmp(p->keys[2], "fail") == 0) {
		errno = ENOTTY;
		return -7;
	}
	return 0;
}

static void
test_own_parsers(void)
{
	static struct nmreq_opt_parser first, second;
	int token;

	first.prefix = "first";
	first.parse = see;
	first.default_key = 2;
	first.nr_keys = 3;
	first.next = &second;
	first.keys[0].key = "two";
	first.keys[0].id = 2;
	first.keys[0].flags = NMREQ_OPTK_MUSTSET | NMREQ_OPTK_DEFAULT;
	first.keys[1].key = "fi_ve";
	first.keys[1].id = 5;
	first.keys[1].flags = NMREQ_OPTK_ALLOWEMPTY;
	first.keys[2].key = "nine";
	first.keys[2].id = 9;
	second.prefix = "second";
	second.parse = see;
	second.default_key = -1;
	second.flags = NMREQ_OPTF_ALLOWEMPTY;

	check_call(nmreq_options_decode("", &first, &token, nmctx_get()), 0,
		   "an empty list");
	check_call(nmreq_options_decode(
			"@first=a,b:c=d@second@first:fi-ve,two=x,nine=:=",
			&first, &token, nmctx_get()), 0, "own parsers");
	check(strcmp(seen, "[a,b:c=d (unset) (unset)]"
		     "[(unset) (unset) (unset)][x fi-ve :=]") == 0,
	      "own parsers: keys (%s)", seen);
	check(token_seen == &token, "own parsers: the token");

	seen[0] = '\0';
	check_number(nmreq_options_decode("@second@first=fail@second", &first,
					  NULL, nmctx_get()), -7,
		     "own parsers: the parser's result");
	check(errno == ENOTTY && strcmp(seen, "[(unset) (unset) (unset)]"
					"[fail (unset) (unset)]") == 0,
	      "own parsers: errno, and no further option");
	check_call(nmreq_options_decode("first=1", &first, NULL, nmctx_get()),
		   EINVAL, "own parsers: no @");
	context_said("first=1: an option begins with `@`");
	check_call(nmreq_options_decode("@first:two=", &first, NULL,
					nmctx_get()), EINVAL,
		   "own parsers: a mandatory key without value");
	second.flags |= NMREQ_OPTF_DISABLED;
	check_call(nmreq_options_decode("@second", &first, NULL, nmctx_get()),
		   EOPNOTSUPP, "own parsers: disabled");
	context.left = 0;
	check_call(nmreq_options_decode("@first=1", &first, NULL,
					nmctx_get()), ENOMEM,
		   "own parsers: no memory");
	context.left = -1;
	check_number(context.live, 0, "nothing is left");
}

static struct nmreq_option *
new_option(uint32_t type)
{
	struct nmreq_option *option =
		(struct nmreq_option *)calloc(1, sizeof(*option));

	require(option != NULL, "calloc");
	option->nro_reqtype = type;
	return option;
}

static void
test_option_list(void)
{
	static const char *const names[] = {
		"unknown", "extmem", "sync-kloop-eventfds", "csb",
		"sync-kloop-mode", "offsets", "unknown",
	};
	struct nmreq_option *option[3], *each;
	struct nmreq_header hdr;
	uint32_t i, count = 0;

	nmreq_header_init(&hdr, NETMAP_REQ_PORT_INFO_GET, &count);
	check(hdr.nr_version == NETMAP_API && hdr.nr_reserved == 0 &&
	      hdr.nr_reqtype == NETMAP_REQ_PORT_INFO_GET &&
	      hdr.nr_body == (uintptr_t)&count && hdr.nr_options == 0 &&
	      hdr.nr_name[0] == '\0', "nmreq_header_init");
	for (i = 0; i < 3; i++) {
		option[i] = new_option(i + 1);
		nmreq_push_option(&hdr, option[i]);
	}
	nmreq_foreach_option(&hdr, each)
		check(each == option[2 - count++], "the newest comes first");
	check_number(count, 3, "nmreq_foreach_option");
	check(nmreq_find_option(&hdr, 2) == option[1] &&
	      nmreq_find_option(&hdr, 9) == NULL, "nmreq_find_option");
	nmreq_remove_option(&hdr, option[1]);
	check(nmreq_find_option(&hdr, 2) == NULL &&
	      nmreq_find_option(&hdr, 1) == option[0] &&
	      option[1]->nro_next == 0, "nmreq_remove_option: in the middle");
	nmreq_remove_option(&hdr, option[1]);
	check(nmreq_find_option(&hdr, 1) == option[0],
	      "nmreq_remove_option: of none");
	nmreq_remove_option(&hdr, option[2]);
	check(hdr.nr_options == (uintptr_t)option[0],
	      "nmreq_remove_option: the first");
	nmreq_push_option(&hdr, option[1]);
	nmreq_free_options(&hdr);
	check(hdr.nr_options == 0, "nmreq_free_options");
	free(option[2]);
	for (i = 0; i < COUNT(names); i++)
		check(strcmp(nmreq_option_name(i), names[i]) == 0,
		      "nmreq_option_name: %s", names[i]);
}

static void
test_messages(void)
{
	char text[1200];
	int before;

	memset(text, 'x', sizeof(text));
	nmctx_ferror(&context.ctx, "%d %s %.1f %c%c%c%c %.2f", 3, "x", 2.5,
		     'a', 'b', 'c', 'd', 0.25);
	context_said("3 x 2.5 abcd 0.25");
	text[999] = '\0';
	nmctx_ferror(&context.ctx, "%s", text);
	context_said(text);
	text[999] = 'x';
	text[1000] = '\0';
	nmctx_ferror(&context.ctx, "%s", text);
	context_said("error message too long");
	text[1000] = 'x';
	text[1199] = '\0';
	check(nmport_prepare(text) == NULL, "a very long name");
	context_said("error message too long");
	before = context.messages;
	context.ctx.verbose = 0;
	nmctx_ferror(&context.ctx, "silent");
	check(nmport_prepare("eth0") == NULL && context.messages == before,
	      "no messages without verbose");
	context.ctx.verbose = 1;
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		vale = argv[1];
	context_use();
	test_vectors();
	test_region();
	test_conf();
	test_refused();
	test_undo();
	test_share();
	test_extmem();
	test_clone_of_own_options();
	test_offset();
	test_disabled();
	test_own_parsers();
	test_option_list();
	test_messages();
	check(context.live == 0 && context.misused == 0 && !context.locked,
	      "the context is used as it should be");
	return check_result();
}
