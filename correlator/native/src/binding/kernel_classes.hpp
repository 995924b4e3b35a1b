// SPDX-License-Identifier: MIT
// Classes that are no points: what the kernel, or BPF, tells of threads, processes and cgroups.
#pragma once
#include <string_view>

#include "binding/classes.hpp"
#include "binding/slots.hpp"

namespace opline {

// LTTng's names; perf's conversion to CTF writes pid for tid, and the sub-system before the event's name. Without
// `states` only the thread woken by sched_waking is wanted.
void bind_sched(BoundClass &, std::string_view name, Slots &, bool states);
// From BPF: one event for a thread back on a CPU, with the facts of sched_switch, sched_waking and sched_switch.
void bind_off_cpu(BoundClass &, Slots &);
// From BPF, before kOffCpu: the thread that ran while this thread waited for its CPU.
void bind_ran_instead(BoundClass &, Slots &);
// From BPF, before kOffCpu: the lock that the thread slept for.
void bind_lock_wait(BoundClass &, Slots &);
// From BPF: the other threads reported as well, and a loss of some of these reports.
void bind_follow(BoundClass &, Slots &);
// Facts of a thread (identity/threads.hpp): from the kernel domain's state dump, from BPF.
void bind_dumped_thread(BoundClass &, Slots &);
void bind_thread(BoundClass &, Slots &);
// From BPF: the cgroup of a thread (identity/cgroups.hpp).
void bind_cgroup(BoundClass &, Slots &);
// From BPF: the path of a file, for system calls with the file's inode.
void bind_file_path(BoundClass &, Slots &);
// From BPF: positions in TCP streams. Returns whether the class is such a class.
bool bind_tcp(BoundClass &, std::string_view name, Slots &);
// For the recorded processes from BPF, and for every process from LTTng's kernel domain (lttng-modules 2.13,
// include/instrumentation/events/sched.h). Returns whether the class is such a class.
bool bind_process(BoundClass &, std::string_view name, Slots &);

}  // namespace opline
