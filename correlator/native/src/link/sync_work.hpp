// SPDX-License-Identifier: MIT
// Syncs (fsync, fdatasync, a commit's own): which thread is in one, and which ops' writes each of them covers.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "op/op_table.hpp"

namespace opline {

struct Sync {
    std::uint64_t op = 0;  // op_ref() of the waiting op
    std::uint32_t host = 0;
    std::int64_t tid = -1;
    std::uint64_t target = 0;
    std::int64_t begin_ns = 0;
    std::uint64_t first = 0, last = 0;  // [first, last): numbers of the covered writes
    bool open = true;
    std::shared_ptr<Batch> batch;  // members: the op, and the ops of covered writes

    // The op's write ended before the sync began, and no sync completed before covered the write.
    bool covers(const Op &o) const { return o.target == target && o.write_number >= first && o.write_number < last; }
};

class SyncWork {
  public:
    // limit of writes not covered by a sync; counted beyond
    static constexpr std::size_t kLimit = std::size_t{1} << 18;

    explicit SyncWork(OpTable &ops) : ops_(ops) {}

    // The op's write is over. keep: the model has syncs, so a later sync may cover the write.
    void wrote(Op &op, bool keep) {
        op.covered = false;
        if (!keep) return;
        if (kept_ >= kLimit) {  // no sync covers these writes
            evicted_ += kept_;
            kept_ = 0;
            uncovered_.clear();
            last_ = nullptr;
        }
        if (!last_ || last_target_ != op.target) last_ = &uncovered_[last_target_ = op.target];
        Uncovered &writes = *last_;
        writes.ops.push_back(op_ref(op));
        op.write_number = writes.first + writes.ops.size() - 1;
        ++kept_;
    }
    std::shared_ptr<Sync> begin(const Op &op, std::int64_t tid, std::int64_t at_ns, std::uint64_t batch,
                                std::uint32_t space) {
        auto sync = std::make_shared<Sync>();
        sync->op = op_ref(op);
        sync->host = op.host;
        sync->tid = tid;
        sync->target = op.target;
        sync->begin_ns = at_ns;
        sync->batch = std::make_shared<Batch>();
        Batch &b = *sync->batch;
        b.serial = batch;
        b.space = space;
        b.tid = tid;
        b.begin_ns = at_ns;
        if (auto writes = uncovered_.find(op.target); writes != uncovered_.end()) {
            sync->first = writes->second.first;
            sync->last = sync->first + writes->second.ops.size();
        }
        b.members = static_cast<std::uint32_t>(sync->last - sync->first) + (sync->covers(op) ? 0 : 1);
        open_.push_back(sync);
        return sync;
    }
    // nullptr: the op is in no sync. The covered writes are on the disk now, unless the sync's end is missing
    // (kNoTime).
    std::shared_ptr<Sync> end(const Op &op, std::int64_t at_ns) {
        for (std::size_t i = 0; i < open_.size(); ++i) {
            if (ops_.find(open_[i]->op) != &op) continue;
            std::shared_ptr<Sync> sync = std::move(open_[i]);
            open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
            sync->open = false;
            sync->batch->end_ns = at_ns;
            if (auto at = uncovered_.find(sync->target); at_ns != kNoTime && at != uncovered_.end()) {
                Uncovered &writes = at->second;
                for (; !writes.ops.empty() && writes.first < sync->last;
                     writes.ops.pop_front(), ++writes.first, --kept_)
                    if (Op *o = ops_.find(writes.ops.front()); o && o->write_number == writes.first) o->covered = true;
            }
            return sync;
        }
        return nullptr;
    }
    std::shared_ptr<Sync> of_thread(std::uint32_t host, std::int64_t tid) const {
        for (const auto &s : open_)
            if (s->tid == tid && s->host == host) return s;
        return nullptr;
    }
    const std::vector<std::shared_ptr<Sync>> &open() const { return open_; }
    std::uint64_t evicted() const { return evicted_; }

  private:
    struct Uncovered {
        std::deque<std::uint64_t> ops;  // op_ref()s, in order of the ends of the writes
        std::uint64_t first = 1;        // number of the first
    };
    OpTable &ops_;
    std::vector<std::shared_ptr<Sync>> open_;
    std::unordered_map<std::uint64_t, Uncovered> uncovered_;  // by target
    std::uint64_t last_target_ = 0;
    Uncovered *last_ = nullptr;  // the entry of the last target
    std::size_t kept_ = 0;
    std::uint64_t evicted_ = 0;
};

}  // namespace opline
