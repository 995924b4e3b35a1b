// SPDX-License-Identifier: MIT
#include "stitch/async_ios.hpp"

#include <algorithm>

namespace opline {
namespace {

// Limit of the done I/Os kept in a queue until a call takes the completions. The limit is lower before the first taken
// completion: perhaps the trace never shows such calls.
constexpr std::size_t kUntaken = 1u << 14, kUntakenAtFirst = 1u << 12;
constexpr std::size_t kQueuesKept = 1u << 10;

}  // namespace

AsyncIos::AsyncIos(Stitching &s, ThreadStates &threads, OpLives &lives, Keys &keys)
    : s_(s),
      threads_(threads),
      lives_(lives),
      ops_(lives.ops()),
      keys_(keys),
      completed_(s.strings.intern("completed")),
      reaped_(s.strings.intern("reaped")) {}

std::uint32_t AsyncIos::class_of_io(std::uint32_t base, IoKind kind) {
    auto [id, added] = io_classes_.insert((static_cast<std::uint64_t>(base) << 8) | static_cast<std::uint8_t>(kind));
    if (added) *id = s_.strings.intern(s_.strings.at(base) + " " + std::string(io_kind_name(kind)));
    return *id;
}

// The entry of a call: the call queues I/Os, waits for I/Os, or does both.
void AsyncIos::enter_call(Passage &p, Op *head) {
    const BoundPoint &bp = p.bp;
    leave_call(p.ts);
    const BoundKey &use = bp.ios_submit ? *bp.ios_submit : *bp.ios_wait;
    Key key;
    if (keys_.key_of(use, p.ev, p.who, key) != KeyState::kKnown) return;
    if (io_queues_.size() > kQueuesKept) io_queues_.erase_if([](const Key &, const IoQueue &q) { return q.idle(); });
    IoQueue &queue = io_queues_[key];
    auto call = std::make_unique<IoCall>();
    call->queue = key;
    call->space = use.space;
    call->ring = p.spec.ios.ring;
    if (const std::int64_t taken = number_in(p.ev, bp.ios_taken, -1); taken >= 0)
        take_up_to(queue, static_cast<std::uint32_t>(taken));
    if (bp.ios_submit) {
        call->submits = true;
        ++queue.submitting;
        call->host = p.who.host;
        call->begin = p.t;
        call->begin.evidence = Evidence::kBegin;
        call->told = !head;
        if (!head) keys_.key_text(use, p.ev, call->key_text);
    }
    if (head) {
        call->announced =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(number_in(p.ev, bp.ios_count, 1), 1, 1 << 20));
        call->op_class = head->op_class;
        call->object = head->object;
        call->inode = head->inode;
        call->file_dev = head->file_dev;
        call->file = head->file;
        call->target = head->target;
        call->key_text = head->key_text;
        call->ops.push_back(op_ref(*head));
        IoLife &io = head->io;
        io.is_io = true;
        io.ring = call->ring;
        io.space = use.space;
        io.queue = key;
        call->names = names_in(p.ev, bp.ios_names);
        if (call->names.size() > call->announced) call->names.resize(call->announced);
        claim_names(*call, queue);
        if (call->announced == 1) give_names(*call, queue, 1);
    }
    if (bp.ios_wait) {
        call->least = number_in(p.ev, bp.ios_least, 0);
        call->waits = true;
        ++queue.waiting;
    }
    p.ts.call = std::move(call);
}

Op &AsyncIos::another_io(IoCall &call) {
    Op &op = lives_.new_op(call.host, call.begin.pid, call.begin.tid, call.begin.ts_ns);
    op.op_class = call.op_class;
    op.object = call.object;
    op.inode = call.inode;
    op.file_dev = call.file_dev;
    op.file = call.file;
    if (call.target != 0) op.target = call.target;
    op.key_text = call.key_text;
    op.io.is_io = true;
    op.io.ring = call.ring;
    op.io.space = call.space;
    op.io.queue = call.queue;
    lives_.add_transition(op, call.begin);
    call.ops.push_back(op_ref(op));
    return op;
}

