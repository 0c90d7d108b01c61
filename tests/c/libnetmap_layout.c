/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libnetmap.h against the ABI of libnetmap on x86-64 Linux, and every function
 * by its type. Compiling is most of the test.
 */
#include <libnetmap.h>

#include "check.h"
#include "layout.h"

SIZE(nmport_d, 216);
FIELD(nmport_d, hdr, 0, 88);
FIELD(nmport_d, reg, 88, 56);
FIELD(nmport_d, mem, 144, 8);
FIELD(nmport_d, ctx, 152, 8);
FIELD(nmport_d, register_done, 160, 4);
FIELD(nmport_d, mmap_done, 164, 4);
FIELD(nmport_d, extmem, 168, 8);
FIELD(nmport_d, fd, 176, 4);
FIELD(nmport_d, nifp, 184, 8);
FIELD(nmport_d, first_tx_ring, 192, 2);
FIELD(nmport_d, last_tx_ring, 194, 2);
FIELD(nmport_d, first_rx_ring, 196, 2);
FIELD(nmport_d, last_rx_ring, 198, 2);
FIELD(nmport_d, cur_tx_ring, 200, 2);
FIELD(nmport_d, cur_rx_ring, 202, 2);
FIELD(nmport_d, clist, 208, 8);

SIZE(nmctx, 48);
FIELD(nmctx, verbose, 0, 4);
FIELD(nmctx, error, 8, 8);
FIELD(nmctx, malloc, 16, 8);
FIELD(nmctx, free, 24, 8);
FIELD(nmctx, lock, 32, 8);
FIELD(nmctx, mem_descs, 40, 8);

SIZE(nmem_d, 48);
FIELD(nmem_d, mem_id, 0, 2);
FIELD(nmem_d, refcount, 4, 4);
FIELD(nmem_d, mem, 8, 8);
FIELD(nmem_d, size, 16, 8);
FIELD(nmem_d, is_extmem, 24, 4);
FIELD(nmem_d, next, 32, 8);
FIELD(nmem_d, prev, 40, 8);

SIZE(nmreq_opt_key, 16);
FIELD(nmreq_opt_key, key, 0, 8);
FIELD(nmreq_opt_key, id, 8, 4);
FIELD(nmreq_opt_key, flags, 12, 4);

SIZE(nmreq_opt_parser, 304);
FIELD(nmreq_opt_parser, prefix, 0, 8);
FIELD(nmreq_opt_parser, parse, 8, 8);
FIELD(nmreq_opt_parser, default_key, 16, 4);
FIELD(nmreq_opt_parser, nr_keys, 20, 4);
FIELD(nmreq_opt_parser, flags, 24, 4);
FIELD(nmreq_opt_parser, next, 32, 8);
FIELD(nmreq_opt_parser, keys, 40, 256);

SIZE(nmreq_parse_ctx, 144);
FIELD(nmreq_parse_ctx, ctx, 0, 8);
FIELD(nmreq_parse_ctx, token, 8, 8);
FIELD(nmreq_parse_ctx, keys, 16, 128);
ASSERT(ALIGNMENT(struct nmreq_opt_parser) == 16, "nmreq_opt_parser");

VALUE(NMREQ_OPT_MAXKEYS, 16);
VALUE(NMREQ_OPTK_ALLOWEMPTY, 1);
VALUE(NMREQ_OPTK_MUSTSET, 2);
VALUE(NMREQ_OPTK_DEFAULT, 4);
VALUE(NMREQ_OPTF_DISABLED, 1);
VALUE(NMREQ_OPTF_ALLOWEMPTY, 2);

/* Every function is there, to be linked, and has its type. */
static struct nmport_d *(*const opens[])(const char *) = {
	nmport_open, nmport_prepare,
};
static void (*const undoes[])(struct nmport_d *) = {
	nmport_close, nmport_delete, nmport_undo_parse, nmport_undo_prepare,
	nmport_undo_register, nmport_undo_mmap, nmport_undo_open_desc,
};
static int (*const steps[])(struct nmport_d *) = {
	nmport_register, nmport_mmap, nmport_open_desc,
};
static const struct {
	struct nmport_d *(*create)(void);
	struct nmport_d *(*clone)(struct nmport_d *);
	int (*inject)(struct nmport_d *, const void *, size_t);
	int (*parse)(struct nmport_d *, const char *);
	int (*extmem)(struct nmport_d *, void *, size_t);
	int (*extmem_from_file)(struct nmport_d *, const char *);
	struct nmreq_pools_info *(*extmem_getinfo)(struct nmport_d *);
	int (*offset)(struct nmport_d *, uint64_t, uint64_t, uint64_t,
		      uint64_t);
	void (*disable_option)(const char *);
	int (*enable_option)(const char *);

	void (*header_init)(struct nmreq_header *, uint16_t, void *);
	int (*header_decode)(const char **, struct nmreq_header *,
			     struct nmctx *);
	int (*register_decode)(const char **, struct nmreq_register *,
			       struct nmctx *);
	int32_t (*get_mem_id)(const char **, struct nmctx *);
	void (*push_option)(struct nmreq_header *, struct nmreq_option *);
	void (*remove_option)(struct nmreq_header *, struct nmreq_option *);
	struct nmreq_option *(*find_option)(struct nmreq_header *, uint32_t);
	void (*free_options)(struct nmreq_header *);
	const char *(*option_name)(uint32_t);
	int (*options_decode)(const char *, struct nmreq_opt_parser *, void *,
			      struct nmctx *);

	struct nmctx *(*get)(void);
	struct nmctx *(*set_default)(struct nmctx *);
	void (*ferror)(struct nmctx *, const char *, ...);
	void *(*malloc)(struct nmctx *, size_t);
	void (*free)(struct nmctx *, void *);
	void (*lock)(struct nmctx *);
	void (*unlock)(struct nmctx *);
	void (*set_threadsafe)(void);
} others = {
	nmport_new, nmport_clone, nmport_inject, nmport_parse, nmport_extmem,
	nmport_extmem_from_file, nmport_extmem_getinfo, nmport_offset,
	nmport_disable_option, nmport_enable_option,

	nmreq_header_init, nmreq_header_decode, nmreq_register_decode,
	nmreq_get_mem_id, nmreq_push_option, nmreq_remove_option,
	nmreq_find_option, nmreq_free_options, nmreq_option_name,
	nmreq_options_decode,

	nmctx_get, nmctx_set_default, nmctx_ferror, nmctx_malloc, nmctx_free,
	nmctx_lock, nmctx_unlock, nmctx_set_threadsafe,
};

int
main(void)
{
	check(1, "sizes, offsets and constants (checked by the compiler)");
	check(opens[0] && undoes[0] && steps[0] && others.create,
	      "every function is linked");
	return check_result();
}
