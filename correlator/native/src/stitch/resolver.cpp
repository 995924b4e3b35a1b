// SPDX-License-Identifier: MIT
#include "stitch/resolver.hpp"

#include <algorithm>

namespace opline {

Fate Resolver::resolve(Passage &p) {
    unbound_.clear();
    others_.clear();
    if (p.spec.role == Role::kBegin) {
        begin(p);
        const BoundKey *use = !p.bp.bind.empty() ? &p.bp.bind.front() : p.bp.ios_submit ? &*p.bp.ios_submit : nullptr;
        if (use && p.found.op->key_text.empty()) keys_.key_text(*use, p.ev, p.found.op->key_text);
        return Fate::kTransition;
    }
    return p.bp.find.empty() && p.bp.sole.empty() ? by_thread(p) : by_keys(p);
}

void Resolver::begin(Passage &p) {
    if (!p.found.op) p.found.op = &lives_.new_op(p.who.host, p.who.pid, p.t.tid, p.t.ts_ns);
    p.found.ref = op_ref(*p.found.op);
    p.t.evidence = Evidence::kBegin;
}

Fate Resolver::by_thread(Passage &p) {
    p.found = p.working;
    p.t.evidence = Evidence::kThread;
    const bool shared = p.spec.batch_do == BatchDo::kWork || p.spec.batch_do == BatchDo::kOpenOrWork;
    if (p.ts.batch && (shared || !p.found.op)) return batches_.work_of(*p.ts.batch, p);
    return p.found.op ? Fate::kTransition : Fate::kOrphanNoKey;
}

Fate Resolver::by_keys(Passage &p) {
    FoundOp &found = p.found;
    Key key;
    for (auto &use : p.bp.find) {
        const KeyState state = keys_.key_of(use, p.ev, p.who, key);
        if (state == KeyState::kAbsent) return Fate::kOrphanMalformed;
        if (state == KeyState::kUnlearned) continue;
        p.t.spaces |= use.spaces;
        const std::uint64_t *ref = keys_.find(key);
        const auto named = ref ? ops_.resolve(*ref) : OpTable::Resolved{};
        if (named.batch && !found.op) {
            ++use.found;
            keys_.release(p.bp, p.ev, p.who, nullptr);
            return batches_.work_of(*named.batch, p);
        }
        if (!named.op) {
            ++use.missed;
            unbound_.emplace_back(use.space, key);
            continue;
        }
        ++use.found;
        if (!found.op) {
            found = {named.op, named.child, *ref, 0};
            p.t.evidence = Evidence::kKey;
            p.t.key_space = use.space;
        } else if (found.op != named.op) {
            others_.push_back(*ref);
        }
    }
    if (!found.op) by_sole(p);
    if (!found.op && p.spec.role == Role::kSoftBegin) {
        begin(p);
        found.op->hard = false;
        p.t.key_space = p.bp.find.front().space;
    }
    if (!found.op) {
        if (p.spec.role == Role::kEnd) ++s_.counts.ends_without_op;
        // A late event of a thread must not stay on the stack above another op.
        const bool settled = std::any_of(unbound_.begin(), unbound_.end(),
                                         [this](const auto &use) { return keys_.has_settled(use.second); });
        return settled ? Fate::kOrphanSettled : Fate::kOrphanNoOp;
    }
    if (p.spec.role == Role::kSoftBegin && !found.op->hard && found.child == 0) {
        found.op->begin_ns = std::min(found.op->begin_ns, p.t.ts_ns);
        keys_.name_op(*found.op, p.bp.find.front(), p.ev);
    }
    return Fate::kTransition;
}

// The only op waiting under one of the keys.
void Resolver::by_sole(Passage &p) {
    Key key;
    for (auto &use : p.bp.sole) {
        if (keys_.key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        Op *op = joins_.waits_alone(key);
        ++(op ? use.found : use.missed);
        if (!op) continue;
        p.found.op = op;
        p.found.ref = op_ref(*op);
        joins_.stop_waiting(*op, key);
        p.t.spaces |= use.spaces;
        p.t.evidence = Evidence::kKey;
        p.t.key_space = use.space;
        return;
    }
}

}  // namespace opline
