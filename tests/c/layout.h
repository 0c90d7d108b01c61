/* SPDX-License-Identifier: BSD-2-Clause */
/* Assertions on the layout of structures, for the compiler to check. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stddef.h>

#ifdef __cplusplus
#define ASSERT(condition, text)	static_assert(condition, text)
#define ALIGNMENT(type)		alignof(type)
#else
#define ASSERT(condition, text)	_Static_assert(condition, text)
#define ALIGNMENT(type)		_Alignof(type)
#endif

#define SIZE(type, bytes) \
	ASSERT(sizeof(struct type) == (bytes), #type)
#define OFFSET(type, field, at) \
	ASSERT(offsetof(struct type, field) == (at), #type "." #field)
#define FIELD(type, field, at, bytes) \
	OFFSET(type, field, at); \
	ASSERT(sizeof(((struct type *)0)->field) == (bytes), #type "." #field)
#define VALUE(name, value) \
	ASSERT((name) == (value), #name)
#define IOCTL(name, number, bytes) \
	ASSERT((name) == (number) && _IOC_SIZE(name) == (bytes), #name)

#endif
