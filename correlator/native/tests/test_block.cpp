// SPDX-License-Identifier: MIT
// The block model: every case file, and properties over generated traffic whose truth is known.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "block_case_run.hpp"
#include "sanitized.hpp"

using namespace opline;

namespace {

std::filesystem::path cases() {
    return std::filesystem::path(__FILE__).parent_path() / ".." / ".." / ".." / "tests" / "cases" / "block";
}

// Requests of one bio each. The truth is in the event's comm: the bio's op, which no rule looks at.
struct Traffic {
    struct Flight {
        std::uint32_t op, dev, cpu;
        std::int32_t tid;
        std::uint64_t sector, rq, bio;
        std::uint32_t rwbs;
        int step;
    };
    std::mt19937_64 random;
    std::vector<BlockEvent> events;
    std::vector<std::uint64_t> free_rq, free_bio;
    std::int64_t now = 1'000'000;

    explicit Traffic(std::uint64_t seed) : random(seed) {
        for (std::uint64_t i = 1; i <= 200; ++i) {
            free_rq.push_back(0xff00000000000000u + i * 0x180);
            free_bio.push_back(0xff11000000000000u + i * 0x100);
        }
    }
    std::uint64_t below(std::uint64_t n) { return random() % n; }
    std::uint64_t take(std::vector<std::uint64_t> &from) {
        std::swap(from[below(from.size())], from.back());
        const auto p = from.back();
        from.pop_back();
        return p;
    }
    void emit(BlockKind kind, const Flight &f, std::uint32_t cpu, std::int32_t tid, bool rq) {
        BlockEvent e{};
        e.kind = kind;
        e.ts_ns = now += 1 + static_cast<std::int64_t>(below(5000));
        e.cpu = cpu;
        e.tid = kind == BlockKind::kRqComplete ? -1 : tid;
        e.comm = f.op;
        e.dev = f.dev;
        e.sector = f.sector;
        e.nr_sectors = 8;
        e.rwbs = f.rwbs;
        e.rq = rq ? f.rq : 0;
        e.bio = f.bio;
        events.push_back(e);
    }
    // depth requests at once over `places` places of 8 sectors. Device 259:0 has no scheduler and completes where it
    // was issued; 8:0 inserts, and any thread issues and any CPU completes.
    void run(std::size_t count, std::size_t depth, std::uint64_t places) {
        std::vector<Flight> open;
        std::uint32_t op = 0;
        while (op < count || !open.empty()) {
            if (op < count && open.size() < depth && below(2) == 0) {
                Flight f{};
                f.op = ++op;
                f.dev = below(2) ? 259u << 20 : 8u << 20;
                f.cpu = static_cast<std::uint32_t>(below(4));
                f.tid = static_cast<std::int32_t>(100 + below(8));
                f.sector = below(places) * 8;
                f.rq = take(free_rq);
                f.bio = take(free_bio);
                f.rwbs = below(2) ? rwbs::kWrite | rwbs::kSync : rwbs::kRead;
                emit(BlockKind::kBioQueue, f, f.cpu, f.tid, false);
                emit(BlockKind::kGetRq, f, f.cpu, f.tid, false);
                open.push_back(f);
                continue;
            }
            if (open.empty()) continue;
            const auto i = below(open.size());
            Flight &f = open[i];
            const bool scheduler = f.dev == 8u << 20;
            const auto any = static_cast<std::uint32_t>(below(4));
            switch (f.step++) {
            case 0:
                if (scheduler) emit(BlockKind::kRqInsert, f, f.cpu, f.tid, true);
                break;
            case 1: emit(BlockKind::kRqIssue, f, f.cpu, scheduler ? 9 : f.tid, true); break;
            case 2:
                if (scheduler && below(8) == 0) {
                    emit(BlockKind::kRqRequeue, f, f.cpu, 9, true);
                    f.step = 1;
                }
                break;
            default:
                emit(BlockKind::kRqComplete, f, scheduler ? any : f.cpu, -1, true);
                free_rq.push_back(f.rq);
                free_bio.push_back(f.bio);
                open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }
};

struct Outcome {
    // `wrong`: steps that another op's request took.
    std::uint64_t wrong = 0, wrong_unmarked = 0, requests = 0, ambiguous = 0, complete = 0;
    BlockCounts counts;
};

Outcome play(const std::vector<BlockEvent> &events, BlockMatch match) {
    Outcome out;
    std::set<std::uint64_t> requests_done, bios_done, bios_queued;
    std::map<std::int64_t, std::uint64_t> op_at;  // whose event is at that time: each has a time of its own
    for (const auto &e : events) op_at[e.ts_ns] = e.comm;
    BlockModel::Hooks hooks;
    hooks.bio_queued = [&](const BlockEvent &e, const Bio &b) {
        CHECK(bios_queued.insert(b.id).second);
        return Owner{e.comm, 0};
    };
    hooks.request_done = [&](const Request &r) {
        CHECK(requests_done.insert(r.id).second);
        for (auto id : r.bios) CHECK(bios_done.count(id) == 0);
        ++out.requests;
        out.ambiguous += r.ambiguous;
        out.complete += r.complete_ns != kNoTime;
        if (r.complete_ns != kNoTime && r.issue_ns != kNoTime) CHECK(r.issue_ns <= r.complete_ns);
        if (r.issue_ns != kNoTime) CHECK(r.first_issue_ns <= r.issue_ns);
        for (const std::int64_t ns :
             {r.queue_ns, r.getrq_ns, r.insert_ns, r.first_issue_ns, r.issue_ns, r.complete_ns}) {
            if (ns == kNoTime || r.owners.empty()) continue;
            const bool wrong = r.owners.size() != 1 || r.owners[0].op != op_at.at(ns);
            out.wrong += wrong;
            out.wrong_unmarked += wrong && !r.ambiguous;
        }
    };
    hooks.bio_done = [&](const Bio &b) { CHECK(bios_done.insert(b.id).second); };
    BlockModel model(match, hooks);
    std::uint64_t fates = 0;
    for (const auto &e : events) {
        const Fate fate = model.event(e);
        fates += fate == Fate::kRequestStep || fate == Fate::kBackground || fate == Fate::kOrphanRequest;
    }
    model.finish();
    CHECK(fates == events.size());
    CHECK(model.open_requests() == 0);
    CHECK(model.open_bios() == 0);
    CHECK(bios_done == bios_queued);
    out.counts = model.counts();
    return out;
}

}  // namespace

TEST_CASE("cases") {
    std::size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator(cases())) {
        if (entry.path().extension() != ".case") continue;
        ++count;
        CAPTURE(entry.path().filename().string());
        const auto c = test::parse_case(test::read_file(entry.path().string()));
        CHECK(c.title.rfind("# " + entry.path().stem().string() + ": ", 0) == 0);
        CHECK(test::conclude_both(c.events) == c.expected);
    }
    CHECK(count > 40);
}

TEST_CASE("event names") {
    CHECK(BlockModel::kind_by_name("block_rq_issue") == BlockKind::kRqIssue);
    CHECK(BlockModel::kind_by_name("block:block_rq_issue") == BlockKind::kRqIssue);
    CHECK(BlockModel::kind_by_name("block_split") == BlockKind::kSplit);
    CHECK(BlockModel::kind_by_name("block_rq_bio") == BlockKind::kRqBio);
    CHECK(BlockModel::kind_by_name("block_touch_buffer") == BlockKind::kOther);
    CHECK(BlockModel::kind_by_name("sched_switch") == BlockKind::kOther);
    CHECK(BlockModel::kind_by_name("rq_issue") == BlockKind::kOther);
}

TEST_CASE("flags in letters and as mask") {
    using namespace rwbs;
    const std::map<std::string, std::uint32_t> known = {{"WS", kWrite | kSync},
                                                        {"R", kRead},
                                                        {"RA", kRead | kRahead},
                                                        {"RM", kRead | kMeta},
                                                        {"DS", kDiscard | kSync},
                                                        {"FWFSM", kPreflush | kWrite | kFua | kSync | kMeta},
                                                        {"FF", kPreflush | kFlush},
                                                        {"FWS", kPreflush | kWrite | kSync},
                                                        {"WFS", kWrite | kFua | kSync},
                                                        {"F", kFlush},
                                                        {"DE", kDiscard | kSecure},
                                                        {"N", 0},
                                                        {"NS", kSync}};
    for (const auto &[text, mask] : known) {
        const std::string &letters = text;  // CAPTURE is a lambda: before C++20 it can't have structured bindings
        CAPTURE(letters);
        CHECK(BlockModel::rwbs_by_letters(letters) == mask);
        CHECK(BlockModel::rwbs_letters(mask) == letters);
    }
    for (std::uint32_t mask = 0; mask < 2048; ++mask) {
        const int directions =
            (mask & kWrite ? 1 : 0) + (mask & kDiscard ? 1 : 0) + (mask & kRead ? 1 : 0) + (mask & kFlush ? 1 : 0);
        if (directions > 1 || ((mask & kFlush) && (mask & kFua))) continue;  // "FF" is FLUSH with PREFLUSH
        CHECK(BlockModel::rwbs_by_letters(BlockModel::rwbs_letters(mask)) == mask);
    }
}

TEST_CASE("kinds of I/O") {
    using namespace rwbs;
    CHECK(BlockModel::kind_of(kRead | kRahead, 8) == IoKind::kRead);
    CHECK(BlockModel::kind_of(kWrite | kPreflush | kFua, 8) == IoKind::kWrite);
    CHECK(BlockModel::kind_of(kWrite | kPreflush | kSync, 0) == IoKind::kFlush);
    CHECK(BlockModel::kind_of(kFlush | kPreflush, 0) == IoKind::kFlush);
    CHECK(BlockModel::kind_of(kDiscard | kSync, 8) == IoKind::kDiscard);
    CHECK(BlockModel::kind_of(kSync, 8) == IoKind::kWriteZeroes);
    CHECK(BlockModel::kind_of(0, 0) == IoKind::kOther);
}

TEST_CASE("pointers are right, sectors are right where they are not marked") {
    for (std::uint64_t seed : {1u, 2u, 3u}) {
        for (const auto &shape : {std::pair<std::size_t, std::uint64_t>{1, 4}, {32, 100'000}, {64, 256}, {16, 3}}) {
            const std::size_t depth = shape.first;
            const std::uint64_t places = shape.second;
            CAPTURE(seed);
            CAPTURE(depth);
            CAPTURE(places);
            Traffic t(seed);
            t.run(3000, depth, places);
            const Outcome pointer = play(t.events, BlockMatch::kPointer), sector = play(t.events, BlockMatch::kSector);
            CHECK(pointer.requests == 3000);
            CHECK(pointer.complete == 3000);
            CHECK(pointer.wrong == 0);
            CHECK(pointer.ambiguous == 0);
            CHECK(sector.requests == 3000);
            CHECK(sector.complete == 3000);
            CHECK(sector.wrong_unmarked == 0);
            if (depth == 1) CHECK(sector.ambiguous == 0);
            if (places == 100'000) CHECK(sector.ambiguous <= 6);
            for (const auto *c : {&pointer.counts, &sector.counts}) {
                CHECK(c->bio_to_request.agree == 3000);
                CHECK(c->request_to_issue.differ == 0);
                CHECK(c->request_to_complete.differ == 0);
                CHECK(c->request_to_complete.agree + c->request_to_complete.ambiguous == 3000);
                CHECK(c->unmatched_issue + c->unmatched_complete + c->unmatched_getrq + c->unmatched_requeue == 0);
            }
        }
    }
}

TEST_CASE("lost events: no crash, everything reported once, pointers link nothing wrong") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        Traffic t(seed);
        t.run(1000, 24, 500);
        std::vector<BlockEvent> kept;
        for (const auto &e : t.events)
            if (t.below(20) != 0) kept.push_back(e);
        const Outcome pointer = play(kept, BlockMatch::kPointer);
        play(kept, BlockMatch::kSector);
        CHECK(pointer.wrong_unmarked == 0);
    }
}

TEST_CASE("nonsense: random events never break it") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 20; ++round) {
        std::vector<BlockEvent> events;
        for (int i = 0; i < 20'000; ++i) {
            BlockEvent e{};
            do e.kind = static_cast<BlockKind>(random() % (static_cast<unsigned>(BlockKind::kRqBio) + 1));
            while (e.kind == BlockKind::kPlug || e.kind == BlockKind::kUnplug);
            e.ts_ns = std::int64_t{i} * (round % 2 ? 1000 : 1'000'000);
            e.cpu = random() % 3;
            e.tid = static_cast<std::int32_t>(random() % 3);
            e.dev = 8u << 20 | random() % 2;
            e.sector = random() % 10 == 0 ? kNoSector : random() % 40;
            e.nr_sectors = random() % 4 * 4;
            static constexpr std::uint32_t flags[] = {1, 33, 4, 2, 1280, 1057, 1633, 0, 97};
            e.rwbs = flags[random() % 9];
            e.old_dev = 8u << 20 | random() % 2;
            e.old_sector = random() % 40;
            e.new_sector = random() % 48;
            e.error = random() % 50 == 0 ? -5 : 0;
            if (round % 3) {
                e.rq = random() % 6;
                e.bio = random() % 8;
                e.parent = random() % 8;
            }
            events.push_back(e);
        }
        for (auto match : {BlockMatch::kPointer, BlockMatch::kSector}) {
            std::set<std::uint64_t> requests, bios, queued;
            BlockModel::Hooks hooks;
            hooks.bio_queued = [&](const BlockEvent &, const Bio &b) {
                queued.insert(b.id);
                return Owner{b.id % 3, 0};
            };
            hooks.request_done = [&](const Request &r) { REQUIRE(requests.insert(r.id).second); };
            hooks.bio_done = [&](const Bio &b) { REQUIRE(bios.insert(b.id).second); };
            BlockModel model(match, hooks);
            for (const auto &e : events) model.event(e);
            model.finish();
            CHECK(bios == queued);
            CHECK(model.open_bios() == 0);
            CHECK(model.open_requests() == 0);
        }
    }
}

