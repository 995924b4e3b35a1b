// SPDX-License-Identifier: MIT
// Hands out slots for the fields of an event class that is being bound.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "event/event.hpp"

namespace opline {

// Each field has one slot, also if wanted several times.
class Slots {
  public:
    explicit Slots(const ClassDecl &decl) : decl_(decl) {}
    bool comm_is_procname = false;  // as in the context of other classes

    // Payload before context: an event's own `tid` differs from the context's `tid`.
    std::int32_t want(const std::string &field) { return want_in(field, {FieldScope::kPayload, FieldScope::kContext}); }
    std::int32_t want_payload(std::initializer_list<const char *> fields) {
        for (auto f : fields)
            if (auto s = want_in(f, {FieldScope::kPayload}); s != kNoSlot) return s;
        return kNoSlot;
    }
    std::int32_t want_context(const std::string &field) { return want_in(field, {FieldScope::kContext}); }
    std::int32_t want_first(std::initializer_list<const char *> fields) {
        for (auto f : fields)
            if (auto s = want(f); s != kNoSlot) return s;
        return kNoSlot;
    }
    // The last integer of an array; no other function finds this one.
    std::int32_t want_last(const std::string &field) { return want_in(field, {FieldScope::kPayload}, true); }
    // A field by its place in the declaration; kNoSlot: no field.
    std::int32_t want_at(std::int32_t index) {
        return index == kNoSlot ? kNoSlot : slot_of(static_cast<std::uint32_t>(index));
    }
    // Declared as an integer: the slot holds an integer, or is absent with all bits 0.
    bool is_integer(std::int32_t slot) const {
        if (slot == kNoSlot) return false;
        const FieldType type = decl_.fields[wanted_[static_cast<std::size_t>(slot)]].type;
        return type == FieldType::kUnsigned || type == FieldType::kSigned;
    }
    std::vector<std::uint32_t> take() { return std::move(wanted_); }

  private:
    std::int32_t want_in(const std::string &field, std::initializer_list<FieldScope> scopes,
                         bool last_of_array = false) {
        if (field.empty()) return kNoSlot;
        for (auto scope : scopes)
            for (std::uint32_t i = 0; i < decl_.fields.size(); ++i)
                if (decl_.fields[i].scope == scope && decl_.fields[i].name == field &&
                    (last_of_array || decl_.fields[i].type != FieldType::kIntegers))
                    return slot_of(i);
        return comm_is_procname && field == "procname" ? want_in("comm", scopes) : kNoSlot;
    }
    std::int32_t slot_of(std::uint32_t index) {
        auto it = std::find(wanted_.begin(), wanted_.end(), index);
        if (it != wanted_.end()) return static_cast<std::int32_t>(it - wanted_.begin());
        wanted_.push_back(index);
        return static_cast<std::int32_t>(wanted_.size() - 1);
    }
    const ClassDecl &decl_;
    std::vector<std::uint32_t> wanted_;
};

}  // namespace opline
