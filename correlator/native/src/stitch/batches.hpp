// SPDX-License-Identifier: MIT
// Batches of ops: opened and closed on a thread, with members that join them. Batches of an order (a log's positions):
// an op says how far a batch must reach for it, a batch how far it has reached, and the op is a member of the first
// that reaches far enough, whichever thread's it is.
#pragma once
#include <memory>
#include <vector>

#include "base/flat_map.hpp"
#include "stitch/keys.hpp"

namespace opline {

class Batches {
  public:
    Batches(Stitching &s, OpLives &lives, Keys &keys) : s_(s), lives_(lives), ops_(lives.ops()), keys_(keys) {}

    std::uint64_t next_batch() { return batch_serial_++; }
    void open(ThreadState &, const BoundPoint &, std::int64_t ts_ns, std::int64_t tid);
    void close(ThreadState &, std::int64_t ts_ns);
    void leave_open(ThreadState &, std::int64_t ts_ns);  // the closing event is missing
    void report_open(ThreadState &);                     // at the end of the trace
    // A batch opened, closed or worked for by a point: handles what the point says before the op is known.
    void reached(Passage &);
    static bool is_full(const Batch &);
    Fate work_of(Batch &, Passage &);

    void await(Op &, const Passage &);
    void leave(Op &);

  private:
    struct Order {
        bool known = false;
        std::uint64_t reached = 0;
        std::vector<std::uint64_t> waiting;  // op refs
        std::size_t many = 0;                // with as many waiting ops: remove the ops that are gone
    };
    Key order_of(const BoundPoint &, const Event &, std::uint32_t host) const;
    Order &order_at(const Key &);
    void forget_gone(const Key &, Order &);
    void cover(const std::shared_ptr<Batch> &);
    void keep_for_owner(const std::shared_ptr<Batch> &);
    static bool still_needs(Op &, const std::shared_ptr<Batch> &);

    Stitching &s_;
    OpLives &lives_;
    OpTable &ops_;
    Keys &keys_;
    std::uint64_t batch_serial_ = 0;
    FlatMap<Key, Order, KeyHash> orders_;
    std::size_t many_orders_ = 0;
};

}  // namespace opline
