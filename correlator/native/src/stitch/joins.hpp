// SPDX-License-Identifier: MIT
// Two halves of one op: the client's, which knows its object and its completion, and the server's, which knows its
// number. They are joined by an event that carries keys of both, or by the order in which ops wait for each other.
#pragma once
#include <vector>

#include "base/flat_map.hpp"
#include "stitch/op_lives.hpp"

namespace opline {

class Joins {
  public:
    Joins(Stitching &, OpLives &);

    bool can_unite(const Op &, const Op &) const;
    Op &unite(Op &, Op &, std::uint32_t child, bool proven);
    void wait_under(Op &, const Key &);
    void stop_waiting(Op &, const Key &);
    void stop_waiting(Op &op) {
        if (!op.waits.empty()) stop_waiting_at_all(op);
    }
    Op *waits_alone(const Key &) const;
    Op &meet(Op &, std::uint32_t child, const Key &, bool by_order, std::int64_t tid, bool &sure);
    Op &join_partner(Op &, std::int64_t now_ns);
    void part(Op &);

  private:
    // Ops waiting under a key that could be one with an op: the op that waits longest, and the op chosen by order.
    struct Waiters {
        Op *first = nullptr, *ordered = nullptr;
        bool several = false, one_thread = true, one_process = true;
        bool op_waits = false;  // the op itself waits
    };
    Waiters who_waits(const std::vector<std::uint64_t> &refs, const Op &, std::uint32_t child);
    Op &leave_open(Op &, const std::vector<std::uint64_t> &refs);
    bool order_is_sure(const Key &, const Waiters &, std::int64_t tid, const std::vector<std::uint64_t> &refs);
    void take_span(Op &, const Op &gone, std::uint32_t offset);
    void stop_waiting_at_all(Op &);
    void link_partners(Op &, Op &, bool sure);

    Stitching &s_;
    OpLives &lives_;
    OpTable &ops_;
    bool has_soft_ends_;                                         // the model has some
    FlatMap<Key, std::vector<std::uint64_t>, KeyHash> waiting_;  // op refs, the longest first
    // By key: the thread that takes waiting ops out of order; -2: several threads, without an order among them.
    FlatMap<Key, std::int64_t, KeyHash> takers_;
};

}  // namespace opline
