// SPDX-License-Identifier: MIT
// Rows of the table tcp.
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "base/table.hpp"

namespace opline {

// One end of a connection. An IPv4 address is ::ffff:A.B.C.D.
struct TcpEnd {
    std::uint64_t high = 0, low = 0;
    std::uint16_t port = 0;
    bool operator==(const TcpEnd &o) const { return high == o.high && low == o.low && port == o.port; }
};

// A call that sends or receives in a TCP stream.
struct TcpCall {
    std::int64_t ts_ns = 0;
    bool send = false;
    TcpEnd local, peer;
    std::uint64_t socket = 0;
    std::uint32_t position = 0, bytes = 0;  // bytes: of one that receives
    std::uint32_t host = 0;                 // pool id; 0: of a run of one host
    std::int64_t pid = -1, tid = -1;
};

class TcpRows {
  public:
    explicit TcpRows(StringPool &strings) : strings_(strings) {}
    // `direction`: pool id of the word.
    void put(Table &, const TcpCall &, std::uint32_t direction);

  private:
    struct EndHash {
        std::uint64_t operator()(const TcpEnd &e) const { return mix64(e.high ^ mix64(e.low ^ mix64(e.port))); }
    };
    std::uint32_t text_of(const TcpEnd &);

    StringPool &strings_;
    FlatMap<TcpEnd, std::uint32_t, EndHash> texts_;  // pool ids
};

}  // namespace opline
