// SPDX-License-Identifier: MIT
// I/Os by the numbers by which the application knows them: the calls that queue I/Os and those that take them say which
// ones. See stitch/ios.hpp, and docs/model.md, "I/Os that outlive their call".
#include <algorithm>
#include <charconv>
#include <utility>

#include "stitch/async_ios.hpp"

namespace opline {

std::vector<std::uint64_t> names_in(const Event &ev, std::int32_t slot) {
    std::vector<std::uint64_t> out;
    if (slot == kNoSlot || ev.slots[slot].kind != Slot::Kind::kString) return out;
    const std::string_view text = ev.slots[slot].str();
    const char *at = text.data(), *const past = at + text.size();
    while (at != past) {
        std::uint64_t name = 0;
        const auto [behind, error] = std::from_chars(at, past, name, 16);
        if (error != std::errc()) break;
        out.push_back(name);
        at = behind != past && *behind == ',' ? behind + 1 : past;
    }
    return out;
}

// Reserves the names of a call's future I/Os. If a done I/O still has such a name, the application took the completion
// without a visible call. If an I/O in flight has the name, the application uses one name for several I/Os.
void AsyncIos::claim_names(const IoCall &call, IoQueue &q) {
    for (auto name : call.names) {
        if (name == 0 || q.in_order) continue;
        auto [ref, added] = q.named.insert(name);
        Op *before = added || *ref == IoQueue::kQueueing ? nullptr : ops_.find(*ref);
        const bool open = before && before->state == OpState::kOpen;
        if (!added && (*ref == IoQueue::kQueueing || (open && !before->io.done))) {
            go_by_order(q);
            return;
        }
        *ref = IoQueue::kQueueing;
        if (!open) continue;
        q.done.erase(std::remove(q.done.begin(), q.done.end(), op_ref(*before)), q.done.end());
        end_at_completion(*before);
    }
}

// The first `count` I/Os of a call get the call's names, in order. The remaining names are free.
void AsyncIos::give_names(const IoCall &call, IoQueue &q, std::int64_t count) {
    for (std::size_t i = 0; i < call.names.size(); ++i) {
        auto *ref = q.named.find(call.names[i]);
        if (!ref || *ref != IoQueue::kQueueing) continue;
        const bool given = static_cast<std::int64_t>(i) < count && i < call.ops.size();
        Op *op = given ? ops_.find(call.ops[i]) : nullptr;
        if (op && op->state == OpState::kOpen) {
            *ref = call.ops[i];
            op->io.name = call.names[i];
        } else {
            q.named.erase_found(ref);
        }
    }
}

void AsyncIos::forget_names(IoQueue &q) {
    q.named.for_each([this](std::uint64_t, std::uint64_t ref) {
        if (Op *op = ref == IoQueue::kQueueing ? nullptr : ops_.find(ref)) op->io.name = 0;
    });
    q.named.clear();
}

void AsyncIos::go_by_order(IoQueue &q) {
    q.in_order = true;
    forget_names(q);
}

// The I/O with this name ends here, even if the trace does not have the completion of its requests.
bool AsyncIos::take_named(IoQueue &q, std::uint64_t name, const Transition &t) {
    const auto *ref = q.named.find(name);
    Op *op = ref ? ops_.find(*ref) : nullptr;
    if (!op || op->state != OpState::kOpen) return false;
    if (op->io.done)
        if (auto it = std::find(q.done.begin(), q.done.end(), *ref); it != q.done.end()) q.done.erase(it);
    end_io(*op, t.ts_ns, lives_.add_transition(*op, t));
    return true;
}

// At most `count` done I/Os end here, in order of completion. nameless: only I/Os without a name, done by `t`.
std::int64_t AsyncIos::take_in_order(IoQueue &q, std::int64_t count, bool nameless, const Transition &t) {
    std::int64_t taken = 0;
    for (auto it = q.done.begin(); taken < count && it != q.done.end();) {
        Op *op = ops_.find(*it);
        const bool open = op && op->state == OpState::kOpen;
        if (open && nameless && (op->io.name != 0 || op->io.done_ns > t.ts_ns)) {
            ++it;
            continue;
        }
        it = q.done.erase(it);
        if (!open) continue;
        end_io(*op, t.ts_ns, lives_.add_transition(*op, t));
        ++taken;
    }
    return taken;
}

// A call has returned and the names of its I/Os are final. Ends the I/Os taken before this return.
void AsyncIos::take_early(IoQueue &q) {
    for (auto &early : q.reaped_early) {
        for (auto name : std::exchange(early.names, {})) {
            const auto *ref = q.named.find(name);
            if (ref && *ref == IoQueue::kQueueing) early.names.push_back(name);
            else if (take_named(q, name, early.reap) || take_in_order(q, 1, true, early.reap) > 0) --early.count;
        }
    }
    auto settled = [](const IoQueue::Taken &early) { return early.count == 0; };
    q.reaped_early.erase(std::remove_if(q.reaped_early.begin(), q.reaped_early.end(), settled), q.reaped_early.end());
}

}  // namespace opline
