// SPDX-License-Identifier: MIT
// Finds the op of each point, by key or by the thread that works for it, and appends the transition.
// Online: O(1) per event; what is in memory follows what is in flight.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.hpp"
#include "binding/classes.hpp"
#include "event/thread_names.hpp"
#include "op/op_table.hpp"
#include "op/thread_points.hpp"
#include "stitch/ios.hpp"
#include "stitch/settled_keys.hpp"

namespace opline {

struct KeyHash {
    std::uint64_t operator()(const Key &k) const { return k.lo; }  // mixed already
};

// Who did something.
struct ThreadId {
    std::uint32_t host = 0;
    std::int32_t pid = -1;
    std::int64_t tid = -1;
};

// The op that a thread works for since it entered: a ref, and the key spaces that the entering event carried.
struct Working {
    std::uint64_t ref = 0, spaces = 0;
};

struct ThreadState {
    std::vector<Working> stack;                                 // the thread works for the last
    std::vector<std::pair<std::uint32_t, std::int64_t>> marks;  // (mark, when), since it woke
    // When it made the mark; nullptr: it has not.
    std::int64_t *marked_ns(std::uint32_t mark) {
        for (auto &[made, when_ns] : marks)
            if (made == mark) return &when_ns;
        return nullptr;
    }
    std::shared_ptr<Batch> batch;                              // open on this thread
    std::vector<std::pair<std::int64_t, std::uint32_t>> done;  // its work for the last one: Batch::before of the next
    std::unique_ptr<IoCall> call;                              // that it is in
    std::unique_ptr<OwnBio> own;
    std::uint64_t syncing = 0;  // whose sync it is in, as far as is known
};

struct StitchCounts {
    std::uint64_t key_conflicts = 0;  // an event's find keys named different ops; the first won
    std::uint64_t ends_without_op = 0;
    std::uint64_t evicted_ops = 0;  // open for too long while memory was short
    std::uint64_t batches_left_open = 0;
    std::uint64_t reaps_unseen = 0;   // I/Os that a call should have taken: they end at their completion
    std::uint64_t halves_joined = 0;  // by a key that both carried
    std::uint64_t halves_joined_by_order = 0;
    std::uint64_t ambiguous_halves = 0;  // met by nobody: ops of several processes waited for them
    std::uint64_t order_mismatches = 0;  // halves that order put together and time or a key parts
    std::uint64_t evicted_facts = 0;
    std::uint64_t batch_counts_differ = 0;  // members found and declared
    std::uint64_t batches_unseen = 0;       // ops went on without the batch that they needed
    std::uint64_t marks_missing = 0;        // a point lies at a mark that its thread has not made since it woke
};

class Stitcher {
  public:
    struct Hooks {
        std::function<void(Op &)> settle;  // the op is final: write it; it is released afterwards
        std::function<void(const Batch &)> batch_closed;
        std::function<void(Op &, std::int64_t)> wrote;  // the op's bytes are no longer in flight
        std::function<void(Op &, std::int64_t tid, std::int64_t)> sync_begun;
        std::function<void(Op &, std::int64_t)> sync_ended;  // kNoTime: its end was not seen
    };

    Stitcher(const Plan &plan, StringPool &strings, NameIds &names, Hooks hooks);

    Fate event(BoundClass &, const Event &, std::uint32_t host);
    // Settles what ended more than linger_ns before now.
    void advance(std::int64_t now_ns) {
        if (now_ns > due_ns_) do_what_is_due(now_ns);
    }
    // Every op's transitions are kept in full from now on: to compare with.
    void keep_no_shapes() { ops_.shapes().none(); }
    // No texts that only the table of ops shows.
    void skip_texts() { with_key_texts_ = with_objects_ = false; }
    void keep_objects() { with_objects_ = true; }
    // End of the trace: then all that ended is settled, one op at a time, until there is none left (false), and then
    // open ops, as incomplete.
    void last_event(std::int64_t last_ns);
    bool settle_next_ended();
    void settle_open();

