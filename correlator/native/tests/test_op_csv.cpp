// SPDX-License-Identifier: MIT
// What `opline csv` is written with: records in order of their places, numbers, rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "base/spool.hpp"
#include "output/csv/cells.hpp"
#include "output/csv/op_csv.hpp"

namespace {

struct Close {
    void operator()(std::FILE *f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;

struct Kept {
    std::uint64_t place;
    std::uint32_t kind;
    std::string data;
};

void check_spool(std::size_t records, std::size_t piece, std::uint64_t disorder, std::size_t longest) {
    std::mt19937_64 random(records + piece + disorder);
    File file(std::tmpfile());
    opline::Spool spool(fileno(file.get()), piece);
    std::vector<Kept> kept;
    for (std::size_t i = 0; i < records; ++i) {
        Kept k{i + random() % disorder, static_cast<std::uint32_t>(random() % 5),
               std::string(random() % longest, static_cast<char>('a' + i % 26))};
        char *at = spool.begin(k.data.size() + random() % 40);  // more room than is used
        spool.end(k.place, k.kind, std::copy(k.data.begin(), k.data.end(), at));
        kept.push_back(std::move(k));
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Kept &a, const Kept &b) { return a.place < b.place; });
    opline::Spool::Record record;
    for (const auto &k : kept) {
        REQUIRE(spool.next(record));
        REQUIRE(record.place == k.place);
        REQUIRE(record.kind == k.kind);
        REQUIRE(record.data == k.data);
    }
    CHECK_FALSE(spool.next(record));
    CHECK(spool.error() == 0);
}

}  // namespace

TEST_CASE("records come in order of their places, of one place in the order in which they were added") {
    for (const std::size_t piece : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20})
        for (const std::uint64_t disorder : {1u, 30u, 5000u}) check_spool(3000, piece, disorder, 60);
    check_spool(0, 4096, 1, 1);
    check_spool(200, 4096, 20, 20'000);  // longer than a piece, and than what is read at once
}

TEST_CASE("a file that can't be written is an error, and no record comes") {
    opline::Spool spool(-1, 64);
    for (int i = 0; i < 10; ++i) spool.end(1, 0, spool.begin(50) + 50);
    opline::Spool::Record record;
    CHECK_FALSE(spool.next(record));
    CHECK(spool.error() != 0);
}

TEST_CASE("numbers are those of std::to_chars") {
    std::mt19937_64 random(3);
    auto check = [](auto v) {
        char ours[opline::csv::kRoom], theirs[24];
        const std::string written(ours, opline::csv::put_number(ours, v));
        REQUIRE(written == std::string(theirs, std::to_chars(theirs, theirs + sizeof theirs, v).ptr));
    };
    for (std::uint64_t v = 0; v < 20'000; ++v) check(v);
    for (std::uint64_t power = 1; power < 10'000'000'000'000'000'000u; power *= 10)
        for (const std::uint64_t v : {power - 1, power, power + 1})
            check(v), check(static_cast<std::int64_t>(v)), check(-static_cast<std::int64_t>(v));
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t v = random() >> random() % 64;
        check(v);
        check(static_cast<std::int64_t>(v));
    }
    check(std::numeric_limits<std::uint64_t>::max());
    check(std::numeric_limits<std::int64_t>::min());
    check(std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("rows come by place, with a stage that recurs and intervals of more than 32 bits") {
    using opline::OpCsv;
    for (const auto form : {OpCsv::Rows::kOps, OpCsv::Rows::kStages}) {
        File file(std::tmpfile());
        OpCsv csv(form, fileno(file.get()));
        std::vector<OpCsv::StageRow> stages(3);
        stages[0].stage = stages[2].stage = "sync";  // recurs
        stages[1].stage = "work, \"hard\"";
        for (std::uint32_t i = 0; i < 3; ++i) stages[i].seq = i;
        std::string expected;
        for (std::uint64_t id = 100; id-- > 0;) {
            const std::int64_t step = id % 7 == 0 ? 3'000'000'000 : 10 + static_cast<std::int64_t>(id);
            OpCsv::Op op;
            op.op_id = static_cast<std::int64_t>(id);
            op.complete = true;
            op.latency_ns = 3 * step;
            op.unattributed_ns = 0;
            std::vector<std::pair<std::uint32_t, std::int64_t>> durations;
            for (std::uint32_t i = 0; i < 3; ++i) {
                stages[i].begin_ns = step * i;
                stages[i].duration_ns = step;
                stages[i].tid = 5;
                const auto number = csv.stage_number(stages[i].stage);
                csv.met(number, id, i);
                durations.emplace_back(number, step);
            }
            const std::string n = std::to_string(id), s = std::to_string(step);
            if (form == OpCsv::Rows::kOps) {
                csv.op(id, op);
                csv.durations(id, durations);
                expected.insert(0, std::to_string(2 * step) + "," + s + ",0\n");
            } else {
                csv.stage_rows(id, op.op_id, stages);
                std::string rows;
                for (std::uint32_t i = 0; i < 3; ++i)
                    rows += n + "," + std::to_string(i) + (i == 1 ? ",\"work, \"\"hard\"\"\"" : ",sync") + ",,,," +
                            std::to_string(step * i) + "," + s + ",5,\n";
                expected.insert(0, rows);
            }
        }
        CHECK(csv.stages_in_order() == std::vector<std::string>{"sync", "work, \"hard\""});
        const std::string rows(csv.rows());
        if (form == OpCsv::Rows::kStages) {
            CHECK(rows == expected);
        } else {
            std::string ends;  // of each line, behind what its op says
            for (std::size_t at = 0; at < rows.size();) {
                const std::size_t end = rows.find('\n', at);
                std::size_t comma = end;
                for (int n = 0; n < 3; ++n) comma = rows.rfind(',', comma - 1);
                ends += rows.substr(comma + 1, end - comma);
                at = end + 1;
            }
            CHECK(ends == expected);
        }
        CHECK(csv.rows().empty());
    }
}
