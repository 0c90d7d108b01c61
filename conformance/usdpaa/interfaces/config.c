/* SPDX-License-Identifier: BSD-2-Clause */
/* The two XML files, and the interfaces that they name (FM-CONFIG). */
#include "case.h"

#include <argp.h>
#include <usdpaa/of.h>

static int said;

/* What is printed on this stream from now on is kept. */
static void
listen_to(int stream)
{
	FILE *file = tmpfile();

	fflush(stdout);
	require(file && (said = dup(fileno(file))) >= 0 && dup2(said, stream) == stream, "a temporary file");
	fclose(file);
}

/* It. */
static const char *
heard(void)
{
	static char text[4096];
	ssize_t length;

	fflush(stdout);
	length = pread(said, text, sizeof(text) - 1, 0);
	require(length >= 0, "a temporary file");
	text[length] = 0;
	return text;
}

/* Whether it has these words. */
static int
says(const char *words)
{
	return strstr(heard(), words) != NULL;
}

/* What was printed so far is forgotten. */
static void
forget(void)
{
	require(ftruncate(said, 0) == 0 && lseek(said, 0, SEEK_SET) == 0, "a temporary file");
}

static void
ports_set(void)
{
	char ports[256];

	wire_new();
	snprintf(ports, sizeof(ports), "fm0-10g0=%s fm0-1g3=%s", near_end(), own("vale$:c"));
	setenv("RINGWAY_USDPAA_PORTS", ports, 1);
}

static void
acquiring(void)
{
	struct usdpaa_netcfg_info *info;
	struct fm_eth_port_fqrange *range;
	int count = 0;

	ports_set();
	info = acquire(USUAL_POLICY, CONFIG(PORT("1G", 3) PORT("10G", 0)));
	require(info != NULL, "usdpaa_netcfg_acquire");
	check_number(info->num_ethports, 2, "two interfaces");
	check(info->port_cfg[0].fman_if->mac_idx == 3 && info->port_cfg[1].fman_if->mac_idx == 0, "in the file's order");
	list_for_each_entry(range, info->port_cfg[1].list, list) {
		check(range->start == FLOWS && range->count == FLOW_QUEUES, "its frame queues");
		count++;
	}
	check_number(count, 1, "the default is no range");
	check_number(info->port_cfg[1].rx_def, REST, "it is rx_def");
	usdpaa_netcfg_release(info);
	check(acquire(USUAL_POLICY, CONFIG(PORT("other", 3))) != NULL, "any other type is 1G");
	check(acquire(USUAL_POLICY, CONFIG("<port type='10G' number='0x0' policy=' p '/>")) != NULL,
	      "numbers are those of C, and blanks go");
}

static void
names(void)
{
	struct usdpaa_netcfg_info *info;
	struct fm_eth_port_fqrange *range;
	uint32_t starts[2] = { 0, 0 }, count = 0;

	ports_set();
	info = acquire(POLICY(REF("d") REF("e") REF("link") REF("rest"),
			      DISTRIBUTION("d10", "", 0x500, 8) DISTRIBUTION("d", "", 0x600, 8)
			      DISTRIBUTION("e", "", 0x500, 4)
			      "<distribution name='link'><queue base='1' count='1'/><action type='classification' name='c'/>"
			      "</distribution><classification name='c'><entry><data>01</data>"
			      "<action type='distribution' name='usdpaa_dist'/></entry></classification>"
			      DISTRIBUTION("usdpaa_dist", "", 0x700, 2) DISTRIBUTION("rest", "", 0x300, 1)),
		       CONFIG(PORT("10G", 0)));
	require(info != NULL, "usdpaa_netcfg_acquire");
	list_for_each_entry(range, info->port_cfg[0].list, list) {
		require(count < COUNT(starts), "two ranges");
		starts[count++] = range->start;
	}
	check_number(starts[0], 0x500, "a name is found by its beginning, and equal bases are one range");
	check_number(starts[1], 0x700, "a link has the ranges of its entries");
}

