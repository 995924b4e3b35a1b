// SPDX-License-Identifier: MIT
// Which processes an op's bios come from (docs/internals/stitching.md, "Whose process a bio comes from"). A thread
// number, a sector or a device number alone is no evidence: another process, or another machine, has the same ones.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "block/block.hpp"
#include "identity/threads.hpp"
#include "op/op.hpp"

namespace opline {

// The thread that queued a bio.
struct Queuer {
    std::uint32_t host = 0;
    std::int32_t pid = -1;      // -1: unknown
    std::int32_t kthread = -1;  // 1: a kernel thread, 0: a thread of a process, -1: unknown
    std::uint32_t comm = 0;     // pool id; 0: unknown
};

class Processes {
  public:
    Processes(const StringPool &strings, const Threads &threads) : strings_(strings), threads_(threads) {}

    // Kernel threads queue bios for every process. If the trace has no flag, the thread's name decides.
    bool of_kernel(const Queuer &q) {
        if (q.kthread >= 0) return q.kthread != 0;
        if (q.comm == 0) return false;
        auto [known, made] = kernel_names_.insert(q.comm);
        if (made) *known = kernel_name(strings_.at(q.comm));
        return *known;
    }
    // A point of the op came from the bio's process, or from an unnamed process. A process has two numbers if a fact
    // arrived between the two events.
    bool has(const Op &op, const Queuer &q) const {
        if (q.pid < 0 || op.transitions.any_process([&](std::int32_t pid) { return pid == q.pid; })) return true;
        const std::int64_t own = threads_.of_root(q.host, q.pid);
        return op.transitions.any_process(
            [&](std::int32_t pid) { return pid < 0 || threads_.untold(pid) || threads_.of_root(q.host, pid) == own; });
    }
    // Whether the bio can be the op's because the op's bytes are in flight at the bio's place: only the op's own
    // processes and the kernel of the op's machine queue such bios.
    bool in_flight_for(const Op &op, const Queuer &q) {
        return op.window_host == q.host && (has(op, q) || of_kernel(q));
    }

    // Names of kernel threads that queue bios: of workqueues, of file systems, and of drivers/md and drivers/block in
    // Linux 6.1 to 6.18. Workers of io_uring are kernel threads up to 5.11 (io_wqe_worker), and threads of the process
    // from 5.12 on (iou-wrk).
    static bool kernel_name(std::string_view name);

  private:
    const StringPool &strings_;
    const Threads &threads_;
    FlatMap<std::uint32_t, bool> kernel_names_;  // by pool id
};

}  // namespace opline
