// SPDX-License-Identifier: MIT
// Classes that are no points: what the kernel, or BPF, tells of threads, processes and cgroups.
#pragma once
#include <string_view>

#include "binding/classes.hpp"
#include "binding/slots.hpp"

namespace opline {

// LTTng's names; perf's conversion to CTF says pid for tid and puts the sub-system before the event's name.
// Without `states` only which thread sched_waking wakes is wanted.
void bind_sched(BoundClass &, std::string_view name, Slots &, bool states);
// From BPF: one event of what sched_switch, sched_waking and sched_switch say of a thread, when it is back on a CPU.
void bind_off_cpu(BoundClass &, Slots &);
// From BPF, before that: which thread ran while this one waited for its CPU.
void bind_ran_instead(BoundClass &, Slots &);
// From BPF, before that: which lock it slept for.
void bind_lock_wait(BoundClass &, Slots &);
// From BPF: of which other threads it tells the same, and that some of it is missing.
void bind_follow(BoundClass &, Slots &);
// Who a thread is (identity/threads.hpp): from the kernel domain's state dump, from BPF.
void bind_dumped_thread(BoundClass &, Slots &);
void bind_thread(BoundClass &, Slots &);
// From BPF: in which cgroup (identity/cgroups.hpp).
void bind_cgroup(BoundClass &, Slots &);
// From BPF: the path of a file that system calls name by its inode.
void bind_file_path(BoundClass &, Slots &);
// From BPF: positions in TCP streams. True: it is such a class.
bool bind_tcp(BoundClass &, std::string_view name, Slots &);
// Of the recorded processes from BPF, and of every process from LTTng's kernel domain (lttng-modules 2.13,
// include/instrumentation/events/sched.h). True: it is such a class.
bool bind_process(BoundClass &, std::string_view name, Slots &);

}  // namespace opline
