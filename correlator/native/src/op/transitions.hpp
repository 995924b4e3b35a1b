// SPDX-License-Identifier: MIT
// What an op passed. Most ops of a trace pass the same points on as many threads in the same order: such a list is kept
// as the place in a tree of all that was seen so far, its *shape*, and a time per transition. What does not fit is kept
// in full.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "event/event.hpp"

namespace opline {

enum class Evidence : std::uint8_t { kBegin, kKey, kThread, kBatch, kCompletion };

constexpr std::uint32_t kNoSpec = 0xffffffff;  // a transition made by the core, without a point of the model

// The part of a transition common to all ops of the shape.
struct TransitionKind {
    std::uint64_t spaces = 0;     // bit per key space of the event
    std::int64_t batch = -1;      // batch with this shared work
    std::uint32_t point = 0;      // pool id, without recurrence number
    std::uint32_t event = 0;      // pool id; 0: none
    std::uint32_t spec = 0;       // index into Plan::points, or kNoSpec
    std::uint32_t key_space = 0;  // with kKey
    Evidence evidence = Evidence::kKey;
    bool in_thread = false;  // the thread already worked for the op

    bool operator==(const TransitionKind &o) const {
        return spaces == o.spaces && batch == o.batch && point == o.point && event == o.event && spec == o.spec &&
               key_space == o.key_space && evidence == o.evidence && in_thread == o.in_thread;
    }
    std::uint64_t hash() const {
        std::uint64_t h = mix64(spaces ^ static_cast<std::uint64_t>(batch));
        h = mix64(h ^ (static_cast<std::uint64_t>(point) << 32 | event));
        h = mix64(h ^ (static_cast<std::uint64_t>(spec) << 32 | key_space));
        return h ^ (static_cast<std::uint64_t>(evidence) << 1 | static_cast<std::uint64_t>(in_thread));
    }
};
static_assert(sizeof(TransitionKind) == 40, "a new field is compared and hashed, too");

struct Transition : TransitionKind {
    std::int64_t ts_ns = 0;
    std::int64_t tid = -1;
    std::int32_t pid = -1;
    std::uint32_t cpu = kNoCpu;
    std::uint32_t comm = 0;
    std::uint32_t order = 0;  // ordinal of arrival in the op: the tie-break
    std::uint32_t child = 0;  // of the op; 0: the op itself
};

// A list's place in the tree of shapes: the node, and from the 16th bit on the depth, equal to the list's size.
using Place = std::uint32_t;
constexpr std::uint32_t node_at(Place place) { return place & 0xffff; }
constexpr std::uint32_t depth_at(Place place) { return place >> 16; }

// The tree of shapes. A node is a sequence of kinds, each with its thread's ordinal in the op; node 0 is empty.
class Shapes {
  public:
    static constexpr std::uint32_t kMaxNodes = 1u << 16;
    static constexpr std::uint32_t kMaxThreads = 6;
    static constexpr std::uint32_t kMaxDepth = (1u << 13) - 1;
    static_assert(kMaxNodes <= 1u << 16 && kMaxDepth < 1u << 16, "a Place has no room for more");

    struct Node {
        TransitionKind kind;
        std::uint32_t thread = 0;
        std::uint32_t parent = 0;
        std::uint32_t last_child = 0;  // 0: none yet
    };

    // Without details, lists do not keep CPUs and names of threads: for runs without the table.
    explicit Shapes(bool details = true) : details_(details), nodes_(1) {}
    bool details() const { return details_; }
    void forget_details() { details_ = false; }
    // No list is kept as a shape from now on: to compare with.
    void none() { full_ = true; }
    std::size_t size() const { return nodes_.size() - 1; }
    const Node &node(std::uint32_t n) const { return nodes_[n]; }

    // The place after `from`; 0: there is no more room.
    Place step(Place from, const TransitionKind &kind, std::uint32_t thread) {
        const std::uint32_t depth = depth_at(from) + 1, likely = nodes_[node_at(from)].last_child;
        const bool same = likely != 0 && nodes_[likely].thread == thread && nodes_[likely].kind == kind;
        const std::uint32_t next = same ? likely : depth <= kMaxDepth ? find(node_at(from), kind, thread) : 0;
        return next == 0 ? 0 : depth << 16 | next;
    }

  private:
    std::uint32_t find(std::uint32_t from, const TransitionKind &kind, std::uint32_t thread);

    bool details_, full_ = false;
    std::vector<Node> nodes_;
    // by hash of (parent, kind, thread); of equal hashes the first is kept
    FlatMap<std::uint64_t, std::uint32_t> children_;
};

// The differences between the lists of a shape.
struct ShapedList {
    std::uint32_t shape = 0;  // 0: no shape
    std::uint32_t comm = 0;   // of the first
    std::int64_t tid = -1;    // of the first
    std::size_t size = 0;
    const std::int64_t *times = nullptr;
};

class TransitionList {
  public:
    // Empty again, with the capacity kept; as a shape if there are `shapes`.
    void clear(Shapes *shapes) {
        shapes_ = shapes;
        shaped_ = shapes != nullptr;
        detailed_ = shaped_ && shapes->details();
        place_ = 0;
        threads_ = 0;
        details_.clear();
        wide_.clear();
    }
    std::size_t size() const { return shaped_ ? depth_at(place_) : wide_.size(); }
    bool empty() const { return size() == 0; }
    void push_back(const Transition &t) {
        if (shaped_ && fits(t)) return;
        in_full().push_back(t);
    }
    std::uint32_t last_order() const { return shaped_ ? depth_at(place_) - 1 : wide_.back().order; }
    std::int64_t last_ns() const { return shaped_ ? times_[depth_at(place_) - 1] : wide_.back().ts_ns; }

