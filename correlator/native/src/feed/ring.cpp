// SPDX-License-Identifier: MIT
#include "feed/ring.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace opline::feed {
namespace {

constexpr std::uint8_t kCgroup = 253, kLost = 254, kMark = 255;
constexpr std::size_t kPathBytes = 40;        // of a cgroup, in one record
constexpr std::size_t kRemembered = 1 << 16;  // threads
constexpr std::size_t kNameBytes = 16;

// struct block_event
enum Offset : std::uint8_t {
    kTime = 0,
    kRq = 8,
    kBio = 16,
    kParent = 24,
    kRqFlags = 24,
    kQueue = 28,
    kTag = 30,
    kSector = 32,
    kOther = 40,
    kNrSector = 48,
    kBytes = 52,
    kDev = 56,
    kOldDev = 60,
    kRwbs = 64,
    kError = 68,
    kTid = 72,
    kCpu = 80,
    kKind = 82,
    kFlushSeq = 83,
    kPid = 84,
    kComm = 88
};

template <class T>
T at_offset(const char *record, std::size_t offset) {
    T value;
    std::memcpy(&value, record + offset, sizeof value);
    return value;
}

struct RecordField {
    const char *name;
    Offset offset;
    std::uint8_t size;  // 0: the thread's name
    bool has_sign = false;
};

using RecordFields = std::vector<RecordField>;

RecordFields fields(std::initializer_list<RecordField> own) {
    RecordFields all = {{"dev", kDev, 4}, {"sector", kSector, 8}, {"nr_sector", kNrSector, 4}, {"rwbs", kRwbs, 4}};
    all.insert(all.end(), own);
    const RecordFields rest = {{"tid", kTid, 4, true}, {"pid", kPid, 4, true}, {"comm", kComm, 0},
                               {"cpu", kCpu, 2},       {"rq", kRq, 8},         {"bio", kBio, 8}};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

RecordFields request_fields(RecordField own) {
    return fields({own,
                   {"queue", kQueue, 2, true},  // NO_QUEUE is -1
                   {"tag", kTag, 2, true},
                   {"rq_flags", kRqFlags, 4},
                   {"flush_seq", kFlushSeq, 1, true}});
}

// In the order of enum block_kind; fields as in tracepoints/block_tp.h.
const std::vector<std::pair<const char *, RecordFields>> &kinds() {
    static const RecordField error{"error", kError, 4, true};
    static const RecordFields bio = fields({}), request = request_fields({"bytes", kBytes, 4}), done = fields({error}),
                              request_done = request_fields(error),
                              moved = fields({{"old_dev", kOldDev, 4}, {"old_sector", kOther, 8}}),
                              split = fields({{"new_sector", kOther, 8}, {"parent", kParent, 8}}),
                              queued = fields({{"cgroup", kOther, 8}});
    static const std::vector<std::pair<const char *, RecordFields>> all = {
        {"block_bio_queue", queued},   {"block_getrq", bio},
        {"block_bio_backmerge", bio},  {"block_bio_frontmerge", bio},
        {"block_split", split},        {"block_bio_remap", moved},
        {"block_bio_complete", done},  {"block_rq_insert", request},
        {"block_rq_issue", request},   {"block_rq_bio", bio},
        {"block_rq_requeue", request}, {"block_rq_merge", request},
        {"block_rq_remap", moved},     {"block_rq_complete", request_done}};
    return all;
}

}  // namespace

RingFeed::RingFeed(EventSink &to) : to_(to), buffer_(to) {
    StreamDecl stream;
    stream.channel = "block";
    stream_ = to_.add_stream(stream);
    for (std::size_t i = 0; i < kKinds; ++i) {
        const auto &[name, all] = kinds()[i];
        ClassDecl decl;
        decl.name = std::string("block:") + name;
        for (const RecordField &field : all) {
            const FieldType type = field.size == 0  ? FieldType::kString
                                   : field.has_sign ? FieldType::kSigned
                                                    : FieldType::kUnsigned;
            decl.fields.push_back({field.name, type, FieldScope::kPayload});
        }
        const ClassPlan plan = to_.add_class(decl);
        classes_[i].id = plan.id;
        for (const std::uint32_t wanted : plan.wanted)
            classes_[i].wanted.push_back({all[wanted].offset, all[wanted].size, all[wanted].has_sign});
    }
    ClassDecl decl;
    decl.name = "sched:process_cgroup_path";
    decl.fields.push_back({"cgroup", FieldType::kUnsigned, FieldScope::kPayload});
    decl.fields.push_back({"path", FieldType::kString, FieldScope::kPayload});
    cgroups_ = to_.add_class(decl);
}

void RingFeed::feed(std::string_view bytes) {
    if (!rest_.empty()) {
        const std::size_t missing = std::min(kRecordSize - rest_.size(), bytes.size());
        rest_.append(bytes.data(), missing);
        bytes.remove_prefix(missing);
        if (rest_.size() < kRecordSize) return;
        record(rest_.data());
        buffer_.flush();
        rest_.clear();
    }
    while (bytes.size() >= kRecordSize) {
        record(bytes.data());
        bytes.remove_prefix(kRecordSize);
    }
    buffer_.flush();
    rest_.assign(bytes.data(), bytes.size());
}

void RingFeed::record(const char *at) {
    const auto ts_ns = static_cast<std::int64_t>(at_offset<std::uint64_t>(at, kTime));
    if (first_ns_ == kNoTime) first_ns_ = ts_ns;
    const auto kind = at_offset<std::uint8_t>(at, kKind);
    if (kind == kMark) {
        buffer_.flush();
        until_ns_ = ts_ns;
        return;
    }
    if (kind == kLost) {
        buffer_.flush();
        const auto count = at_offset<std::uint64_t>(at, kRq);
        lost_ += count;
        const std::int64_t since = until_ns_ == kNoTime ? ts_ns : std::min(ts_ns, until_ns_);
        to_.gap({stream_, Gap::Kind::kEvents, since, ts_ns, count, {}});
        return;
    }
    if (kind == kCgroup) return cgroup(at, ts_ns);
    if (kind >= kKinds) return;  // of no request
    if (processes_.size() >= kRemembered) {
        processes_before_ = std::move(processes_);
        processes_.clear();
    }
    processes_[at_offset<std::uint32_t>(at, kTid)] = at_offset<std::uint32_t>(at, kPid);
    const RecordClass &cls = classes_[kind];
    Slot *slots = buffer_.slots();
    for (std::size_t i = 0; i < cls.wanted.size(); ++i) {
        const RecordPlace place = cls.wanted[i];
        if (place.size == 8) slots[i] = Slot::of(at_offset<std::uint64_t>(at, place.offset));
        else if (place.size == 4 && place.has_sign)
            slots[i] = Slot::of(std::int64_t{at_offset<std::int32_t>(at, place.offset)});
        else if (place.size == 4) slots[i] = Slot::of(std::uint64_t{at_offset<std::uint32_t>(at, place.offset)});
        else if (place.size == 2 && place.has_sign)
            slots[i] = Slot::of(std::int64_t{at_offset<std::int16_t>(at, place.offset)});
        else if (place.size == 1) slots[i] = Slot::of(std::int64_t{at_offset<std::int8_t>(at, place.offset)});
        else if (place.size == 2) slots[i] = Slot::of(std::uint64_t{at_offset<std::uint16_t>(at, place.offset)});
        else slots[i] = Slot::of(std::string_view(at + place.offset, strnlen(at + place.offset, kNameBytes)));
    }
    ++events_;
    buffer_.add({cls.id, 0, stream_, kNoCpu, ts_ns, slots});
}

// A piece of the path of a cgroup; `dev` says how much of it is left.
void RingFeed::cgroup(const char *at, std::int64_t ts_ns) {
    const auto left = at_offset<std::uint32_t>(at, kDev);
    path_.append(at + kBio, std::min<std::size_t>(left, kPathBytes));
    if (left > kPathBytes) return;
    buffer_.flush();
    std::array<Slot, 2> slots;
    for (std::size_t i = 0; i < cgroups_.wanted.size(); ++i)
        slots[i] =
            cgroups_.wanted[i] == 0 ? Slot::of(at_offset<std::uint64_t>(at, kRq)) : Slot::of(std::string_view(path_));
    const Event event{cgroups_.id, 0, stream_, kNoCpu, ts_ns, slots.data()};
    to_.events(&event, &event + 1);
    path_.clear();
}

std::unordered_map<std::uint32_t, std::uint32_t> RingFeed::processes() const {
    auto all = processes_before_;
    for (const auto &[tid, pid] : processes_) all[tid] = pid;
    return all;
}

}  // namespace opline::feed
