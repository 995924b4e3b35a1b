// SPDX-License-Identifier: MIT
// doctest itself and the tests' main(): compiled once for all of them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
