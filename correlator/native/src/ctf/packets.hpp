// SPDX-License-Identifier: MIT
// The packets of one stream, in order, and what is missing between them.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctf/decode/plan.hpp"
#include "ctf/losses.hpp"
#include "ctf/mapped_file.hpp"
#include "event/event.hpp"

namespace opline::ctf {

// The places of a packet's own fields. Slot k belongs to FieldRole k.
struct PacketLayout {
    Program header;
    std::map<std::uint64_t, Program> contexts;    // by stream class
    std::map<std::uint64_t, Walk> context_walks;  // the same with all fields
    std::optional<std::array<std::uint8_t, 16>> uuid;
    std::uint64_t last_time = ~std::uint64_t{0};  // of the clock: later values are no time since 1970 in 64-bit ns
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

// Notes of a stream besides its events, in the stream's order. Times are raw values of the stream's clock.
class StreamNotes {
  public:
    virtual ~StreamNotes() = default;
    virtual void packet_begins(const PacketInfo &) {}
    virtual void packet_ends(const PacketInfo &) {}
    // count 0: unknown.
    virtual void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) = 0;
    // The rest of the packet, from bit `bits` on, cannot be decoded. `counted`: the packet's events between these times
    // are lost (kNoTime: unknown); else the file ends there.
    virtual void rest_unread(const PacketInfo &, std::uint64_t /*ordinal*/, std::uint64_t /*bits*/, bool /*counted*/,
                             std::int64_t /*from_ns*/, std::int64_t /*until_ns*/) {}
    // The bytes after the last event cannot be decoded. `from_ns`: the time of this event; kNoTime: no event.
    virtual void damaged(std::int64_t from_ns, const std::string &why) = 0;
    virtual void lost(Loss, const std::string &message) = 0;  // "": nothing to say but the count
};

// The `why` of a file with an end inside a packet's header.
constexpr const char *kCutOff = "its header is cut off";
// Reads a packet's header and context at `offset`. False: the file ends before, or the contents are wrong.
bool read_packet(const MappedFile &, std::size_t offset, const PacketLayout &, PacketInfo &, std::string &why,
                 std::vector<std::uint64_t> *registers = nullptr);

class Packets {
  public:
    struct File {
        std::shared_ptr<MappedFile> bytes;
        std::vector<std::size_t> order;  // the begins of the packets, in order of time; empty: in file order
    };
    Packets(std::vector<File> files, const PacketLayout &layout) : files_(std::move(files)), layout_(&layout) {}

    // Ends the current packet and begins the next; registers: for the packet's events. False: no packets are left.
    bool next(StreamNotes &, std::vector<std::uint64_t> &registers);
    // Adds packets behind the known packets. Releases the files already read.
    void go_on(std::shared_ptr<MappedFile> more) {
        for (std::size_t i = 0; i < file_ && i < files_.size(); ++i) files_[i].bytes.reset();
        files_.push_back({std::move(more), {}});
    }
    // Before the first packet: the packet before is in another trace, ends at `end`, and had counted `discarded`
    // events.
    void goes_on_from(std::uint64_t end, std::uint64_t discarded) {
        goes_on_ = true;
        info_.end = end;
        info_.discarded = discarded;
    }
    // Limit of read bytes that stay mapped.
    void give_back(std::size_t bytes) { give_back_ = bytes; }

    bool inside() const { return inside_; }  // of a packet
    const PacketInfo &info() const { return info_; }
    const MappedFile &file() const { return *files_[file_].bytes; }  // the file with the current packet
    const std::uint8_t *bytes() const { return file().data() + info_.offset; }
    std::uint64_t bits_there() const { return (file().size() - info_.offset) * 8; }  // of the packet, or more
    std::uint64_t begun() const { return begun_; }
    std::uint64_t bytes_read() const { return bytes_before_ + position_; }
    // The earliest and the latest possible time of the packet's events.
    std::pair<std::uint64_t, std::uint64_t> times() const;
    // The reason why the following bytes cannot be read; empty: the bytes can be read.
    const std::string &damage() const { return damage_; }
    void forget_damage() { damage_.clear(); }
    void lose(StreamNotes &, Loss, const std::string &what) const;

  private:
    void count_missing(const PacketInfo &, StreamNotes &);

    std::vector<File> files_;
    const PacketLayout *layout_;
    std::size_t file_ = 0, turn_ = 0, position_ = 0, bytes_before_ = 0;  // turn_: in the file's order
    std::size_t give_back_ = 0;
    bool inside_ = false, goes_on_ = false;  // goes_on_: continues a stream of another trace
    std::uint64_t begun_ = 0;
    std::string damage_;
    PacketInfo info_;
};

}  // namespace opline::ctf
