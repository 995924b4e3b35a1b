// SPDX-License-Identifier: MIT
#include "stitcher.hpp"

#include <algorithm>
#include <cstdio>

namespace opline {
namespace {

constexpr std::size_t kSettledKeysKept = 1u << 16;
constexpr std::size_t kThreadDepth = 64;

struct KeyBuilder {
    std::uint64_t lo, hi;
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
};

std::int64_t number(const Event &ev, std::int32_t slot, std::int64_t otherwise) {
    if (slot == kNoSlot || !ev.slots[slot].is_number()) return otherwise;
    return ev.slots[slot].i;
}

}  // namespace

Stitcher::Stitcher(const Plan &plan, StringPool &strings, Hooks hooks)
    : plan_(plan), strings_(strings), hooks_(std::move(hooks)),
      completed_(strings.intern("completed")), reaped_(strings.intern("reaped")), queued_(strings.intern("queued")) {}

ThreadState &Stitcher::thread(std::uint32_t host, std::int64_t tid) { return threads_[thread_key(host, tid)]; }

Op *Stitcher::current_op(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? current_op(*ts) : nullptr;
}

Op *Stitcher::current_op(ThreadState &ts) {
    auto &stack = ts.stack;
    while (!stack.empty()) {
        if (Op *op = ops_.find(stack.back())) return op;
        stack.pop_back();  // settled while the thread never said that it left
    }
    return nullptr;
}

std::shared_ptr<Batch> Stitcher::current_batch(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? ts->batch : nullptr;
}

Key Stitcher::key_of(const BoundKey &use, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid,
                     bool &ok) const {
    KeyBuilder b(use.space);
    if (use.scope == KeyScope::kProcess) b.add((static_cast<std::uint64_t>(host) << 32) | static_cast<std::uint32_t>(pid));
    if (use.scope == KeyScope::kThread) b.add(thread_key(host, tid));
    for (auto slot : use.slots) {
        const Slot &s = ev.slots[slot];
        if (s.kind == Slot::Kind::kString) b.add(s.str());
        else if (s.present()) b.add(s.bits());
        else ok = false;
    }
    return {b.lo, b.hi};
}

std::string Stitcher::key_text(const BoundKey &use, const Event &ev) const {
    std::string out = plan_.key_spaces[use.space].name + "=";
    bool first = true;
    for (auto slot : use.slots) {
        if (!first) out += ',';
        first = false;
        const Slot &s = ev.slots[slot];
        char buffer[32];
        if (s.kind == Slot::Kind::kString) out += s.str();
        else if (s.kind == Slot::Kind::kSigned) out += std::to_string(s.i);
        else if (s.u >= 0x100000000ull) { std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(s.u)); out += buffer; }
        else out += std::to_string(s.u);
    }
    return out;
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

void Stitcher::bind_key(Op &op, const Key &key) {
    auto ref = op_ref(op);
    std::uint64_t &named = *keys_.insert(key).first;
    if (named == ref) return;
    named = ref;  // a new generation, if it named another op
    op.keys.push_back(key);
}

bool Stitcher::owns_all_keys_lost(const Op &op) const {
    for (const auto &k : op.keys) {
        auto named = keys_.find(k);
        if (named && *named == op_ref(op)) return false;
    }
    return !op.keys.empty();
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
    return op;
}

Op &Stitcher::begin_op(const BoundPoint &bp, const Event &ev, std::uint32_t host, std::int32_t pid) {
    Op &op = new_op(host, pid, ev.ts_ns);
    if (!bp.bind.empty()) op.key_text = key_text(bp.bind.front(), ev);
    else if (bp.ios_submit) op.key_text = key_text(*bp.ios_submit, ev);
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

void Stitcher::decorate(Op &op, const BoundPoint &bp, const PointSpec &spec, const Event &ev) {
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
    if (bp.length_slot != kNoSlot && ev.slots[bp.length_slot].is_number()) {
        op.length_bytes = ev.slots[bp.length_slot].i;
        op.has_length = true;
    }
    if (spec.io == IoWindow::kBegin && !op.io_open && op.has_offset && op.has_length) {
        op.io_open = true;
        io_windows_.push_back(op_ref(op));
    } else if (spec.io == IoWindow::kEnd) {
        close_io_window(op);
    }
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
    close_io_window(op);
    ended_.emplace_back(ts_ns, op_ref(op));
}

void Stitcher::apply_thread_rule(ThreadState &ts, ThreadRule rule, const Op *op) {
    switch (rule) {
    case ThreadRule::kNone: return;
    case ThreadRule::kSwitch: ts.stack.clear(); [[fallthrough]];
    case ThreadRule::kEnter:
        if (op) {
            if (ts.stack.size() >= kThreadDepth) ts.stack.erase(ts.stack.begin());  // a model that never leaves
            if (ts.stack.empty() || ts.stack.back() != op_ref(*op)) ts.stack.push_back(op_ref(*op));
        }
        return;
    case ThreadRule::kLeave:
        if (!op) {
            if (!ts.stack.empty()) ts.stack.pop_back();
            return;
        }
        // Leaving an op that is not the innermost leaves everything that was entered inside it.
        for (std::size_t i = ts.stack.size(); i-- > 0;)
            if (ts.stack[i] == op_ref(*op)) {
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
    ts.batch->end_ns = ts_ns;
    hooks_.batch_closed(*ts.batch);
    ts.batch.reset();
}

Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    BoundPoint *bp = nullptr;
    bool broken = false;
    for (auto &p : cls.points) {
        if (p.broken) {
            broken = true;
        } else if (holds(p, ev)) {
            bp = &p;
            break;
        }
    }
    if (!bp) return broken ? Fate::kOrphanMalformed : Fate::kIgnored;
    ++bp->seen;
    const PointSpec &spec = plan_.points[bp->spec];
    const std::int64_t tid = number(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number(ev, cls.pid_slot, -1));
    ThreadState &ts = thread(host, tid);

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

    if (spec.ios && spec.role != Role::kBegin) {
        if (!bp->ios_wait) return return_from_call(*bp, ev, t, ts);
        enter_call(ts, *bp, ev, host, pid, tid, nullptr);
        return Fate::kContext;
    }
    if (ts.call && spec.thread == ThreadRule::kSwitch) leave_call(ts);  // its exit was not seen

    if (spec.batch_do == BatchDo::kOpen || (spec.batch_do == BatchDo::kOpenOrWork && !ts.batch))
        open_batch(ts, *bp, ev.ts_ns, tid);
    struct CloseAtExit {
        Stitcher &self; ThreadState &ts; bool on; std::int64_t at;
        ~CloseAtExit() { if (on) self.close_batch(ts, at); }
    } close_at_exit{*this, ts, spec.batch_do == BatchDo::kClose, ev.ts_ns};

    // The op: a begin makes one; else the first find key that is bound; else, without keys, the thread's own.
    Op *op = nullptr;
    Op *thread_op = current_op(ts);
    bool settled = false;
    Key unbound[8];
    std::size_t unbound_count = 0;
    if (spec.role == Role::kBegin) {
        op = &begin_op(*bp, ev, host, pid);
        t.evidence = Evidence::kBegin;
    } else if (bp->find.empty()) {
        op = thread_op;
        t.evidence = Evidence::kThread;
        if (!op || spec.batch_do == BatchDo::kWork || spec.batch_do == BatchDo::kOpenOrWork) {
            if (ts.batch && (spec.batch_do != BatchDo::kNone || !op)) {
                t.evidence = Evidence::kBatch;
                t.batch = static_cast<std::int64_t>(ts.batch->serial);
                t.order = static_cast<std::uint32_t>(ts.batch->work.size());
                ts.batch->work.push_back(t);
                ++bp->transitions;
                return Fate::kBatch;
            }
            if (!op) return Fate::kOrphanNoKey;
        }
    } else {
        for (auto &use : bp->find) {
            bool ok = true;
            Key key = key_of(use, ev, host, pid, tid, ok);
            if (!ok) return Fate::kOrphanMalformed;
            t.spaces |= 1ull << use.space;
            const std::uint64_t *ref = keys_.find(key);
            Op *named = ref ? ops_.find(*ref) : nullptr;
            if (named) {
                ++use.found;
                if (!op) {
                    op = named;
                    t.evidence = Evidence::kKey;
                    t.key_space = use.space;
                } else if (op != named) {
                    ++counts_.key_conflicts;
                }
            } else {
                ++use.missed;
                if (settled_keys_.contains(key)) settled = true;
                if (unbound_count < 8) unbound[unbound_count++] = key;
            }
        }
        if (!op) {
            if (spec.role == Role::kEnd) ++counts_.ends_without_op;
            // A straggler that leaves its thread must not leave somebody else's op entered there.
            return settled ? Fate::kOrphanSettled : Fate::kOrphanNoOp;
        }
        for (std::size_t i = 0; i < unbound_count; ++i) bind_key(*op, unbound[i]);
    }

    for (auto &use : bp->bind) {
        bool ok = true;
        Key key = key_of(use, ev, host, pid, tid, ok);
        if (!ok) continue;
        t.spaces |= 1ull << use.space;
        bind_key(*op, key);
    }
    if (bp->ios_submit) t.spaces |= 1ull << bp->ios_submit->space;
    t.in_thread = thread_op == op;
    decorate(*op, *bp, spec, ev);
    if (spec.batch_do == BatchDo::kJoin && ts.batch) {
        op->batches.push_back({ts.batch, static_cast<std::uint32_t>(op->transitions.size())});
        ++ts.batch->members;
    }
    append(*op, t, *bp, ev);
    ++bp->transitions;
    const bool ends = spec.role == Role::kEnd &&
                      (spec.end_of.empty() || std::find(spec.end_of.begin(), spec.end_of.end(),
                                                        strings_.at(op->op_class)) != spec.end_of.end());
    if (ends && op->state == OpState::kOpen)
        end_op(*op, ev.ts_ns, op->transitions.last_order());
    apply_thread_rule(ts, spec.thread, op);
    if (bp->ios_submit) enter_call(ts, *bp, ev, host, pid, tid, op);
    for (auto &use : bp->release) {
        bool ok = true;
        Key key = key_of(use, ev, host, pid, tid, ok);
        if (ok) keys_.erase(key);
    }
    return Fate::kTransition;
}

void Stitcher::advance(std::int64_t now_ns) {
    while (!ended_.empty() && ended_.front().first + plan_.linger_ns < now_ns) {
        Op *op = ops_.find(ended_.front().second);
        ended_.pop_front();
        if (op) settle(*op);
    }
}

void Stitcher::settle(Op &op) {
    close_io_window(op);
    hooks_.settle(op);
    const auto ref = op_ref(op);
    for (const auto &key : op.keys) {
        const std::uint64_t *named = keys_.find(key);
        if (!named || *named != ref) continue;
        keys_.erase(key);
        auto [serial, added] = settled_keys_.insert(key);
        *serial = op.serial;
        if (added) settled_order_.push_back(key);
    }
    while (settled_order_.size() > kSettledKeysKept) {
        settled_keys_.erase(settled_order_.front());
        settled_order_.pop_front();
    }
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
    while (!ended_.empty()) {
        Op *op = ops_.find(ended_.front().second);
        ended_.pop_front();
        if (op) settle(*op);
    }
    std::vector<Op *> open;
    ops_.for_each_live([&](Op &op) { open.push_back(&op); });
    std::sort(open.begin(), open.end(), [](const Op *a, const Op *b) { return a->serial < b->serial; });
    for (Op *op : open) settle(*op);
}

}  // namespace opline
