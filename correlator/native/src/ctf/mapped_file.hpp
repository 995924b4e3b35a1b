// SPDX-License-Identifier: MIT
// Files in memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace opline::ctf {

// A file, mapped for reading. Throws Malformed with the system's reason. `huge`: what is not in the page cache yet goes
// there in huge pages, if the kernel can; whoever maps these maps each at once.
class MappedFile {
  public:
    MappedFile(const std::string &path, bool huge);
    // What is in memory already, and stays there longer than this does; the path is for messages.
    MappedFile(std::string path, std::string_view bytes);
    // The bytes [begin, end) of a file that others are writing: they are there. done_until() gives none of it back.
    MappedFile(const std::string &path, std::size_t begin, std::size_t end);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    const std::uint8_t *data() const { return data_; }
    std::size_t size() const { return size_; }
    const std::string &path() const { return path_; }
    // What lies behind is not looked at.
    void end_at(std::size_t size) { size_ = size; }
    // The pages before `end` are not needed again, but for texts of the last events. They are given back when there are
    // `step` bytes of them.
    void done_until(std::size_t end, std::size_t step = 16u << 20);
    // Nor is any page now; reading begins again.
    void rewind();

  private:
    std::string path_;
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0, dropped_ = 0;
    bool mapped_ = false;     // by this, and all of the file
    void *window_ = nullptr;  // by this, and a part of the file
    std::size_t window_bytes_ = 0;
};

}  // namespace opline::ctf
