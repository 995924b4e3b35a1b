// SPDX-License-Identifier: MIT
// Which events are about what their stream's last one was about: seen in their numbers alone, where they are decoded, so that who
// correlates looks at no slots of most. And which threads' names are the same. Events with the same slots are seen at once.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "classes.hpp"
#include "event.hpp"
#include "thread_names.hpp"

namespace opline {

// In Event::hint, of classes with BoundClass::numbers.
enum class Hint : std::uint8_t {
    kNone,
    kLeads,  // the next can be the same
    kSame    // a bare point with the numbers of the stream's last event that has a hint
};
inline Hint hint_of(const Event &ev) { return static_cast<Hint>(ev.hint & (kAlongs - 1)); }
// Others can follow it.
inline bool leads(const Event &ev) { return (ev.hint & 1) != 0; }

class Survey {
  public:
    // In the order of their ids. `name`: the slot of a thread's name that is going to be asked for. Says in the plan what hints are alike.
    void add_class(const BoundClass &, std::int32_t name, ClassPlan &);
    void add_stream() { last_.emplace_back(); }
    // Events of one stream.
    void run(Event *first, Event *past);
    // Of the events that lead, which are of any streams and have been seen; `hosts`: of each stream. Returns past the last.
    Lead *find_leads(const Event *first, const Event *past, const std::vector<std::uint32_t> &hosts, Lead *out) const;

  private:
    struct alignas(32) Class {
        BoundClass::Numbers numbers;
        Hint again = Hint::kNone;  // where the numbers are the last one's
        std::int32_t name = kNoSlot;
    };
    struct Last {
        Slot key, tid, pid;
        std::uint32_t means = 0;
    };
    std::vector<Class> classes_;
    std::map<std::array<std::uint32_t, 5>, std::uint32_t> alike_;  // classes with equal numbers and names
    std::vector<Last> last_;  // by stream
    NameNumbers names_;
};

}  // namespace opline
