// SPDX-License-Identifier: MIT
// The parts of the linker, each fed alone with the parts below it (link/linker.hpp).
#include <doctest/doctest.h>

#include "link/linker.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kDisk = 8u << 20;

struct Parts {
    Parts() : s{plan, strings, identities, population, {}, {}} {
        s.hooks.settle = [](Op &) {};
        s.hooks.wrote = [](Op &, std::int64_t) {};
    }
    // An op that has those bytes in flight.
    Op &op(std::int64_t offset, std::int64_t length, Direction direction = Direction::kWrite) {
        Op &made = lives.new_op(0, 1, 10, 1000);
        made.has_offset = made.has_length = true;
        made.offset_bytes = offset;
        made.length_bytes = length;
        made.direction = direction;
        lives.open_io_window(made, 0);
        Transition t;
        t.ts_ns = 1000;
        t.tid = 10;
        t.pid = 1;
        lives.add_transition(made, t);
        return made;
    }
    static Bio bio(std::uint64_t id, std::uint64_t sector, std::uint32_t count, IoKind kind = IoKind::kWrite) {
        Bio b;
        b.id = id;
        b.dev = kDisk;
        b.sector = sector;
        b.nr_sectors = count;
        b.kind = kind;
        b.rwbs = kind == IoKind::kRead ? rwbs::kRead : rwbs::kWrite;
        return b;
    }

    Plan plan;
    StringPool strings;
    Threads identities;
    Population population{{}};
    Stitching s;
    OpLives lives{s, [](Op &) { FAIL("there is room for more ops"); }};
    ThreadStates threads{s, lives.ops()};
    Keys keys{s, lives};
    Batches batches{s, lives, keys};
    AsyncIos ios{s, threads, lives, keys};
    OpLocator locator{s, threads, lives, keys, batches, ios};
    Linking l{locator, strings, FileMaps(plan.files), Processes(strings, identities), {}, {}, {}};
    BioLinks links;
    Directions directions{l};
    PlaceRules places{l, directions};
    SyncShares syncs{l, plan, links, places};
    LinkChecks checks{l, links};
};

}  // namespace

TEST_CASE("directions: the model's word counts, then the name of the class") {
    Parts p;
    Op &op = p.op(0, 4096, Direction::kUnknown);
    op.op_class = p.strings.intern("pread64");
    CHECK(p.directions.direction_of(op) == Direction::kRead);
    op.op_class = p.strings.intern("read or write");
    CHECK(p.directions.direction_of(op) == Direction::kUnknown);
    CHECK(p.directions.right_way(op, Parts::bio(1, 0, 8)));
    op.direction = Direction::kRead;
    CHECK_FALSE(p.directions.right_way(op, Parts::bio(1, 0, 8)));
    CHECK(p.directions.right_way(op, Parts::bio(1, 0, 8, IoKind::kRead)));
}

TEST_CASE("bio links: the one that was asked for last stays right while others come and go") {
    BioLinks links;
    links.add(1).own_bytes = 10;
    links.add(2).own_bytes = 20;
    CHECK(links.link_of(1)->own_bytes == 10);
    CHECK(links.find_link(1)->own_bytes == 10);
    for (std::uint64_t id = 3; id < 100; ++id) links.add(id).own_bytes = 10 * id;
    CHECK(links.link_of(1)->own_bytes == 10);
    CHECK(links.link_of(99)->own_bytes == 990);
    links.add_sync_bio(5);
    links.forget(5);
    CHECK(links.link_of(5) == nullptr);
    CHECK(links.sync_bios().empty());
}

TEST_CASE("places: of the ops whose bytes in flight have the bio's sectors the first is taken") {
    Parts p;
    const std::uint64_t first = op_ref(p.op(4096, 4096));
    p.op(4096, 4096);
    p.op(8192, 4096);
    BioLink link;
    p.places.no_parts();
    p.places.find_in_flight(Parts::bio(1, 8, 8), {kDisk, 8, 8}, link);
    CHECK(link.by_sector == first);
    CHECK(link.candidates == 2);
    BioLink none;
    p.places.find_in_flight(Parts::bio(2, 100, 8), {kDisk, 100, 8}, none);
    CHECK(none.by_sector == 0);
    BioLink read;
    p.places.find_in_flight(Parts::bio(3, 8, 8, IoKind::kRead), {kDisk, 8, 8}, read);
    CHECK(read.by_sector == 0);  // the ops write
}

TEST_CASE("places: how the bytes of an op lie to those of a bio") {
    Parts p;
    Op &op = p.op(4096, 8192);
    CHECK(p.places.overlap(op, {kDisk, 8, 16}) == Overlap::kInside);
    CHECK(p.places.overlap(op, {kDisk, 16, 16}) == Overlap::kPart);
    CHECK(p.places.overlap(op, {kDisk, 24, 8}) == Overlap::kNone);
    CHECK(p.places.bytes_in(op, {kDisk, 16, 16}) == 4096);
    op.offset_bytes = 100;  // whole pages reach the disk
    op.length_bytes = 4096;
    CHECK(PlaceRules::bytes_in_flight(op) == 8192);
}

