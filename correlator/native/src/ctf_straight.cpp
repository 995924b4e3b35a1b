// SPDX-License-Identifier: MIT
#include "ctf_straight.hpp"

#include <algorithm>

namespace opline::ctf {
namespace {

constexpr std::uint32_t kMaxStretch = 1u << 26;  // bytes

}  // namespace

// Stays empty where the program has anything else.
Straight::Straight(const Program &program) {
    std::vector<Stretch> stretches(1);
    std::vector<std::vector<Load>> loads(1);
    auto next = [&] {
        stretches.emplace_back();
        loads.emplace_back();
    };
    for (const Step &s : program.steps) {
        switch (s.op) {
        case Step::Op::kAlign:
            if (s.align_bits % 8 != 0) return;
            if (s.align_bits == 8) break;
            next();
            stretches.back().align = s.align_bits / 8;
            break;
        case Step::Op::kRun: {
            if (stretches.back().string) next();
            Stretch &stretch = stretches.back();
            for (const Read &r : s.reads) {
                const bool integer = r.what == Read::What::kUnsigned || r.what == Read::What::kSigned, is_signed = r.what == Read::What::kSigned;
                if (r.reg >= 0 || (integer && (r.size == 0 || r.size > 8))) return;
                if (r.slot < 0) continue;
                const auto shift = static_cast<std::uint8_t>(integer ? 64 - 8 * r.size : 0);
                const Slot like = is_signed ? Slot::of(std::int64_t{0}) : Slot::of(std::uint64_t{0});
                loads.back().push_back({stretch.bytes + r.offset, r.size, r.slot, r.what, is_signed, shift, like});
                ++(integer ? stretch.integers : stretch.others);
            }
            stretch.bytes += s.bytes;
            if (stretch.bytes > kMaxStretch) return;
            break;
        }
        case Step::Op::kString:
            if (stretches.back().string) next();
            stretches.back().string = true;
            stretches.back().string_slot = s.slot;
            break;
        default: return;
        }
    }
    std::vector<std::size_t> first;
    for (auto &of : loads) {
        std::stable_partition(of.begin(), of.end(), [](const Load &l) { return l.what == Read::What::kUnsigned || l.what == Read::What::kSigned; });
        first.push_back(loads_.size());
        loads_.insert(loads_.end(), of.begin(), of.end());
    }
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        stretches[i].loads = loads_.data() + first[i];
        stretches[i].room = stretches[i].bytes + (stretches[i].integers != 0 ? 8 : 0);
    }
    stretches_ = std::move(stretches);
}

}  // namespace opline::ctf
