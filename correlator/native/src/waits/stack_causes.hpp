// SPDX-License-Identifier: MIT
// What the kernel stacks of a sleeper and of its waker tell of a wait, in words. The recording has judged each stack
// (opline/readers/causes.py). A number stands for one stack of one recording; in a joined run, of one host.
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
        stacks_[key(spec.host, spec.number)] = {word(spec.cause), word(spec.end), spec.vague};
    }
    // The cause of a wait with these stacks of a host (-1: none): pool id; 0: the stacks have no cause.
    std::uint32_t of(std::uint32_t host, std::int32_t sleeper, std::int32_t waker) const {
        const Words *slept = find(host, sleeper);
        if (slept && slept->cause != 0 && !slept->vague) return slept->cause;
        const Words *woke = find(host, waker);
        return woke && woke->end != 0 ? woke->end : slept ? slept->cause : 0;
    }

  private:
    struct Words {
        std::uint32_t cause = 0, end = 0;  // pool ids
        bool vague = false;
    };
    static std::uint64_t key(std::uint32_t host, std::int32_t number) {
        return std::uint64_t{host} << 32 | static_cast<std::uint32_t>(number);
    }
    const Words *find(std::uint32_t host, std::int32_t number) const {
        if (number < 0 || stacks_.empty()) return nullptr;
        const Words *known = stacks_.find(key(host, number));
        return known ? known : stacks_.find(key(0, number));  // a run with one host
    }
    FlatMap<std::uint64_t, Words> stacks_;
};

}  // namespace opline
