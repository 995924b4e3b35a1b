// SPDX-License-Identifier: MIT
#include "survey.hpp"

namespace opline {

void Survey::add_class(const BoundClass &cls, std::int32_t name) {
    Class &c = classes_.emplace_back();
    c.numbers = cls.numbers;
    c.name = name;
    any_ = any_ || cls.numbers.means != 0 || name != kNoSlot;
    if (cls.numbers.means == 0) return;
    c.hint = cls.only->begins ? Hint::kBegins : Hint::kLeads;
    c.repeated = cls.bare ? Hint::kSame : c.hint;
    const auto &n = c.numbers;
    c.alike = alike_.emplace(std::array{n.key, n.tid, n.pid, n.means, static_cast<std::uint32_t>(name)}, static_cast<std::uint32_t>(alike_.size() + 1)).first->second;
}

void Survey::run(Event *first, Event *past) {
    if (!any_ || first == past) return;
    Last &last = last_[first->stream];
    const Slot *slots = nullptr;  // what `last` was found in, as classes of the kind `alike` have it
    std::uint32_t alike = 0, name = 0;
    auto name_in = [this](const Slot &slot) { return slot.kind == Slot::Kind::kString ? names_.of(slot.str()) << kHintBits : 0; };
    for (const Class *const classes = classes_.data(); first != past; ++first) {
        const Class &c = classes[first->cls];
        if (first->slots == slots && c.alike == alike) {
            first->hint = name | static_cast<std::uint32_t>(c.repeated);
            continue;
        }
        const auto &n = c.numbers;
        if (n.means == 0) {
            if (c.name != kNoSlot) first->hint = name_in(first->slots[c.name]);
            continue;
        }
        slots = first->slots;
        alike = c.alike;
        name = c.name != kNoSlot ? name_in(first->slots[c.name]) : 0;
        const Slot &key = slot_at(*first, n.key), &tid = slot_at(*first, n.tid), &pid = slot_at(*first, n.pid);
        if (same_numbers({&last.key, &last.tid, &last.pid}, {&key, &tid, &pid}, last.means ^ n.means)) {
            first->hint = name | static_cast<std::uint32_t>(c.repeated);
        } else {
            first->hint = name | static_cast<std::uint32_t>(c.hint);
            last = {key, tid, pid, n.means};
        }
    }
}

}  // namespace opline
