// SPDX-License-Identifier: MIT
// The parts of the stitcher, each fed alone with the parts below it (stitch/stitcher.hpp).
#include <doctest/doctest.h>

#include "stitch/async_ios.hpp"
#include "stitch/batches.hpp"
#include "stitch/op_details.hpp"
#include "stitch/settling.hpp"

using namespace opline;

namespace {

struct Parts {
    Parts() {
        plan.linger_ns = 100;
        plan.key_spaces.resize(2);
        plan.key_spaces[0].name = "tag";
        plan.key_spaces[1].name = "object";
        s.hooks.settle = [this](Op &op) { settled.push_back(op.serial); };
        s.hooks.batch_closed = [this](const Batch &batch) { closed.push_back(batch.serial); };
        s.hooks.wrote = [this](Op &op, std::int64_t at_ns) { wrote.emplace_back(op.serial, at_ns); };
        s.hooks.sync_begun = [](Op &, std::int64_t, std::int64_t) {};
        s.hooks.sync_ended = [this](Op &, std::int64_t at_ns) { sync_ends.push_back(at_ns); };
    }
    Op &op(std::int64_t begin_ns, std::int32_t pid = 1, std::int64_t tid = 10) {
        Op &made = lives.new_op(0, pid, tid, begin_ns);
        point(made, begin_ns, tid);
        return made;
    }
    std::uint32_t point(Op &of, std::int64_t ts_ns, std::int64_t tid = 10) {
        Transition t;
        t.ts_ns = ts_ns;
        t.tid = tid;
        t.pid = of.pid;
        return lives.add_transition(of, t);
    }

    Plan plan;
    StringPool strings;
    Threads identities;
    Population population{{}};
    std::vector<std::uint64_t> settled, closed;
    std::vector<std::pair<std::uint64_t, std::int64_t>> wrote;
    std::vector<std::int64_t> sync_ends;
    Stitching s{plan, strings, identities, population, {}, {}};
    OpLives lives{s, [](Op &) { FAIL("there is room for more ops"); }};
    ThreadStates threads{s, lives.ops()};
    Keys keys{s, lives};
    Joins joins{s, lives};
    Settling settling{s, lives, keys, joins};
};

const Key kA{11, 1}, kB{22, 2};

}  // namespace

TEST_CASE("an op that ends closes its window and its sync, and settles after the model's linger") {
    Parts p;
    Op &op = p.op(1000);
    p.lives.open_io_window(op, 0);
    CHECK(p.lives.io_windows() == std::vector<std::uint64_t>{op_ref(op)});
    op.sync_ns = 1010;
    p.lives.end_op(op, 1050, p.point(op, 1050));
    CHECK(p.wrote == std::vector<std::pair<std::uint64_t, std::int64_t>>{{0, 1050}});
    CHECK(p.sync_ends == std::vector<std::int64_t>{1050});
    CHECK(p.lives.io_windows().empty());
    p.settling.advance(1150);
    CHECK(p.settled.empty());
    p.settling.advance(1151);
    CHECK(p.settled == std::vector<std::uint64_t>{0});
    CHECK_FALSE(p.lives.any_ended());
}

TEST_CASE("the last of an op's soft ends counts, whichever comes last") {
    Parts p;
    Op &op = p.op(1000);
    op.hard = false;
    p.lives.soften_end(op, 1100, p.point(op, 1100));
    p.lives.soften_end(op, 1200, p.point(op, 1200));
    p.lives.soften_end(op, 1150, p.point(op, 1150));
    p.settling.advance(1201);
    CHECK(p.settled.empty());  // the first end moved on
    p.settling.advance(1301);
    CHECK(p.settled == std::vector<std::uint64_t>{0});
}

TEST_CASE("at the end of the trace ended ops settle before open ones") {
    Parts p;
    p.op(1000);
    Op &ended = p.op(1001);
    p.lives.end_op(ended, 1002, p.point(ended, 1002));
    p.settling.last_event(1003);
    CHECK_FALSE(p.settling.settle_next_ended());
    CHECK(p.settled == std::vector<std::uint64_t>{1});
    p.settling.settle_open();
    CHECK(p.settled == std::vector<std::uint64_t>{1, 0});
}

