// SPDX-License-Identifier: MIT
// A consumer that writes every event, in merge order: the raw time, and all fields that one slot can hold.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/event_form.hpp"
#include "event/event.hpp"
#include "event/providers.hpp"

namespace opline {

// Which events to print. An empty list means all events; otherwise an event without the field is left out.
struct PrintFilter {
    struct Devices {
        std::uint64_t number = 0, mask = 0;  // kernel-internal
        bool holds(std::uint64_t dev) const { return (dev & mask) == number; }
    };
    std::string form = "text";                                  // text, json, csv
    std::string names = "*";                                    // glob over event names
    std::int64_t since_ns = INT64_MIN, until_ns = INT64_MAX;    // [since, until)
    bool since_is_absolute = false, until_is_absolute = false;  // else relative to the first event
    std::uint64_t limit = UINT64_MAX;
    std::vector<Devices> devices, other_devices;  // events of `devices` only; none of `other_devices`
    std::vector<std::int64_t> pids, tids;
    std::vector<std::string> comms;  // globs
    Providers providers;             // as in a plan
};

// From a JSON object with members of these names. Throws std::runtime_error.
PrintFilter print_filter(const std::string &json);

class Printer final : public EventSink {
  public:
    // Writes to fd; the caller closes fd. Write errors are kept: see error(). Text not written by finish() is dropped:
    // an interrupted program must not wait for a full pipe.
    Printer(int fd, PrintFilter filter);
    Printer(const Printer &) = delete;
    Printer &operator=(const Printer &) = delete;

    ClassPlan add_class(const ClassDecl &) override;
    std::uint32_t add_stream(const StreamDecl &) override;
    void events(const Event *first, const Event *past) override;
    void gap(const Gap &) override;
    bool finish() override;

    std::uint64_t printed() const { return printed_; }
    // Time from the first event to the latest event; kNoTime: no event.
    std::int64_t length_ns() const { return first_ns_ == kNoTime ? kNoTime : last_ns_ - first_ns_; }
    // True once nothing more will be printed: the limit or the end of the window is reached, or writing failed.
    bool done() const { return printed_ >= filter_.limit || past_end_ || error_ != 0; }
    int error() const { return error_; }  // errno of the first failed write; 0: none

  private:
    struct Class {
        WrittenClass written;
        bool shown;
        std::int32_t dev_slot = kNoSlot, old_dev_slot = kNoSlot;
    };
    void event(const Event &);
    bool is_meant(const Class &, const Slot *values) const;
    bool is_before(std::int64_t ts_ns, std::int64_t limit_ns, bool absolute) const;
    void flush();

    int fd_;
    PrintFilter filter_;
    std::unique_ptr<EventForm> form_;
    std::deque<Class> classes_;
    std::vector<StreamDecl> streams_;
    std::string buffer_;
    std::uint64_t printed_ = 0;
    std::int64_t first_ns_ = kNoTime, last_ns_ = kNoTime;
    bool past_end_ = false;
    int error_ = 0;
};

}  // namespace opline
