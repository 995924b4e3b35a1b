// SPDX-License-Identifier: MIT
#include "ahead.hpp"

#include <algorithm>

#include "survey.hpp"

namespace opline {

bool Ahead::Later::operator()(const Back &a, const Back &b) const {
    if (self->before(b.event.ts_ns, b.event.stream, a.event.ts_ns, a.event.stream)) return true;
    return a.event.ts_ns == b.event.ts_ns && a.event.stream == b.event.stream && a.place > b.place;
}

void Ahead::give_back(const Event &event, const Alongs &with, std::uint32_t first, std::uint32_t past) {
    const auto classes = classes_of(*with.trail);
    std::int64_t ts_ns = event.ts_ns;
    for (std::uint32_t i = 0; i != past; ++i) {
        ts_ns += with.after_ns[i];
        if (i >= first) back_.push({{{classes[i], static_cast<std::uint32_t>(Hint::kSame)}, {event.stream, event.cpu}, ts_ns, event.slots}, i});
    }
    back_ns_ = back_.top().event.ts_ns;
}

bool Ahead::take_back(const Event &before_this, std::int64_t last_ns, Event &out) {
    if (back_.empty()) return false;
    const Event &first = back_.top().event;
    if (first.stream != before_this.stream && !before(first.ts_ns, first.stream, std::max(before_this.ts_ns, last_ns), before_this.stream)) return false;
    out = first;
    back_.pop();
    back_ns_ = back_.empty() ? kNever : back_.top().event.ts_ns;
    return true;
}

// The last of the op's transitions, as long as their turn is yet to come. What they were given from is still there then: the next event of their
// stream has not come either.
void Ahead::hold_back(Op &op) {
    op.ahead_ns = kNoTime;
    const Given &given = given_[op.ahead_in];
    if (given.serial != op.serial || given.size != op.transitions.size()) return;
    const std::int64_t *const past = op.transitions.times() + op.transitions.size();
    std::uint32_t early = 0;
    while (early != given.count && before(now_ns_, now_stream_, past[-1 - static_cast<std::ptrdiff_t>(early)], op.ahead_in)) ++early;
    if (early == 0) return;
    op.transitions.take_back(early);
    const std::uint32_t kept = given.count - early;
    for (const Trail *t = given.with->trail; t->count > kept; t = t->before)
        if (t->count <= given.count) --kinds_[t->cls]->followed;
    give_back(given.event, *given.with, kept, given.count);
}

}  // namespace opline
