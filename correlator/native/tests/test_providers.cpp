// SPDX-License-Identifier: MIT
// Which events are those of applications' collectors, as a plan says.
#include <doctest/doctest.h>

#include "binding/thread_fields.hpp"
#include "event/providers.hpp"

using namespace opline;

TEST_CASE("an event's provider is its name up to the colon") {
    const Providers providers{{{"ring", "shim"}}, {"probe", "other"}};
    REQUIRE(providers.relay_of("ring:send") != nullptr);
    CHECK(providers.relay_of("ring:send")->shim == "shim");
    CHECK(providers.relay_of("ringer:send") == nullptr);
    CHECK(providers.relay_of("ring") == nullptr);
    CHECK(providers.relay_of("shim:send") == nullptr);  // what threads write by themselves
    CHECK(providers.timed_of("probe:hit") == 1);
    CHECK(providers.timed_of("other:hit") == 2);
    CHECK(providers.timed_of("ring:send") == 0);
    CHECK(providers.own_name("ring:lost") == "lost");
    CHECK(providers.own_name("probe:a:b") == "a:b");
    CHECK(providers.own_name("block:lost").empty());
    CHECK(Providers{}.own_name("ring:lost").empty());
}

TEST_CASE("a relayed event's thread is in its fields, another program's in its context") {
    ClassDecl decl;
    decl.fields = {{"vtid", FieldType::kSigned, FieldScope::kPayload},
                   {"vtid", FieldType::kSigned, FieldScope::kContext}};
    const Providers providers{{{"ring", "shim"}}, {}};
    decl.name = "ring:send";
    CHECK(thread_fields(decl, providers).tid == 0);
    decl.name = "shim:send";
    CHECK(thread_fields(decl, providers).tid == 1);
}
