// SPDX-License-Identifier: MIT
#include "binding/classes.hpp"

#include <algorithm>
#include <optional>

#include "binding/thread_fields.hpp"
#include "event/providers.hpp"

namespace opline {
namespace {

// Hands out slots for the fields that are asked for, each field once.
class Slots {
  public:
    explicit Slots(const ClassDecl &decl) : decl_(decl) {}
    bool comm_is_procname = false;  // what other classes have as a context

    // Payload before context: an event's own `tid` is not its context's.
    std::int32_t want(const std::string &field) { return want_in(field, {FieldScope::kPayload, FieldScope::kContext}); }
    std::int32_t want_payload(std::initializer_list<const char *> fields) {
        for (auto f : fields)
            if (auto s = want_in(f, {FieldScope::kPayload}); s != kNoSlot) return s;
        return kNoSlot;
    }
    std::int32_t want_context(const std::string &field) { return want_in(field, {FieldScope::kContext}); }
    std::int32_t want_first(std::initializer_list<const char *> fields) {
        for (auto f : fields)
            if (auto s = want(f); s != kNoSlot) return s;
        return kNoSlot;
    }
    // A field by its place in the declaration; none if it is kNoSlot.
    std::int32_t want_at(std::int32_t index) {
        return index == kNoSlot ? kNoSlot : slot_of(static_cast<std::uint32_t>(index));
    }
    std::vector<std::uint32_t> take() { return std::move(wanted_); }

