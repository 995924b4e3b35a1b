// SPDX-License-Identifier: MIT
// The native reader: CTF traces, memory-mapped, merged by the raw clock, pushed into a Consumer.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event.hpp"

namespace opline::ctf {

// What was wrong with the bytes; every one is counted, none stops the reading of the other streams.
struct ReadLosses {
    std::uint64_t truncated_packets = 0;   // a packet that goes on past the file's end, or an event past its packet's
    std::uint64_t malformed_packets = 0;   // wrong magic, uuid or sizes: the rest of that file is not read
    std::uint64_t packets_out_of_order = 0;
    std::uint64_t unknown_events = 0;      // an event id that the metadata does not have: the rest of that packet is lost
    std::vector<std::string> messages;     // one line each, at most 32
};

class Reader {
  public:
    // Each path is a trace: a folder with `metadata`. Throws Unsupported or Malformed (ctf_types.hpp).
    explicit Reader(const std::vector<std::string> &paths);
    ~Reader();
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    // Declares classes and streams to the consumer. Once, before run().
    void open(Consumer &);
    // Pushes at most max_events. False: there are none left; finish() was called on the consumer.
    bool run(std::uint64_t max_events);

    std::uint64_t bytes_total() const;
    std::uint64_t bytes_read() const;
    const ReadLosses &losses() const;
    // {"host", "domain", "tracer", clock uuid and offset …} of each trace, as a JSON list.
    std::string environment_json() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline::ctf