    // What the thread works for: an op, else its open batch, else nothing.
    Op *current_op(std::uint32_t host, std::int64_t tid);
    // Whose bio it is that a thread queues: its op's, or that of the I/O that its call is queueing. nullptr: nobody's.
    Op *op_of_bio(std::uint32_t host, const BlockEvent &, const Bio &);
    // The bio is an op of its own, if the model says so of its thread; else nullptr.
    Op *own_op(std::uint32_t host, const BlockEvent &, const Bio &);
    // What becomes of the bios and requests of an op that is one I/O.
    void bio_opened(std::uint64_t op);
    void request_done(const Request &);
    void bio_done(const Bio &);
    // Events are missing from here back: who took which completion is not known any more.
    void events_lost();
    std::shared_ptr<Batch> current_batch(std::uint32_t host, std::int64_t tid);
    OpTable &ops() { return ops_; }
    // Ops between their io begin and io end points.
    const std::vector<std::uint64_t> &io_windows() const { return io_windows_; }
    const StitchCounts &counts() const { return counts_; }
    // For which op threads worked; empty where no stage is cut by it.
    const ThreadPoints &thread_points() const { return thread_points_; }
    bool owns_all_keys_lost(const Op &op) const;
    std::uint64_t next_batch() { return batch_serial_++; }

  private:
    // Which op an event is about, and how it is known.
    struct Found {
        Op *op = nullptr;
        std::uint32_t child = 0;
        std::uint64_t ref = 0;  // through which it was found
        // key spaces that say so: the event's, or those of the event that entered the thread
        std::uint64_t spaces = 0;
    };
    // An event on its way to the op that it is about.
    struct Passage {
        BoundPoint &bp;
        const PointSpec &spec;
        const Event &ev;
        ThreadId who;
        ThreadState &ts;
        Found working;  // what its thread works for
        Found found;    // what it is about
        Transition t;   // what the op gets
    };
    enum class KeyState : std::uint8_t { kKnown, kAbsent, kUnlearned };  // a field is absent; a fact is not known

    Found current(ThreadState &);
    BoundPoint *choose(BoundClass &cls, const Event &, const ThreadId &, bool &broken);
    bool facts_known(const BoundPoint &, const Event &, const ThreadId &) const;
    bool finds(const BoundPoint &, const Event &, const ThreadId &);
    Transition transition_of(const BoundClass &, BoundPoint &, const Event &, const ThreadId &, ThreadState &);
    Fate of_call(Passage &);
    Fate of_batch(Passage &);
    Fate pass(Passage &);
    // stitch/resolve.cpp: which op the event is about. kTransition: `found` says it.
    Fate resolve(Passage &);
    void begin(Passage &);
    Fate by_thread(Passage &);
    Fate by_keys(Passage &);
    void by_sole(Passage &);
    // stitch/apply.cpp: what comes of it for the op.
    void apply(Passage &);
    void bind(Passage &);
    void unite_others(Passage &);
    void join(Passage &);
    bool ends(const Passage &) const;
    void do_what_is_due(std::int64_t now_ns);
    void next_settles() {
        settles_ns_ =
            ended_.empty() ? std::numeric_limits<std::int64_t>::max() : ended_.front().first + plan_.linger_ns;
        due_ns_ = std::min(due_ns_, settles_ns_);
    }
    Fate note(const BoundPoint &, const Event &, ThreadState &, const ThreadId &);
    Fate work_of(Batch &, Passage &);
    void note_thread(const Passage &p, std::uint64_t ref) {
        if (plan_.behind && !p.spec.aside) keep_thread_point(p.who.host, p.t.tid, {p.t.ts_ns, ref, p.t.point});
    }
    void keep_thread_point(std::uint32_t host, std::int64_t tid, const ThreadPoint &);
    void release_keys(const BoundPoint &, const Event &, const ThreadId &, Op *);
    void bind_batch(Batch &, const Key &);
    std::uint64_t begin_child(Op &, std::uint32_t parent, std::uint32_t &child);
    void soften_end(Op &, std::int64_t ts_ns, std::uint32_t order);

