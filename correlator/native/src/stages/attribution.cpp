// SPDX-License-Identifier: MIT
// Ops that are like others: their stages are found once in the general way, and kept.
#include "stages/attribution.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::size_t kMostKept = 1u << 16;  // attributions of ops with a request
constexpr unsigned kPlaceBits = 6;
static_assert(kRequestSteps.size() * kPlaceBits <= 64, "the places of a request's steps are one number of 64 bits");

}  // namespace

Attributor::Attributor(const Plan &plan, StringPool &strings, const ThreadPoints &points, const Hosts &hosts)
    : names_(plan, strings), waits_(names_, points, hosts), path_(plan, strings, names_, waits_, hosts) {}

// The places of the request's steps among the op's transitions: kPlaceBits per step, the number of transitions before
// the step; 0: the request has no such step. Returns 0 for special cases: a flush before or after the data, steps at
// the same time as another step or a transition, steps before the op's begin or out of order, and ops with more
// transitions than a place has bits for.
Attributor::StepPlaces Attributor::places_of(const ShapedList &list, const RequestCut &r) {
    if (list.size >= 1u << kPlaceBits || r.floor_ns != kNoTime || r.first_g != kNoTime || r.preflush != kNoTime ||
        r.end != kNoTime || r.unseen)
        return 0;
    std::int64_t last_ns = kNoTime;
    StepPlaces at = 0, out = 0;
    for (const RequestStep &step : kRequestSteps) {
        const std::int64_t step_ns = r.*step.time;
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
    if (times_.size() < list.size + kRequestSteps.size()) times_.resize(list.size + kRequestSteps.size());
    auto at = std::copy(list.times, list.times + list.size, times_.begin());
    for (const RequestStep &step : kRequestSteps) *at++ = r.*step.time;
    return times_.data();
}

std::int64_t Attributor::tid_of(const Op &op, const ShapeStages::Cut &cut) {
    if (cut.thread < Shapes::kMaxThreads) return op.transitions.tid(cut.thread);
    return op.requests.front().tid_of(static_cast<StepThread>(cut.thread - Shapes::kMaxThreads));
}

std::unique_ptr<Attributor::ShapeStages> Attributor::generalize(const Op &op, Attribution &scratch) {
    const auto transitions = static_cast<std::int32_t>(op.transitions.size());
    std::vector<std::int64_t> tids;  // by ordinal
    for (std::uint32_t i = 0; i < Shapes::kMaxThreads; ++i) tids.push_back(op.transitions.tid(i));
    const Op in_full = op;
    path_.run(in_full, scratch, true);
    auto out = std::make_unique<ShapeStages>();
    const auto &steps = names_.words().steps;
    auto step_at = [&](std::uint32_t point) {
        return static_cast<std::size_t>(std::find(steps.begin(), steps.end(), point) - steps.begin());
    };
    auto place = [&](std::int32_t at, std::uint32_t point) {
        return at >= 0 ? at : transitions + static_cast<std::int32_t>(step_at(point));
    };
    std::int32_t at = 0;
    for (const auto &s : scratch.stages) {
        const std::int32_t from_at = place(s.from_at, s.from), to_at = place(s.to_at, s.to);
        if (from_at != at || to_at == at) return nullptr;
        if (op.requests.empty() && to_at < at) return nullptr;
        // The arriving thread: of the point, or of the request's step. For the begin of a request: the queueing thread.
        std::uint32_t thread = ShapeStages::of_step(StepThread::kQueuing);
        if (s.to_at >= 0)
            thread = static_cast<std::uint32_t>(std::find(tids.begin(), tids.end(), s.tid) - tids.begin());
        else if (const std::size_t k = step_at(s.to); s.request != 0 && k < kRequestSteps.size())
            thread = ShapeStages::of_step(kRequestSteps[k].thread);
        out->cuts.push_back({s.stage, s.kind, s.from, s.to, static_cast<std::uint32_t>(from_at),
                             static_cast<std::uint32_t>(to_at), thread, s.request != 0, s.waits});
        at = to_at;
    }
    if (at + 1 != transitions || scratch.unattributed_ns != 0) return nullptr;
    for (const auto &p : scratch.transitions) out->transitions.push_back({p.label, p.aside});
    return out;
}

Attributor::ShapeStages *Attributor::by_shape(const Op &op, Attribution &scratch) {
    if (op.state != OpState::kEnded || op.requests.size() > 1 || !op.batches.empty() || !op.halves.empty())
        return nullptr;
    const ShapedList list = op.transitions.shaped();
    // the op begins with the first transition and ends with the last
    if (list.shape == 0 || op.end_order + 1 != list.size || list.times[0] != op.begin_ns ||
        list.times[list.size - 1] != op.end_ns)
        return nullptr;
    const std::uint32_t shape = list.shape;
    if (shape >= shapes_.size()) shapes_.resize(shape + 1);
    ShapeEntry *entry = &shapes_[shape];
    if (!op.requests.empty()) {
        const StepPlaces places = places_of(list, op.requests.front());
        if (places == 0) return nullptr;
        if (entry->places == places) return entry->with_request;
        if (with_request_.size() >= kMostKept) return nullptr;
        ShapeEntry &last = *entry;
        entry = with_request_.insert({shape, places}).first;
        find(op, *entry, scratch);
        last.places = places;
        last.with_request = entry->found.get();
        return last.with_request;
    }
    find(op, *entry, scratch);
    return entry->found.get();
}

// As the path does. An op here has no batch, so waits are cut by their threads. The path lists pieces from the last to
// the first.
bool Attributor::cut_wait(Attribution &out, const CutWait &wait) {
    const auto before = static_cast<std::ptrdiff_t>(out.stages.size());
    if (!waits_.by_thread(out, wait)) return false;
    std::reverse(out.stages.begin() + before, out.stages.end());
    return true;
}

// As the path would.
void Attributor::fill(const Op &op, const ShapeStages &shape, Attribution &out) {
    const TransitionList &list = op.transitions;
    const std::int64_t *times = times_of(op);
    out.op = &op;
    out.requests = op.requests;
    out.shared_bios.clear();
    out.unattributed_ns = out.unknown_ns = 0;
    out.stages.clear();
    const std::uint32_t unknown = names_.words().unknown;
    for (const auto &c : shape.cuts) {
        const std::int64_t begin_ns = times[c.from_at], duration_ns = times[c.to_at] - begin_ns;
        const std::int64_t tid = tid_of(op, c);
        if (c.waits && cut_wait(out, {c.stage, c.kind, c.from, c.to, begin_ns, begin_ns + duration_ns, tid})) continue;
        if (c.kind == unknown) out.unknown_ns += duration_ns;
        out.stages.push_back({c.stage, c.kind, c.from, c.to, begin_ns, duration_ns, tid,
                              c.of_request ? op.requests.front().request : 0, -1, -1, false});
    }
    out.passed = static_cast<std::uint32_t>(list.size());
    out.late = 0;
    out.first_tid = list.first_tid();
    out.first_comm = list.first_comm();
    out.attributes = attributes_of(list);
    out.end_tid = list.last_tid();
    out.transitions.clear();
    if (!with_transitions_) return;
    list.copy_to(out.unpacked);
    for (std::uint32_t i = 0; i < out.passed; ++i)
        out.transitions.push_back(
            {&out.unpacked[i], i, shape.transitions[i].label, false, shape.transitions[i].aside, 0});
}

bool Attributor::attribute(const Op &op, Attribution &out) {
    ShapeStages *shape = by_shape(op, out);
    if (shape) fill(op, *shape, out);
    else path_.run(op, out);
    return shape != nullptr;
}

void Attributor::find(const Op &op, ShapeEntry &entry, Attribution &scratch) {
    if (entry.tried) return;
    entry.tried = true;
    entry.found = generalize(op, scratch);
}

}  // namespace opline
