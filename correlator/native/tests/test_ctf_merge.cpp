// SPDX-License-Identifier: MIT
// The order and the values of what the native reader gives, of traces made at random.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "counting_sink.hpp"
#include "ctf/reader.hpp"
#include "ctf_maker.hpp"
#include "scratch_trace.hpp"

using namespace opline;

namespace {

// time, stream, which of the stream, its text
using Seen = std::tuple<std::int64_t, std::uint32_t, std::uint64_t, std::string>;

// Keeps what it is told: events, and of packets lost after which event of their stream.
class KeepingSink final : public CountingSink {
  public:
    void event(const Event &e) override {
        CountingSink::event(e);
        seen.emplace_back(e.ts_ns, e.stream, e.slots[0].bits(), std::string(e.slots[1].str()));
    }
    void gap(const opline::Gap &gap) override {
        gaps.emplace_back(gap.stream, std::count_if(seen.begin(), seen.end(),
                                                    [&](const Seen &s) { return std::get<1>(s) == gap.stream; }));
    }
    std::vector<Seen> seen;
    std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> gaps;
};

}  // namespace

TEST_CASE("streams are merged by time, then by their rank, whether they take turns or not, in one thread or two") {
    std::mt19937 random(1);
    auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (std::uint32_t streams : {1u, 2u, 3u, 5u, 40u}) {
        ScratchTrace trace;
        trace.write("metadata", metadata_of("uint32_t x; string text; uint16_t unwanted;"));
        std::vector<Seen> expected;
        std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> gaps;
        for (std::uint32_t i = 0; i < streams; ++i) {
            std::string bytes;
            std::uint64_t sequence = 0;
            std::uint32_t time = 100, number = 0;
            const std::uint32_t most = 1 + below(1500);
            while (number < most) {
                std::string events;
                if (sequence > 0 && below(4) == 0) {
                    ++sequence;
                    gaps.emplace_back(i, number);
                }
                const std::uint32_t long_run = below(3);
                for (std::uint32_t left = 1 + below(200); left > 0; --left) {
                    time += long_run == 0 ? below(2) : below(4) == 0 ? below(400) : below(3);
                    std::string payload;
                    put(payload, number);
                    const std::string text(below(3) == 0 ? below(70) : 5, 'a');
                    payload += text + '\0' + "zz";
                    events += event(time, payload);
                    expected.emplace_back(time, i, number++, text);
                }
                bytes += packet(events, sequence++, -1, -1, i);
            }
            trace.write("ch_" + std::to_string(i), bytes);
        }
        std::stable_sort(expected.begin(), expected.end(), [](const Seen &a, const Seen &b) {
            return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
        });
        for (unsigned threads : {1u, 2u})
            for (std::uint64_t at_once : {1u, 700u, 1000000u}) {
                ctf::Reader reader({trace.path()});
                KeepingSink consumer;
                reader.open(consumer, threads);
                while (reader.run(at_once)) {}
                CHECK(consumer.finished);
                CHECK(consumer.seen == expected);
                std::sort(consumer.gaps.begin(), consumer.gaps.end());
                CHECK(consumer.gaps == gaps);
                CHECK(reader.losses().truncated_packets == 0);
            }
    }
}

// Wants the fields whose names begin with 'w', and keeps their values.
struct Keeper : CountingSink {
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan;
        plan.id = static_cast<std::uint32_t>(counts.size());
        for (std::uint32_t i = 0; i < decl.fields.size(); ++i)
            if (decl.fields[i].name[0] == 'w') plan.wanted.push_back(i);
        counts.push_back(plan.wanted.size());
        return plan;
    }
    void event(const Event &e) override {
        values.push_back(e.cls);
        values.push_back(static_cast<std::uint64_t>(e.ts_ns));
        for (std::size_t i = 0; i < counts[e.cls]; ++i) values.push_back(e.slots[i].bits());
    }
    std::vector<std::size_t> counts;
    std::vector<std::uint64_t> values;
};

