// SPDX-License-Identifier: MIT
#include "feed/line.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "event/event.hpp"
#include "feed/line_cursor.hpp"
#include "feed/line_fields.hpp"

namespace opline::feed {
namespace {

constexpr std::uint32_t kMajors = 1 << 12, kMinors = 1 << 20;  // the kernel's dev_t
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::string_view kPrefix = "block_";

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

// `(+611)`, trace-cmd report --ts-diff: the time since the event before, behind the time
void difference(LineCursor &c) {
    const char *const from = c.at();
    std::int64_t value;
    if (!c.skip("(+") || !c.signed_number(value, 18) || !c.skip(')') || !c.spaces()) c.to(from);
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
    difference(c);
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

std::string_view without_spaces_before(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    return text;
}

// `other.dat:      tar-16072`: trace-cmd report of several recordings or of an instance. It fills a name up to 16
// letters, which have 15 at most: one blank alone is the name's own ("postgres: writer").
std::string_view without_recording(std::string_view who) {
    std::size_t end = 0;
    while (end < who.size() && !is_space(who[end])) ++end;
    if (end < 2 || end + 2 > who.size() || who[end - 1] != ':' || !is_space(who[end + 1])) return who;
    return without_spaces_before(who.substr(end));
}

// `tar-16072`, `x-1   (-------)`
bool who_of_ftrace(std::string_view who, Line &line) {
    who = without_recording(who);
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
    line.open = false;
    c.spaces();
    if (c.skip("[FAILED TO PARSE]")) c.spaces();
    if (c.skip("dev=")) return fields_of(c, line);
    if (!device(c, line.dev) || !c.spaces()) return false;
    const char *flags = c.at();
    while (!c.done() && *c.at() >= 'A' && *c.at() <= 'Z') c.to(c.at() + 1);
    line.rwbs = {flags, static_cast<std::size_t>(c.at() - flags)};
    if (line.rwbs.empty() || !c.spaces() || !size_and_place(c, line)) return false;
    const Extra extra = kLineEvents[line.event].extra;
    if (extra == Extra::kOld) return remapped_from(c, line);
    line.open = c.done() || !std::memchr(c.at(), ']', static_cast<std::size_t>(c.end() - c.at()));
    line.error = extra == Extra::kError ? error_of(c) : 0;
    return true;
}

// `5us :`, `5us+:`, ftrace's latency format
bool stamp_of_latency(LineCursor &c, std::int64_t &ts_ns) {
    std::uint64_t us;
    if (!c.number(us, 15) || !c.skip("us")) return false;
    if (!c.done() && !c.next_is(':')) c.to(c.at() + 1);  // the mark of a delay
    ts_ns = static_cast<std::int64_t>(us * 1000);
    return c.skip(':');
}

// `[003]`, `[003] d..1.`, `3d..1` at the end of what stands before the time: cut off.
bool cut_cpu(std::string_view &before, std::uint32_t &cpu) {
    constexpr std::string_view kFlags = ".dDnNXbpPhHsSzZlLrRmMtTuUkKiIBG0123456789";
    std::string_view rest = before;
    for (int tokens = 0; tokens < 2 && !rest.empty(); ++tokens) {
        const char *token = rest.data() + rest.size();
        while (token != rest.data() && !is_space(token[-1])) --token;
        const std::string_view last(token, rest.size() - static_cast<std::size_t>(token - rest.data()));
        rest = without_spaces_behind(rest.data(), token);
        LineCursor c(last);
        std::uint64_t number;
        if (c.skip('[')) {
            if (!c.number(number, 9) || !c.skip(']') || !c.done()) return false;
        } else {
            if (last.find_first_not_of(kFlags) != std::string_view::npos) return false;
            // The CPU and four flags or five, in one.
            if (last.size() < 5 || !c.number(number, 4) || c.done()) continue;
        }
        cpu = static_cast<std::uint32_t>(number);
        before = rest;
        return true;
    }
    return false;
}

// Who: both the name and the number of a thread, one of them, or none.
void who_of_any(std::string_view who, Line &line) {
    line.comm = {};
    line.tid = -1;
    if (who.empty() || who_of_perf(who, line) || who_of_ftrace(who, line)) return;
    LineCursor c(who);
    std::int64_t tid;
    const bool number = c.signed_number(tid, 9) && (!c.skip('/') || c.signed_number(tid, 9)) && c.done();
    if (number) line.tid = tid;
    else line.comm = who;
}

// A line whose fields are chosen otherwise (perf script -F, trace-cmd report -l, ftrace's latency format): what stands
// before the event's name is read from there backwards.
bool parse_chosen(std::string_view text, Line &line) {
    constexpr std::string_view kSystem = "block:";
    for (std::size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix, at + 1)) {
        const std::size_t colon = text.find(':', at);
        if (colon == std::string_view::npos) return false;
        line.event = event_named(text.substr(at, colon - at));
        if (line.event == kLineEvents.size()) continue;
        std::size_t end = at;
        if (end >= kSystem.size() && text.substr(end - kSystem.size(), kSystem.size()) == kSystem)
            end -= kSystem.size();
        std::string_view before = without_spaces_behind(text.data(), text.data() + end);
        if (before.size() == end && end != 0) continue;                                        // a part of a word
        if (std::size_t digits = before.size(); !before.empty() && is_digit(before.back())) {  // perf's period
            while (digits && is_digit(before[digits - 1])) --digits;
            before = without_spaces_behind(before.data(), before.data() + digits);
        }
        if (!before.empty() && before.back() == ')') {  // as difference()
            const std::size_t open = before.rfind("(+");
            if (open != std::string_view::npos) before = without_spaces_behind(before.data(), before.data() + open);
        }
        // The time, and a blank before the colon or not.
        std::size_t begin = before.size();
        while (begin && is_space(before[begin - 1])) --begin;
        while (begin && !is_space(before[begin - 1])) --begin;
        if (before.substr(begin) == ":") {
            while (begin && is_space(before[begin - 1])) --begin;
            while (begin && !is_space(before[begin - 1])) --begin;
        }
        LineCursor time(before.substr(begin));
        if (!stamp(time, line.ts_ns)) {
            time.to(before.data() + begin);
            if (!stamp_of_latency(time, line.ts_ns)) return false;
        }
        before = without_spaces_before(without_spaces_behind(before.data(), before.data() + begin));
        line.cpu = kNoCpu;
        cut_cpu(before, line.cpu);
        who_of_any(before, line);
        LineCursor c(text.substr(colon + 1));
        return body(c, line);
    }
    return false;
}

constexpr std::array<std::string_view, 5> kSilent = {"block_plug", "block_unplug", "block_touch_buffer",
                                                     "block_dirty_buffer", "block_sleeprq"};

}  // namespace

namespace {

bool parse_default(std::string_view text, Line &line) {
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

}  // namespace

bool parse_line(std::string_view text, Line &line) {
    return parse_default(text, line) || (is_block_line(text) && parse_chosen(text, line));
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

}  // namespace opline::feed
