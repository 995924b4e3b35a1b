// SPDX-License-Identifier: MIT
// Files in memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace opline::ctf {

// A file, mapped for reading. Throws Malformed with the system's reason. `huge`: pages not yet in the page cache come
// as huge pages, if the kernel can; map and read such files one at a time.
class MappedFile {
  public:
    MappedFile(const std::string &path, bool huge);
    // Bytes in memory, which must outlive the object; the path is for messages.
    MappedFile(std::string path, std::string_view bytes);
    // The existing bytes [begin, end) of a file still being written. done_until() releases none of the bytes.
    MappedFile(const std::string &path, std::size_t begin, std::size_t end);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    const std::uint8_t *data() const { return data_; }
    std::size_t size() const { return size_; }
    const std::string &path() const { return path_; }
    // Ignores the bytes after `size`.
    void end_at(std::size_t size) { size_ = size; }
    // Pages before `end` are no longer needed, except for texts of the last events. Releases the pages as soon as they
    // have `step` bytes.
    void done_until(std::size_t end, std::size_t step = 16u << 20);
    // Nor is any page now; reading begins again.
    void rewind();

  private:
    std::string path_;
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0, dropped_ = 0;
    bool mapped_ = false;     // mapped here, the whole file
    void *window_ = nullptr;  // mapped here, a part of the file
    std::size_t window_bytes_ = 0;
};

}  // namespace opline::ctf
