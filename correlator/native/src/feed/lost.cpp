// SPDX-License-Identifier: MIT
#include "feed/line.hpp"
#include "feed/line_cursor.hpp"

namespace opline::feed {

std::optional<std::uint64_t> lost_events(std::string_view text) {
    const auto behind = [text](std::string_view word) {
        const std::size_t at = text.find(word);
        return at == std::string_view::npos ? std::string_view() : text.substr(at + word.size());
    };
    if (!text.empty() && text.front() == '#') {
        LineCursor c(behind("entries-in-buffer/entries-written: "));
        std::uint64_t kept, written;
        if (!c.number(kept, 18) || !c.skip('/') || !c.number(written, 18) || written <= kept) return std::nullopt;
        return written - kept;
    }
    if (const auto record = behind("PERF_RECORD_LOST"); !record.empty()) {
        const std::size_t at = record.find("lost ");
        LineCursor c(at == std::string_view::npos ? std::string_view() : record.substr(at + 5));
        std::uint64_t count;
        return c.number(count, 18) ? count : 0;
    }
    for (const std::string_view word : {"LOST ", "Lost ", "lost "}) {
        LineCursor c(behind(word));
        std::uint64_t count;
        if (c.number(count, 18) && (c.skip(" EVENTS") || c.skip(" events") || c.skip(" samples"))) return count;
    }
    if (text.find("[LOST EVENTS]") != std::string_view::npos) return 0;
    constexpr std::string_view kDropped = "EVENTS DROPPED]";
    const std::size_t dropped = text.find(kDropped);
    if (dropped == std::string_view::npos) return std::nullopt;
    const std::size_t open = text.rfind('[', dropped);
    if (open == std::string_view::npos) return std::nullopt;
    LineCursor c(text.substr(open + 1, dropped - open - 1));
    std::uint64_t count;
    return c.number(count, 18) ? count : 0;
}

}  // namespace opline::feed
