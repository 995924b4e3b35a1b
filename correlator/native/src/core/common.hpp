// SPDX-License-Identifier: MIT
// What the parts of the core share.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "core/identities.hpp"
#include "event/event.hpp"
#include "event/thread_names.hpp"
#include "model/plan.hpp"

namespace opline {

// Where in the trace the core is.
struct Now {
    std::uint64_t events = 0, out_of_order = 0;
    std::int64_t first_ns = kNoTime, last_ns = kNoTime;
    std::uint32_t host = 0;            // of the event at hand
    std::int64_t block_ns = kNoTime;   // the block event at hand
    std::uint32_t block_cpu = kNoCpu;  // the event's CPU

    void at(std::int64_t ts_ns) {
        if (ts_ns < last_ns) {
            ++out_of_order;
            first_ns = std::min(first_ns, ts_ns);  // for a text that is not in order
        } else {
            last_ns = ts_ns;
        }
    }
};

struct Streams {
    std::vector<StreamDecl> declared;
    std::vector<std::uint32_t> hosts;  // pool ids

    std::string name(std::uint32_t stream) const {
        const StreamDecl &s = declared[stream];
        return s.channel.empty() ? s.path : s.channel + "_" + std::to_string(s.instance);
    }
};

struct Common {
    Plan plan;
    StringPool strings;
    NameIds names{strings};
    Identities identities;
    Streams streams;
    Now now;
    std::map<std::uint32_t, std::string> device_names;

    explicit Common(Plan compiled);
    std::vector<std::string> space_names() const;
    Hosts &hosts() { return identities.threads.hosts; }
    const Hosts &hosts() const { return identities.threads.hosts; }
};

}  // namespace opline
