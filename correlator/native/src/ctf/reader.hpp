// SPDX-License-Identifier: MIT
// The native reader: CTF traces, memory-mapped, merged by the raw clock, pushed into a EventSink.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctf/losses.hpp"
#include "event/event.hpp"

namespace opline::ctf {

struct Trace;

// A cluster's facts about a trace: the host's name, and the knots of the map to the cluster's clock.
struct HostClock {
    std::string host;  // "": as the trace says
    std::vector<std::pair<std::int64_t, std::int64_t>> knots;
};

class Reader {
  public:
    // Each path is a trace: a folder with `metadata`. `cpus`: number of the machine's CPUs, from the recording; 0:
    // unknown. Throws Unsupported or Malformed (ctf/metadata/types.hpp).
    // `hosts`: one for each path, or none. `going_on`: paths whose earlier parts were removed on purpose.
    explicit Reader(const std::vector<std::string> &paths, std::uint32_t cpus = 0,
                    const std::vector<HostClock> &hosts = {}, const std::vector<std::string> &going_on = {});
    // The same for loaded traces. Classes declared by another reader are not declared again: both readers have the same
    // consumer.
    explicit Reader(std::vector<std::shared_ptr<Trace>> traces, std::uint32_t cpus = 0);
    ~Reader();
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    // Declares classes and streams to the consumer. Once, before run(). With two threads or more, a separate thread
    // decodes and merges; the consumer is only called in run(), and sees no difference.
    void open(EventSink &, unsigned threads = 1);
    // Pushes max_events (with threads perhaps more), or lets the consumer finish. False: no events are left, and the
    // consumer has finished.
    bool run(std::uint64_t max_events);

    std::uint64_t bytes_total() const;
    std::uint64_t bytes_read() const;
    std::uint64_t aligned_count() const;  // events of the fast path (ctf/aligned_events.cpp); ends the reading
    const ReadLosses &losses() const;     // ends the reading
    // Missing streams, and missing first packets: {"streams": number of existing streams, "missing": [{"stream",
    // "kernel", "begin_ns", "end_ns", "packets"}], "kernel_cpus": {host: [CPU]}}.
    std::string survey_json() const;
    // Instead of open() and run(): the changes for babeltrace2 to read the same as run(). {"files": {path: {"keep":
    // bytes, "patches": [[byte, value, bytes, big-endian]], "order": [[begin, end]]}}, "damaged": {path: why}, "rests":
    // {path: [packet]}}, the last two by the path of a stream's first file.
    std::string mendings_json();
    // {"host", "domain", "tracer", clock uuid and offset …} of each trace, as a JSON list.
    std::string environment_json() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline::ctf
