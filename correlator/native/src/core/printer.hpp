// SPDX-License-Identifier: MIT
// A consumer that prints every event as one line, in merge order: the raw time, and all fields that one slot can hold.
#pragma once
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace opline {

struct PrintFilter {
    std::string names = "*";                                    // glob over event names
    std::int64_t since_ns = 0, until_ns = INT64_MAX;            // [since, until)
    bool since_is_absolute = false, until_is_absolute = false;  // else they count from the first event
    std::uint64_t limit = UINT64_MAX;
};

class Printer final : public EventSink {
  public:
    // Writes to fd, which stays the caller's. Write errors are kept: see error().
    Printer(int fd, PrintFilter filter);
    ~Printer() override;
    Printer(const Printer &) = delete;
    Printer &operator=(const Printer &) = delete;

    ClassPlan add_class(const ClassDecl &) override;
    std::uint32_t add_stream(const StreamDecl &) override;
    void events(const Event *first, const Event *past) override;
    void gap(const Gap &) override;
    bool finish() override;

    std::uint64_t printed() const { return printed_; }
    // True once nothing more will be printed: the limit or the end of the window is reached, or writing failed.
    bool done() const { return printed_ >= filter_.limit || past_end_ || error_ != 0; }
    int error() const { return error_; }  // errno of the first write that failed; 0: none

  private:
    struct Class {
        std::string name;
        bool shown;
        std::vector<std::string> contexts, payload;  // labels "name = "
        std::vector<std::int32_t> context_slots, payload_slots;
    };
    void event(const Event &);
    void flush();
    void value(const Slot &);
    void fields(const std::vector<std::string> &labels, const std::vector<std::int32_t> &slots, const Slot *values);

    int fd_;
    PrintFilter filter_;
    std::deque<Class> classes_;
    std::vector<StreamDecl> streams_;
    std::string buffer_;
    std::uint64_t printed_ = 0;
    std::int64_t first_ns_ = kNoTime;
    bool past_end_ = false;
    int error_ = 0;
};

}  // namespace opline
