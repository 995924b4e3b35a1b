// SPDX-License-Identifier: MIT
#include "ctf_stream.hpp"

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
constexpr std::size_t kDropStep = 16u << 20;

std::uint64_t value_of(const std::vector<Slot> &slots, std::int32_t slot, std::uint64_t otherwise) {
    return slot < 0 ? otherwise : slots[static_cast<std::size_t>(slot)].u;
}

}  // namespace

MappedFile::MappedFile(const std::string &path) : path_(path) {
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
        data_ = static_cast<const std::uint8_t *>(p);
    }
    ::close(fd);
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<std::uint8_t *>(data_), size_);
}

void MappedFile::done_until(std::size_t end) {
    end &= ~std::size_t{4095};
    if (end < dropped_ + kDropStep) return;
    ::madvise(const_cast<std::uint8_t *>(data_) + dropped_, end - dropped_, MADV_DONTNEED);
    dropped_ = end;
}

bool read_packet(const MappedFile &file, std::size_t offset, const Metadata &meta, const PacketFields &fields,
                 PacketInfo &out, std::string &why) {
    std::vector<Slot> slots(fields.slot_count + 1);
    std::vector<std::uint64_t> registers(fields.program.registers);
    Cursor c{file.data() + offset, 0, (file.size() - offset) * 8};
    if (!decode(fields.program, c, slots.data(), registers)) {
        why = "its header is cut off";
        return false;
    }
    if (value_of(slots, fields.magic, kPacketMagic) != kPacketMagic) {
        why = "its magic is wrong";
        return false;
    }
    out = PacketInfo{};
    out.offset = offset;
    out.header_bits = c.at;
    out.content_bits = value_of(slots, fields.content_size, c.end);
    out.packet_bits = value_of(slots, fields.packet_size, std::max(out.content_bits, std::uint64_t{0}));
    out.stream_id = value_of(slots, fields.stream_id, 0);
    out.instance = value_of(slots, fields.stream_instance, 0);
    out.begin = value_of(slots, fields.begin, 0);
    out.end = value_of(slots, fields.end, 0);
    out.has_times = fields.begin >= 0 && fields.end >= 0;
    out.sequence = value_of(slots, fields.sequence, 0);
    out.has_sequence = fields.sequence >= 0;
    out.discarded = value_of(slots, fields.discarded, 0);
    out.has_discarded = fields.discarded >= 0;
    if (fields.cpu >= 0) out.cpu = static_cast<std::uint32_t>(value_of(slots, fields.cpu, kNoCpu));
    if (meta.streams.find(out.stream_id) == meta.streams.end()) {
        why = "its stream id " + std::to_string(out.stream_id) + " is not in the metadata";
        return false;
    }
    if (out.packet_bits == 0 || out.content_bits < out.header_bits || out.packet_bits < out.content_bits || out.packet_bits % 8 != 0) {
        why = "its sizes are wrong";
        return false;
    }
    return true;
}

void Stream::complain(ReadLosses &losses, const std::string &what) const {
    if (losses.messages.size() < 32)
        losses.messages.push_back(files_[file_]->path() + ": packet at byte " + std::to_string(packet_.offset) + ": " + what);
}

bool Stream::next_packet(Consumer &consumer, ReadLosses &losses) {
    for (;;) {
        if (file_ >= files_.size()) return false;
        MappedFile &file = *files_[file_];
        if (in_packet_) {
            position_ = packet_.offset + static_cast<std::size_t>(packet_.packet_bits / 8);
            in_packet_ = false;
            file.done_until(std::min(position_, file.size()));
        }
        if (position_ >= file.size()) {
            bytes_before_ += file.size();
            position_ = 0;
            if (++file_ >= files_.size()) return false;
            continue;
        }
        PacketInfo info;
        std::string why;
        if (!read_packet(file, position_, meta_, fields_, info, why)) {
            packet_.offset = position_;
            ++(why == "its header is cut off" ? losses.truncated_packets : losses.malformed_packets);
            complain(losses, why + "; the rest of the file is not read");
            damage_ = why;
            position_ = file.size();
            continue;
        }
        packet_ = info;
        if (any_packet_) {
            if (info.has_times && info.begin < last_end_) ++losses.packets_out_of_order;
            if (info.has_sequence && info.sequence > last_sequence_ + 1)
                consumer.discarded(number, to_ns(last_end_), to_ns(info.begin), info.sequence - last_sequence_ - 1, true);
            if (info.has_discarded && info.discarded > last_discarded_)
                consumer.discarded(number, to_ns(last_end_), to_ns(info.end), info.discarded - last_discarded_, false);
        } else if (info.has_discarded && info.discarded > 0) {
            consumer.discarded(number, kNoTime, to_ns(info.end), info.discarded, false);
        }
        any_packet_ = true;
        last_end_ = info.end;
        last_sequence_ = info.sequence;
        last_discarded_ = info.discarded;
        clock_ = info.begin;
        in_packet_ = true;
        const std::uint64_t available = (file.size() - info.offset) * 8;
        if (info.content_bits > available) {
            ++losses.truncated_packets;
            damage_ = "the file ends before the packet does";
            complain(losses, damage_ + "; its events up to there are read");
        }
        cursor_ = {file.data() + info.offset, info.header_bits, std::min(info.content_bits, available)};
        return true;
    }
}

