// SPDX-License-Identifier: MIT
// What comes of an event for the op that it is about: keys name the op, it is joined with others, it gets a transition,
// it ends, its thread works for it.
#pragma once
#include "stitch/async_ios.hpp"
#include "stitch/op_details.hpp"
#include "stitch/resolver.hpp"

namespace opline {

class Applier {
  public:
    Applier(Stitching &s, ThreadStates &threads, OpLives &lives, Keys &keys, Joins &joins, Batches &batches,
            AsyncIos &ios, OpDetails &details, Resolver &resolver)
        : s_(s),
          threads_(threads),
          lives_(lives),
          ops_(lives.ops()),
          keys_(keys),
          joins_(joins),
          batches_(batches),
          ios_(ios),
          details_(details),
          resolver_(resolver) {}

    void apply(Passage &);

  private:
    void unite_others(Passage &);
    void bind(Passage &);
    void join(Passage &);
    bool ends(const Passage &) const;
    void append(Op &, const Passage &);

    Stitching &s_;
    ThreadStates &threads_;
    OpLives &lives_;
    OpTable &ops_;
    Keys &keys_;
    Joins &joins_;
    Batches &batches_;
    AsyncIos &ios_;
    OpDetails &details_;
    Resolver &resolver_;
};

}  // namespace opline
