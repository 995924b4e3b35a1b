// SPDX-License-Identifier: MIT
// Whether this is a build with a sanitizer: what only takes long there is done by the plain build's tests.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OPLINE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPLINE_SANITIZED 1
#endif

namespace opline {
#ifdef OPLINE_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
}  // namespace opline
