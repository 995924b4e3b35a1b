// SPDX-License-Identifier: MIT
#include "output/tcp_rows.hpp"

#include <arpa/inet.h>
#include <array>
#include <string>

#include "output/row.hpp"

namespace opline {

// 10.0.0.1:7003, [fe80::1]:7003.
std::uint32_t TcpRows::text_of(const TcpEnd &end) {
    auto [known, made] = texts_.insert(end);
    if (!made) return *known;
    std::array<unsigned char, 16> bytes{};
    for (std::size_t i = 0; i < 8; ++i) {
        bytes[i] = static_cast<unsigned char>(end.high >> (56 - 8 * i));
        bytes[8 + i] = static_cast<unsigned char>(end.low >> (56 - 8 * i));
    }
    const bool ipv4 = end.high == 0 && end.low >> 32 == 0xffff;
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? &bytes[12] : bytes.data(), text.data(), text.size());
    std::string address = text.data();
    if (!ipv4) address.insert(0, 1, '[').push_back(']');
    const std::uint32_t id = strings_.intern(address.append(1, ':').append(std::to_string(end.port)));
    texts_.put(end, id);
    return id;
}

void TcpRows::put(Table &table, const TcpCall &call, std::uint32_t direction) {
    namespace tcp = columns::tcp;
    const std::uint32_t local = text_of(call.local), peer = text_of(call.peer);
    Row(table)
        .i64(tcp::ts_ns, call.ts_ns)
        .dict(tcp::direction, direction)
        .dict(tcp::local, local)
        .dict(tcp::peer, peer)
        .u64(tcp::socket, call.socket)
        .u32(tcp::position, call.position)
        .u32_if(tcp::bytes, !call.send, call.bytes)
        .dict_or_absent(tcp::host, call.host)
        .i32_if(tcp::pid, call.pid >= 0, static_cast<std::int32_t>(call.pid))
        .i64_if(tcp::tid, call.tid >= 0, call.tid);
}

}  // namespace opline
