// SPDX-License-Identifier: MIT
#include "feed/blktrace.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace opline::feed {
namespace {

constexpr std::uint8_t kIssue = 7, kComplete = 8, kPlugAction = 9, kUnplugAction = 10, kTimerAction = 11, kSplit = 13,
                       kRemap = 15;
constexpr std::uint8_t kProcessNote = 0, kTimeNote = 1;
constexpr std::int64_t kSecond_ns = 1'000'000'000;
// Of an action's category.
constexpr std::uint32_t kWrite = 1u << 1, kFlush = 1u << 2, kSync = 1u << 3, kReadahead = 1u << 11, kMeta = 1u << 12,
                        kDiscard = 1u << 13, kFua = 1u << 15;

struct ActionEvent {
    std::uint8_t number;  // of the action; 0: a bio's completion
    const char *name;
};
constexpr std::array<ActionEvent, 12> kEvents = {{{1, "block_bio_queue"},
                                                  {2, "block_bio_backmerge"},
                                                  {3, "block_bio_frontmerge"},
                                                  {4, "block_getrq"},
                                                  {6, "block_rq_requeue"},
                                                  {7, "block_rq_issue"},
                                                  {8, "block_rq_complete"},
                                                  {12, "block_rq_insert"},
                                                  {13, "block_split"},
                                                  {14, "block_bio_bounce"},
                                                  {15, "block_bio_remap"},
                                                  {0, "block_bio_complete"}}};
constexpr std::size_t kNoEvent = kEvents.size();

std::size_t kind_of(std::uint8_t number) {
    for (std::size_t i = 0; i + 1 < kEvents.size(); ++i)
        if (kEvents[i].number == number) return i;
    return kNoEvent;
}

// An index of the category's bits with a letter in rwbs, and of whether there are bytes.
std::size_t letters_at(std::uint32_t category, bool bytes) {
    std::size_t found = bytes;
    for (const std::uint32_t bit : {kWrite, kFlush, kSync, kReadahead, kMeta, kDiscard, kFua})
        found = found << 1 | ((category & bit) != 0);
    return found;
}

// The letters of the kernel's blk_fill_rwbs().
std::string letters(std::uint32_t category, bool bytes) {
    std::string found = category & kFlush ? "F" : "";
    if (category & kDiscard) found += 'D';
    else if (category & kWrite) found += 'W';
    else if (bytes) found += 'R';
    else found += category & kFlush ? 'F' : 'N';
    for (const auto &[bit, letter] : {std::pair(kFua, 'F'), {kReadahead, 'A'}, {kSync, 'S'}, {kMeta, 'M'}})
        if (category & bit) found += letter;
    return found;
}

// Where a bio was split; the kernel writes the last 32 bits only.
std::uint64_t split_at(std::uint64_t sector, std::string_view more) {
    constexpr std::uint64_t kLow = 0xFFFFFFFF;
    const std::uint64_t found = (sector & ~kLow) | (big_endian(more) & kLow);
    return found >= sector ? found : found + kLow + 1;
}

constexpr std::size_t kRemapBytes = 16;

}  // namespace

BlktraceFeed::BlktraceFeed(EventSink &to, const std::vector<std::string_view> &files, bool unordered)
    : to_(to),
      merge_(files, unordered, [this](const BlktraceRecord &found, bool swapped) { note(found, swapped); }),
      buffer_(to) {
    StreamDecl stream;
    stream.domain = Domain::kKernel;
    stream.channel = "blktrace";
    stream_ = to_.add_stream(stream);
    for (std::uint32_t bits = 0; bits < 1u << 7; ++bits) {
        std::uint32_t category = 0;
        const std::array all = {kWrite, kFlush, kSync, kReadahead, kMeta, kDiscard, kFua};
        for (std::size_t i = 0; i < all.size(); ++i) category |= bits >> i & 1 ? all[i] : 0;
        for (const bool bytes : {false, true}) letters_[letters_at(category, bytes)] = letters(category, bytes);
    }
    declare();
}

void BlktraceFeed::declare() {
    for (std::size_t kind = 0; kind < kEvents.size(); ++kind)
        for (const bool named : {false, true}) {
            ClassDecl decl;
            decl.name = kEvents[kind].name;
            decl.domain = Domain::kKernel;
            std::vector<Member> members;
            auto field = [&](const char *name, Member member, FieldType type = FieldType::kUnsigned) {
                decl.fields.push_back({name, type, FieldScope::kPayload});
                members.push_back(member);
            };
            const std::string_view name = decl.name;
            field("dev", kDev);
            field("sector", kSector);
            field("rwbs", kRwbs, FieldType::kString);
            if (name == "block_split") field("new_sector", kNewSector);
            else field("nr_sector", kNumber);
            if (name == "block_rq_complete" || name == "block_rq_requeue" || name == "block_bio_complete")
                field("error", kError, FieldType::kSigned);
            if (name == "block_bio_remap") {
                field("old_dev", kOldDev);
                field("old_sector", kOldSector);
            }
            field("tid", kTid);
            if (named) field("comm", kComm, FieldType::kString);
            const ClassPlan plan = to_.add_class(decl);
            classes_[kind][named].id = plan.id;
            for (const std::uint32_t wanted : plan.wanted) classes_[kind][named].wanted.push_back(members[wanted]);
        }
}

