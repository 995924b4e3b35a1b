// SPDX-License-Identifier: MIT
#include "feed/line.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace opline::feed {
namespace {

constexpr std::uint32_t kMajors = 1 << 12, kMinors = 1 << 20;  // the kernel's dev_t
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::string_view kPrefix = "block_";

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool is_word(char c) { return is_digit(c) || c == '_' || static_cast<unsigned char>((c | 32) - 'a') < 26; }

// Goes through a text. What is asked for and is not there leaves it where it was.
class LineCursor {
  public:
    explicit LineCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
    const char *at() const { return at_; }
    const char *end() const { return end_; }
    void to(const char *place) { at_ = place; }
    bool done() const { return at_ == end_; }
    bool next_is(char c) const { return at_ != end_ && *at_ == c; }
    bool next_is_digit() const { return at_ != end_ && is_digit(*at_); }
    bool skip(char c) {
        if (!next_is(c)) return false;
        ++at_;
        return true;
    }
    bool skip(std::string_view text) {
        if (static_cast<std::size_t>(end_ - at_) < text.size() || std::memcmp(at_, text.data(), text.size()) != 0)
            return false;
        at_ += text.size();
        return true;
    }
    bool spaces() {
        const char *from = at_;
        while (at_ != end_ && is_space(*at_)) ++at_;
        return at_ != from;
    }
    void token() {
        while (at_ != end_ && !is_space(*at_)) ++at_;
    }
    // So many digits at most, and no digit after them.
    bool number(std::uint64_t &value, int most) {
        constexpr std::ptrdiff_t kSure = 19;  // digits of which any are less than 2^64
        const char *const sure = end_ - at_ > kSure ? at_ + kSure : end_;
        const char *place = at_;
        std::uint64_t v = 0;
        for (; place != sure && is_digit(*place); ++place) v = v * 10 + static_cast<std::uint64_t>(*place - '0');
        for (; place != end_ && is_digit(*place); ++place) {
            const auto digit = static_cast<std::uint64_t>(*place - '0');
            if (v > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return false;
            v = v * 10 + digit;
        }
        if (place == at_ || place - at_ > most) return false;
        at_ = place;
        value = v;
        return true;
    }
    bool signed_number(std::int64_t &value, int most) {
        const char *from = at_;
        const bool negative = skip('-');
        std::uint64_t v;
        if (!number(v, most)) {
            at_ = from;
            return false;
        }
        value = negative ? -static_cast<std::int64_t>(v) : static_cast<std::int64_t>(v);
        return true;
    }

  private:
    const char *at_, *end_;
};

// `2199495.030133:`
bool stamp(LineCursor &c, std::int64_t &ts_ns) {
    std::uint64_t seconds, fraction;
    if (!c.number(seconds, 10) || !c.skip('.')) return false;
    const char *from = c.at();
    if (!c.number(fraction, 9)) return false;
    for (auto digits = c.at() - from; digits < 9; ++digits) fraction *= 10;
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!c.skip(':') || seconds > (kMost - fraction) / kSecond) return false;
    ts_ns = static_cast<std::int64_t>(seconds * kSecond + fraction);
    return true;
}

// Of kLineEvents; past them: another.
std::uint32_t event_named(std::string_view name) {
    std::uint32_t i = 0;
    while (i < kLineEvents.size() && kLineEvents[i].name != name) ++i;
    return i;
}

// `[001] d..1. 2199495.030133: block:block_rq_issue: `, from behind the first bracket
bool head(LineCursor &c, Line &line) {
    std::uint64_t cpu;
    if (!c.number(cpu, 9) || !c.skip(']') || !c.spaces()) return false;
    line.cpu = static_cast<std::uint32_t>(cpu);
    if (const char *from = c.at(); !stamp(c, line.ts_ns)) {
        c.to(from);
        c.token();  // ftrace's flags
        if (!c.spaces() || !stamp(c, line.ts_ns)) return false;
    }
    if (!c.spaces()) return false;
    if (const char *from = c.at(); c.next_is_digit()) {  // perf's period
        while (c.next_is_digit()) c.to(c.at() + 1);
        if (!c.spaces()) c.to(from);
    }
    c.skip("block:");
    const char *const name = c.at();
    const auto *colon = static_cast<const char *>(std::memchr(name, ':', static_cast<std::size_t>(c.end() - name)));
    if (!colon) return false;
    const std::string_view found(name, static_cast<std::size_t>(colon - name));
    line.event = event_named(found);
    c.to(colon + 1);
    return line.event < kLineEvents.size() ||
           (found.size() > kPrefix.size() && found.substr(0, kPrefix.size()) == kPrefix &&
            std::all_of(found.begin(), found.end(), is_word));
}

std::string_view without_spaces_behind(const char *from, const char *end) {
    while (end != from && is_space(end[-1])) --end;
    return {from, static_cast<std::size_t>(end - from)};
}

// `my program 16072`, `fio 10/11`
bool who_of_perf(std::string_view who, Line &line) {
    const char *token = who.data() + who.size();
    while (token != who.data() && !is_space(token[-1])) --token;
    const std::string_view name = without_spaces_behind(who.data(), token);
    LineCursor c({token, who.size() - static_cast<std::size_t>(token - who.data())});
    std::int64_t tid;
    if (token == who.data() || !c.signed_number(tid, 9)) return false;
    if (c.skip('/') && !c.signed_number(tid, 9)) return false;
    if (!c.done()) return false;
    line.comm = name;
    line.tid = tid;
    return true;
}

// `tar-16072`, `x-1   (-------)`
bool who_of_ftrace(std::string_view who, Line &line) {
    std::size_t size = who.size();
    if (size && who[size - 1] == ')') {  // the thread group
        const std::size_t open = who.rfind('(');
        if (open == std::string_view::npos || open + 2 >= size) return false;
        std::string_view inside = who.substr(open + 1, size - open - 2);
        while (!inside.empty() && is_space(inside.front())) inside.remove_prefix(1);
        if (inside.empty() || inside.find_first_not_of("0123456789-") != std::string_view::npos) return false;
        const std::string_view before = without_spaces_behind(who.data(), who.data() + open);
        if (before.size() == open) return false;
        size = before.size();
    }
    std::size_t digits = size;
    while (digits && is_digit(who[digits - 1])) --digits;
    if (digits == 0 || who[digits - 1] != '-') return false;
    std::uint64_t tid;
    if (LineCursor c(who.substr(digits, size - digits)); !c.number(tid, 9)) return false;
    line.comm = who.substr(0, digits - 1);
    line.tid = static_cast<std::int64_t>(tid);
    return true;
}

// `202,16`
bool device(LineCursor &c, std::uint32_t &dev) {
    std::uint64_t major, minor;
    if (!c.number(major, 9) || !c.skip(',') || !c.number(minor, 9) || major >= kMajors || minor >= kMinors)
        return false;
    dev = static_cast<std::uint32_t>(major << 20 | minor);
    return true;
}

// `21997888 + 8`; of a split `21997888 / 21997896`
bool place(LineCursor &c, Line &line) {
    const bool split = kLineEvents[line.event].extra == Extra::kSplit;
    if (!c.number(line.sector, 20) || !c.spaces() || !c.skip(split ? '/' : '+') || !c.spaces()) return false;
    return c.number(line.number, 20) && (split || line.number <= std::numeric_limits<std::uint32_t>::max());
}

// `4096 () `, either of them or none, and the place: a pass-through command's bytes may have brackets themselves
bool size_and_place(LineCursor &c, Line &line) {
    const char *from = c.at();
    if (place(c, line)) return true;
    c.to(from);
    while (c.next_is_digit()) c.to(c.at() + 1);
    if (c.at() != from && !c.spaces()) return false;
    if (from = c.at(); place(c, line)) return true;
    c.to(from);
    if (!c.skip('(')) return false;
    for (const char *at = c.at(); at != c.end(); ++at) {
        if (*at != ')') continue;
        c.to(at + 1);
        if (c.spaces() && place(c, line)) return true;
    }
    return false;
}

// ` <- (253,0) 9`
bool remapped_from(LineCursor &c, Line &line) {
    return c.spaces() && c.skip("<-") && c.spaces() && c.skip('(') && device(c, line.old_dev) && c.skip(')') &&
           c.spaces() && c.number(line.old_sector, 20);
}

// ` none,0,0 [-5]`: 0 where there is none, or it is no number
std::int64_t error_of(LineCursor c) {
    const char *from = c.at();
    if (c.spaces() && !c.next_is('[')) {
        c.token();
        from = c.at();
    }
    c.to(from);
    std::int64_t error = 0;
    if (!c.spaces() || !c.skip('[') || !c.signed_number(error, 18) || !c.skip(']')) return 0;
    return std::find(c.at(), c.end(), ']') == c.end() ? error : 0;
}

bool body(LineCursor &c, Line &line) {
    c.spaces();
    if (!device(c, line.dev) || !c.spaces()) return false;
    const char *flags = c.at();
    while (!c.done() && *c.at() >= 'A' && *c.at() <= 'Z') c.to(c.at() + 1);
    line.rwbs = {flags, static_cast<std::size_t>(c.at() - flags)};
    if (line.rwbs.empty() || !c.spaces() || !size_and_place(c, line)) return false;
    const Extra extra = kLineEvents[line.event].extra;
    if (extra == Extra::kOld) return remapped_from(c, line);
    line.error = extra == Extra::kError ? error_of(c) : 0;
    return true;
}

constexpr std::array<std::string_view, 7> kSilent = {"block_plug",         "block_unplug",  "block_touch_buffer",
                                                     "block_dirty_buffer", "block_sleeprq", "block_io_start",
                                                     "block_io_done"};

}  // namespace

