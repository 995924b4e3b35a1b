// SPDX-License-Identifier: MIT
// Which events are about what their stream's last one was about: seen in their numbers alone, where they are decoded, so that who
// correlates looks at no slots of most.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "classes.hpp"
#include "event.hpp"

namespace opline {

// Event::hint, of classes with BoundClass::numbers.
enum class Hint : std::uint8_t {
    kNone,
    kSame,   // a bare point with the numbers of the stream's last event that has a hint
    kLeads,  // the next can be the same
    kBegins  // so it can, and this one makes an op
};

class Survey {
  public:
    void add_class(const BoundClass &);  // in the order of their ids
    void add_stream() { last_.emplace_back(); }
    // Events of one stream.
    void run(Event *first, Event *past);

  private:
    struct Class {
        BoundClass::Numbers numbers;
        Hint hint = Hint::kNone, repeated = Hint::kNone;  // repeated: where the numbers are the last one's
        std::uint32_t alike = 0;                          // the same of classes with equal Numbers
    };
    struct Last {
        Slot key, tid, pid;
        std::uint32_t means = 0;
    };
    std::vector<Class> classes_;
    std::map<std::array<std::uint32_t, 4>, std::uint32_t> alike_;
    std::vector<Last> last_;  // by stream
    bool any_ = false;        // class has a hint
};

}  // namespace opline
