// SPDX-License-Identifier: MIT
// Pages of mapped files that are gone: another program has made the file shorter, or its disk cannot read it. The
// kernel answers a read of such a page with SIGBUS (mmap(2)), which ends the process without a word.
#pragma once
#include <cstdint>
#include <string>

namespace opline {

// From here on a read of a lost page finds zeros, in all threads, and the file's name is kept. Only for files mapped
// read-only; every other SIGBUS goes to the earlier handler.
void outlive_lost_pages();

// Keeps the name of a file that had `bytes` when mapped and has fewer now. The rest of the file's last page reads as
// zeros without a signal.
void keep_if_shorter(const std::string &path, std::uint64_t bytes);

// The first file with a lost part since the last call; empty: none.
std::string take_file_with_lost_pages();

}  // namespace opline