bool parse_line(std::string_view text, Line &line) {
    LineCursor c(text);
    c.spaces();
    const char *const begin = c.at();
    // The name of a thread may have brackets: the first that is followed by what follows a CPU is the CPU's.
    for (const char *open = begin; open != c.end(); ++open) {
        open = static_cast<const char *>(std::memchr(open, '[', static_cast<std::size_t>(c.end() - open)));
        if (!open) return false;
        if (open == text.data() || !is_space(open[-1])) continue;
        c.to(open + 1);
        if (!head(c, line)) continue;
        const std::string_view who = without_spaces_behind(begin, std::max(begin, open));
        return line.event < kLineEvents.size() && body(c, line) && (who_of_perf(who, line) || who_of_ftrace(who, line));
    }
    return false;
}

bool is_block_line(std::string_view text) {
    for (std::size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix, at + 1)) {
        if (at && is_word(text[at - 1])) continue;
        std::size_t end = at;
        while (end < text.size() && is_word(text[end])) ++end;
        if (end == at + kPrefix.size() || end == text.size() || text[end] != ':') continue;
        const std::string_view name = text.substr(at, end - at);
        return std::find(kSilent.begin(), kSilent.end(), name) == kSilent.end();
    }
    return false;
}

std::uint64_t lost_events(std::string_view text) {
    constexpr std::string_view kLost = "LOST ";
    for (std::size_t at = text.find(kLost); at != std::string_view::npos; at = text.find(kLost, at + 1)) {
        LineCursor c(text.substr(at + kLost.size()));
        std::uint64_t count;
        if (c.number(count, 18) && (c.skip(" EVENTS") || c.skip(" events"))) return count;
    }
    return 0;
}

}  // namespace opline::feed
