// SPDX-License-Identifier: MIT
#define STEP_QUEUED(j)
#define STEP_STARTED(j)
#define STEP_DONE(j)