TEST_CASE("events that repeat fields of the one before have their own values") {
    const std::uint64_t seed = 20240611;
    std::mt19937_64 random(seed);
    auto below = [&](std::uint64_t n) { return random() % n; };
    for (int round = 0; round < 1000; ++round) {
        CAPTURE(round);
        struct Field {
            std::uint32_t bytes;  // 0: a string
            bool wanted, is_signed;
        };
        std::vector<std::vector<Field>> classes(1 + below(3));
        for (auto &fields : classes) {
            if (&fields != &classes[0] && below(2) == 0) {
                fields = classes[0];  // often all are laid out alike
                // but for where they end
                for (auto more = below(3); more-- != 0;) fields.push_back({below(2) == 0 ? 0u : 4u, false, false});
            } else {
                fields.resize(1 + below(7));
                for (auto &f : fields) f = {below(8) == 0 ? 0u : 1u << below(4), below(2) == 0, below(3) == 0};
            }
            for (auto &f : fields) f.wanted = f.wanted && f.bytes != 0;
        }
        std::string metadata = kHead;
        for (const int bits : {8, 16, 32, 64})
            metadata += "typealias integer { size = " + std::to_string(bits) + "; align = 8; signed = true; } := int" +
                        std::to_string(bits) + "_t;\n";
        metadata += kStream;
        for (std::size_t c = 0; c < classes.size(); ++c) {
            std::string fields;
            for (std::size_t k = 0; k < classes[c].size(); ++k) {
                const Field &f = classes[c][k];
                const std::string name = (f.wanted ? "w" : "u") + std::to_string(k);
                if (f.bytes == 0) fields += "string { encoding = UTF8; } " + name + "; ";
                else fields += (f.is_signed ? "int" : "uint") + std::to_string(8 * f.bytes) + "_t " + name + "; ";
            }
            metadata += "event { name = \"t:e" + std::to_string(c) + "\"; id = " + std::to_string(c) +
                        "; stream_id = 0; fields := struct { " + fields + "}; };\n";
        }
        std::string events;
        std::vector<std::uint64_t> expected;
        const std::uint64_t values[] = {0, 1, 0x8181818181818181, 0x0101010101010101};
        for (std::uint32_t i = 0, n = static_cast<std::uint32_t>(below(200)); i < n; ++i) {
            const std::size_t c = below(classes.size());
            put(events, ((100 + i) << 5) | static_cast<std::uint32_t>(c));
            expected.insert(expected.end(), {c, 100 + i});
            for (const Field &f : classes[c]) {
                if (f.bytes == 0) {
                    events += std::string(below(3) * 20, 'x') + '\0';
                    continue;
                }
                const std::uint64_t v = values[below(16) == 0 ? below(4) : 1],
                                    mask = ~std::uint64_t{0} >> (64 - 8 * f.bytes);
                for (std::uint32_t k = 0; k < f.bytes; ++k) events += static_cast<char>(v >> 8 * k);
                const bool negative = f.is_signed && (v & (mask ^ (mask >> 1))) != 0;
                if (f.wanted) expected.push_back(negative ? v | ~mask : v & mask);
            }
        }
        ScratchTrace trace;
        trace.write("metadata", metadata);
        trace.write("ch_0", packet(events));
        ctf::Reader reader({trace.path()});
        Keeper seen;
        reader.open(seen);
        while (reader.run(1000)) {}
        CHECK(reader.losses().messages.empty());
        CHECK(seen.values == expected);
    }
}

namespace {

// Keeps the events' times; a field `ktime` is its event's own time.
class Times : public CountingSink {
  public:
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan = CountingSink::add_class(decl);
        if (decl.fields.front().name == "ktime") plan.time_slot = 0;
        return plan;
    }
    void event(const Event &e) override { times.push_back(e.ts_ns); }
    std::vector<std::int64_t> times;
};

}  // namespace

TEST_CASE("an event's own time is its time, and that of those without one behind it, whatever their header") {
    const std::string other = "event { name = \"t:f\"; id = 1; stream_id = 0; fields := struct { uint32_t x; }; };\n";
    auto own = [](std::uint32_t clock, std::uint64_t ktime) {
        std::string payload;
        put(payload, ktime);
        return event(clock, payload);
    };
    auto without = [](std::uint32_t clock) {
        std::string out;
        put(out, clock << 5 | 1);
        put(out, std::uint32_t{7});
        return out;
    };
    std::string extended("\x1f");
    put(extended, std::uint32_t{1});
    put(extended, std::uint64_t{140});
    put(extended, std::uint32_t{7});
    const std::string events = without(100) + own(110, 50) + without(120) + own(130, 70) + extended + without(150);
    for (const std::string hz : {"1000000000", "1000000"}) {
        std::string metadata = metadata_of("uint64_t ktime;") + other;
        metadata.replace(metadata.find("1000000000"), 10, hz);
        ScratchTrace trace;
        trace.write("metadata", metadata);
        trace.write("ch_0", packet(events));
        Times seen;
        ctf::Reader reader({trace.path()});
        reader.open(seen);
        while (reader.run(1000)) {}
        const std::int64_t first_ns = hz.size() == 10 ? 100 : 100'000;
        CHECK(seen.times == std::vector<std::int64_t>{first_ns, 50, 50, 70, 70, 70});
    }
}
