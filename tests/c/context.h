/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A context of libnetmap that keeps the last message, counts what is
 * allocated, can run out of memory, and knows whether it is locked.
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "check.h"

#include <libnetmap.h>

static struct {
	struct nmctx ctx;
	char message[2048];
	int messages;
	int live;	/* allocations not freed */
	int left;	/* allocations until there is no memory; -1: no limit */
	int locked, locks;
	int misused;	/* wrong context, or lock and unlock out of order */
} context;

static inline void
context_error(struct nmctx *ctx, const char *message)
{
	context.misused += ctx != &context.ctx;
	context.messages++;
	snprintf(context.message, sizeof(context.message), "%s", message);
}

static inline void *
context_malloc(struct nmctx *ctx, size_t size)
{
	void *memory;

	context.misused += ctx != &context.ctx;
	if (context.left == 0)
		return NULL;
	if (context.left > 0)
		context.left--;
	memory = malloc(size);
	require(memory != NULL, "malloc");
	memset(memory, 0xa5, size);
	context.live++;
	return memory;
}

static inline void
context_free(struct nmctx *ctx, void *memory)
{
	context.misused += ctx != &context.ctx;
	context.live -= memory != NULL;
	free(memory);
}

static inline void
context_lock(struct nmctx *ctx, int lock)
{
	context.misused += ctx != &context.ctx || context.locked == !!lock;
	context.locked = !!lock;
	context.locks++;
}

/* Makes it the default; returns the one before. */
static inline struct nmctx *
context_use(void)
{
	context.ctx.verbose = 1;
	context.ctx.error = context_error;
	context.ctx.malloc = context_malloc;
	context.ctx.free = context_free;
	context.ctx.lock = context_lock;
	context.left = -1;
	return nmctx_set_default(&context.ctx);
}

/* The message must be this one, and is forgotten. */
static inline int
context_said(const char *expected)
{
	int same = strcmp(context.message, expected) == 0;

	if (same)
		check(1, "message: %s", expected);
	else
		check(0, "message (got \"%s\", expected \"%s\")",
		      context.message, expected);
	context.message[0] = '\0';
	return same;
}

#endif
