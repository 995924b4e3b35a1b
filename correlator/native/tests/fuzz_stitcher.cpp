// SPDX-License-Identifier: MIT
// libFuzzer target: any events over any plan. The input's first bytes make a plan (random_plan.hpp), the others events
// of user space, of the block layer and of the scheduler, losses among them. Asserted: the partition law of every op,
// in what the tables say; a fate for every event; and that ops that are attributed by their shape have the rows that
// they have when each is attributed by itself.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/core.hpp"
#include "random_plan.hpp"

namespace {

using namespace opline;

void require(bool holds) {
    if (!holds) __builtin_trap();
}

struct Kind {
    const char *name;
    Domain domain;
    std::vector<const char *> payload, context;
};

const std::vector<Kind> &kinds() {
    static const std::vector<Kind> all = [] {
        std::vector<Kind> out;
        for (const char *const name : RandomPlan::kEvents)
            out.push_back({name, Domain::kUst, {"f0", "f1", "f2", "f3"}, {"vtid", "vpid", "procname"}});
        const std::vector<const char *> block = {"dev",   "sector",  "nr_sector",  "rwbs",       "tid", "comm", "bytes",
                                                 "error", "old_dev", "old_sector", "new_sector", "rq",  "bio"};
        for (const char *const name : {"block_bio_queue", "block_getrq", "block_rq_insert", "block_rq_issue",
                                       "block_rq_complete", "block_rq_requeue", "block_bio_backmerge",
                                       "block_bio_frontmerge", "block_rq_merge", "block_split", "block_bio_remap"})
            out.push_back({name, Domain::kKernel, block, {"tid", "pid", "procname"}});
        out.push_back(
            {"sched_switch", Domain::kKernel, {"prev_tid", "prev_state", "next_tid"}, {"tid", "pid", "procname"}});
        out.push_back({"sched_waking", Domain::kKernel, {"tid", "target_cpu"}, {"tid", "pid", "procname"}});
        return out;
    }();
    return all;
}

// A small number for each field, so that events meet. `bits`: the input's.
Slot value_of(const FieldDecl &field, std::uint32_t number, std::uint32_t bits) {
    const std::uint64_t small = 1 + (bits >> 2 * number % 16 & 3);
    const std::string &name = field.name;
    if (field.type == FieldType::kString)
        return Slot::of(small == 4 ? std::string_view("kworker/0:1") : std::string_view("fio"));
    if (name == "dev") return Slot::of(std::uint64_t{8} << 20);
    if (name == "old_dev") return Slot::of(std::uint64_t{9} << 20);
    if (name == "sector" || name == "old_sector" || name == "new_sector") return Slot::of(small * 8);
    if (name == "nr_sector") return Slot::of((small - 1) % 3 * 8);
    if (name == "rwbs") {
        constexpr std::uint64_t kFlags[] = {1, 4, 1537, 256};
        return Slot::of(kFlags[small - 1]);
    }
    if (name == "error" || name == "prev_state" || name == "target_cpu") return Slot::of(std::int64_t(small - 1));
    return Slot::of(small);
}

struct Declared {
    ClassPlan plan;
    std::vector<FieldDecl> fields;
};

// One core that is given the events.
class Run {
  public:
    Run(const Plan &plan, bool each) : core_(plan) {
        if (each) core_.attribute_each();
        for (const Kind &kind : kinds()) {
            ClassDecl decl{kind.name, kind.domain, {}};
            auto add = [&](const char *name, FieldScope scope) {
                const bool text = std::string_view(name) == "procname" || std::string_view(name) == "comm";
                decl.fields.push_back({name, text ? FieldType::kString : FieldType::kUnsigned, scope});
            };
            for (const char *name : kind.payload) add(name, FieldScope::kPayload);
            for (const char *name : kind.context) add(name, FieldScope::kContext);
            const ClassPlan answer = core_.add_class(decl);
            classes_.push_back({answer, decl.fields});
        }
        for (const Domain domain : {Domain::kUst, Domain::kKernel})
            for (std::uint64_t i = 0; i < 2; ++i)
                core_.add_stream({"host", domain, "ch", "ch_" + std::to_string(i), i, nullptr});
    }

