// SPDX-License-Identifier: MIT
#include "core/printer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "binding/thread_fields.hpp"
#include "model/plan.hpp"

namespace opline {
namespace {

constexpr std::size_t kFlushAt = 1u << 16;

std::unique_ptr<EventForm> form_of(const std::string &name) {
    if (name == "text") return text_form();
    if (name == "json") return json_form();
    if (name == "csv") return csv_form();
    throw std::runtime_error("no such form: " + name);
}

bool has_own_time(std::string_view name, const Providers &providers) {
    return starts_with(name, kBpfBlock) || starts_with(name, kBpfCalls) || providers.timed_of(name) != 0 ||
           providers.relay_of(name);
}

bool is_one_of(const std::vector<std::int64_t> &wanted, std::int32_t slot, const Slot *values) {
    return wanted.empty() ||
           (values[slot].is_number() && std::find(wanted.begin(), wanted.end(), values[slot].i) != wanted.end());
}

bool is_one_of(const std::vector<PrintFilter::Devices> &some, std::int32_t slot, const Slot *values) {
    return slot != kNoSlot && values[slot].is_number() &&
           std::any_of(some.begin(), some.end(), [&](const auto &d) { return d.holds(values[slot].bits()); });
}

}  // namespace

PrintFilter print_filter(const std::string &text) {
    const auto json = nlohmann::json::parse(text);
    PrintFilter f;
    const auto devices = [&](const char *name) {
        std::vector<PrintFilter::Devices> found;
        for (const auto &[number, mask] : json.value(name, std::vector<std::pair<std::uint64_t, std::uint64_t>>()))
            found.push_back({number, mask});
        return found;
    };
    f.form = json.value("form", f.form);
    f.names = json.value("names", f.names);
    f.since_ns = json.value("since_ns", f.since_ns);
    f.until_ns = json.value("until_ns", f.until_ns);
    f.since_is_absolute = json.value("since_is_absolute", false);
    f.until_is_absolute = json.value("until_is_absolute", false);
    f.limit = json.value("limit", f.limit);
    f.devices = devices("devices");
    f.other_devices = devices("other_devices");
    f.pids = json.value("pids", f.pids);
    f.tids = json.value("tids", f.tids);
    f.comms = json.value("comms", f.comms);
    f.providers = providers_of(json);
    return f;
}

Printer::Printer(int fd, PrintFilter filter) : fd_(fd), filter_(std::move(filter)), form_(form_of(filter_.form)) {
    form_->head(buffer_);
}

ClassPlan Printer::add_class(const ClassDecl &decl) {
    Class c;
    c.written.name = decl.name;
    const ThreadFields who = thread_fields(decl, filter_.providers);
    const auto index_of = [&](const char *name) {
        for (std::size_t i = 0; i < decl.fields.size(); ++i)
            if (decl.fields[i].name == name && decl.fields[i].scope == FieldScope::kPayload)
                return static_cast<std::int32_t>(i);
        return kNoSlot;
    };
    const std::int32_t dev = index_of("dev"), old_dev = index_of("old_dev");
    const bool of_devices = !filter_.devices.empty() || !filter_.other_devices.empty();
    c.shown = glob_match(filter_.names, decl.name) && (filter_.tids.empty() || who.tid != kNoSlot) &&
              (filter_.pids.empty() || who.pid != kNoSlot) && (filter_.comms.empty() || who.comm != kNoSlot) &&
              (!of_devices || dev != kNoSlot);
    ClassPlan plan;
    plan.id = static_cast<std::uint32_t>(classes_.size());
    for (std::uint32_t i = 0; i < decl.fields.size(); ++i) {
        const FieldDecl &f = decl.fields[i];
        const bool time = f.name == "ktime" && has_own_time(decl.name, filter_.providers);
        if (!c.shown && !time) continue;
        const bool one = f.type != FieldType::kIntegers;  // the last number alone would look like the whole value
        const auto slot = one ? static_cast<std::int32_t>(plan.wanted.size()) : kNoSlot;
        if (one) plan.wanted.push_back(i);
        if (time) plan.time_slot = slot;
        const auto index = static_cast<std::int32_t>(i);
        if (index == who.tid) c.written.tid_slot = slot;
        if (index == who.pid) c.written.pid_slot = slot;
        if (index == who.comm) c.written.comm_slot = slot;
        if (index == dev) c.dev_slot = slot;
        if (index == old_dev) c.old_dev_slot = slot;
        (f.scope == FieldScope::kContext ? c.written.contexts : c.written.payload)
            .push_back({form_->label(f.name), slot});
    }
    classes_.push_back(std::move(c));
    return plan;
}

std::uint32_t Printer::add_stream(const StreamDecl &decl) {
    streams_.push_back(decl);
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

bool Printer::is_before(std::int64_t ts_ns, std::int64_t limit_ns, bool absolute) const {
    return (absolute ? ts_ns : ts_ns - first_ns_) < limit_ns;
}

bool Printer::is_meant(const Class &c, const Slot *values) const {
    if (!is_one_of(filter_.tids, c.written.tid_slot, values) || !is_one_of(filter_.pids, c.written.pid_slot, values))
        return false;
    if (!filter_.comms.empty()) {
        const Slot &comm = values[c.written.comm_slot];
        if (comm.kind != Slot::Kind::kString ||
            std::none_of(filter_.comms.begin(), filter_.comms.end(),
                         [&](const std::string &glob) { return glob_match(glob, comm.str()); }))
            return false;
    }
    const auto on = [&](const std::vector<PrintFilter::Devices> &some) {
        return is_one_of(some, c.dev_slot, values) || is_one_of(some, c.old_dev_slot, values);
    };
    return (filter_.devices.empty() || on(filter_.devices)) && !on(filter_.other_devices);
}

void Printer::event(const Event &ev) {
    if (first_ns_ == kNoTime) first_ns_ = ev.ts_ns;
    last_ns_ = ev.ts_ns;
    const Class &c = classes_[ev.cls];
    if (!is_before(ev.ts_ns, filter_.until_ns, filter_.until_is_absolute)) past_end_ = true;
    if (!c.shown || done() || is_before(ev.ts_ns, filter_.since_ns, filter_.since_is_absolute)) return;
    if (!is_meant(c, ev.slots)) return;
    ++printed_;
    form_->event(buffer_, c.written, streams_[ev.stream], ev);
    if (buffer_.size() >= kFlushAt) flush();
}

void Printer::events(const Event *first, const Event *past) {
    for (; first != past; ++first) event(*first);
}

void Printer::gap(const Gap &gap) {
    if (gap.kind != Gap::Kind::kDamage && done()) return;
    form_->gap(buffer_, streams_[gap.stream], gap);
}

bool Printer::finish() {
    flush();
    return true;
}

}  // namespace opline
