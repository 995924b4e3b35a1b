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
    // The bytes are to stay. `unordered`: one file that has the records of all CPUs, each in its order.
    BlktraceMerge(const std::vector<std::string_view> &files, bool unordered, Notes notes);
    // Valid until the next call; nullptr: that was all, or a file is of no version that can be read.
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
    std::vector<std::size_t> heap_;     // files that have a next one; behind its end the one whose record has gone
    std::vector<BlktraceRecord> all_;   // of a file of all CPUs
    std::size_t at_ = 0;
};

}  // namespace opline::feed
