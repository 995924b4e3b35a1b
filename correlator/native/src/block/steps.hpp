// SPDX-License-Identifier: MIT
// The steps of a block request. Generated from opline/steps.py, where each is declared once: a further step needs
// a line there, a member of RequestState for its time, and a block event that sets it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "block/block.hpp"

namespace opline {

// The thread that takes a step.
enum class StepThread : std::uint8_t { kNobody, kQueuing, kIssuing };

// clang-format off
// [[[cog
// from opline.steps import STEPS
// THREADS = {"": "kNobody", "queue_tid": "kQueuing", "issue_tid": "kIssuing"}
// print("// When a request took each step. kNoTime: absent.")
// print("struct StepTimes {")
// for s in STEPS:
//     print(f"    std::int64_t {s.letter.lower()} = kNoTime;")
// print("};")
// print()
// print("struct RequestStep {")
// print("    std::string_view letter;")
// print("    std::int64_t StepTimes::*time;")
// print("    std::int64_t RequestState::*of_request;")
// print("    StepThread thread;")
// print("};")
// print()
// print("// In the order in which a request takes them.")
// print(f"constexpr std::array<RequestStep, {len(STEPS)}> kRequestSteps{{{{")
// for s in STEPS:
//     print(f'    {{"{s.letter}", &StepTimes::{s.letter.lower()}, &RequestState::{s.column}, StepThread::{THREADS[s.thread]}}},')
// print("}};")
// print()
// for n, s in enumerate(STEPS):
//     print(f"constexpr std::size_t kStep{s.letter} = {n};")
// ]]]
// When a request took each step. kNoTime: absent.
struct StepTimes {
    std::int64_t q = kNoTime;
    std::int64_t g = kNoTime;
    std::int64_t i = kNoTime;
    std::int64_t d = kNoTime;
    std::int64_t c = kNoTime;
};

struct RequestStep {
    std::string_view letter;
    std::int64_t StepTimes::*time;
    std::int64_t RequestState::*of_request;
    StepThread thread;
};

// In the order in which a request takes them.
constexpr std::array<RequestStep, 5> kRequestSteps{{
    {"Q", &StepTimes::q, &RequestState::queue_ns, StepThread::kQueuing},
    {"G", &StepTimes::g, &RequestState::getrq_ns, StepThread::kQueuing},
    {"I", &StepTimes::i, &RequestState::insert_ns, StepThread::kQueuing},
    {"D", &StepTimes::d, &RequestState::issue_ns, StepThread::kIssuing},
    {"C", &StepTimes::c, &RequestState::complete_ns, StepThread::kNobody},
}};

constexpr std::size_t kStepQ = 0;
constexpr std::size_t kStepG = 1;
constexpr std::size_t kStepI = 2;
constexpr std::size_t kStepD = 3;
constexpr std::size_t kStepC = 4;
// [[[end]]]
// clang-format on

}  // namespace opline
