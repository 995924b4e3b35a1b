// SPDX-License-Identifier: MIT
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "jobs_tp.h"
#define STEP_QUEUED(j) lttng_ust_tracepoint(jobs, queued, (j)->id)
#define STEP_STARTED(j) lttng_ust_tracepoint(jobs, started, (j)->id)
#define STEP_DONE(j) lttng_ust_tracepoint(jobs, done, (j)->id)
