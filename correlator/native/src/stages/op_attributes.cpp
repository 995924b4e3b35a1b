// SPDX-License-Identifier: MIT
#include "stages/op_attributes.hpp"

namespace opline {

OpAttributes attributes_of(const TransitionList &passed) {
    OpAttributes found;
    if (const auto cpu = passed.cpu(0); cpu != kNoCpu) found.begin_cpu = cpu;
    return found;
}

}  // namespace opline