TEST_CASE("memory is bounded: what never ends is given up, and counted" * doctest::skip(kSanitized)) {
    BlockModel model(BlockMatch::kSector, {});
    BlockEvent e{};
    e.kind = BlockKind::kBioQueue;
    e.dev = 8u << 20;
    e.nr_sectors = 8;
    e.rwbs = rwbs::kRead;
    const std::uint64_t limit = std::uint64_t{1} << 20;
    for (std::uint64_t i = 0; i < limit + 1000; ++i) {
        e.ts_ns = static_cast<std::int64_t>(i);
        e.sector = i * 8;
        model.event(e);
    }
    CHECK(model.open_bios() <= limit);
    CHECK(model.counts().evicted == 1000);
    e.kind = BlockKind::kRqIssue;
    for (std::uint64_t i = 0; i < limit + 1000; ++i) {
        e.sector = (limit + 1000 + i) * 8;
        model.event(e);
    }
    CHECK(model.open_requests() <= limit);
    CHECK(model.counts().evicted == 2000);
}

TEST_CASE("a device whose flushes are never issued nor completed costs no more time than others") {
    BlockModel model(BlockMatch::kSector, {});
    BlockEvent e{};
    e.dev = 8u << 20;
    e.rwbs = rwbs::kWrite | rwbs::kPreflush;
    const std::int32_t flushes = kSanitized ? 10'000 : 300'000;
    for (std::int32_t i = 0; i < flushes; ++i) {
        e.ts_ns = i;
        e.tid = i;
        for (auto kind : {BlockKind::kBioQueue, BlockKind::kGetRq}) {
            e.kind = kind;
            model.event(e);
        }
    }
    model.finish();
    CHECK(model.counts().incomplete_at_end == static_cast<std::uint64_t>(flushes));
}

