// SPDX-License-Identifier: MIT
#include "stitch/thread_states.hpp"

namespace opline {
namespace {

constexpr std::size_t kThreadDepth = 64;

}  // namespace

// Something unsettled refers to the thread.
bool ThreadStates::needed(ThreadState &ts) {
    const auto live = [this](std::uint64_t ref) { return ref != 0 && ops_.find(ref) != nullptr; };
    return ts.batch || ts.call || live(ts.syncing) || (ts.own && live(ts.own->op)) || current(ts).op;
}

std::vector<std::uint64_t> ThreadStates::thread_ended(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns) {
    ended_.threads[thread_key(host, tid)] = ts_ns;
    return forget_ended();
}

std::vector<std::uint64_t> ThreadStates::process_ended(std::int32_t pid, std::int64_t ts_ns) {
    ended_.processes[pid] = ts_ns;
    return forget_ended();
}

std::vector<std::uint64_t> ThreadStates::forget_ended() {
    std::vector<std::uint64_t> gone;
    if (ended_.size() < look_at_) return gone;
    EndedThreads still;
    threads_.for_each([&](std::uint64_t key, ThreadState &ts) {
        const std::int64_t *thread_ns = ended_.threads.find(key), *process_ns = ended_.processes.find(ts.last_pid);
        const bool thread = thread_ns && ts.last_ns <= *thread_ns, process = process_ns && ts.last_ns <= *process_ns;
        if (!thread && !process) return;
        if (!needed(ts)) gone.push_back(key);
        else if (thread) still.threads[key] = *thread_ns;
        else still.processes[ts.last_pid] = *process_ns;
    });
    for (const std::uint64_t key : gone) threads_.erase(key);
    recent_ = {};  // the other states may have moved
    ended_ = std::move(still);
    look_at_ = kEnded + 2 * ended_.size();
    return gone;
}

Op *ThreadStates::current_op(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = find(host, tid);
    return ts ? current(*ts).op : nullptr;
}

FoundOp ThreadStates::current(ThreadState &ts) {
    auto &stack = ts.stack;
    while (!stack.empty()) {
        const auto target = ops_.resolve(stack.back().ref);
        if (target.op) return {target.op, target.child, stack.back().ref, stack.back().spaces};
        stack.pop_back();  // settled, although the thread never left
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
        if (ts.stack.size() >= kThreadDepth) ts.stack.erase(ts.stack.begin());  // a model without leaving points
        if (ts.stack.empty() || ts.stack.back().ref != found.ref) ts.stack.push_back({found.ref, found.spaces});
        return;
    case ThreadRule::kLeave:
        // Leaving an outer op also leaves all ops entered after it.
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
    // TASK_COMM_LEN of include/linux/sched.h without the final 0; LTTng-UST has longer names
    constexpr std::size_t kMost = 15;
    const std::string_view known = s_.strings.at(ts->comm), said = s_.strings.at(ev.comm);
    return known.substr(0, kMost) == said.substr(0, kMost);
}

}  // namespace opline