static void
wrong_policies(void)
{
	const struct {
		const char *text;
		int error;
		const char *words;
	} wrong[] = {
		{ POLICY(REF("flows") REF("rest"), DISTRIBUTION("rest", "", 0x300, 1)), ENXIO, "<distribution name=\"flows\">" },
		{ "<netpcd/>", ENXIO, "<policy name=\"p\">" },
		{ POLICY("", ""), ENXIO, "is empty" },
		{ POLICY("<other name='rest'/>" REF("rest"), DISTRIBUTION("rest", "", 0x300, 1)), ENXIO, "something else" },
		{ POLICY(REF("rest") "<!-- -->", DISTRIBUTION("rest", "", 0x300, 1)), ENXIO, "something else" },
		{ POLICY(REF("rest"), DISTRIBUTION("rest", "", 0x300, 2)), EINVAL, "its count must be 1" },
		{ POLICY(REF("rest"), "<distribution name='rest'><queue base='1'/></distribution>"), EINVAL, "no attribute count" },
		{ POLICY(REF("rest"), "<distribution name='rest'/>"), EINVAL, "has no <queue>" },
		{ POLICY(REF("rest"), DISTRIBUTION("rest", "", many, 1)), EINVAL, "is no number" },
		{ POLICY(REF("rest"), DISTRIBUTION("rest", "", 0x1000000, 1)), EINVAL, "there are no 1 frame queues" },
		{ "<netpcd>", EINVAL, "is no XML" },
	};
	size_t i;

	ports_set();
	listen_to(STDERR_FILENO);
	for (i = 0; i < COUNT(wrong); i++) {
		errno = 0;
		check(!acquire(wrong[i].text, CONFIG(PORT("10G", 0))) && errno == wrong[i].error, "error %zu (%s)", i,
		      strerror(errno));
		check(says(wrong[i].words) && says("policies.xml: "), "and says so");
		forget();
	}
	errno = 0;
	check(!usdpaa_netcfg_acquire("/nonesuch", file_new("config.xml", CONFIG(PORT("10G", 0)))) && errno == EINVAL &&
	      says("/nonesuch: cannot be read"), "a file that is not there");
}

static void
wrong_configs(void)
{
	const struct {
		const char *text;
		int error;
		const char *words;
	} wrong[] = {
		{ CONFIG(PORT("1G", 9)), ENXIO, "fm0-1g9 is no port: add fm0-1g9=PORT" },
		{ CONFIG("<port type='10G' number='0' policy='q'/>"), ENXIO, "<policy name=\"q\">" },
		{ CONFIG("<port type='10G' number='0'/>"), EINVAL, "no attribute policy" },
		{ CONFIG("<port type='10G' number='256' policy='p'/>"), EINVAL, "no port with the number 256" },
		{ CONFIG(""), EINVAL, "0 ports" },
		{ "<cfgdata><config><engine name='eth0'/></config></cfgdata>", EINVAL, "is no engine" },
		{ "<netpcd/>", EINVAL, "is no configuration" },
		{ "", EINVAL, "is no XML" },
	};
	size_t i;

	ports_set();
	listen_to(STDERR_FILENO);
	for (i = 0; i < COUNT(wrong); i++) {
		errno = 0;
		check(!acquire(USUAL_POLICY, wrong[i].text) && errno == wrong[i].error, "error %zu (%s)", i, strerror(errno));
		check(says(wrong[i].words), "and says so: %s", wrong[i].words);
		forget();
	}
	check(!usdpaa_netcfg_acquire(NULL, NULL) && says("name two files"), "no files");
}

static void
wrong_ports(void)
{
	static const struct {
		const char *ports;
		int error;
		const char *words;
	} wrong[] = {
		{ "", ENODEV, "names no interface: write fm0-10g0=vale0:a" },
		{ "eth0=vale0:a", ENODEV, "is no interface" },
		{ "fm0-10g0", ENODEV, "names no port" },
		{ "fm0-10g0=", ENODEV, "has no port" },
		{ "fm0-offline1= fm0-offline1=", ENODEV, "is there twice" },
		{ "fm0-10g0=netmap:rw-nonesuch", EIO, "fm0-10g0=netmap:rw-nonesuch: " },
	};
	char lines[128];
	size_t i;

	listen_to(STDERR_FILENO);
	for (i = 0; i < COUNT(wrong); i++) {
		setenv("RINGWAY_USDPAA_PORTS", wrong[i].ports, 1);
		check_number(fman_init(), -wrong[i].error, "fman_init");
		errno = 0;
		check(!acquire(USUAL_POLICY, CONFIG(PORT("10G", 0))) && errno == wrong[i].error, "%s (%s)", wrong[i].ports,
		      strerror(errno));
		check(says(wrong[i].words), "and says so: %s", wrong[i].words);
		forget();
	}
	unsetenv("RINGWAY_USDPAA_PORTS");
	setenv("RINGWAY_USDPAA_CONFIG", "/nonesuch", 1);
	check(fman_init() == -ENODEV && says("Set RINGWAY_USDPAA_PORTS"), "no configuration");
	wire_new();
	snprintf(lines, sizeof(lines), "# comment\n\n fm0-10g0 = %s # another\n", near_end());
	setenv("RINGWAY_USDPAA_CONFIG", file_new("ports.conf", lines), 1);
	check_number(fman_init(), 0, "a file with a line for each");
}

