// SPDX-License-Identifier: MIT
// The shim's side of the provider: without the library that has the probes every event is a load and a branch.
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "cephshim_tp.h"
