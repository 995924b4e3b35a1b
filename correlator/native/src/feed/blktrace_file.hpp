// SPDX-License-Identifier: MIT
// The records of a file of blktrace, version 7, in the byte order of the machine that recorded them. A record: magic
// and version, sequence number, time in ns, sector, bytes, action, thread, device, CPU, error, and the size of what
// follows (a note's text, a remap's devices and a split's sector, big-endian). Source: struct blk_io_trace in the
// kernel's include/uapi/linux/blktrace_api.h, kernel/trace/blktrace.c.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace opline::feed {

struct BlktraceRecord {
    std::int64_t ts_ns = 0;
    std::uint32_t sequence = 0;
    std::uint64_t sector = 0;
    std::uint32_t size = 0, action = 0, tid = 0, dev = 0, cpu = 0;
    std::uint16_t error = 0;
    std::string_view more;  // lies in the file; without the ID of a cgroup

    std::uint8_t number() const { return static_cast<std::uint8_t>(action); }
    std::uint32_t category() const { return action >> 16; }
    bool is_note() const { return category() & (1u << 10); }
    // The order of a device's records: by time, then by the first different field.
    bool before(const BlktraceRecord &other) const;
};

constexpr std::uint64_t kMostBlktraceSectors = std::uint64_t{1} << 55;  // of 512 bytes, in 64 bits

// Big-endian bytes, as many as there are, at most 8.
std::uint64_t big_endian(std::string_view bytes);

class BlktraceFile {
  public:
    static constexpr std::uint8_t kVersion = 7;

    explicit BlktraceFile(std::string_view bytes);
    // The next record, a note too; false: at the end, or where the file is cut off or damaged.
    bool next(BlktraceRecord &record);
    bool swapped() const { return swapped_; }
    std::size_t read() const { return at_; }  // bytes, of whole records
    std::size_t unread() const { return bytes_.size() - at_; }
    static constexpr int kNoRecord = -1;
    // The version, if not the known one; kNoRecord: the file does not begin with a record.
    std::optional<int> other_version() const { return other_version_; }

  private:
    template <class T>
    T number_at(std::size_t offset) const;

    std::string_view bytes_;
    std::size_t at_ = 0;
    bool swapped_ = false;
    std::optional<int> other_version_;
};

}  // namespace opline::feed
