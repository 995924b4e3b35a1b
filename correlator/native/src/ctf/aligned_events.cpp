// SPDX-License-Identifier: MIT
// The fast path through a stream: events whose fields begin at whole bytes, as LTTng writes most, one after the other,
// as long as there are such.
#include <cstring>

#include "ctf/stream.hpp"

namespace opline::ctf {

void StreamClass::gather_aligned() {
    for (const auto &e : events) {
        if (aligned.size() == aligned_header.id_mask) break;
        if (e.aligned)
            aligned.push_back({AlignedProgram(e.program, aligned_header.bytes), e.cls, e.slots, e.time_slot, &e});
        else aligned.emplace_back();
    }
    if (aligned_header.id_bits == kCompactHeader.id_bits && !aligned.empty())
        aligned.resize(kCompactHeader.id_mask + 1);
}

// The same as event(), as long as the next event has an AlignedProgram.
void Stream::aligned_events(EventBlock &out) {
    if (!aligned_at_) return;
    if (cls->aligned_header.id_bits == kCompactHeader.id_bits) aligned_events_of<kCompactHeader>(out);
    else aligned_events_of<kLargeHeader>(out);
}

template <const AlignedHeader &h>
void Stream::aligned_events_of(EventBlock &out) {
    const std::uint8_t *p = aligned_at_;
    const MappedFile &file = packets_.file();
    const std::uint8_t *const packet = cursor_.packet, *const content_end = packet + cursor_.end / 8,
                              *const file_end = file.data() + file.size();
    const std::uint8_t *const last_word = file_end - 8;
    AlignedClass *const classes = cls->aligned.data();
    const std::size_t ids = cls->aligned.size();
    const AlignedClass *found = nullptr;
    const std::uint64_t latest = open_.latest;
    std::uint64_t clock = clock_;
    std::int64_t own_ns = last_.own_ns;
    const bool keeps_ns = frequency_ == 1'000'000'000;
    Event *const begin = out.next(), *const past = out.last();
    Event *at = begin;
    Slot *slots = out.next_slots();
    while (at != past && p <= last_word) {
        // An event of LTTng is mostly longer than one cache line and shorter than two.
        __builtin_prefetch(p + kPrefetchBytes);
        __builtin_prefetch(p + kPrefetchBytes + 64);
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        const std::uint64_t id = word & h.id_mask;
        if (&h != &kCompactHeader && id >= ids) break;
        AlignedClass &c = classes[id];
        const std::uint8_t *const after = c.program.run(packet, p, file_end, slots);
        if (!after || after > content_end) break;
        const std::uint64_t later = clock + (((word >> h.id_bits) - clock) & h.time_mask);
        if (later > latest) break;  // event() says why
        p = after;
        clock = later;
        if (c.time_slot >= 0) own_ns = slots[c.time_slot].i;
        const std::int64_t ns = own_ns != kNoTime ? own_ns : keeps_ns ? as_time(clock) : to_ns(clock);
        *at++ = Event{c.cls, 0, number, packets_.info().cpu, ns, slots};
        slots += c.slots;
        found = &c;
    }
    if (!found) return;
    last_.count += static_cast<std::uint64_t>(at - begin);
    aligned_count_ += static_cast<std::uint64_t>(at - begin);
    aligned_at_ = p;
    last_.cls = found->all;
    clock_ = clock;
    last_.own_ns = own_ns;
    last_.ns = at[-1].ts_ns;
    out.grown(at, slots);
}

}  // namespace opline::ctf