TEST_CASE("a lost completion does not shift those of later writes to the same sectors") {
    for (const bool many : {false, true}) {
        std::uint64_t wrong = 0, marked = 0, presumed = 0;
        BlockModel::Hooks hooks;
        hooks.bio_queued = [](const BlockEvent &e, const Bio &) { return Owner{e.comm, 0}; };
        hooks.request_done = [&](const Request &r) {
            if (r.complete_ns == kNoTime) return;
            wrong += r.complete_ns - r.issue_ns > 10'000;
            marked += r.ambiguous;
        };
        BlockModel model(BlockMatch::kSector, hooks);
        std::int64_t now = 0;
        auto one = [&](std::uint64_t sector, bool completes) {
            BlockEvent e{};
            e.dev = 8u << 20;
            e.sector = sector;
            e.nr_sectors = 8;
            e.rwbs = rwbs::kWrite;
            e.tid = 5;
            e.comm = 1;
            for (auto kind : {BlockKind::kBioQueue, BlockKind::kGetRq, BlockKind::kRqIssue, BlockKind::kRqComplete}) {
                e.kind = kind;
                e.ts_ns = now += 1000;
                if (kind != BlockKind::kRqComplete || completes) model.event(e);
            }
        };
        one(0, false);
        for (int i = 1; i <= (many ? 20'000 : 100); ++i) one(static_cast<std::uint64_t>(i) * 8, true);
        for (int i = 0; i < 10; ++i) one(0, true);
        model.finish();
        presumed = model.counts().presumed_lost;
        CHECK(wrong == 0);
        CHECK(marked == 0);
        CHECK(presumed == 1);
        CHECK(model.counts().incomplete_at_end == 0);
    }
}
