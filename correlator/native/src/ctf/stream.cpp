// SPDX-License-Identifier: MIT
#include "ctf/stream.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opline::ctf {
namespace {

constexpr std::uint64_t kPacketMagic = 0xc1fc1fc1;
constexpr std::uint64_t low_bits(std::uint32_t n) { return n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0}; }

constexpr std::uint64_t kNoCount = ~std::uint64_t{0};  // babeltrace 2.0's own mark of "none": it aborts on it

}  // namespace

MappedFile::MappedFile(const std::string &path, bool huge) : path_(path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw Malformed("cannot read " + path + ": " + std::strerror(errno));
    struct stat st;
    if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        ::close(fd);
        throw Malformed("cannot read " + path + ": it is no regular file");
    }
    size_ = static_cast<std::size_t>(st.st_size);
    if (size_ != 0) {
        void *p = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            const int e = errno;
            ::close(fd);
            throw Malformed("cannot map " + path + ": " + std::strerror(e));
        }
        ::madvise(p, size_, MADV_SEQUENTIAL);
        if (huge) ::madvise(p, size_, MADV_HUGEPAGE);
        data_ = static_cast<const std::uint8_t *>(p);
        mapped_ = true;
    }
    ::close(fd);
}

MappedFile::MappedFile(std::string path, std::string_view bytes)
    : path_(std::move(path)), data_(reinterpret_cast<const std::uint8_t *>(bytes.data())), size_(bytes.size()) {}

MappedFile::MappedFile(const std::string &path, std::size_t begin, std::size_t end) : path_(path), size_(end - begin) {
    const std::size_t page = begin & ~std::size_t{4095};
    window_bytes_ = end - page;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw Malformed("cannot read " + path + ": " + std::strerror(errno));
    window_ = ::mmap(nullptr, window_bytes_, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(page));
    const int e = errno;
    ::close(fd);
    if (window_ == MAP_FAILED) throw Malformed("cannot map " + path + ": " + std::strerror(e));
    data_ = static_cast<const std::uint8_t *>(window_) + (begin - page);
}

MappedFile::~MappedFile() {
    if (window_) ::munmap(window_, window_bytes_);
    if (mapped_) ::munmap(const_cast<std::uint8_t *>(data_), size_);
}

void MappedFile::done_until(std::size_t end, std::size_t step) {
    auto page = [](std::size_t at) { return at & ~std::size_t{4095}; };
    end = page(end);
    if (!mapped_ || end < dropped_ + step) return;
    // With a step before them: who read a text there since mapped a page again, which may be a huge one.
    const std::size_t begin = page(dropped_ - std::min(dropped_, step));
    ::madvise(const_cast<std::uint8_t *>(data_) + begin, end - begin, MADV_DONTNEED);
    dropped_ = end;
}

void MappedFile::rewind() {
    if (mapped_) ::madvise(const_cast<std::uint8_t *>(data_), size_, MADV_DONTNEED);
    dropped_ = 0;
}

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

void Stream::lose(StreamNotes &notes, Loss loss, const std::string &what) const {
    notes.lost(loss, files_[file_].bytes->path() + ": packet at byte " + std::to_string(packet_.offset) + ": " + what);
}

