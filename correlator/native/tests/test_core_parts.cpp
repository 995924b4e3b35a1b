// SPDX-License-Identifier: MIT
// The parts of the core, each fed alone with the parts below it (core/impl.hpp).
#include <doctest/doctest.h>

#include "core/settler.hpp"
#include "core/whole_requests.hpp"
#include "identity/file_names.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kOpStream = 0, kKernelStream = 1, kStateStream = 2;

struct CoreParts {
    CoreParts() {
        for (const char *channel : {"ops", "kernel", "states"}) {  // in the order of their numbers
            StreamDecl decl;
            decl.channel = channel;
            decl.domain = decl.channel == "kernel" ? Domain::kKernel : Domain::kUst;
            common.streams.declared.push_back(decl);
            common.streams.hosts.push_back(0);
            shortfall.add_stream(decl);
        }
    }
    Op &op(std::int64_t begin_ns, std::int64_t end_ns) {
        Op &made = stitcher.ops().create();
        made.begin_ns = begin_ns;
        made.end_ns = end_ns;
        made.state = OpState::kEnded;
        return made;
    }

    Common common{Plan{}};
    Outputs out{common};
    Population population{{}};
    Stitcher stitcher{common.plan, common.strings, common.names, common.identities.threads, population, {}};
    Linker linker{stitcher.locator(), common.plan, common.strings};
    Membership members{population, linker};
    HostBlocks blocks{BlockMatch::kPointer, false, {}};
    KernelStates states{common, stitcher.ops()};
    Shortfall shortfall{common, stitcher, linker, states, out.tables};
    Settler settler{common, {stitcher, linker, blocks, states, shortfall.ends(), members, out}};
};

// An event of one number, on a CPU.
struct Numbered {
    Numbered(std::int64_t number, std::int64_t ts_ns) {
        slots[0].i = number;
        slots[1].i = 0;
        for (auto &slot : slots) slot.kind = Slot::Kind::kSigned;
        event.slots = slots.data();
        event.ts_ns = ts_ns;
        cls.number = {0, 1, 0};
    }
    std::array<Slot, 2> slots;
    Event event{};
    BoundClass cls;
};

// 3 and 4 do not come.
void pass_numbers(CoreParts &c) {
    for (const std::int64_t number : {1, 2, 5}) {
        Numbered n(number, number * 100);
        c.shortfall.number_passed(n.cls, n.event);
    }
}

Gap lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count) {
    return {stream, Gap::Kind::kEvents, begin_ns, end_ns, count, {}};
}

}  // namespace

TEST_CASE("a collector's number that does not come is an event that is missing, and its time is one of a loss") {
    CoreParts c;
    pass_numbers(c);
    CHECK(c.shortfall.counts().events_missing == 0);  // they may still come
    c.shortfall.last_number();
    CHECK(c.shortfall.counts().events_missing == 2);
    CHECK(c.linker.lost().overlap(200, 500));
    CHECK_FALSE(c.linker.lost().overlap(501, 600));
}

TEST_CASE("what the tracer has counted in that time explains numbers that did not come") {
    CoreParts c;
    pass_numbers(c);
    c.shortfall.discarded(lost_in(kOpStream, 250, 450, 2));
    c.shortfall.last_number();
    CHECK(c.shortfall.counts().discarded_events == 2);
    CHECK(c.shortfall.counts().events_missing == 0);
}

TEST_CASE("threads' states can be missing where the kernel's streams are, or those of the collector that tells them") {
    CoreParts c;
    CHECK(c.states.in_stream(kKernelStream));
    CHECK_FALSE(c.states.in_stream(kStateStream));
    c.states.collected();
    CHECK(c.states.in_stream(kOpStream));  // nothing shows so far which stream they come in
    BoundClass cls;
    cls.kind = ClassKind::kSchedWake;
    Slot tid{};
    tid.kind = Slot::Kind::kSigned;
    tid.i = 7;
    cls.sched.tid = 0;
    Event wake{};
    wake.slots = &tid;
    wake.stream = kStateStream;
    c.states.event(cls, wake);
    CHECK(c.states.in_stream(kStateStream));
    CHECK_FALSE(c.states.in_stream(kOpStream));
}

TEST_CASE("a CPU that an event names and whose stream is not there is told once") {
    CoreParts c;
    c.shortfall.cpu_named(9);  // nothing is known of the host's CPUs
    CHECK(c.shortfall.counts().streams_missing == 0);
    KnownStreams known;
    known.kernel_cpus = {0, 1};
    c.shortfall.know(known);
    for (const std::int64_t cpu : {0, 1, 3, 3}) c.shortfall.cpu_named(cpu);
    CHECK(c.shortfall.counts().streams_missing == 1);
}

TEST_CASE("an op in whose time an event was lost is tainted if its own begin and end come from there") {
    CoreParts c;
    c.shortfall.point(kOpStream, false);
    c.shortfall.discarded(lost_in(kKernelStream, 100, 200, 1));
    c.settler.settle(c.op(50, 150));
    CHECK(c.settler.counts().complete == 1);
    CHECK(c.settler.counts().tainted == 0);
    c.shortfall.discarded(lost_in(kOpStream, 100, 200, 1));
    c.settler.settle(c.op(50, 150));
    CHECK(c.settler.counts().tainted == 1);
    c.settler.settle(c.op(300, 400));
    CHECK(c.settler.counts().complete == 3);
    CHECK(c.settler.counts().tainted == 1);
    CHECK(c.settler.counts().partition_violations == 0);
}

TEST_CASE("who issued a whole request is asked for when its time has come") {
    WholeRequests whole;
    BoundClass cls;
    cls.kind = ClassKind::kRequest;
    cls.record = std::make_unique<RecordSlots>();
    auto &slot = cls.record->slot;
    slot[RecordSlots::kFlags] = 0;
    slot[RecordSlots::kIssue] = slot[RecordSlots::kRq] = 1;
    slot[RecordSlots::kTid] = slot[RecordSlots::kIssueTid] = slot[RecordSlots::kKernelTid] = 2;
    std::array<Slot, 3> values{};
    for (auto &value : values) value.kind = Slot::Kind::kSigned;
    values[0].i = RecordSlots::kQueued;
    values[1].i = 50;
    values[2].i = 77;
    Event ev{};
    ev.slots = values.data();
    ev.ts_ns = 1000;
    whole.add(cls, ev, Hosts{}, 3);
    std::uint32_t host = 0;
    CHECK(whole.take(host).comm == 0);  // nobody has said so far
    CHECK(host == 3);
    whole.thread(*cls.record, ev, 3, 5);
    const BlockEvent issue = whole.take(host);
    CHECK(issue.kind == BlockKind::kRqIssue);
    CHECK(issue.comm == 5);
}

TEST_CASE("an inode number that is used again is another file") {
    FileNames names;
    const FileNumber file{0, 5, 77}, any_host{FileNames::kAnyHost, 5, 77};
    names.map(any_host, {1, 101});
    CHECK(names.path(file, {}) == 101);
    names.map(any_host, {2, 102});
    CHECK(names.path(file, {}) == 0);
    CHECK(names.path(file, {1, 0}) == 101);
    CHECK(names.path(file, {2, 0}) == 102);
    CHECK(names.path(file, {3, 0}) == 0);
    names.tell(file, {3, 0});
    const FileName then = names.told(file);
    names.tell(file, {3, 103});
    names.tell(file, {3, 0});
    CHECK(names.path(file, then) == 103);
    names.tell(file, {4, 104});
    CHECK(names.path(file, then) == 0);
    CHECK(names.path(file, {3, 103}) == 103);
}
