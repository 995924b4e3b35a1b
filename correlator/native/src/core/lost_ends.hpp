// SPDX-License-Identifier: MIT
// Intervals in which the begin or the end of an op can have been lost. Where a whole op ends and another begins with
// the same key in such an interval, the two look like one: its latency would be wrong. Events that no op begins or ends
// with (block events, threads' states) leave its latency exact, however many of them are lost.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/lost_intervals.hpp"
#include "event/event.hpp"

namespace opline {

class LostEnds {
  public:
    // Streams are numbered in the order in which they are added.
    void add_stream(const StreamDecl &s) { of_stream_.push_back(source_of(s.host, s.domain, s.channel)); }
    // A point of an op was in the stream; numbered: in an event numbered by a collector.
    void point(std::uint32_t stream, bool numbered) {
        sources_[of_stream_[stream]].points = true;
        if (numbered) sources_[kNumbers].points = true;
    }
    void lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns) {
        sources_[of_stream_[stream]].lost.add(begin_ns, end_ns);
    }
    // Loss in a channel's streams; the streams may be added later.
    void lost_in(const std::string &host, Domain domain, const std::string &channel, std::int64_t begin_ns,
                 std::int64_t end_ns) {
        sources_[source_of(host, domain, channel)].lost.add(begin_ns, end_ns);
    }
    void lost_by_number(std::int64_t begin_ns, std::int64_t end_ns) { sources_[kNumbers].lost.add(begin_ns, end_ns); }
    void lost_anywhere(std::int64_t begin_ns, std::int64_t end_ns) { sources_[kAnywhere].lost.add(begin_ns, end_ns); }

    bool overlap(std::int64_t begin_ns, std::int64_t end_ns) const {
        for (const Losses &s : sources_)
            if (s.points && s.lost.overlap(begin_ns, end_ns)) return true;
        return false;
    }

  private:
    struct Losses {
        bool points = false;  // some have come from there
        LostIntervals lost;
    };
    std::size_t source_of(const std::string &host, Domain domain, const std::string &channel) {
        const auto [found, added] = channels_.try_emplace({host, domain, channel}, sources_.size());
        if (added) sources_.emplace_back();
        return found->second;
    }
    static constexpr std::size_t kAnywhere = 0, kNumbers = 1;
    std::vector<Losses> sources_{{true, {}}, {}};
    std::map<std::tuple<std::string, Domain, std::string>, std::size_t> channels_;  // → sources_
    std::vector<std::size_t> of_stream_;                                            // → sources_
};

}  // namespace opline
