/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports by name, above the requests of net/netmap.h:
 *
 *	struct nmport_d *d = nmport_open("vale0:a");
 *	nmport_inject(d, frame, length);
 *	ioctl(d->fd, NIOCTXSYNC, NULL);
 *	...
 *	nmport_close(d);
 *
 * Link with -lnetmap: libnetmap.so brings libringway_preload.so along, in front
 * of libc, so the program needs no preloading and no further library. With
 * the archive, libnetmap.a, add -lringway_preload.
 *
 * Functions that return a pointer return NULL on failure, those that return an
 * int -1; errno then says why, and a sentence has gone to the context, which
 * prints it on stderr unless the program has its own (see struct nmctx).
 *
 * A descriptor belongs to one thread at a time; different descriptors may be
 * used by different threads.
 */
#ifndef LIBNETMAP_H_
#define LIBNETMAP_H_

#include <stddef.h>
#include <stdint.h>

#include <net/netmap_user.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nmctx;
struct nmem_d;
struct nmport_cleanup_d;

/*
 * How a port is named
 *
 *	netmap:NAME	an interface, or a pipe: NAME{ID, NAME}ID
 *	valeX:Y		port Y of switch valeX, or a pipe: valeX:Y{ID
 *
 * then which rings; nothing means all of the interface's:
 *
 *	-N  ^  ^N  *	ring N; host rings; host ring N; both kinds, all rings
 *
 * then, in any order,
 *
 *	/FLAGS		x exclusive, T or R only the tx or rx rings, t and r
 *			monitor what is sent and received, z without copying
 *	@N		in region N
 *
 * and then options, which take "-" for "_" in their keys:
 *
 *	@share=PORT	in the region of PORT
 *	@conf:KEY=N,...	rings, host_rings, slots, or one direction's: tx_rings,
 *			rx_rings, host_tx_rings, host_rx_rings, tx_slots,
 *			rx_slots
 *	@extmem=FILE	in memory mapped from FILE, or
 *	@extmem:file=FILE,KEY=N,... with if_num, if_size, ring_num, ring_size,
 *			buf_num, buf_size
 *	@offset:initial=N,bits=N	data starts at byte N of each buffer.
 *			Disabled until nmport_enable_option("offset")
 *
 * and, of Ringway's own, for interfaces,
 *
 *	@filter=EXPRESSION	receive what matches (see pcap-filter(7)); the
 *			stack gets the rest
 *	@sample=N	of that, one in N
 *	@mode=MODE	zerocopy, copy, generic or packet, or not at all
 *	@buffers=BYTES	with buffers of that size
 *	@timestamps=KIND	hardware or software, see net/ringway.h
 *
 * and for pipes,
 *
 *	@user=NAME	between this program's user and that one, who names
 *			this one in turn
 *
 * With RINGWAY_VERBOSE in the environment, stderr hears why one is refused.
 */

/*
 * A port. Until it is registered the program may write hdr and reg, for what
 * no name can say; all else is to be read only.
 */
struct nmport_d {
	struct nmreq_header hdr;
	struct nmreq_register reg;	/* what hdr.nr_body points to */

	struct nmem_d	*mem;	/* equal for ports that share a region */
	struct nmctx	*ctx;

	int		register_done;
	int		mmap_done;
	struct nmreq_opt_extmem *extmem;	/* within hdr's options */

	int		fd;	/* for ioctl and poll; -1 when there is none */
	struct netmap_if *nifp;
	/* The first run of rings that are bound, host rings included. */
	uint16_t	first_tx_ring;
	uint16_t	last_tx_ring;
	uint16_t	first_rx_ring;
	uint16_t	last_rx_ring;
	uint16_t	cur_tx_ring;
	uint16_t	cur_rx_ring;

	struct nmport_cleanup_d *clist;	/* what nmport_undo_parse undoes */
};

/* In one go: parse, register and map; undo all of it. */
struct nmport_d *nmport_open(const char *portspec);
void nmport_close(struct nmport_d *);

