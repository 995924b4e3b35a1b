// SPDX-License-Identifier: MIT
// The threads that have points, and the op that each works for.
#pragma once
#include <array>

#include "base/flat_map.hpp"
#include "stitch/stitching.hpp"

namespace opline {

class ThreadStates {
  public:
    ThreadStates(Stitching &s, OpTable &ops) : s_(s), ops_(ops) {}

    // Made if the thread had no point yet.
    [[gnu::always_inline]] ThreadState &of(std::uint32_t host, std::int64_t tid) {
        ThreadState *state = recent(host, tid);
        return state ? *state : another_thread(host, tid);
    }
    // nullptr: the thread had no point.
    ThreadState *find(std::uint32_t host, std::int64_t tid) {
        ThreadState *state = recent(host, tid);
        return state ? state : threads_.find(thread_key(host, tid));
    }
    const ThreadState *find(std::uint32_t host, std::int64_t tid) const {
        const ThreadState *state = recent(host, tid);
        return state ? state : threads_.find(thread_key(host, tid));
    }
    template <class Look>  // void(ThreadState &)
    void each(Look look) {
        threads_.for_each([&](std::uint64_t, ThreadState &ts) { look(ts); });
    }
    void erase(std::uint32_t host, std::int64_t tid) {
        threads_.erase(thread_key(host, tid));
        recent_ = {};  // the other states may have moved
    }

    std::size_t size() const { return threads_.size(); }
    // A thread, or all threads of a process, have ended. After several ends, opline forgets the threads not needed by
    // an op in memory: the numbers of threads grow without end. Returns the keys (thread_key) of the forgotten threads.
    std::vector<std::uint64_t> thread_ended(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns);
    std::vector<std::uint64_t> process_ended(std::int32_t pid, std::int64_t ts_ns);

    FoundOp current(ThreadState &);
    Op *current_op(std::uint32_t host, std::int64_t tid);
    std::shared_ptr<Batch> current_batch(std::uint32_t host, std::int64_t tid);
    void apply(ThreadState &, ThreadRule, const FoundOp &);
    // Whether the points with the block event's thread number can come from the event's thread. They cannot if the
    // process differs or, in a trace without processes, the thread's name.
    bool same_thread(std::uint32_t host, const BlockEvent &) const;

  private:
    static constexpr std::size_t kEnded = 64;  // a look at all threads takes time in proportion to their number

    bool needed(ThreadState &);
    std::vector<std::uint64_t> forget_ended();
    [[gnu::always_inline]] ThreadState *recent(std::uint32_t host, std::int64_t tid) const {
        const RecentThread &last = recent_[static_cast<std::size_t>(tid) % recent_.size()];
        return last.tid == tid && last.host == host ? last.state : nullptr;
    }
    [[gnu::noinline]] ThreadState &another_thread(std::uint32_t host, std::int64_t tid) {
        auto [state, added] = threads_.insert(thread_key(host, tid));
        if (added) recent_ = {};  // the other states may have moved
        recent_[static_cast<std::size_t>(tid) % recent_.size()] = {tid, host, state};
        return *state;
    }
    struct RecentThread {
        std::int64_t tid = 0;
        std::uint32_t host = 0;
        ThreadState *state = nullptr;
    };

    Stitching &s_;
    OpTable &ops_;
    FlatMap<std::uint64_t, ThreadState> threads_;
    std::array<RecentThread, 64> recent_{};
    struct EndedThreads {                              // when
        FlatMap<std::uint64_t, std::int64_t> threads;  // by thread_key
        FlatMap<std::int32_t, std::int64_t> processes;
        std::size_t size() const { return threads.size() + processes.size(); }
    };
    EndedThreads ended_;
    std::size_t look_at_ = kEnded;
};

}  // namespace opline
