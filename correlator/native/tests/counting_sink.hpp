// SPDX-License-Identifier: MIT
// A consumer that wants every field, reads all of it, and counts.
#pragma once
#include <vector>

#include "event/event.hpp"

namespace opline {

class CountingSink : public EventSink {
  public:
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan;
        plan.id = static_cast<std::uint32_t>(wanted_.size());
        for (std::uint32_t i = 0; i < decl.fields.size(); ++i) plan.wanted.push_back(i);
        wanted_.push_back(plan.wanted.size());
        return plan;
    }
    std::uint32_t add_stream(const StreamDecl &) override { return streams++; }
    void events(const Event *first, const Event *past) override {
        for (; first != past; ++first) event(*first);
    }
    virtual void event(const Event &e) {
        ++count;
        for (std::size_t i = 0; i < wanted_[e.cls]; ++i) {
            const Slot &s = e.slots[i];
            if (s.kind == Slot::Kind::kString)
                for (char c : s.str()) sum += static_cast<unsigned char>(c);
            else if (s.present()) sum += s.bits();
        }
        last_ns = e.ts_ns;
    }
    void gap(const Gap &gap) override {
        if (gap.kind == Gap::Kind::kDamage) ++damages;
        else lost += gap.count;
    }
    bool finish() override { return finished = true; }
    // For other streams of the same classes.
    void begin_again() {
        count = lost = damages = sum = 0;
        last_ns = kNoTime;
        streams = 0;
        finished = false;
    }

    std::uint64_t count = 0, lost = 0, damages = 0, sum = 0;
    std::int64_t last_ns = kNoTime;
    std::uint32_t streams = 0;
    bool finished = false;

  private:
    std::vector<std::size_t> wanted_;
};

}  // namespace opline
