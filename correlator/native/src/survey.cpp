// SPDX-License-Identifier: MIT
#include "survey.hpp"

#include <algorithm>

#include "key_builder.hpp"

namespace opline {

void Survey::add_class(const BoundClass &cls, std::int32_t name, ClassPlan &plan) {
    Class &c = classes_.emplace_back();
    c.numbers = cls.numbers;
    c.name = name;
    const auto &n = c.numbers;
    plan.alike = alike_.emplace(std::array{n.key, n.tid, n.pid, n.means, static_cast<std::uint32_t>(name)}, static_cast<std::uint32_t>(alike_.size() + 1)).first->second;
    if (n.means == 0) return;
    c.again = cls.bare ? Hint::kSame : Hint::kLeads;
    plan.again = static_cast<std::uint32_t>(c.again);
}

void Survey::run(Event *first, Event *past) {
    if (first == past) return;
    Last &last = last_[first->stream];
    while (first != past) {
        const Class &c = classes_[first->cls];
        const auto &n = c.numbers;
        std::uint32_t name = 0;
        if (c.name != kNoSlot && first->slots[c.name].kind == Slot::Kind::kString) name = names_.of(first->slots[c.name].str()) << kHintBits;
        Hint hint = Hint::kNone;
        if (n.means != 0) {
            const Slot &key = slot_at(*first, n.key), &tid = slot_at(*first, n.tid), &pid = slot_at(*first, n.pid);
            const bool same = same_numbers({&last.key, &last.tid, &last.pid}, {&key, &tid, &pid}, last.means ^ n.means);
            hint = same ? c.again : Hint::kLeads;
            if (!same) last = {key, tid, pid, n.means};
        }
        Event *const next = first + 1 + (first->hint & (kAlongs - 1));
        first->hint = name | (first->hint & kAlongs) | static_cast<std::uint32_t>(hint);
        if (name != 0)
            for (Event *e = first + 1; e != next; ++e) e->hint |= name;
        first = next;
    }
}

// Which of them lead nobody can guess: that is found first, without a branch for each.
Lead *Survey::find_leads(const Event *first, const Event *past, const std::vector<std::uint32_t> &hosts, Lead *out) const {
    while (first != past) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(past - first, 64);
        std::uint64_t leading = 0;
#pragma GCC unroll 4
        for (std::ptrdiff_t i = count; i-- != 0;) leading = 2 * leading + leads(first[i]);
        for (; leading != 0; leading &= leading - 1) {
            const Event &ev = first[__builtin_ctzll(leading)];
            const Class &c = classes_[ev.cls];
            *out = lead_of(c.numbers, ev, hosts[ev.stream]);
            if (c.again == Hint::kLeads || has_alongs(ev)) out->slots = ev.slots;  // it begins, or the times behind them are asked for
            ++out;
        }
        first += count;
    }
    return out;
}

}  // namespace opline