    // stitch/joins.cpp: two halves of one op.
    bool can_unite(const Op &, const Op &) const;
    Op &unite(Op &, Op &, std::uint32_t child, bool proven);
    void take_window(Op &, std::uint64_t ref, std::uint64_t gone_ref);
    void take_span(Op &, const Op &gone, std::uint32_t offset);
    void wait_under(Op &, const Key &);
    void stop_waiting(Op &, const Key &);
    void stop_waiting(Op &op) {
        if (!op.waits.empty()) stop_waiting_at_all(op);
    }
    void stop_waiting_at_all(Op &);
    Op *waits_alone(const Key &) const;
    // Who waits under a key and could be one with an op: the one that waits longest, and the one that order says.
    struct Waiters {
        Op *first = nullptr, *ordered = nullptr;
        bool several = false, one_thread = true, one_process = true;
        bool op_waits = false;  // the op itself does
    };
    Waiters who_waits(const std::vector<std::uint64_t> &refs, const Op &, std::uint32_t child);
    Op &leave_open(Op &, const std::vector<std::uint64_t> &refs);
    bool order_is_sure(const Key &, const Waiters &, std::int64_t tid, const std::vector<std::uint64_t> &refs);
    Op &meet(Op &, std::uint32_t child, const Key &, bool by_order, std::int64_t tid, bool &sure);
    Op &join_partner(Op &, std::int64_t now_ns);
    void part(Op &);
    void link_partners(Op &, Op &, bool sure);

    std::uint32_t point_name(BoundPoint &, const PointSpec &, const Slot &value);
    [[gnu::always_inline]] ThreadState &thread(std::uint32_t host, std::int64_t tid) {
        const RecentThread &recent = recent_threads_[static_cast<std::size_t>(tid) % recent_threads_.size()];
        return recent.state && recent.tid == tid && recent.host == host ? *recent.state : another_thread(host, tid);
    }
    [[gnu::noinline]] ThreadState &another_thread(std::uint32_t host, std::int64_t tid) {
        auto [state, added] = threads_.insert(thread_key(host, tid));
        if (added) recent_threads_ = {};  // the others may have moved
        recent_threads_[static_cast<std::size_t>(tid) % recent_threads_.size()] = {tid, host, state};
        return *state;
    }
    KeyState key_of(const BoundKey &, const Event &, const ThreadId &, Key &) const;
    static Key fact_key(std::int32_t fact, KeyScope, const Slot &, const ThreadId &);
    void key_text(const BoundKey &use, const Event &ev, std::string &out) const {
        if (with_key_texts_) append_key_text(use, ev, out);
    }
    void append_key_text(const BoundKey &, const Event &, std::string &out) const;
    Op &new_op(std::uint32_t host, std::int32_t pid, std::int64_t begin_ns);
    void evict_oldest();
    // stitch/ios.cpp
    void enter_call(Passage &, Op *head);
    Fate return_from_call(Passage &);
    void leave_call(ThreadState &);
    void close_submit(IoCall &, std::int64_t count, const Transition &);
    bool reap(IoQueue &, std::int64_t count, std::vector<std::uint64_t> names, Transition);
    Op &another_io(IoCall &);
    Op *io_of_bio(IoCall &, const Bio &);
    void io_done(Op &, std::int64_t done_ns);
    void end_at_completion(Op &);
    void complete_all(IoQueue &);
    void end_io(Op &, std::int64_t ts_ns, std::uint32_t order);
    // stitch/io_names.cpp
    void claim_names(const IoCall &, IoQueue &);
    void give_names(const IoCall &, IoQueue &, std::int64_t count);
    void forget_names(IoQueue &);
    void go_by_order(IoQueue &);
    bool take_named(IoQueue &, std::uint64_t name, const Transition &);
    std::int64_t take_in_order(IoQueue &, std::int64_t count, bool nameless, const Transition &);
    void take_early(IoQueue &);
    std::uint32_t add_transition(Op &, Transition);
    std::uint32_t class_of_io(std::uint32_t base, IoKind);
    void name_op(Op &, const BoundKey &, const Event &) const;
    void bind_key(Op &op, std::uint64_t ref, std::uint32_t space, const Key &key);
    void taken_over(std::uint64_t before, const Op &, std::uint32_t space);
    void decorate(Op &op, const Passage &);
    void decorate_with_file(Op &op, const Passage &);
    void append(Op &op, const Passage &);
    void end_op(Op &op, std::int64_t ts_ns, std::uint32_t order);
    void settle(Op &op);
    void settle_ended();
    template <class Mine>  // bool(std::uint64_t ref)
    void forget_keys(const Key *, std::size_t, Mine);
    void apply_thread_rule(ThreadState &, ThreadRule, const Found &);
    void open_batch(ThreadState &, const BoundPoint &, std::int64_t ts_ns, std::int64_t tid);
    void close_batch(ThreadState &, std::int64_t ts_ns);
    // stitch/needs.cpp: members of the first batch that reaches what they need.
    Key order_of(const BoundPoint &, const Event &, std::uint32_t host) const;
    void await_batch(Op &, const Passage &);
    void leave_batches(Op &);
    void cover(const std::shared_ptr<Batch> &);
    void keep_for_owner(const std::shared_ptr<Batch> &);
    static bool still_needs(Op &, const std::shared_ptr<Batch> &);
    void close_io_window(Op &op);
    void end_sync(Op &op, std::int64_t ts_ns);
    void leave_sync(ThreadState &, const Op &next);

