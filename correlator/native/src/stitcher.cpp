// SPDX-License-Identifier: MIT
#include "stitcher.hpp"

#include <algorithm>
#include <charconv>

namespace opline {
namespace {

constexpr std::size_t kThreadDepth = 64;
constexpr std::size_t kBatchWork = 1u << 14;  // points of one batch: more than that is a batch whose end nobody sees
constexpr std::size_t kFactsKept = 1u << 18;
constexpr std::uint64_t kOneNumber = 0;  // Key::hi of a fact that is one integer: it stands for itself

struct KeyBuilder {
    std::uint64_t lo, hi;
    KeyBuilder(std::uint64_t lo, std::uint64_t hi) : lo(lo), hi(hi) {}
    explicit KeyBuilder(std::uint64_t seed) : lo(mix64(seed + 0x9e3779b97f4a7c15ull)), hi(mix64(seed + 0xc2b2ae3d27d4eb4full)) {}
    void add(std::uint64_t v) {
        lo = mix64(lo ^ v) + 0x9e3779b97f4a7c15ull;
        hi = mix64(hi + v * 0xff51afd7ed558ccdull) ^ lo;
    }
    void add(std::string_view s) {
        std::uint64_t word = 0;
        std::size_t i = 0;
        for (; i + 8 <= s.size(); i += 8) {
            __builtin_memcpy(&word, s.data() + i, 8);
            add(word);
        }
        word = 0;
        if (i < s.size()) __builtin_memcpy(&word, s.data() + i, s.size() - i);
        add(word);
        add(static_cast<std::uint64_t>(s.size()) | 1ull << 63);
    }
    void add(const Slot &s) {
        if (s.kind == Slot::Kind::kString) add(s.str());
        else add(s.bits());
    }
    void add_scope(KeyScope scope, std::uint32_t host, std::int32_t pid, std::int64_t tid) {
        if (scope == KeyScope::kProcess) add((static_cast<std::uint64_t>(host) << 32) | static_cast<std::uint32_t>(pid));
        if (scope == KeyScope::kThread) add(thread_key(host, tid));
    }
};

std::int64_t number(const Event &ev, std::int32_t slot, std::int64_t otherwise) {
    if (slot == kNoSlot || !ev.slots[slot].is_number()) return otherwise;
    return ev.slots[slot].i;
}

}  // namespace

Stitcher::Stitcher(const Plan &plan, StringPool &strings, Hooks hooks)
    : plan_(plan), strings_(strings), hooks_(std::move(hooks)),
      completed_(strings.intern("completed")), reaped_(strings.intern("reaped")), queued_(strings.intern("queued")) {
    for (const auto &p : plan_.points) has_soft_ends_ = has_soft_ends_ || p.role == Role::kSoftEnd;
}

Op *Stitcher::current_op(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? current(*ts).op : nullptr;
}

Stitcher::Found Stitcher::current(ThreadState &ts) {
    auto &stack = ts.stack;
    while (!stack.empty()) {
        const auto target = ops_.resolve(stack.back().ref);
        if (target.op) return {target.op, target.child, stack.back().ref, stack.back().spaces};
        stack.pop_back();  // settled while the thread never said that it left
    }
    return {};
}

std::shared_ptr<Batch> Stitcher::current_batch(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? ts->batch : nullptr;
}

Stitcher::KeyState Stitcher::key_of(const BoundKey &use, const Event &ev, std::uint32_t host, std::int32_t pid,
                                    std::int64_t tid, Key &key) const {
    if (!use.seed.valid || use.seed.host != host || (use.scope == KeyScope::kProcess && use.seed.pid != pid) ||
        (use.scope == KeyScope::kThread && use.seed.tid != tid)) {
        KeyBuilder seed(use.space);
        seed.add_scope(use.scope, host, pid, tid);
        use.seed = {true, host, pid, tid, seed.lo, seed.hi};
    }
    KeyBuilder b(use.seed.lo, use.seed.hi);
    for (std::size_t i = 0; i < use.slots.size(); ++i) {
        const Slot &s = ev.slots[use.slots[i]];
        if (!s.present()) return KeyState::kAbsent;
        if (!use.facts.empty() && use.facts[i] != kNoFact) {
            const auto scope = plan_.facts[static_cast<std::size_t>(use.facts[i])].scope;
            const Key *value = facts_.find(fact_key(use.facts[i], scope, s, host, pid, tid));
            if (!value) return KeyState::kUnlearned;
            b.add(value->lo);
            if (value->hi != kOneNumber) b.add(value->hi);
        } else {
            b.add(s);
        }
    }
    key = {b.lo, b.hi};
    return KeyState::kKnown;
}

Key Stitcher::fact_key(std::int32_t fact, KeyScope scope, const Slot &value, std::uint32_t host, std::int32_t pid,
                       std::int64_t tid) {
    KeyBuilder b(static_cast<std::uint64_t>(fact));
    b.add_scope(scope, host, pid, tid);
    b.add(value);
    return {b.lo, b.hi};
}

void Stitcher::key_text(const BoundKey &use, const Event &ev, std::string &out) const {
    if (!with_key_texts_) return;
    out += plan_.key_spaces[use.space].name;
    char separator = '=';
    auto number = [&out](auto v, int base) {
        char buffer[24];
        out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, base).ptr);
    };
    for (auto slot : use.slots) {
        out += separator;
        separator = ',';
        const Slot &s = ev.slots[slot];
        if (s.kind == Slot::Kind::kString) {
            out += s.str();
        } else if (s.kind == Slot::Kind::kSigned) {
            number(s.i, 10);
        } else if (s.u >= 0x100000000ull) {
            out += "0x";
            number(s.u, 16);
        } else {
            number(s.u, 10);
        }
    }
}

