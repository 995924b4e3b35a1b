// SPDX-License-Identifier: MIT
// The sequences of events that went along with others, as a tree: what came once mostly comes again, and is known by its place there.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "event.hpp"

namespace opline::ctf {

struct UsualClass;

class Trails {
  public:
    struct Node : Trail {
        std::uint32_t id = ~std::uint32_t{0};  // the last event's, as its header has it; none: a root, or nowhere
        const UsualClass *usual = nullptr;     // its class; of a root that of the event that others go along with
        Node *last = nullptr;                  // the one behind this that was asked for last; nowhere: none yet
    };
    Node *root(const UsualClass &usual) {
        Node *const node = add(nullptr, 0);
        node->usual = &usual;
        return node;
    }
    // The one behind, where one more went along; nullptr: it would be too long, or one too many.
    Node *behind(Node &from, std::uint32_t id, const UsualClass &, std::uint32_t cls);

  private:
    static constexpr std::size_t kMost = 1u << 14;
    Node *add(const Trail *before, std::uint32_t count);

    Node nowhere_;
    std::deque<Node> nodes_;  // they stay where they are
    std::map<std::pair<std::uint32_t, std::uint32_t>, Node *> behind_;  // by number and id
};

}  // namespace opline::ctf
