// SPDX-License-Identifier: MIT
// A queue in one array, whose n-th element is found by a mask.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace opline {

// T is default-constructible. References are valid until the next push_back().
template <class T>
class Ring {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    const T &operator[](std::size_t i) const { return cells_[(first_ + i) & mask_]; }
    const T &front() const { return cells_[first_]; }
    void push_back(T value) {
        if (size_ > mask_) grow();
        cells_[(first_ + size_++) & mask_] = std::move(value);
    }
    void pop_front() {
        first_ = (first_ + 1) & mask_;
        --size_;
    }

  private:
    [[gnu::noinline]] void grow() {
        std::vector<T> wider(2 * cells_.size());
        for (std::size_t i = 0; i < size_; ++i) wider[i] = std::move(cells_[(first_ + i) & mask_]);
        cells_.swap(wider);
        mask_ = cells_.size() - 1;
        first_ = 0;
    }
    std::vector<T> cells_ = std::vector<T>(16);
    std::size_t mask_ = 15, first_ = 0, size_ = 0;
};

}  // namespace opline