// Adds the key to those that the op is shown with, one per space.
void Stitcher::name_op(Op &op, const BoundKey &use, const Event &ev) const {
    if (!with_key_texts_ || op.key_text.find(plan_.key_spaces[use.space].name + "=") != std::string::npos) return;
    if (!op.key_text.empty()) op.key_text += ' ';
    key_text(use, ev, op.key_text);
}

// The point's name with the field's value in it.
std::uint32_t Stitcher::point_name(BoundPoint &bp, const PointSpec &spec, const Slot &value) {
    const bool is_text = value.kind == Slot::Kind::kString;
    if (is_text)
        for (const auto &[text, id] : bp.names)
            if (text == value.str()) return id;
    const std::string text = is_text ? std::string(value.str()) : std::to_string(value.i);
    std::string name = spec.name;
    const auto hole = name.find("{}");
    if (hole == std::string::npos) name += text;
    else name.replace(hole, 2, text);
    const auto id = strings_.intern(name);
    if (is_text && bp.names.size() < 16) bp.names.emplace_back(text, id);
    return id;
}

void Stitcher::bind_key(Op &op, std::uint64_t ref, const Key &key) {
    std::uint64_t &named = *keys_.insert(key).first;
    if (named == ref) return;
    // A new generation, if it named another op. That one can't be found by it any more: its last soft end must do.
    Op *before = named != 0 ? ops_.find(named) : nullptr;
    named = ref;
    op.keys.push_back(key);
    if (before && before != &op && before->state == OpState::kOpen && before->has_soft_end)
        end_op(*before, before->soft_end_ns, before->soft_end_order);
}

void Stitcher::bind_batch(Batch &batch, const Key &key) {
    if (batch.alias == 0) {
        Op &alias = ops_.create_alias();
        alias.alias_batch = &batch;
        batch.alias = op_ref(alias);
    }
    keys_.put(key, batch.alias);
    batch.keys.push_back(key);
}

bool Stitcher::owns_all_keys_lost(const Op &op) const {
    for (const auto &k : op.keys) {
        auto named = keys_.find(k);
        if (named && ops_.find(*named) == &op) return false;
    }
    return !op.keys.empty();
}

