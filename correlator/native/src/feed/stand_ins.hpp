// SPDX-License-Identifier: MIT
// Events of the kernel's accounting (block_io_start, block_io_done; Linux 6.5) that stand for the issue and the
// completion of requests, in a text that has none of these. The kernel prints them right behind a request's allocation
// and behind its completion (blk_account_io_start(), blk_account_io_done() in block/blk-mq.c). At its end a request has
// no sectors any more and no FLUSH: they are taken from its begin. The device's flush has no start.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "feed/line.hpp"

namespace opline::feed {

struct StandsFor {
    bool issue = false;     // block_io_start does
    bool complete = false;  // block_io_done does
};

class StandIns {
  public:
    explicit StandIns(StandsFor stands_for) : stands_for_(stands_for) {}
    // Makes a line that stands for a step of a request that step. False for a line that is left out: the end of what
    // has no begin here. `number`: of the line. Throws where the text has both.
    bool take(Line &line, std::uint64_t number) {
        if (!stands_for_.issue && !stands_for_.complete) return true;
        refuse_both(line, number);
        return stand_in(line);
    }

  private:
    struct Started {
        std::uint64_t sectors = 0, open = 0;
        std::string_view rwbs;  // of kept_
    };
    void refuse_both(const Line &line, std::uint64_t number) const;
    bool stand_in(Line &line);
    void started(const Line &line);

    const StandsFor stands_for_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Started> started_;  // by device and sector
    std::set<std::string, std::less<>> kept_;                             // rwbs
};

}  // namespace opline::feed