/*
 * Copies one packet into the first tx ring with room for all of it, trying
 * from the last ring used. Returns size, or 0 when no ring has room. Packets
 * move when the program calls ioctl or poll.
 */
int nmport_inject(struct nmport_d *, const void *buf, size_t size);

/*
 * Step by step. Each step has one that undoes it; nmport_undo_prepare,
 * nmport_delete and nmport_close take NULL as well.
 *
 *	new, clone   delete		a descriptor, with what parse has set up
 *	parse        undo_parse		hdr and reg, from a name
 *	prepare      undo_prepare	new and parse
 *	register     undo_register	fd
 *	mmap         undo_mmap		mem, nifp and the ranges of rings
 *	open_desc    undo_open_desc	register and mmap
 *
 * When nmport_parse fails, it has undone itself, which leaves hdr and reg all
 * zero.
 */
struct nmport_d *nmport_new(void);
void nmport_delete(struct nmport_d *);
int nmport_parse(struct nmport_d *, const char *portspec);
void nmport_undo_parse(struct nmport_d *);
struct nmport_d *nmport_prepare(const char *portspec);
void nmport_undo_prepare(struct nmport_d *);
int nmport_register(struct nmport_d *);
void nmport_undo_register(struct nmport_d *);
int nmport_mmap(struct nmport_d *);
void nmport_undo_mmap(struct nmport_d *);
int nmport_open_desc(struct nmport_d *);
void nmport_undo_open_desc(struct nmport_d *);

/*
 * A descriptor like the given one, ready to be registered: same port, region
 * and counts, no options but Ringway's own. EINVAL for a port with extmem that has no region
 * yet.
 */
struct nmport_d *nmport_clone(struct nmport_d *);

/*
 * Options for nmport_register; EINVAL when it is too late, or when the port
 * has extmem already. Memory given to nmport_extmem stays the caller's; the
 * file's is unmapped by nmport_undo_parse.
 */
int nmport_extmem(struct nmport_d *, void *base, size_t size);
int nmport_extmem_from_file(struct nmport_d *, const char *fname);
struct nmreq_pools_info *nmport_extmem_getinfo(struct nmport_d *);
int nmport_offset(struct nmport_d *, uint64_t initial, uint64_t maxoff,
		  uint64_t bits, uint64_t mingap);

/*
 * Which options nmport_parse accepts, in the whole process; to be called
 * before there are threads. A disabled one is EOPNOTSUPP in a name; enabling
 * one that does not exist fails with the same.
 */
void nmport_disable_option(const char *);
int nmport_enable_option(const char *);

/*
 * Requests: the pieces of nmport_parse. The decoders advance *spec or *mode
 * past what they have read, and on failure change nothing.
 */
void nmreq_header_init(struct nmreq_header *, uint16_t reqtype, void *body);
int nmreq_header_decode(const char **spec, struct nmreq_header *,
			struct nmctx *);
int nmreq_register_decode(const char **mode, struct nmreq_register *,
			  struct nmctx *);

/* The region of a port, or -1; advances *portname past the name. */
int32_t nmreq_get_mem_id(const char **portname, struct nmctx *);

/* The list of options of a request. */
void nmreq_push_option(struct nmreq_header *, struct nmreq_option *);
void nmreq_remove_option(struct nmreq_header *, struct nmreq_option *);
struct nmreq_option *nmreq_find_option(struct nmreq_header *, uint32_t type);
void nmreq_free_options(struct nmreq_header *);	/* by free() */
const char *nmreq_option_name(uint32_t type);

/* Elements must not be removed on the way. */
#define nmreq_foreach_option(hdr, opt) \
	for ((opt) = (struct nmreq_option *)(uintptr_t)(hdr)->nr_options; \
	     (opt) != NULL; \
	     (opt) = (struct nmreq_option *)(uintptr_t)(opt)->nro_next)

/*
 * Options in names: a program can read lists of its own.
 *
 *	@PREFIX  @PREFIX=VALUE  @PREFIX:KEY=VALUE,KEY=VALUE
 */
