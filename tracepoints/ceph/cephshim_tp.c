// SPDX-License-Identifier: MIT
// The provider `cephshim`, compiled once.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "cephshim_tp.h"
