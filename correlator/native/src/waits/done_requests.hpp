// SPDX-License-Identifier: MIT
// Block requests that are done, by the CPU of the completion and by the thread that queued the request. A completion
// wakes the threads that wait for the request.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "block/block.hpp"

namespace opline {

struct DoneRequest {
    std::uint64_t request = 0;
    std::int64_t queue_ns = kNoTime, issue_ns = kNoTime;  // kNoTime: not seen
    // for a write behind a flush: the flush ran between these two times
    std::int64_t getrq_ns = kNoTime, preflush_ns = kNoTime;
    std::int64_t done_ns = kNoTime;         // the request's bios are done
    std::uint32_t dev = 0, queue_comm = 0;  // comm: pool id; 0: unknown
    std::int32_t queue_tid = -1;
};

class DoneRequests {
  public:
    // `cpu`: the CPU of the request's last completion.
    void add(std::uint32_t host, std::uint32_t cpu, const DoneRequest &r) {
        ++added_;
        if (cpu != kNoCpu) insert(by_cpu_[key(host, cpu)], r);
        if (r.queue_tid > 0) insert(by_thread_[key(host, static_cast<std::uint32_t>(r.queue_tid))], r);
    }
    // The last request completed on the CPU, or queued by the thread, up to `until_ns`; nullptr: none is known.
    const DoneRequest *last_on(std::uint32_t host, std::uint32_t cpu, std::int64_t until_ns) const {
        return last(by_cpu_.find(key(host, cpu)), until_ns);
    }
    const DoneRequest *last_of(std::uint32_t host, std::int64_t tid, std::int64_t until_ns) const {
        return last(by_thread_.find(key(host, static_cast<std::uint32_t>(tid))), until_ns);
    }
    // Since the last forget_before().
    std::uint64_t added() const { return added_; }
    void forget_before(std::int64_t ns) {
        added_ = 0;
        for (auto *map : {&by_cpu_, &by_thread_})
            map->erase_if([ns](std::uint64_t, Requests &all) {
                all.erase(all.begin(), after(all, ns));
                return all.empty();
            });
    }
    // Requests are missing: no known request is surely the last.
    void lost() { by_cpu_ = {}, by_thread_ = {}; }

  private:
    static constexpr std::size_t kMostKept = 1u << 18;  // of a CPU or a thread
    using Requests = std::vector<DoneRequest>;          // in the order of completion
    static std::uint64_t key(std::uint32_t host, std::uint32_t number) { return std::uint64_t{host} << 32 | number; }
    static Requests::const_iterator after(const Requests &all, std::int64_t ns) {
        return std::upper_bound(all.begin(), all.end(), ns,
                                [](std::int64_t at, const DoneRequest &r) { return at < r.done_ns; });
    }
    static void insert(Requests &all, const DoneRequest &r) {
        if (all.empty() || all.back().done_ns <= r.done_ns) all.push_back(r);
        else all.insert(after(all, r.done_ns), r);
        if (all.size() > kMostKept) all.erase(all.begin(), all.begin() + kMostKept / 2);
    }
    static const DoneRequest *last(const Requests *all, std::int64_t until_ns) {
        if (!all) return nullptr;
        const auto next = after(*all, until_ns);
        return next == all->begin() ? nullptr : &*std::prev(next);
    }
    FlatMap<std::uint64_t, Requests> by_cpu_, by_thread_;
    std::uint64_t added_ = 0;
};

}  // namespace opline
