// SPDX-License-Identifier: MIT
#include "core/common.hpp"

#include <utility>

namespace opline {
namespace {

// Gives the plan's facts of several hosts the numbers of the joined run.
Hosts number_hosts(Plan &plan, StringPool &strings) {
    std::vector<std::string> names;
    for (const auto &host : plan.hosts) names.push_back(host.name);
    Hosts hosts(names, strings);
    for (const auto &spec : plan.hosts) {
        const std::uint32_t host = strings.intern(spec.name);
        auto number = [&](std::int32_t pid) { return static_cast<std::int32_t>(hosts.thread(host, pid)); };
        for (const std::int32_t pid : spec.population) plan.population.push_back(number(pid));
        for (const std::int32_t pid : spec.commands) plan.commands.push_back(number(pid));
        for (DeviceSpec device : spec.devices) {
            device.host = host;
            device.dev = hosts.device(host, device.dev);
            plan.devices.push_back(std::move(device));
        }
        for (StackSpec stack : spec.stacks) {
            stack.host = host;
            plan.stacks.push_back(std::move(stack));
        }
    }
    for (auto &file : plan.files) {
        if (file.host_name.empty()) continue;
        file.host = strings.intern(file.host_name);
        if (file.disk) file.disk = hosts.device(file.host, *file.disk);
    }
    return hosts;
}

}  // namespace

Common::Common(Plan compiled) : plan(std::move(compiled)), identities(number_hosts(plan, strings)) {}

std::vector<std::string> Common::space_names() const {
    std::vector<std::string> out;
    for (const auto &s : plan.key_spaces) out.push_back(s.name);
    return out;
}

}  // namespace opline
