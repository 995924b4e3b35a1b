// SPDX-License-Identifier: MIT
// Which CPUs share a hardware queue: as facts say, and as flushes show where there are none.
#include <doctest/doctest.h>

#include "block/hardware_queues.hpp"

using namespace opline;
using block_model::HardwareQueues;
using Kinship = HardwareQueues::Kinship;

TEST_CASE("facts decide, whatever flushes seem to show") {
    HardwareQueues queues;
    CHECK(queues.are_assumed());
    for (std::uint32_t cpu = 0; cpu < 4; ++cpu) queues.tell(cpu, cpu / 2);
    CHECK_FALSE(queues.are_assumed());
    queues.note_together(0, 2, 100);
    queues.note_apart(0, 1, 100);
    CHECK(queues.kinship(0, 1) == Kinship::kTogether);
    CHECK(queues.kinship(0, 2) == Kinship::kApart);
    CHECK(queues.same(2, 3));
    CHECK_FALSE(queues.same(1, 3));
    CHECK_FALSE(queues.nothing_known(0, 3));
    CHECK(queues.kinship(0, 9) == Kinship::kPerhaps);  // a CPU that no list has
}

TEST_CASE("of several queues of one CPU the first is that of writes") {
    HardwareQueues queues;
    queues.tell(0, 5);
    queues.tell(0, 1);
    queues.tell(0, 3);
    CHECK(queues.queue_of(0) == 1);
    CHECK(queues.queue_of(1) == kNoQueue);
    queues.tell(1u << 31, 0);  // a damaged number
    CHECK(queues.queue_of(1u << 31) == kNoQueue);
}

TEST_CASE("without facts one queue is assumed until flushes show several") {
    HardwareQueues queues;
    CHECK(queues.same(0, 1));
    CHECK(queues.nothing_known(0, 1));
    queues.note_several();
    CHECK_FALSE(queues.same(0, 1));
    queues.note_together(0, 1, 1);
    CHECK(queues.same(0, 1));
    CHECK(queues.kinship(0, 1) == Kinship::kPerhaps);  // one flush may be a mistake
    queues.note_together(1, 0, 3);
    CHECK(queues.kinship(0, 1) == Kinship::kTogether);
    queues.note_apart(0, 1, 8);
    CHECK(queues.kinship(0, 1) == Kinship::kApart);
}

TEST_CASE("CPUs whose requests complete on one CPU share its queue") {
    HardwareQueues queues;
    queues.note_several();
    for (int i = 0; i < 16; ++i) {
        queues.note_completion(0, 1);
        queues.note_completion(1, 1);
        queues.note_completion(2, 3);
    }
    CHECK(queues.same(0, 1));
    CHECK_FALSE(queues.same(0, 2));
    CHECK(queues.completes(0, 1));
    CHECK_FALSE(queues.completes(0, 3));
    CHECK(queues.knows_completions(2));
    CHECK_FALSE(queues.knows_completions(3));
}

TEST_CASE("until completions show where, they are expected on a CPU of the queue") {
    HardwareQueues queues;
    for (std::uint32_t cpu = 0; cpu < 4; ++cpu) queues.tell(cpu, cpu / 2);
    CHECK(queues.completes(0, 1));
    CHECK_FALSE(queues.completes(0, 2));
    for (int i = 0; i < 16; ++i) queues.note_completion(0, 3);  // one interrupt for all queues
    CHECK(queues.completes(0, 3));
    CHECK_FALSE(queues.completes(0, 1));
}

TEST_CASE("a CPU's requests never complete on another one: known of the CPUs that have issued many") {
    HardwareQueues queues;
    for (int i = 0; i < 100; ++i) {
        CHECK_FALSE(queues.never_completes(1, 0));
        queues.note_completion(1, 1);
    }
    CHECK(queues.never_completes(1, 0));
    CHECK_FALSE(queues.never_completes(1, 1));
    CHECK_FALSE(queues.never_completes(0, 1));  // nothing is known of the other CPU's requests
    queues.note_completion(1, 0);
    CHECK_FALSE(queues.never_completes(1, 0));
}
