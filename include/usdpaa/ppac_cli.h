/*
 * Commands of a PPAC program's command line: constants in a section of their own, from all source files. Link with
 * `-T cli_table.lds`, which gives the section its bounds (installed in lib/ringway/usdpaa).
 */
#ifndef USDPAA_PPAC_CLI_H
#define USDPAA_PPAC_CLI_H

struct cli_table_entry {
	const char *cmd;
	/* 0, or a negative error number; `argv[0]` is the command. */
	int (*handle)(int argc, char *argv[]);
};

extern const struct cli_table_entry cli_table_start[], cli_table_end[];

#ifndef cli_cmd
#define cli_cmd(name, handler) \
	static const struct cli_table_entry cli_cmd_##name \
		__attribute__((__section__(".rodata.cli_table"), __used__, __aligned__(sizeof(void *)))) = { \
			#name, handler }
#endif

#define foreach_cli_table_entry(entry) \
	for ((entry) = cli_table_start; (entry) < cli_table_end; (entry)++)

#endif
