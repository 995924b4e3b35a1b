// SPDX-License-Identifier: MIT
// Flushes of several threads at once: the kernel's flush machinery (block/blk-flush.c) simulated on devices with 1, 2
// and 4 hardware queues, with and without FUA, where completions come on the submitting or on another CPU. The truth is
// in the event's comm: the number of the bio, which no rule looks at.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "block/block.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kCpus = 4, kDev = 254u << 20 | 16u;

enum class Interrupts { kOwnCpu, kPerQueue, kOneCpu };

struct Machine {
    struct Write {
        std::uint32_t number = 0, cpu = 0;
        std::uint64_t sector = 0;
        bool has_data = false, post = false;  // waits for the flush behind its data
        enum { kIdle, kInLine, kServed, kToIssue, kIssued } state = kIdle;
    };
    struct Queue {
        std::vector<std::size_t> pending, running;
        std::vector<std::uint32_t> cpus;
        std::uint32_t kicked_on = 0, data_in_flight = 0, first_cpu = 0;
        std::int64_t issued_ns = 0;
        enum { kNone, kKicked, kIssued } flush = kNone;
    };
    std::mt19937_64 random;
    bool fua, with_data;
    Interrupts interrupts;
    std::vector<Queue> queues;
    std::vector<Write> writes;  // of a thread each
    std::vector<BlockEvent> events;
    std::map<std::uint32_t, std::int64_t> ends;    // by number
    std::map<std::int64_t, std::int64_t> flushes;  // issue → completion
    std::int64_t now = 1'000'000;
    std::uint32_t numbers = 0;

    Machine(std::uint64_t seed, std::size_t queue_count, bool fua, bool with_data, Interrupts interrupts)
        : random(seed), fua(fua), with_data(with_data), interrupts(interrupts), queues(queue_count), writes(6) {
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) queues[cpu * queue_count / kCpus].cpus.push_back(cpu);
    }
    std::uint64_t below(std::uint64_t n) { return random() % n; }
    Queue &queue_of(std::uint32_t cpu) { return queues[cpu * queues.size() / kCpus]; }
    std::uint32_t completes_on(const Queue &q, std::uint32_t submitted) const {
        if (interrupts == Interrupts::kOwnCpu) return submitted;
        return interrupts == Interrupts::kPerQueue ? q.cpus.back() : kCpus - 1;
    }
    void emit(BlockKind kind, std::uint32_t cpu, std::int32_t tid, std::uint64_t sector, std::uint32_t count,
              std::uint32_t flags, std::uint32_t number) {
        BlockEvent e{};
        e.kind = kind;
        e.ts_ns = now += 1 + static_cast<std::int64_t>(below(5000));
        e.cpu = cpu;
        e.tid = tid;
        e.pid = -1;
        e.comm = number;
        e.dev = kDev;
        e.sector = sector;
        e.nr_sectors = count;
        e.rwbs = flags;
        events.push_back(e);
    }
    void submit(std::size_t i) {
        Write &w = writes[i];
        w.number = ++numbers;
        w.cpu = static_cast<std::uint32_t>(below(kCpus));
        w.has_data = with_data && below(2) == 0;
        w.post = false;
        w.sector = w.has_data ? 8 * w.number : 0;
        const std::uint32_t flags = rwbs::kWrite | rwbs::kSync | rwbs::kPreflush | (w.has_data ? rwbs::kFua : 0u),
                            count = w.has_data ? 8 : 0;
        for (auto kind : {BlockKind::kBioQueue, BlockKind::kGetRq})
            emit(kind, w.cpu, static_cast<std::int32_t>(100 + i), w.sector, count, flags, w.number);
        line_up(i, w.cpu);
    }
    void line_up(std::size_t i, std::uint32_t cpu) {
        writes[i].state = Write::kInLine;
        queue_of(writes[i].cpu).pending.push_back(i);
        kick(queue_of(writes[i].cpu), cpu);
    }
    void kick(Queue &q, std::uint32_t cpu) {
        if (q.flush != Queue::kNone || q.pending.empty() || q.data_in_flight > 0) return;
        q.flush = Queue::kKicked;
        q.running.swap(q.pending);
        q.kicked_on = cpu;
        q.first_cpu = writes[q.running.front()].cpu;
        for (auto i : q.running) writes[i].state = Write::kServed;
    }
    void end(std::size_t i, std::uint32_t cpu) {
        Write &w = writes[i];
        emit(BlockKind::kRqComplete, cpu, -1, w.sector, 0, rwbs::kWrite | rwbs::kSync, 0);
        ends[w.number] = now;
        w.state = Write::kIdle;
    }
    void issue_flush(Queue &q) {
        const bool here = std::find(q.cpus.begin(), q.cpus.end(), q.kicked_on) != q.cpus.end();
        emit(BlockKind::kRqIssue, here ? q.kicked_on : q.cpus.front(), 9, 0, 0, rwbs::kFlush | rwbs::kPreflush, 0);
        q.issued_ns = now;
        q.flush = Queue::kIssued;
    }
    void complete_flush(Queue &q) {
        const std::uint32_t cpu = completes_on(q, q.first_cpu);
        emit(BlockKind::kRqComplete, cpu, -1, kNoSector, 0, rwbs::kFlush | rwbs::kPreflush, 0);
        flushes[q.issued_ns] = now;
        q.flush = Queue::kNone;
        for (auto i : std::exchange(q.running, {})) {
            Write &w = writes[i];
            if (w.has_data && !w.post) {
                w.state = Write::kToIssue;
                ++q.data_in_flight;
            } else {
                end(i, cpu);
            }
            kick(q, cpu);
        }
    }
    void issue_data(std::size_t i) {
        Write &w = writes[i];
        emit(BlockKind::kRqIssue, w.cpu, 9, w.sector, 8, rwbs::kWrite | rwbs::kSync | (fua ? rwbs::kFua : 0u), 0);
        w.state = Write::kIssued;
    }
    void complete_data(std::size_t i) {
        Write &w = writes[i];
        Queue &q = queue_of(w.cpu);
        const std::uint32_t cpu = completes_on(q, w.cpu);
        emit(BlockKind::kRqComplete, cpu, -1, w.sector, 8, rwbs::kWrite | rwbs::kSync | (fua ? rwbs::kFua : 0u), 0);
        --q.data_in_flight;
        if (fua) {
            end(i, cpu);
            kick(q, cpu);
        } else {
            w.post = true;
            line_up(i, cpu);
        }
    }
    void run(std::uint32_t count) {
        for (;;) {
            const auto i = below(writes.size());
            const auto state = writes[i].state;
            if (state == Write::kIdle && numbers < count && below(2) == 0) submit(i);
            else if (state == Write::kToIssue) issue_data(i);
            else if (state == Write::kIssued) complete_data(i);
            Queue &q = queues[below(queues.size())];
            if (q.flush == Queue::kKicked) issue_flush(q);
            else if (q.flush == Queue::kIssued && below(2) == 0) complete_flush(q);
            if (numbers == count &&
                std::all_of(writes.begin(), writes.end(), [](const Write &w) { return w.state == Write::kIdle; }))
                return;
        }
    }
};

