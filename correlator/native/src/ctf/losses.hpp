// SPDX-License-Identifier: MIT
// What was wrong with the bytes of a trace; every one is counted, none stops the reading of the other streams.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace opline::ctf {

enum class Loss : std::uint8_t {
    kTruncatedPacket,   // a packet continues after the file's end, or an event after the packet's end
    kMalformedPacket,   // wrong magic, uuid or sizes: the rest of the file is not read
    kPacketOutOfOrder,  // begins before the end of the packet before; packets are read in the order of their begins
    kUnknownEvent,      // an event id missing in the metadata: the rest of the packet is lost
    kPacketDoubled,     // two copies of a packet; one is read
    // LTTng's index has packets after the file's end, or the first sequence numbers are missing
    kPacketMissing,
    kStreamMissing  // a stream's file is missing or empty, although the stream existed
};

struct ReadLosses {
    std::uint64_t truncated_packets = 0, malformed_packets = 0, packets_out_of_order = 0, unknown_events = 0,
                  packets_doubled = 0, packets_missing = 0, streams_missing = 0;
    std::vector<std::string> messages;  // one line per loss, at most 32

    void add(Loss loss, const std::string &message) {
        switch (loss) {
        case Loss::kTruncatedPacket: ++truncated_packets; break;
        case Loss::kMalformedPacket: ++malformed_packets; break;
        case Loss::kPacketOutOfOrder: ++packets_out_of_order; break;
        case Loss::kUnknownEvent: ++unknown_events; break;
        case Loss::kPacketDoubled: ++packets_doubled; break;
        case Loss::kPacketMissing: ++packets_missing; break;
        case Loss::kStreamMissing: ++streams_missing; break;
        }
        say(message);
    }
    void say(const std::string &message) {
        if (!message.empty() && messages.size() < 32) messages.push_back(message);
    }
};

}  // namespace opline::ctf
