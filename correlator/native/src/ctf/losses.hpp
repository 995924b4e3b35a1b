// SPDX-License-Identifier: MIT
// What was wrong with the bytes of a trace; every one is counted, none stops the reading of the other streams.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace opline::ctf {

enum class Loss : std::uint8_t {
    kTruncatedPacket,   // a packet that goes on past the file's end, or an event past its packet's
    kMalformedPacket,   // wrong magic, uuid or sizes: the rest of that file is not read
    kPacketOutOfOrder,  // begins before the one before it ended; packets are read in the order of their begins
    kUnknownEvent,      // an event id that the metadata does not have: the rest of that packet is lost
    kPacketDoubled,     // it is there twice; it is read once
    // LTTng's index has packets behind the file's end, or the numbers of the first ones are not there
    kPacketMissing,
    kStreamMissing  // a stream's file is gone or empty though something says that it was there
};

struct ReadLosses {
    std::uint64_t truncated_packets = 0, malformed_packets = 0, packets_out_of_order = 0, unknown_events = 0,
                  packets_doubled = 0, packets_missing = 0, streams_missing = 0;
    std::vector<std::string> messages;  // one line each, at most 32

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
