// SPDX-License-Identifier: MIT
#include "stitch/thread_states.hpp"

namespace opline {
namespace {

constexpr std::size_t kThreadDepth = 64;

}  // namespace

Op *ThreadStates::current_op(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = find(host, tid);
    return ts ? current(*ts).op : nullptr;
}

FoundOp ThreadStates::current(ThreadState &ts) {
    auto &stack = ts.stack;
    while (!stack.empty()) {
        const auto target = ops_.resolve(stack.back().ref);
        if (target.op) return {target.op, target.child, stack.back().ref, stack.back().spaces};
        stack.pop_back();  // settled while the thread never said that it left
    }
    return {};
}

std::shared_ptr<Batch> ThreadStates::current_batch(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = find(host, tid);
    return ts ? ts->batch : nullptr;
}

void ThreadStates::apply(ThreadState &ts, ThreadRule rule, const FoundOp &found) {
    switch (rule) {
    case ThreadRule::kNone: return;
    case ThreadRule::kSwitch: ts.stack.clear(); [[fallthrough]];
    case ThreadRule::kEnter:
        if (ts.stack.size() >= kThreadDepth) ts.stack.erase(ts.stack.begin());  // a model that never leaves
        if (ts.stack.empty() || ts.stack.back().ref != found.ref) ts.stack.push_back({found.ref, found.spaces});
        return;
    case ThreadRule::kLeave:
        // Leaving an op that is not the innermost leaves everything that was entered inside it.
        for (std::size_t i = ts.stack.size(); i-- > 0;)
            if (ops_.find(ts.stack[i].ref) == found.op) {
                ts.stack.resize(i);
                return;
            }
        return;
    }
}

bool ThreadStates::same_thread(std::uint32_t host, const BlockEvent &ev) const {
    const ThreadState *ts = ev.tid > 0 ? find(host, ev.tid) : nullptr;
    if (!ts) return true;
    if (ts->pid >= 0 && ev.pid >= 0 && !s_.identities.untold(ts->pid)) return ts->pid == ev.pid;
    if (ts->comm == 0 || ev.comm == 0 || ts->comm == ev.comm) return true;
    constexpr std::size_t kMost = 15;  // TASK_COMM_LEN of include/linux/sched.h without its 0; LTTng-UST's is longer
    const std::string_view known = s_.strings.at(ts->comm), said = s_.strings.at(ev.comm);
    return known.substr(0, kMost) == said.substr(0, kMost);
}

}  // namespace opline
