// SPDX-License-Identifier: MIT
// Names and flags of block events: tracepoint name → kind, rwbs letters ↔ bit mask, bit mask → kind of I/O.
#include <array>
#include <utility>

#include "block/block.hpp"

namespace opline {

std::string_view io_kind_name(IoKind kind) {
    switch (kind) {
    case IoKind::kRead: return "read";
    case IoKind::kWrite: return "write";
    case IoKind::kDiscard: return "discard";
    case IoKind::kWriteZeroes: return "write_zeroes";
    case IoKind::kFlush: return "flush";
    case IoKind::kZoneReset: return "zone_reset";
    case IoKind::kZoneResetAll: return "zone_reset_all";
    case IoKind::kZoneFinish: return "zone_finish";
    case IoKind::kZoneOpen: return "zone_open";
    case IoKind::kZoneClose: return "zone_close";
    case IoKind::kOther: break;
    }
    return "other";
}

BlockKind BlockModel::kind_by_name(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, BlockKind>, 20> kNames = {{
        {"bio_queue", BlockKind::kBioQueue},
        {"bio_remap", BlockKind::kBioRemap},
        {"split", BlockKind::kSplit},
        {"getrq", BlockKind::kGetRq},
        {"bio_backmerge", BlockKind::kBioBackmerge},
        {"bio_frontmerge", BlockKind::kBioFrontmerge},
        {"rq_merge", BlockKind::kRqMerge},
        {"plug", BlockKind::kPlug},
        {"unplug", BlockKind::kUnplug},
        {"rq_insert", BlockKind::kRqInsert},
        {"rq_issue", BlockKind::kRqIssue},
        {"rq_requeue", BlockKind::kRqRequeue},
        {"rq_remap", BlockKind::kRqRemap},
        {"rq_complete", BlockKind::kRqComplete},
        {"bio_complete", BlockKind::kBioComplete},
        {"bio_bounce", BlockKind::kBioBounce},
        {"rq_error", BlockKind::kRqError},
        {"rq_bio", BlockKind::kRqBio},
        {"rq_abort", BlockKind::kOther},
        {"sleeprq", BlockKind::kOther},
    }};
    if (auto colon = name.rfind(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
    constexpr std::string_view kPrefix = "block_";
    if (name.substr(0, kPrefix.size()) != kPrefix) return BlockKind::kOther;
    name.remove_prefix(kPrefix.size());
    for (const auto &[text, kind] : kNames)
        if (text == name) return kind;
    return BlockKind::kOther;
}

IoKind BlockModel::kind_of(std::uint32_t flags, std::uint32_t nr_sectors) {
    if (flags & rwbs::kFlush) return IoKind::kFlush;
    if (flags & rwbs::kDiscard) return IoKind::kDiscard;  // before kWrite: a secure erase has both in some kernels
    if ((flags & rwbs::kPreflush) && nr_sectors == 0) return IoKind::kFlush;
    switch (flags & rwbs::kZone) {
    case rwbs::kZoneReset: return IoKind::kZoneReset;
    case rwbs::kZoneResetAll: return IoKind::kZoneResetAll;
    case rwbs::kZoneFinish: return IoKind::kZoneFinish;
    case rwbs::kZoneOpen: return IoKind::kZoneOpen;
    case rwbs::kZoneClose: return IoKind::kZoneClose;
    default: break;
    }
    if (flags & rwbs::kWriteZeroes) return IoKind::kWriteZeroes;
    if (flags & rwbs::kWrite) return IoKind::kWrite;
    if (flags & rwbs::kRead) return IoKind::kRead;
    // LTTng has no bit for REQ_OP_WRITE_ZEROES, and none for pass-through requests; the latter have no sectors.
    return nr_sectors > 0 ? IoKind::kWriteZeroes : IoKind::kOther;
}

namespace {

// The zone command of the letters after a Z, and the number of its letters.
std::pair<std::uint32_t, std::size_t> zone_command(std::string_view letters) {
    if (letters.substr(0, 2) == "RA") return {rwbs::kZoneResetAll, 2};
    switch (letters.empty() ? '\0' : letters[0]) {
    case 'A': return {rwbs::kZoneAppend | rwbs::kWrite, 1};
    case 'R': return {rwbs::kZoneReset, 1};
    case 'F': return {rwbs::kZoneFinish, 1};
    case 'O': return {rwbs::kZoneOpen, 1};
    case 'C': return {rwbs::kZoneClose, 1};
    default: return {0, 0};
    }
}

const char *zone_letters(std::uint32_t zone) {
    switch (zone) {
    case rwbs::kZoneAppend: return "ZA";
    case rwbs::kZoneReset: return "ZR";
    case rwbs::kZoneResetAll: return "ZRA";
    case rwbs::kZoneFinish: return "ZF";
    case rwbs::kZoneOpen: return "ZO";
    case rwbs::kZoneClose: return "ZC";
    default: return "Z";
    }
}

}  // namespace

// blk_fill_rwbs() in the kernel's block/blk-core.c and kernel/trace/blktrace.c: [F]{W,D,DE,F,R,N}[F][A][S][M][U]; an F
// before the operation is PREFLUSH, an F after the operation FUA. FLUSH itself is F: "FF" is a flush with PREFLUSH.
// Kernels from 6.17 on name zone commands (ZA, ZR, ZRA, ZF, ZO, ZC) and write-zeroes (WZ); before, both were N.
std::uint32_t BlockModel::rwbs_by_letters(std::string_view letters) {
    std::uint32_t mask = 0;
    bool operation = false;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        switch (letters[i]) {
        case 'W':
            if (letters.substr(i + 1, 1) == "Z") {
                mask |= rwbs::kWriteZeroes;
                ++i;
            } else {
                mask |= rwbs::kWrite;
            }
            operation = true;
            break;
        case 'Z': {
            const auto [command, named_by] = zone_command(letters.substr(i + 1));
            mask |= command;
            i += named_by;
            operation = true;
            break;
        }
        case 'R':
            mask |= rwbs::kRead;
            operation = true;
            break;
        case 'D':
            mask |= rwbs::kDiscard;
            operation = true;
            break;
        case 'E': mask |= rwbs::kSecure; break;
        case 'N': operation = true; break;
        case 'F':
            if (operation) {
                mask |= rwbs::kFua;
            } else if (std::string_view("WRDFNZ").find(letters.substr(i + 1, 1)) != std::string_view::npos &&
                       i + 1 < letters.size()) {
                mask |= rwbs::kPreflush;
            } else {
                mask |= rwbs::kFlush;
                operation = true;
            }
            break;
        case 'A': mask |= rwbs::kRahead; break;
        case 'B': mask |= rwbs::kBarrier; break;
        case 'S': mask |= rwbs::kSync; break;
        case 'M': mask |= rwbs::kMeta; break;
        case 'U': mask |= rwbs::kAtomic; break;
        default: break;
        }
    }
    return mask;
}

std::string BlockModel::rwbs_letters(std::uint32_t mask) {
    std::string out;
    if (mask & rwbs::kPreflush) out += 'F';
    if (mask & rwbs::kFlush) out += 'F';
    else if (mask & rwbs::kZone) out += zone_letters(mask & rwbs::kZone);
    else if (mask & rwbs::kWriteZeroes) out += "WZ";
    else if (mask & rwbs::kDiscard) out += 'D';
    else if (mask & rwbs::kWrite) out += 'W';
    else if (mask & rwbs::kRead) out += 'R';
    else out += 'N';
    if (mask & rwbs::kSecure) out += 'E';
    if (mask & rwbs::kFua) out += 'F';
    if (mask & rwbs::kRahead) out += 'A';
    if (mask & rwbs::kBarrier) out += 'B';
    if (mask & rwbs::kSync) out += 'S';
    if (mask & rwbs::kMeta) out += 'M';
    if (mask & rwbs::kAtomic) out += 'U';
    return out;
}

}  // namespace opline
