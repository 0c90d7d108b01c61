/* Stands in the place of the security engine's descriptors: there is no such engine. */
#ifndef USDPAA_SEC_H
#define USDPAA_SEC_H

#include "compat.h"

#endif
