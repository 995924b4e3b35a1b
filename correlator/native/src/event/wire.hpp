// SPDX-License-Identifier: MIT
// Events from one process to another: what a front end hands to an EventSink, as bytes through a stream socket.
//
// A message is its length (of what follows), its kind, and its parts, in the byte order of the machine: both processes
// are of one build. Texts are a length and bytes.
//
//   class    name, domain, number of fields, and of each: name, type, scope
//   stream   host, domain, channel, path, instance
//   events   per event: class, stream, CPU, time, and per slot: kind, and its 8 bytes or text
//   gap      stream, kind, begin, end, count, why
//   finish   -
//
// The receiver answers at once: a class with its id, time slot, number of wanted fields, and those; a stream with its
// number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"

namespace opline {

// The other side is gone, or sends senseless data.
struct WireError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The front end's side. Throws WireError.
class WireSink final : public EventSink {
  public:
    explicit WireSink(int socket) : socket_(socket) {}
    ClassPlan add_class(const ClassDecl &) override;
    std::uint32_t add_stream(const StreamDecl &) override;
    void events(const Event *first, const Event *past) override;
    void gap(const Gap &) override;
    bool finish() override;

  private:
    void send_events();
    void send(char kind, const std::string &parts);

    const int socket_;
    std::vector<std::size_t> slots_;  // per class
    std::string events_;              // not sent yet
};

// The consumer's side.
class WireFeed {
  public:
    enum class State : std::uint8_t { kMore, kFinished, kCut };  // kCut: the other side ended before finishing

    WireFeed(int socket, EventSink &to) : socket_(socket), to_(to) {}
    // Takes the received data, or waits for data. Also kMore after a signal. Throws WireError, and the consumer's
    // exceptions.
    State run();

  private:
    class Parts;

    void take(char kind, Parts parts);
    void take_class(Parts &parts);
    void take_stream(Parts &parts);
    void take_events(Parts &parts);
    void take_gap(Parts &parts);

    const int socket_;
    EventSink &to_;
    std::string come_;  // and not taken
    bool finishing_ = false;
    std::vector<std::size_t> slots_of_;  // per class
    std::size_t streams_ = 0;
    std::vector<Event> events_;
    std::vector<Slot> slots_;
};

}  // namespace opline