    void play(RandomBytes bytes) {
        std::int64_t now = 1000;
        for (std::uint32_t steps = 0; !bytes.empty() && steps < 400; ++steps) {
            const std::uint32_t what = bytes.next(), pause = bytes.next(), bits = bytes.next() | bytes.next() << 8;
            now += pause < 240 ? pause % 64 : pause < 248 ? 10'000 : -static_cast<std::int64_t>(pause - 247);
            if (what >= 250) lose(what, now, bits);
            else event(what % classes_.size(), now, bits);
        }
        while (!core_.finish())
            for (Table &table : core_.tables()) table.clear();
    }

    void check_law() {
        std::map<std::uint64_t, std::int64_t> sums;
        Table &stages = table("stages"), &ops = table("ops"), &fates = table("fates");
        for (std::size_t i = 0; i < stages.rows(); ++i) {
            const auto lasted_ns = get<std::int64_t>(stages, "duration_ns", i);
            require(lasted_ns >= 0);
            sums[get<std::uint64_t>(stages, "op_id", i)] += lasted_ns;
        }
        for (std::size_t i = 0; i < ops.rows(); ++i) {
            const auto op = get<std::uint64_t>(ops, "op_id", i);
            if (get<std::uint8_t>(ops, "complete", i) == 0) {
                require(sums.count(op) == 0);
                continue;
            }
            const auto latency_ns = get<std::int64_t>(ops, "latency_ns", i);
            require(latency_ns == get<std::int64_t>(ops, "end_ns", i) - get<std::int64_t>(ops, "begin_ns", i));
            require(sums[op] + get<std::int64_t>(ops, "unattributed_ns", i) == latency_ns);
        }
        std::uint64_t counted = 0;
        for (std::size_t i = 0; i < fates.rows(); ++i) counted += get<std::uint64_t>(fates, "count", i);
        require(counted == events_ && core_.events_seen() == events_);
    }

    // Every row of these tables, as text.
    std::string rows() {
        std::string out;
        for (const char *const name : {"ops", "stages", "transitions", "links"}) {
            const Table &t = table(name);
            out += name;
            for (const Column &column : t.columns) {
                for (std::size_t i = 0; i < t.rows(); ++i) {
                    out += column.present(i) ? '=' : '-';
                    if (!column.present(i)) continue;
                    if (column.type == ColumnType::kText) out += column.get_text(i);
                    else
                        out.append(reinterpret_cast<const char *>(column.values()) + i * column.width(),
                                   column.width());
                }
            }
        }
        return out;
    }

  private:
    void event(std::size_t number, std::int64_t now, std::uint32_t bits) {
        const Declared &declared = classes_[number];
        Slot slots[32];
        std::size_t n = 0;
        for (const std::uint32_t field : declared.plan.wanted)
            slots[n++] = value_of(declared.fields[field], field, bits);
        const bool kernel = kinds()[number].domain == Domain::kKernel;
        const std::uint32_t stream = (kernel ? 2 : 0) + (bits >> 15 & 1);
        const Event ev{declared.plan.id, 0, stream, bits >> 15 & 1, now, slots};
        Event named = ev;
        core_.name_threads(&named, &named + 1);
        core_.event(named);
        ++events_;
    }

    void lose(std::uint32_t what, std::int64_t now, std::uint32_t bits) {
        const std::uint32_t stream = bits & 3;
        if (what == 255) core_.gap({stream, Gap::Kind::kDamage, bits & 4 ? now : kNoTime, kNoTime, 0, "it is damaged"});
        else
            core_.gap({stream,
                       bits & 64 ? Gap::Kind::kPackets : Gap::Kind::kEvents,
                       bits & 4 ? now - 50 : kNoTime,
                       now,
                       bits >> 3 & 7,
                       {}});
    }

    Table &table(std::string_view name) {
        for (Table &t : core_.tables())
            if (t.name == name) return t;
        std::abort();
    }

    template <class T>
    static T get(const Table &t, std::string_view name, std::size_t row) {
        for (const Column &column : t.columns)
            if (column.name == name) {
                require(column.width() == sizeof(T));
                return column.present(row) ? column.get<T>(row) : T{};
            }
        std::abort();
    }

    Core core_;
    std::vector<Declared> classes_;
    std::uint64_t events_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    RandomBytes bytes(data, size);
    const Plan plan = RandomPlan(bytes).plan();
    Run whole(plan, false), each(plan, true);
    whole.play(bytes);
    whole.check_law();
    each.play(bytes);
    each.check_law();
    require(whole.rows() == each.rows());
    return 0;
}
