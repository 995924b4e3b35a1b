// SPDX-License-Identifier: MIT
#include "transitions.hpp"

#include <cstring>

namespace opline {

std::uint32_t Shapes::find(std::uint32_t from, const TransitionKind &kind, std::uint32_t thread) {
    const std::uint64_t hash = mix64(kind.hash() ^ (static_cast<std::uint64_t>(from) << 8 | thread));
    if (const std::uint32_t *known = children_.find(hash)) {
        const Node &n = nodes_[*known];
        if (n.parent != from || n.thread != thread || !(n.kind == kind)) return 0;  // another's hash
        nodes_[from].last_child = *known;
        return *known;
    }
    if (full_ || nodes_.size() == kMaxNodes) return 0;
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({kind, thread, from, 0});
    nodes_[from].last_child = added;
    children_.put(hash, added);
    return added;
}

void TransitionList::copy_to(std::vector<Transition> &out) const {
    out.resize(times_.size());
    std::uint32_t node = node_;
    for (std::size_t i = times_.size(); i-- > 0;) {
        const Shapes::Node &n = shapes_->node(node);
        Transition &t = out[i];
        static_cast<TransitionKind &>(t) = n.kind;
        t.ts_ns = times_[i];
        t.tid = ids_[n.thread].tid;
        t.pid = ids_[n.thread].pid;
        t.cpu = cpu(i);
        t.comm = comm(i);
        t.order = static_cast<std::uint32_t>(i);
        node = n.parent;
    }
}

void TransitionList::freeze(unsigned char *to) {
    new (to) Frozen{node_, threads_, first_comm_, static_cast<std::uint32_t>(times_.size())};
    to += sizeof(Frozen);
    for (std::uint32_t i = 0; i < threads_; ++i, to += sizeof(Thread)) new (to) Thread(ids_[i]);
    std::memcpy(to, times_.data(), times_.size() * sizeof times_[0]);
    node_ = threads_ = 0;
    times_.clear();
}

void TransitionList::thaw(const unsigned char *from) {
    Frozen head;
    std::memcpy(&head, from, sizeof head);
    from += sizeof head;
    node_ = head.node;
    threads_ = head.threads;
    first_comm_ = head.comm;
    std::memcpy(ids_.data(), from, threads_ * sizeof ids_[0]);
    from += threads_ * sizeof ids_[0];
    times_.resize(head.times);
    std::memcpy(times_.data(), from, head.times * sizeof times_[0]);
}

}  // namespace opline
