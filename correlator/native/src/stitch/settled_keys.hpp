// SPDX-License-Identifier: MIT
// The keys of settled ops, the newest of them: to tell a straggler from a stranger. Written for every op, asked for
// only where a key names no op: that is when the index is brought up to date.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"

namespace opline {

template <class Key, class Hash>
class SettledKeys {
  public:
    static constexpr std::uint64_t kKept = 1u << 16;

    void add(const Key &key) {
        if (next_ < kKept) ring_.push_back(key);
        else ring_[next_ % kKept] = key;
        ++next_;
    }
    bool contains(const Key &key) {
        if (next_ == 0) return false;
        const std::uint64_t oldest = next_ < kKept ? 0 : next_ - kKept;
        if (indexed_ < oldest || index_.size() > 2 * kKept) {
            index_.clear();
            indexed_ = oldest;
        }
        for (; indexed_ < next_; ++indexed_) index_.put(ring_[indexed_ % kKept], indexed_);
        const std::uint64_t *at = index_.find(key);
        return at && *at >= oldest;
    }

  private:
    std::vector<Key> ring_;
    std::uint64_t next_ = 0, indexed_ = 0;
    FlatMap<Key, std::uint64_t, Hash> index_;  // → place of the last addition
};

}  // namespace opline