// An event that is cut off because its file is has been counted with the packet.
void Stream::past_end(ReadLosses &losses) {
    if (!damage_.empty()) return;
    ++losses.truncated_packets;
    complain(losses, "an event goes on past the packet's end");
}

// One event at the cursor. False: the packet is at its end (or unreadable from here on).
bool Stream::event(ReadLosses &losses) {
    Cursor &c = cursor_;
    c.at = (c.at + cls->header_align_bits - 1) & ~std::uint64_t{cls->header_align_bits - 1};
    if (c.at >= c.end) return false;
    auto take = [&](std::uint32_t bits, std::uint32_t align) -> std::uint64_t {
        c.at = (c.at + align - 1) & ~std::uint64_t{align - 1};
        if (c.end < c.at || c.end - c.at < bits) {
            c.at = c.end + 1;
            return 0;
        }
        const auto v = read_bits(c.packet, c.at, bits, cls->big_endian);
        c.at += bits;
        return v;
    };
    auto advance_clock = [&](std::uint64_t value, std::uint32_t bits) {
        const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
        std::uint64_t t = (clock_ & ~mask) | value;
        if (value < (clock_ & mask)) t += mask + 1;  // wrapped
        clock_ = t;
    };
    std::uint64_t id;
    if (cls->header == HeaderKind::kCompact) {
        if (!cls->big_endian && c.at % 8 == 0 && c.end - c.at >= 32) {  // both in one word
            std::uint32_t word;
            std::memcpy(&word, c.packet + c.at / 8, 4);
            id = word & 31;
            if (id != 31) {
                c.at += 32;
                advance_clock(word >> 5, 27);
            } else {
                c.at += 5;
            }
        } else {
            id = take(5, 1);
            if (id != 31) advance_clock(take(27, 1), 27);
        }
        if (id == 31) {
            id = take(32, cls->header_align_bits);
            clock_ = take(64, cls->header_align_bits);
        }
    } else {
        id = take(16, cls->header_align_bits);
        if (id != 65535) {
            advance_clock(take(32, cls->header_align_bits), 32);
        } else {
            id = take(32, cls->header_align_bits);
            clock_ = take(64, cls->header_align_bits);
        }
    }
    if (c.at > c.end) {
        past_end(losses);
        return false;
    }
    if (id >= cls->events.size() || !cls->events[id].known) {
        ++losses.unknown_events;
        complain(losses, "event id " + std::to_string(id) + " is not in the metadata; the rest of the packet is not read");
        return false;
    }
    event_class = &cls->events[id];
    for (auto slot : event_class->absent) slots_[static_cast<std::size_t>(slot)] = Slot();
    if (!decode(event_class->program, c, slots_.data(), registers_)) {
        past_end(losses);
        return false;
    }
    time_ns = to_ns(clock_);
    if (event_class->time_slot >= 0) time_ns = slots_[static_cast<std::size_t>(event_class->time_slot)].i;
    return true;
}

void Stream::report_damage(Consumer &consumer) {
    if (damage_.empty()) return;
    consumer.damaged(number, ordinal > 0 ? time_ns : kNoTime, damage_);
    damage_.clear();
}

bool Stream::next(Consumer &consumer, ReadLosses &losses) {
    if (slots_.size() < cls->slot_count + 1) slots_.resize(cls->slot_count + 1);
    if (registers_.size() < cls->registers) registers_.resize(cls->registers);
    for (;;) {
        if (in_packet_ && event(losses)) {
            ++ordinal;
            return true;
        }
        report_damage(consumer);
        if (!next_packet(consumer, losses)) {
            report_damage(consumer);
            return false;
        }
    }
}

}  // namespace opline::ctf