#define NMREQ_OPT_MAXKEYS	16

struct nmreq_parse_ctx;
typedef int (*nmreq_opt_parser_cb)(struct nmreq_parse_ctx *);

struct nmreq_opt_key {
	const char	*key;	/* with "_", whatever the user writes */
	int		id;	/* index into nmreq_parse_ctx.keys */
	unsigned int	flags;
#define NMREQ_OPTK_ALLOWEMPTY	1U	/* "=VALUE" may be left out */
#define NMREQ_OPTK_MUSTSET	2U	/* the key may not be left out */
#define NMREQ_OPTK_DEFAULT	4U	/* it is the one of @PREFIX=VALUE */
};

struct nmreq_opt_parser {
	const char	*prefix;
	nmreq_opt_parser_cb parse;
	int		default_key;	/* id of the key, -1 for none */
	int		nr_keys;
	unsigned int	flags;
#define NMREQ_OPTF_DISABLED	1U
#define NMREQ_OPTF_ALLOWEMPTY	2U	/* @PREFIX alone is right */
	struct nmreq_opt_parser *next;
	struct nmreq_opt_key keys[NMREQ_OPT_MAXKEYS];
} __attribute__((aligned(16)));

/* What a parser is called with; the strings are gone when it returns. */
struct nmreq_parse_ctx {
	struct nmctx	*ctx;
	void		*token;	/* as given to nmreq_options_decode */
	const char	*keys[NMREQ_OPT_MAXKEYS];	/* NULL: not set */
};

/*
 * Reads a list of options, "" or "@...", with parsers. Returns 0; -1 and
 * EINVAL for a bad list, EOPNOTSUPP for a disabled option, ENOMEM; or what a
 * parser has returned. What parsers before have done is not undone.
 */
int nmreq_options_decode(const char *opt, struct nmreq_opt_parser parsers[],
			 void *token, struct nmctx *);

/*
 * The context: how the library reports errors, allocates, and locks its list
 * of mappings. A program that wants other ways fills in one of its own and
 * makes it the default before it opens ports; a port keeps the context that it
 * was made with. The callbacks get the context that is in use.
 */
typedef void (*nmctx_error_cb)(struct nmctx *, const char *message);
typedef void *(*nmctx_malloc_cb)(struct nmctx *, size_t);
typedef void (*nmctx_free_cb)(struct nmctx *, void *);
typedef void (*nmctx_lock_cb)(struct nmctx *, int lock);	/* 0: unlock */

struct nmctx {
	int		verbose;	/* 0: no messages */
	nmctx_error_cb	error;
	nmctx_malloc_cb	malloc;
	nmctx_free_cb	free;
	nmctx_lock_cb	lock;	/* NULL: one thread only */
	struct nmem_d	*mem_descs;	/* the mappings in use */
};

/*
 * A mapped region, shared by the ports of a context that are in it. The fields
 * belong to the library.
 */
struct nmem_d {
	uint16_t	mem_id;
	int		refcount;
	void		*mem;
	size_t		size;
	int		is_extmem;	/* mapped by somebody else */
	struct nmem_d	*next;
	struct nmem_d	*prev;
};

struct nmctx *nmctx_get(void);	/* the default context */
struct nmctx *nmctx_set_default(struct nmctx *);	/* the one before */
void nmctx_ferror(struct nmctx *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *nmctx_malloc(struct nmctx *, size_t);
void nmctx_free(struct nmctx *, void *);
void nmctx_lock(struct nmctx *);
void nmctx_unlock(struct nmctx *);

/*
 * Makes a copy of the default context with a mutex the default. At start the
 * default context has one already, so this is for those who have set another;
 * and LIBNETMAP_NOTHREADSAFE, which asks the original not to link its mutex,
 * has nothing to leave out.
 */
void nmctx_set_threadsafe(void);

#ifdef __cplusplus
}
#endif

#endif /* LIBNETMAP_H_ */
