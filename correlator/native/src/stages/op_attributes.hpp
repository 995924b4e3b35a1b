// SPDX-License-Identifier: MIT
// The numbers that describe an op in all outputs. Generated from ATTRIBUTES of opline/store/schema.py, where each is
// declared once: a further attribute needs a line there, and its value in op_attributes.cpp.
#pragma once
#include <array>
#include <cstdint>

#include "event/event.hpp"
#include "op/transitions.hpp"

namespace opline {

// clang-format off
// [[[cog
// from opline.store.schema import ATTRIBUTES
// print("// kNoTime: absent.")
// print("struct OpAttributes {")
// for a in ATTRIBUTES:
//     print(f"    std::int64_t {a.column} = kNoTime;")
// print("};")
// print()
// print("// In the order of the columns.")
// print(f"constexpr std::array<std::int64_t OpAttributes::*, {len(ATTRIBUTES)}> kOpAttributes{{{{")
// for a in ATTRIBUTES:
//     print(f"    &OpAttributes::{a.column},")
// print("}};")
// ]]]
// kNoTime: absent.
struct OpAttributes {
    std::int64_t begin_cpu = kNoTime;
};

// In the order of the columns.
constexpr std::array<std::int64_t OpAttributes::*, 1> kOpAttributes{{
    &OpAttributes::begin_cpu,
}};
// [[[end]]]
// clang-format on

// For an op with these transitions, at least one.
OpAttributes attributes_of(const TransitionList &);

}  // namespace opline
