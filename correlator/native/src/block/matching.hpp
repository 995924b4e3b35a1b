// SPDX-License-Identifier: MIT
// What the parts of one matcher share: how it matches, the event at hand, the devices, and what it counts and
// concludes. Private to the block model.
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "block/records.hpp"

namespace opline::block_model {

// The conclusion of a matcher from one event, in ordinals of events, which two matchers share.
struct Conclusion {
    enum class Hop : std::uint8_t { kNone, kBio, kIssue, kComplete };
    Hop hop = Hop::kNone;
    bool by_pointer = false;
    bool ambiguous = false;
    std::uint64_t answer = 0;  // the event that began the bio (kBio) or request (kIssue), or the last issue (kComplete)
    // A merged bio that a pointer assigns to a request: the bio's first event, the request's last issue, and the place.
    std::uint64_t merged_bio = 0, issue = 0;
    Place place;
};

struct Found {
    Index index = kNil;
    bool ambiguous = false;
    bool by_pointer = false;
    bool tainted = false;  // an ambiguous request at the same place may have taken the step
    explicit operator bool() const { return index != kNil; }
};

class BlockDevices {
  public:
    [[gnu::always_inline]] Device &of(std::uint32_t dev) {
        KnownDevice &known = recent_[(dev ^ dev >> 20) % recent_.size()];
        if (!known.device || known.dev != dev) known = {dev, &look_up(dev)};
        return *known.device;
    }
    // nullptr: no event and no fact has named the device.
    Device *find(std::uint32_t dev) {
        const auto *device = devices_.find(dev);
        return device ? device->get() : nullptr;
    }
    template <class Look>  // void(Device &)
    void each(Look look) {
        devices_.for_each([&](std::uint32_t, const std::unique_ptr<Device> &d) { look(*d); });
    }

  private:
    Device &look_up(std::uint32_t dev) {
        auto &device = devices_[dev];
        if (!device) device = std::make_unique<Device>();
        return *device;
    }
    struct KnownDevice {
        std::uint32_t dev = 0;
        Device *device = nullptr;
    };
    std::array<KnownDevice, 16> recent_{};  // of devices_
    FlatMap<std::uint32_t, std::unique_ptr<Device>> devices_;
};

struct Matching {
    Matching(bool pointers, const BlockModel::Hooks *hooks, BlockShared *shared = nullptr)
        : pointers(pointers), hooks(hooks), shared(shared ? *shared : own_shared) {}
    Matching(const Matching &) = delete;

    const bool pointers;                   // by pointer, falling back on sectors where an event has none
    const BlockModel::Hooks *const hooks;  // nullptr: the matcher only concludes
    BlockShared own_shared;
    BlockShared &shared;
    bool numbered = false;  // BlockModel::numbered
    std::uint64_t now = 0;  // ordinal of the event at hand
    std::int64_t last_ns = kNoTime, first_ns = kNoTime;
    BlockCounts counts;
    Conclusion said;
    bool concludes = false;  // BlockModel compares the conclusions of this matcher with another matcher's
    Places places;
    BlockDevices devices;

    std::uint64_t rq_of(const BlockEvent &e) const { return pointers ? e.rq : 0; }
    std::uint64_t bio_of(const BlockEvent &e) const { return pointers ? e.bio : 0; }
    void says(Conclusion::Hop hop, std::uint64_t answer, bool by_pointer, bool ambiguous) {
        if (concludes) said = {hop, by_pointer, ambiguous, answer, 0, 0, {}};
    }
};

constexpr std::size_t kOpenLimit = std::size_t{1} << 20;  // bios, and requests; beyond: the oldest is given up
constexpr unsigned kChainLimit = 256;                     // candidates looked at in one place

}  // namespace opline::block_model
