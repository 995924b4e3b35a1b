// SPDX-License-Identifier: MIT
#include "link/link_rows.hpp"

#include <algorithm>

namespace opline {

const std::vector<LinkRow> &LinkRows::links(const Bio &bio) {
    link_rows_.clear();
    const BioLink *link = links_.link_of(bio.id);
    if (!link) return link_rows_;
    auto row = [&](std::uint64_t op, std::uint32_t rules, std::uint64_t bytes, bool ambiguous) {
        for (auto &r : link_rows_)
            if (r.op == serial(op)) {
                r.bytes += bytes;
                return;
            }
        link_rows_.push_back({serial(op), rules | (link->inherited ? rule::kParent : 0), bytes, link->others,
                              ambiguous || link->request_ambiguous, link->doubtful, link->completion_by, op});
    };
    if (link->chosen != 0) checks_.check_process(*link, link->chosen, link->rules);
    if (link->chosen != 0)
        row(link->chosen, link->rules, std::min(link->own_bytes, std::uint64_t{bio.nr_sectors} * 512), link->ambiguous);
    if (!link->shared) return link_rows_;
    for (const auto &[op, bytes] : link->shared->page_waiters)
        row(op, l_.maps.empty() ? rule::kSector : rule::kExtent, std::min(bytes, std::uint64_t{bio.nr_sectors} * 512),
            false);
    for (const auto &p : link->shared->pages)
        if (waits(l_.locator.find(p.op))) row(p.op, rule::kPage, p.bytes, p.ambiguous);
    for (const auto &s : link->shared->syncs)
        if (s->open && done_ns(bio) != kNoTime) row(s->op, rule::kBatch, 0, false);
    return link_rows_;
}

std::int64_t LinkRows::done_ns(const Bio &bio) const {
    const BioLink *link = links_.link_of(bio.id);
    return link && link->complete_ns != kNoTime ? link->complete_ns : bio.complete_ns;
}

const std::vector<DeferredRow> &LinkRows::deferred(const Bio &bio) {
    deferred_rows_.clear();
    const BioLink *link = links_.link_of(bio.id);
    // The rows of a remapped bio are the rows of the bio before the remap.
    if (!link || !link->shared || (link->inherited && bio.split_from == 0)) return deferred_rows_;
    for (const auto &p : link->shared->pages) {
        Op *op = l_.locator.find(p.op);
        if (waits(op)) continue;
        const std::uint64_t id = op ? op->serial : serial_of(p.op);
        auto it = std::find_if(deferred_rows_.begin(), deferred_rows_.end(),
                               [&](const DeferredRow &r) { return r.op == id; });
        if (it == deferred_rows_.end()) {
            deferred_rows_.push_back(
                {id, 0, p.written_ns, false, p.ambiguous || link->request_ambiguous, link->doubtful});
            it = std::prev(deferred_rows_.end());
            if (op) ++op->deferred;
        }
        it->bytes += p.bytes;
    }
    for (auto &r : deferred_rows_) r.shared = r.bytes < std::uint64_t{bio.nr_sectors} * 512;
    return deferred_rows_;
}

}  // namespace opline
