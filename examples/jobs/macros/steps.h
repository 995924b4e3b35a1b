// SPDX-License-Identifier: MIT
#include "opline_tp.h"
#define STEP_QUEUED(j) OPLINE_BEGIN_HERE((j)->id, "a file", "write", 0, sizeof(j)->data)
#define STEP_STARTED(j) OPLINE_ENTER((j)->id, "started")
#define STEP_DONE(j) OPLINE_END((j)->id, 0)
