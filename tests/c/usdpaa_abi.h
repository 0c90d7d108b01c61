/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of USDPAA's headers have in common. Compiling them is the test. */
#ifndef TEST_USDPAA_ABI_H
#define TEST_USDPAA_ABI_H

#include "abi.h"
#include <usdpaa/compat.h>
#include <usdpaa/fsl_usd.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/dma_mem.h>
#include <usdpaa/of.h>
#include <usdpaa/fman.h>
#include <usdpaa/fsl_fman.h>
#include <usdpaa/usdpaa_netcfg.h>

#endif
