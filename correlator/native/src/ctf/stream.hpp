// SPDX-License-Identifier: MIT
// One data stream: the events of its packets, in order. Private to the native reader.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ctf/batch.hpp"
#include "ctf/decode/aligned_program.hpp"
#include "ctf/decode/plan.hpp"
#include "ctf/packets.hpp"
#include "ctf/metadata/types.hpp"
#include "event/event.hpp"

namespace opline::ctf {

// A damaged clock has any value; an event has a time all the same.
inline std::int64_t as_time(std::uint64_t ns) { return std::max(static_cast<std::int64_t>(ns), kNoTime + 1); }

inline std::int64_t to_ns(std::uint64_t cycles, std::uint64_t frequency) {
    if (frequency == 1'000'000'000) return as_time(cycles);
    return as_time(static_cast<std::uint64_t>(static_cast<unsigned __int128>(cycles) * 1'000'000'000 / frequency));
}

// The two event headers that LTTng writes have code of their own.
enum class HeaderKind : std::uint8_t { kCompact, kLarge, kOther };

struct EventClass {
    std::uint32_t cls = 0;    // the consumer's
    std::uint32_t slots = 0;  // that it wants
    std::int32_t time_slot = -1;
    bool known = false;
    std::vector<std::int32_t> absent;  // wanted slots that no step fills
    Program program;
    bool aligned = false;  // AlignedProgram is enough: every wanted field is there
};

// What every event needs of a class with an AlignedProgram, side by side; of another class the program is empty.
struct alignas(128) AlignedClass {
    AlignedProgram program;
    std::uint32_t cls = 0, slots = 0;  // EventClass's
    std::int32_t time_slot = -1;
    const EventClass *all = nullptr;
};

// A header at whole bytes, as LTTng writes most: the event's id, then the low bits of its time, in less than eight
// bytes.
struct AlignedHeader {
    std::uint32_t bytes = 0;  // 0: there is none
    std::uint32_t id_bits = 0;
    std::uint64_t id_mask = 0, time_mask = 0;
};
constexpr AlignedHeader kCompactHeader{4, 5, 31, 0x7ffffff}, kLargeHeader{6, 16, 65535, 0xffffffff};

// Everything that streams of one class share.
struct StreamClass {
    HeaderKind header = HeaderKind::kCompact;
    std::uint32_t header_align_bits = 8;
    bool big_endian = false;
    AlignedHeader aligned_header;               // not of kOther, nor of a big-endian one
    Program header_program;                     // kOther: slot 0 the event's id, then
    std::vector<std::uint32_t> timestamp_bits;  // a slot for each timestamp field; 0: it is of variable length
    std::vector<EventClass> events;             // by event id
    // the same for aligned_header; of a compact one, for each id that it can have
    std::vector<AlignedClass> aligned;
    std::size_t slot_count = 0;
    std::uint32_t registers = 0;
    bool declared = false;  // its events have been declared to a consumer, and compiled

    // Once all events are there. The largest id of a header is no event's: it says that the header is extended.
    void gather_aligned();
};

class Stream {
  public:
    Stream(std::vector<Packets::File> files, const PacketLayout &layout, StreamDecl decl, std::uint64_t stream_id,
           std::uint64_t frequency)
        : decl(std::move(decl)), stream_id(stream_id), packets_(std::move(files), layout), frequency_(frequency) {}

    StreamDecl decl;
    std::uint64_t stream_id;
    StreamClass *cls = nullptr;  // set by the reader once the plans exist
    std::uint32_t number = 0;    // the consumer's

    // The next event: its slots are valid until the next call. False: the stream has ended.
    bool next(StreamNotes &notes);
    // The next events instead, one at least, as many as go into the block and are in one packet. False: the stream has
    // ended.
    bool fill(EventBlock &, StreamNotes &notes);
    // More packets have come, behind those that there were. The events of those that have been read have been consumed,
    // but those of the last block.
    void go_on(std::shared_ptr<MappedFile> more) { packets_.go_on(std::move(more)); }
    // Another part of the stream lies in another trace (a chunk of a rotated session): its last packet, which ends at
    // `end`, had counted so many discarded events.
    void goes_on_from(std::uint64_t end, std::uint64_t discarded) { packets_.goes_on_from(end, discarded); }
    // Before the first event: the plans are made. `give_back`: so many bytes that were read may stay mapped.
    void prepare(std::size_t give_back = 16u << 20);
    const EventClass *event_class() const { return last_.cls; }     // of the event
    std::uint64_t clock() const { return clock_; }                  // raw value at the event
    std::uint64_t aligned_count() const { return aligned_count_; }  // events that aligned_events() read
    // where the event's own fields begin; not of one that aligned_events() read
    Cursor fields() const { return {cursor_.packet, last_.fields_at, cursor_.end}; }
    const Packets &packets() const { return packets_; }
    std::int64_t to_ns(std::uint64_t cycles) const { return ctf::to_ns(cycles, frequency_); }

  private:
    // bytes that are fetched into the caches before they are needed: about what a block holds
    static constexpr std::size_t kPrefetchBytes = 4096;
    bool next_packet(StreamNotes &);
    bool event(StreamNotes &, Slot *);
    void aligned_events(EventBlock &);
    template <const AlignedHeader &>
    void aligned_events_of(EventBlock &);
    void events(EventBlock &, StreamNotes &);
    // The cursor and the place of the next aligned event follow each other.
    void go_on_aligned() {
        const bool can = !cls->aligned.empty() && cursor_.at % 8 == 0;
        aligned_at_ = can ? cursor_.packet + cursor_.at / 8 : nullptr;
    }
    void go_on_with_all() {
        if (aligned_at_) cursor_.at = static_cast<std::uint64_t>(aligned_at_ - cursor_.packet) * 8;
        aligned_at_ = nullptr;
    }
    bool header(std::uint64_t &id);
    void report_rest(StreamNotes &);
    // `value`: the bits of the clock that `mask` has; they may have wrapped once.
    void advance_clock(std::uint64_t value, std::uint64_t mask) {
        const std::uint64_t before = clock_ & mask;
        clock_ += (value - before) & mask;
    }
    void past_end(StreamNotes &);
    void report_damage(StreamNotes &);

    struct LastEvent {
        const EventClass *cls = nullptr;
        std::int64_t ns = 0, own_ns = kNoTime;  // own_ns: of the last one that carried its own time
        std::uint64_t fields_at = 0;            // bits
        std::uint64_t count = 0;                // with all before it
    };
    struct OpenPacket {
        bool over = false;                                       // it has no more events
        std::uint64_t events_before = 0;                         // it
        std::uint64_t earliest = 0, latest = ~std::uint64_t{0};  // times that an event of it can have
        std::uint64_t rest = 0;                                  // the bit from which it can't be decoded; 0: it can
    };
    struct Room {
        std::vector<Slot> slots, header_slots;
        std::vector<std::uint64_t> registers;
    };
    Packets packets_;
    std::uint64_t frequency_;
    OpenPacket open_;
    LastEvent last_;
    std::uint64_t clock_ = 0;
    Cursor cursor_{nullptr, 0, 0};
    std::uint64_t aligned_count_ = 0;
    const std::uint8_t *aligned_at_ = nullptr;  // where the next event may be one for aligned_events()
    Room room_;
};

}  // namespace opline::ctf