TEST_CASE("checks: a link whose request was allocated after the op's end is refused") {
    Parts p;
    Op &op = p.op(0, 4096);
    op.state = OpState::kEnded;
    op.end_ns = 2000;
    BioLink link;
    link.chosen = op_ref(op);
    link.rules = rule::kThread;
    p.checks.check(link, 1900, 2500);
    CHECK(link.chosen == op_ref(op));
    p.checks.check(link, 2001, 2500);
    CHECK(link.chosen == 0);
    CHECK(p.l.counts.refused == 1);
}

TEST_CASE("checks: the end of an op is known after it has left memory") {
    Parts p;
    Op &op = p.op(0, 4096);
    const std::uint64_t ref = op_ref(op);
    CHECK(p.checks.end_of(ref) == kNoTime);
    op.state = OpState::kEnded;
    op.end_ns = 2000;
    op.bios = 1;
    CHECK(p.checks.end_of(ref) == 2000);
    p.checks.settled(op);
    p.lives.ops().release(op);
    CHECK(p.checks.end_of(ref) == 2000);
}

TEST_CASE("checks: a batch's end says that a request is done, once batches have shown that they wait") {
    Parts p;
    auto batch = std::make_shared<Batch>();
    batch->end_ns = 3000;
    p.links.add(1).batch = batch;
    Request request;
    request.bios = {1};
    CHECK_FALSE(p.checks.waiter(request).known);
    for (int n = 0; n < 8; ++n) p.checks.note_batch(*batch, 2000);
    CHECK(p.checks.waiter(request).known);
    CHECK(p.checks.waiter(request).ended_ns == 3000);
    for (int n = 0; n < 2; ++n) p.checks.note_batch(*batch, 4000);  // done after it closed
    CHECK_FALSE(p.checks.waiter(request).known);
}

TEST_CASE("requests: an op gets the cut with the Q of its own bio") {
    Parts p;
    RequestLinks requests(p.l, p.links, p.directions, p.places, p.syncs, p.checks);
    Op &first = p.op(0, 4096), &second = p.op(4096, 4096);
    for (Op *op : {&first, &second}) {
        BioLink &link = p.links.add(op->serial + 1);
        link.chosen = op_ref(*op);
        link.queue_ns = 1100 + static_cast<std::int64_t>(op->serial);
    }
    Request r;
    r.id = 7;
    r.bios = {1, 2};
    r.queue_ns = 1100;
    r.getrq_ns = 1110;
    r.issue_ns = 1120;
    r.complete_ns = r.end_ns = 1200;
    const Served served = requests.request_done(r);
    CHECK(served.ops == 2);
    REQUIRE(second.requests.size() == 1);
    CHECK(second.requests[0].q == 1101);
    CHECK(second.requests[0].g == 1110);
    CHECK(second.requests[0].c == 1200);
    CHECK(first.requests[0].q == 1100);
    CHECK(requests.waiters_known(r));
    p.l.lost.add(1150, 1160);
    requests.request_done(r);
    CHECK(p.links.link_of(1)->doubtful);  // events are lost in its time
}

TEST_CASE("rows: an op that owns a bio and wrote pages of it has one row") {
    Parts p;
    LinkRows rows(p.l, p.links, p.checks);
    Op &op = p.op(0, 8192);
    const Bio bio = Parts::bio(1, 0, 16);
    BioLink &link = p.links.add(1);
    link.chosen = op_ref(op);
    link.rules = rule::kThread | rule::kSector;
    link.own_bytes = 4096;
    op.sync_ns = 1500;
    shared_work(link).pages.push_back({op_ref(op), 4096, 1400, 8, 16, false});
    REQUIRE(rows.links(bio).size() == 1);
    CHECK(rows.links(bio)[0].bytes == 8192);
    CHECK(rows.deferred(bio).empty());
    op.sync_ns = kNoTime;  // it does not wait for its pages
    CHECK(rows.links(bio)[0].bytes == 4096);
    REQUIRE(rows.deferred(bio).size() == 1);
    CHECK(rows.deferred(bio)[0].bytes == 4096);
    CHECK(rows.deferred(bio)[0].shared);
}

TEST_CASE("syncs: a bio that a thread in a sync queued waits for it no longer once the sync has ended") {
    Parts p;
    Op &op = p.op(0, 4096);
    p.syncs.sync_begun(op, 10, 1500);
    op.sync_ns = 1500;
    BioLink &link = p.links.add(1);
    link.sync = p.syncs.syncs().of_thread(0, 10);
    REQUIRE(link.sync.get() != nullptr);
    p.syncs.share_sync(Parts::bio(1, 0, 8), {kDisk, 0, 8}, link);
    CHECK(p.links.sync_bios() == std::vector<std::uint64_t>{1});
    CHECK(p.syncs.sync_ended(op, 1600).get() != nullptr);
    CHECK(p.links.sync_bios().empty());
    CHECK(p.syncs.sync_ended(op, 1700).get() == nullptr);
}

TEST_CASE("reasons: the first that holds") {
    Parts p;
    PageShares pages(p.l, p.directions, p.places);
    NoRequest reasons(p.l, p.directions, p.places, pages);
    Op &op = p.op(0, 4096, Direction::kRead);
    CHECK(std::string(reasons.no_request(op)) == "trace_ended");
    op.state = OpState::kEnded;
    op.end_ns = 2000;
    CHECK(std::string(reasons.no_request(op)) == "cached");
    op.bios = 1;
    CHECK(std::string(reasons.no_request(op)) == "not_completed");
    p.l.lost.add(1500, 1600);
    CHECK(std::string(reasons.no_request(op)) == "lost_events");
}
