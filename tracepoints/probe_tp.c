// SPDX-License-Identifier: MIT
// The provider `cephprobe`, compiled once, into its bridge.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "probe_tp.h"
