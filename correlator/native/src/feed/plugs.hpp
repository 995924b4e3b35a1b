// SPDX-License-Identifier: MIT
// How often and how long each device was plugged, with btt's rules: only blktrace's records name a plug's device.
//
// A plug is one of a device, whichever thread has it: a second P before the U changes nothing, and a U without a P
// counts nothing. Events before the device's first I/O do not count. A plug that is open at the end lasts to the
// device's last event. Source: the figures of btt 2.09 for traces made for the purpose (tests/readers/test_plugs.py).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace opline::feed {

// Of one device.
struct DevicePlugs {
    std::uint64_t plugs = 0;   // ended by a U, or not ended
    std::uint64_t timers = 0;  // ended by a timer (UT)
    std::uint64_t ios = 0;     // requests released by the U's
    std::uint64_t timer_ios = 0;
    std::uint64_t plugged_ns = 0;
    std::int64_t first_ns = 0, last_ns = 0;  // events of I/Os
    std::optional<std::int64_t> since_ns;    // while it is plugged
};

// Counts from events in the order of their time.
class Plugs {
  public:
    // An event of an I/O.
    void saw(std::uint32_t dev, std::int64_t ts_ns) {
        auto [at, fresh] = found_.try_emplace(dev);
        if (fresh) at->second.first_ns = ts_ns;
        at->second.last_ns = ts_ns;
    }
    // P.
    void plug(std::uint32_t dev, std::int64_t ts_ns) {
        const auto at = found_.find(dev);
        if (at != found_.end() && !at->second.since_ns) at->second.since_ns = ts_ns;
    }
    // U, or UT if `timer`; releases `ios` requests.
    void unplug(std::uint32_t dev, std::int64_t ts_ns, std::uint64_t ios, bool timer) {
        const auto at = found_.find(dev);
        if (at == found_.end() || !at->second.since_ns) return;
        DevicePlugs &of = at->second;
        of.plugged_ns += since(of, ts_ns);
        of.since_ns.reset();
        ++(timer ? of.timers : of.plugs);
        (timer ? of.timer_ios : of.ios) += ios;
    }
    // Each device ever plugged, by number, as if the events ended now.
    std::vector<std::pair<std::uint32_t, DevicePlugs>> told() const {
        std::vector<std::pair<std::uint32_t, DevicePlugs>> all;
        for (auto [dev, of] : found_) {
            if (of.since_ns) {
                ++of.plugs;
                of.plugged_ns += since(of, of.last_ns);
            }
            if (of.plugs || of.timers) all.emplace_back(dev, of);
        }
        return all;
    }

  private:
    static std::uint64_t since(const DevicePlugs &of, std::int64_t ts_ns) {
        return ts_ns > *of.since_ns ? static_cast<std::uint64_t>(ts_ns) - static_cast<std::uint64_t>(*of.since_ns) : 0;
    }

    std::map<std::uint32_t, DevicePlugs> found_;
};

}  // namespace opline::feed
