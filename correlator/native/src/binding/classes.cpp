// SPDX-License-Identifier: MIT
#include "binding/classes.hpp"

#include <algorithm>
#include <optional>

#include "binding/kernel_classes.hpp"
#include "binding/slots.hpp"
#include "binding/thread_fields.hpp"
#include "event/providers.hpp"

namespace opline {
namespace {

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

// A field named by the model and missing in the class breaks the point, except for decoration.
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
    p.ios_least = needed(spec.ios.least, slots, p.broken);
    p.ios_submitted = needed(spec.ios.submitted, slots, p.broken);
    if (spec.ios.reaped != "*") p.ios_reaped = needed(spec.ios.reaped, slots, p.broken);
    p.ios_names = slots.want(spec.ios.names);
    p.ios_taken = slots.want(spec.ios.taken);
    p.ios_posted = slots.want(spec.ios.posted);
    if (spec.field.name.empty()) p.name_id = strings.intern(spec.name);
    if (!spec.class_text.empty()) p.class_id = strings.intern(spec.class_text);
    p.batch_space = strings.intern(spec.batch_space);
    return p;
}

// Finds the parts of Stitcher::event() needed for the point, after the slots of the class are known.
void bind_parts(BoundPoint &p, const PointSpec &spec) {
    p.of_call = spec.ios.of_call() && spec.role != Role::kBegin;
    p.notes = p.mark != 0 || spec.learn != kNoFact;
    p.of_files = p.slot.file != kNoSlot || p.inode_slot != kNoSlot || spec.in_flight != IoWindow::kNone ||
                 spec.sync != IoWindow::kNone;
    p.decorates = p.of_files || p.class_id != 0 || p.slot.op_class != kNoSlot || p.slot.object != kNoSlot ||
                  p.slot.offset != kNoSlot || p.slot.length != kNoSlot || spec.direction != Direction::kUnknown;
    p.claims = claims_thread(spec);
    p.joins = spec.child || p.find.size() > 1 || !p.meet.empty() || !p.wait.empty();
}

// Also the slot of the thread's name: for events that begin bios, and for tables with the threads of a request's steps.
BlockSlots bind_block(BlockKind kind, Slots &slots, const Wanted &wanted, std::int32_t &comm_slot) {
    BlockSlots b;
    b.blank.kind = kind;
    b.blank.tid = b.blank.pid = b.blank.kthread = -1;
    auto narrow = [&](std::initializer_list<const char *> fields, std::size_t offset) {
        const std::int32_t slot = slots.want_first(fields);
        b.add_narrow(slot, slots.is_integer(slot), offset);
    };
    auto wide = [&](std::initializer_list<const char *> fields, std::size_t offset) {
        const std::int32_t slot = slots.want_first(fields);
        b.add_wide(slot, slots.is_integer(slot), offset);
    };
    // A thread interrupted by a completion has nothing to do with the completion.
    if (kind != BlockKind::kRqComplete && kind != BlockKind::kBioComplete && kind != BlockKind::kRqRequeue) {
        narrow({"tid", "perf_tid"}, offsetof(BlockEvent, tid));
        const bool begins_bio =
            kind == BlockKind::kBioQueue || kind == BlockKind::kBioRemap || kind == BlockKind::kSplit;
        if (begins_bio || wanted.requests) comm_slot = slots.want_first({"comm", "procname"});
    }
    narrow({"dev"}, offsetof(BlockEvent, dev));
    wide({"sector"}, offsetof(BlockEvent, sector));
    narrow({"nr_sector"}, offsetof(BlockEvent, nr_sectors));
    narrow({"rwbs"}, offsetof(BlockEvent, rwbs));
    b.flags = slots.want("rwbs");
    narrow({"error"}, offsetof(BlockEvent, error));
    narrow({"old_dev"}, offsetof(BlockEvent, old_dev));
    wide({"old_sector"}, offsetof(BlockEvent, old_sector));
    wide({"new_sector"}, offsetof(BlockEvent, new_sector));
    wide({"rq", "rq_ptr", "request"}, offsetof(BlockEvent, rq));
    wide({"bio", "bio_ptr"}, offsetof(BlockEvent, bio));
    wide({"parent"}, offsetof(BlockEvent, parent));
    narrow({"cpu"}, offsetof(BlockEvent, cpu));
    if (kind == BlockKind::kRqIssue || kind == BlockKind::kRqComplete || kind == BlockKind::kRqRequeue) {
        narrow({"queue"}, offsetof(BlockEvent, queue));
        narrow({"flush_seq"}, offsetof(BlockEvent, flush_seq));
    }
    if (kind == BlockKind::kBioQueue) {
        narrow({"pid", "perf_pid", "vpid"}, offsetof(BlockEvent, pid));
        wide({"cgroup"}, offsetof(BlockEvent, cgroup_number));
    }
    narrow({"kthread"}, offsetof(BlockEvent, kthread));
    return b;
}

// A collector's counts of lost events.
void bind_lost(BoundClass &c, std::string_view name, Slots &slots, const Providers &providers) {
    const bool block_or_sched = name == "block:lost" || name == "sched:lost";
    if (!block_or_sched && providers.own_name(name) != "lost") return;
    c.kind = ClassKind::kCollectorLost;
    c.count_slot = slots.want("count");
    c.sched.loses = block_or_sched;
    c.sched.since = slots.want("since");
    c.sched.until = slots.want("until");
}

// System calls, block events and threads' states come from one collector, events of an application's probes from
// another. Relays have no numbers.
void bind_number(BoundClass &c, Slots &slots, const Providers &providers) {
    if (c.plan.time_slot == kNoSlot || providers.relay_of(c.name) || c.name == "sched:lost") return;
    c.number.collector = providers.timed_of(c.name);
    c.number.slot = slots.want_payload({"seq"});
    c.number.cpu = slots.want_payload({"cpu"});
}

// A whole request, a further bio of a request, or the facts of a thread.
bool bind_record(BoundClass &c, std::string_view name, Slots &slots) {
    if (const auto kind = record_kind(name)) c.kind = *kind;
    else return false;
    c.record = std::make_unique<RecordSlots>();
    for (std::size_t i = 0; i < RecordSlots::kFields; ++i)
        c.record->slot[i] = slots.want_payload({RecordSlots::kNames[i]});
    if (c.kind == ClassKind::kRequestThread) c.comm_slot = slots.want_payload({"comm"});
    return true;
}

// A class of block events, LTTng's or BPF's.
void bind_block_class(BoundClass &c, std::string_view name, Slots &slots, bool of_bpf, const Wanted &wanted) {
    if (of_bpf && bind_record(c, name, slots)) return;
    const auto kind = BlockModel::kind_by_name(name);
    c.kind = kind == BlockKind::kOther ? (of_bpf ? ClassKind::kContext : ClassKind::kIgnored)
             : kind == BlockKind::kPlug || kind == BlockKind::kUnplug ? ClassKind::kPlug
                                                                      : ClassKind::kBlock;
    if (c.kind == ClassKind::kBlock) c.block = bind_block(kind, slots, wanted, c.comm_slot);
}

// A class with points of the model. The thread's name is wanted for few points, unless transitions need the name.
void bind_points_class(BoundClass &c, const ClassDecl &decl, Slots &slots, const Plan &plan, const Wanted &wanted) {
    c.kind = ClassKind::kPoints;
    const ThreadFields who = thread_fields(decl, plan.providers);
    c.tid_slot = slots.want_at(who.tid);
    c.pid_slot = slots.want_at(who.pid);
    if (decl.domain == Domain::kUst) c.pid_ns_slot = slots.want_context("pid_ns");
    auto needs = [&](const BoundPoint &p) { return needs_name(plan.points[p.spec]); };
    const bool named = wanted.thread_names || std::any_of(c.points.begin(), c.points.end(), needs);
    if (named) c.comm_slot = slots.want_at(who.comm);
}

// A class without a point: kernel events about devices, threads and calls.
void bind_other_class(BoundClass &c, std::string_view name, Slots &slots, const Providers &providers,
                      const Wanted &wanted) {
    if (bind_process(c, name, slots) || bind_tcp(c, name, slots)) return;
    if (name == "lttng_statedump_block_device") {
        c.kind = ClassKind::kDeviceName;
        c.dev_slot = slots.want("dev");
        c.diskname_slot = slots.want("diskname");
    } else if (name == "lttng_statedump_process_pid_ns") {
        bind_dumped_thread(c, slots);
    } else if (starts_with(name, "sched_") || starts_with(name, "irq_") || starts_with(name, "syscall_") ||
               starts_with(name, "compat_syscall_") || starts_with(name, "lttng_") ||
               providers.own_name(name) == "watermark") {
        c.kind = ClassKind::kContext;
        bind_sched(c, name, slots, wanted.sched);
    } else if (starts_with(name, kBpfSched)) {
        c.kind = ClassKind::kContext;
        c.plan.time_slot = slots.want("ktime");
        if (name == "sched:process_thread") bind_thread(c, slots);
        else if (starts_with(name, "sched:process_cgroup")) bind_cgroup(c, slots);
        else if (name == "sched:process_file_path") bind_file_path(c, slots);
        else if (wanted.sched && name == "sched:off_cpu") bind_off_cpu(c, slots);
        else if (wanted.sched && name == "sched:ran_instead") bind_ran_instead(c, slots);
        else if (wanted.sched && name == "sched:lock_wait") bind_lock_wait(c, slots);
        else if (wanted.sched && starts_with(name, "sched:follow")) bind_follow(c, slots);
        else if (wanted.sched) bind_sched(c, name.substr(kBpfSched.size()), slots, true);
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
    // System calls from BPF have LTTng's names after a provider's name, and their own time; thread and name are
    // payload.
    const bool bpf_call = starts_with(name, kBpfCalls);
    if (bpf_call) {
        name.remove_prefix(kBpfCalls.size());
        c.plan.time_slot = slots.want("ktime");
    }
    const bool bpf_block = starts_with(name, kBpfBlock);
    if (plan.providers.timed_of(name) != 0) c.plan.time_slot = slots.want("ktime");
    const bool timed = slots.comm_is_procname = c.plan.time_slot != kNoSlot && !bpf_call;
    const Providers::Relay *relay = plan.providers.relay_of(name);
    std::string shim_name;
    if (relay && plan.providers.own_name(name) != "lost")
        name = shim_name = (relay->shim + ':').append(plan.providers.own_name(name));
    if (bpf_block || relay) c.plan.time_slot = slots.want("ktime");
    const bool kernel_block = starts_with(name, "block_");
    if (bpf_block || kernel_block) {
        bind_block_class(c, name, slots, bpf_block, wanted);
    } else {
        for (std::uint32_t i = 0; i < plan.points.size(); ++i)
            if (glob_match(plan.points[i].event, name)) c.points.push_back(bind_point(i, plan, slots, strings));
        if (c.points.empty()) bind_other_class(c, name, slots, plan.providers, wanted);
        else bind_points_class(c, decl, slots, plan, wanted);
        if (!c.points.empty() && (bpf_call || timed || relay)) c.cpu_slot = slots.want("cpu");
        for (auto &p : c.points)
            if (bpf_call) {
                p.file_dev_slot = slots.want("file_dev");
                p.inode_slot = slots.want("inode");
            }
    }
    bind_lost(c, name, slots, plan.providers);
    bind_number(c, slots, plan.providers);
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
