// SPDX-License-Identifier: MIT
// Hands events on but some, which are gone as if the tracer had lost them and said nothing: to see what that does to
// results. Sits between a front end and the sink, before anybody has looked at an event. Which events go depends on
// the seed and on the event's place in its stream alone, so both readers lose the same.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"
#include "event/event.hpp"

namespace opline {

class Dropper final : public EventSink {
  public:
    // Of the events called `name` so many in a million go; of an empty name none go, and all are counted.
    Dropper(EventSink &to, std::string name, std::uint32_t per_million, std::uint64_t seed)
        : to_(to), name_(std::move(name)), per_million_(per_million), seed_(seed) {}

    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan = to_.add_class(decl);
        if (classes_.size() <= plan.id) classes_.resize(plan.id + 1);
        classes_[plan.id] = decl.name;
        return plan;
    }
    std::uint32_t add_stream(const StreamDecl &decl) override {
        const std::uint32_t stream = to_.add_stream(decl);
        if (ordinals_.size() <= stream) ordinals_.resize(stream + 1);
        places_.resize(ordinals_.size());
        places_[stream] = place_of(decl);
        return stream;
    }
    void events(const Event *first, const Event *past) override {
        for (; first != past; ++first) {
            const std::string &name = classes_[first->cls];
            ++seen_[name];
            if (!name_.empty() && name == name_ && goes(first->stream)) ++dropped_;
            else to_.events(first, first + 1);
        }
    }
    void gap(const Gap &gap) override { to_.gap(gap); }
    bool finish() override { return to_.finish(); }

    std::uint64_t dropped() const { return dropped_; }
    // By name, dropped events included.
    const std::map<std::string, std::uint64_t> &seen() const { return seen_; }

  private:
    static std::uint64_t place_of(const StreamDecl &d) {
        std::uint64_t h = mix64(d.instance) ^ static_cast<std::uint64_t>(d.domain);
        for (const char c : d.channel) h = mix64(h ^ static_cast<unsigned char>(c));
        return h;
    }
    bool goes(std::uint32_t stream) {
        const std::uint64_t h = mix64(seed_ ^ mix64(places_[stream] + ++ordinals_[stream]));
        return h % 1'000'000 < per_million_;
    }

    EventSink &to_;
    const std::string name_;
    const std::uint32_t per_million_;
    const std::uint64_t seed_;
    std::vector<std::string> classes_;              // by id
    std::vector<std::uint64_t> ordinals_, places_;  // by stream
    std::map<std::string, std::uint64_t> seen_;
    std::uint64_t dropped_ = 0;
};

}  // namespace opline
