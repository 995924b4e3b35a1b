// SPDX-License-Identifier: MIT
// The parts of attribution, each alone: names of stages, and waits cut by what a thread did for others.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "op/op_table.hpp"
#include "stages/stage_names.hpp"
#include "stages/wait_cuts.hpp"

using namespace opline;

namespace {

struct Bench {
    Plan plan;
    StringPool strings;
    ThreadPoints points;
    Hosts hosts;
    std::uint32_t id(const char *text) { return strings.intern(text); }
};

// A wait from 100 to 200 ns of an op with the given ref, and what it is cut into: "name begin end", in time order.
struct Cut {
    Bench bench;
    Op op;
    Attribution out;

    explicit Cut(std::uint64_t ref) {
        op.serial = ref;
        out.op = &op;
    }
    CutWait wait() { return {bench.id("queue"), bench.id("wait"), bench.id("queued"), bench.id("taken"), 100, 200, 7}; }
    std::vector<std::string> pieces() {
        std::vector<std::string> found;
        std::int64_t sum = 0;
        for (auto s = out.stages.rbegin(); s != out.stages.rend(); ++s) {
            found.push_back(bench.strings.at(s->stage) + " " + std::to_string(s->begin_ns) + " " +
                            std::to_string(s->begin_ns + s->duration_ns));
            sum += s->duration_ns;
        }
        CHECK((found.empty() || sum == 100));  // the pieces are the wait, whole
        return found;
    }
};

}  // namespace

TEST_CASE("names of stages: the model's first, then the block layer's, then those of the two points") {
    Bench b;
    b.plan.stages = {{"waits for the device", "D", "C", "device", false},
                     {"in the queue", "queued", "taken", "", true}};
    StageNames names(b.plan, b.strings);
    auto name = [&](const char *from, const char *to) { return b.strings.at(names.named(b.id(from), b.id(to)).stage); };
    CHECK(name("D", "C") == "waits for the device");
    CHECK(name("Q", "G") == "Q2G");
    CHECK(name("queued", "taken") == "in the queue");
    CHECK(name("taken", "Q") == "submit");
    CHECK(name("C", "done") == "reap");
    CHECK(name("postflush", "done") == "reap");
    CHECK(name("a", "b") == "a → b");
    CHECK(names.named(b.id("queued"), b.id("taken")).kind == StageNames::kByThreads);
    CHECK(names.is_behind(b.id("queued"), b.id("taken")));
    CHECK(!names.is_behind(b.id("taken"), b.id("queued")));
    CHECK(b.strings.at(names.label(b.id("a"), 2)) == "a#2");
    CHECK(b.strings.at(names.not_recorded("")) == "unknown: another host (not recorded)");
    CHECK(b.strings.at(names.not_recorded("store1")) == "unknown: store1 (not recorded)");
    CHECK(b.strings.at(names.not_known(b.id("a"), b.id("b"))) == "unknown: a → b");
}

TEST_CASE("a wait behind a stage has its name only where the model names it") {
    Bench b;
    b.plan.stages = {{"commit", "begun", "committed", "work", false}};
    StageNames names(b.plan, b.strings);
    const std::uint32_t wait = b.id("queue"), unnamed = b.id("queue behind others");
    CHECK(b.strings.at(names.behind_name(wait, b.id("begun"), b.id("committed"), unnamed)) == "queue behind commit");
    CHECK(names.behind_name(wait, b.id("committed"), b.id("begun"), unnamed) == unnamed);
}

TEST_CASE("a wait is cut by the work for the batch before") {
    Cut c(1);
    c.bench.plan.stages = {{"sync", "begun", "synced", "work", false}};
    StageNames names(c.bench.plan, c.bench.strings);
    WaitCuts cuts(names, c.bench.points, c.bench.hosts);
    Batch batch;
    batch.before = {{90, c.bench.id("begun")}, {140, c.bench.id("synced")}, {250, c.bench.id("begun")}};
    CHECK(cuts.by_batch(c.out, c.wait(), batch));
    CHECK(c.pieces() == std::vector<std::string>{"queue behind sync 100 140", "queue 140 200"});
}

TEST_CASE("a wait that no point of the batch before lies in stays whole") {
    Cut c(1);
    StageNames names(c.bench.plan, c.bench.strings);
    WaitCuts cuts(names, c.bench.points, c.bench.hosts);
    Batch batch;
    batch.before = {{90, c.bench.id("begun")}, {200, c.bench.id("synced")}};
    CHECK(!cuts.by_batch(c.out, c.wait(), batch));
    CHECK(c.out.stages.empty());
}

TEST_CASE("a wait is cut by what its thread did for another op, and nothing is cut by another thread") {
    Cut c(1);
    c.bench.plan.stages = {{"serve", "taken", "served", "work", false}};
    StageNames names(c.bench.plan, c.bench.strings);
    WaitCuts cuts(names, c.bench.points, c.bench.hosts);
    const std::uint64_t mine = op_ref(c.op), other = mine + 1;
    auto passed = [&](std::int64_t tid, std::int64_t ns, const char *point, std::uint64_t of) {
        ThreadPoint p;
        p.ts_ns = ns;
        p.point = c.bench.id(point);
        p.worked_for = of;
        c.bench.points.passed(0, tid, p);
    };
    passed(8, 150, "taken", other);
    CHECK(!cuts.by_thread(c.out, c.wait()));
    passed(7, 80, "taken", other);
    passed(7, 160, "served", other);
    passed(7, 200, "taken", mine);
    CHECK(cuts.by_thread(c.out, c.wait()));
    CHECK(c.pieces() == std::vector<std::string>{"queue behind serve 100 160", "queue between others 160 200"});
}
