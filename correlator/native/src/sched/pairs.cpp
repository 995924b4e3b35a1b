// SPDX-License-Identifier: MIT
#include "sched/pairs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "event/providers.hpp"

namespace opline {
namespace {

constexpr std::array<std::pair<std::string_view, Half>, 8> kHalves{{
    {"syscall_entry_", {Half::On::kThread, false}},
    {"syscall_exit_", {Half::On::kThread, true}},
    {"compat_syscall_entry_", {Half::On::kThread, false}},
    {"compat_syscall_exit_", {Half::On::kThread, true}},
    {"irq_handler_entry", {Half::On::kHardIrq, false}},
    {"irq_handler_exit", {Half::On::kHardIrq, true}},
    {"irq_softirq_entry", {Half::On::kSoftIrq, false}},
    {"irq_softirq_exit", {Half::On::kSoftIrq, true}},
}};
// They end their thread, replace its program, or put back what a signal has interrupted.
constexpr std::array<std::string_view, 6> kNoReturn{"exit",     "exit_group",   "execve",
                                                    "execveat", "rt_sigreturn", "sigreturn"};

enum Step : std::uint32_t { kWoke = 1, kSent, kReceived };
constexpr std::array<std::pair<std::string_view, Step>, 3> kSteps{
    {{"msgr_epoll_return", kWoke}, {"msgr_tx_msg", kSent}, {"msgr_rx_msg", kReceived}}};

// The shim for Ceph's names are of one call each: "cephshim:msgr_send_enter" and "cephshim:msgr_send_exit".
Half half_of_shim(std::string_view &name) {
    for (const auto &[suffix, half] :
         {std::pair<std::string_view, Half>{"_enter", {Half::On::kShim, false}}, {"_exit", {Half::On::kShim, true}}})
        if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
            name.remove_suffix(suffix.size());
            return half;
        }
    return {};
}

}  // namespace

Half Pairs::half_of(std::string_view name) {
    for (std::string_view provider : {kShim, kRings}) {
        if (!starts_with(name, provider)) continue;
        for (const auto &[step, number] : kSteps)
            if (name.substr(provider.size()) == step) return {Half::On::kMessenger, false, number};
        Half half = half_of_shim(name);
        if (half.on != Half::On::kNothing) half.pair = number_of(std::string(name));
        return half;
    }
    for (const auto &[prefix, half] : kHalves) {
        if (!starts_with(name, prefix)) continue;
        const std::string_view rest = name.substr(prefix.size());
        // "syscall_entry_read" and "syscall_exit_read" are one pair, interrupts one each
        std::string both = std::to_string(static_cast<int>(half.on)) + (prefix.front() == 'c' ? "c" : "");
        if (half.on == Half::On::kThread) both += rest;
        else if (!rest.empty()) continue;
        Half found = half;
        found.pair = number_of(both);
        seen_[found.pair].no_end =
            half.on == Half::On::kThread && std::find(kNoReturn.begin(), kNoReturn.end(), rest) != kNoReturn.end();
        return found;
    }
    return {};
}

std::uint32_t Pairs::number_of(const std::string &both) {
    auto [number, made] = numbers_.emplace(both, static_cast<std::uint32_t>(seen_.size()));
    if (made) seen_.emplace_back();
    return number->second;
}

void Pairs::passed(const Half &half, std::uint64_t where, std::int64_t ts_ns) {
    if (!knows(ts_ns)) return;
    Seen &seen = seen_[half.pair];
    (half.ends ? seen.end : seen.begin) = true;
    auto [open, first] = open_.insert(where);
    const std::uint32_t before = std::exchange(*open, half.ends ? kNone : half.pair);
    if (first || (half.ends && before == half.pair)) return;
    const bool end_missing = before != kNone && seen_[before].end && !seen_[before].no_end;
    const bool begin_missing = half.ends && seen.begin && !seen.no_end;
    missing_ += end_missing || begin_missing;
}

