// SPDX-License-Identifier: MIT
#include "link/link_checks.hpp"

namespace opline {
namespace {

constexpr std::size_t kEndsKept = 1u << 16;

}  // namespace

std::int64_t LinkChecks::end_of(std::uint64_t ref) const {
    if (const Op *op = l_.locator.find(ref))
        return op->state == OpState::kEnded && op->hard ? op->end_ns : kNoTime;  // a soft end can move on
    const std::int64_t *known = ends_.find(ref);
    return known ? *known : 0;  // long ago
}

// A request with these steps cannot be the op's request.
bool LinkChecks::impossible(const BioLink &link, std::int64_t getrq_ns, std::int64_t complete_ns) const {
    if (const Op *op = l_.locator.find(link.chosen);
        op && link.queue_ns != kNoTime && link.queue_ns < op->begin_ns && !link.sync)
        return true;
    const std::int64_t end_ns = end_of(link.chosen);
    if (end_ns == kNoTime) return false;
    if (getrq_ns != kNoTime && getrq_ns > end_ns) return true;
    return link.waited_for && complete_ns != kNoTime && complete_ns > end_ns;
}

Waiter LinkChecks::waiter(const BioLink &link) const {
    Waiter its;
    if (link.sync) {
        its.known = true;
        its.ended_ns = link.sync->batch->end_ns;
    } else if (link.chosen != 0) {
        const Op *op = l_.locator.find(link.chosen);
        its.ends_with_it = op && op->io.is_io && !op->io.told && op->io.name == 0;
        its.known = link.waited_for;
        if (link.waited_for) its.ended_ns = end_of(link.chosen);
    } else if (const BatchWaits *waits = link.batch ? batch_waits_.find(link.batch->space) : nullptr;
               waits && waits->nearly_always()) {
        its.known = true;
        its.ended_ns = link.batch->end_ns;
    }
    return its;
}

Waiter LinkChecks::waiter(const Request &r) const {
    Waiter first;
    for (auto id : r.bios) {
        const BioLink *link = links_.link_of(id);
        const Waiter own = link ? waiter(*link) : Waiter{};
        first.known = first.known || own.known;
        first.ends_with_it = first.ends_with_it || own.ends_with_it;
        if (own.ended_ns != kNoTime && (first.ended_ns == kNoTime || own.ended_ns < first.ended_ns))
            first.ended_ns = own.ended_ns;
    }
    return first;
}

// The op's bytes were in flight when another thread wrote the pages, and the op did not wait for the bio: the bio
// becomes write-back of the op's data.
void LinkChecks::postpone(BioLink &link) {
    link.shared->pages.push_back({link.chosen, link.own_bytes, link.queue_ns, 0, 0, link.ambiguous});
    link.chosen = 0;
    link.rules = 0;
    link.own_bytes = 0;
}

void LinkChecks::check(BioLink &link, std::int64_t getrq_ns, std::int64_t complete_ns) {
    if (link.chosen == 0) return;
    if (link.dirtied && complete_ns != kNoTime) {
        const Op *op = l_.locator.find(link.chosen);
        if (!op || !op->io_open) return postpone(link);
    }
    if (!impossible(link, getrq_ns, complete_ns)) return;
    ++l_.counts.refused;
    link.chosen = 0;
    link.rules = 0;
}

void LinkChecks::settled(const Op &op) {
    if (op.bios == 0) return;
    if (ends_.size() >= kEndsKept) ends_.clear();  // no link refers to ops this old
    ends_.put(op_ref(op), op.complete() ? op.end_ns : kNoTime);
}

// Counts links by a number that contradict the process, whichever rule chose the link. Processes share pages,
// read-ahead and syncs.
void LinkChecks::check_process(const BioLink &link, std::uint64_t ref, std::uint32_t rules) {
    const Op *op = l_.locator.find(ref);
    if (!op || link.inherited || link.queuer.pid < 0 || l_.processes.has(*op, link.queuer)) return;
    if ((rules & rule::kThread) == 0 &&
        ((rules & (rule::kSector | rule::kExtent)) == 0 || l_.processes.of_kernel(link.queuer)))
        return;
    ++l_.counts.process_violations;
}

}  // namespace opline