TEST_CASE("a thread works for the last op that it entered, as long as that op is there") {
    Parts p;
    Op &outer = p.op(1000), &inner = p.op(1001);
    ThreadState &ts = p.threads.of(0, 10);
    p.threads.apply(ts, ThreadRule::kEnter, {&outer, 0, op_ref(outer), 0});
    p.threads.apply(ts, ThreadRule::kEnter, {&inner, 0, op_ref(inner), 0});
    CHECK(p.threads.current_op(0, 10) == &inner);
    p.settling.settle(inner);
    CHECK(p.threads.current_op(0, 10) == &outer);
    CHECK(p.threads.current_op(0, 11) == nullptr);
    CHECK(p.threads.current_op(1, 10) == nullptr);  // another host
    p.threads.apply(ts, ThreadRule::kLeave, {&outer, 0, op_ref(outer), 0});
    CHECK(p.threads.current_op(0, 10) == nullptr);
    p.threads.erase(0, 10);
    CHECK(p.threads.find(0, 10) == nullptr);
}

TEST_CASE("a key names the op that had it last, and is a straggler's once the op has settled") {
    Parts p;
    Op &first = p.op(1000), &second = p.op(1001);
    p.keys.bind(first, op_ref(first), 0, kA);
    CHECK(*p.keys.find(kA) == op_ref(first));
    CHECK_FALSE(p.keys.owns_all_keys_lost(first));
    p.keys.bind(second, op_ref(second), 0, kA);
    CHECK(*p.keys.find(kA) == op_ref(second));
    CHECK(p.keys.owns_all_keys_lost(first));
    p.settling.settle(first);
    CHECK_FALSE(p.keys.has_settled(kA));  // it names another op
    p.settling.settle(second);
    CHECK(p.keys.find(kA) == nullptr);
    CHECK(p.keys.has_settled(kA));
    CHECK_FALSE(p.keys.has_settled(kB));
}

TEST_CASE("a key that goes to another op ends the open op that had a soft end") {
    Parts p;
    Op &first = p.op(1000), &second = p.op(1200);
    first.hard = false;
    first.has_soft_end = true;
    first.soft_end_ns = 1100;
    p.keys.bind(first, op_ref(first), 0, kA);
    p.keys.bind(second, op_ref(second), 0, kA);
    CHECK(first.state == OpState::kEnded);
    CHECK(first.end_ns == 1100);
}

TEST_CASE("a key of an event is known by its fields, its scope, and the facts that they stand for") {
    Parts p;
    p.plan.facts.resize(1);
    Slot slots[2] = {};
    slots[0].kind = Slot::Kind::kUnsigned;
    slots[0].u = 7;
    Event ev{};
    ev.slots = slots;
    BoundKey use;
    use.slots = {0};
    Key one, other;
    CHECK(p.keys.key_of(use, ev, {0, 1, 10, 0, 0}, one) == KeyState::kKnown);
    CHECK(p.keys.key_of(use, ev, {0, 2, 20, 0, 0}, other) == KeyState::kKnown);
    CHECK(one == other);  // global
    use.scope = KeyScope::kProcess;
    CHECK(p.keys.key_of(use, ev, {0, 2, 20, 0, 0}, other) == KeyState::kKnown);
    CHECK_FALSE(one == other);
    use.facts = {0};
    CHECK(p.keys.key_of(use, ev, {0, 2, 20, 0, 0}, other) == KeyState::kUnlearned);
    use.slots = {1};
    CHECK(p.keys.key_of(use, ev, {0, 2, 20, 0, 0}, other) == KeyState::kAbsent);
}

TEST_CASE("two halves become one op with the transitions of both") {
    Parts p;
    Op &client = p.op(1000, 1), &server = p.op(1010, 2);
    server.hard = false;
    const std::uint64_t client_ref = op_ref(client), server_ref = op_ref(server);
    CHECK(p.joins.can_unite(client, server));
    Op &op = p.joins.unite(client, server, 0, true);
    CHECK(&op == &client);
    CHECK(op.transitions.size() == 2);
    CHECK(p.lives.ops().find(server_ref) == &client);  // an alias
    CHECK(p.lives.ops().find(client_ref) == &client);
    CHECK(op.halves.size() == 1);
}

TEST_CASE("two ops with a begin each are no halves of one") {
    Parts p;
    Op &first = p.op(1000), &second = p.op(1001);
    CHECK_FALSE(p.joins.can_unite(first, second));
    second.hard = false;
    CHECK(p.joins.can_unite(first, second));
    second.begin_ns = 999;  // a half is no older than the begin of the whole
    CHECK_FALSE(p.joins.can_unite(first, second));
}

