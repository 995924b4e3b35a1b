// SPDX-License-Identifier: MIT
#include "event/wire.hpp"

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace opline {
namespace {

constexpr std::size_t kAtOnce = 1 << 16;      // bytes of events in a message, about
constexpr std::uint32_t kLongest = 1U << 30;  // of a message
constexpr std::size_t kLength = sizeof(std::uint32_t) + 1;
constexpr char kClass = 'C', kStream = 'S', kEvents = 'E', kGap = 'G', kFinish = 'F';

template <class T>
void put(std::string &to, T value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

void put_text(std::string &to, std::string_view text) {
    put(to, static_cast<std::uint32_t>(text.size()));
    to.append(text);
}

void put_slot(std::string &to, const Slot &slot) {
    put(to, slot.kind);
    if (slot.kind == Slot::Kind::kString) put_text(to, slot.str());
    else if (slot.kind != Slot::Kind::kAbsent) put(to, slot.u);
}

void send_all(int socket, const char *at, std::size_t size) {
    while (size > 0) {
        const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) throw WireError("the process that wants the events is gone");
        at += sent;
        size -= static_cast<std::size_t>(sent);
    }
}

template <class T>
T answer(int socket) {
    T value{};
    auto *at = reinterpret_cast<char *>(&value);
    for (std::size_t have = 0; have < sizeof value;) {
        const ssize_t got = ::recv(socket, at + have, sizeof value - have, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw WireError("the process that wants the events is gone");
        have += static_cast<std::size_t>(got);
    }
    return value;
}

}  // namespace

void WireSink::send(char kind, const std::string &parts) {
    std::string head;
    put(head, static_cast<std::uint32_t>(parts.size() + 1));
    head.push_back(kind);
    send_all(socket_, head.data(), head.size());
    send_all(socket_, parts.data(), parts.size());
}

void WireSink::send_events() {
    if (events_.empty()) return;
    send(kEvents, events_);
    events_.clear();
}

ClassPlan WireSink::add_class(const ClassDecl &decl) {
    send_events();
    std::string parts;
    put_text(parts, decl.name);
    put(parts, decl.domain);
    put(parts, static_cast<std::uint32_t>(decl.fields.size()));
    for (const FieldDecl &field : decl.fields) {
        put_text(parts, field.name);
        put(parts, field.type);
        put(parts, field.scope);
    }
    send(kClass, parts);
    ClassPlan plan;
    plan.id = answer<std::uint32_t>(socket_);
    plan.time_slot = answer<std::int32_t>(socket_);
    for (std::uint32_t left = answer<std::uint32_t>(socket_); left > 0; --left)
        plan.wanted.push_back(answer<std::uint32_t>(socket_));
    if (slots_.size() <= plan.id) slots_.resize(plan.id + 1);
    slots_[plan.id] = plan.wanted.size();
    return plan;
}

std::uint32_t WireSink::add_stream(const StreamDecl &decl) {
    send_events();
    std::string parts;
    put_text(parts, decl.host);
    put(parts, decl.domain);
    put_text(parts, decl.channel);
    put_text(parts, decl.path);
    put(parts, decl.instance);
    send(kStream, parts);
    return answer<std::uint32_t>(socket_);
}

void WireSink::events(const Event *first, const Event *past) {
    for (; first != past; ++first) {
        put(events_, first->cls);
        put(events_, first->stream);
        put(events_, first->cpu);
        put(events_, first->ts_ns);
        for (std::size_t i = 0; i < slots_[first->cls]; ++i) put_slot(events_, first->slots[i]);
        if (events_.size() >= kAtOnce) send_events();
    }
}

void WireSink::gap(const Gap &gap) {
    send_events();
    std::string parts;
    put(parts, gap.stream);
    put(parts, gap.kind);
    put(parts, gap.begin_ns);
    put(parts, gap.end_ns);
    put(parts, gap.count);
    put_text(parts, gap.why);
    send(kGap, parts);
}

bool WireSink::finish() {
    send_events();
    send(kFinish, {});
    return true;
}

// The parts of a message, one after the other.
class WireFeed::Parts {
  public:
    Parts(const char *at, const char *end) : at_(at), end_(end) {}
    bool more() const { return at_ != end_; }

    template <class T>
    T number() {
        T value{};
        std::memcpy(&value, bytes(sizeof value), sizeof value);
        return value;
    }
    template <class T>
    T one_of(T last) {
        const T value = number<T>();
        if (value > last) nonsense();
        return value;
    }
    std::string_view text() {
        const auto size = number<std::uint32_t>();
        return {bytes(size), size};
    }
    Slot slot() {
        Slot slot;
        slot.kind = one_of(Slot::Kind::kString);
        if (slot.kind == Slot::Kind::kString) return Slot::of(text());
        if (slot.kind != Slot::Kind::kAbsent) slot.u = number<std::uint64_t>();
        return slot;
    }
    [[noreturn]] static void nonsense() { throw WireError("the process that reads the trace sends nonsense"); }

  private:
    const char *bytes(std::size_t size) {
        if (size > static_cast<std::size_t>(end_ - at_)) nonsense();
        return std::exchange(at_, at_ + size);
    }

    const char *at_, *end_;
};

void WireFeed::take_class(Parts &parts) {
    ClassDecl decl;
    decl.name = parts.text();
    decl.domain = parts.one_of(Domain::kKernel);
    for (auto left = parts.number<std::uint32_t>(); left > 0; --left) {
        FieldDecl field;
        field.name = parts.text();
        field.type = parts.one_of(FieldType::kOther);
        field.scope = parts.one_of(FieldScope::kContext);
        decl.fields.push_back(std::move(field));
    }
    const ClassPlan plan = to_.add_class(decl);
    if (slots_of_.size() <= plan.id) slots_of_.resize(plan.id + 1);
    slots_of_[plan.id] = plan.wanted.size();
    std::string said;
    put(said, plan.id);
    put(said, plan.time_slot);
    put(said, static_cast<std::uint32_t>(plan.wanted.size()));
    for (const std::uint32_t field : plan.wanted) put(said, field);
    send_all(socket_, said.data(), said.size());
}

void WireFeed::take_stream(Parts &parts) {
    StreamDecl decl;
    decl.host = parts.text();
    decl.domain = parts.one_of(Domain::kKernel);
    decl.channel = parts.text();
    decl.path = parts.text();
    decl.instance = parts.number<std::uint64_t>();
    const std::uint32_t number = to_.add_stream(decl);
    ++streams_;
    std::string said;
    put(said, number);
    send_all(socket_, said.data(), said.size());
}

void WireFeed::take_events(Parts &parts) {
    events_.clear();
    slots_.clear();
    std::vector<std::size_t> places;
    while (parts.more()) {
        Event event{};
        event.cls = parts.number<std::uint32_t>();
        event.stream = parts.number<std::uint32_t>();
        event.cpu = parts.number<std::uint32_t>();
        event.ts_ns = parts.number<std::int64_t>();
        if (event.cls >= slots_of_.size() || event.stream >= streams_) Parts::nonsense();
        places.push_back(slots_.size());
        for (std::size_t left = slots_of_[event.cls]; left > 0; --left) slots_.push_back(parts.slot());
        events_.push_back(event);
    }
    for (std::size_t i = 0; i < events_.size(); ++i) events_[i].slots = slots_.data() + places[i];
    if (!events_.empty()) to_.events(events_.data(), events_.data() + events_.size());
}

void WireFeed::take_gap(Parts &parts) {
    Gap gap;
    gap.stream = parts.number<std::uint32_t>();
    gap.kind = parts.one_of(Gap::Kind::kDamage);
    gap.begin_ns = parts.number<std::int64_t>();
    gap.end_ns = parts.number<std::int64_t>();
    gap.count = parts.number<std::uint64_t>();
    gap.why = parts.text();
    if (gap.stream >= streams_) Parts::nonsense();
    to_.gap(gap);
}

void WireFeed::take(char kind, Parts parts) {
    switch (kind) {
    case kClass: return take_class(parts);
    case kStream: return take_stream(parts);
    case kEvents: return take_events(parts);
    case kGap: return take_gap(parts);
    case kFinish: finishing_ = true; return;
    default: Parts::nonsense();
    }
}

WireFeed::State WireFeed::run() {
    if (finishing_) return to_.finish() ? State::kFinished : State::kMore;
    const std::size_t had = come_.size();
    come_.resize(had + kAtOnce);
    const ssize_t got = ::recv(socket_, come_.data() + had, kAtOnce, 0);
    const int error = errno;
    come_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && error == EINTR) return State::kMore;
    if (got <= 0) return State::kCut;
    std::size_t at = 0;
    while (come_.size() - at >= kLength) {
        std::uint32_t size = 0;
        std::memcpy(&size, come_.data() + at, sizeof size);
        if (size == 0 || size > kLongest) Parts::nonsense();
        if (come_.size() - at - sizeof size < size) break;
        const char *message = come_.data() + at + sizeof size;
        take(*message, {message + 1, message + size});
        at += sizeof size + size;
    }
    come_.erase(0, at);
    return State::kMore;
}

}  // namespace opline