static void
dump(void)
{
	static const char expected[] =
		"..........  USDPAA Configuration  ..........\n\nNetwork interfaces: 1\n\n"
		"+ Fman 0, MAC 3 (1G);\n\tmac_addr: 02:00:00:00:01:03\n\ttx_channel_id: 0x40\n\tfqid_rx_hash:\n"
		"\t\t(PCD: start 0x400, count 4)\n\tfqid_rx_def: 0x300\n\tfqid_rx_err: 0x100\n\tfqid_tx_err: 0x101\n"
		"\tfqid_tx_confirm: 0x102\n\tbuffer pool: (bpid=7, count=0size=320, addr=0x0)\n"
		"\tbuffer pool: (bpid=8, count=0size=704, addr=0x0)\n\tbuffer pool: (bpid=9, count=0size=1728, addr=0x0)\n";
	struct usdpaa_netcfg_info *info;
	int out = dup(STDOUT_FILENO), good;

	ports_set();
	info = acquire(USUAL_POLICY, CONFIG(PORT("1G", 3)));
	require(info != NULL, "usdpaa_netcfg_acquire");
	listen_to(STDOUT_FILENO);
	dump_usdpaa_netcfg(info);
	good = strcmp(heard(), expected) == 0;
	dup2(out, STDOUT_FILENO);
	check(good, "it is printed: %s", heard());
	info = acquire(POLICY(REF("rest"), DISTRIBUTION("rest", "", 0x300, 1)), CONFIG(PORT("1G", 3)));
	listen_to(STDOUT_FILENO);
	dump_usdpaa_netcfg(info);
	good = says("\tfqid_rx_hash:\n\t\tPCD List not found\n");
	dup2(out, STDOUT_FILENO);
	check(good, "and that there is no range");
}

static void
life(void)
{
	ports_set();
	check_number(fman_init(), 0, "fman_init");
	check_number(fman_init(), 0, "twice");
	fman_finish();
	check(fman_if_list == NULL, "no interfaces any more");
	fman_finish();
	check_number(fman_init(), 0, "and anew: the ports were free");
	check(fman_if_list != NULL, "interfaces");
}

static void
device_tree(void)
{
	uint8_t bytes[8] = { 0, 0, 0, 1, 0x80, 0, 0, 2 };
	uint32_t cells[2];

	memcpy(cells, bytes, sizeof(cells));
	check_number(of_init(), 0, "there is none that could be missing");
	check_number(of_init_path("/nonesuch"), 0, "wherever");
	check(of_read_number(cells, 2) == 0x180000002ULL, "cells are numbers, in network order");
	of_finish();
}

/* A command line, as programs with glibc's argp read it; argp_parse's result. */
static int
command_line(const char *list)
{
	char *argv[] = { (char *)(uintptr_t)"program", (char *)(uintptr_t)"-i", (char *)(uintptr_t)list, NULL };
	const struct argp_child children[] = { { &netcfg_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };
	const struct argp argp = { NULL, NULL, NULL, NULL, children, NULL, NULL };

	return argp_parse(&argp, 3, argv, ARGP_NO_EXIT, NULL, NULL);
}

static void
selecting(void)
{
	static const char *const none[] = { "fm1", "fm0-gb3", "fm1-gb", "eth0", "", "fm1-gb3,,fm1-10g", "fm1-mac0" };
	const char *config = CONFIG(PORT("1G", 3) PORT("10G", 0));
	struct usdpaa_netcfg_info *info;
	size_t i;

	ports_set();
	check_number(command_line("fm1-gb3"), 0, "one");
	info = acquire(USUAL_POLICY, config);
	require(info != NULL, "usdpaa_netcfg_acquire");
	check(info->num_ethports == 1 && info->port_cfg[0].fman_if->mac_idx == 3, "is all that there is");
	usdpaa_netcfg_release(info);
	check_number(command_line("fm1-mac9,fm1-mac4"), 0, "both, by the numbers of MACs");
	info = acquire(USUAL_POLICY, config);
	require(info != NULL, "usdpaa_netcfg_acquire");
	check(info->num_ethports == 2 && info->port_cfg[0].fman_if->mac_idx == 3, "in the file's order");
	usdpaa_netcfg_release(info);
	listen_to(STDERR_FILENO);
	for (i = 0; i < COUNT(none); i++) {
		check(command_line(none[i]) == EINVAL && says("write fm1-gb0"), "%s", none[i]);
		forget();
	}
	check_number(command_line("fm1-10g,fm2-10g"), 0, "one that is not in the configuration");
	errno = 0;
	check(!acquire(USUAL_POLICY, config) && errno == ENXIO && says("fm1-10g0 is asked for"), "is not there");
}

static const struct test_case cases[] = {
	{ "FM-CONFIG-1", "acquiring", acquiring },
	{ "FM-CONFIG-2", "names", names },
	{ "FM-CONFIG-3", "wrong policies", wrong_policies },
	{ "FM-CONFIG-3", "wrong configurations", wrong_configs },
	{ "FM-CONFIG-4", "wrong ports", wrong_ports },
	{ "FM-CONFIG-5", "dump", dump },
	{ "FM-CONFIG-6", "life", life },
	{ "FM-CONFIG-7", "device tree", device_tree },
	{ "FM-CONFIG-8", "selecting", selecting },
};

CHAPTER(cases)
