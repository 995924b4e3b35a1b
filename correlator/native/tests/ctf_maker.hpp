// SPDX-License-Identifier: MIT
// Makes small traces (CTF 1.8, as LTTng-UST lays them out): metadata, packets, events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

inline const char *const kHead =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
    "typealias integer { size = 27; align = 1; signed = false; } := uint27_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char;\n"
    "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; "
    "uint64_t stream_instance_id; }; };\n"
    "env { domain = \"ust\"; };\n"
    "clock { name = \"monotonic\"; freq = 1000000000; };\n"
    "struct header { enum : uint5_t { compact = 0 ... 30, extended = 31 } id; variant <id> { struct { uint27_t "
    "timestamp; } compact;\n"
    "  struct { uint32_t id; uint64_t timestamp; } extended; } v; } align(8);\n";
inline const char *const kStream =
    "stream { id = 0; event.header := struct header; packet.context := struct { uint64_t timestamp_begin; uint64_t "
    "timestamp_end;\n"
    "  uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t "
    "cpu_id; }; };\n";

inline std::string event_of(const std::string &fields) {
    return "event { name = \"t:e\"; id = 0; stream_id = 0; fields := struct { " + fields + " }; };\n";
}

inline std::string metadata_of(const std::string &fields, const std::string &before = "") {
    return kHead + before + kStream + event_of(fields);
}

template <class T>
void put(std::string &out, T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i);
}

constexpr std::size_t kHeaderBytes = 16 + 6 * 8 + 4;

// A packet with `events` as its bytes; sizes as wanted (bits), else the right ones.
inline std::string packet(const std::string &events, std::uint64_t sequence = 0, std::int64_t content = -1,
                          std::int64_t size = -1, std::uint64_t instance = 0) {
    std::string out;
    const auto right = static_cast<std::int64_t>((kHeaderBytes + events.size()) * 8);
    put(out, std::uint32_t{0xc1fc1fc1});
    put(out, std::uint32_t{0});
    put(out, instance);
    put(out, std::uint64_t{100});
    put(out, std::uint64_t{200});
    put(out, static_cast<std::uint64_t>(content < 0 ? right : content));
    put(out, static_cast<std::uint64_t>(size < 0 ? right : size));
    put(out, sequence);
    put(out, std::uint64_t{0});
    put(out, std::uint32_t{0});
    return out + events;
}

// An event of id 0 at clock value `time`.
inline std::string event(std::uint32_t time, const std::string &payload) {
    std::string out;
    put(out, time << 5);
    return out + payload;
}
