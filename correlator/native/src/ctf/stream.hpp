// SPDX-License-Identifier: MIT
// One data stream: its files, packets and events, in order. Private to the native reader.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctf/batch.hpp"
#include "ctf/decode/plan.hpp"
#include "ctf/decode/aligned_program.hpp"
#include "ctf/losses.hpp"
#include "ctf/metadata/types.hpp"
#include "event/event.hpp"

namespace opline::ctf {

// A damaged clock has any value; an event has a time all the same.
inline std::int64_t as_time(std::uint64_t ns) { return std::max(static_cast<std::int64_t>(ns), kNoTime + 1); }

inline std::int64_t to_ns(std::uint64_t cycles, std::uint64_t frequency) {
    if (frequency == 1'000'000'000) return as_time(cycles);
    return as_time(static_cast<std::uint64_t>(static_cast<unsigned __int128>(cycles) * 1'000'000'000 / frequency));
}

// A file, mapped for reading. Throws Malformed with the system's reason. `huge`: what is not in the page cache yet goes
// there in huge pages, if the kernel can; whoever maps these maps each at once.
class MappedFile {
  public:
    MappedFile(const std::string &path, bool huge);
    // What is in memory already, and stays there longer than this does; the path is for messages.
    MappedFile(std::string path, std::string_view bytes);
    // The bytes [begin, end) of a file that others are writing: they are there. done_until() gives none of it back.
    MappedFile(const std::string &path, std::size_t begin, std::size_t end);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    const std::uint8_t *data() const { return data_; }
    std::size_t size() const { return size_; }
    const std::string &path() const { return path_; }
    // What lies behind is not looked at.
    void end_at(std::size_t size) { size_ = size; }
    // The pages before `end` are not needed again, but for texts of the last events. They are given back when there are
    // `step` bytes of them.
    void done_until(std::size_t end, std::size_t step = 16u << 20);
    // Nor is any page now; reading begins again.
    void rewind();

  private:
    std::string path_;
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0, dropped_ = 0;
    bool mapped_ = false;     // by this, and all of the file
    void *window_ = nullptr;  // by this, and a part of the file
    std::size_t window_bytes_ = 0;
};

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

// Where a packet's own fields lie. Slot k has what has FieldRole k.
struct PacketLayout {
    Program header;
    std::map<std::uint64_t, Program> contexts;    // by stream class
    std::map<std::uint64_t, Walk> context_walks;  // the same, for who wants all of it
    std::optional<std::array<std::uint8_t, 16>> uuid;
    std::uint64_t last_time = ~std::uint64_t{0};  // of the clock: later ones are no time since 1970 in ns of 64 bits
    bool holds_events = false;  // an event of a packet is never outside of the packet's times: the tracer is known so
};

struct PacketInfo {
    std::size_t offset = 0;  // bytes in the file
    // context_at: where the packet's context begins
    std::uint64_t content_bits = 0, packet_bits = 0, context_at = 0, header_bits = 0;
    std::uint64_t begin = 0, end = 0, sequence = 0, discarded = 0, stream_id = 0, instance = 0;
    bool has_sequence = false, has_discarded = false, has_times = false, has_instance = false;
    std::uint32_t cpu = kNoCpu;
};

// What a stream has to say besides its events, in its own order. Times are raw values of its clock.
class StreamNotes {
  public:
    virtual ~StreamNotes() = default;
    virtual void packet_begins(const PacketInfo &) {}
    virtual void packet_ends(const PacketInfo &) {}
    // count 0: unknown.
    virtual void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) = 0;
    // The rest of the packet, from that bit on, can't be decoded. `counted`: events of it are lost between these times
    // (kNoTime: unknown); else the file ends there.
    virtual void rest_unread(const PacketInfo &, std::uint64_t /*ordinal*/, std::uint64_t /*bits*/, bool /*counted*/,
                             std::int64_t /*from_ns*/, std::int64_t /*until_ns*/) {}
    // What follows its last event (`from_ns` is that one's time; kNoTime: there was none) can't be decoded.
    virtual void damaged(std::int64_t from_ns, const std::string &why) = 0;
    virtual void lost(Loss, const std::string &message) = 0;  // "": nothing to say but the count
};

class Stream {
  public:
    struct File {
        std::shared_ptr<MappedFile> bytes;
        std::vector<std::size_t> order;  // where its packets begin, in the order of their times; empty: as they lie
    };
    Stream(std::vector<File> files, const PacketLayout &layout, StreamDecl decl, std::uint64_t stream_id,
           std::uint64_t frequency)
        : decl(std::move(decl)),
          stream_id(stream_id),
          files_(std::move(files)),
          layout_(&layout),
          frequency_(frequency) {}

    StreamDecl decl;
    std::uint64_t stream_id;
    StreamClass *cls = nullptr;  // set by the reader once the plans exist
    std::uint32_t number = 0;    // the consumer's

    // The next event: time and slots are valid until the next call. False: the stream has ended.
    bool next(StreamNotes &notes);
    // The next events instead, one at least, as many as go into the block and are in one packet. False: the stream has
    // ended.
    bool fill(EventBlock &, StreamNotes &notes);
    // More packets have come, behind those that there were. What was given before and has been read is let go: its
    // events have been consumed, but those of the last block.
    void go_on(std::shared_ptr<MappedFile> more) {
        for (std::size_t i = 0; i < file_ && i < files_.size(); ++i) files_[i].bytes.reset();
        files_.push_back({std::move(more), {}});
    }
    // Before the first event: the plans are made. `give_back`: so many bytes that were read may stay mapped.
    void prepare(std::size_t give_back = 16u << 20);
    std::int64_t time_ns = 0;
    std::uint64_t ordinal = 0;
    const EventClass *event_class = nullptr;
    std::uint64_t bytes_read() const { return bytes_before_ + position_; }
    std::uint64_t clock() const { return clock_; }                  // raw value at the event
    std::uint64_t aligned_count() const { return aligned_count_; }  // events that aligned_events() read
    // where the event's own fields begin; not of one that aligned_events() read
    Cursor fields() const { return {cursor_.packet, fields_at_, cursor_.end}; }
    const PacketInfo &packet() const { return packet_; }
    const MappedFile &file() const { return *files_[file_].bytes; }  // that the packet is in
    const std::uint8_t *packet_bytes() const { return cursor_.packet; }
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
    void lose(StreamNotes &, Loss, const std::string &what) const;
    void past_end(StreamNotes &);
    void report_damage(StreamNotes &);

    std::vector<File> files_;
    const PacketLayout *layout_;
    std::uint64_t frequency_;
    std::size_t file_ = 0, turn_ = 0, position_ = 0, bytes_before_ = 0;  // turn_: in the file's order
    std::size_t give_back_ = 0;
    bool in_packet_ = false, over_ = false, any_packet_ = false;  // over_: the packet has no more events
    std::uint64_t packets_ = 0, events_before_ = 0;               // packets begun; events before this one
    std::uint64_t rest_ = 0;  // the bit from which the packet can't be decoded; 0: it can
    std::string damage_;      // why what follows can't be read; empty: it can
    PacketInfo packet_;
    std::int64_t own_ns_ = kNoTime;  // of the last event that carried its own time
    std::uint64_t last_end_ = 0, last_sequence_ = 0, last_discarded_ = 0, clock_ = 0;
    Cursor cursor_{nullptr, 0, 0};
    std::uint64_t earliest_ = 0, latest_ = ~std::uint64_t{0};  // times that an event of this packet can have
    std::uint64_t fields_at_ = 0;                              // bits
    std::uint64_t aligned_count_ = 0;
    const std::uint8_t *aligned_at_ = nullptr;  // where the next event may be one for aligned_events()
    std::vector<Slot> slots_, header_slots_;
    std::vector<std::uint64_t> registers_;
};

// The `why` of a file that ends inside a packet's header.
constexpr const char *kCutOff = "its header is cut off";
// Reads a packet's header and context at `offset`. False: the file ends before, or what they say is wrong.
bool read_packet(const MappedFile &, std::size_t offset, const PacketLayout &, PacketInfo &, std::string &why,
                 std::vector<std::uint64_t> *registers = nullptr);

}  // namespace opline::ctf
