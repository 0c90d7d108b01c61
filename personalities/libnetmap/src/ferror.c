/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: what takes C, since Rust has no variadic functions of its own. */
#include <stdarg.h>
#include <stdio.h>

#include <libnetmap.h>

void libnetmap_ferror(struct nmctx *, const char *, ...)
	__attribute__((format(printf, 2, 3)));
void libnetmap_print(struct nmctx *, const char *);

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
