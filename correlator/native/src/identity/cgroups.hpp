// SPDX-License-Identifier: MIT
// In which cgroup a thread is. The collector tells the cgroup of a thread with who the thread is, and again when the
// process, or the thread alone, moves; the path of a cgroup is told before the first event that calls it by its number.
#pragma once
#include <array>
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"
#include "event/event.hpp"

namespace opline {

class Cgroups {
  public:
    // `path`: pool id.
    void name(std::uint32_t host, std::uint64_t number, std::uint32_t path) { paths_.put({host, number}, path); }
    // Pool id of its path; 0: not known.
    std::uint32_t path(std::uint32_t host, std::uint64_t number) const {
        if (number == 0 || paths_.empty()) return 0;
        const std::uint32_t *known = paths_.find({host, number});
        return known ? *known : 0;
    }
    // A thread is in the cgroup from here on, or (`tid` 0) all threads of the process.
    void entered(std::uint32_t host, std::int64_t pid, std::int64_t tid, std::uint64_t number) {
        (tid > 0 ? threads_ : processes_).put(host_key(host, tid > 0 ? tid : pid), {path(host, number), ++told_});
    }
    // Pool id of the path of the cgroup that the thread is in; 0: not known.
    std::uint32_t of_thread(std::uint32_t host, std::int64_t pid, std::int64_t tid) const {
        if (told_ == 0) return 0;
        RecentThreadPath &r = recent_[static_cast<std::size_t>(tid) % recent_.size()];
        if (r.told != told_ || r.thread != host_key(host, tid) || r.process != host_key(host, pid))
            r = {host_key(host, tid), host_key(host, pid), told_, look_up(host, pid, tid)};
        return r.path;
    }

  private:
    struct CgroupNumber {
        std::uint32_t host = 0;
        std::uint64_t number = 0;
        bool operator==(const CgroupNumber &o) const { return host == o.host && number == o.number; }
    };
    struct CgroupNumberHash {
        std::uint64_t operator()(const CgroupNumber &n) const { return mix64(n.number ^ mix64(n.host)); }
    };
    struct ToldPath {
        std::uint32_t path = 0;
        std::uint64_t told = 0;  // the later one holds
    };
    struct RecentThreadPath {
        std::uint64_t thread = 0, process = 0, told = 0;
        std::uint32_t path = 0;
    };
    std::uint32_t look_up(std::uint32_t host, std::int64_t pid, std::int64_t tid) const {
        const ToldPath *thread = threads_.find(host_key(host, tid)), *process = processes_.find(host_key(host, pid));
        if (!process || (thread && thread->told > process->told)) return thread ? thread->path : 0;
        return process->path;
    }

    FlatMap<CgroupNumber, std::uint32_t, CgroupNumberHash> paths_;
    FlatMap<std::uint64_t, ToldPath> threads_, processes_;
    std::uint64_t told_ = 0;
    mutable std::array<RecentThreadPath, 64> recent_{};
};

}  // namespace opline
