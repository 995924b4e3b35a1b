// SPDX-License-Identifier: MIT
// Attribution of ops that are like others: found once in the general way, and kept.
#include <algorithm>

#include "stages/attribution.hpp"

namespace opline {
namespace {

constexpr std::size_t kMostKept = 1u << 16;  // attributions of ops with a request
constexpr std::size_t kSteps = 5;            // of a request: Q, G, I, D, C
constexpr unsigned kPlaceBits = 6;
static_assert(kSteps * kPlaceBits <= 32, "the places of a request's steps are one number of 32 bits");

}  // namespace

// Behind which of the op's transitions each step of the request comes, in kPlaceBits each, 0 where there is no step. 0
// in all: flushes before and behind its data, steps at one time with each other or with a transition, before the op's
// begin or out of order are a case of their own; so are ops of more transitions than a place has bits for.
std::uint32_t Attributor::places_of(const ShapedList &list, const RequestCut &r) {
    if (list.size >= 1u << kPlaceBits || r.floor_ns != kNoTime || r.first_g != kNoTime || r.preflush != kNoTime ||
        r.end != kNoTime)
        return 0;
    std::int64_t last_ns = kNoTime;
    std::uint32_t at = 0, out = 0;
    for (const std::int64_t step_ns : {r.q, r.g, r.i, r.d, r.c}) {
        out <<= kPlaceBits;
        if (step_ns == kNoTime) continue;
        while (at < list.size && list.times[at] < step_ns) ++at;
        if (step_ns <= last_ns || at == 0 || (at < list.size && list.times[at] == step_ns)) return 0;
        out |= at;
        last_ns = step_ns;
    }
    return out;
}

const std::int64_t *Attributor::times_of(const Op &op) {
    const ShapedList list = op.transitions.shaped();
    if (op.requests.empty()) return list.times;
    const RequestCut &r = op.requests.front();
    const std::int64_t steps[kSteps] = {r.q, r.g, r.i, r.d, r.c};
    if (times_.size() < list.size + std::size(steps)) times_.resize(list.size + std::size(steps));
    std::copy(std::begin(steps), std::end(steps), std::copy(list.times, list.times + list.size, times_.begin()));
    return times_.data();
}

std::int64_t Attributor::tid_of(const Op &op, const ShapeStages::Cut &cut) {
    switch (cut.thread) {
    case ShapeStages::kQueuing: return op.requests.front().queue_tid;
    case ShapeStages::kIssuing: return op.requests.front().issue_tid;
    case ShapeStages::kNobody: return -1;
    default: return op.transitions.tid(cut.thread);
    }
}

std::unique_ptr<Attributor::ShapeStages> Attributor::generalize(const Op &op, Attribution &scratch) {
    const auto transitions = static_cast<std::int32_t>(op.transitions.size());
    std::vector<std::int64_t> tids;  // by ordinal
    for (std::uint32_t i = 0; i < Shapes::kMaxThreads; ++i) tids.push_back(op.transitions.tid(i));
    const Op in_full = op;
    keeps_waits_ = true;
    run(in_full, scratch);
    keeps_waits_ = false;
    auto out = std::make_unique<ShapeStages>();
    const std::uint32_t steps[] = {q_, g_, i_, d_, c_};
    auto place = [&](std::int32_t at, std::uint32_t point) {
        return at >= 0 ? at
                       : transitions + static_cast<std::int32_t>(std::find(std::begin(steps), std::end(steps), point) -
                                                                 std::begin(steps));
    };
    std::int32_t at = 0;
    for (const auto &s : scratch.stages) {
        const std::int32_t from_at = place(s.from_at, s.from), to_at = place(s.to_at, s.to);
        if (from_at != at || to_at == at) return nullptr;
        if (op.requests.empty() && to_at < at) return nullptr;
        // Who arrives: the point's thread, or who did the request's step. The request begins for whoever queued it.
        std::uint32_t thread = ShapeStages::kQueuing;
        if (s.to_at >= 0)
            thread = static_cast<std::uint32_t>(std::find(tids.begin(), tids.end(), s.tid) - tids.begin());
        else if (s.request != 0 && s.to == c_) thread = ShapeStages::kNobody;
        else if (s.request != 0 && s.to == d_) thread = ShapeStages::kIssuing;
        out->cuts.push_back({s.stage, s.kind, s.from, s.to, static_cast<std::uint32_t>(from_at),
                             static_cast<std::uint32_t>(to_at), thread, s.request != 0, s.waits});
        at = to_at;
    }
    if (at + 1 != transitions || scratch.unattributed_ns != 0) return nullptr;
    out->ways = scratch.ways;
    out->together = scratch.together;
    for (const auto &p : scratch.transitions) out->transitions.push_back({p.label, p.aside});
    return out;
}

Attributor::ShapeStages *Attributor::by_shape(const Op &op, Attribution &scratch) {
    if (op.state != OpState::kEnded || op.requests.size() > 1 || !op.batches.empty() || !op.halves.empty())
        return nullptr;
    const ShapedList list = op.transitions.shaped();
    // it begins with its first transition and ends with its last
    if (list.shape == 0 || op.end_order + 1 != list.size || list.times[0] != op.begin_ns ||
        list.times[list.size - 1] != op.end_ns)
        return nullptr;
    const std::uint32_t shape = list.shape;
    if (shape >= shapes_.size()) shapes_.resize(shape + 1);
    ShapeEntry *entry = &shapes_[shape];
    if (!op.requests.empty()) {
        const std::uint32_t places = places_of(list, op.requests.front());
        if (places == 0) return nullptr;
        if (entry->places == places) return entry->with_request;
        if (with_request_.size() >= kMostKept) return nullptr;
        ShapeEntry &last = *entry;
        entry = with_request_.insert(static_cast<std::uint64_t>(shape) << 32 | places).first;
        find(op, *entry, scratch);
        last.places = places;
        last.with_request = entry->found.get();
        return last.with_request;
    }
    find(op, *entry, scratch);
    return entry->found.get();
}

// As run() would. The op has no batch, so it is its thread that waits are cut by; their pieces come the last one first.
bool Attributor::cut_wait(Attribution &out, const Wait &wait) {
    const auto before = static_cast<std::ptrdiff_t>(out.stages.size());
    if (!cut_by_thread(out, wait)) return false;
    std::reverse(out.stages.begin() + before, out.stages.end());
    return true;
}

// As run() would.
void Attributor::fill(const Op &op, const ShapeStages &shape, Attribution &out) {
    const TransitionList &list = op.transitions;
    const std::int64_t *times = times_of(op);
    out.op = &op;
    out.requests = op.requests;
    out.shared_bios.clear();
    out.unattributed_ns = out.unknown_ns = 0;
    out.stages.clear();
    for (const auto &c : shape.cuts) {
        const std::int64_t begin_ns = times[c.from_at], duration_ns = times[c.to_at] - begin_ns;
        const std::int64_t tid = tid_of(op, c);
        if (c.waits && cut_wait(out, {c.stage, c.kind, c.from, c.to, begin_ns, begin_ns + duration_ns, tid})) continue;
        if (c.kind == unknown_) out.unknown_ns += duration_ns;
        out.stages.push_back({c.stage, c.kind, c.from, c.to, begin_ns, duration_ns, tid,
                              c.of_request ? op.requests.front().request : 0, -1, -1, false});
    }
    out.passed = static_cast<std::uint32_t>(list.size());
    out.late = 0;
    out.first_tid = list.first_tid();
    out.first_comm = list.first_comm();
    out.end_tid = list.last_tid();
    out.transitions.clear();
    if (!with_transitions_) return;
    list.copy_to(out.unpacked);
    for (std::uint32_t i = 0; i < out.passed; ++i)
        out.transitions.push_back(
            {&out.unpacked[i], i, shape.transitions[i].label, false, shape.transitions[i].aside, 0});
}

bool Attributor::attribute(const Op &op, Attribution &out, bool all_seen) {
    ShapeStages *shape = by_shape(op, out);
    if (shape) {
        ++shape->ops;
        shape->all_seen += all_seen;
        fill(op, *shape, out);
    } else {
        run(op, out);
        for (std::uint32_t way : out.ways) ways_.taken(way);
        if (all_seen)
            for (std::uint32_t way : out.together) ways_.taken(way);
    }
    return shape != nullptr;
}

std::uint64_t Attributor::points_missing() const {
    Ways all = ways_;
    auto add = [&](const ShapeEntry &entry) {
        if (!entry.found) return;
        for (std::uint32_t way : entry.found->ways) all.taken(way, entry.found->ops);
        for (std::uint32_t way : entry.found->together) all.taken(way, entry.found->all_seen);
    };
    for (const auto &entry : shapes_) add(entry);
    with_request_.for_each([&](std::uint64_t, const ShapeEntry &entry) { add(entry); });
    return all.points_missing();
}

void Attributor::find(const Op &op, ShapeEntry &entry, Attribution &scratch) {
    if (entry.tried) return;
    entry.tried = true;
    entry.found = generalize(op, scratch);
}

}  // namespace opline