Op &AsyncIos::begin_told(Passage &p) {
    IoCall *call = p.ts.call && p.ts.call->told ? p.ts.call.get() : nullptr;
    Op &op = call ? another_io(*call) : lives_.new_op(p.who.host, p.who.pid, p.t.tid, p.t.ts_ns);
    op.io.is_io = op.io.ring = op.io.told = true;
    // The kernel's polling thread (io_sq_thread(), io_uring/sqpoll.c) submits for the program that made the ring.
    if (!call && op.program_run != 0 && s_.strings.at(p.t.comm).substr(0, 8) == "iou-sqp-")
        if (const std::uint32_t program = s_.population.run(op.program_run).comm) p.t.comm = program;
    return op;
}

// A call announced several I/Os: each bio begins a new I/O, except the further bios of a large I/O. A read of a file
// system's metadata belongs to the next I/O.
Op *AsyncIos::io_of_bio(IoCall &call, const Bio &bio) {
    const bool data = bio.nr_sectors > 0 && bio.sector != kNoSector && (bio.rwbs & rwbs::kMeta) == 0;
    if (data && call.has_bio && call.ops.size() < call.announced && !call.last.continued_by(bio)) another_io(call);
    Op *op = ops_.find(call.ops.back());
    if (!data) return op;
    call.has_bio = true;
    call.last.remember(bio);
    if (!op) return op;
    op->io.data = true;
    if (op->bios == 0) op->op_class = class_of_io(call.op_class, bio.kind);
    add_length(*op, bio);
    return op;
}

Op *AsyncIos::op_of_bio(std::uint32_t host, const BlockEvent &ev, const Bio &bio) {
    ThreadState *ts = ev.tid > 0 ? threads_.find(host, ev.tid) : nullptr;
    if (!ts) return nullptr;
    Op *op = ts->call && ts->call->submits && !ts->call->told ? io_of_bio(*ts->call, bio) : threads_.current(*ts).op;
    return op && op->state == OpState::kOpen ? op : nullptr;
}

void AsyncIos::bio_opened(std::uint64_t ref) {
    Op *op = ops_.find(ref);
    if (!op || !op->io.is_io || op->io.told) return;
    ++op->io.open_bios;
    if (!op->io.done || op->state != OpState::kOpen) return;
    op->io.done = false;  // the I/O continues in another bio
    if (IoQueue *q = io_queues_.find(op->io.queue))
        q->done.erase(std::remove(q->done.begin(), q->done.end(), ref), q->done.end());
}

void AsyncIos::request_done(const Request &r) {
    if (r.absorbed_by != 0) return;
    for (const auto &owner : r.owners) {
        Op *op = ops_.find(owner.op);
        if (!op || !op->io.is_io || op->io.told) continue;
        if (r.complete_ns == kNoTime) op->io.lost = true;
        else op->io.done_ns = std::max(op->io.done_ns, std::max(r.end_ns, r.complete_ns));
    }
}

void AsyncIos::bio_done(const Bio &bio) {
    Op *op = ops_.find(bio.owner.op);
    if (!op) return;
    if (bio.complete_ns != kNoTime && bio.request == 0) ++op->bios_done;
    const bool made_of_another = bio.parent != 0 || bio.split_from != 0;
    if (!made_of_another && op->bios_on_their_way > 0) --op->bios_on_their_way;
    if (!op->io.is_io || op->io.told) return;
    IoLife &io = op->io;
    if (bio.complete_ns != kNoTime) io.done_ns = std::max(io.done_ns, bio.complete_ns);
    if (io.open_bios > 0) --io.open_bios;
    if (io.ring && !io.data) return;  // a read of metadata, to find the place of the data
    if (io.open_bios == 0 && !io.lost && !io.done && io.done_ns != kNoTime && op->state == OpState::kOpen)
        io_done(*op, io.done_ns);
}

