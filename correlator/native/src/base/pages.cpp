// SPDX-License-Identifier: MIT
#include "base/pages.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace opline {
namespace {

constexpr std::size_t kFirstBlock = 1u << 16;  // of an arena: most runs are short
constexpr std::size_t kPage = 4096, kApart = 5 * 64;

}  // namespace

Pages take_pages(std::size_t bytes) {
    const bool huge = bytes >= kHugePage;
    void *p = nullptr;
    if (::posix_memalign(&p, huge ? kHugePage : alignof(std::max_align_t), bytes) != 0) throw std::bad_alloc();
    if (huge) ::madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // small ones do, too
    return Pages(p);
}

void *Arena::take(std::size_t bytes) {
    constexpr std::size_t kAlign = alignof(std::max_align_t);
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    if (bytes > left_) {
        left_ = std::max(bytes, blocks_.empty() ? kFirstBlock : kHugePage);
        blocks_.push_back(take_pages(left_));
        next_ = static_cast<unsigned char *>(blocks_.back().get());
    }
    void *const out = next_;
    next_ += bytes;
    left_ -= bytes;
    // Of equal size, and a multiple of a page, they would all begin, and go on, in the same set of each cache.
    const std::size_t apart = std::min(bytes >= kPage ? kApart : 0, left_);
    next_ += apart;
    left_ -= apart;
    return out;
}

}  // namespace opline
