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
        const char *content = nullptr;  // content of a file in memory
    };
    std::string path;         // folder; "": in memory
    std::vector<File> files;  // of events, sorted
    Metadata meta;
    PacketLayout layout;
    std::map<std::uint64_t, StreamClass> classes;
    std::uint64_t frequency = 1'000'000'000;
    std::string host_name;                // name in the cluster; "": the trace's own name
    bool goes_on = false;                 // earlier parts were removed on purpose: packet numbers continue
    std::shared_ptr<const ClockMap> map;  // to the cluster's clock; nullptr: times stay unchanged

    std::string env(const char *name) const;  // "": no such entry
    std::string host() const;                 // "": not in the trace
    Domain domain() const { return env("domain") == "kernel" ? Domain::kKernel : Domain::kUst; }
    // A raw value of the trace's clock as a time of the cluster's clock.
    std::int64_t time_ns(std::uint64_t cycles) const { return time_of_run(map.get(), to_ns(cycles, frequency)); }
    const ClockDecl &clock() const { return meta.clocks.begin()->second; }
    // Throws Malformed.
    const StreamClassDecl &stream_class(const EventDecl &) const;
    // The parts of a packet of the stream class read before; before the fields of an event also the event's header.
    void packet_passed(Compiler &, const StreamClassDecl &) const;
    void header_passed(Compiler &, const StreamClassDecl &) const;
    // A place for an event's class. Throws Unsupported for ids too far apart: `ids` counts the ids of all traces.
    EventClass &place(const EventDecl &, std::uint64_t &ids);
};

// Compiles the bytes of a trace's metadata; there are no files, and no event class is placed yet. Throws Unsupported or
// Malformed.
std::unique_ptr<Trace> compile_trace(const std::string &metadata);
// The same for a folder with files. An exception's text begins with the path.
std::unique_ptr<Trace> load_trace(const std::string &path);
// The paths of a folder's files of events, sorted.
std::vector<std::string> files_of(const std::string &path);

}  // namespace opline::ctf
