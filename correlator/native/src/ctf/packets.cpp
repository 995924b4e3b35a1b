// SPDX-License-Identifier: MIT
#include "ctf/packets.hpp"

#include <algorithm>

namespace opline::ctf {
namespace {

constexpr std::uint64_t kPacketMagic = 0xc1fc1fc1;
// babeltrace 2.0 uses this number for "none", and aborts on a packet with this number
constexpr std::uint64_t kNoCount = ~std::uint64_t{0};

}  // namespace

bool read_packet(const MappedFile &file, std::size_t offset, const PacketLayout &layout, PacketInfo &out,
                 std::string &why, std::vector<std::uint64_t> *for_events) {
    std::array<Slot, static_cast<std::size_t>(FieldRole::kCount)> slots;
    auto slot = [&](FieldRole r) -> const Slot & { return slots[static_cast<std::size_t>(r)]; };
    auto value = [&](FieldRole r, std::uint64_t otherwise) { return slot(r).present() ? slot(r).u : otherwise; };
    std::vector<std::uint64_t> of_packet;
    std::vector<std::uint64_t> &registers = for_events ? *for_events : of_packet;
    Cursor c{file.data() + offset, 0, (file.size() - offset) * 8};
    auto read = [&](const Program &program) {
        if (registers.size() < program.registers) registers.resize(program.registers);
        if (!decode(program, c, slots.data(), registers)) why = kCutOff;
        return why.empty();
    };
    why.clear();
    if (!read(layout.header)) return false;
    if (value(FieldRole::kMagic, kPacketMagic) != kPacketMagic) {
        why = "its magic is wrong";
        return false;
    }
    const Slot uuid = slot(FieldRole::kUuid);
    if (layout.uuid && uuid.present() &&
        (uuid.kind != Slot::Kind::kString ||
         uuid.str() != std::string_view(reinterpret_cast<const char *>(layout.uuid->data()), layout.uuid->size()))) {
        why = "its uuid is another trace's";
        return false;
    }
    out = PacketInfo{};
    out.stream_id = value(FieldRole::kStreamClassId, 0);
    const auto context = layout.contexts.find(out.stream_id);
    if (context == layout.contexts.end()) {
        why = "its stream id " + std::to_string(out.stream_id) + " is not in the metadata";
        return false;
    }
    out.context_at = c.at;
    if (!read(context->second)) return false;
    out.offset = offset;
    out.header_bits = c.at;
    // Without sizes the packet is the rest of the file; either size does for both.
    out.packet_bits = value(FieldRole::kPacketSize, value(FieldRole::kContentSize, c.end));
    out.content_bits = value(FieldRole::kContentSize, out.packet_bits);
    out.instance = value(FieldRole::kStreamId, 0);
    out.has_instance = slot(FieldRole::kStreamId).present();
    out.begin = value(FieldRole::kBegin, 0);
    out.end = value(FieldRole::kEnd, 0);
    out.has_times = slot(FieldRole::kBegin).present() && slot(FieldRole::kEnd).present();
    out.sequence = value(FieldRole::kSequence, 0);
    out.has_sequence = slot(FieldRole::kSequence).present();
    out.discarded = value(FieldRole::kDiscarded, 0);
    out.has_discarded = slot(FieldRole::kDiscarded).present();
    out.cpu = static_cast<std::uint32_t>(value(FieldRole::kCpu, kNoCpu));
    const auto none = [&](FieldRole r) { return slot(r).present() && slot(r).u == kNoCount; };
    const bool no_time =
        none(FieldRole::kBegin) || none(FieldRole::kEnd) || std::max(out.begin, out.end) > layout.last_time;
    if (none(FieldRole::kDiscarded) || none(FieldRole::kSequence) || none(FieldRole::kStreamId) || no_time) {
        why = layout.last_time == 0 ? "its clock's offset is more than 64 bits of nanoseconds"
                                    : "its counters or times are wrong";
        return false;
    }
    if (out.packet_bits == 0 || out.content_bits < out.header_bits || out.packet_bits < out.content_bits ||
        out.packet_bits % 8 != 0) {
        why = "its sizes are wrong";
        return false;
    }
    return true;
}

void Packets::lose(StreamNotes &notes, Loss loss, const std::string &what) const {
    notes.lost(loss, file().path() + ": packet at byte " + std::to_string(info_.offset) + ": " + what);
}

std::pair<std::uint64_t, std::uint64_t> Packets::times() const {
    if (!layout_->holds_events || !info_.has_times || info_.begin > info_.end) return {0, ~std::uint64_t{0}};
    return {info_.begin, info_.end};
}

// The number of events lost before a first packet is unknown: the tracer may have counted since much earlier (a
// snapshot, or a chunk without its predecessor).
void Packets::count_missing(const PacketInfo &next, StreamNotes &notes) {
    if (begun_ == 0 && !goes_on_) {
        if (next.has_discarded && next.discarded > 0) notes.discarded(next.begin, next.end, 0, false);
        return;
    }
    if (next.has_discarded && next.discarded != info_.discarded)
        notes.discarded(info_.end, next.end, credible_count(next.discarded - info_.discarded), false);
    if (begun_ == 0) return;  // packets between two traces: Survey::find_missing
    if (const std::uint64_t step = next.sequence - info_.sequence; next.has_sequence && step > 1)
        notes.discarded(info_.end, next.begin, credible_count(step - 1), true);
}

bool Packets::next(StreamNotes &notes, std::vector<std::uint64_t> &registers) {
    for (;;) {
        if (file_ >= files_.size()) return false;
        MappedFile &file = *files_[file_].bytes;
        const auto &order = files_[file_].order;
        if (inside_) {
            notes.packet_ends(info_);
            inside_ = false;
            ++turn_;
            if (order.empty()) {
                position_ = info_.offset + static_cast<std::size_t>(info_.packet_bits / 8);
                file.done_until(std::min(position_, file.size()), give_back_);
            }
        }
        if (!order.empty()) position_ = turn_ < order.size() ? order[turn_] : file.size();
        if (position_ >= file.size()) {
            bytes_before_ += file.size();
            position_ = turn_ = 0;
            if (++file_ >= files_.size()) return false;
            continue;
        }
        PacketInfo info;
        std::string why;
        if (!read_packet(file, position_, *layout_, info, why, &registers)) {
            info_.offset = position_;
            lose(notes, why == kCutOff ? Loss::kTruncatedPacket : Loss::kMalformedPacket,
                 why + "; the rest of the file is not read");
            damage_ = why;
            position_ = file.size();
            turn_ = order.size();
            continue;
        }
        count_missing(info, notes);
        info_ = info;
        inside_ = true;
        ++begun_;
        if (info.packet_bits > bits_there()) damage_ = "the file ends before the packet does";
        if (info.content_bits > bits_there())
            lose(notes, Loss::kTruncatedPacket, damage_ + "; its events up to there are read");
        notes.packet_begins(info_);
        return true;
    }
}

}  // namespace opline::ctf
