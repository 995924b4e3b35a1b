// SPDX-License-Identifier: MIT
// Providers of collectors, by the begin of an event's name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opline {

constexpr std::string_view kBpfCalls = "syscall:";  // system calls from BPF, with LTTng's names behind the provider's
constexpr std::string_view kBpfBlock = "block:";
constexpr std::string_view kBpfSched = "sched:";

inline bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

// Providers of applications whose events have time and thread in their own fields. Names without the colon.
struct Providers {
    struct Relay {
        std::string collector, shim;  // the collector relays the events written by threads with the shim
    };
    std::vector<Relay> relayed;
    std::vector<std::string> timed;  // collectors with events of their own

    // The relay with this collector's event; nullptr: none.
    const Relay *relay_of(std::string_view event) const {
        for (const Relay &relay : relayed)
            if (is_of(event, relay.collector)) return &relay;
        return nullptr;
    }
    // The ordinal, from 1, of the event's timed provider; 0: none.
    std::uint32_t timed_of(std::string_view event) const {
        for (std::uint32_t i = 0; i < timed.size(); ++i)
            if (is_of(event, timed[i])) return i + 1;
        return 0;
    }
    // The event without its provider; empty: another provider.
    std::string_view own_name(std::string_view event) const {
        const Relay *relay = relay_of(event);
        const std::uint32_t ordinal = timed_of(event);
        if (!relay && ordinal == 0) return {};
        return event.substr((relay ? relay->collector : timed[ordinal - 1]).size() + 1);
    }

  private:
    static bool is_of(std::string_view event, std::string_view provider) {
        return event.size() > provider.size() && event[provider.size()] == ':' && starts_with(event, provider);
    }
};

}  // namespace opline
