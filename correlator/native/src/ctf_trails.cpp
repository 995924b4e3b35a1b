// SPDX-License-Identifier: MIT
#include "ctf_trails.hpp"

namespace opline::ctf {

Trails::Node *Trails::add(const Trail *before, std::uint32_t count) {
    Node &node = nodes_.emplace_back();
    node.before = before;
    node.count = count;
    node.number = static_cast<std::uint32_t>(nodes_.size() - 1);
    node.last = &nowhere_;
    return &node;
}

Trails::Node *Trails::behind(Node &from, std::uint32_t id, const UsualClass &usual, std::uint32_t cls) {
    if (from.count == Alongs::kMost) return nullptr;
    const auto known = behind_.find({from.number, id});
    if (known != behind_.end()) return from.last = known->second;
    if (nodes_.size() == kMost) return nullptr;
    Node *const node = add(&from, from.count + 1);
    node->cls = cls;
    node->id = id;
    node->usual = &usual;
    behind_[{from.number, id}] = node;
    return from.last = node;
}

}  // namespace opline::ctf
