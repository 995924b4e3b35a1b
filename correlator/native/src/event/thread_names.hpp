// SPDX-License-Identifier: MIT
// Names of threads, as events have them. Their texts are compared where events are decoded, which has just read them;
// who correlates gets a number with the event.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/strings.hpp"
#include "event/event.hpp"

namespace opline {

constexpr std::uint32_t kMostNames = 1u << 24;  // limit of numbered names

// Numbers names in order of first use.
class NameNumbers {
  public:
    std::uint32_t of(std::string_view name) {
        if (name.empty()) return 0;
        Recent &recent = recent_[(static_cast<unsigned char>(name.front()) +
                                  7u * static_cast<unsigned char>(name.back()) + 3u * name.size()) %
                                 recent_.size()];
        if (!same_text(name, recent.name)) look_up(name, recent);
        return recent.number;
    }

  private:
    struct Recent {
        std::string_view name;
        std::uint32_t number = 0;
    };
    [[gnu::noinline]] void look_up(std::string_view name, Recent &recent) {
        const std::uint32_t id = names_.intern(name);
        recent = {names_.at(id), id < kMostNames ? id : 0};
    }
    StringPool names_;  // texts stay in place
    std::array<Recent, 64> recent_{};
};

// Gives events the numbers of their threads' names, during decoding.
class ThreadNames {
  public:
    // In order of the ids. `slot`: of the thread's name, if needed later.
    void add_class(std::int32_t slot) { slots_.push_back(slot); }
    void number(Event *first, Event *past) {
        const std::int32_t *const slots = slots_.data();
        for (; first != past; ++first) {
            const std::int32_t slot = slots[first->cls];
            if (slot != kNoSlot && first->slots[slot].kind == Slot::Kind::kString)
                first->thread_name = numbers_.of(first->slots[slot].str());
        }
    }

  private:
    std::vector<std::int32_t> slots_;  // by class
    NameNumbers numbers_;
};

// Pool ids for the numbers.
class NameIds {
  public:
    explicit NameIds(StringPool &strings) : strings_(strings) {}
    // For an event with its name in the slot; 0: no name.
    std::uint32_t of(const Event &ev, std::int32_t slot) {
        if (slot == kNoSlot) return 0;
        const std::uint32_t number = ev.thread_name;
        return number < ids_.size() && ids_[number] != 0 ? ids_[number] : look_up(ev, slot);
    }

  private:
    [[gnu::noinline]] std::uint32_t look_up(const Event &ev, std::int32_t slot) {
        if (ev.slots[slot].kind != Slot::Kind::kString) return 0;
        const std::uint32_t number = ev.thread_name, id = strings_.intern(ev.slots[slot].str());
        if (number == 0) return id;
        if (number >= ids_.size()) ids_.resize(number + 1);
        return ids_[number] = id;
    }
    StringPool &strings_;
    std::vector<std::uint32_t> ids_;  // by number; 0: not met yet
};

}  // namespace opline
