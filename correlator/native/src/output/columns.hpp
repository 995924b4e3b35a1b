// SPDX-License-Identifier: MIT
// The tables of a run and their columns: numbers by which rows name them, so that a value can't get into
// another column. Declared in opline/store/schema.py, and written down here from there (`make docs`).
#pragma once
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "base/table.hpp"

namespace opline {

// A column of one type, by its place in its table.
template <ColumnType Type>
struct ColumnName {
    std::size_t place;
};

struct ColumnDecl {
    const char *name;
    ColumnType type;
};
struct TableDecl {
    const char *name;
    std::initializer_list<ColumnDecl> columns;
};

namespace columns {

using I64 = ColumnName<ColumnType::kInt64>;
using U64 = ColumnName<ColumnType::kUint64>;
using I32 = ColumnName<ColumnType::kInt32>;
using U32 = ColumnName<ColumnType::kUint32>;
using Bool = ColumnName<ColumnType::kBool>;
using Dict = ColumnName<ColumnType::kDict>;
using Text = ColumnName<ColumnType::kText>;

// clang-format off
// [[[cog
// import textwrap
// from opline.store.schema import TABLES
// TYPES = {"i64": ("I64", "kInt64"), "u64": ("U64", "kUint64"), "i32": ("I32", "kInt32"), "u32": ("U32", "kUint32"),
//          "bool": ("Bool", "kBool"), "dict": ("Dict", "kDict"), "text": ("Text", "kText")}
// print("enum : int {")
// for spec in TABLES:
//     print(f"    k{spec.name.title()},")
// print("};")
// for spec in TABLES:
//     print(f"namespace {spec.name} {{")
//     names = (f"{TYPES[c.type][0]}~{c.name + '_' * (c.name == 'class')}{{{n}}};" for n, c in enumerate(spec.columns))
//     for line in textwrap.wrap(" ".join(f"constexpr~{name}" for name in names), 118, break_on_hyphens=False):
//         print(line.replace("~", " "))
//     print("}")
// from opline.store.schema import ATTRIBUTES
// from opline.steps import STEPS
// print("// Of kRequestSteps, in the same order.")
// print("constexpr I64 kOfSteps[]{" + ", ".join(f"requests::{s.column}" for s in STEPS) + "};")
// print("// Of OpAttributes, in the same order.")
// print("constexpr I64 kOfAttributes[]{" + ", ".join(f"ops::{a.column}" for a in ATTRIBUTES) + "};")
// print("const TableDecl kTables[] = {")
// for spec in TABLES:
//     print(f'    {{"{spec.name}", {{')
//     for line in textwrap.wrap(", ".join(f'{{"{c.name}",~ColumnType::{TYPES[c.type][1]}}}' for c in spec.columns), 112):
//         print("        " + line.replace("~", " "))
//     print("    }},")
// print("};")
// ]]]
enum : int {
    kOps,
    kTransitions,
    kStages,
    kStates,
    kWaits,
    kRequests,
    kBios,
    kLinks,
    kDeferred,
    kBatches,
    kMembers,
    kMessages,
    kTcp,
    kFates,
    kLosses,
    kDiscarded,
};
namespace ops {
constexpr I64 op_id{0}; constexpr Dict class_{1}; constexpr Text object{2}; constexpr Text key{3};
constexpr Dict host{4}; constexpr I32 pid{5}; constexpr Dict comm{6}; constexpr Dict program{7};
constexpr Bool population{8}; constexpr Dict cgroup{9}; constexpr I64 begin_tid{10}; constexpr I64 end_tid{11};
constexpr I64 begin_ns{12}; constexpr I64 end_ns{13}; constexpr I64 latency_ns{14}; constexpr Bool complete{15};
constexpr Dict reason{16}; constexpr Bool tainted{17}; constexpr Bool unsplit{18}; constexpr I64 offset_bytes{19};
constexpr I64 length_bytes{20}; constexpr U32 transition_count{21}; constexpr U32 late_count{22};
constexpr U32 request_count{23}; constexpr U32 batch_count{24}; constexpr U32 dev{25}; constexpr U64 sector{26};
constexpr Dict no_request{27}; constexpr I64 unattributed_ns{28}; constexpr I64 unknown_ns{29};
constexpr I64 begin_cpu{30};
}
namespace transitions {
constexpr I64 op_id{0}; constexpr U32 seq{1}; constexpr I64 ts_ns{2}; constexpr Dict point{3};
constexpr Dict event{4}; constexpr I64 tid{5}; constexpr I32 pid{6}; constexpr Dict host{7}; constexpr U32 cpu{8};
constexpr Dict comm{9}; constexpr Dict evidence{10}; constexpr Bool late{11}; constexpr Bool aside{12};
constexpr I64 batch_id{13}; constexpr I32 child{14};
}
namespace stages {
constexpr I64 op_id{0}; constexpr U32 seq{1}; constexpr Dict stage{2}; constexpr Dict kind{3};
constexpr Dict from_point{4}; constexpr Dict to_point{5}; constexpr I64 begin_ns{6}; constexpr I64 duration_ns{7};
constexpr I64 tid{8}; constexpr Dict host{9}; constexpr I64 request_id{10}; constexpr I64 states_tid{11};
constexpr I64 on_cpu_ns{12}; constexpr I64 runnable_ns{13}; constexpr I64 blocked_io_ns{14};
constexpr I64 blocked_ns{15}; constexpr I64 woken_by_tid{16}; constexpr Dict woken_by_comm{17};
}
namespace states {
constexpr I64 op_id{0}; constexpr U32 seq{1}; constexpr I64 tid{2}; constexpr Dict state{3};
constexpr I64 begin_ns{4}; constexpr I64 duration_ns{5}; constexpr I64 woken_by_tid{6};
constexpr Dict woken_by_comm{7};
}
namespace waits {
constexpr I64 wait_id{0}; constexpr I64 op_id{1}; constexpr U32 seq{2}; constexpr I64 begin_ns{3};
constexpr I64 duration_ns{4}; constexpr U32 part_count{5}; constexpr Dict kind{6}; constexpr Dict reason{7};
constexpr U32 depth{8}; constexpr Dict path{9}; constexpr I64 tid{10}; constexpr Dict comm{11};
constexpr I64 request_id{12}; constexpr I64 instead_tid{13}; constexpr Dict instead_comm{14};
constexpr I32 stack_id{15}; constexpr I32 waker_stack_id{16}; constexpr Dict cause{17}; constexpr Dict last_cause{18};
constexpr Dict lock_kind{19}; constexpr U64 lock{20}; constexpr I64 holder_tid{21}; constexpr Dict holder_comm{22};
constexpr Bool certain{23};
}
namespace requests {
constexpr I64 request_id{0}; constexpr U32 dev{1}; constexpr Dict host{2}; constexpr U64 sector{3};
constexpr U32 nr_sectors{4}; constexpr Dict kind{5}; constexpr Dict rwbs{6}; constexpr I64 queue_ns{7};
constexpr I64 getrq_ns{8}; constexpr I64 insert_ns{9}; constexpr I64 first_issue_ns{10}; constexpr I64 issue_ns{11};
constexpr I64 complete_ns{12}; constexpr I64 q2c_ns{13}; constexpr I64 d2c_ns{14}; constexpr I32 queue_tid{15};
constexpr Dict queue_comm{16}; constexpr I32 issue_tid{17}; constexpr Dict issue_comm{18};
constexpr U32 queue_cpu{19}; constexpr U32 issue_cpu{20}; constexpr U32 complete_cpu{21}; constexpr I32 error{22};
constexpr U32 bio_count{23}; constexpr U32 merge_count{24}; constexpr U32 requeue_count{25};
constexpr U32 in_flight{26}; constexpr U32 op_count{27}; constexpr I64 op_id{28}; constexpr Bool ambiguous{29};
constexpr Bool population{30}; constexpr Dict cgroup{31}; constexpr Dict outcome{32}; constexpr I64 flushed_by{33};
constexpr I64 preflush_ns{34}; constexpr I64 end_ns{35};
}
namespace bios {
constexpr I64 bio_id{0}; constexpr I64 request_id{1}; constexpr U32 dev{2}; constexpr U64 sector{3};
constexpr U32 nr_sectors{4}; constexpr Dict kind{5}; constexpr I64 queue_ns{6}; constexpr I64 getrq_ns{7};
constexpr I64 merge_ns{8}; constexpr I32 tid{9}; constexpr I32 pid{10}; constexpr Dict comm{11};
constexpr I64 parent_id{12}; constexpr I64 split_from_id{13}; constexpr I64 op_id{14}; constexpr I64 op_by_thread{15};
constexpr I64 op_by_sector{16}; constexpr I64 op_by_extent{17}; constexpr U32 sector_candidates{18};
constexpr I64 batch_id{19}; constexpr Bool population{20}; constexpr Dict cgroup{21};
}
namespace links {
constexpr I64 op_id{0}; constexpr I64 bio_id{1}; constexpr I64 request_id{2}; constexpr Dict evidence{3};
constexpr Dict request_evidence{4}; constexpr Dict confidence{5}; constexpr U64 bytes{6}; constexpr Bool shared{7};
constexpr Bool ambiguous{8};
}
namespace deferred {
constexpr I64 op_id{0}; constexpr I64 bio_id{1}; constexpr I64 request_id{2}; constexpr Dict file{3};
constexpr U64 bytes{4}; constexpr I64 written_ns{5}; constexpr I64 queue_ns{6}; constexpr I64 issue_ns{7};
constexpr I64 complete_ns{8}; constexpr I32 tid{9}; constexpr Dict comm{10}; constexpr Dict evidence{11};
constexpr Dict confidence{12}; constexpr Bool shared{13}; constexpr Bool ambiguous{14};
}
namespace batches {
constexpr I64 batch_id{0}; constexpr Dict space{1}; constexpr I32 tid{2}; constexpr I64 begin_ns{3};
constexpr I64 end_ns{4}; constexpr U32 member_count{5}; constexpr U32 request_count{6};
constexpr U32 declared_count{7};
}
namespace members {
constexpr I64 batch_id{0}; constexpr I64 op_id{1}; constexpr I64 joined_ns{2};
}
namespace messages {
constexpr I64 ts_ns{0}; constexpr Dict point{1}; constexpr Dict direction{2}; constexpr U64 identity{3};
constexpr Dict host{4}; constexpr I32 pid{5}; constexpr I64 tid{6};
}
namespace tcp {
constexpr I64 ts_ns{0}; constexpr Dict direction{1}; constexpr Dict local{2}; constexpr Dict peer{3};
constexpr U64 socket{4}; constexpr U32 position{5}; constexpr U32 bytes{6}; constexpr Dict host{7};
constexpr I32 pid{8}; constexpr I64 tid{9};
}
namespace fates {
constexpr Dict event{0}; constexpr Dict fate{1}; constexpr U64 count{2};
}
namespace losses {
constexpr Dict loss{0}; constexpr Dict severity{1}; constexpr Dict origin{2}; constexpr U64 count{3};
}
namespace discarded {
constexpr Text stream{0}; constexpr I64 begin_ns{1}; constexpr I64 end_ns{2}; constexpr U64 count{3};
constexpr Bool packets{4};
}
// Of kRequestSteps, in the same order.
constexpr I64 kOfSteps[]{requests::queue_ns, requests::getrq_ns, requests::insert_ns, requests::issue_ns, requests::complete_ns};
// Of OpAttributes, in the same order.
constexpr I64 kOfAttributes[]{ops::begin_cpu};
const TableDecl kTables[] = {
    {"ops", {
        {"op_id", ColumnType::kInt64}, {"class", ColumnType::kDict}, {"object", ColumnType::kText},
        {"key", ColumnType::kText}, {"host", ColumnType::kDict}, {"pid", ColumnType::kInt32},
        {"comm", ColumnType::kDict}, {"program", ColumnType::kDict}, {"population", ColumnType::kBool},
        {"cgroup", ColumnType::kDict}, {"begin_tid", ColumnType::kInt64}, {"end_tid", ColumnType::kInt64},
        {"begin_ns", ColumnType::kInt64}, {"end_ns", ColumnType::kInt64}, {"latency_ns", ColumnType::kInt64},
        {"complete", ColumnType::kBool}, {"reason", ColumnType::kDict}, {"tainted", ColumnType::kBool},
        {"unsplit", ColumnType::kBool}, {"offset_bytes", ColumnType::kInt64}, {"length_bytes", ColumnType::kInt64},
        {"transition_count", ColumnType::kUint32}, {"late_count", ColumnType::kUint32},
        {"request_count", ColumnType::kUint32}, {"batch_count", ColumnType::kUint32}, {"dev", ColumnType::kUint32},
        {"sector", ColumnType::kUint64}, {"no_request", ColumnType::kDict}, {"unattributed_ns", ColumnType::kInt64},
        {"unknown_ns", ColumnType::kInt64}, {"begin_cpu", ColumnType::kInt64}
    }},
    {"transitions", {
        {"op_id", ColumnType::kInt64}, {"seq", ColumnType::kUint32}, {"ts_ns", ColumnType::kInt64},
        {"point", ColumnType::kDict}, {"event", ColumnType::kDict}, {"tid", ColumnType::kInt64},
        {"pid", ColumnType::kInt32}, {"host", ColumnType::kDict}, {"cpu", ColumnType::kUint32},
        {"comm", ColumnType::kDict}, {"evidence", ColumnType::kDict}, {"late", ColumnType::kBool},
        {"aside", ColumnType::kBool}, {"batch_id", ColumnType::kInt64}, {"child", ColumnType::kInt32}
    }},
    {"stages", {
        {"op_id", ColumnType::kInt64}, {"seq", ColumnType::kUint32}, {"stage", ColumnType::kDict},
        {"kind", ColumnType::kDict}, {"from_point", ColumnType::kDict}, {"to_point", ColumnType::kDict},
        {"begin_ns", ColumnType::kInt64}, {"duration_ns", ColumnType::kInt64}, {"tid", ColumnType::kInt64},
        {"host", ColumnType::kDict}, {"request_id", ColumnType::kInt64}, {"states_tid", ColumnType::kInt64},
        {"on_cpu_ns", ColumnType::kInt64}, {"runnable_ns", ColumnType::kInt64}, {"blocked_io_ns", ColumnType::kInt64},
        {"blocked_ns", ColumnType::kInt64}, {"woken_by_tid", ColumnType::kInt64}, {"woken_by_comm", ColumnType::kDict}
    }},
    {"states", {
        {"op_id", ColumnType::kInt64}, {"seq", ColumnType::kUint32}, {"tid", ColumnType::kInt64},
        {"state", ColumnType::kDict}, {"begin_ns", ColumnType::kInt64}, {"duration_ns", ColumnType::kInt64},
        {"woken_by_tid", ColumnType::kInt64}, {"woken_by_comm", ColumnType::kDict}
    }},
    {"waits", {
        {"wait_id", ColumnType::kInt64}, {"op_id", ColumnType::kInt64}, {"seq", ColumnType::kUint32},
        {"begin_ns", ColumnType::kInt64}, {"duration_ns", ColumnType::kInt64}, {"part_count", ColumnType::kUint32},
        {"kind", ColumnType::kDict}, {"reason", ColumnType::kDict}, {"depth", ColumnType::kUint32},
        {"path", ColumnType::kDict}, {"tid", ColumnType::kInt64}, {"comm", ColumnType::kDict},
        {"request_id", ColumnType::kInt64}, {"instead_tid", ColumnType::kInt64}, {"instead_comm", ColumnType::kDict},
        {"stack_id", ColumnType::kInt32}, {"waker_stack_id", ColumnType::kInt32}, {"cause", ColumnType::kDict},
        {"last_cause", ColumnType::kDict}, {"lock_kind", ColumnType::kDict}, {"lock", ColumnType::kUint64},
        {"holder_tid", ColumnType::kInt64}, {"holder_comm", ColumnType::kDict}, {"certain", ColumnType::kBool}
    }},
    {"requests", {
        {"request_id", ColumnType::kInt64}, {"dev", ColumnType::kUint32}, {"host", ColumnType::kDict},
        {"sector", ColumnType::kUint64}, {"nr_sectors", ColumnType::kUint32}, {"kind", ColumnType::kDict},
        {"rwbs", ColumnType::kDict}, {"queue_ns", ColumnType::kInt64}, {"getrq_ns", ColumnType::kInt64},
        {"insert_ns", ColumnType::kInt64}, {"first_issue_ns", ColumnType::kInt64}, {"issue_ns", ColumnType::kInt64},
        {"complete_ns", ColumnType::kInt64}, {"q2c_ns", ColumnType::kInt64}, {"d2c_ns", ColumnType::kInt64},
        {"queue_tid", ColumnType::kInt32}, {"queue_comm", ColumnType::kDict}, {"issue_tid", ColumnType::kInt32},
        {"issue_comm", ColumnType::kDict}, {"queue_cpu", ColumnType::kUint32}, {"issue_cpu", ColumnType::kUint32},
        {"complete_cpu", ColumnType::kUint32}, {"error", ColumnType::kInt32}, {"bio_count", ColumnType::kUint32},
        {"merge_count", ColumnType::kUint32}, {"requeue_count", ColumnType::kUint32},
        {"in_flight", ColumnType::kUint32}, {"op_count", ColumnType::kUint32}, {"op_id", ColumnType::kInt64},
        {"ambiguous", ColumnType::kBool}, {"population", ColumnType::kBool}, {"cgroup", ColumnType::kDict},
        {"outcome", ColumnType::kDict}, {"flushed_by", ColumnType::kInt64}, {"preflush_ns", ColumnType::kInt64},
        {"end_ns", ColumnType::kInt64}
    }},
    {"bios", {
        {"bio_id", ColumnType::kInt64}, {"request_id", ColumnType::kInt64}, {"dev", ColumnType::kUint32},
        {"sector", ColumnType::kUint64}, {"nr_sectors", ColumnType::kUint32}, {"kind", ColumnType::kDict},
        {"queue_ns", ColumnType::kInt64}, {"getrq_ns", ColumnType::kInt64}, {"merge_ns", ColumnType::kInt64},
        {"tid", ColumnType::kInt32}, {"pid", ColumnType::kInt32}, {"comm", ColumnType::kDict},
        {"parent_id", ColumnType::kInt64}, {"split_from_id", ColumnType::kInt64}, {"op_id", ColumnType::kInt64},
        {"op_by_thread", ColumnType::kInt64}, {"op_by_sector", ColumnType::kInt64},
        {"op_by_extent", ColumnType::kInt64}, {"sector_candidates", ColumnType::kUint32},
        {"batch_id", ColumnType::kInt64}, {"population", ColumnType::kBool}, {"cgroup", ColumnType::kDict}
    }},
    {"links", {
        {"op_id", ColumnType::kInt64}, {"bio_id", ColumnType::kInt64}, {"request_id", ColumnType::kInt64},
        {"evidence", ColumnType::kDict}, {"request_evidence", ColumnType::kDict}, {"confidence", ColumnType::kDict},
        {"bytes", ColumnType::kUint64}, {"shared", ColumnType::kBool}, {"ambiguous", ColumnType::kBool}
    }},
    {"deferred", {
        {"op_id", ColumnType::kInt64}, {"bio_id", ColumnType::kInt64}, {"request_id", ColumnType::kInt64},
        {"file", ColumnType::kDict}, {"bytes", ColumnType::kUint64}, {"written_ns", ColumnType::kInt64},
        {"queue_ns", ColumnType::kInt64}, {"issue_ns", ColumnType::kInt64}, {"complete_ns", ColumnType::kInt64},
        {"tid", ColumnType::kInt32}, {"comm", ColumnType::kDict}, {"evidence", ColumnType::kDict},
        {"confidence", ColumnType::kDict}, {"shared", ColumnType::kBool}, {"ambiguous", ColumnType::kBool}
    }},
    {"batches", {
        {"batch_id", ColumnType::kInt64}, {"space", ColumnType::kDict}, {"tid", ColumnType::kInt32},
        {"begin_ns", ColumnType::kInt64}, {"end_ns", ColumnType::kInt64}, {"member_count", ColumnType::kUint32},
        {"request_count", ColumnType::kUint32}, {"declared_count", ColumnType::kUint32}
    }},
    {"members", {
        {"batch_id", ColumnType::kInt64}, {"op_id", ColumnType::kInt64}, {"joined_ns", ColumnType::kInt64}
    }},
    {"messages", {
        {"ts_ns", ColumnType::kInt64}, {"point", ColumnType::kDict}, {"direction", ColumnType::kDict},
        {"identity", ColumnType::kUint64}, {"host", ColumnType::kDict}, {"pid", ColumnType::kInt32},
        {"tid", ColumnType::kInt64}
    }},
    {"tcp", {
        {"ts_ns", ColumnType::kInt64}, {"direction", ColumnType::kDict}, {"local", ColumnType::kDict},
        {"peer", ColumnType::kDict}, {"socket", ColumnType::kUint64}, {"position", ColumnType::kUint32},
        {"bytes", ColumnType::kUint32}, {"host", ColumnType::kDict}, {"pid", ColumnType::kInt32},
        {"tid", ColumnType::kInt64}
    }},
    {"fates", {
        {"event", ColumnType::kDict}, {"fate", ColumnType::kDict}, {"count", ColumnType::kUint64}
    }},
    {"losses", {
        {"loss", ColumnType::kDict}, {"severity", ColumnType::kDict}, {"origin", ColumnType::kDict},
        {"count", ColumnType::kUint64}
    }},
    {"discarded", {
        {"stream", ColumnType::kText}, {"begin_ns", ColumnType::kInt64}, {"end_ns", ColumnType::kInt64},
        {"count", ColumnType::kUint64}, {"packets", ColumnType::kBool}
    }},
};
// [[[end]]]
// clang-format on

}  // namespace columns
}  // namespace opline
