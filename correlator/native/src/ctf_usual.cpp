// SPDX-License-Identifier: MIT
// The short way through a stream: events as LTTng writes most, one after the other, as long as there are such.
#include <cstring>
#include <map>
#include <set>

#include "ctf_stream.hpp"

namespace opline::ctf {

void StreamClass::gather_usual(Trails *of_reader) {
    trails = of_reader;
    std::map<std::vector<std::uint64_t>, std::uint32_t> layouts;
    for (const auto &e : events) {
        if (usual.size() == usual_header.id_mask) break;
        if (!e.usual) {
            usual.emplace_back();
            continue;
        }
        UsualClass &c = usual.emplace_back(UsualClass{Straight(e.program, usual_header.bytes), {e.cls, e.again}, e.slots, &e, 0, e.along, nullptr});
        auto layout = c.straight.layout();
        if (layout.empty()) continue;
        layout.push_back(e.alike);
        c.layout = layouts.emplace(layout, static_cast<std::uint32_t>(layouts.size() + 1)).first->second;
    }
    if (usual_header.id_bits == kCompactHeader.id_bits && !usual.empty()) usual.resize(kCompactHeader.id_mask + 1);
    if (!trails) return;
    std::set<std::uint32_t> of_alongs;
    for (const UsualClass &c : usual)
        if (c.along) of_alongs.insert(c.layout);
    for (UsualClass &c : usual)
        if (c.layout != 0 && of_alongs.count(c.layout) != 0) c.trails = trails->root(c);
}

// What event() does, in short, for events as LTTng writes most, as long as there are such.
void Stream::usual_events(EventBlock &out) {
    if (!usual_at_) return;
    if (cls->usual_header.id_bits == kCompactHeader.id_bits) usual_events_of<kCompactHeader>(out);
    else usual_events_of<kLargeHeader>(out);
}

// An event of LTTng is mostly longer than one line of the caches, and shorter than two.
[[gnu::always_inline]] inline void Stream::fetch_ahead(const std::uint8_t *p) {
    __builtin_prefetch(p + kAhead);
    __builtin_prefetch(p + kAhead + 64);
}

// The events at `p` that have the slots of the one before and can go along with it. True: the next one has them, too, but can't.
template <const UsualHeader &h>
bool Stream::go_along(Straight &straight, const std::uint8_t *like, Going &going, const std::uint8_t *last_repeat, const std::uint8_t *content_end, const std::uint8_t *file_end) {
    Straight::Repeats repeats(straight, like);
    const std::uint8_t *p = going.p;
    std::uint64_t clock = going.clock;
    Trails::Node *node = going.node;
    std::uint32_t *since = going.since;
    bool another_one = false;
    const std::uint8_t *after;
    while (p <= last_repeat && (after = repeats.past(p, file_end)) && after <= content_end) {
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        const auto id = static_cast<std::uint32_t>(word & h.id_mask);
        Trails::Node *next = node->last;
        if (next->id != id && !(next = another(*going.node, *node, id))) {
            another_one = true;
            break;
        }
        const auto since_ns = static_cast<std::uint32_t>(((word >> h.id_bits) - clock) & h.time_mask);
        *since++ = since_ns;
        clock += since_ns;
        node = next;
        p = after;
        fetch_ahead(p);
    }
    going.p = p;
    going.clock = clock;
    going.node = node;
    return another_one;
}

Trails::Node *Stream::another(const Trails::Node &root, Trails::Node &from, std::uint32_t id) {
    if (id >= cls->usual.size()) return nullptr;
    const UsualClass &its = cls->usual[id];
    return its.along && its.layout == root.usual->layout ? cls->trails->behind(from, id, its, its.again.cls) : nullptr;
}

template <const UsualHeader &h>
void Stream::usual_events_of(EventBlock &out) {
    const std::uint8_t *p = usual_at_;
    const MappedFile &file = *files_[file_].bytes;
    const std::uint8_t *const packet = cursor_.packet, *const content_end = packet + cursor_.end / 8, *const file_end = file.data() + file.size();
    const std::uint8_t *const last_word = file_end - 8, *const last_repeat = file_end - Straight::kRepeatRoom;
    UsualClass *const classes = cls->usual.data();
    const UsualClass *found = nullptr;
    const std::size_t ids = cls->usual.size();
    const EventSource source{number, packet_.cpu};
    std::uint64_t clock = clock_;
    const bool keeps_ns = frequency_ == 1'000'000'000;
    Event *const begin = out.next(), *const past = out.last();
    Event *at = begin;
    Slot *slots = out.next_slots();
    Event *open = nullptr;  // the last event, if some go along with it that are the last of all
    Alongs *with = nullptr;
    std::uint64_t alongs = 0;
    // The class of the event at `p`, whose first eight bytes are there. False: it is not in the table.
    auto look = [&](std::uint64_t &word, UsualClass *&c) {
        fetch_ahead(p);
        std::memcpy(&word, p, 8);
        const std::uint64_t id = word & h.id_mask;
        c = classes + id;
        return &h == &kCompactHeader || id < ids;
    };
    auto add = [&](const EventKind &kind, std::uint64_t word, const Slot *its, const std::uint8_t *after) {
        p = after;
        clock += ((word >> h.id_bits) - clock) & h.time_mask;
        std::memcpy(static_cast<EventKind *>(at), &kind, sizeof kind);
        std::memcpy(static_cast<EventSource *>(at), &source, sizeof source);
        at->ts_ns = static_cast<std::int64_t>(clock);
        at->slots = its;
        ++at;
    };
    std::uint64_t word;
    UsualClass *c;
    while (at != past && p <= last_word && look(word, c)) {
        const std::uint8_t *const like = p;
        const std::uint8_t *after = c->straight.run(packet, p, file_end, slots);
        if (!after || after > content_end) break;
        Event &first = *at;
        add({c->again.cls, 0}, word, slots, after);
        open = nullptr;
        found = c;
        Slot *next_slots = slots + c->slots;
        if (const std::uint32_t layout = c->layout; layout != 0 && like <= last_repeat) {
            std::uint32_t flag = 0;
            Straight &straight = c->straight;
            bool more = at != past && p <= last_repeat;
            if (more && c->trails) {
                with = reinterpret_cast<Alongs *>(next_slots);
                Going going{p, clock, c->trails, with->after_ns};
                more = go_along<h>(straight, like, going, last_repeat, content_end, file_end);
                p = going.p;
                clock = going.clock;
                if (const Trails::Node *node = going.node; node != c->trails) {
                    with->trail = node;
                    alongs += node->count;
                    next_slots += Alongs::slots(node->count);
                    flag = kAlongs;
                    found = node->usual;
                    open = &first;
                }
            }
            if (more) {
                Straight::Repeats repeats(straight, like);
                while (at != past && p <= last_repeat && look(word, c) && c->layout == layout) {
                    after = repeats.past(p, file_end);
                    if (!after || after > content_end) break;
                    add(c->again, word, slots, after);
                    open = nullptr;
                    found = c;
                }
            }
            first.hint = flag | static_cast<std::uint32_t>(at - &first - 1);
        }
        slots = next_slots;
    }
    if (!found) return;
    if (open) {  // the last has a place of its own
        std::memcpy(static_cast<EventKind *>(at), &found->again, sizeof found->again);
        std::memcpy(static_cast<EventSource *>(at), &source, sizeof source);
        at->ts_ns = static_cast<std::int64_t>(clock);
        at->slots = open->slots;
        ++at;
        --alongs;
        with->trail = with->trail->before;
        open->hint = with->trail->count == 0 ? 1 : kAlongs | 1;
    }
    if (!keeps_ns)
        for (Event *e = begin; e != at; ++e) e->ts_ns = to_ns(static_cast<std::uint64_t>(e->ts_ns));
    ordinal += static_cast<std::uint64_t>(at - begin) + alongs;
    usual_at_ = p;
    event_class = found->all;
    clock_ = clock;
    time_ns = at[-1].ts_ns;
    out.grown(at, slots);
}

}  // namespace opline::ctf