// The child's ref: what is bound to it is the child's.
std::uint64_t Stitcher::begin_child(Op &op, std::uint32_t parent, std::uint32_t &child) {
    op.parents.push_back(parent);
    child = static_cast<std::uint32_t>(op.parents.size());
    Op &alias = ops_.create_alias();
    alias.alias_of = op_ref(op);
    alias.alias_child = child;
    op.aliases.push_back(op_ref(alias));
    return op_ref(alias);
}

Op &Stitcher::new_op(std::uint32_t host, std::int32_t pid, std::int64_t begin_ns) {
    if (ops_.full()) {  // cannot happen below 16 M ops in flight; keeps the reference's 24 bits honest
        Op *oldest = nullptr;
        ops_.for_each_live([&](Op &op) { if (!oldest || op.serial < oldest->serial) oldest = &op; });
        ++counts_.evicted_ops;
        settle(*oldest);
    }
    Op &op = ops_.create();
    op.host = host;
    op.pid = pid;
    op.begin_ns = begin_ns;
    op.target = thread_key(host, pid);
    op.hard = true;
    return op;
}

void Stitcher::close_io_window(Op &op) {
    if (!op.io_open) return;
    op.io_open = false;
    auto it = std::find(io_windows_.begin(), io_windows_.end(), op_ref(op));
    if (it != io_windows_.end()) {
        *it = io_windows_.back();
        io_windows_.pop_back();
    }
}

void Stitcher::decorate(Op &op, const BoundPoint &bp, const PointSpec &spec, const Event &ev, std::int64_t tid,
                        std::int32_t pid) {
    if (bp.class_id != 0) op.op_class = bp.class_id;
    if (bp.class_slot != kNoSlot && ev.slots[bp.class_slot].kind == Slot::Kind::kString)
        op.op_class = strings_.intern(ev.slots[bp.class_slot].str());
    if (bp.object_slot != kNoSlot) {
        const Slot &s = ev.slots[bp.object_slot];
        if (s.kind == Slot::Kind::kString) op.object.assign(s.str());
        else if (s.is_number()) op.object = std::to_string(s.u);
    }
    if (bp.offset_slot != kNoSlot && ev.slots[bp.offset_slot].is_number()) {
        op.offset_bytes = ev.slots[bp.offset_slot].i;
        op.has_offset = true;
    }
    if (bp.length_slot != kNoSlot && ev.slots[bp.length_slot].is_number() && ev.slots[bp.length_slot].i >= 0) {
        op.length_bytes = ev.slots[bp.length_slot].i;
        op.has_length = true;
    }
    if (spec.direction != Direction::kUnknown) op.direction = spec.direction;
    if (bp.file_slot != kNoSlot && ev.slots[bp.file_slot].present()) {
        const Slot &s = ev.slots[bp.file_slot];
        KeyBuilder b(thread_key(op.host, pid));
        if (s.kind == Slot::Kind::kString) {
            op.file_name.assign(s.str());
            b.add(s.str());
        } else {
            b.add(s.bits());
        }
        op.target = b.lo;
    } else if (spec.file_by.empty() && (spec.io == IoWindow::kBegin || spec.sync_wait == IoWindow::kBegin) && op.target == thread_key(op.host, op.pid)) {
        op.target = thread_key(op.host, pid);  // an op may begin in another process
    }
    if (bp.inode_slot != kNoSlot && bp.file_dev_slot != kNoSlot && ev.slots[bp.inode_slot].bits() != 0) {
        op.inode = ev.slots[bp.inode_slot].bits();
        op.file_dev = static_cast<std::uint32_t>(ev.slots[bp.file_dev_slot].bits());
        KeyBuilder b(thread_key(op.host, pid));
        b.add(op.file_dev);
        b.add(op.inode);
        op.target = b.lo;
    }
    if (spec.io == IoWindow::kBegin && !op.io_open && op.has_offset && op.has_length) {
        op.io_open = op.had_window = true;
        io_windows_.push_back(op_ref(op));
    } else if (spec.io == IoWindow::kEnd && op.io_open) {
        close_io_window(op);
        hooks_.wrote(op, ev.ts_ns);
    }
    if (spec.sync_wait == IoWindow::kBegin && op.sync_ns == kNoTime && op.state == OpState::kOpen) {
        op.sync_ns = ev.ts_ns;
        op.synced = true;
        hooks_.sync_begun(op, tid, ev.ts_ns);
    } else if (spec.sync_wait == IoWindow::kEnd) {
        end_sync(op, ev.ts_ns);
    }
}

