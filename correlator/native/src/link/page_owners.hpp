// SPDX-License-Identifier: MIT
// Who wrote each dirty page last: what a write-back that comes later is charged to. Bounded; what has to go is counted.
#pragma once
#include <cstdint>
#include <deque>

#include "base/flat_map.hpp"
#include "link/file_maps.hpp"

namespace opline {

constexpr std::uint64_t kPageSectors = 8, kPageBytes = kPageSectors * 512;  // 4 KiB

struct PageOwner {
    std::uint64_t op = 0;  // op_ref(); 0: none
    std::int64_t written_ns = 0;
    std::uint64_t turn = 0;
};

class PageOwners {
  public:
    static constexpr std::size_t kLimit = std::size_t{1} << 20;  // 4 GiB of dirty pages

    // file: kNoFile if the op's file is unknown: the page then counts for every file.
    void wrote(std::uint32_t file, std::uint64_t page, std::uint64_t op, std::int64_t at_ns) {
        pages_.put({file, page}, {op, at_ns, ++turn_});
        order_.push_back({{file, page}, turn_});
        while (pages_.size() > kLimit || order_.size() > 2 * kLimit) {
            const auto [place, turn] = order_.front();
            order_.pop_front();
            const PageOwner *oldest = pages_.find(place);
            if (!oldest || oldest->turn != turn) continue;  // written anew, or written back
            pages_.erase(place);
            ++evicted_;
        }
    }
    // The last writer. `any` is set if the writer may have written another file's page.
    PageOwner owner(std::uint32_t file, std::uint64_t page, bool &any) const {
        const PageOwner *own = pages_.find({file, page}), *other = pages_.find({kNoFile, page});
        any = other && (!own || own->turn < other->turn);
        return any ? *other : own ? *own : PageOwner{};
    }
    // The page is on its way to the disk.
    void clean(std::uint32_t file, std::uint64_t page) {
        pages_.erase({file, page});
        pages_.erase({kNoFile, page});
    }
    bool empty() const { return pages_.empty(); }
    std::uint64_t evicted() const { return evicted_; }

  private:
    struct Place {
        std::uint32_t file = 0;
        std::uint64_t page = 0;
        bool operator==(const Place &o) const { return file == o.file && page == o.page; }
    };
    struct PageHash {
        std::uint64_t operator()(const Place &p) const { return mix64(p.page ^ (std::uint64_t{p.file} << 40)); }
    };
    FlatMap<Place, PageOwner, PageHash> pages_;
    std::deque<std::pair<Place, std::uint64_t>> order_;
    std::uint64_t turn_ = 0, evicted_ = 0;
};

}  // namespace opline
