/* SPDX-License-Identifier: MIT
 * What the collector of the Ceph shim's rings passes on, for the fuzz target to look at instead of LTTng. */
#pragma once
#include "pass.h"

enum { RING_lost = RING_KINDS };  // the collector's own event

// An event, its arguments encoded again as a thread's are (record.h).
void passed_on(const struct ring_origin *origin, unsigned kind, const char *arguments, size_t bytes);