void Stitcher::end_sync(Op &op, std::int64_t ts_ns) {
    if (op.sync_ns == kNoTime) return;
    hooks_.sync_ended(op, ts_ns);
    op.sync_ns = kNoTime;
}

void Stitcher::append(Op &op, const Transition &transition, const BoundPoint &bp, const Event &ev) {
    Transition t = transition;
    if (bp.duration_slot != kNoSlot) {
        // Stamped at its end: the begin is computed, and clipped to the op.
        const Slot &s = ev.slots[bp.duration_slot];
        double elapsed = s.kind == Slot::Kind::kReal ? s.r : s.is_number() ? static_cast<double>(s.i) : -1;
        if (elapsed >= 0) {
            Transition b = t;
            b.ts_ns = std::max(op.begin_ns, t.ts_ns - static_cast<std::int64_t>(elapsed * plan_.points[bp.spec].duration_unit_ns + 0.5));
            b.point = strings_.intern(strings_.at(t.point) + " begin");
            b.interval_begin = true;
            b.order = static_cast<std::uint32_t>(op.transitions.size());
            op.transitions.push_back(b);
        }
    }
    t.order = static_cast<std::uint32_t>(op.transitions.size());
    op.transitions.push_back(t);
}

void Stitcher::end_op(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    op.state = OpState::kEnded;
    op.end_ns = ts_ns;
    op.end_order = order;
    if (op.io_open) {
        close_io_window(op);
        hooks_.wrote(op, ts_ns);
    }
    end_sync(op, ts_ns);
    ended_.emplace_back(ts_ns, op_ref(op));
}

// Of an op that a soft begin made this is the end, until a later one comes. Of another it is where it ended at the latest,
// should its end never come.
void Stitcher::soften_end(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    if (op.has_soft_end && ts_ns < op.soft_end_ns) return;
    op.has_soft_end = true;
    op.soft_end_ns = ts_ns;
    op.soft_end_order = order;
    if (!op.hard) end_op(op, ts_ns, order);
}

void Stitcher::apply_thread_rule(ThreadState &ts, ThreadRule rule, const Found &found) {
    switch (rule) {
    case ThreadRule::kNone: return;
    case ThreadRule::kSwitch: ts.stack.clear(); [[fallthrough]];
    case ThreadRule::kEnter:
        if (ts.stack.size() >= kThreadDepth) ts.stack.erase(ts.stack.begin());  // a model that never leaves
        if (ts.stack.empty() || ts.stack.back().ref != found.ref) ts.stack.push_back({found.ref, found.spaces});
        return;
    case ThreadRule::kLeave:
        // Leaving an op that is not the innermost leaves everything that was entered inside it.
        for (std::size_t i = ts.stack.size(); i-- > 0;)
            if (ops_.find(ts.stack[i].ref) == found.op) {
                ts.stack.resize(i);
                return;
            }
        return;
    }
}

void Stitcher::open_batch(ThreadState &ts, const BoundPoint &bp, std::int64_t ts_ns, std::int64_t tid) {
    if (ts.batch) {
        ++counts_.batches_left_open;
        close_batch(ts, ts_ns);
    }
    ts.batch = std::make_shared<Batch>();
    ts.batch->serial = batch_serial_++;
    ts.batch->space = bp.batch_space;
    ts.batch->tid = tid;
    ts.batch->begin_ns = ts_ns;
}

