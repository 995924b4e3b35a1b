// SPDX-License-Identifier: MIT
// Reads CTF traces while they are written: whole packets, as they come, merged by the raw clock into a EventSink, which
// never finishes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace opline::ctf {

class Follower {
  public:
    // Each path is a trace, as of Reader. Throws Unsupported or Malformed.
    explicit Follower(const std::vector<std::string> &paths);
    ~Follower();
    Follower(const Follower &) = delete;
    Follower &operator=(const Follower &) = delete;

    // Declares all classes to the consumer. Once, before all else.
    void open(EventSink &);
    // Takes in the newly written packets. False: the new events do not fit behind the pushed events (new event classes,
    // or earlier times): a new Follower has to read the traces again. Throws Unsupported or Malformed.
    bool grow();
    // Pushes up to max_events of the events before `until_ns`. False: none are left. `until_ns` never decreases.
    bool run(std::int64_t until_ns, std::uint64_t max_events);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline::ctf
