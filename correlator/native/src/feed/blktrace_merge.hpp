// SPDX-License-Identifier: MIT
// The records of blktrace's files in the order of their times. Of each file the next record is taken as soon as the one
// before has gone, and the notes between them with it.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "feed/blktrace_file.hpp"

namespace opline::feed {

class BlktraceMerge {
  public:
    using Notes = std::function<void(const BlktraceRecord &, bool swapped)>;
    // The bytes must stay valid. `unordered`: one file with the records of all CPUs, each CPU in order.
    BlktraceMerge(const std::vector<std::string_view> &files, bool unordered, Notes notes);
    // Valid until the next call; nullptr: the end, or a file of an unknown version.
    const BlktraceRecord *next();
    const std::vector<BlktraceFile> &files() const { return files_; }

  private:
    void begin();
    bool advance(std::size_t file);
    bool after(std::size_t one, std::size_t other) const;

    std::vector<BlktraceFile> files_;
    bool unordered_, begun_ = false;
    Notes notes_;
    std::vector<BlktraceRecord> next_;  // of each file
    std::vector<std::size_t> heap_;    // files with a next record; behind the end: the file of the record just returned
    std::vector<BlktraceRecord> all_;  // of a file of all CPUs
    std::size_t at_ = 0;
};

}  // namespace opline::feed