TEST_CASE("the half that waits longest under a key is met first; order alone joins at the end") {
    Parts p;
    Op &first = p.op(1000), &second = p.op(1001), &half = p.op(1010, 2);
    half.hard = false;
    p.joins.wait_under(first, kA);
    p.joins.wait_under(second, kA);
    CHECK(p.joins.waits_alone(kA) == nullptr);
    bool sure = false;
    CHECK(&p.joins.meet(half, 0, kA, true, 30, sure) == &half);
    CHECK(sure);  // one thread made both that wait, and one takes them
    CHECK(p.joins.waits_alone(kA) == &second);
    CHECK(&p.joins.join_partner(first, 1100) == &first);
    CHECK(first.transitions.size() == 2);
    CHECK(p.s.counts.halves_joined_by_order == 1);
}

TEST_CASE("halves of several processes that wait under one key are left open") {
    Parts p;
    Op &first = p.op(1000, 1), &second = p.op(1001, 2), &half = p.op(1010, 3);
    half.hard = false;
    p.joins.wait_under(first, kA);
    p.joins.wait_under(second, kA);
    bool sure = false;
    CHECK(&p.joins.meet(half, 0, kA, false, 30, sure) == &half);
    CHECK_FALSE(sure);
    CHECK(p.s.counts.ambiguous_halves == 1);
}

TEST_CASE("batches: a batch that closes says its work, and counts what it declared") {
    Parts p;
    Batches batches(p.s, p.lives, p.keys);
    ThreadState ts;
    BoundPoint bp;
    batches.open(ts, bp, 1000, 10);
    REQUIRE(ts.batch.get() != nullptr);
    p.keys.bind_batch(*ts.batch, kA);
    CHECK(p.keys.find(kA) != nullptr);
    ts.batch->declared = 3;
    ts.batch->members = 2;
    batches.close(ts, 1100);
    CHECK(ts.batch.get() == nullptr);
    CHECK(p.closed == std::vector<std::uint64_t>{0});
    CHECK(p.s.counts.batch_counts_differ == 1);
    CHECK(p.keys.find(kA) == nullptr);
    batches.open(ts, bp, 1200, 10);
    batches.open(ts, bp, 1300, 10);
    CHECK(p.s.counts.batches_left_open == 1);
    CHECK(ts.batch->serial == 2);
}

TEST_CASE("batches of an order: an op is a member of the first that reaches far enough") {
    Parts p;
    Batches batches(p.s, p.lives, p.keys);
    Slot slots[1] = {};
    slots[0].kind = Slot::Kind::kUnsigned;
    Event ev{};
    ev.slots = slots;
    BoundPoint needs, reaches;
    needs.slot.needs = reaches.slot.reaches = 0;
    needs.slot.among = reaches.slot.among = reaches.slot.needs = kNoSlot;
    PointSpec spec;
    ThreadState waiter, writer;
    Op &op = p.op(1000);
    slots[0].u = 50;
    batches.await(op, {needs, spec, ev, {}, waiter, {}, {}, {}});
    REQUIRE(op.needs.size() == 1);
    for (const std::uint64_t reached : {40u, 60u, 70u}) {
        batches.open(writer, reaches, 1000 + static_cast<std::int64_t>(reached), 20);
        slots[0].u = reached;
        Passage p2{reaches, spec, ev, {}, writer, {}, {}, {}};
        batches.reached(p2);
        batches.close(writer, 1001 + static_cast<std::int64_t>(reached));
        CHECK(op.batches.size() == (reached < 50 ? 0 : 1));
    }
    CHECK(op.batches[0].batch->reached == 60);
    CHECK(op.needs.empty());
    slots[0].u = 65;  // reached already: no batch is needed
    Op &late = p.op(2000);
    batches.await(late, {needs, spec, ev, {}, waiter, {}, {}, {}});
    CHECK(late.needs.empty());
}

