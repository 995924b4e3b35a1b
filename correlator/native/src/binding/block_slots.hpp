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
            if (slot != kNoSlot)
                fields[count++] = {static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(offset)};
        }
    };
    std::int32_t comm = kNoSlot, flags = kNoSlot;
    Fields narrow, wide;  // integers of 32 and 64 bits
    BlockEvent blank{};   // what all events of the class have in common
};

// Without the thread's name. A field that is no number counts as 0.
inline BlockEvent block_event_of(const BlockSlots &s, const Event &ev) {
    static_assert(std::is_standard_layout_v<BlockEvent> && std::is_trivially_copyable_v<BlockEvent>,
                  "filled by offsets");
    BlockEvent b = s.blank;
    b.ts_ns = ev.ts_ns;
    b.cpu = ev.cpu;
    auto *const to = reinterpret_cast<unsigned char *>(&b);
    auto value = [slots = ev.slots](const BlockSlots::Field &f) {
        return slots[f.slot].is_number() ? slots[f.slot].u : 0;
    };
    for (auto f = s.narrow.fields.data(), end = f + s.narrow.count; f != end; ++f) {
        const auto v = static_cast<std::uint32_t>(value(*f));
        std::memcpy(to + f->offset, &v, sizeof v);
    }
    for (auto f = s.wide.fields.data(), end = f + s.wide.count; f != end; ++f) {
        const std::uint64_t v = value(*f);
        std::memcpy(to + f->offset, &v, sizeof v);
    }
    // LTTng writes the flags as a bit mask, perf's conversion to CTF as blkparse's letters.
    if (s.flags != kNoSlot && ev.slots[s.flags].kind == Slot::Kind::kString)
        b.rwbs = BlockModel::rwbs_by_letters(ev.slots[s.flags].str());
    return b;
}

}  // namespace opline
