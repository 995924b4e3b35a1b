// SPDX-License-Identifier: MIT
#include "core/printer.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/utf8.hpp"
#include "model/plan.hpp"

namespace opline {
namespace {

constexpr std::size_t kFlushAt = 1u << 16;

template <class T>
void number(std::string &out, T v, int base = 10) {
    char b[72];
    auto end = std::to_chars(b, b + sizeof b, v, base).ptr;
    out.append(b, end);
}

}  // namespace

Printer::Printer(int fd, PrintFilter filter) : fd_(fd), filter_(std::move(filter)) {}
Printer::~Printer() { flush(); }

ClassPlan Printer::add_class(const ClassDecl &decl) {
    Class c;
    append_shown(c.name, decl.name);
    c.shown = glob_match(filter_.names, decl.name);
    ClassPlan plan;
    plan.id = static_cast<std::uint32_t>(classes_.size());
    for (std::uint32_t i = 0; i < decl.fields.size(); ++i) {
        const FieldDecl &f = decl.fields[i];
        const bool time =
            f.name == "ktime" && (decl.name.rfind("block:", 0) == 0 || decl.name.rfind("syscall:", 0) == 0 ||
                                  decl.name.rfind("cephprobe:", 0) == 0 || decl.name.rfind("cephring:", 0) == 0);
        if (!c.shown && !time) continue;
        const auto slot = static_cast<std::int32_t>(plan.wanted.size());
        plan.wanted.push_back(i);
        if (time) plan.time_slot = slot;
        std::string label;
        append_shown(label, f.name);
        (f.scope == FieldScope::kContext ? c.contexts : c.payload).push_back(label + " = ");
        (f.scope == FieldScope::kContext ? c.context_slots : c.payload_slots).push_back(slot);
    }
    classes_.push_back(std::move(c));
    return plan;
}

std::uint32_t Printer::add_stream(const StreamDecl &decl) {
    streams_.push_back(decl);
    for (std::string *text : {&streams_.back().host, &streams_.back().channel}) {
        std::string seen;
        append_shown(seen, *text);
        *text = std::move(seen);
    }
    if (decl.host.empty()) streams_.back().host = "-";
    if (decl.channel.empty()) streams_.back().channel = "-";
    return static_cast<std::uint32_t>(streams_.size() - 1);
}

void Printer::flush() {
    std::size_t at = 0;
    while (at < buffer_.size() && error_ == 0) {
        const auto n = ::write(fd_, buffer_.data() + at, buffer_.size() - at);
        if (n >= 0) at += static_cast<std::size_t>(n);
        else if (errno != EINTR) error_ = errno;
    }
    buffer_.clear();
}

void Printer::value(const Slot &s) {
    switch (s.kind) {
    case Slot::Kind::kUnsigned:
        if (s.u >= 1ull << 40) {  // a pointer or a mask, to the eye
            buffer_ += "0x";
            number(buffer_, s.u, 16);
        } else {
            number(buffer_, s.u);
        }
        return;
    case Slot::Kind::kSigned: number(buffer_, s.i); return;
    case Slot::Kind::kReal: {
        char b[40];
        buffer_.append(b, static_cast<std::size_t>(std::snprintf(b, sizeof b, "%.9g", s.r)));
        return;
    }
    case Slot::Kind::kString:
        buffer_ += '"';
        {
            std::string quoted;
            for (char c : s.str()) {
                if (c == '"' || c == '\\') quoted += '\\';
                quoted += c;
            }
            append_shown(buffer_, quoted);  // one event, one line
        }
        buffer_ += '"';
        return;
    case Slot::Kind::kAbsent: buffer_ += "(compound)"; return;
    }
}

void Printer::fields(const std::vector<std::string> &labels, const std::vector<std::int32_t> &slots,
                     const Slot *values) {
    buffer_ += '{';
    for (std::size_t i = 0; i < labels.size(); ++i) {
        buffer_ += i == 0 ? " " : ", ";
        buffer_ += labels[i];
        value(values[slots[i]]);
    }
    buffer_ += labels.empty() ? "}" : " }";
}

void Printer::event(const Event &ev) {
    if (first_ns_ == kNoTime) first_ns_ = ev.ts_ns;
    const Class &c = classes_[ev.cls];
    const std::int64_t from_first_ns = ev.ts_ns - first_ns_;
    if ((filter_.until_is_absolute ? ev.ts_ns : from_first_ns) >= filter_.until_ns) past_end_ = true;
    if (!c.shown || done() || (filter_.since_is_absolute ? ev.ts_ns : from_first_ns) < filter_.since_ns) return;
    ++printed_;
    number(buffer_, ev.ts_ns);
    buffer_ += ' ';
    buffer_ += streams_[ev.stream].host;
    buffer_ += ' ';
    buffer_ += streams_[ev.stream].channel;
    if (ev.cpu != kNoCpu) {
        buffer_ += " cpu ";
        number(buffer_, ev.cpu);
    }
    buffer_ += ' ';
    buffer_ += c.name;
    buffer_ += ": ";
    fields(c.contexts, c.context_slots, ev.slots);
    buffer_ += ", ";
    fields(c.payload, c.payload_slots, ev.slots);
    buffer_ += '\n';
    if (buffer_.size() >= kFlushAt) flush();
}

void Printer::events(const Event *first, const Event *past) {
    for (; first != past; ++first) event(*first);
}

void Printer::gap(const Gap &gap) {
    const bool damage = gap.kind == Gap::Kind::kDamage;
    if (!damage && done()) return;
    buffer_ += "# ";
    if (!damage) number(buffer_, gap.count);
    buffer_ += damage                            ? "not readable: "
               : gap.kind == Gap::Kind::kPackets ? " packets discarded: "
                                                 : " events discarded: ";
    const StreamDecl &s = streams_[gap.stream];
    buffer_ += s.host + ' ' + s.channel + " stream ";
    number(buffer_, s.instance);
    if (damage && gap.begin_ns != kNoTime) {
        buffer_ += " after ";
        number(buffer_, gap.begin_ns);
    }
    if (!damage && gap.begin_ns != kNoTime && gap.end_ns != kNoTime) {
        buffer_ += " from ";
        number(buffer_, gap.begin_ns);
        buffer_ += " to ";
        number(buffer_, gap.end_ns);
    }
    if (damage) {
        buffer_ += ": ";
        append_shown(buffer_, gap.why);
    }
    buffer_ += '\n';
}

bool Printer::finish() {
    flush();
    return true;
}

}  // namespace opline
