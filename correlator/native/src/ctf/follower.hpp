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
    // Takes in the packets that have been written since. False: what has come can't be put behind what has been pushed
    // (there are other event classes now, or events from before): the traces are to be read anew, by another. Throws
    // Unsupported or Malformed.
    bool grow();
    // Pushes max_events of those before `until_ns` that have been taken in. False: there are none left. Later calls do
    // not ask for less.
    bool run(std::int64_t until_ns, std::uint64_t max_events);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline::ctf