void AsyncIos::io_done(Op &op, std::int64_t done_ns, std::int64_t posted) {
    op.io.done = true;
    op.io.done_ns = done_ns;
    op.io.posted = static_cast<std::uint32_t>(posted);
    if (op.io.own) {
        end_at_completion(op);
        return;
    }
    IoQueue &q = io_queues_[op.io.queue];
    // An application can take completions without a call. Without the count of taken completions (`counted`), opline
    // knows the taker of this completion only if a call waits now.
    const bool counted = q.taken && posted >= 0;
    if (!counted && (op.io.ring ? q.waiting == 0 : q.unseen)) {
        end_at_completion(op);
        return;
    }
    q.done.push_back(op_ref(op));
    if (q.done.size() > (q.reap_seen || counted ? kUntaken : kUntakenAtFirst)) {
        q.unseen = true;
        complete_all(q);
    }
}

// `returned`: the last call with this completion still untaken; the op ends at the call's return or later.
void AsyncIos::end_at_completion(Op &op, const Transition *returned) {
    if (!op.io.own && !op.io.ring) ++s_.counts.reaps_unseen;
    if (op.bios == 0 && !op.io.told) {  // no bio was queued: the I/O was done at the return of the submitting call
        end_io(op, op.transitions.last_ns(), op.transitions.last_order());
        return;
    }
    Transition t;
    if (returned && returned->ts_ns > op.io.done_ns) {
        t = taken_at(*returned, reaped_);
    } else {
        op.io.take_unseen = op.io.ring && !op.io.own;
        t.ts_ns = op.io.done_ns;
        t.point = completed_;
        t.spec = kNoSpec;
        t.pid = op.pid;
        t.evidence = Evidence::kCompletion;
    }
    end_io(op, t.ts_ns, lives_.add_transition(op, t));
}

void AsyncIos::end_io(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    if (op.io.name != 0) {
        IoQueue *q = io_queues_.find(op.io.queue);
        if (auto *ref = q ? q->named.find(op.io.name) : nullptr; ref && *ref == op_ref(op)) q->named.erase_found(ref);
        op.io.name = 0;
    }
    lives_.end_op(op, ts_ns, order);
}

void AsyncIos::complete_all(IoQueue &q) {
    for (auto ref : q.done)
        if (Op *op = ops_.find(ref); op && op->state == OpState::kOpen) end_at_completion(*op, &q.returned);
    q.done.clear();
}

// `count` I/Os end here: first the I/Os with the names in `names`; then, for unnamed completions or unknown names, the
// I/Os in order of completion. A surplus belongs to I/Os queued before the trace, or queued by a call still without
// return.
bool AsyncIos::reap(IoQueue &q, std::int64_t count, std::vector<std::uint64_t> names, Transition t) {
    t = taken_at(t, reaped_);
    const bool more = !names.empty() && static_cast<std::int64_t>(names.size()) < count;
    std::int64_t taken = 0, unknown = 0;
    std::vector<std::uint64_t> queueing;
    if (static_cast<std::int64_t>(names.size()) > count) names.resize(static_cast<std::size_t>(count));
    for (auto name : names) {
        const auto *ref = q.named.find(name);
        if (ref && *ref == IoQueue::kQueueing) queueing.push_back(name);
        else if (take_named(q, name, t)) ++taken;
        else if (name != 0 && !q.in_order) ++unknown;
    }
    const std::int64_t unsaid = count - taken - unknown - static_cast<std::int64_t>(queueing.size());
    taken += take_in_order(q, unknown, true, t);
    taken += take_in_order(q, unsaid, false, t);
    if (more) {
        go_by_order(q);
        queueing.clear();
    }
    if (taken < count && q.submitting > 0) q.reaped_early.push_back({t, count - taken, std::move(queueing)});
    return taken > 0;
}

