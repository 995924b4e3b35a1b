// SPDX-License-Identifier: MIT
#include "ctf_straight.hpp"

#include <algorithm>

namespace opline::ctf {
namespace {

constexpr std::uint32_t kMaxStretch = 1u << 26;  // bytes

}  // namespace

void Straight::other(const Load &l, const std::uint8_t *p, Slot &slot) {
    if (l.what == Read::What::kReal32) {
        float f;
        std::memcpy(&f, p, 4);
        slot = Slot::of(static_cast<double>(f));
    } else if (l.what == Read::What::kReal64) {
        double d;
        std::memcpy(&d, p, 8);
        slot = Slot::of(d);
    } else {
        const auto begin = reinterpret_cast<const char *>(p);
        text(begin, l.what == Read::What::kText ? strnlen(begin, l.size) : l.size, slot);
    }
}

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
                const bool is_signed = r.what == Read::What::kSigned, integer = is_signed || r.what == Read::What::kUnsigned;
                if (r.reg >= 0 || (integer && (r.size == 0 || r.size > 8))) return;
                if (r.slot < 0) continue;
                const std::uint64_t mask = integer ? ~std::uint64_t{0} >> (64 - 8 * r.size) : 0;
                const auto kind = is_signed ? Slot::Kind::kSigned : Slot::Kind::kUnsigned;
                loads.back().push_back({stretch.bytes + r.offset, r.size, r.slot, r.what, kind, mask, is_signed ? mask ^ (mask >> 1) : 0});
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
    for (const auto &of : loads) loads_.insert(loads_.end(), of.begin(), of.end());
    Load *at = loads_.data();
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        Stretch &stretch = stretches[i];
        Load *const past = at + loads[i].size();
        stretch.loads = at;
        stretch.past_integers = std::partition(at, past, [](const Load &l) { return l.what == Read::What::kUnsigned || l.what == Read::What::kSigned; });
        stretch.room = stretch.bytes + (stretch.past_integers != stretch.loads ? 8 : 0);
        stretch.past_others = at = past;
    }
    stretches_ = std::move(stretches);
}

}  // namespace opline::ctf