// A messenger takes the events of epoll one after the other, then what others gave it to send, and waits again
// (EventCenter::process_events() in Ceph's src/msg/async/Event.cc). So of one event nothing is received after something
// was sent; of several, one may be that a socket takes more of a message.
void Pairs::step(const Half &half, std::uint64_t thread, std::int64_t events, std::int64_t ts_ns) {
    if (!knows(ts_ns)) return;
    Messenger &messenger = messengers_[thread];
    if (half.pair == kReceived && messenger.sent && (messenger.events == 0 || messenger.events == 1)) {
        ++missing_;
        messenger = {};
    } else if (half.pair == kWoke) {
        messenger = {events, false};
    } else {
        messenger.sent = messenger.sent || half.pair == kSent;
    }
}

void Pairs::lost(std::int64_t until_ns) {
    begins_ns_ = std::max(begins_ns_, until_ns);
    open_.clear();
    plugs_.clear();
    messengers_.clear();
}

void Pairs::allocated(std::uint64_t thread, std::uint64_t place, std::uint64_t kind, std::int64_t ts_ns) {
    if (!knows(ts_ns)) return;
    Plug &plug = plugs_[thread];
    plug.allocated = true;
    plug.last = place;
    plug.last_kind = kind;
    if (plug.first == 0) pile_begins(plug);
}

void Pairs::pile_begins(Plug &plug) {
    if (plug.last_kind == 0) return;
    plug.first = plug.last;
    plug.kind = plug.last_kind;
    plug.is_held = false;
}

// Requests that a thread allocates one after the other before any of them goes on are a pile. A plug holds it back,
// where that is the rule for what the thread does with such requests. It may hold back a single one.
void Pairs::pile_ends(std::uint64_t thread, Plug &plug) {
    if (plug.first == 0) return;
    plug.first = 0;
    std::uint64_t &in_turn = held_in_turn_[mix64(thread ^ plug.kind)];
    if (plug.is_held) ++in_turn;
    else missing_ += std::exchange(in_turn, 0) >= kPlugsInTurn;
}

void Pairs::plugged(std::uint64_t thread, std::int64_t ts_ns) {
    if (!knows(ts_ns)) return;
    Plug &plug = plugs_[thread];
    plug.seen = plug.open = true;
    plug.held = plug.last;                   // allocated right before
    if (plug.first == 0) pile_begins(plug);  // those before it went on because they were too many
    plug.is_held = true;
}

// The first request after an unplug is held back by a new plug (blk_add_rq_to_plug() of Linux 6.1 to 6.12). Without a
// request between them two unplugs may follow each other: one per hardware queue. A plug may go without an unplug.
void Pairs::unplugged(std::uint64_t thread, std::int64_t ts_ns) {
    if (!knows(ts_ns)) return;
    Plug &plug = plugs_[thread];
    const bool is_missing = plug.seen && plug.allocated && !plug.open;
    missing_ += is_missing;
    plug.is_held = plug.is_held || is_missing;  // and is not missed twice
    pile_ends(thread, plug);
    plug.seen = true;
    plug.open = plug.allocated = false;
}

// What a plug holds back goes on after the unplug. Linux 6.1 has no unplug where it issues without inserting, and all
// later ones to 6.18 do: so it is learned, for each of the two, whether it has.
void Pairs::went_on(std::uint64_t thread, std::uint64_t place, std::int64_t ts_ns, bool inserted) {
    if (!knows(ts_ns)) return;
    Plug *plug = plugs_.find(thread);
    if (!plug) return;
    if (plug->first == place || plug->last == place) pile_ends(thread, *plug);
    if (plug->held != place) return;
    plug->held = 0;
    std::uint64_t &in_turn = in_turn_[inserted ? 1 : 0];
    if (plug->open) missing_ += std::exchange(in_turn, 0) >= kUnplugsInTurn;
    else ++in_turn;
}

}  // namespace opline
