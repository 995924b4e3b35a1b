// SPDX-License-Identifier: MIT
// Memory for much that is written soon. The first touch of a page costs more than what is written into it: large pieces
// are asked for in huge pages, which the kernel gives where transparent_hugepage is `always` or `madvise`.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace opline {

constexpr std::size_t kHugePage = 2u << 20;

struct Freed {
    void operator()(void *p) const { std::free(p); }
};
using Pages = std::unique_ptr<void, Freed>;

// Not cleared. From kHugePage on as many huge pages as are full. Throws std::bad_alloc.
Pages take_pages(std::size_t bytes);

// For vectors that may become large.
template <class T>
struct PageAllocator {
    using value_type = T;
    PageAllocator() = default;
    template <class U>
    PageAllocator(const PageAllocator<U> &) {}
    T *allocate(std::size_t n) { return static_cast<T *>(take_pages(n * sizeof(T)).release()); }
    void deallocate(T *p, std::size_t) { Freed()(p); }
    bool operator==(const PageAllocator &) const { return true; }
    bool operator!=(const PageAllocator &) const { return false; }
};

// Pieces that stay until all of it goes.
class Arena {
  public:
    Arena() = default;
    Arena(const Arena &) = delete;  // whose pieces would these be?
    Arena &operator=(const Arena &) = delete;
    // Not cleared, aligned for anything. Pieces that are filled side by side don't compete for the same lines of the
    // caches. Throws std::bad_alloc.
    void *take(std::size_t bytes);

  private:
    std::vector<Pages> blocks_;
    unsigned char *next_ = nullptr;
    std::size_t left_ = 0;
};

}  // namespace opline
