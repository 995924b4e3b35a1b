// SPDX-License-Identifier: MIT
#include "link/sync_shares.hpp"

#include <algorithm>

namespace opline {
namespace {

// With the mount option `async_commit` a commit has neither flag.
bool commits(const Bio &bio) { return (bio.rwbs & (rwbs::kPreflush | rwbs::kFua)) != 0; }

bool begins(const std::string &text, std::string_view with) { return text.compare(0, with.size(), with) == 0; }

}  // namespace

SyncShares::SyncShares(Linking &l, const Plan &plan, BioLinks &links, PlaceRules &places)
    : l_(l),
      links_(links),
      places_(places),
      syncs_(l.locator.ops()),
      has_syncs_(std::any_of(plan.points.begin(), plan.points.end(),
                             [](const PointSpec &p) { return p.sync == IoWindow::kBegin; })),
      sync_space_(l.strings.intern("sync")) {}

// The thread's bios are done when a sync returns: the completion of a still open bio is lost.
std::shared_ptr<Sync> SyncShares::sync_ended(Op &op, std::int64_t at_ns) {
    std::shared_ptr<Sync> sync = syncs_.end(op, at_ns);
    if (!sync || at_ns == kNoTime) return sync;
    links_.drop_sync_bios([&](const BioLink &link) { return link.sync == sync; });
    return sync;
}

bool SyncShares::is_journal(const Bio &bio) {
    // ext4's jbd2 and XFS's log: writes with META and SYNC from a kernel thread. Flushes of the log come with these
    // writes.
    if (bio.kind != IoKind::kWrite || (bio.rwbs & rwbs::kMeta) == 0 || (bio.rwbs & rwbs::kSync) == 0) return false;
    auto [known, made] = kernel_comms_.insert(bio.comm);
    if (made) {
        const std::string &comm = l_.strings.at(bio.comm);
        *known = begins(comm, "jbd2/") || begins(comm, "kworker/") || begins(comm, "xfsaild/");
    }
    return *known;
}

// jbd2 waits for its writes before queueing a commit record, and for the commit record before continuing
// (fs/jbd2/commit.c). An awaited bio still open has lost its completion.
void SyncShares::supersede_commits(const Bio &bio) {
    if (links_.sync_bios().empty() || bio.tid <= 0 || !begins(l_.strings.at(bio.comm), "jbd2/")) return;
    links_.drop_sync_bios([&](const BioLink &link) {
        return link.journal && link.journal_tid == bio.tid && (link.commit || commits(bio));
    });
}

void SyncShares::share_sync(const Bio &bio, const Sectors &within, BioLink &link) {
    supersede_commits(bio);
    if (link.sync) {
        const bool mapped = is_write(bio) && !places_.parts().empty();
        link.others = link.others || (!mapped && link.sync->batch->members > 1);
        if (link.others) link.rules |= rule::kBatch;
        // Without a map the bio may be data of any op with an earlier write: syncs waiting for such ops wait for the
        // bio.
        if (!mapped && is_data(bio))
            for (const auto &s : syncs_.open()) {
                const Op *op = s != link.sync ? l_.locator.find(s->op) : nullptr;
                if (op && link.sync->covers(*op)) shared_work(link).syncs.push_back(s);
            }
        links_.add_sync_bio(bio.id);
    } else if (link.chosen == 0 && !link.batch && !syncs_.open().empty() && is_journal(bio)) {
        for (const auto &s : syncs_.open()) {
            const Op *op = l_.locator.find(s->op);
            if (!op || s->host != link.queuer.host) continue;
            const Target &target = places_.target_of(*op);
            if (target.devices.empty() || target.known(within.dev)) shared_work(link).syncs.push_back(s);
        }
        if (!link.shared) return;
        link.journal = link.others = true;
        link.journal_tid = bio.tid;
        link.commit = commits(bio);
        links_.add_sync_bio(bio.id);
    }
}

void SyncShares::sync_begun(Op &op, std::int64_t tid, std::int64_t at_ns) {
    const std::shared_ptr<Sync> sync = syncs_.begin(op, tid, at_ns, l_.locator.next_batch(), sync_space_);
    // A sync also waits for bios already in flight.
    for (auto id : links_.sync_bios()) {
        BioLink *link = links_.find(id);
        if (!link || link->queuer.host != op.host ||
            !(link->journal ||
              (link->sync && link->sync->covers(op) && (!link->shared || link->shared->file == kNoFile))))
            continue;
        shared_work(*link).syncs.push_back(sync);
    }
}

}  // namespace opline
