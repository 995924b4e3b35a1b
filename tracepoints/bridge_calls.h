// SPDX-License-Identifier: MIT
// The bridge's part for system calls: which are wanted, what number each has here, and passing one on.
#pragma once
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "block_event.h"
#include "bridge_record.h"
#include "calls.h"

// A bit per opline_call that the session records at the moment, entry or exit.
uint64_t enabled_calls(void);
// Whether the session records io_uring's requests.
bool uring_enabled(void);
// The number of each call on this machine: call_of[number] = opline_call.
void number_calls(volatile __u8 *call_of);
// Of a record with many iocbs: they lie behind what is held of it, until it is passed on.
void keep_iocbs(struct block_event *e, const struct iocbs_event *record);
// Pass on a record of KIND_CALL_ENTRY or KIND_CALL_EXIT; false if the session does not record that event (any more).
bool pass_call(const struct block_event *e, uint64_t seq);
// The same of KIND_URING.
bool pass_uring(const struct block_event *e, uint64_t seq);