void Stitcher::close_batch(ThreadState &ts, std::int64_t ts_ns) {
    if (!ts.batch) return;
    Batch &batch = *ts.batch;
    batch.end_ns = ts_ns;
    if (batch.declared >= 0 && batch.declared != static_cast<std::int64_t>(batch.members)) ++counts_.batch_counts_differ;
    hooks_.batch_closed(batch);
    if (batch.alias != 0) {
        for (const auto &key : batch.keys)
            if (auto named = keys_.find(key); named && *named == batch.alias) keys_.erase(key);
        ops_.release(batch.alias);
        batch.alias = 0;
    }
    ts.batch.reset();
}

// Whether something finds an op or a batch for the point: its first key, or its thread where it has none.
bool Stitcher::finds(const BoundPoint &bp, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid) {
    Key key;
    if (!bp.find.empty()) {
        if (key_of(bp.find.front(), ev, host, pid, tid, key) != KeyState::kKnown) return false;
        const std::uint64_t *ref = keys_.find(key);
        const auto target = ref ? ops_.resolve(*ref) : OpTable::Target{};
        return target.op || target.batch;
    }
    for (const auto &use : bp.sole)
        if (key_of(use, ev, host, pid, tid, key) == KeyState::kKnown && waits_alone(key)) return true;
    return bp.sole.empty() && current_op(host, tid) != nullptr;
}

bool Stitcher::facts_known(const BoundPoint &bp, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid) const {
    Key key;
    for (const auto &use : bp.find)
        if (key_of(use, ev, host, pid, tid, key) == KeyState::kUnlearned) return false;
    return true;
}

// Of several points that match the first whose predicate holds, whose facts are known, and that is not optional or finds
// its op.
BoundPoint *Stitcher::choose(BoundClass &cls, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid,
                             bool &broken) {
    for (auto &p : cls.points) {
        if (p.broken) broken = broken || could_hold(p, ev);
        else if ((p.when.empty() || holds(p, ev)) && (!p.needs_facts || facts_known(p, ev, host, pid, tid)) &&
                 (!plan_.points[p.spec].optional || finds(p, ev, host, pid, tid)))
            return &p;
    }
    return nullptr;
}

// Events that are about no op: they tell something about their thread, or about a value.
Fate Stitcher::note(BoundPoint &bp, const PointSpec &spec, const Event &ev, ThreadState &ts, std::uint32_t host,
                    std::int32_t pid, std::int64_t tid) {
    if (bp.mark != 0) {
        auto it = std::find_if(ts.marks.begin(), ts.marks.end(), [&](const auto &m) { return m.first == bp.mark; });
        if (it == ts.marks.end()) ts.marks.emplace_back(bp.mark, ev.ts_ns);
        else it->second = ev.ts_ns;
    }
    if (spec.learn != kNoFact) {
        const Slot &of = ev.slots[bp.fact_of.slots.front()];
        if (!of.present()) return Fate::kOrphanMalformed;
        const Slot &first = ev.slots[bp.fact_value.slots.front()];
        const Key name = fact_key(spec.learn, bp.fact_of.scope, of, host, pid, tid);
        if (facts_.size() >= kFactsKept) {
            counts_.evicted_facts += facts_.size();
            facts_.clear();
        }
        if (bp.fact_value.slots.size() == 1 && first.is_number()) {
            facts_.put(name, {first.bits(), kOneNumber});
            return Fate::kContext;
        }
        std::vector<std::uint64_t> parts;
        for (auto slot : bp.fact_value.slots) {
            KeyBuilder one(0);
            one.add(ev.slots[slot]);
            parts.push_back(one.lo);
        }
        if (plan_.facts[static_cast<std::size_t>(spec.learn)].unordered) std::sort(parts.begin(), parts.end());
        KeyBuilder value(0);
        for (auto part : parts) value.add(part);
        facts_.put(name, {value.lo, value.hi | 1});
    }
    return Fate::kContext;
}

