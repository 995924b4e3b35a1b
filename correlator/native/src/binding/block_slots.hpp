// SPDX-License-Identifier: MIT
// In which slots of an event class the fields of a block event lie.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "block/block.hpp"
#include "event/event.hpp"

namespace opline {

struct BlockSlots {
    struct Field {
        std::uint16_t slot, offset;  // the latter in BlockEvent
    };
    struct Fields {
        std::array<Field, 14> fields;
        std::uint32_t count = 0;
        void add(std::int32_t slot, std::size_t offset) {
            fields[count++] = {static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(offset)};
        }
        const Field *begin() const { return fields.data(); }
        const Field *end() const { return fields.data() + count; }
    };
    void add_narrow(std::int32_t slot, bool declared_integer, std::size_t offset) {
        if (slot != kNoSlot) (declared_integer ? narrow : narrow_told).add(slot, offset);
    }
    void add_wide(std::int32_t slot, bool declared_integer, std::size_t offset) {
        if (slot != kNoSlot) (declared_integer ? wide : wide_told).add(slot, offset);
    }
    std::int32_t flags = kNoSlot;
    Fields narrow, wide;            // integers of 32 and 64 bits
    Fields narrow_told, wide_told;  // only each slot tells whether the field is an integer
    BlockEvent blank{};             // the common part of all events of the class
};

// Without the thread's name. A field that is not an integer counts as 0.
inline BlockEvent block_event_of(const BlockSlots &s, const Event &ev) {
    static_assert(std::is_standard_layout_v<BlockEvent> && std::is_trivially_copyable_v<BlockEvent>,
                  "filled by offsets");
    BlockEvent b = s.blank;
    b.ts_ns = ev.ts_ns;
    b.cpu = ev.cpu;
    auto *const to = reinterpret_cast<unsigned char *>(&b);
    const Slot *const slots = ev.slots;
    const auto narrow = [to](const BlockSlots::Field &f, std::uint64_t value) {
        const auto v = static_cast<std::uint32_t>(value);
        std::memcpy(to + f.offset, &v, sizeof v);
    };
    const auto wide = [to](const BlockSlots::Field &f, std::uint64_t v) { std::memcpy(to + f.offset, &v, sizeof v); };
    const auto told = [slots](const BlockSlots::Field &f) { return slots[f.slot].is_number() ? slots[f.slot].u : 0; };
    for (const auto &f : s.narrow) narrow(f, slots[f.slot].u);
    for (const auto &f : s.wide) wide(f, slots[f.slot].u);
    for (const auto &f : s.narrow_told) narrow(f, told(f));
    for (const auto &f : s.wide_told) wide(f, told(f));
    // LTTng writes the flags as a bit mask, perf's conversion to CTF as blkparse's letters.
    if (s.flags != kNoSlot && slots[s.flags].kind == Slot::Kind::kString)
        b.rwbs = BlockModel::rwbs_by_letters(slots[s.flags].str());
    return b;
}

}  // namespace opline
