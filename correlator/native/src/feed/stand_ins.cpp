// SPDX-License-Identifier: MIT
#include "feed/stand_ins.hpp"

#include <stdexcept>

namespace opline::feed {
namespace {

constexpr std::uint32_t line_event(std::string_view name) {
    std::uint32_t i = 0;
    while (kLineEvents[i].name != name) ++i;
    return i;
}
constexpr std::uint32_t kIssueLine = line_event("block_rq_issue"), kCompleteLine = line_event("block_rq_complete"),
                        kStartLine = line_event("block_io_start"), kDoneLine = line_event("block_io_done");
constexpr std::size_t kMostStarted = std::size_t{1} << 20, kMostKept = 4096, kLongestRwbs = 16;
constexpr std::string_view kDeviceFlush = "FF";

}  // namespace

void StandIns::refuse_both(const Line &line, std::uint64_t number) const {
    if ((stands_for_.issue && line.event == kIssueLine) || (stands_for_.complete && line.event == kCompleteLine))
        throw std::runtime_error("line " + std::to_string(number) +
                                 ": requests are issued or completed here, and only started or done (block_io_start, "
                                 "block_io_done) before: give the two parts one by one");
}

bool StandIns::stand_in(Line &line) {
    if (line.event == (stands_for_.issue ? kStartLine : kIssueLine)) {
        line.event = kIssueLine;
        if (line.number == 0 && !line.rwbs.empty() && line.rwbs.front() == 'F') line.rwbs = kDeviceFlush;
        started(line);
    } else if (line.event == (stands_for_.complete ? kDoneLine : kCompleteLine)) {
        line.event = kCompleteLine;
        if (stands_for_.issue && line.rwbs.substr(0, kDeviceFlush.size()) == kDeviceFlush) return false;
        const auto found = started_.find({line.dev, line.sector});
        if (found == started_.end()) return line.sector != 0 || line.number != 0;
        const Started &start = found->second;
        if (stands_for_.issue || line.number == 0) line.number = start.sectors;
        if (!start.rwbs.empty()) line.rwbs = start.rwbs;
        if (--found->second.open == 0) started_.erase(found);
        if (line.rwbs == kDeviceFlush) line.sector = ~std::uint64_t{0};  // as in the completion
    }
    return true;
}

void StandIns::started(const Line &line) {
    if (started_.size() > kMostStarted) started_.erase(started_.begin());
    Started &started = started_[{line.dev, line.sector}];
    started.sectors = line.number;
    ++started.open;
    auto kept = kept_.find(line.rwbs);
    if (kept == kept_.end() && kept_.size() < kMostKept && line.rwbs.size() <= kLongestRwbs)
        kept = kept_.insert(std::string(line.rwbs)).first;
    started.rwbs = kept == kept_.end() ? std::string_view() : std::string_view(*kept);
}

}  // namespace opline::feed