std::size_t BlktraceFeed::bytes() const {
    std::size_t found = 0;
    for (const BlktraceFile &file : files()) found += file.read();
    return found;
}

bool BlktraceFeed::run(std::uint64_t most) {
    const std::uint64_t until = events_ + most;
    const BlktraceRecord *next = nullptr;
    while (events_ < until && (next = merge_.next())) record(*next);
    buffer_.flush();
    return next;
}

void BlktraceFeed::note(const BlktraceRecord &record, bool swapped) {
    if (record.number() == kProcessNote && !record.more.empty()) {
        buffer_.flush();  // the buffered events point to the names
        names_[record.tid] = record.more.substr(0, record.more.find_last_not_of('\0') + 1);
    } else if (record.number() == kTimeNote && record.more.size() >= 8 && origin_ns_ == kNoTime) {
        std::array<std::uint32_t, 2> words;  // seconds, ns
        std::memcpy(words.data(), record.more.data(), sizeof words);
        if (swapped)
            for (std::uint32_t &word : words) word = __builtin_bswap32(word);
        origin_ns_ = words[0] * kSecond_ns + words[1] - record.ts_ns;
    }
}

// Counts the records missing before this record, by the numbers of the CPU.
void BlktraceFeed::count(const BlktraceRecord &record) {
    auto [at, fresh] = before_.try_emplace(record.cpu, record.sequence, record.ts_ns);
    if (fresh) return;
    const auto [sequence, ts_ns] = at->second;
    if (record.sequence && sequence && record.sequence > std::uint64_t{sequence} + 1) {
        buffer_.flush();
        to_.gap({stream_, Gap::Kind::kEvents, ts_ns, record.ts_ns, record.sequence - sequence - 1, {}});
    }
    at->second = {record.sequence, record.ts_ns};
}

void BlktraceFeed::record(const BlktraceRecord &record) {
    count(record);
    std::size_t kind = kind_of(record.number());
    if (kind == kNoEvent) {
        plug(record);
        return;
    }
    if (record.number() != kSplit) plugs_.saw(record.dev, record.ts_ns);  // as btt
    if (record.number() == kIssue) issuing_[record.dev] = true;
    else if (record.number() == kComplete && !issuing_.count(record.dev)) kind = kEvents.size() - 1;
    push(record, kind);
}

void BlktraceFeed::plug(const BlktraceRecord &record) {
    if (record.number() == kPlugAction) plugs_.plug(record.dev, record.ts_ns);
    else if (record.number() == kUnplugAction || record.number() == kTimerAction)
        plugs_.unplug(record.dev, record.ts_ns, big_endian(record.more), record.number() == kTimerAction);
}

void BlktraceFeed::push(const BlktraceRecord &record, std::size_t kind) {
    const auto name = names_.find(record.tid);
    const std::string *comm = name == names_.end() ? nullptr : &name->second;
    const BlktraceClass &cls = classes_[kind][comm != nullptr];
    Slot *slots = buffer_.slots();
    for (std::size_t i = 0; i < cls.wanted.size(); ++i) new (&slots[i]) Slot(slot_of(record, cls.wanted[i], comm));
    ++events_;
    buffer_.add({cls.id, 0, stream_, record.cpu, record.ts_ns, slots});
}

Slot BlktraceFeed::slot_of(const BlktraceRecord &record, Member member, const std::string *name) const {
    const bool told = record.number() == kRemap && record.more.size() >= kRemapBytes;
    const auto word = [&](std::size_t at, std::size_t size) { return big_endian(record.more.substr(at, size)); };
    switch (member) {
    case kDev: return Slot::of(told && word(4, 4) ? word(4, 4) : std::uint64_t{record.dev});
    case kSector: return Slot::of(record.sector);
    case kRwbs: return Slot::of(std::string_view(letters_[letters_at(record.category(), record.size != 0)]));
    case kNumber: return Slot::of(std::uint64_t{record.size >> 9});
    case kError: return Slot::of(std::int64_t{static_cast<std::int16_t>(record.error)});
    case kOldDev: return Slot::of(told ? word(0, 4) : std::uint64_t{record.dev});
    case kOldSector: return Slot::of(told ? std::min(word(8, 8), kMostBlktraceSectors) : std::uint64_t{0});
    case kNewSector: return Slot::of(split_at(record.sector, record.more));
    case kTid: return Slot::of(std::uint64_t{record.tid});
    case kComm: return Slot::of(std::string_view(*name));
    }
    return {};
}

}  // namespace opline::feed
