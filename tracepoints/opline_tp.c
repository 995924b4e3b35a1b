/* SPDX-License-Identifier: MIT */
/* The probes of provider `opline`: compile it once and link it into the program, or into a library of its own. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "opline_tp.h"
