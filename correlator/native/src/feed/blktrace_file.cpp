// SPDX-License-Identifier: MIT
#include "feed/blktrace_file.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

namespace opline::feed {
namespace {

constexpr std::uint32_t kMagic = 0x65617400, kMagicBits = 0xFFFFFF00;
constexpr std::size_t kSize = 48;  // of a record
constexpr std::uint32_t kCgroupBit = 1u << 8;
constexpr std::size_t kCgroupBytes = 8;

template <class T>
T reversed(T value) {
    if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
    else if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
    else return static_cast<T>(__builtin_bswap16(value));
}

}  // namespace

bool BlktraceRecord::before(const BlktraceRecord &o) const {
    if (ts_ns != o.ts_ns) return ts_ns < o.ts_ns;
    return std::tie(sequence, sector, size, action, tid, dev, cpu, error, more) <
           std::tie(o.sequence, o.sector, o.size, o.action, o.tid, o.dev, o.cpu, o.error, o.more);
}

std::uint64_t big_endian(std::string_view bytes) {
    std::uint64_t found = 0;
    for (const char byte : bytes.substr(0, 8)) found = found << 8 | static_cast<unsigned char>(byte);
    return found;
}

template <class T>
T BlktraceFile::number_at(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + at_ + offset, sizeof value);
    return swapped_ ? reversed(value) : value;
}

BlktraceFile::BlktraceFile(std::string_view bytes) : bytes_(bytes) {
    if (bytes_.empty()) return;
    const bool begins = bytes_.size() >= sizeof(std::uint32_t);
    if (begins && (number_at<std::uint32_t>(0) & kMagicBits) == kMagic) return;
    swapped_ = begins;
    if (begins && (number_at<std::uint32_t>(0) & kMagicBits) == kMagic) return;
    other_version_ = kNoRecord;
}

bool BlktraceFile::next(BlktraceRecord &record) {
    if (other_version_ || unread() < kSize) return false;
    const auto magic = number_at<std::uint32_t>(0);
    if (magic != (kMagic | kVersion)) {
        if ((magic & kMagicBits) == kMagic) other_version_ = static_cast<int>(magic & ~kMagicBits);
        return false;
    }
    const auto ts_ns = number_at<std::uint64_t>(8);
    const std::size_t more = number_at<std::uint16_t>(46);
    record.sector = number_at<std::uint64_t>(16);
    if (unread() - kSize < more || record.sector > kMostBlktraceSectors ||
        ts_ns > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return false;
    record.sequence = number_at<std::uint32_t>(4);
    record.ts_ns = static_cast<std::int64_t>(ts_ns);
    record.size = number_at<std::uint32_t>(24);
    record.action = number_at<std::uint32_t>(28);
    record.tid = number_at<std::uint32_t>(32);
    record.dev = number_at<std::uint32_t>(36);
    record.cpu = number_at<std::uint32_t>(40);
    record.error = number_at<std::uint16_t>(44);
    record.more = bytes_.substr(at_ + kSize, more);
    if (!record.is_note() && record.action & kCgroupBit) record.more.remove_prefix(std::min(kCgroupBytes, more));
    at_ += kSize + more;
    return true;
}

}  // namespace opline::feed
