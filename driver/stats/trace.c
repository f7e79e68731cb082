// SPDX-License-Identifier: GPL-2.0
/* Makes the tracepoints. */
#include "../iaa.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