struct Verdict {
    std::size_t writes = 0, wrong = 0, unmarked = 0, wrong_flushes = 0;
    BlockCounts counts;
};

// What says which CPUs share a hardware queue.
enum class Queues { kNothing, kRecording, kEvents };

Verdict judge(const Machine &m, Queues known = Queues::kNothing) {
    Verdict v;
    BlockModel::Hooks hooks;
    hooks.bio_queued = [](const BlockEvent &, const Bio &) { return Owner{}; };
    hooks.request_done = [&](const Request &r) {
        if (r.getrq_ns == kNoTime) {
            const auto it = m.flushes.find(r.issue_ns);
            v.wrong_flushes += (it == m.flushes.end() || it->second != r.complete_ns) && !r.ambiguous;
            return;
        }
        ++v.writes;
        const bool wrong = r.end_ns != m.ends.at(r.queue_comm);
        v.wrong += wrong;
        v.unmarked += wrong && !r.ambiguous;
    };
    BlockModel model(BlockMatch::kSector, hooks);
    if (known == Queues::kRecording) {
        DeviceFacts facts;
        for (const auto &q : m.queues) facts.queues.push_back(q.cpus);
        facts.fua = m.fua;
        model.know(kDev, facts);
    }
    for (BlockEvent e : m.events) {
        if (known == Queues::kEvents && e.kind == BlockKind::kRqIssue)
            e.queue = static_cast<std::uint32_t>(e.cpu * m.queues.size() / kCpus);
        model.event(e);
    }
    model.finish();
    v.counts = model.counts();
    return v;
}

}  // namespace

TEST_CASE("flushes of several threads") {
    for (std::size_t queues : {1u, 2u, 4u})
        for (bool fua : {false, true})
            for (bool with_data : {false, true})
                for (Interrupts interrupts : {Interrupts::kOwnCpu, Interrupts::kPerQueue, Interrupts::kOneCpu}) {
                    CAPTURE(queues);
                    CAPTURE(fua);
                    CAPTURE(with_data);
                    CAPTURE(static_cast<int>(interrupts));
                    Machine m(queues * 100 + fua * 10 + with_data, queues, fua, with_data, interrupts);
                    m.run(4000);
                    const Verdict v = judge(m);
                    CHECK(v.writes == 4000);
                    const auto lost = v.counts.presumed_lost + v.counts.unmatched_issue + v.counts.unmatched_complete;
                    // One interrupt for several queues: nothing says whose flush has completed, but that nothing says
                    // so.
                    const bool blind = queues > 1 && interrupts == Interrupts::kOneCpu;
                    CHECK(v.unmarked <= (queues == 1 ? 0 : blind ? 160 : 12));
                    CHECK(v.wrong_flushes <= (queues == 1 ? 0 : blind ? 80 : 4));
                    if (blind) continue;
                    CHECK(v.wrong <= (queues == 1 ? 0 : 80));
                    CHECK(lost <= (queues == 1 ? 0 : 8));
                }
}

// The recording's lists of CPUs say it from the start, events from each CPU's first issue on.
TEST_CASE("flushes of several threads on known hardware queues") {
    for (std::size_t queues : {1u, 2u, 4u})
        for (bool fua : {false, true})
            for (bool with_data : {false, true})
                for (Interrupts interrupts : {Interrupts::kOwnCpu, Interrupts::kPerQueue}) {
                    CAPTURE(queues);
                    CAPTURE(fua);
                    CAPTURE(with_data);
                    CAPTURE(static_cast<int>(interrupts));
                    Machine m(queues * 100 + fua * 10 + with_data, queues, fua, with_data, interrupts);
                    m.run(4000);
                    const Verdict v = judge(m, Queues::kRecording);
                    CHECK(v.writes == 4000);
                    CHECK(v.wrong == 0);
                    CHECK(v.wrong_flushes == 0);
                    CHECK(v.counts.presumed_lost + v.counts.unmatched_issue + v.counts.unmatched_complete == 0);
                    CHECK(v.counts.queues_assumed == 0);
                    const Verdict by_events = judge(m, Queues::kEvents);
                    CHECK(by_events.wrong <= 8);
                    CHECK(by_events.unmarked <= 2);
                    CHECK(by_events.counts.queues_assumed == 0);
                    CHECK(judge(m).counts.queues_assumed == 1);
                }
}