    const Plan &plan_;
    StringPool &strings_;
    NameIds &names_;
    Hooks hooks_;
    OpTable ops_;
    FlatMap<Key, std::uint64_t, KeyHash, FlatCellByValue<Key, std::uint64_t>> keys_;  // → op ref, or alias
    FlatMap<Key, std::vector<std::uint64_t>, KeyHash> waiting_;                       // op refs, the longest first
    // Who takes them out of their order, by key: one thread, or -2 for several, which keep no order among themselves.
    FlatMap<Key, std::int64_t, KeyHash> takers_;
    FlatMap<Key, Key, KeyHash> facts_;
    FlatMap<std::uint64_t, ThreadState> threads_;
    struct RecentThread {
        std::int64_t tid = 0;
        std::uint32_t host = 0;
        ThreadState *state = nullptr;
    };
    std::array<RecentThread, 64> recent_threads_{};
    // Of the event at hand: keys that named no op, with their spaces, and refs of further ops that keys name.
    std::vector<std::pair<std::uint32_t, Key>> unbound_;
    std::vector<std::uint64_t> others_;
    std::deque<std::pair<std::int64_t, std::uint64_t>> ended_;            // (end, op ref), in order of the end events
    std::int64_t settles_ns_ = std::numeric_limits<std::int64_t>::max();  // past it the first of them does
    std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();      // past it something settles
    std::vector<std::uint64_t> io_windows_;
    SettledKeys<Key, KeyHash> settled_keys_;
    std::uint64_t batch_serial_ = 0;
    struct Order {
        bool known = false;
        std::uint64_t reached = 0;
        std::vector<std::uint64_t> waiting;  // op refs
        std::size_t many = 0;                // of them: look which are gone
    };
    FlatMap<Key, Order, KeyHash> orders_;
    std::size_t many_orders_ = 0;
    void forget_gone(const Key &, Order &);
    Order &order_at(const Key &);
    ThreadPoints thread_points_;
    bool with_key_texts_ = true, with_objects_ = true;
    FlatMap<Key, IoQueue, KeyHash> io_queues_;
    FlatMap<std::uint64_t, std::uint32_t> io_classes_;  // (class, kind) → class with the kind
    FlatMap<std::uint32_t, std::uint8_t> own_threads_;  // comm → 1: its bios are ops, 2: they are not
    std::uint32_t completed_, reaped_, queued_, awake_;
    std::int64_t last_ns_ = kNoTime;
    bool has_soft_ends_ = false;
    std::uint64_t end_spaces_ = 0;   // key spaces by which an end finds its op
    std::uint64_t lent_spaces_ = 0;  // of which a point takes back whatever names its op
    StitchCounts counts_;
};

}  // namespace opline