TEST_CASE("an I/O ends when a call takes its completion, though that was done long before") {
    Parts p;
    AsyncIos ios(p.s, p.threads, p.lives, p.keys);
    Slot slots[1] = {};
    slots[0].kind = Slot::Kind::kUnsigned;
    slots[0].u = 1;
    Event ev{};
    ev.slots = slots;
    BoundPoint submit, wait, back;
    submit.ios_submit.emplace();
    wait.ios_wait.emplace();
    back.ios_reaped = 0;  // one
    PointSpec spec;
    ThreadState &ts = p.threads.of(0, 10);
    Op &op = p.op(1000);
    const std::uint64_t ref = op_ref(op);
    Transition t;
    t.tid = 10;
    auto passage = [&](BoundPoint &bp, std::int64_t ts_ns) {
        t.ts_ns = ts_ns;
        return Passage{bp, spec, ev, {0, 1, 10, 0, 0}, ts, {}, {}, t};
    };
    Passage queueing = passage(submit, 1000);
    ios.enter_call(queueing, &op);
    CHECK(op.io.is_io);
    BlockEvent queued{};
    queued.tid = 10;
    Bio bio;
    bio.id = 1;
    bio.sector = 8;
    bio.nr_sectors = 8;
    bio.kind = IoKind::kRead;
    bio.rwbs = rwbs::kRead;
    CHECK(ios.op_of_bio(0, queued, bio) == &op);
    op.bios = 1;
    ios.bio_opened(ref);
    Passage returned = passage(back, 1010);
    ios.return_from_call(returned);
    bio.owner.op = ref;
    Request request;
    request.complete_ns = request.end_ns = 1020;
    request.owners.push_back(bio.owner);
    ios.request_done(request);
    ios.bio_done(bio);
    CHECK(op.io.done);
    CHECK(op.state == OpState::kOpen);
    Passage waiting = passage(wait, 1030), taken = passage(back, 1040);
    ios.enter_call(waiting, nullptr);
    CHECK(ios.return_from_call(taken) == Fate::kTransition);
    CHECK(op.state == OpState::kEnded);
    CHECK(op.end_ns == 1040);
}

TEST_CASE("what the events lack of an op's thread and object is asked for when it settles") {
    Parts p;
    OpDetails details(p.s, p.lives);
    Op &op = p.op(1000);
    op.file_dev = 5;
    op.inode = 77;
    details.name_file({0, 5, 77}, {0, p.strings.intern("/data/file")});
    details.name_late(op, 10);
    CHECK(op.object == "/data/file");
    Op &named = p.op(1001);
    named.file_dev = 5;
    named.inode = 77;
    named.object = "its own";
    details.name_late(named, 10);
    CHECK(named.object == "its own");
}

TEST_CASE("what is known of threads goes after their process has ended, unless an op in memory needs it") {
    Parts p;
    const auto seen = [&](std::int64_t tid, std::int32_t pid, std::int64_t ts_ns) -> ThreadState & {
        ThreadState &ts = p.threads.of(0, tid);
        ts.last_ns = ts_ns;
        ts.last_pid = pid;
        return ts;
    };
    Op &open = p.op(10);
    seen(5000, 5, 10).stack.push_back({op_ref(open), {}});
    seen(6000, 6, 10);
    seen(7000, 7, 2'000'000);  // its number came back
    for (std::int32_t pid = 5; pid < 10'000; ++pid) {
        if (pid > 7) seen(pid * 1000, pid, pid);
        for (const std::uint64_t key : p.threads.process_ended(pid, 1'000'000)) CHECK(key != thread_key(0, 5000));
    }
    CHECK(p.threads.size() < 100);
    CHECK(p.threads.find(0, 5000));
    CHECK(!p.threads.find(0, 6000));
    CHECK(p.threads.find(0, 7000));
    for (std::int64_t tid = 100'000; tid < 110'000; ++tid) {
        seen(tid, 7, tid);
        p.threads.thread_ended(0, tid, tid);
    }
    CHECK(p.threads.size() < 200);
}

TEST_CASE("the last point of a thread goes after the thread has ended") {
    ThreadPoints points;
    for (std::int64_t tid = 1; tid < 1000; ++tid) {
        points.passed(0, tid, {tid, 1, 1});
        if (tid % 2 == 0) points.ended(thread_key(0, tid));
    }
    points.passed(0, 2, {5000, 1, 1});  // another thread has the number
    points.forget_before(2000);
    CHECK(points.threads() == 501);
    CHECK(points.of(0, 2));
    CHECK(!points.of(0, 4));
    CHECK(points.of(0, 5));
}
