// SPDX-License-Identifier: MIT
// What the linker asks about ops: which one a reference means, which one a thread works for, which have bytes in
// flight.
#pragma once
#include <memory>
#include <vector>

#include "stitch/async_ios.hpp"
#include "stitch/batches.hpp"
#include "stitch/own_bios.hpp"

namespace opline {

class OpLocator {
  public:
    OpLocator(Stitching &s, ThreadStates &threads, OpLives &lives, Keys &keys, Batches &batches, AsyncIos &ios)
        : s_(s),
          threads_(threads),
          lives_(lives),
          keys_(keys),
          batches_(batches),
          ios_(ios),
          own_bios_(s, threads, lives) {}

    OpTable &ops() { return lives_.ops(); }
    // nullptr: the op has settled.
    Op *find(std::uint64_t ref) const { return lives_.ops().find(ref); }
    const std::vector<std::uint64_t> &io_windows() const { return lives_.io_windows(); }
    // The work of the thread: an op, else the open batch, else nothing.
    Op *current_op(std::uint32_t host, std::int64_t tid) { return threads_.current_op(host, tid); }
    std::shared_ptr<Batch> current_batch(std::uint32_t host, std::int64_t tid) {
        return threads_.current_batch(host, tid);
    }
    bool same_thread(std::uint32_t host, const BlockEvent &ev) const { return threads_.same_thread(host, ev); }
    Op *op_of_bio(std::uint32_t host, const BlockEvent &ev, const Bio &bio) { return ios_.op_of_bio(host, ev, bio); }
    Op *own_op(std::uint32_t host, const BlockEvent &ev, const Bio &bio) { return own_bios_.op_of(host, ev, bio); }
    std::uint64_t next_batch() { return batches_.next_batch(); }
    bool owns_all_keys_lost(const Op &op) const { return keys_.owns_all_keys_lost(op); }
    // A thread of the op has no known number in the root PID namespace: the op's block requests are unknown.
    bool has_untold_thread(const Op &op) const {
        const Threads &known = s_.identities;
        return known.untold(op.pid) || (!op.transitions.empty() && known.untold(op.transitions.first_tid()));
    }
    const Threads &identities() const { return s_.identities; }

  private:
    Stitching &s_;
    ThreadStates &threads_;
    OpLives &lives_;
    Keys &keys_;
    Batches &batches_;
    AsyncIos &ios_;
    OwnBios own_bios_;
};

}  // namespace opline
