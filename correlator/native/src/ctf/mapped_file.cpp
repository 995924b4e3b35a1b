// SPDX-License-Identifier: MIT
#include "ctf/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {

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
    // With one step before: a later read of a text there has mapped a page again, perhaps a huge page.
    const std::size_t begin = page(dropped_ - std::min(dropped_, step));
    ::madvise(const_cast<std::uint8_t *>(data_) + begin, end - begin, MADV_DONTNEED);
    dropped_ = end;
}

void MappedFile::rewind() {
    if (mapped_) ::madvise(const_cast<std::uint8_t *>(data_), size_, MADV_DONTNEED);
    dropped_ = 0;
}

}  // namespace opline::ctf