Fate Stitcher::work_of(Batch &batch, Transition t, BoundPoint &bp) {
    t.batch = static_cast<std::int64_t>(batch.serial);
    t.order = static_cast<std::uint32_t>(batch.work.size());
    batch.work.push_back(t);
    ++bp.transitions;
    return Fate::kBatch;
}

void Stitcher::release_keys(const BoundPoint &bp, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid) {
    Key key;
    for (const auto &use : bp.release)
        if (key_of(use, ev, host, pid, tid, key) == KeyState::kKnown) keys_.erase(key);
}

Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    const std::int64_t tid = number(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number(ev, cls.pid_slot, -1));
    bool broken = false;
    BoundPoint *bp = choose(cls, ev, host, pid, tid, broken);
    if (!bp) return broken ? Fate::kOrphanMalformed : Fate::kIgnored;
    ++bp->seen;
    const PointSpec &spec = plan_.points[bp->spec];
    ThreadState &ts = thread(host, tid);
    if (bp->mark != 0 || spec.learn != kNoFact) return note(*bp, spec, ev, ts, host, pid, tid);

    Transition t;
    t.ts_ns = ev.ts_ns;
    t.event = cls.name_id;
    t.spec = bp->spec;
    t.tid = tid;
    t.pid = pid;
    t.cpu = ev.cpu;
    if (cls.comm_slot != kNoSlot && ev.slots[cls.comm_slot].kind == Slot::Kind::kString) {
        auto comm = ev.slots[cls.comm_slot].str();
        if (comm != ts.comm) {
            ts.comm.assign(comm);
            ts.comm_id = strings_.intern(comm);
        }
        t.comm = ts.comm_id;
    }
    t.point = bp->name_slot == kNoSlot ? bp->name_id : point_name(*bp, spec, ev.slots[bp->name_slot]);
    if (bp->at != 0)
        for (const auto &[mark, when] : ts.marks)
            if (mark == bp->at) t.ts_ns = when;

    if (spec.ios && spec.role != Role::kBegin) {
        if (!bp->ios_wait) return return_from_call(*bp, ev, t, ts);
        enter_call(ts, *bp, ev, host, pid, tid, nullptr);
        return Fate::kContext;
    }
    if (ts.call && spec.thread == ThreadRule::kSwitch) leave_call(ts);  // its exit was not seen

    if (spec.batch_do == BatchDo::kOpen ||
        ((!ts.batch || ts.batch->work.size() >= kBatchWork) &&
         (spec.batch_do == BatchDo::kOpenOrWork || spec.batch_do == BatchDo::kOpenOrJoin)))
        open_batch(ts, *bp, ev.ts_ns, tid);
    struct CloseAtExit {
        Stitcher &self; ThreadState &ts; bool on; std::int64_t at;
        ~CloseAtExit() { if (on) self.close_batch(ts, at); }
    } close_at_exit{*this, ts, spec.batch_do == BatchDo::kClose, ev.ts_ns};

    if (close_at_exit.on && ts.batch) ts.batch->declared = number(ev, bp->batch_count_slot, -1);

    // The op: a begin makes one; else the first find key that is bound; else, without keys, the thread's own.
    Found found;
    const Found working = current(ts);
    Key unbound[8], key;
    std::size_t unbound_count = 0;
    std::uint64_t others[4];  // refs of what further keys name
    std::size_t other_count = 0;
    if (spec.role == Role::kBegin) {
        found.op = &new_op(host, pid, t.ts_ns);
        found.ref = op_ref(*found.op);
        if (!bp->bind.empty()) key_text(bp->bind.front(), ev, found.op->key_text);
        else if (bp->ios_submit) key_text(*bp->ios_submit, ev, found.op->key_text);
        t.evidence = Evidence::kBegin;
    } else if (bp->find.empty() && bp->sole.empty()) {
        found = working;
        t.evidence = Evidence::kThread;
        const bool shared = spec.batch_do == BatchDo::kWork || spec.batch_do == BatchDo::kOpenOrWork;
        if (ts.batch && (shared || !found.op) && (spec.batch_do != BatchDo::kNone || !found.op)) {
            t.evidence = Evidence::kBatch;
            for (const auto &use : bp->bind)
                if (key_of(use, ev, host, pid, tid, key) == KeyState::kKnown) bind_batch(*ts.batch, key);
            return work_of(*ts.batch, t, *bp);
        }
        if (!found.op) return Fate::kOrphanNoKey;
    } else {
        bool settled = false;
        for (auto &use : bp->find) {
            const KeyState state = key_of(use, ev, host, pid, tid, key);
            if (state == KeyState::kAbsent) return Fate::kOrphanMalformed;
            if (state == KeyState::kUnlearned) continue;
            t.spaces |= use.spaces;
            const std::uint64_t *ref = keys_.find(key);
            const auto named = ref ? ops_.resolve(*ref) : OpTable::Target{};
            if (named.batch && !found.op) {
                ++use.found;
                t.evidence = Evidence::kBatch;
                release_keys(*bp, ev, host, pid, tid);
                for (const auto &bound : bp->bind)
                    if (key_of(bound, ev, host, pid, tid, key) == KeyState::kKnown) bind_batch(*named.batch, key);
                return work_of(*named.batch, t, *bp);
            }
            if (named.op) {
                ++use.found;
                if (!found.op) {
                    found = {named.op, named.child, *ref, 0};
                    t.evidence = Evidence::kKey;
                    t.key_space = use.space;
                } else if (found.op != named.op && other_count < 4) {
                    others[other_count++] = *ref;
                }
            } else {
                ++use.missed;
                if (settled_keys_.contains(key)) settled = true;
                if (unbound_count < 8) unbound[unbound_count++] = key;
            }
        }
        for (auto &use : bp->sole) {
            if (found.op || key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
            found.op = waits_alone(key);
            ++(found.op ? use.found : use.missed);
            if (!found.op) continue;
            found.ref = op_ref(*found.op);
            stop_waiting(*found.op, key);
            t.spaces |= use.spaces;
            t.evidence = Evidence::kKey;
            t.key_space = use.space;
        }
        if (!found.op && spec.role == Role::kSoftBegin) {
            found.op = &new_op(host, pid, t.ts_ns);
            found.op->hard = false;
            found.ref = op_ref(*found.op);
            t.evidence = Evidence::kBegin;
            t.key_space = bp->find.front().space;
        }
        if (!found.op) {
            if (spec.role == Role::kEnd) ++counts_.ends_without_op;
            // A straggler that leaves its thread must not leave somebody else's op entered there.
            return settled ? Fate::kOrphanSettled : Fate::kOrphanNoOp;
        }
        if (spec.role == Role::kSoftBegin && !found.op->hard && found.child == 0) {
            found.op->begin_ns = std::min(found.op->begin_ns, t.ts_ns);
            name_op(*found.op, bp->find.front(), ev);
        }
    }
    if (spec.child) found.ref = begin_child(*found.op, found.child, found.child);
    for (std::size_t i = 0; i < other_count; ++i) {
        Op *other = ops_.find(others[i]);
        if (!other || other == found.op) continue;
        if (can_unite(*found.op, *other) || (spec.child && !other->hard)) {
            ++counts_.halves_joined;
            found.op = &unite(*found.op, *other, found.child, true);
        } else {
            ++counts_.key_conflicts;
        }
    }
    for (std::size_t i = 0; i < unbound_count; ++i) bind_key(*found.op, found.ref, unbound[i]);
    for (auto &use : bp->bind) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        t.spaces |= use.spaces;
        bind_key(*found.op, found.ref, key);
    }
    if (found.child == 0) found.op->global_spaces |= bp->global_spaces;
    found.spaces = t.spaces;
    for (auto &use : bp->meet) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        bool sure = false;
        Op &met = meet(*found.op, found.child, key, plan_.key_spaces[use.space].by_order, tid, sure);
        ++(&met != found.op || sure ? use.found : use.missed);
        found.op = &met;
        if (sure) t.spaces |= use.spaces;
    }
    for (auto &use : bp->wait) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        t.spaces |= use.spaces;
        wait_under(*found.op, key);
    }
    if (!bp->meet.empty() || other_count != 0)  // the joint may have made it another op's child
        if (const auto target = ops_.resolve(found.ref); target.op) found.child = target.child;
    if (bp->ios_submit) t.spaces |= bp->ios_submit->spaces;
    const bool ends = found.child == 0 && (spec.role == Role::kEnd || spec.role == Role::kSoftEnd) &&
                      (spec.end_of.empty() || std::find(spec.end_of.begin(), spec.end_of.end(),
                                                        strings_.at(found.op->op_class)) != spec.end_of.end());
    if (ends && spec.role == Role::kEnd && found.op->state == OpState::kOpen) found.op = &join_partner(*found.op, t.ts_ns);

    Op &op = *found.op;
    t.in_thread = working.op && ops_.find(working.ref) == &op;
    t.child = found.child;
    decorate(op, *bp, spec, ev, tid, pid);
    if ((spec.batch_do == BatchDo::kJoin || spec.batch_do == BatchDo::kOpenOrJoin) && ts.batch) {
        op.batches.push_back({ts.batch, static_cast<std::uint32_t>(op.transitions.size())});
        ++ts.batch->members;
    }
    append(op, t, *bp, ev);
    ++bp->transitions;
    if (ends && spec.role == Role::kSoftEnd) soften_end(op, t.ts_ns, op.transitions.last_order());
    if (ends && spec.role == Role::kEnd && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, t.ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
    apply_thread_rule(ts, spec.thread, found);
    if (bp->ios_submit) enter_call(ts, *bp, ev, host, pid, tid, &op);
    release_keys(*bp, ev, host, pid, tid);
    return Fate::kTransition;
}

