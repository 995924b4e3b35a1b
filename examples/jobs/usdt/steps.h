// SPDX-License-Identifier: MIT
#include <sys/sdt.h>
#define STEP_QUEUED(j) DTRACE_PROBE1(jobs, queued, (j)->id)
#define STEP_STARTED(j) DTRACE_PROBE1(jobs, started, (j)->id)
#define STEP_DONE(j) DTRACE_PROBE1(jobs, done, (j)->id)
