// SPDX-License-Identifier: MIT
#include "feed/text.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace opline::feed {
namespace {

constexpr std::size_t kShown = 3;              // unreadable lines, of which each is shown
constexpr std::size_t kShownBytes = 120;       // of each
constexpr std::size_t kLongestLine = 1 << 20;  // what is longer is no line of a trace

std::string_view stripped(std::string_view text) {
    constexpr std::string_view kSpaces = " \t\n\v\f\r";
    const std::size_t from = text.find_first_not_of(kSpaces);
    return from == std::string_view::npos ? std::string_view()
                                          : text.substr(from, text.find_last_not_of(kSpaces) + 1 - from);
}

}  // namespace

TextFeed::TextFeed(EventSink &to, StandsFor stands_for) : to_(to), stand_ins_(stands_for), buffer_(to) {
    StreamDecl stream;
    stream.domain = Domain::kKernel;
    stream.channel = "text";
    stream_ = to_.add_stream(stream);
    declare();
}

void TextFeed::declare() {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
        const LineEvent &event = kLineEvents[i];
        ClassDecl decl;
        decl.name = event.name;
        decl.domain = Domain::kKernel;
        std::vector<Member> members;
        auto field = [&](const char *name, Member member, FieldType type = FieldType::kUnsigned) {
            decl.fields.push_back({name, type, FieldScope::kPayload});
            members.push_back(member);
        };
        field("dev", kDev);
        field("sector", kSector);
        field(event.extra == Extra::kSplit ? "new_sector" : "nr_sector", kNumber);
        field("rwbs", kRwbs, FieldType::kString);
        if (event.extra == Extra::kError) field("error", kError, FieldType::kSigned);
        if (event.extra == Extra::kOld) {
            field("old_dev", kOldDev);
            field("old_sector", kOldSector);
        }
        field("tid", kTid, FieldType::kSigned);
        field("comm", kComm, FieldType::kString);
        const ClassPlan plan = to_.add_class(decl);
        classes_[i].id = plan.id;
        for (const std::uint32_t wanted : plan.wanted) classes_[i].wanted.push_back(members[wanted]);
    }
}

void TextFeed::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto *end = static_cast<const char *>(std::memchr(bytes.data(), '\n', bytes.size()));
        const std::size_t size = end ? static_cast<std::size_t>(end - bytes.data()) : bytes.size();
        if (!end || !rest_.empty()) {
            if (rest_.size() + size > kLongestLine) throw std::runtime_error("a line of more than a mebibyte");
            rest_.append(bytes.data(), size);
        }
        if (end) {
            if (rest_.empty()) {
                line(bytes.substr(0, size));
            } else {  // its text goes with it: nothing may point there any more
                line(rest_);
                buffer_.flush();
                rest_.clear();
            }
        }
        bytes.remove_prefix(end ? size + 1 : size);
    }
    buffer_.flush();
}

void TextFeed::end() {
    if (!rest_.empty()) line(rest_);
    buffer_.flush();
    rest_.clear();
    if (last_ns_ != kNoTime) tell_lost(last_ns_);
}

void TextFeed::line(std::string_view text) {
    ++lines_;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    Line found;
    // The kernel puts a name or an error in brackets at a line's end: where other lines have it, this one was cut off.
    if (parse_line(text, found) && !(found.open && closed_)) {
        closed_ = closed_ || !found.open;
        take(found);
    } else {
        not_an_event(text);
    }
}

void TextFeed::take(Line &line) {
    if (!stand_ins_.take(line, lines_)) return;
    // perf script puts its events in order: small times that fall back again and again are differences.
    constexpr std::int64_t kSmall_ns = 60'000'000'000;
    if (events_ == 0) times_.from_zero = line.ts_ns == 0;
    times_.small = times_.small && line.ts_ns < kSmall_ns;
    times_.falls += last_ns_ != kNoTime && line.ts_ns < last_ns_;
    if (times_.small && times_.falls >= 2 && (times_.falls * 4 > events_ || times_.from_zero))
        throw std::runtime_error("line " + std::to_string(lines_) +
                                 ": the times are differences between events (perf script --deltatime), of which the "
                                 "times can't be restored: print it again without that option");
    tell_lost(line.ts_ns);
    last_ns_ = line.ts_ns;
    const LineClass &cls = classes_[line.event];
    Slot *slots = buffer_.slots();
    // Made where it stays: a copy would read in one piece what was just written in several, and wait for that.
    for (std::size_t i = 0; i < cls.wanted.size(); ++i) new (&slots[i]) Slot(slot_of(line, cls.wanted[i]));
    ++events_;
    buffer_.add({cls.id, 0, stream_, line.cpu, line.ts_ns, slots});
}

// What the text has said of losses since the last event; until_ns: the time of the next one, or of the last.
void TextFeed::tell_lost(std::int64_t until_ns) {
    if (!lost_ && !unknown_lost_) return;
    buffer_.flush();
    const std::int64_t from_ns = last_ns_ == kNoTime ? until_ns : last_ns_;
    if (lost_) to_.gap({stream_, Gap::Kind::kEvents, from_ns, until_ns, lost_, {}});
    if (unknown_lost_) to_.gap({stream_, Gap::Kind::kEvents, from_ns, until_ns, 0, {}});
    lost_ = 0;
    unknown_lost_ = false;
}

void TextFeed::not_an_event(std::string_view text) {
    if (const auto count = lost_events(text)) {
        lost_ += *count;
        unknown_lost_ = unknown_lost_ || *count == 0;
    }
    const std::string_view shown = stripped(text);
    if (shown.empty() || shown.front() == '#' || !is_block_line(text)) return;
    if (unreadable_++ < kShown) unread_.push_back({lines_, std::string(shown.substr(0, kShownBytes))});
}

Slot TextFeed::slot_of(const Line &line, Member member) {
    switch (member) {
    case kDev: return Slot::of(std::uint64_t{line.dev});
    case kSector: return Slot::of(line.sector);
    case kNumber: return Slot::of(line.number);
    case kRwbs: return Slot::of(line.rwbs);
    case kError: return Slot::of(line.error);
    case kOldDev: return Slot::of(std::uint64_t{line.old_dev});
    case kOldSector: return Slot::of(line.old_sector);
    case kTid: return Slot::of(line.tid);
    case kComm: return Slot::of(line.comm);
    }
    return {};
}

}  // namespace opline::feed
