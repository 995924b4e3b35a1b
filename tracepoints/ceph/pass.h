// SPDX-License-Identifier: MIT
// From a ring's record to an event of the provider `cephring`.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define CEPHSHIM_OF_RING
#include "cephshim_tp.h"

enum passed { PASSED, NOT_ENABLED, BROKEN };

// `record` has `bytes` bytes, its head included, and nobody writes into it any more.
enum passed pass_record(const struct ring_origin *origin, const void *record, size_t bytes);
bool pass_lost(const struct ring_origin *origin, uint64_t count, const char *reason);
bool pass_enabled(void);
