// SPDX-License-Identifier: MIT
// What ops read and write, learned from the bios that their own threads queue: a raw device, where an op's offset is
// the bio's sector, or files. Keeps the sector rule from matching an op on a file, or on another disk, by chance.
#pragma once
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "link/file_maps.hpp"

namespace opline {

// Each op has one vote of each kind: otherwise a single op could count without end, if its thread's next events are
// lost.
namespace vote {
constexpr std::uint8_t kIn = 1, kOut = 2, kMore = 4, kDuring = 8, kBesides = 16;
}

struct TargetDevice {
    std::uint32_t dev = 0;
    // ops whose thread queued bios inside and outside of the op's bytes in flight
    std::uint64_t in = 0, out = 0;
    // ops whose thread queued data with the op's bytes in flight, and at other times
    std::uint64_t during = 0, besides = 0;
    std::uint64_t placed = 0;  // bios given to the target's ops by the sector rule alone
};

struct Target {
    static constexpr std::uint64_t kLearned = 4;
    bool resolved = false;         // the file was looked up by name
    std::uint32_t file = kNoFile;  // the target's map
    bool stacked = false;  // the file system has no file with a map: the target may lie on files with a map (overlay)
    std::uint64_t exact = 0, more = 0;  // ops whose thread queued no more data than the bytes in flight, and more
    std::vector<TargetDevice> devices;

    TargetDevice &device(std::uint32_t dev) {
        for (auto &d : devices)
            if (d.dev == dev) return d;
        if (devices.size() == 64) devices.erase(devices.begin());
        devices.push_back({});
        devices.back().dev = dev;
        return devices.back();
    }
    const TargetDevice *known(std::uint32_t dev) const {
        for (const auto &d : devices)
            if (d.dev == dev) return &d;
        return nullptr;
    }
    // Offsets are sectors of this device.
    bool raw(std::uint32_t dev) const {
        const TargetDevice *d = known(dev);
        return d && d->in >= kLearned && d->in >= 4 * d->out;
    }
    // Several bios have the same data (a file system with mirrors).
    bool amplifies() const { return more >= kLearned && more * 4 >= exact; }
    // The target's threads queue data on the device only for bytes in flight.
    bool only_in_flight(std::uint32_t dev) const {
        const TargetDevice *d = known(dev);
        return d && d->during >= kLearned && d->during >= 4 * d->besides;
    }
    bool raw_somewhere() const {
        for (const auto &d : devices)
            if (raw(d.dev)) return true;
        return false;
    }
    bool not_raw(std::uint32_t dev) const {
        const TargetDevice *d = known(dev);
        return d && d->out >= kLearned && d->out >= 4 * d->in;
    }
    // The sector rule may place the target's ops on the device.
    bool may_be_on(std::uint32_t dev) const {
        std::uint64_t seen = 0, most = 0, here_in = 0, here_out = 0, here_placed = 0;
        for (const auto &d : devices) {
            seen += d.in + d.out;
            most = d.placed > most ? d.placed : most;
            if (d.dev == dev) here_in = d.in, here_out = d.out, here_placed = d.placed;
        }
        if (seen >= kLearned) return here_in > 0 && here_in >= here_out;
        return here_placed * 4 >= most;
    }
};

class Targets {
  public:
    static constexpr std::size_t kLimit = std::size_t{1} << 16;  // beyond: forgotten, and learned again

    Target &of(std::uint64_t key) {
        if (!last_ || last_key_ != key) {
            if (targets_.size() >= kLimit && !targets_.contains(key)) targets_.clear();
            last_key_ = key;
            last_ = &targets_[key];
        }
        return *last_;
    }

  private:
    FlatMap<std::uint64_t, Target> targets_;
    std::uint64_t last_key_ = 0;
    Target *last_ = nullptr;  // the entry of the last target
};

}  // namespace opline
