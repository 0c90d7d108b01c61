/* Some programs include compat.h by this name. */
#ifndef USDPAA_INTERNAL_COMPAT_H
#define USDPAA_INTERNAL_COMPAT_H

#include "../compat.h"

#endif