  private:
    std::int32_t want_in(const std::string &field, std::initializer_list<FieldScope> scopes) {
        if (field.empty()) return kNoSlot;
        for (auto scope : scopes)
            for (std::uint32_t i = 0; i < decl_.fields.size(); ++i)
                if (decl_.fields[i].scope == scope && decl_.fields[i].name == field) return slot_of(i);
        return comm_is_procname && field == "procname" ? want_in("comm", scopes) : kNoSlot;
    }
    std::int32_t slot_of(std::uint32_t index) {
        auto it = std::find(wanted_.begin(), wanted_.end(), index);
        if (it != wanted_.end()) return static_cast<std::int32_t>(it - wanted_.begin());
        wanted_.push_back(index);
        return static_cast<std::int32_t>(wanted_.size() - 1);
    }
    const ClassDecl &decl_;
    std::vector<std::uint32_t> wanted_;
};

BoundKey bind_key(const KeyUse &use, const Plan &plan, Slots &slots, bool &broken) {
    BoundKey key;
    key.space = use.space;
    key.spaces = plan.key_spaces[use.space].spaces;
    key.scope = plan.key_spaces[use.space].scope;
    for (const auto &f : use.fields) {
        key.slots.push_back(slots.want(f));
        if (key.slots.back() == kNoSlot) broken = true;
    }
    for (auto fact : use.facts)
        if (fact != kNoFact) key.facts = use.facts;
    return key;
}

std::vector<BoundKey> bind_keys(const std::vector<KeyUse> &uses, const Plan &plan, Slots &slots, bool &broken) {
    std::vector<BoundKey> out;
    for (const auto &use : uses)
        if (!use.of_op()) out.push_back(bind_key(use, plan, slots, broken));
    return out;
}

// A field that the model names and the class lacks breaks the point, except where it only decorates.
std::int32_t needed(const std::string &field, Slots &slots, bool &broken) {
    auto slot = slots.want(field);
    if (slot == kNoSlot && !field.empty()) broken = true;
    return slot;
}

BoundPoint bind_point(std::uint32_t spec_index, const Plan &plan, Slots &slots, StringPool &strings) {
    const PointSpec &spec = plan.points[spec_index];
    BoundPoint p;
    p.spec = spec_index;
    for (const auto &w : spec.when) p.when.push_back({needed(w.field, slots, p.broken), &w});
    for (std::size_t i = 0; i < BoundPoint::kLists.size(); ++i)
        p.*BoundPoint::kLists[i].second = bind_keys(spec.*PointSpec::kLists[i].second, plan, slots, p.broken);
    for (const auto &use : spec.release)
        if (use.of_op()) p.release_all |= 1ull << use.space;
    if (spec.learn != kNoFact) {
        const FactSpec &fact = plan.facts[static_cast<std::size_t>(spec.learn)];
        p.fact_of.scope = fact.scope;
        p.fact_of.slots.push_back(needed(fact.of, slots, p.broken));
        for (const auto &f : fact.value) p.fact_value.slots.push_back(needed(f, slots, p.broken));
    }
    for (const auto *uses : {&p.find, &p.bind})
        for (const auto &use : *uses)
            if (use.scope == KeyScope::kGlobal) p.global_spaces |= 1ull << use.space;
    for (const auto &use : p.find) p.needs_facts = p.needs_facts || !use.facts.empty();
    if (!spec.mark.empty()) p.mark = strings.intern(spec.mark);
    if (!spec.at.empty()) p.at = strings.intern(spec.at);
    for (std::size_t i = 0; i < PointFields<std::int32_t>::kFields.size(); ++i) {
        const auto &to = PointFields<std::int32_t>::kFields[i];
        const std::string &field = spec.field.*PointFields<std::string>::kFields[i].field;
        p.slot.*to.field = to.needed ? needed(field, slots, p.broken) : slots.want(field);
    }
    if (spec.ios.submit) p.ios_submit = bind_key(*spec.ios.submit, plan, slots, p.broken);
    if (spec.ios.wait) p.ios_wait = bind_key(*spec.ios.wait, plan, slots, p.broken);
    p.ios_count = needed(spec.ios.count, slots, p.broken);
    p.ios_submitted = needed(spec.ios.submitted, slots, p.broken);
    if (spec.ios.reaped != "*") p.ios_reaped = needed(spec.ios.reaped, slots, p.broken);
    p.ios_names = slots.want(spec.ios.names);
    if (spec.field.name.empty()) p.name_id = strings.intern(spec.name);
    if (!spec.class_text.empty()) p.class_id = strings.intern(spec.class_text);
    p.batch_space = strings.intern(spec.batch_space);
    return p;
}

// Which of the parts of Stitcher::event() concern the point, once the slots of its class are known.
void bind_parts(BoundPoint &p, const PointSpec &spec) {
    p.of_call = spec.ios && spec.role != Role::kBegin;
    p.notes = p.mark != 0 || spec.learn != kNoFact;
    p.of_files = p.slot.file != kNoSlot || p.inode_slot != kNoSlot || spec.in_flight != IoWindow::kNone ||
                 spec.sync != IoWindow::kNone;
    p.decorates = p.of_files || p.class_id != 0 || p.slot.op_class != kNoSlot || p.slot.object != kNoSlot ||
                  p.slot.offset != kNoSlot || p.slot.length != kNoSlot || spec.direction != Direction::kUnknown;
    p.joins = spec.child || p.find.size() > 1 || !p.meet.empty() || !p.wait.empty();
}

BlockSlots bind_block(BlockKind kind, Slots &slots, bool with_process) {
    BlockSlots b;
    b.blank.kind = kind;
    b.blank.tid = b.blank.pid = -1;
    auto narrow = [&](std::initializer_list<const char *> fields, std::size_t offset) {
        b.narrow.add(slots.want_first(fields), offset);
    };
    auto wide = [&](std::initializer_list<const char *> fields, std::size_t offset) {
        b.wide.add(slots.want_first(fields), offset);
    };
    // Whoever is interrupted by a completion has nothing to do with it.
    if (kind != BlockKind::kRqComplete && kind != BlockKind::kBioComplete && kind != BlockKind::kRqRequeue) {
        narrow({"tid", "perf_tid"}, offsetof(BlockEvent, tid));
        b.comm = slots.want_first({"comm", "procname"});
    }
    narrow({"dev"}, offsetof(BlockEvent, dev));
    wide({"sector"}, offsetof(BlockEvent, sector));
    narrow({"nr_sector"}, offsetof(BlockEvent, nr_sectors));
    b.flags = slots.want("rwbs");
    b.narrow.add(b.flags, offsetof(BlockEvent, rwbs));
    narrow({"error"}, offsetof(BlockEvent, error));
    narrow({"old_dev"}, offsetof(BlockEvent, old_dev));
    wide({"old_sector"}, offsetof(BlockEvent, old_sector));
    wide({"new_sector"}, offsetof(BlockEvent, new_sector));
    wide({"rq", "rq_ptr", "request"}, offsetof(BlockEvent, rq));
    wide({"bio", "bio_ptr"}, offsetof(BlockEvent, bio));
    wide({"parent"}, offsetof(BlockEvent, parent));
    narrow({"cpu"}, offsetof(BlockEvent, cpu));
    if (with_process) narrow({"vpid", "pid"}, offsetof(BlockEvent, pid));
    return b;
}

// LTTng's names; perf's conversion to CTF says pid for tid and puts the sub-system before the event's name.
void bind_sched(BoundClass &c, std::string_view name, Slots &slots) {
    if (name == "sched_switch") {
        c.kind = ClassKind::kSchedSwitch;
        c.sched.prev_tid = slots.want_first({"prev_tid", "prev_pid"});
        c.sched.prev_state = slots.want("prev_state");
        c.sched.next_tid = slots.want_first({"next_tid", "next_pid"});
        return;
    }
    if (name == "sched_waking") c.sched.wake = Wake::kWaking;
    else if (name == "sched_wakeup") c.sched.wake = Wake::kWakeup;
    else if (name == "sched_wakeup_new") c.sched.wake = Wake::kNew;
    else return;
    c.kind = ClassKind::kSchedWake;
    c.sched.tid = slots.want_payload({"tid", "pid"});
    // Who is woken runs there. A sched_waking names the CPU where the thread last ran, which may be off since.
    if (c.sched.wake != Wake::kWaking) c.sched.cpu = slots.want("target_cpu");
    c.tid_slot = slots.want_context("tid");
    if (c.tid_slot == kNoSlot) c.tid_slot = slots.want_context("perf_tid");
    c.comm_slot = slots.want_context("procname");
}

// Of threads' states; system calls that the model does not know, and interrupts: their other half must be there.
void bind_kernel(BoundClass &c, std::string_view name, Slots &slots) {
    if (starts_with(name, "sched_")) return bind_sched(c, name, slots);
    if (starts_with(name, "lttng_") || c.domain != Domain::kKernel) return;
    c.kind = ClassKind::kHalf;
    if (!starts_with(name, "irq_")) c.tid_slot = slots.want_context("tid");
}

// From BPF: one event of what sched_switch, sched_waking and sched_switch say of a thread, when it is back on a CPU.
// The waker is payload.
void bind_off_cpu(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kOffCpu;
    c.sched.tid = slots.want("tid");
    c.sched.prev_state = slots.want("prev_state");
    c.sched.off_at = slots.want("off_at");
    c.sched.woken_at = slots.want("woken_at");
    c.tid_slot = slots.want("waker_tid");
    c.comm_slot = slots.want("waker_comm");
}

// What a collector says that it has lost.
void bind_lost(BoundClass &c, std::string_view name, Slots &slots) {
    const bool block_or_sched = name == "block:lost" || name == "sched:lost";
    if (!block_or_sched && name != "cephprobe:lost" && name != "cephring:lost") return;
    c.kind = ClassKind::kCollectorLost;
    c.count_slot = slots.want("count");
    c.sched.loses = block_or_sched;
    c.sched.until = slots.want("until");
}

// System calls, block events and threads' states come from one collector, hits of Ceph's probes from another.
void bind_number(BoundClass &c, Slots &slots) {
    if (c.plan.time_slot == kNoSlot || starts_with(c.name, kRings) || c.name == "sched:lost") return;
    c.number.collector = starts_with(c.name, kOldProbes) ? 1 : 0;
    c.number.slot = slots.want_payload({"seq"});
    c.number.cpu = slots.want_payload({"cpu"});
}

// A class of block events, LTTng's or BPF's.
void bind_block_class(BoundClass &c, std::string_view name, Slots &slots, const Plan &plan, bool of_bpf,
                      const Wanted &wanted) {
    const auto kind = BlockModel::kind_by_name(name);
    c.kind = kind == BlockKind::kOther ? (of_bpf ? ClassKind::kContext : ClassKind::kIgnored)
             : kind == BlockKind::kPlug || kind == BlockKind::kUnplug ? ClassKind::kPlug
                                                                      : ClassKind::kBlock;
    if (c.kind == ClassKind::kPlug && wanted.sched) {
        c.block.blank.kind = kind;
        c.tid_slot = slots.want("tid");
    }
    if (c.kind == ClassKind::kBlock)
        c.block = bind_block(kind, slots, kind == BlockKind::kBioQueue && !plan.bios.op_class.empty());
}

// A class that is points of the model: its thread, whose name only a begin needs where nobody asks for more.
void bind_points_class(BoundClass &c, const ClassDecl &decl, Slots &slots, const Plan &plan, const Wanted &wanted) {
    c.kind = ClassKind::kPoints;
    const ThreadFields who = thread_fields(decl);
    c.tid_slot = slots.want_at(who.tid);
    c.pid_slot = slots.want_at(who.pid);
    const bool named = wanted.thread_names || std::any_of(c.points.begin(), c.points.end(), [&](const BoundPoint &p) {
                           const PointSpec &spec = plan.points[p.spec];
                           return spec.role == Role::kBegin || spec.role == Role::kSoftBegin || spec.ios;
                       });
    if (named) c.comm_slot = slots.want_at(who.comm);
}

// A class of no point: what the kernel says of devices, threads and calls.
void bind_other_class(BoundClass &c, std::string_view name, Slots &slots, const Wanted &wanted) {
    if (name == "lttng_statedump_block_device") {
        c.kind = ClassKind::kDeviceName;
        c.dev_slot = slots.want("dev");
        c.diskname_slot = slots.want("diskname");
    } else if (starts_with(name, "sched_") || starts_with(name, "irq_") || starts_with(name, "syscall_") ||
               starts_with(name, "compat_syscall_") || starts_with(name, "lttng_") || name == "cephprobe:watermark") {
        c.kind = ClassKind::kContext;
        if (wanted.sched) bind_kernel(c, name, slots);
    } else if (starts_with(name, kBpfSched)) {
        c.kind = ClassKind::kContext;
        c.plan.time_slot = slots.want("ktime");
        if (wanted.sched && name == "sched:off_cpu") bind_off_cpu(c, slots);
        else if (wanted.sched) bind_sched(c, name.substr(kBpfSched.size()), slots);
    }
}

}  // namespace

BoundClass bind_class(const ClassDecl &decl, const Plan &plan, StringPool &strings, const Wanted &wanted) {
    BoundClass c;
    c.name = decl.name;
    c.name_id = strings.intern(decl.name);
    c.domain = decl.domain;
    Slots slots(decl);

    std::string_view name = decl.name;
    // System calls from BPF have LTTng's names behind a provider's, and their own time; thread and name are payload.
    const bool bpf_call = starts_with(name, kBpfCalls);
    if (bpf_call) {
        name.remove_prefix(kBpfCalls.size());
        c.plan.time_slot = slots.want("ktime");
    }
    const bool bpf_block = starts_with(name, kBpfBlock);
    if (starts_with(name, kOldProbes)) c.plan.time_slot = slots.want("ktime");
    const bool old_probe = slots.comm_is_procname = c.plan.time_slot != kNoSlot && !bpf_call;
    const bool ring = starts_with(name, kRings);
    std::string shim_name;
    if (ring && name != "cephring:lost") name = shim_name = std::string(kShim).append(name.substr(kRings.size()));
    if (bpf_block || ring) c.plan.time_slot = slots.want("ktime");
    const bool kernel_block = starts_with(name, "block_");
    if (bpf_block || kernel_block) {
        bind_block_class(c, name, slots, plan, bpf_block, wanted);
    } else {
        for (std::uint32_t i = 0; i < plan.points.size(); ++i)
            if (glob_match(plan.points[i].event, name)) c.points.push_back(bind_point(i, plan, slots, strings));
        if (c.points.empty()) bind_other_class(c, name, slots, wanted);
        else bind_points_class(c, decl, slots, plan, wanted);
        if (!c.points.empty() && (bpf_call || old_probe || ring)) c.cpu_slot = slots.want("cpu");
        for (auto &p : c.points)
            if (bpf_call) {
                p.file_dev_slot = slots.want("file_dev");
                p.inode_slot = slots.want("inode");
            }
    }
    bind_lost(c, name, slots);
    if (wanted.sched) bind_number(c, slots);
    if (wanted.sched && name == "cephshim:msgr_epoll_return") c.count_slot = slots.want("n");
    c.plan.wanted = slots.take();
    for (auto &p : c.points) bind_parts(p, plan.points[p.spec]);
    if (c.kind == ClassKind::kPoints && c.points.size() == 1) {
        BoundPoint &p = c.points.front();
        if (!p.broken && p.when.empty() && !p.needs_facts && !plan.points[p.spec].optional) c.only = &p;
    }
    return c;
}

namespace {

bool holds(const BoundPredicate &w, const Slot &slot) {
    for (const auto &value : w.predicate->any) {
        if (auto text = std::get_if<std::string>(&value)) {
            if (slot.kind == Slot::Kind::kString && slot.str() == *text) return true;
        } else if (slot.is_number() && slot.i == std::get<std::int64_t>(value)) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool holds(const BoundPoint &point, const Event &event) {
    for (const auto &w : point.when)
        if (!holds(w, event.slots[w.slot])) return false;
    return true;
}

bool could_hold(const BoundPoint &point, const Event &event) {
    for (const auto &w : point.when)
        if (w.slot != kNoSlot && !holds(w, event.slots[w.slot])) return false;
    return true;
}

}  // namespace opline
