// SPDX-License-Identifier: MIT
// The steps of a block request, as they are generated (block/steps.hpp), and an op's view of them.
#include <doctest/doctest.h>

#include <set>

#include "op/op.hpp"

using namespace opline;

TEST_CASE("each step has a letter and times of its own, in the order in which a request takes them") {
    std::set<std::string_view> letters;
    RequestState request;
    RequestCut cut;
    std::int64_t ns = 0;
    for (const RequestStep &step : kRequestSteps) {
        letters.insert(step.letter);
        cut.*step.time = request.*step.of_request = ++ns;
    }
    CHECK(letters.size() == kRequestSteps.size());
    ns = 0;
    for (const RequestStep &step : kRequestSteps) {
        CHECK(cut.*step.time == ++ns);
        CHECK(request.*step.of_request == ns);
    }
    CHECK(cut.q < cut.g);
    CHECK(request.issue_ns < request.complete_ns);
    CHECK(kRequestSteps[kStepD].letter == "D");
}

TEST_CASE("a step's thread is the one that queued or issued the request, or none") {
    RequestCut cut;
    cut.queue_tid = 7;
    cut.issue_tid = 8;
    CHECK(cut.tid_of(kRequestSteps[kStepQ].thread) == 7);
    CHECK(cut.tid_of(kRequestSteps[kStepD].thread) == 8);
    CHECK(cut.tid_of(kRequestSteps[kStepC].thread) == -1);
}
