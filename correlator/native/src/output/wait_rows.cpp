// SPDX-License-Identifier: MIT
#include "output/wait_rows.hpp"

#include "identity/threads.hpp"
#include "output/row.hpp"

namespace opline {

using namespace columns;

WaitWords::WaitWords(StringPool &strings) {
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = strings.intern(kWaitKinds[i]);
    for (std::size_t i = 0; i < doubts.size(); ++i) doubts[i] = strings.intern(kWaitDoubts[i]);
    for (std::size_t i = 0; i < locks.size(); ++i) locks[i] = strings.intern(kLockKinds[i]);
}

void put_waits(Table &table, const WaitWords &words, const SettledOp &settled) {
    namespace waits = columns::waits;
    for (const auto &p : settled.found.waits) {
        const bool unknown = p.doubt != WaitDoubt::kNone;
        Row row(table);
        row.i64(waits::wait_id, static_cast<std::int64_t>(p.wait))
            .i64(waits::op_id, static_cast<std::int64_t>(settled.op.serial))
            .u32(waits::seq, p.stage)
            .i64(waits::begin_ns, p.begin_ns)
            .i64(waits::duration_ns, p.ns)
            .u32(waits::part_count, p.parts);
        row.dict(waits::kind, words.kinds[static_cast<std::size_t>(p.kind)])
            .dict_or_absent(waits::reason, unknown ? words.doubts[static_cast<std::size_t>(p.doubt)] : 0)
            .u32(waits::depth, p.depth)
            .dict_or_absent(waits::path, p.path);
        row.i64_if(waits::tid, p.tid >= 0, display_number(p.tid))
            .dict_or_absent(waits::comm, p.comm)
            .i64_if(waits::request_id, p.request != 0, static_cast<std::int64_t>(p.request))
            .i64_if(waits::instead_tid, p.instead_tid >= 0, display_number(p.instead_tid))
            .dict_or_absent(waits::instead_comm, p.instead_comm)
            .i32_if(waits::stack_id, p.stack >= 0, p.stack)
            .i32_if(waits::waker_stack_id, p.waker_stack >= 0, p.waker_stack)
            .dict_or_absent(waits::cause, p.cause)
            .dict_or_absent(waits::last_cause, p.last_cause);
        const HeldLock &lock = p.lock;
        const bool slept = lock.address != 0;
        row.dict_or_absent(waits::lock_kind, slept ? words.locks[static_cast<std::size_t>(lock.kind)] : 0)
            .u64_if(waits::lock, slept, lock.address)
            .i64_if(waits::holder_tid, slept && lock.holder_tid > 0, display_number(lock.holder_tid))
            .dict_or_absent(waits::holder_comm, slept ? lock.holder_comm : 0)
            .flag(waits::certain, p.certain);
    }
}

}  // namespace opline
