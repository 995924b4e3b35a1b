// SPDX-License-Identifier: MIT
// One trace: its metadata, what is compiled of it, and its data streams. Private to the readers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ctf/metadata/types.hpp"
#include "ctf/stream.hpp"
#include "event/clock_map.hpp"

namespace opline::ctf {

struct Trace {
    struct File {
        std::filesystem::path path;
        std::uint64_t bytes;
        const char *content = nullptr;  // of a file that is in memory already
    };
    std::string path;         // its folder; "": it is in memory
    std::vector<File> files;  // of events, sorted
    Metadata meta;
    PacketLayout layout;
    std::map<std::uint64_t, StreamClass> classes;
    std::uint64_t frequency = 1'000'000'000;
    std::string host_name;                // as a cluster has it; "": as the trace says
    bool goes_on = false;                 // its earlier parts were removed on purpose: packets are numbered on
    std::shared_ptr<const ClockMap> map;  // to the cluster's clock; nullptr: times stay as they are

    std::string env(const char *name) const;  // "": it has none such
    std::string host() const;                 // "": it does not say
    Domain domain() const { return env("domain") == "kernel" ? Domain::kKernel : Domain::kUst; }
    // A raw value of its clock, as a time of the cluster's clock.
    std::int64_t time_ns(std::uint64_t cycles) const { return time_of_run(map.get(), to_ns(cycles, frequency)); }
    const ClockDecl &clock() const { return meta.clocks.begin()->second; }
    // Throws Malformed.
    const StreamClassDecl &stream_class(const EventDecl &) const;
    // What has been read of a packet of the stream class; before the fields of an event also its header.
    void packet_passed(Compiler &, const StreamClassDecl &) const;
    void header_passed(Compiler &, const StreamClassDecl &) const;
    // A place for an event's class. Throws Unsupported for ids that are too far apart: `ids` counts them, of all
    // traces.
    EventClass &place(const EventDecl &, std::uint64_t &ids);
};

// Compiles the bytes of a trace's metadata; there are no files, and no event class is placed yet. Throws Unsupported or
// Malformed.
std::unique_ptr<Trace> compile_trace(const std::string &metadata);
// The same of a folder, with its files. What is thrown has the path first.
std::unique_ptr<Trace> load_trace(const std::string &path);
// The paths of a folder's files of events, sorted.
std::vector<std::string> files_of(const std::string &path);

}  // namespace opline::ctf
