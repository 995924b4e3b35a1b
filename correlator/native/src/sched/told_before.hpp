// SPDX-License-Identifier: MIT
// What the trace says of single waits, by thread and time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"

namespace opline {

template <class What>
class ToldBefore {
  public:
    struct ToldAt {
        std::int64_t at_ns;
        What what;
    };
    // In order of time.
    void add(std::uint32_t host, std::int64_t tid, std::int64_t at_ns, const What &what) {
        Told &told = threads_[host_key(host, tid)];
        told.push_back({at_ns, what});
        if (told.size() > kMostKept) told.erase(told.begin(), told.begin() + kMostKept / 2);
    }
    // The last told fact up to until_ns; nullptr: none.
    const ToldAt *last(std::uint32_t host, std::int64_t tid, std::int64_t until_ns) const {
        const Told *told = threads_.find(host_key(host, tid));
        if (!told) return nullptr;
        const auto next = after(*told, until_ns);
        return next == told->begin() ? nullptr : &*std::prev(next);
    }
    // All after `since_ns` and up to then.
    template <class Each>  // void(const ToldAt &)
    void each(std::uint32_t host, std::int64_t tid, std::int64_t since_ns, std::int64_t until_ns, Each each) const {
        const Told *told = threads_.find(host_key(host, tid));
        if (!told) return;
        for (auto at = after(*told, since_ns); at != told->end() && at->at_ns <= until_ns; ++at) each(*at);
    }
    // No later question is about an earlier time. The last fact before `ns` stays: a wait may continue across `ns`.
    void forget_before(std::int64_t ns) {
        threads_.for_each([ns](std::uint64_t, Told &told) {
            const auto next = after(told, ns);
            if (next != told.begin()) told.erase(told.begin(), std::prev(next));
        });
    }

  private:
    static constexpr std::size_t kMostKept = 1u << 18;  // of a thread
    using Told = std::vector<ToldAt>;
    static typename Told::const_iterator after(const Told &told, std::int64_t ns) {
        return std::upper_bound(told.begin(), told.end(), ns,
                                [](std::int64_t at, const ToldAt &o) { return at < o.at_ns; });
    }
    FlatMap<std::uint64_t, Told> threads_;
};

}  // namespace opline
