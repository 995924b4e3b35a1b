// SPDX-License-Identifier: MIT
// The native reader: CTF traces, memory-mapped, merged by the raw clock, pushed into a Consumer.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ctf_losses.hpp"
#include "event.hpp"

namespace opline::ctf {

class Reader {
  public:
    // Each path is a trace: a folder with `metadata`. Throws Unsupported or Malformed (ctf_types.hpp).
    explicit Reader(const std::vector<std::string> &paths);
    ~Reader();
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    // Declares classes and streams to the consumer. Once, before run(). With two threads or more, decoding and merging have one of
    // their own; the consumer is called in run() only, and can't tell.
    void open(Consumer &, unsigned threads = 1);
    // Pushes max_events, with threads some more, or lets the consumer finish. False: there are none left, and it has finished.
    bool run(std::uint64_t max_events);

    std::uint64_t bytes_total() const;
    std::uint64_t bytes_read() const;
    const ReadLosses &losses() const;  // ends the reading
    // {"host", "domain", "tracer", clock uuid and offset …} of each trace, as a JSON list.
    std::string environment_json() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline::ctf
