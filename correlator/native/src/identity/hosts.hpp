// SPDX-License-Identifier: MIT
// The hosts of a joined run (docs/internals/hosts.md, "Numbers of several hosts"). Two hosts give the same numbers to
// threads, processes and devices. Here each of them gets a number that no other host has, when its event enters the
// core, so that no part behind needs the host to tell two of them apart. A run of one host keeps its numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"
#include "base/strings.hpp"
#include "event/clock_map.hpp"

namespace opline {

// The kernel's numbers of threads are less than PID_MAX_LIMIT (include/linux/threads.h: 4 194 304). In a joined run the
// eight bits above are the host's number, from 1.
constexpr std::int64_t kFirstOfHosts = std::int64_t{1} << 22;
constexpr std::int64_t kEndOfHosts = std::int64_t{1} << 30;
constexpr std::size_t kMostHosts = 255;

class Hosts {
  public:
    // A device: whose it is, and its number there.
    struct HostDevice {
        std::uint32_t host = 0;  // pool id
        std::uint32_t dev = 0;
    };

    Hosts() = default;
    // Empty: of one host. Throws std::runtime_error if there are too many.
    Hosts(const std::vector<std::string> &names, StringPool &strings) {
        if (names.size() > kMostHosts)
            throw std::runtime_error("At most " + std::to_string(kMostHosts) + " hosts can be joined");
        for (const auto &name : names) {
            hosts_.push_back(strings.intern(name));
            numbers_.put(hosts_.back(), static_cast<std::uint32_t>(hosts_.size()));
        }
    }
    bool several() const { return !hosts_.empty(); }

    // The number of a thread or a process of this host. One that is of a host already stays, as does one that the
    // kernel gives to nobody (0: the idle task; -1: unknown).
    std::int64_t thread(std::uint32_t host, std::int64_t number) const {
        if (!several() || number <= 0 || number >= kFirstOfHosts) return number;
        const std::uint32_t *known = numbers_.find(host);
        return known ? number | static_cast<std::int64_t>(*known) << 22 : number;
    }
    // Whose thread that is; `otherwise` where the number does not tell.
    std::uint32_t of_thread(std::int64_t number, std::uint32_t otherwise) const {
        if (!several() || number < kFirstOfHosts || number >= kEndOfHosts) return otherwise;
        const auto at = static_cast<std::size_t>(number >> 22);
        return at <= hosts_.size() ? hosts_[at - 1] : otherwise;
    }
    // The number of a device of this host: its own for the first host that has such a device, else one of the same
    // major that no device has. 0 stays: no device.
    std::uint32_t device(std::uint32_t host, std::uint32_t dev) {
        if (!several() || dev == 0) return dev;
        auto [known, made] = devices_.insert(host_key(host, dev));
        if (!made) return *known;
        std::uint32_t free = dev, minor = kMinors;
        while (owners_.contains(free) && minor > 0) free = (dev & ~(kMinors - 1)) | --minor;
        owners_.put(free, host);
        list_.emplace_back(free, HostDevice{host, dev});
        return *known = free;
    }
    // Whose device that is; 0: of a run of one host.
    std::uint32_t of_device(std::uint32_t dev) const {
        const std::uint32_t *host = several() ? owners_.find(dev) : nullptr;
        return host ? *host : 0;
    }
    // In order of first sight, with the numbers that device() gave.
    const std::vector<std::pair<std::uint32_t, HostDevice>> &devices() const { return list_; }

    // How the times of a host become those of the joined run; nullptr: they are.
    void set_clock(std::uint32_t host, std::shared_ptr<const ClockMap> clock) {
        if (clock && *clock) clocks_[host] = std::move(clock);
    }
    // A time that a field of an event has: the reader maps the events' own times only.
    std::int64_t time(std::uint32_t host, std::int64_t own_ns) const {
        return own_ns > 0 ? time_of_run(clock(host), own_ns) : own_ns;
    }
    // A time that a field tells by how long it is after the event.
    std::int64_t time_since(std::uint32_t host, std::int64_t event_ns, std::int64_t since_ns) const {
        const ClockMap *map = clock(host);
        return map ? map->at(map->own_at(event_ns) + since_ns) : event_ns + since_ns;
    }

  private:
    const ClockMap *clock(std::uint32_t host) const {
        const auto *known = several() ? clocks_.find(host) : nullptr;
        return known ? known->get() : nullptr;
    }
    static constexpr std::uint32_t kMinors = 1u << 20;
    std::vector<std::uint32_t> hosts_;  // pool ids; the number of each is its place, from 1
    FlatMap<std::uint32_t, std::uint32_t> numbers_;
    FlatMap<std::uint64_t, std::uint32_t> devices_;
    FlatMap<std::uint32_t, std::uint32_t> owners_;  // host by number
    std::vector<std::pair<std::uint32_t, HostDevice>> list_;
    FlatMap<std::uint32_t, std::shared_ptr<const ClockMap>> clocks_;
};

}  // namespace opline
