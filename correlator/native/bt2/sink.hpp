// SPDX-License-Identifier: MIT
// The state of a `sink.opline.ops` component: message iterators, one per connected port, merged by the raw clock.
#pragma once
#include <babeltrace2/babeltrace.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"
#include "event/merge.hpp"
#include "fields.hpp"

namespace opline::bt2 {

struct SinkError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct StreamState {
    StreamDecl decl;
    std::uint32_t number = 0;  // the consumer's
    std::uint32_t cpu = kNoCpu;
    std::uint64_t frequency = 1'000'000'000;
    std::uint64_t packets = 0;                         // begun
    bool packet_timed = false;                         // the packet says when it began
    std::int64_t packet_ns = kNoTime;                  // the packet's begin; else of its last event
    std::int64_t last_ns = kNoTime, own_ns = kNoTime;  // of its last event; of the last that carried its own time
};

// Raw times compare only within one boot: all clocks of a graph have the same uuid, as far as they have one.
class Clocks {
  public:
    void add(const bt_clock_class *clock, const std::string &stream);

  private:
    std::string uuid_, stream_;
};

// The event classes of all ports, by address.
using Classes = FlatMap<std::uintptr_t, std::unique_ptr<EventClassState>>;

// What to do about streams that can't be read to their end.
struct Damage {
    bool tolerant = false;                     // count them and go on
    std::map<std::string, std::string> known;  // stream name → why it ends too early, found before reading
    // stream name → packets, from 0, that were cut short: not all of it can be read
    std::map<std::string, std::vector<std::uint64_t>> rests;
};

// The messages of one upstream iterator, which belongs to this object.
class Upstream {
  public:
    explicit Upstream(const bt_message_iterator *iterator) : iterator_(iterator) {}
    ~Upstream();
    Upstream(const Upstream &) = delete;
    Upstream &operator=(const Upstream &) = delete;

    enum class Status : std::uint8_t { kMessages, kEnd, kAgain, kError };
    // kMessages: take() has one.
    Status fill();
    // The next message, which is the caller's.
    const bt_message *take() { return messages_[at_++]; }
    // The error that fill() met; the caller releases it or gives it back to the thread. nullptr: it left none.
    const bt_error *take_error() { return std::exchange(error_, nullptr); }

  private:
    const bt_message_iterator *iterator_;
    const bt_error *error_ = nullptr;  // met after the messages that we have
    bt_message_array_const messages_ = nullptr;
    std::uint64_t count_ = 0, at_ = 0;
};

// One upstream message iterator, and the event that it stands at.
class Port {
  public:
    Port(const bt_message_iterator *iterator, EventSink &consumer, Clocks &clocks, Classes &classes,
         const Damage &damage)
        : upstream_(iterator), consumer_(consumer), clocks_(clocks), classes_(classes), damage_(damage) {}
    ~Port();
    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    enum class Status : std::uint8_t { kEvent, kEnd, kAgain };
    // Goes on to the next event. Throws SinkError.
    Status advance();
    // The first stream's: a port of source.ctf.fs has one only.
    const StreamDecl *decl() const { return stream_ ? &stream_->decl : nullptr; }
    std::int64_t time_ns = 0;
    // The slots of the current event are read on demand, at the latest here.
    Event event();

  private:
    Status fail();
    Status end_damaged(const std::string &why);
    void message(const bt_message *);
    void stream_beginning(const bt_stream *);
    void discarded(const bt_message *, bool packets);
    void packet_ends(const bt_message *);
    StreamState &stream_of(const bt_stream *);
    EventClassState &class_of(const bt_event_class *, Domain);
    std::int64_t to_ns(const bt_clock_snapshot *, const StreamState &) const;
    void release_current();

    Upstream upstream_;
    EventSink &consumer_;
    Clocks &clocks_;
    Classes &classes_;
    const Damage &damage_;
    const bt_message *current_ = nullptr;  // an event message that we own
    const bt_event *event_ = nullptr;
    EventClassState *class_ = nullptr;
    StreamState *stream_ = nullptr;
    bool slots_read_ = false;
    std::vector<Slot> slots_;
    FlatMap<std::uintptr_t, std::unique_ptr<StreamState>> streams_;
};

}  // namespace opline::bt2
