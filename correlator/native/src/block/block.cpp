// SPDX-License-Identifier: MIT
// The block model's front: one matcher that reports through the hooks and, where events carry pointers, one of the
// other kind beside it, whose conclusions are compared hop by hop.
#include "block/block.hpp"

#include <array>
#include <cstring>
#include <type_traits>

#include "block/engine.hpp"

namespace opline {

using block_model::Conclusion;
using block_model::Engine;
using block_model::Requests;

static_assert(std::is_trivially_copyable_v<BlockCounts> && sizeof(BlockCounts) % sizeof(std::uint64_t) == 0);

void BlockCounts::add(const BlockCounts &other) {  // counts, and nothing else
    std::array<std::uint64_t, sizeof(BlockCounts) / sizeof(std::uint64_t)> mine, theirs;
    std::memcpy(mine.data(), this, sizeof *this);
    std::memcpy(theirs.data(), &other, sizeof other);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += theirs[i];
    std::memcpy(static_cast<void *>(this), mine.data(), sizeof *this);
}

namespace {

void compare(HopAgreement &hop, const Conclusion &pointer, const Conclusion &sector) {
    const bool by_pointer = pointer.by_pointer && pointer.answer != 0, by_sector = sector.answer != 0;
    if (by_sector && sector.ambiguous) ++hop.ambiguous;
    else if (by_pointer && by_sector) ++(pointer.answer == sector.answer ? hop.agree : hop.differ);
    else if (by_pointer) ++hop.pointer_only;
    else if (by_sector) ++hop.sector_only;
    else ++hop.neither;
}

// Kernels before 4.10 wrote the flush machinery's own request as an empty write with PREFLUSH (WRITE_FLUSH in
// block/blk-flush.c). Only such a request is an issued empty write, or completes as an empty write without a sector.
bool is_flush_of_old_kernels(const BlockEvent &e) {
    if (e.nr_sectors != 0 || (e.rwbs & (rwbs::kPreflush | rwbs::kFlush)) != rwbs::kPreflush) return false;
    if (e.kind == BlockKind::kRqIssue) return true;
    return e.sector == kNoSector &&
           (e.kind == BlockKind::kRqInsert || e.kind == BlockKind::kRqRequeue || e.kind == BlockKind::kRqComplete);
}

BlockEvent as_flush(BlockEvent e) {
    e.rwbs = (e.rwbs & ~(rwbs::kWrite | rwbs::kRead)) | rwbs::kFlush;
    return e;
}

}  // namespace

struct BlockModel::Impl {
    Impl(BlockMatch m, Hooks h, BlockShared *shared)
        : match(m), hooks(std::move(h)), main(m == BlockMatch::kPointer, &hooks, shared) {}

    BlockMatch match;
    Hooks hooks;
    Engine main;
    std::unique_ptr<Engine> other;  // from the first event with a pointer on
    std::uint64_t ordinal = 0;
    bool whole = false;
    std::vector<std::pair<std::uint32_t, DeviceFacts>> facts;  // by device
    BlockCounts counts;

    void agree(const Engine &pointer, const Engine &sector) {
        const Conclusion &p = pointer.said(), &s = sector.said();
        using Hop = Conclusion::Hop;
        switch (p.hop != Hop::kNone ? p.hop : s.hop) {
        case Hop::kNone: break;
        case Hop::kBio: compare(counts.bio_to_request, p, s); break;
        case Hop::kIssue: compare(counts.request_to_issue, p, s); break;
        case Hop::kComplete: compare(counts.request_to_complete, p, s); break;
        }
        if (p.merged_bio == 0) return;
        HopAgreement &merged = counts.bio_to_request;
        switch (sector.requests().has_bio(p.place, p.issue, p.merged_bio)) {
        case Requests::Has::kYes: ++merged.agree; break;
        case Requests::Has::kNo: ++merged.differ; break;
        case Requests::Has::kAmbiguous: ++merged.ambiguous; break;
        case Requests::Has::kNoRequest: ++merged.pointer_only; break;
        }
    }
};

BlockModel::BlockModel(BlockMatch match, Hooks hooks, BlockShared *shared)
    : impl_(std::make_unique<Impl>(match, std::move(hooks), shared)) {}
BlockModel::~BlockModel() = default;

Fate BlockModel::event(const BlockEvent &e) {
    if (is_flush_of_old_kernels(e)) return event(as_flush(e));
    Impl &m = *impl_;
    ++m.ordinal;
    if (!m.other) {
        // no second matcher to compare with
        if (m.whole || (e.rq | e.bio | e.parent) == 0) return m.main.apply(e, m.ordinal);
        m.other = std::make_unique<Engine>(m.match != BlockMatch::kPointer, nullptr);
        for (const auto &[dev, facts] : m.facts) m.other->know(dev, facts);
        m.main.conclude();
        m.other->conclude();
    }
    const Fate fate = m.main.apply(e, m.ordinal);
    m.other->apply(e, m.ordinal);
    if (m.match == BlockMatch::kPointer) m.agree(m.main, *m.other);
    else m.agree(*m.other, m.main);
    return fate;
}

void BlockModel::numbered() { impl_->main.numbered(); }

void BlockModel::know(std::uint32_t dev, const DeviceFacts &facts) {
    impl_->facts.emplace_back(dev, facts);
    impl_->main.know(dev, facts);
}

void BlockModel::whole() {
    impl_->whole = true;
    numbered();
}

void BlockModel::passed(std::int64_t ts_ns) {
    Impl &m = *impl_;
    m.main.pass(ts_ns, ++m.ordinal);
    if (m.other) m.other->pass(ts_ns, m.ordinal);
}

void BlockModel::woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns) { impl_->main.woken(tid, cpu, ts_ns); }

void BlockModel::decide(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns) {
    impl_->main.decide(begin_ns, end_ns, now_ns);
}

void BlockModel::finish() {
    impl_->main.finish();
    if (impl_->other) impl_->other->finish();
}

const BlockCounts &BlockModel::counts() const {
    Impl &m = *impl_;
    const HopAgreement bio = m.counts.bio_to_request, issue = m.counts.request_to_issue,
                       complete = m.counts.request_to_complete;
    BlockCounts &counts = m.main.counts();
    counts.bio_to_request = bio;
    counts.request_to_issue = issue;
    counts.request_to_complete = complete;
    if (m.other) {
        const Engine &by_pointer = m.match == BlockMatch::kPointer ? m.main : *m.other;
        counts.bio_to_request.sector_only += by_pointer.requests().unconfirmed_merges();
    }
    return counts;
}

std::size_t BlockModel::open_requests() const { return impl_->main.requests().live(); }
std::size_t BlockModel::open_bios() const { return impl_->main.bios().live(); }
void BlockModel::each_open(const std::function<void(const Request &)> &look) const {
    impl_->main.requests().each_open(look);
}

}  // namespace opline
