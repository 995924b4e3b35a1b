// SPDX-License-Identifier: MIT
// For which op threads worked: per thread when it passed which point of which op or batch, and when it returned from
// waiting for something to do. Kept where a stage of the model is to be cut by it, as far back as the oldest op in
// memory began.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"

namespace opline {

inline std::uint64_t thread_key(std::uint32_t host, std::int64_t tid) {
    return mix64(static_cast<std::uint64_t>(tid)) ^ (static_cast<std::uint64_t>(host) << 48);
}

struct ThreadPoint {
    static constexpr std::uint64_t kNobody = 0;  // the thread waited for work until then
    // Refs of ops have 63 bits.
    static constexpr std::uint64_t of_batch(std::uint64_t serial) { return std::uint64_t{1} << 63 | serial; }

    std::int64_t ts_ns = 0;
    // op_ref() of the op at the time (by now perhaps an alias, after a join), or a batch.
    std::uint64_t worked_for = kNobody;
    std::uint32_t point = 0;  // pool id
};

class ThreadPoints {
  public:
    using Points = std::vector<ThreadPoint>;
    struct Thread {
        Points points;            // in order of time
        bool says_awake = false;  // the returns from waiting are known; else the thread counts as awake
        bool ended = false;       // the thread's process has ended, and no point came since
    };

    void passed(std::uint32_t host, std::int64_t tid, const ThreadPoint &p) {
        Thread &thread = threads_[thread_key(host, tid)];
        thread.ended = false;
        thread.says_awake = thread.says_awake || p.worked_for == ThreadPoint::kNobody;
        Points &all = thread.points;
        if (all.size() >= kMostOfThread) {
            all.erase(all.begin(), all.begin() + kMostOfThread / 2);
            count_ -= kMostOfThread / 2;
        }
        // A point may have the time of a mark before it.
        auto at = all.end();
        while (at != all.begin() && std::prev(at)->ts_ns > p.ts_ns) --at;
        all.insert(at, p);
        ++count_;
    }
    // nullptr: unknown thread.
    const Thread *of(std::uint32_t host, std::int64_t tid) const { return threads_.find(thread_key(host, tid)); }

    // The thread's points go with the ops older than the points, the last point included.
    void ended(std::uint64_t key) {
        if (Thread *thread = threads_.find(key)) thread->ended = true;
    }
    std::size_t threads() const { return threads_.size(); }

    // So many points that forgetting may be worth the time.
    bool many() const { return count_ >= look_at_; }
    void forget_before(std::int64_t ns) {
        count_ = 0;
        threads_.for_each([&](std::uint64_t, Thread &thread) {
            Points &all = thread.points;
            auto first = all.begin();
            while (first != all.end() && first->ts_ns < ns) ++first;
            if (first != all.begin()) --first;  // the thread's work at the begin
            all.erase(all.begin(), first);
            count_ += all.size();
        });
        threads_.erase_if([&](std::uint64_t, Thread &thread) {
            const bool old = thread.ended && (thread.points.empty() || thread.points.back().ts_ns < ns);
            if (old) count_ -= thread.points.size();
            return old;
        });
        look_at_ = std::max(kLookAt, 2 * count_);
    }

  private:
    static constexpr std::size_t kMostOfThread = 1u << 16, kLookAt = 1u << 16;
    FlatMap<std::uint64_t, Thread> threads_;
    std::size_t count_ = 0, look_at_ = kLookAt;
};

}  // namespace opline
