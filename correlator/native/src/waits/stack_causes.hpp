// SPDX-License-Identifier: MIT
// What the kernel stacks of a sleeper and of its waker tell of a wait, in words. The recording has judged each stack
// (opline/readers/causes.py). A number stands for one stack of one recording.
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "model/plan.hpp"

namespace opline {

class StackCauses {
  public:
    void know(const StackSpec &spec, StringPool &strings) {
        const auto word = [&](const std::string &text) { return text.empty() ? 0 : strings.intern(text); };
        stacks_[spec.number] = {word(spec.cause), word(spec.end), spec.vague};
    }
    // The cause of a wait with these stacks (-1: none): pool id; 0: they tell nothing.
    std::uint32_t of(std::int32_t sleeper, std::int32_t waker) const {
        const Words *slept = sleeper < 0 ? nullptr : stacks_.find(sleeper);
        if (slept && slept->cause != 0 && !slept->vague) return slept->cause;
        const Words *woke = waker < 0 ? nullptr : stacks_.find(waker);
        return woke && woke->end != 0 ? woke->end : slept ? slept->cause : 0;
    }

  private:
    struct Words {
        std::uint32_t cause = 0, end = 0;  // pool ids
        bool vague = false;
    };
    FlatMap<std::int32_t, Words> stacks_;
};

}  // namespace opline