    // Of the first; with or without details.
    std::int64_t first_tid() const { return shaped_ ? ids_[0].tid : wide_.front().tid; }
    std::uint32_t first_comm() const { return shaped_ ? first_comm_ : wide_.front().comm; }

    // Converts the list to the full form, permanently.
    std::vector<Transition> &full() { return in_full(); }
    const Transition &operator[](std::size_t i) const { return in_full()[i]; }
    const Transition &front() const { return in_full().front(); }
    const Transition &back() const { return in_full().back(); }
    std::vector<Transition>::const_iterator begin() const { return in_full().begin(); }
    std::vector<Transition>::const_iterator end() const { return in_full().end(); }

    // Whether a transition is of such a kind; keeps the shape.
    template <class Such>
    bool any_kind(Such such) const {
        if (!shaped_) return std::any_of(wide_.begin(), wide_.end(), such);
        for (std::uint32_t node = node_at(place_); node != 0; node = shapes_->node(node).parent)
            if (such(shapes_->node(node).kind)) return true;
        return false;
    }

    // Whether a transition came from such a process; keeps the shape.
    template <class Such>
    bool any_process(Such such) const {
        if (!shaped_)
            return std::any_of(wide_.begin(), wide_.end(), [&such](const Transition &t) { return such(t.pid); });
        return std::any_of(ids_.begin(), ids_.begin() + threads_, [&such](const Thread &t) { return such(t.pid); });
    }

    // The shape; 0: none. A transition's thread has the ordinal of the shape's node.
    std::uint32_t shape() const { return shaped_ ? node_at(place_) : 0; }
    std::int64_t tid(std::uint32_t thread) const { return ids_[thread].tid; }
    std::int32_t pid(std::uint32_t thread) const { return ids_[thread].pid; }
    // kNoCpu and 0 without details, but for the first.
    std::uint32_t cpu(std::size_t i) const {
        if (!shaped_) return wide_[i].cpu;
        return details_.empty() ? (i == 0 ? first_cpu_ : kNoCpu) : details_[i].cpu;
    }
    std::uint32_t comm(std::size_t i) const { return details_.empty() ? (i == 0 ? first_comm_ : 0) : details_[i].comm; }
    std::int64_t last_tid() const { return ids_[shapes_->node(node_at(place_)).thread].tid; }
    // Valid as long as the list is.
    ShapedList shaped() const {
        return shaped_ && place_ != 0 ? ShapedList{node_at(place_), first_comm_, ids_[0].tid, size(), times_.data()}
                                      : ShapedList{};
    }
    // The full form of a list with a shape.
    void copy_to(std::vector<Transition> &out) const;

  private:
    struct Detail {
        std::uint32_t cpu, comm;
    };
    struct Thread {
        std::int64_t tid = 0;
        std::int32_t pid = 0;
    };
    bool fits(const Transition &t) {
        const std::uint32_t n = depth_at(place_);
        if (t.order != n || t.child != 0 || t.batch >= 0 || (n != 0 && t.ts_ns < last_ns())) return false;
        const std::uint32_t thread = ordinal_of(t.tid, t.pid);
        const Place next = thread == Shapes::kMaxThreads ? 0 : shapes_->step(place_, t, thread);
        if (next == 0) return false;
        if (n == 0) {
            first_comm_ = t.comm;
            first_cpu_ = t.cpu;
        }
        go_on(next, thread, t.ts_ns, t.tid, t.pid);
        if (detailed_) details_.push_back({t.cpu, t.comm});
        return true;
    }
    // The thread's ordinal, or the next ordinal for a new thread; kMaxThreads: no ordinal is left.
    std::uint32_t ordinal_of(std::int64_t tid, std::int32_t pid) const {
        std::uint32_t thread = 0;
        while (thread < threads_ && ids_[thread].tid != tid) ++thread;
        return thread == threads_ || ids_[thread].pid == pid ? thread : Shapes::kMaxThreads;
    }
    void go_on(Place place, std::uint32_t thread, std::int64_t ts_ns, std::int64_t tid, std::int32_t pid) {
        if (thread == threads_) {
            ids_[thread] = {tid, pid};
            ++threads_;
        }
        keep(place, ts_ns);
    }
    [[gnu::always_inline]] void keep(Place place, std::int64_t ts_ns) {
        const std::size_t size = depth_at(place);
        if (size > room_) make_room(size);
        place_ = place;
        times_[size - 1] = ts_ns;
    }
    [[gnu::noinline]] void make_room(std::size_t size);
    std::vector<Transition> &in_full() const {
        if (shaped_) {
            copy_to(wide_);
            shaped_ = false;
            place_ = 0;
        }
        return wide_;
    }

    // The fields read for every event come first.
    mutable bool shaped_ = false;
    bool detailed_ = false;
    std::uint8_t threads_ = 0;
    mutable Place place_ = 0;
    std::uint32_t room_ = 0;
    std::uint32_t first_comm_ = 0, first_cpu_ = kNoCpu;
    std::vector<std::int64_t> times_;  // room_ of these; `place_` has the number in use
    Shapes *shapes_ = nullptr;
    std::array<Thread, Shapes::kMaxThreads> ids_{};
    std::vector<Detail> details_;
    mutable std::vector<Transition> wide_;
};

}  // namespace opline