// The call returned after queueing `count` I/Os. Only this number tells of I/Os without a bio.
void AsyncIos::close_submit(IoCall &call, std::int64_t count, const Transition &t) {
    if (call.told) {
        for (const auto ref : call.ops)
            if (Op *op = ops_.find(ref); op && op->state == OpState::kOpen) lives_.add_transition(*op, t);
        return;
    }
    // If only some of the I/Os have bios, the trace does not say whose names these are.
    const bool names_sure = !call.has_bio || static_cast<std::int64_t>(call.ops.size()) == count;
    while (static_cast<std::int64_t>(call.ops.size()) < count && call.ops.size() < call.announced) another_io(call);
    IoQueue &q = io_queues_[call.queue];
    give_names(call, q, names_sure ? count : 0);
    for (std::size_t i = 0; i < call.ops.size(); ++i) {
        Op *op = ops_.find(call.ops[i]);
        if (!op) continue;
        const auto order = lives_.add_transition(*op, t);
        if (op->state != OpState::kOpen) continue;
        if (op->bios == 0 && static_cast<std::int64_t>(i) >= count)
            end_io(*op, t.ts_ns, order);  // refused: the I/O consists of the call alone
        else if (call.ring && !op->io.done) q.in_flight.push_back(call.ops[i]);
    }
    if (call.ring) {
        if (q.in_flight.size() >= q.look_at) forget_done(q, IoQueue::kMostInFlight);
        return;
    }
    if (!q.reaped_early.empty()) take_early(q);
    for (auto ref : call.ops) {
        Op *op = ops_.find(ref);
        if (!op || op->bios > 0 || op->state != OpState::kOpen) continue;
        auto early = std::find_if(q.reaped_early.begin(), q.reaped_early.end(), [](const IoQueue::Taken &taken) {
            return taken.count > static_cast<std::int64_t>(taken.names.size());
        });
        if (op->io.name != 0 || early == q.reaped_early.end()) {
            io_done(*op, t.ts_ns);
            continue;
        }
        const Transition taken = early->reap;
        if (--early->count == 0) q.reaped_early.erase(early);
        end_io(*op, taken.ts_ns, lives_.add_transition(*op, taken));
    }
}

Fate AsyncIos::return_from_call(Passage &p) {
    BoundPoint &bp = p.bp;
    Transition &t = p.t;
    if (!p.ts.call) return Fate::kOrphanNoOp;
    const std::unique_ptr<IoCall> call = std::move(p.ts.call);
    t.spaces |= 1ull << call->space;
    t.key_space = call->space;
    t.evidence = Evidence::kThread;
    bool any = false;
    IoQueue &q = io_queues_[call->queue];
    if (q.taken) q.returned = t;
    if (call->submits) {
        any = true;
        close_submit(*call, number_in(p.ev, bp.ios_submitted, static_cast<std::int64_t>(call->ops.size())), t);
        if (p.spec.thread == ThreadRule::kLeave) p.ts.stack.clear();
        if (--q.submitting == 0) q.reaped_early.clear();
    }
    if (call->waits) --q.waiting;
    if (call->waits && q.taken) {
        any = true;  // the next call tells how many completions this call took
    } else if (call->waits) {
        const bool all = p.spec.ios.reaped == "*";
        const std::int64_t count = all ? static_cast<std::int64_t>(q.done.size()) : number_in(p.ev, bp.ios_reaped, 0);
        if (count > 0) q.reap_seen = true, q.unseen = false;
        any = reap(q, count, names_in(p.ev, bp.ios_names), t) || any;
        // A call can submit and wait. The kernel then returns an error only if the call submitted nothing.
        const std::int64_t returned = number_in(p.ev, bp.ios_submitted, -1);
        const bool waited = call->submits ? returned == static_cast<std::int64_t>(call->announced) : returned >= 0;
        if (call->least > 0 && waited && !q.in_flight.empty()) end_waited_for(q, *call, t);
    }
    if (any) ++bp.transitions;
    return any ? Fate::kTransition : Fate::kContext;
}

// The thread does something else: the trace does not have the exit of the call.
void AsyncIos::leave_call(ThreadState &ts) {
    if (!ts.call) return;
    const std::unique_ptr<IoCall> call = std::move(ts.call);
    IoQueue &q = io_queues_[call->queue];
    if (call->submits) {
        give_names(*call, q, 0);
        if (--q.submitting == 0) q.reaped_early.clear();
    }
    if (call->waits && --q.waiting == 0 && call->ring) complete_all(q);
}

void AsyncIos::events_lost() {
    io_queues_.for_each([this](const Key &, IoQueue &q) {
        complete_all(q);
        forget_done(q, 0);
        q.reaped_early.clear();
        forget_names(q);
    });
}

void AsyncIos::finish() {
    io_queues_.for_each([this](const Key &, IoQueue &q) {
        complete_all(q);
        forget_done(q, 0);
    });
}

}  // namespace opline
