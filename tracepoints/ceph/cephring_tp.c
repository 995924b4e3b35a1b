// SPDX-License-Identifier: MIT
// The provider `cephring` of the collector: the shim's events with their own time and thread.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#define CEPHSHIM_OF_RING
#include "one_write.h"

#include "cephshim_tp.h"
