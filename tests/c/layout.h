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

/* Of any type. */
#define SIZE_OF(type, bytes) \
	ASSERT(sizeof(type) == (bytes), #type)
#define OFFSET_OF(type, field, at) \
	ASSERT(offsetof(type, field) == (at), #type "." #field)
#define FIELD_OF(type, field, at, bytes) \
	OFFSET_OF(type, field, at); \
	ASSERT(sizeof(((type *)0)->field) == (bytes), #type "." #field)

/* Of structures. */
#define SIZE(type, bytes)		SIZE_OF(struct type, bytes)
#define OFFSET(type, field, at)		OFFSET_OF(struct type, field, at)
#define FIELD(type, field, at, bytes)	FIELD_OF(struct type, field, at, bytes)

#define VALUE(name, value) \
	ASSERT((name) == (value), #name)
#define IOCTL(name, number, bytes) \
	ASSERT((name) == (number) && _IOC_SIZE(name) == (bytes), #name)

#endif
