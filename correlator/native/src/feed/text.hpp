// SPDX-License-Identifier: MIT
// A text's lines to a consumer, as its bytes come: block events, and what the tracer says that it has lost.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"
#include "feed/event_buffer.hpp"
#include "feed/line.hpp"
#include "feed/stand_ins.hpp"

namespace opline::feed {

class TextFeed {
  public:
    explicit TextFeed(EventSink &to, StandsFor = {});
    // Bytes in whatever pieces; a line that is cut off waits for its rest.
    void feed(std::string_view bytes);
    // There are no more bytes. The consumer is not finished by this.
    void end();

    std::uint64_t events() const { return events_; }
    std::uint64_t lines() const { return lines_; }
    std::uint64_t unreadable() const { return unreadable_; }

    struct Unread {
        std::uint64_t number;  // of the line, from 1
        std::string text;
    };
    // The first lines that could not be read.
    const std::vector<Unread> &first_unread() const { return unread_; }

  private:
    enum Member : std::uint8_t { kDev, kSector, kNumber, kRwbs, kError, kOldDev, kOldSector, kTid, kComm };
    struct LineClass {
        std::uint32_t id = 0;
        std::vector<Member> wanted;
    };

    struct Times {                // what shows that they are differences
        bool from_zero = false;   // the first event's time is 0
        bool small = true;        // all times are less than a minute
        std::uint64_t falls = 0;  // times that are less than the one before
    };

    void declare();
    void line(std::string_view text);
    void take(Line &line);
    void not_an_event(std::string_view text);
    void tell_lost(std::int64_t until_ns);
    static Slot slot_of(const Line &line, Member member);

    EventSink &to_;
    StandIns stand_ins_;
    std::uint32_t stream_;
    std::array<LineClass, kLineEvents.size()> classes_;
    EventBuffer<10> buffer_;
    std::string rest_;  // of the last piece: a line without its end
    std::uint64_t events_ = 0, lines_ = 0, unreadable_ = 0;
    std::uint64_t lost_ = 0;  // since the last event
    Times times_;
    bool closed_ = false;        // some line had the bracket at its end
    bool unknown_lost_ = false;  // some besides, how many is not said
    std::int64_t last_ns_ = kNoTime;
    std::vector<Unread> unread_;
};

}  // namespace opline::feed