bool Stream::next_packet(StreamNotes &notes) {
    for (;;) {
        if (file_ >= files_.size()) return false;
        MappedFile &file = *files_[file_].bytes;
        const auto &order = files_[file_].order;
        if (in_packet_) {
            notes.packet_ends(packet_);
            in_packet_ = false;
            go_on_with_all();
            ++turn_;
            if (order.empty()) {
                position_ = packet_.offset + static_cast<std::size_t>(packet_.packet_bits / 8);
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
        if (!read_packet(file, position_, *layout_, info, why, &registers_)) {
            packet_.offset = position_;
            lose(notes, why == kCutOff ? Loss::kTruncatedPacket : Loss::kMalformedPacket,
                 why + "; the rest of the file is not read");
            damage_ = why;
            position_ = file.size();
            turn_ = order.size();
            continue;
        }
        packet_ = info;
        // How many were lost before a first packet is not known: the tracer may have counted since long before (a
        // rotated chunk, a snapshot).
        if (any_packet_) {
            if (info.has_discarded && info.discarded != last_discarded_)
                notes.discarded(last_end_, info.end, credible_count(info.discarded - last_discarded_), false);
            if (const std::uint64_t step = info.sequence - last_sequence_; info.has_sequence && step > 1)
                notes.discarded(last_end_, info.begin, credible_count(step - 1), true);
        } else if (info.has_discarded && info.discarded > 0) {
            notes.discarded(info.begin, info.end, 0, false);
        }
        any_packet_ = true;
        last_end_ = info.end;
        last_sequence_ = info.sequence;
        last_discarded_ = info.discarded;
        clock_ = info.begin;
        const bool holds = layout_->holds_events && info.has_times && info.begin <= info.end;
        earliest_ = holds ? info.begin : 0;
        latest_ = holds ? info.end : ~std::uint64_t{0};
        in_packet_ = true;
        over_ = false;
        ++packets_;
        events_before_ = ordinal;
        const std::uint64_t available = (file.size() - info.offset) * 8;
        if (info.packet_bits > available) damage_ = "the file ends before the packet does";
        if (info.content_bits > available)
            lose(notes, Loss::kTruncatedPacket, damage_ + "; its events up to there are read");
        cursor_ = {file.data() + info.offset, info.header_bits, std::min(info.content_bits, available)};
        go_on_aligned();
        notes.packet_begins(packet_);
        return true;
    }
}

// An event that is cut off because its file is has been counted with the packet.
void Stream::past_end(StreamNotes &notes) {
    if (damage_.empty()) lose(notes, Loss::kTruncatedPacket, "an event goes on past the packet's end");
}

// The header of the event at the cursor. False: the packet ends in it.
bool Stream::header(std::uint64_t &id) {
    Cursor &c = cursor_;
    if (cls->header == HeaderKind::kOther) {
        for (auto &s : header_slots_) s = Slot();
        if (!decode(cls->header_program, c, header_slots_.data(), registers_)) return false;
        id = header_slots_[0].u;
        for (std::size_t i = 0; i < cls->timestamp_bits.size(); ++i) {
            const Slot &s = header_slots_[i + 1];
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
    if (rest_ == 0) return;
    // Where a file is cut off, all before is good. Else bytes are damaged, and the damage is met some time after it
    // began: what was read of the packet is not sure either.
    const bool sure = !damage_.empty() || !packet_.has_times;
    const std::int64_t from_ns = sure && ordinal > events_before_ ? time_ns
                                 : packet_.has_times              ? to_ns(packet_.begin)
                                                                  : kNoTime;
    notes.rest_unread(packet_, packets_ - 1, rest_, damage_.empty(), from_ns,
                      packet_.has_times ? to_ns(packet_.end) : kNoTime);
    rest_ = 0;
}

// One event at the cursor, whatever it is. False: the packet is at its end (or unreadable from here on).
bool Stream::event(StreamNotes &notes, Slot *slots) {
    go_on_with_all();
    Cursor &c = cursor_;
    c.at = (c.at + cls->header_align_bits - 1) & ~std::uint64_t{cls->header_align_bits - 1};
    if (c.at >= c.end) return false;
    const std::uint64_t begin = c.at;
    std::uint64_t id = 0;
    if (!header(id)) {
        rest_ = begin;
        past_end(notes);
        return false;
    }
    if (clock_ < earliest_ || clock_ > latest_) {  // these bytes are no event's, and what led here may be none either
        rest_ = begin;
        lose(notes, Loss::kUnknownEvent,
             "an event's time is outside of the packet's times; the rest of the packet is not read");
        return false;
    }
    if (id >= cls->events.size() || !cls->events[id].known) {
        rest_ = begin;
        lose(notes, Loss::kUnknownEvent,
             "event id " + std::to_string(id) + " is not in the metadata; the rest of the packet is not read");
        return false;
    }
    event_class = &cls->events[id];
    fields_at_ = c.at;
    for (auto slot : event_class->absent) slots[slot] = Slot();
    if (!decode(event_class->program, c, slots, registers_) || c.at == begin) {
        rest_ = begin;
        past_end(notes);
        return false;
    }
    if (event_class->time_slot >= 0) own_ns_ = slots[event_class->time_slot].i;
    time_ns = own_ns_ != kNoTime ? own_ns_ : to_ns(clock_);  // sent on later than it happened, as its neighbours
    ++ordinal;
    go_on_aligned();
    return true;
}

// Events of this packet until it is over or the block is full.
void Stream::events(EventBlock &out, StreamNotes &notes) {
    for (aligned_events(out); !out.full(); aligned_events(out)) {
        Slot *slots = out.next_slots();
        if (!event(notes, slots)) {
            over_ = true;
            return;
        }
        Event *at = out.next();
        *at = Event{event_class->cls, 0, number, packet_.cpu, time_ns, slots};
        out.grown(at + 1, slots + event_class->slots);
    }
}

void Stream::report_damage(StreamNotes &notes) {
    report_rest(notes);
    if (damage_.empty()) return;
    notes.damaged(ordinal > 0 ? time_ns : kNoTime, damage_);
    damage_.clear();
}

void Stream::prepare(std::size_t give_back) {
    give_back_ = give_back;
    if (slots_.size() < cls->slot_count + 1) slots_.resize(cls->slot_count + 1);
    if (header_slots_.size() < cls->timestamp_bits.size() + 1) header_slots_.resize(cls->timestamp_bits.size() + 1);
    if (registers_.size() < cls->registers) registers_.resize(cls->registers);
}

bool Stream::next(StreamNotes &notes) {
    for (;;) {
        if (in_packet_ && event(notes, slots_.data())) return true;
        report_damage(notes);
        if (!next_packet(notes)) {
            report_damage(notes);
            return false;
        }
    }
}

bool Stream::fill(EventBlock &out, StreamNotes &notes) {
    for (out.clear();;) {
        if (in_packet_ && !over_) events(out, notes);
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
