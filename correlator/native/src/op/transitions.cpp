// SPDX-License-Identifier: MIT
#include "op/transitions.hpp"

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
    out.resize(depth_at(place_));
    std::uint32_t node = node_at(place_);
    for (std::size_t i = out.size(); i-- > 0;) {
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

void TransitionList::make_room(std::size_t size) {
    times_.resize(std::max({size, 2 * times_.size(), std::size_t{16}}));
    room_ = static_cast<std::uint32_t>(times_.size());
}

}  // namespace opline
