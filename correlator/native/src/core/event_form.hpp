// SPDX-License-Identifier: MIT
// How an event is written: as a line for people, as a JSON object, as a row of CSV. The last two have the same members.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace opline {

struct WrittenField {
    std::string label;  // name, in the form's style
    std::int32_t slot;  // kNoSlot: a name without a value
    Slot in(const Slot *values) const { return slot == kNoSlot ? Slot() : values[slot]; }
};

// A class of events: the written parts.
struct WrittenClass {
    std::string name;
    std::vector<WrittenField> contexts, payload;
    std::int32_t tid_slot = kNoSlot, pid_slot = kNoSlot, comm_slot = kNoSlot;
};

class EventForm {
  public:
    virtual ~EventForm() = default;
    // Text before all events.
    virtual void head(std::string & /*out*/) {}
    // Text before the value of a field.
    virtual std::string label(const std::string &field) const = 0;
    virtual void event(std::string &out, const WrittenClass &, const StreamDecl &, const Event &) = 0;
    virtual void gap(std::string &out, const StreamDecl &, const Gap &) = 0;
};

std::unique_ptr<EventForm> text_form();
std::unique_ptr<EventForm> json_form();
std::unique_ptr<EventForm> csv_form();

}  // namespace opline
