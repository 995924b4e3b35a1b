/* SPDX-License-Identifier: MIT */
/* The probes of provider `demo`: compiled once, linked into the client and into the server. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "demo_tp.h"
