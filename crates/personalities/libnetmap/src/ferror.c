/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: what takes C, since Rust has no variadic functions of its own. */
#include <stdarg.h>
#include <stdio.h>

#include <libnetmap.h>

void libnetmap_ferror(struct nmctx *, const char *, ...)
	__attribute__((format(printf, 2, 3)));
void libnetmap_print(struct nmctx *, const char *);

/*
 * A statically linked program has no place for the library that stands in front of libc, and would
 * find no port. It has no loader either, whose __tls_get_addr is missing then: the linker says so,
 * with the name of this function. A program of another libc may have that without a loader: its
 * linker makes no _DYNAMIC, unless it may lie anywhere (-static-pie).
 */
extern const char _DYNAMIC[] __attribute__((visibility("hidden")));
extern const char __tls_get_addr[];
__attribute__((used)) static const char *
libnetmap_is_linked_dynamically_with_lringway_netmap(int which)
{
	return which ? _DYNAMIC : __tls_get_addr;
}

/* nmctx_ferror, under the name that lib.rs exports it from. */
void
libnetmap_ferror(struct nmctx *ctx, const char *format, ...)
{
	char text[1000];
	va_list args;
	int length;

	if (!ctx->verbose || !ctx->error)
		return;
	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ctx->error(ctx, (size_t)length < sizeof(text) ? text :
		   "error message too long");
}

/* How the context that is there at start reports. */
void
libnetmap_print(struct nmctx *ctx, const char *message)
{
	(void)ctx;
	fprintf(stderr, "%s\n", message);
}
