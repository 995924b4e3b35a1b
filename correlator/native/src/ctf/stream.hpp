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

// LTTng's two event headers have special code.
enum class HeaderKind : std::uint8_t { kCompact, kLarge, kOther };

struct EventClass {
    std::uint32_t cls = 0;    // the consumer's
    std::uint32_t slots = 0;  // number of wanted slots
    std::int32_t time_slot = -1;
    bool known = false;
    std::vector<std::int32_t> absent;  // wanted slots without a step
    Program program;
    bool aligned = false;  // AlignedProgram is enough: every wanted field is there
};

// The data needed for every event of a class with an AlignedProgram, side by side; for other classes the program is
// empty.
struct alignas(128) AlignedClass {
    AlignedProgram program;
    std::uint32_t cls = 0, slots = 0;  // EventClass's
    std::int32_t time_slot = -1;
    const EventClass *all = nullptr;
};

// A header of whole bytes, as in most of LTTng's traces: the event's id, then the low bits of the time, in less than
// eight bytes.
struct AlignedHeader {
    std::uint32_t bytes = 0;  // 0: there is none
    std::uint32_t id_bits = 0;
    std::uint64_t id_mask = 0, time_mask = 0;
};
constexpr AlignedHeader kCompactHeader{4, 5, 31, 0x7ffffff}, kLargeHeader{6, 16, 65535, 0xffffffff};

// Data shared by the streams of one class.
struct StreamClass {
    HeaderKind header = HeaderKind::kCompact;
    std::uint32_t header_align_bits = 8;
    bool big_endian = false;
    AlignedHeader aligned_header;               // empty for kOther and for a big-endian header
    Program header_program;                     // kOther: slot 0 the event's id, then
    std::vector<std::uint32_t> timestamp_bits;  // a slot for each timestamp field; 0: of variable length
    std::vector<EventClass> events;             // by event id
    // the same for aligned_header; for a compact header, an entry for each possible id
    std::vector<AlignedClass> aligned;
    std::size_t slot_count = 0;
    std::uint32_t registers = 0;
    bool declared = false;  // the events have been declared to a consumer, and compiled

    // After all events are known. The largest id of a header is no event's id: this id marks an extended header.
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
    // Instead: fills the block with the next events of one packet, at least one. False: the stream has ended.
    bool fill(EventBlock &, StreamNotes &notes);
    // Adds packets behind the known packets. The events already read have been consumed, except for the last block.
    void go_on(std::shared_ptr<MappedFile> more) { packets_.go_on(std::move(more)); }
    // The stream begins in another trace (a chunk of a rotated session): the last packet there ends at `end`, and had
    // counted `discarded` events.
    void goes_on_from(std::uint64_t end, std::uint64_t discarded) { packets_.goes_on_from(end, discarded); }
    // Before the first event, with the plans made. `give_back`: limit of read bytes that stay mapped.
    void prepare(std::size_t give_back = 16u << 20);
    const EventClass *event_class() const { return last_.cls; }     // of the event
    std::uint64_t clock() const { return clock_; }                  // raw value at the event
    std::uint64_t aligned_count() const { return aligned_count_; }  // events read by aligned_events()
    // the begin of the event's own fields; not valid after aligned_events()
    Cursor fields() const { return {cursor_.packet, last_.fields_at, cursor_.end}; }
    const Packets &packets() const { return packets_; }
    std::int64_t to_ns(std::uint64_t cycles) const { return ctf::to_ns(cycles, frequency_); }

  private:
    // bytes fetched into the caches in advance: about a block's worth
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
    // `value`: the bits of the clock in `mask`; these bits may have wrapped once.
    void advance_clock(std::uint64_t value, std::uint64_t mask) {
        const std::uint64_t before = clock_ & mask;
        clock_ += (value - before) & mask;
    }
    void past_end(StreamNotes &);
    void report_damage(StreamNotes &);

    struct LastEvent {
        const EventClass *cls = nullptr;
        std::int64_t ns = 0, own_ns = kNoTime;  // own_ns: of the last event with its own time
        std::uint64_t fields_at = 0;            // bits
        std::uint64_t count = 0;                // including all earlier events
    };
    struct OpenPacket {
        bool over = false;                                       // no more events
        std::uint64_t events_before = 0;                         // number of events before the packet
        std::uint64_t earliest = 0, latest = ~std::uint64_t{0};  // possible times of the packet's events
        std::uint64_t rest = 0;                                  // the first bit that cannot be decoded; 0: all can
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
    const std::uint8_t *aligned_at_ = nullptr;  // the next event, if aligned_events() may read the event
    Room room_;
};

}  // namespace opline::ctf
