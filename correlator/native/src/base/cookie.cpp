// SPDX-License-Identifier: MIT
#include "base/cookie.hpp"

namespace opline {
const char *build_cookie() { return OPLINE_COOKIE; }
}  // namespace opline
