/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples of PF_RING ask of the system. */
#define HAVE_PTHREAD_SETAFFINITY_NP 1
