// SPDX-License-Identifier: MIT
#include "cookie.hpp"

namespace opline {
const char *build_cookie() { return OPLINE_COOKIE; }
}  // namespace opline
