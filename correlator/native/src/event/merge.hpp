// SPDX-License-Identifier: MIT
// The merge of data streams: the source with the least (time, rank) first. Ranks are distinct and are the tie-break:
// host, domain (UST before kernel), channel, stream instance, path. Within a source its own order holds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "event/event.hpp"

namespace opline {

template <class Source>
class Merge {
  public:
    struct Head {
        std::int64_t time_ns;
        std::uint32_t rank;
        Source *source;
        bool operator<(const Head &o) const { return time_ns != o.time_ns ? time_ns < o.time_ns : rank < o.rank; }
    };

    bool empty() const { return heap_.empty(); }
    Head &top() { return heap_.front(); }
    // The first after the top: as long as the top's next event is earlier, the top stays the top.
    Head *second() { return first_of(1, 2); }
    // The first after top and second.
    Head *third() {
        const std::size_t second = heap_.size() > 2 && heap_[2] < heap_[1] ? 2 : 1;
        Head *below = first_of(2 * second + 1, 2 * second + 2), *beside = first_of(3 - second, 3 - second);
        return !below || (beside && *beside < *below) ? beside : below;
    }
    void add(Head head) {
        heap_.push_back(head);
        std::push_heap(heap_.begin(), heap_.end(), [](const Head &a, const Head &b) { return b < a; });
    }
    // New ranks for the present streams, in the same order.
    template <class Rank>
    void rank_anew(Rank &&rank) {
        for (Head &head : heap_) head.rank = rank(head.source);
    }
    // For streams whose time has grown, or that are at their end: call for the second first, then for the top.
    void settle(Head *head) {
        for (auto i = static_cast<std::size_t>(head - heap_.data());;) {
            std::size_t least = i;
            const std::size_t left = 2 * i + 1;
            if (left < heap_.size() && heap_[left] < heap_[least]) least = left;
            if (left + 1 < heap_.size() && heap_[left + 1] < heap_[least]) least = left + 1;
            if (least == i) return;
            std::swap(heap_[i], heap_[least]);
            i = least;
        }
    }
    // The stream has no more events.
    void remove(Head *head) {
        *head = heap_.back();
        heap_.pop_back();
        settle(head);
    }

  private:
    Head *first_of(std::size_t i, std::size_t k) {
        if (i >= heap_.size()) return nullptr;
        return &heap_[k < heap_.size() && heap_[k] < heap_[i] ? k : i];
    }
    std::vector<Head> heap_;
};

// For each stream its rank.
inline std::vector<std::uint32_t> stream_ranks(const std::vector<const StreamDecl *> &streams) {
    std::vector<std::size_t> order(streams.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    auto key = [&](std::size_t i) {
        const StreamDecl &d = *streams[i];
        return std::tie(d.host, d.domain, d.channel, d.instance, d.path);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<std::uint32_t> ranks(streams.size());
    for (std::uint32_t r = 0; r < order.size(); ++r) ranks[order[r]] = r;
    return ranks;
}

// "/x/ch_0", "ch_12_3" → "ch": LTTng's data stream files are called CHANNEL_CPU[_FILE].
inline std::string channel_of(const std::string &path) {
    std::string name = path.substr(path.rfind('/') + 1);
    for (int i = 0; i < 2; ++i) {
        const auto cut = name.rfind('_');
        if (cut == std::string::npos || cut == 0 || cut + 1 == name.size() ||
            name.find_first_not_of("0123456789", cut + 1) != std::string::npos)
            break;
        name.resize(cut);
    }
    return name;
}

}  // namespace opline
