// SPDX-License-Identifier: MIT
#include "stages/stage_names.hpp"

namespace opline {

StageNames::StageNames(const Plan &plan, StringPool &strings) : strings_(strings) {
    words_.work = strings.intern("work");
    words_.wait = strings.intern("wait");
    words_.unknown = strings.intern("unknown");
    words_.block = strings.intern("block");
    for (std::size_t k = 0; k < kRequestSteps.size(); ++k)
        words_.steps[k] = strings.intern(std::string(kRequestSteps[k].letter));
    words_.preflush = strings.intern("preflush");
    words_.postflush = strings.intern("postflush");
    for (const auto &s : plan.stages) {
        const std::uint32_t from = strings.intern(s.from), to = strings.intern(s.to);
        declare(from, to, s.name, s.kind.empty() ? kByThreads : strings.intern(s.kind));
        if (s.behind) behind_.put(pair_key(from, to), true);
    }
    declare_steps();
}

// The first name declared for a pair holds: the model's names come before opline's names.
void StageNames::declare(std::uint32_t from, std::uint32_t to, const std::string &name, std::uint32_t kind) {
    auto [entry, added] = names_.insert(pair_key(from, to));
    if (added) *entry = {strings_.intern(name), kind};
}

void StageNames::declare_steps() {
    const auto &steps = words_.steps;
    const std::uint32_t device = strings_.intern("device");
    const auto between = [&](std::uint32_t from, std::size_t k, std::size_t to) {
        const std::string name = std::string(kRequestSteps[k].letter) + '2' + std::string(kRequestSteps[to].letter);
        declare(from, steps[to], name, to + 1 == steps.size() ? device : words_.block);
    };
    for (std::size_t k = 0; k < steps.size(); ++k)
        for (std::size_t to = k + 1; to < steps.size(); ++to) between(steps[k], k, to);
    // A write with PREFLUSH or FUA where the device has no FUA (block/blk-flush.c): flushes are the device's time. The
    // flush before the data comes behind the allocation.
    for (std::size_t k = 0; k <= kStepG; ++k) declare(steps[k], words_.preflush, "preflush", device);
    for (std::size_t to = kStepG + 1; to < steps.size(); ++to) between(words_.preflush, kStepG, to);
    declare(steps.back(), words_.postflush, "postflush", device);
    declare(steps[kStepG], steps[kStepG], "submit", words_.work);  // of a split's parts: the call goes on to the next
    for (auto last : {steps.back(), words_.postflush}) {
        for (std::size_t k = 0; k + 1 < steps.size(); ++k) declare(last, steps[k], "next request", words_.work);
        declare(last, strings_.intern("completed"), "completion", words_.block);
    }
}

const StageNames::StageName &StageNames::named(std::uint32_t from, std::uint32_t to) {
    auto [name, added] = names_.insert(pair_key(from, to));
    if (added) {
        const bool submits = to == words_.steps.front();
        const bool reaps = from == words_.steps.back() || from == words_.postflush;
        name->kind = submits || reaps ? words_.work : kByThreads;
        if (submits) name->stage = strings_.intern("submit");
        else if (reaps) name->stage = strings_.intern("reap");
        else name->stage = strings_.intern(strings_.at(from) + " → " + strings_.at(to));
    }
    return *name;
}

std::uint32_t StageNames::behind_name(std::uint32_t wait, std::uint32_t begins, std::uint32_t ends,
                                      std::uint32_t unnamed) {
    const std::uint32_t theirs = named(begins, ends).stage;
    auto [name, added] = behind_names_.insert(pair_key(wait, theirs));
    if (added) {
        const bool given = strings_.at(theirs) != strings_.at(begins) + " → " + strings_.at(ends);
        *name = given ? strings_.intern(strings_.at(wait) + " behind " + strings_.at(theirs)) : 0;
    }
    return *name != 0 ? *name : unnamed;
}

const StageNames::OfWait &StageNames::of_wait(std::uint32_t wait) {
    auto [names, added] = of_waits_.insert(wait);
    if (added) {
        const std::string text = strings_.at(wait);
        names->others = strings_.intern(text + " behind others");
        names->between = strings_.intern(text + " between others");
        names->awake = strings_.intern(text + " awake");
    }
    return *names;
}

std::uint32_t StageNames::label(std::uint32_t point, std::uint32_t n) {
    auto [label, added] = labels_.insert(pair_key(point, n));
    if (added) *label = strings_.intern(strings_.at(point) + "#" + std::to_string(n));
    return *label;
}

std::uint32_t StageNames::not_known(std::uint32_t from, std::uint32_t to) {
    return strings_.intern("unknown: " + strings_.at(from) + " → " + strings_.at(to));
}

std::uint32_t StageNames::not_recorded(const std::string &host) {
    return strings_.intern("unknown: " + (host.empty() ? "another host" : host) + " (not recorded)");
}

}  // namespace opline
