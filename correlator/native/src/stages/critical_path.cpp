// SPDX-License-Identifier: MIT
#include "stages/critical_path.hpp"

#include <algorithm>

namespace opline {
namespace {

// From a message's send to the receive of another message on the same host: the answering host is not recorded, or was
// not recorded at the time.
bool answered_elsewhere(const Plan &plan, const Hosts &hosts, const Transition &sent, const Transition &received) {
    if (sent.spec == kNoSpec || received.spec == kNoSpec) return false;
    const PointSpec &send = plan.points[sent.spec], &receive = plan.points[received.spec];
    return send.message == MessageDo::kSend && receive.message == MessageDo::kReceive &&
           hosts.of_thread(sent.tid, 0) == hosts.of_thread(received.tid, 0) &&
           std::find(receive.after.begin(), receive.after.end(), send.name) == receive.after.end();
}

}  // namespace

CriticalPath::CriticalPath(const Plan &plan, StringPool &strings, StageNames &names, WaitCuts &waits,
                           const Hosts &hosts)
    : plan_(plan), names_(names), waits_(waits), hosts_(hosts) {
    after_.resize(plan.points.size());
    for (std::size_t i = 0; i < plan.points.size(); ++i)
        for (const auto &name : plan.points[i].after) after_[i].push_back(strings.intern(name));
}

// All transitions in time order: the op's own and the shared work of its batches.
void CriticalPath::place(const Op &op, Attribution &out) {
    out.op = &op;
    out.transitions.clear();
    out.requests = op.requests;
    out.shared_bios.clear();
    for (const auto &t : op.transitions) out.transitions.push_back({&t, t.order, t.point, false, false, t.child});
    bool sorted = true;
    for (std::size_t i = 1; i < op.transitions.size() && sorted; ++i)
        sorted = op.transitions[i - 1].ts_ns <= op.transitions[i].ts_ns;
    const bool ended = op.complete();
    for (const auto &m : op.batches) {
        // A wait for the batch cannot begin before the op's last own point before the join.
        const std::int64_t floor_ns = waits_since(op, m.joined_order);
        auto inside = [&](std::int64_t ts) { return ts > floor_ns && (!ended || ts <= op.end_ns); };
        for (const auto &w : m.batch->work)
            if (inside(w.ts_ns)) {
                out.transitions.push_back(
                    {&w, m.joined_order, w.point, false, false, op.transitions[m.joined_order].child});
                sorted = false;
            }
        for (const auto &r : m.batch->requests)
            if (inside(r.done_ns())) out.requests.push_back(r);
        for (const auto &b : m.batch->bios)
            if (inside(b.queue_ns)) out.shared_bios.push_back(b);
    }
    if (!sorted)
        std::stable_sort(out.transitions.begin(), out.transitions.end(),
                         [](const PlacedTransition &a, const PlacedTransition &b) {
                             if (a.t().ts_ns != b.t().ts_ns) return a.t().ts_ns < b.t().ts_ns;
                             return a.order < b.order;
                         });
    recurrences_.clear();
    for (auto &p : out.transitions) {
        p.late = ended && (p.t().ts_ns > op.end_ns || (p.t().ts_ns == op.end_ns && p.order > op.end_order));
        auto it = std::find_if(recurrences_.begin(), recurrences_.end(),
                               [&](const auto &r) { return r.first == p.t().point; });
        if (it == recurrences_.end()) {
            recurrences_.emplace_back(p.t().point, 1);
        } else {
            p.label = names_.label(p.t().point, ++it->second);
        }
    }
}

// The time when the op began to wait for the batch joined by this transition: the last of the points declared as
// `after` of the joining point; else the last point before the join that is not aside (nothing waits for points aside).
std::int64_t CriticalPath::waits_since(const Op &op, std::uint32_t joined_order) const {
    const Transition &join = op.transitions[joined_order];
    const auto &declared = after_[join.spec];
    std::int64_t last_ns = op.begin_ns, declared_ns = kNoTime;
    for (const auto &t : op.transitions) {
        if (t.child != join.child || t.ts_ns > join.ts_ns || (t.ts_ns == join.ts_ns && t.order >= join.order)) continue;
        if (t.spec == kNoSpec || !plan_.points[t.spec].aside) last_ns = std::max(last_ns, t.ts_ns);
        if (std::find(declared.begin(), declared.end(), t.point) != declared.end())
            declared_ns = std::max(declared_ns, t.ts_ns);
    }
    return declared_ns == kNoTime ? last_ns : declared_ns;
}

// Whether evidence connects two threads: a key space of the arriving event was carried on the departing thread at or
// before the departure. If an event with keys of both halves joined two halves of the op, a key of one half and a key
// of the other half also connect.
bool CriticalPath::connected(const Attribution &a, std::ptrdiff_t from, std::ptrdiff_t to) const {
    const auto &arriving = a.transitions[static_cast<std::size_t>(to)].t();
    const auto tid = a.transitions[static_cast<std::size_t>(from)].t().tid;
    if (arriving.tid == tid || arriving.evidence == Evidence::kCompletion) return true;
    if (arriving.batch >= 0 || a.transitions[static_cast<std::size_t>(from)].t().batch >= 0) return true;
    std::uint64_t carried = 0, wanted = arriving.spaces;
    for (std::ptrdiff_t i = 0; i <= from; ++i) {
        const auto &t = a.transitions[static_cast<std::size_t>(i)].t();
        if (t.tid == tid) carried |= t.spaces;
        // A thread working for the op keeps the keys carried before.
        if ((arriving.evidence == Evidence::kThread || arriving.in_thread) && t.tid == arriving.tid) wanted |= t.spaces;
    }
    if ((carried & wanted) != 0) return true;
    for (auto half : a.op->halves)
        if (((carried & half) != 0 && (wanted & ~half) != 0) || ((carried & ~half) != 0 && (wanted & half) != 0))
            return true;
    return false;
}

bool CriticalPath::aside(const PlacedTransition &p) const {
    return p.t().spec != kNoSpec && plan_.points[p.t().spec].aside;
}

// Two hosts' clocks give no order for two events closer than the clocks' bound. A message, though, is always received
// after the send.
bool CriticalPath::undecided(const PlacedTransition &before, const PlacedTransition &received) const {
    if (plan_.clock_bounds.empty() || received.t().spec == kNoSpec || !aside(before)) return false;
    return plan_.points[received.t().spec].message == MessageDo::kReceive &&
           received.t().ts_ns - before.t().ts_ns < clock_bound_at(plan_, received.t().ts_ns);
}

// The last of the points declared as `after` of the current point; among children the point of the child whose answer
// ended the wait. -1: no such point before.
std::ptrdiff_t CriticalPath::declared_predecessor(const Attribution &a, std::ptrdiff_t current,
                                                  const std::vector<std::uint32_t> &declared) const {
    const auto &to = a.transitions[static_cast<std::size_t>(current)];
    // Points of the child and of its children come first, then points of other children; work awaited by another child
    // counts for no one else. Among points of one name the nearest generation wins: a child's point with the same name
    // as the parent's point belongs to the child.
    constexpr std::uint32_t kNobody = ~0u;
    std::ptrdiff_t found = -1;
    auto generations = [&](std::uint32_t of) {
        std::uint32_t n = 0;
        for (; of != 0 && of != to.child; ++n) of = a.op->parents[of - 1];
        return of == to.child ? n : kNobody;
    };
    auto candidate = [&](const PlacedTransition &p) { return p.child == to.child || p.t().batch < 0; };
    auto nearer_before = [&](std::ptrdiff_t i, std::uint32_t n) {
        for (std::ptrdiff_t k = i - 1; n > 0 && k >= 0; --k) {
            const auto &p = a.transitions[static_cast<std::size_t>(k)];
            if (p.t().point == a.transitions[static_cast<std::size_t>(i)].t().point && candidate(p) &&
                generations(p.child) < n)
                return true;
        }
        return false;
    };
    const std::uint32_t quorum = plan_.points[to.t().spec].quorum;
    // (child, the child's last such point), latest first
    std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> answers;
    for (std::ptrdiff_t i = current - 1; i >= 0; --i) {
        const auto &p = a.transitions[static_cast<std::size_t>(i)];
        if (!candidate(p) || undecided(p, to)) continue;
        if (std::find(declared.begin(), declared.end(), p.t().point) == declared.end()) continue;
        const std::uint32_t n = generations(p.child);
        if (n != kNobody && quorum != 0 && p.child != to.child) {
            const auto same = [&](const auto &one) { return one.first == p.child; };
            if (std::none_of(answers.begin(), answers.end(), same)) answers.emplace_back(p.child, i);
            continue;
        }
        if (n != kNobody && quorum == 0 && !nearer_before(i, n)) return i;
        if (found < 0 && (n != kNobody || quorum == 0)) found = i;
    }
    if (!answers.empty()) {
        const std::size_t last = answers.size() > quorum ? answers.size() - quorum : 0;
        found = std::max(found, answers[last].second);
    }
    return found;
}

// The point that the current point had to wait for; -1: none.
std::ptrdiff_t CriticalPath::predecessor(const Attribution &a, std::ptrdiff_t current) const {
    const auto &to = a.transitions[static_cast<std::size_t>(current)];
    static const std::vector<std::uint32_t> none;
    const auto &declared = to.t().spec == kNoSpec ? none : after_[to.t().spec];
    // A child waits only for its own points, at its first point for the parent; a parent waits for a child only if
    // `after` says so.
    std::uint32_t child = to.child;
    auto first_of_child = [&] {
        for (std::ptrdiff_t i = current - 1; i >= 0; --i)
            if (a.transitions[static_cast<std::size_t>(i)].child == child) return false;
        return true;
    };
    while (child != 0 && first_of_child()) child = a.op->parents[child - 1];
    auto usable = [&](std::ptrdiff_t i) {
        const auto &p = a.transitions[static_cast<std::size_t>(i)];
        return i == 0 || (!p.late && p.child == child && !aside(p));
    };
    if (!declared.empty())
        if (const std::ptrdiff_t found = declared_predecessor(a, current, declared); found >= 0) return found;
    std::ptrdiff_t last = current - 1, same_thread = -1;
    while (last >= 0 && !usable(last)) --last;
    for (std::ptrdiff_t i = last; i >= 0 && same_thread < 0; --i)
        if (usable(i) && a.transitions[static_cast<std::size_t>(i)].t().tid == to.t().tid) same_thread = i;
    // A point without a key follows the point before on the same thread. So does a point on a thread that never stopped
    // working for the op, if nothing connects the point to the last point elsewhere. Every other point follows the last
    // point.
    const bool own_thread =
        to.t().evidence == Evidence::kThread || (to.t().in_thread && last >= 0 && !connected(a, last, current));
    return own_thread && same_thread >= 0 ? same_thread : last;
}

// For a stage without a kind in the model: between points of two threads the op waits.
std::uint32_t CriticalPath::kind_by_threads(const Attribution &a, Place from, Place to) const {
    if (from.at < 0 || to.at < 0) return names_.words().work;
    const std::int64_t before = a.transitions[static_cast<std::size_t>(from.at)].t().tid,
                       after = a.transitions[static_cast<std::size_t>(to.at)].t().tid;
    return before >= 0 && after >= 0 && before != after ? names_.words().wait : names_.words().work;
}

// The points name the stage; `from` and `to` show the labels, with recurrence number.
void CriticalPath::cut(Attribution &a, Place from_place, Place to_place, std::int64_t begin_ns, std::int64_t end_ns,
                       std::int64_t tid, std::uint64_t request, bool is_known) {
    const std::uint32_t from = from_place.point, to = to_place.point;
    if (end_ns <= begin_ns && request != 0) return;  // two steps at one time: no stage between them
    const auto [name, said] = names_.named(from, to);
    const std::uint32_t kind = said == StageNames::kByThreads ? kind_by_threads(a, from_place, to_place) : said;
    const bool waits = is_known && to_place.at >= 0 && names_.is_behind(from, to);
    if (waits && !keeps_waits_) {
        const Batch *batch = WaitCuts::batch_of(a, a.transitions[static_cast<std::size_t>(to_place.at)].t());
        const CutWait wait{name, kind, from_place.label, to_place.label, begin_ns, end_ns, tid};
        if (batch ? waits_.by_batch(a, wait, *batch) : waits_.by_thread(a, wait)) return;
    }
    StageCut s;
    s.stage = name;
    s.kind = kind;
    const bool elsewhere = hosts_.several() && from_place.at >= 0 && to_place.at >= 0 &&
                           answered_elsewhere(plan_, hosts_, a.transitions[static_cast<std::size_t>(from_place.at)].t(),
                                              a.transitions[static_cast<std::size_t>(to_place.at)].t());
    if (elsewhere) {
        const AbsentHost &absent = plan_.absent;
        const bool known = !absent.name.empty() && begin_ns >= absent.begin_ns && end_ns <= absent.end_ns;
        s.stage = names_.not_recorded(known ? absent.name : std::string());
    }
    if (!elsewhere && !is_known) s.stage = names_.not_known(from, to);
    if (elsewhere || !is_known) s.kind = names_.words().unknown;
    s.from = from_place.label;
    s.to = to_place.label;
    s.begin_ns = begin_ns;
    s.duration_ns = end_ns - begin_ns;
    s.tid = tid;
    s.request = request;
    s.from_at = from_place.at;
    s.to_at = to_place.at;
    s.waits = waits;
    if (s.kind == names_.words().unknown) a.unknown_ns += s.duration_ns;
    a.stages.push_back(s);
}

// A request queued meanwhile by a thread of the parent or of another child is not what the child waits for.
bool CriticalPath::may_cut(const Attribution &a, std::ptrdiff_t from, std::ptrdiff_t to,
                           const RequestCut &request) const {
    const std::uint32_t child = a.transitions[static_cast<std::size_t>(to)].child;
    if (child == 0 || from < 0 || a.transitions[static_cast<std::size_t>(from)].child != child) return true;
    bool others = false;
    for (const auto &p : a.transitions) {
        if (p.t().tid != request.queue_tid) continue;
        if (p.child == child) return true;
        others = true;
    }
    return !others;
}

// Cuts a request from its end back to Q; steps before floor_ns are clipped. Returns the begin of the request for this
// op.
std::int64_t CriticalPath::cut_request(Attribution &a, const RequestCut &r, std::int64_t floor_ns, Place &first) {
    struct Step {
        std::uint32_t name;
        std::int64_t at;
        std::int64_t tid;
        std::uint64_t request;
    };
    Step steps[kRequestSteps.size() + 3];  // besides the steps a split's first allocation and two flushes
    int n = 0;
    std::int64_t last = kNoTime;
    auto add = [&](std::uint32_t name, std::int64_t at, std::int64_t tid, std::uint64_t request) {
        if (at == kNoTime || at < last) return;
        last = at;
        steps[n++] = {name, std::max(at, floor_ns), tid, request};
    };
    const StageNames::StageWords &words = names_.words();
    for (std::size_t k = 0; k < words.steps.size(); ++k) {
        if (k == kStepG) add(words.steps[k], r.first_g, r.queue_tid, r.first_request);
        add(words.steps[k], r.*kRequestSteps[k].time, r.tid_of(kRequestSteps[k].thread), r.request);
        if (k == kStepG) add(words.preflush, r.preflush, r.queue_tid, r.request);
    }
    add(words.postflush, r.end, -1, r.request);
    for (int k = n - 1; k > 0; --k)
        cut(a, Place(steps[k - 1].name), Place(steps[k].name), steps[k - 1].at, steps[k].at, steps[k].tid,
            steps[k].request, true);
    first = Place(steps[0].name);
    return steps[0].at;
}

void CriticalPath::mark_path(const Op &op, Attribution &a) {
    a.stages.clear();
    a.unattributed_ns = a.unknown_ns = 0;
    if (!op.complete()) return;
    const StageNames::StageWords &words = names_.words();
    std::ptrdiff_t current = -1;
    for (std::size_t i = 0; i < a.transitions.size(); ++i) {
        a.transitions[i].aside = !a.transitions[i].late;
        if (!a.transitions[i].late) current = static_cast<std::ptrdiff_t>(i);
    }
    if (current < 0) {
        a.unattributed_ns = op.end_ns - op.begin_ns;
        return;
    }
    auto at = [&](std::ptrdiff_t i) -> PlacedTransition & { return a.transitions[static_cast<std::size_t>(i)]; };
    auto place_of = [&](std::ptrdiff_t i) { return Place(at(i).t().point, at(i).label, i); };
    // A point with a time before the op's begin counts at the begin: time went backwards.
    auto time_of = [&](std::ptrdiff_t i) { return std::max(op.begin_ns, at(i).t().ts_ns); };
    std::int64_t t = op.end_ns, to_tid = at(current).t().tid;
    Place to = place_of(current);
    std::ptrdiff_t from = predecessor(a, current);
    bool known_arrival = from < 0 || connected(a, from, current);
    at(current).aside = false;
    for (;;) {
        const std::int64_t from_ns = from < 0 ? op.begin_ns : time_of(from);
        // The op waited for the last request that completed in between.
        const RequestCut *request = nullptr, *unseen = nullptr;
        for (const auto &r : a.requests) {
            const std::int64_t done_ns = r.known_ns();
            if (done_ns == kNoTime || done_ns > t || done_ns <= from_ns) continue;
            const auto first = std::max(r.q != kNoTime ? r.q : r.d, r.floor_ns);
            if (first == kNoTime || first >= t || !may_cut(a, from, current, r)) continue;
            const RequestCut *&last = r.unseen ? unseen : request;
            if (!last || done_ns > last->known_ns()) last = &r;
        }
        if (unseen && (!request || request->done_ns() < unseen->known_ns()))
            request = unseen;  // the time of completion is unknown
        if (request) {
            const Place last(request->end != kNoTime ? words.postflush
                             : request->unseen       ? words.steps[request->last_seen()]
                                                     : words.steps.back());
            if (request->known_ns() < t) cut(a, last, to, request->known_ns(), t, to_tid, 0, !request->unseen);
            t = cut_request(a, *request, std::max(op.begin_ns, request->floor_ns), to);
            to_tid = request->queue_tid;
            // Points between Q and C are aside: nothing on the path waited for them.
            while (from >= 0 && (time_of(from) > t || at(from).late || aside(at(from)))) --from;
            if (from < 0) from = 0;
            known_arrival = true;
            if (t <= op.begin_ns) break;
            continue;
        }
        if (from < 0) {
            a.unattributed_ns += t - op.begin_ns;
            break;
        }
        at(from).aside = false;
        cut(a, place_of(from), to, from_ns, t, to_tid, 0, known_arrival);
        t = from_ns;
        to = place_of(from);
        to_tid = at(from).t().tid;
        if (from == 0) break;
        current = from;
        from = predecessor(a, current);
        known_arrival = from < 0 || connected(a, from, current);
    }
    at(0).aside = false;
    std::reverse(a.stages.begin(), a.stages.end());
}

void CriticalPath::run(const Op &op, Attribution &out, bool keeps_waits) {
    keeps_waits_ = keeps_waits;
    place(op, out);
    mark_path(op, out);
    out.passed = static_cast<std::uint32_t>(out.transitions.size());
    out.late = 0;
    out.first_tid = out.end_tid = -1;
    out.first_comm = 0;
    out.attributes = {};
    if (out.passed == 0) return;
    out.attributes = attributes_of(op.transitions);
    out.first_tid = out.transitions.front().t().tid;
    out.first_comm = out.transitions.front().t().comm;
    for (const auto &p : out.transitions) {
        if (p.late) ++out.late;
        else out.end_tid = p.t().tid;
    }
}

}  // namespace opline
