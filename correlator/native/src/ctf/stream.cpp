// SPDX-License-Identifier: MIT
#include "ctf/stream.hpp"

#include <algorithm>
#include <tuple>

namespace opline::ctf {

static constexpr std::uint64_t low_bits(std::uint32_t n) {
    return n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
}

bool Stream::next_packet(StreamNotes &notes) {
    if (!packets_.next(notes, room_.registers)) return false;
    const PacketInfo &info = packets_.info();
    clock_ = info.begin;
    std::tie(open_.earliest, open_.latest) = packets_.times();
    open_.over = false;
    open_.events_before = last_.count;
    cursor_ = {packets_.bytes(), info.header_bits, std::min(info.content_bits, packets_.bits_there())};
    go_on_aligned();
    return true;
}

// In a file that is cut off, the packet has already been counted as a loss.
void Stream::past_end(StreamNotes &notes) {
    if (packets_.damage().empty())
        packets_.lose(notes, Loss::kTruncatedPacket, "an event goes on past the packet's end");
}

// Reads the header of the event at the cursor. False: the packet ends inside the header.
bool Stream::header(std::uint64_t &id) {
    Cursor &c = cursor_;
    if (cls->header == HeaderKind::kOther) {
        for (auto &s : room_.header_slots) s = Slot();
        if (!decode(cls->header_program, c, room_.header_slots.data(), room_.registers)) return false;
        id = room_.header_slots[0].u;
        for (std::size_t i = 0; i < cls->timestamp_bits.size(); ++i) {
            const Slot &s = room_.header_slots[i + 1];
            if (s.present()) advance_clock(s.u, low_bits(cls->timestamp_bits[i] ? cls->timestamp_bits[i] : 7 * s.size));
        }
        return true;
    }
    bool whole = true;
    auto take = [&](std::uint32_t bits, std::uint32_t align) -> std::uint64_t {
        c.at = (c.at + align - 1) & ~std::uint64_t{align - 1};
        if (!whole || c.end < c.at || c.end - c.at < bits) {
            whole = false;
            return 0;
        }
        const auto v = read_bits(c.packet, c.at, bits, cls->big_endian);
        c.at += bits;
        return v;
    };
    auto extended = [&] {
        id = take(32, 8);
        clock_ = take(64, 8);
    };
    if (cls->header == HeaderKind::kCompact) {
        id = take(5, 1);
        if (id != 31) advance_clock(take(27, 1), low_bits(27));
        if (id == 31) extended();
    } else {
        id = take(16, 8);
        if (id != 65535) advance_clock(take(32, 8), low_bits(32));
        else extended();
    }
    return whole;
}

void Stream::report_rest(StreamNotes &notes) {
    if (open_.rest == 0) return;
    // In a file that is cut off, all earlier bytes are good. Otherwise bytes are damaged, perhaps some time before the
    // damage shows: earlier events of the packet are not sure either.
    const PacketInfo &packet = packets_.info();
    const bool sure = !packets_.damage().empty() || !packet.has_times;
    const std::int64_t from_ns = sure && last_.count > open_.events_before ? last_.ns
                                 : packet.has_times                        ? to_ns(packet.begin)
                                                                           : kNoTime;
    notes.rest_unread(packet, packets_.begun() - 1, open_.rest, packets_.damage().empty(), from_ns,
                      packet.has_times ? to_ns(packet.end) : kNoTime);
    open_.rest = 0;
}

// Reads one event at the cursor, of any class. False: the packet ends here (or is unreadable from here on).
bool Stream::event(StreamNotes &notes, Slot *slots) {
    go_on_with_all();
    Cursor &c = cursor_;
    c.at = (c.at + cls->header_align_bits - 1) & ~std::uint64_t{cls->header_align_bits - 1};
    if (c.at >= c.end) return false;
    const std::uint64_t begin = c.at;
    std::uint64_t id = 0;
    if (!header(id)) {
        open_.rest = begin;
        past_end(notes);
        return false;
    }
    // these are no event's bytes, and perhaps the bytes before are not either
    if (clock_ < open_.earliest || clock_ > open_.latest) {
        open_.rest = begin;
        packets_.lose(notes, Loss::kUnknownEvent,
                      "an event's time is outside of the packet's times; the rest of the packet is not read");
        return false;
    }
    if (id >= cls->events.size() || !cls->events[id].known) {
        open_.rest = begin;
        packets_.lose(notes, Loss::kUnknownEvent,
                      "event id " + std::to_string(id) + " is not in the metadata; the rest of the packet is not read");
        return false;
    }
    last_.cls = &cls->events[id];
    last_.fields_at = c.at;
    for (auto slot : last_.cls->absent) slots[slot] = Slot();
    if (!decode(last_.cls->program, c, slots, room_.registers) || c.at == begin) {
        open_.rest = begin;
        past_end(notes);
        return false;
    }
    if (last_.cls->time_slot >= 0) last_.own_ns = slots[last_.cls->time_slot].i;
    // sent later than the event happened, as are the neighbours
    last_.ns = last_.own_ns != kNoTime ? last_.own_ns : to_ns(clock_);
    ++last_.count;
    go_on_aligned();
    return true;
}

// Reads events of the packet until the packet ends or the block is full.
void Stream::events(EventBlock &out, StreamNotes &notes) {
    for (aligned_events(out); !out.full(); aligned_events(out)) {
        Slot *slots = out.next_slots();
        if (!event(notes, slots)) {
            open_.over = true;
            return;
        }
        Event *at = out.next();
        *at = Event{last_.cls->cls, 0, number, packets_.info().cpu, last_.ns, slots};
        out.grown(at + 1, slots + last_.cls->slots);
    }
}

void Stream::report_damage(StreamNotes &notes) {
    report_rest(notes);
    if (packets_.damage().empty()) return;
    notes.damaged(last_.count > 0 ? last_.ns : kNoTime, packets_.damage());
    packets_.forget_damage();
}

void Stream::prepare(std::size_t give_back) {
    packets_.give_back(give_back);
    if (room_.slots.size() < cls->slot_count + 1) room_.slots.resize(cls->slot_count + 1);
    if (room_.header_slots.size() < cls->timestamp_bits.size() + 1)
        room_.header_slots.resize(cls->timestamp_bits.size() + 1);
    if (room_.registers.size() < cls->registers) room_.registers.resize(cls->registers);
}

bool Stream::next(StreamNotes &notes) {
    for (;;) {
        if (packets_.inside() && event(notes, room_.slots.data())) return true;
        report_damage(notes);
        if (!next_packet(notes)) {
            report_damage(notes);
            return false;
        }
    }
}

bool Stream::fill(EventBlock &out, StreamNotes &notes) {
    for (out.clear();;) {
        if (packets_.inside() && !open_.over) events(out, notes);
        if (!out.empty()) break;
        report_damage(notes);
        if (!next_packet(notes)) {
            report_damage(notes);
            return false;
        }
    }
    out.close();
    return true;
}

}  // namespace opline::ctf
