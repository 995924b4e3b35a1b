// SPDX-License-Identifier: MIT
// What happens now: records of the BPF programs, as the bridge passes them on (struct block_event in
// tracepoints/block_event.h; the signs kLost and kMark in tracepoints/live_provider.h), to a consumer. They are the
// events that a recording has, with the same names and fields, so a core makes the same of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "event/event.hpp"
#include "feed/event_buffer.hpp"

namespace opline::feed {

class RingFeed {
  public:
    static constexpr std::size_t kRecordSize = 104;
    static constexpr std::size_t kKinds = 14;

    explicit RingFeed(EventSink &to);
    // Records in pieces of any size; an incomplete record waits for its rest.
    void feed(std::string_view bytes);

    std::int64_t first_ns() const { return first_ns_; }  // the first known time; kNoTime: none
    std::int64_t until_ns() const { return until_ns_; }  // all earlier events have arrived; kNoTime: unknown
    std::uint64_t events() const { return events_; }
    std::uint64_t lost() const { return lost_; }
    // The process of each thread seen recently.
    std::unordered_map<std::uint32_t, std::uint32_t> processes() const;

  private:
    struct RecordPlace {
        std::uint8_t offset, size;  // of the member in the record; 0: the thread's name
        bool has_sign;
    };
    struct RecordClass {
        std::uint32_t id = 0;
        std::vector<RecordPlace> wanted;
    };

    void record(const char *at);
    void cgroup(const char *at, std::int64_t ts_ns);

    EventSink &to_;
    std::uint32_t stream_;
    std::array<RecordClass, kKinds> classes_;
    ClassPlan cgroups_;
    std::string path_;  // of a cgroup, as far as it has come
    EventBuffer<20> buffer_;
    std::string rest_;
    std::int64_t first_ns_ = kNoTime, until_ns_ = kNoTime;
    std::uint64_t events_ = 0, lost_ = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> processes_, processes_before_;
};

}  // namespace opline::feed
