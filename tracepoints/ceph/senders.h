// SPDX-License-Identifier: MIT
// Who may hand a ring to the collector.
#pragma once
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

// Once. `uids`: users besides root and our own, up to NULL; false if one is no number.
bool senders_begin(pid_t recorder, char **uids);

// One of those users, or a process that the recorder has started, whatever user that has become. `who` is what the
// kernel says of a message (SCM_CREDENTIALS, unix(7)).
bool is_welcome(const struct ucred *who);
