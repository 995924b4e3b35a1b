// SPDX-License-Identifier: MIT
// What is learned of the order in which a plug is emptied, and in which a device completes.
#include <doctest/doctest.h>

#include "block/learned_order.hpp"

using namespace opline;
using block_model::CompletionOrder;
using block_model::PlugOrder;

TEST_CASE("a plug is emptied from its end or from its begin") {
    PlugOrder order;
    CHECK(order.nothing_known());
    order.note(7, 1, 10);
    order.note(7, 2, 11);  // made behind the one that went before it
    CHECK_FALSE(order.last_in_first_out());
    CHECK_FALSE(order.nothing_known());
    order.note(8, 5, 20);  // another thread's: two plugs say nothing of each other
    order.note(7, 3, 21);
    order.note(9, 32, 40);
    order.note(9, 31, 41);
    order.note(9, 30, 42);
    CHECK(order.last_in_first_out());
}

TEST_CASE("a request that was made after the last step was in no plug then") {
    PlugOrder order;
    order.note(7, 1, 10);
    order.note(7, 12, 13);
    CHECK(order.nothing_known());
}

TEST_CASE("the more frequent order of two requests of one place") {
    CompletionOrder order;
    CHECK_FALSE(order.last_in_first_out());
    order.note_later_first();
    CHECK(order.last_in_first_out());
    order.note_earlier_first();
    CHECK_FALSE(order.last_in_first_out());
}

TEST_CASE("how many completions seldom overtake a request") {
    CompletionOrder order;
    CHECK(order.seldom_overtaken() == 0);
    for (int n = 0; n < 990; ++n) order.note_overtaken(0);
    CHECK(order.seldom_overtaken() == 1);
    for (int n = 0; n < 9; ++n) order.note_overtaken(6);  // 4 to 7: below 2^3
    CHECK(order.seldom_overtaken() == 1);
    for (int n = 0; n < 9; ++n) order.note_overtaken(6);
    CHECK(order.seldom_overtaken() == 8);
    for (int n = 0; n < 100; ++n) order.note_overtaken(~std::uint64_t{0});
    CHECK(order.seldom_overtaken() == std::uint64_t{1} << 31);
}
