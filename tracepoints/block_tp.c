// SPDX-License-Identifier: MIT
// The provider `block`, compiled once, into the bridge.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "block_tp.h"