// The first of the ended ops, if that is where it ended: a soft end can have moved on, and what ended may have been found
// to be a part of something that goes on.
void Stitcher::settle_ended() {
    const auto [end_ns, ref] = ended_.front();
    ended_.pop_front();
    Op *op = ops_.find(ref);
    if (!op || op->state != OpState::kEnded || op->end_ns != end_ns) return;
    if (Op *partner = op->partner != 0 ? ops_.find(op->partner) : nullptr; partner && partner->state == OpState::kOpen) {
        join_partner(*partner, last_ns_);
        op = ops_.find(ref);
        if (!op || op->state != OpState::kEnded) return;
    }
    settle(*op);
}

void Stitcher::settle(Op &op) {
    close_io_window(op);
    end_sync(op, kNoTime);
    part(op);
    hooks_.settle(op);
    for (const auto &key : op.keys) {
        const std::uint64_t *named = keys_.find(key);
        if (!named || ops_.find(*named) != &op) continue;
        keys_.erase(key);
        settled_keys_.add(key);
    }
    stop_waiting(op);
    for (auto alias : op.aliases) ops_.release(alias);
    ops_.release(op);
}

void Stitcher::finish() {
    threads_.for_each([this](std::uint64_t, ThreadState &ts) {
        if (!ts.batch) return;
        ++counts_.batches_left_open;
        hooks_.batch_closed(*ts.batch);
        ts.batch.reset();
    });
    io_queues_.for_each([this](const Key &, IoQueue &q) { complete_all(q); });
    while (!ended_.empty()) settle_ended();
    std::vector<std::uint64_t> open;
    ops_.for_each_live([&](Op &op) { open.push_back(op_ref(op)); });
    std::sort(open.begin(), open.end());
    for (auto ref : open) {
        Op *op = ops_.find(ref);
        if (!op) continue;
        if (op->partner != 0 && op->hard) op = &join_partner(*op, last_ns_);
        settle(*op);
    }
}

}  // namespace opline
