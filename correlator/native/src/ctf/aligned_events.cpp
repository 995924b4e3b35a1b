// SPDX-License-Identifier: MIT
// The short way through a stream: events as LTTng writes most, one after the other, as long as there are such.
#include <cstring>

#include "ctf/stream.hpp"

namespace opline::ctf {

void StreamClass::gather_usual() {
    for (const auto &e : events) {
        if (usual.size() == usual_header.id_mask) break;
        if (e.usual) usual.push_back({Straight(e.program, usual_header.bytes), e.cls, e.slots, e.time_slot, &e});
        else usual.emplace_back();
    }
    if (usual_header.id_bits == kCompactHeader.id_bits && !usual.empty()) usual.resize(kCompactHeader.id_mask + 1);
}

// What event() does, in short, for events as LTTng writes most, as long as there are such.
void Stream::usual_events(EventBlock &out) {
    if (!usual_at_) return;
    if (cls->usual_header.id_bits == kCompactHeader.id_bits) usual_events_of<kCompactHeader>(out);
    else usual_events_of<kLargeHeader>(out);
}

template <const UsualHeader &h>
void Stream::usual_events_of(EventBlock &out) {
    const std::uint8_t *p = usual_at_;
    const MappedFile &file = *files_[file_].bytes;
    const std::uint8_t *const packet = cursor_.packet, *const content_end = packet + cursor_.end / 8,
                              *const file_end = file.data() + file.size();
    const std::uint8_t *const last_word = file_end - 8;
    UsualClass *const classes = cls->usual.data();
    const std::size_t ids = cls->usual.size();
    const UsualClass *found = nullptr;
    std::uint64_t clock = clock_;
    std::int64_t own_ns = own_ns_;
    const bool keeps_ns = frequency_ == 1'000'000'000;
    Event *const begin = out.next(), *const past = out.last();
    Event *at = begin;
    Slot *slots = out.next_slots();
    while (at != past && p <= last_word) {
        // An event of LTTng is mostly longer than one line of the caches, and shorter than two.
        __builtin_prefetch(p + kAhead);
        __builtin_prefetch(p + kAhead + 64);
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        const std::uint64_t id = word & h.id_mask;
        if (&h != &kCompactHeader && id >= ids) break;
        UsualClass &c = classes[id];
        const std::uint8_t *const after = c.straight.run(packet, p, file_end, slots);
        if (!after || after > content_end) break;
        p = after;
        clock += ((word >> h.id_bits) - clock) & h.time_mask;
        if (c.time_slot >= 0) own_ns = slots[c.time_slot].i;
        const std::int64_t ns = own_ns != kNoTime ? own_ns : keeps_ns ? as_time(clock) : to_ns(clock);
        *at++ = Event{c.cls, 0, number, packet_.cpu, ns, slots};
        slots += c.slots;
        found = &c;
    }
    if (!found) return;
    ordinal += static_cast<std::uint64_t>(at - begin);
    usual_at_ = p;
    event_class = found->all;
    clock_ = clock;
    own_ns_ = own_ns;
    time_ns = at[-1].ts_ns;
    out.grown(at, slots);
}

}  // namespace opline::ctf
