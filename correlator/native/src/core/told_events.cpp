// SPDX-License-Identifier: MIT
// Events that tell what threads, devices, cgroups and files are, and which bytes a socket has passed.
#include "core/impl.hpp"

namespace opline {

void Core::Impl::learn_thread(const BoundClass &cls, const Event &ev) {
    if (const auto reused = common.identities.learn(cls.thread, ev, common.now.host))
        stitcher.forget_thread(common.now.host, *reused, ev.ts_ns);
}

// LTTng tells the end of each thread; BPF tells the end of a process, after the last thread.
void Core::Impl::thread_ended(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common.now.host;
    const auto known = [&](std::int32_t slot) {
        return common.identities.threads.of_root(host, number_in(ev, slot, -1));
    };
    if (cls.process.of_all) stitcher.thread_ended(host, known(cls.process.tid), ev.ts_ns);
    else stitcher.process_ended(static_cast<std::int32_t>(known(cls.process.pid)), ev.ts_ns);
}

void Core::Impl::name_device(const BoundClass &cls, const Event &ev) {
    if (cls.dev_slot == kNoSlot || cls.diskname_slot == kNoSlot) return;
    const Slot &name = ev.slots[cls.diskname_slot];
    if (name.kind != Slot::Kind::kString) return;
    const auto dev = static_cast<std::uint32_t>(ev.slots[cls.dev_slot].u);
    common.device_names[common.hosts().device(common.now.host, dev)] = std::string(name.str());
}

// The cgroup of a thread, the name of a cgroup, or a file.
void Core::Impl::place_told(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common.now.host;
    const std::int32_t slot = cls.kind == ClassKind::kCgroup ? cls.cgroup.path : cls.file.path;
    const bool text = slot != kNoSlot && ev.slots[slot].kind == Slot::Kind::kString;
    const std::uint32_t path = text ? common.strings.intern(ev.slots[slot].str()) : 0;
    if (cls.kind == ClassKind::kCgroup) return common.identities.cgroup(cls.cgroup, ev, host, path);
    const FileNumber file{host, static_cast<std::uint32_t>(number_in(ev, cls.file.dev, 0)),
                          static_cast<std::uint64_t>(number_in(ev, cls.file.inode, 0))};
    const auto generation = static_cast<std::uint32_t>(number_in(ev, cls.file.generation, 0));
    stitcher.details().name_file(file, {generation, text && !ev.slots[slot].str().empty() ? path : 0});
}

void Core::Impl::tcp_call(const BoundClass &cls, const Event &ev) {
    const TcpSlots &s = cls.tcp;
    auto word = [&](std::int32_t slot) { return static_cast<std::uint64_t>(number_in(ev, slot, 0)); };
    auto end = [&](std::int32_t high, std::int32_t low, std::int32_t port) {
        return TcpEnd{word(high), word(low), static_cast<std::uint16_t>(word(port))};
    };
    TcpCall call;
    call.ts_ns = ev.ts_ns;
    call.send = s.send;
    call.local = end(s.local_high, s.local_low, s.local_port);
    call.peer = end(s.peer_high, s.peer_low, s.peer_port);
    call.socket = word(s.socket);
    call.position = static_cast<std::uint32_t>(word(s.position));
    call.bytes = static_cast<std::uint32_t>(word(s.bytes));
    call.host = common.now.host;
    call.pid = number_in(ev, cls.pid_slot, -1);
    call.tid = number_in(ev, cls.tid_slot, -1);
    out.tables.tcp(call);
}

}  // namespace opline
