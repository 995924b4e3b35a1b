// SPDX-License-Identifier: MIT
// blktrace's files, one of each CPU or one of all, to a consumer: block events in the order of their times.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event/event.hpp"
#include "feed/blktrace_merge.hpp"
#include "feed/event_buffer.hpp"
#include "feed/plugs.hpp"

namespace opline::feed {

class BlktraceFeed {
  public:
    // The bytes must stay valid. `unordered`: one file with the records of all CPUs, each CPU in order.
    BlktraceFeed(EventSink &to, const std::vector<std::string_view> &files, bool unordered);
    // Feeds about `most` events; false: the end, or a file of an unknown version.
    bool run(std::uint64_t most);

    const std::vector<BlktraceFile> &files() const { return merge_.files(); }
    std::uint64_t events() const { return events_; }
    std::size_t bytes() const;
    std::int64_t origin_ns() const { return origin_ns_; }  // of the time of day; kNoTime: no note
    const Plugs &plugs() const { return plugs_; }

  private:
    static constexpr std::size_t kKinds = 12;
    enum Member : std::uint8_t { kDev, kSector, kRwbs, kNumber, kError, kOldDev, kOldSector, kNewSector, kTid, kComm };
    struct BlktraceClass {
        std::uint32_t id = 0;
        std::vector<Member> wanted;
    };

    void declare();
    void note(const BlktraceRecord &record, bool swapped);
    void record(const BlktraceRecord &record);
    void count(const BlktraceRecord &record);
    void plug(const BlktraceRecord &record);
    void push(const BlktraceRecord &record, std::size_t kind);
    Slot slot_of(const BlktraceRecord &record, Member member, const std::string *name) const;

    EventSink &to_;
    BlktraceMerge merge_;
    std::uint32_t stream_;
    std::array<std::array<BlktraceClass, 2>, kKinds> classes_;  // [0]: without the thread's name; [1]: with the name
    std::array<std::string, 256> letters_;
    EventBuffer<10> buffer_;
    std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::int64_t>> before_;  // of each CPU: number, time
    std::unordered_map<std::uint32_t, std::string> names_;
    std::unordered_map<std::uint32_t, bool> issuing_;  // devices with issued requests
    Plugs plugs_;
    std::uint64_t events_ = 0;
    std::int64_t origin_ns_ = kNoTime;
};

}  // namespace opline::feed
