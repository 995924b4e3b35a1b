// SPDX-License-Identifier: MIT
// Two shared objects hold the core; an object made in one may be used in the other only if both are of one build.
#pragma once

namespace opline {
// A digest of the core's sources.
const char *build_cookie();
}  // namespace opline
