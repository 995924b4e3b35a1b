// SPDX-License-Identifier: MIT
// One matcher of block events: by pointer (falling back on sectors where an event has none) or by sector only.
// BlockModel runs one that reports, and beside it, where events carry pointers, one of the other kind that only
// concludes. Private to the block model.
#pragma once
#include <array>
#include <cstdint>
#include <deque>

#include "block/records.hpp"

namespace opline::block_model {

// What a matcher concluded from one event, in terms that two matchers share: ordinals of events.
struct Conclusion {
    enum class Hop : std::uint8_t { kNone, kBio, kIssue, kComplete };
    Hop hop = Hop::kNone;
    bool by_pointer = false;
    bool ambiguous = false;
    std::uint64_t answer = 0;  // event that began the bio (kBio) or request (kIssue), or its last issue (kComplete)
    // A bio that a pointer says is the request's, though it was merged: where it began, the request's last issue and
    // place.
    std::uint64_t merged_bio = 0, issue = 0;
    Place place;
};

struct Found {
    Index index = kNil;
    bool ambiguous = false;
    bool by_pointer = false;
    explicit operator bool() const { return index != kNil; }
};

class Engine {
  public:
    // hooks: nullptr for a matcher that only concludes.
    Engine(bool pointers, const BlockModel::Hooks *hooks) : pointers_(pointers), hooks_(hooks) {}
    Engine(const Engine &) = delete;

    // ordinal: of the event, from 1, rising.
    Fate apply(const BlockEvent &, std::uint64_t ordinal);
    void pass(std::int64_t ts_ns, std::uint64_t ordinal);  // the same for one that is about no bio and no request
    void finish();
    // Whether the request that begins at place and was last issued by that event has the bio that began with this one.
    enum class Has : std::uint8_t { kNo, kYes, kAmbiguous, kNoRequest };
    Has has_bio(const Place &, std::uint64_t issue_ordinal, std::uint64_t bio_ordinal) const;

    const Conclusion &said() const { return said_; }
    void conclude() { concludes_ = true; }  // from now on what it said is asked for
    std::size_t open_requests() const { return requests_.live(); }
    template <class Look>
    void each_open(const Look &look) const {
        for (Index i = request_age_.head; i != kNil; i = requests_[i].age.next) look(requests_[i].r);
    }
    std::size_t open_bios() const { return bios_.live(); }

    BlockCounts counts;
    std::uint64_t unconfirmed_merges = 0;  // merged bios that no pointer confirmed

  private:
    // block/bios.cpp
    Fate queue(const BlockEvent &);
    Index queued_remainder(const BlockEvent &) const;
    Fate remap(const BlockEvent &);
    Fate split(const BlockEvent &);
    Fate bio_complete(const BlockEvent &);
    Index new_bio(const BlockEvent &, std::uint64_t sector, std::uint32_t nr_sectors, Index parent, Index family);
    Index cut_bio(const BlockEvent &, Index bio, std::uint64_t at);
    Found parent_of(const BlockEvent &);
    Index remap_to(const BlockEvent &) const;
    void drop_remap(Index);
    void close_bio(Index);
    void release_parent(Index);
    void unhold(Index bio);
    void set_bio_pointer(Index bio, std::uint64_t pointer);
    void leave_place(Index bio);
    void expire();

    // block/find.cpp
    Found open_bio(const BlockEvent &, std::uint32_t nr_sectors, bool exact);
    Found bio_for_request(const BlockEvent &);
    std::uint64_t next_bio_behind(const BlockEvent &) const;
    Found merge_target(const BlockEvent &, bool front);
    Found request_for(const BlockEvent &, BlockKind);
    bool can_be_about(const BlockEvent &, const ReqRec &) const;
    Found request_at(const BlockEvent &, BlockKind);
    bool covers(const ReqRec &, const BlockEvent &) const;
    bool presumed_lost(const ReqRec &);
    void note_order(Device &, const Place &, Index completed);
    enum class Tie : std::uint8_t { kFirst, kLastOfPlug, kIssuedFirst, kIssuedLast };
    template <class Rank>
    Found choose(const Place &, Rank rank, bool tie_decides, bool mark = true, Tie = Tie::kFirst);

    // block/requests.cpp
    Fate getrq(const BlockEvent &);
    Fate merge(const BlockEvent &, bool front);
    Fate rq_merge(const BlockEvent &);
    Fate rq_bio(const BlockEvent &);
    Fate rq_remap(const BlockEvent &);
    Fate insert(const BlockEvent &);
    Fate issue(const BlockEvent &);
    Fate requeue(const BlockEvent &);
    Fate complete(const BlockEvent &);
    Fate completed_whole(const BlockEvent &, Index);
    Index completed_unissued(const BlockEvent &);
    Index issue_of_bios(const BlockEvent &);
    void begin_issue(const BlockEvent &, Index);
    void confirm_bio(Index bio, Index request);

    // block/lifetime.cpp
    Index new_request(const BlockEvent &, std::uint64_t sector, std::uint32_t nr_sectors);
    void attach(Index bio, Index request, bool front, bool by_pointer);
    void detach(Index bio);
    void add_owner(ReqRec &, const Owner &);
    void set_pointer(Index request, std::uint64_t pointer);
    void reuse(Index request);
    void check_intervals(ReqRec &);
    void close_request(Index);
    void give_up_overtaken();
    void give_up_missing(std::size_t most);
    void leave_chains(Index);
    void enter_chains(Index);
    void leave_end(Index);
    void keep_ends();
    void rekey(Index, std::uint64_t start, std::uint32_t remaining);
    void leave_device(ReqRec &);
    Fate stepped(const BlockEvent &e, Index request) {
        const ReqRec &rec = requests_[request];
        if (hooks_ && hooks_->request_step && !rec.r.owners.empty()) hooks_->request_step(e, rec.r);
        return fate_of(rec);
    }
    Fate fate_of(const ReqRec &r) const { return r.r.owners.empty() ? Fate::kBackground : Fate::kRequestStep; }

    // block/flush.cpp
    void check_flush_before(const BlockEvent &e);
    void give_up_waiter(const BlockEvent &, Index);
    void give_up_left(const BlockEvent &);
    bool has_other_flush(const Device &, std::uint32_t cpu, Index flush) const;
    bool lacks_data(const ReqRec &) const;
    bool was_anothers(const ReqRec &) const;
    void settle_left(const BlockEvent &, Index, bool next_flush_done);
    void give_up_owed(Device &);
    void note_contested_flush(const BlockEvent &, Index by);
    bool has_ended(const Owner &) const;
    Index wait_with_bio(const BlockEvent &e, Index bio);
    Index waiter_of_bio(const BlockEvent &e);
    void doubt_waiters(Device &);
    void unknown_flush_completed(const BlockEvent &e);
    Fate issue_flush(const BlockEvent &);
    Fate complete_empty(const BlockEvent &);
    Found flush_to_complete(const BlockEvent &);
    Found empty_to_complete(const BlockEvent &);
    void give_up_flushes(const BlockEvent &);
    Index taken_back(const BlockEvent &, Index flush, bool own_only);
    void take_flush_bios(const BlockEvent &, Index flush);
    Index flush_of(const Device &, const ReqRec &waiter) const;
    void serve(Index flush, Index waiter);
    void wait_for_second_completion(const BlockEvent &, Index);
    bool waits_for_second_flush(const BlockEvent &, ReqRec &);
    bool may_end(const BlockEvent &, const ReqRec &) const;
    void line_for(const BlockEvent &, Index flush);
    void serve_by(const BlockEvent &, Index flush);
    enum class Kinship : std::uint8_t { kApart, kPerhaps, kTogether };
    static Kinship kinship(const Device &, std::uint32_t cpu, std::uint32_t other);
    static bool nothing_known(const Device &, std::uint32_t cpu, std::uint32_t other);
    static bool same_queue(const Device &, std::uint32_t cpu, std::uint32_t other);
    static void note_together(Device &, std::uint32_t cpu, std::uint32_t other, std::uint32_t weight);
    static void note_apart(Device &, std::uint32_t cpu, std::uint32_t other, std::uint32_t weight);
    void line_up(Device &, Index);
    static void note_completion(Device &, std::uint32_t issued, std::uint32_t completed);
    static void set_free(Device &, std::uint32_t cpu, const BlockEvent &);
    static FlushCpu free_since(const Device &, std::uint32_t cpu);
    void give_up_waiters(const BlockEvent &);
    Found first_in_line(const BlockEvent &, int at_least);
    void unserve(Index flush, Index waiter);
    void begin_run(FlushCpu &, const BlockEvent &);
    void keep_run(const BlockEvent &);
    bool goes_on(const Device &, const ReqRec &waiter) const;
    void note_flush_entry(Index request, std::uint32_t flags);
    void flush_completed(const BlockEvent &, Index flush);
    void completed(const BlockEvent &, Index request);

    // block/evidence.cpp
    static void took(Device &, std::int64_t begin_ns, std::int64_t end_ns);
    void missed(std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns, const ReqRec *of = nullptr);
    void missed_completion(const ReqRec &, std::int64_t begin_ns);
    std::int64_t left_ns(const ReqRec &) const;
    void note_contested(const BlockEvent &, Index by);
    static void contend(ReqRec &, const Contested &);
    const Contested *contested_by_one_that_waits(const ReqRec &) const;
    Index exchanged(const BlockEvent &) const;
    bool too_long(const Device &, std::int64_t begin_ns, std::int64_t end_ns) const;
    void came_from_nowhere(const BlockEvent &);
    void check_issued(const BlockEvent &, const ReqRec &);
    void check_inserted(const ReqRec &);
    void check_split(const BlockEvent &);
    void check_remapped(const BlockEvent &, const BioRec &);
    void check_allocated(const BlockEvent &, Index request);
    void find_overdue();
    static void enlist(std::vector<Index> &, Index);
    static void forget(std::vector<Index> &, Index);

    std::uint64_t rq_of(const BlockEvent &e) const { return pointers_ ? e.rq : 0; }
    std::uint64_t bio_of(const BlockEvent &e) const { return pointers_ ? e.bio : 0; }
    [[gnu::always_inline]] Device &device(std::uint32_t dev) {
        KnownDevice &known = known_devices_[(dev ^ dev >> 20) % known_devices_.size()];
        if (!known.device || known.dev != dev) known = {dev, &look_up(dev)};
        return *known.device;
    }
    Device &look_up(std::uint32_t dev);
    void says(Conclusion::Hop hop, std::uint64_t answer, bool by_pointer, bool ambiguous) {
        if (concludes_) said_ = {hop, by_pointer, ambiguous, answer, 0, 0, {}};
    }

    // The order in which a thread's plug is emptied, learned from requests of different places: which kernel it is, no
    // event says. blk_add_rq_to_plug() puts a request at the list's head, and what is taken from there is issued last
    // in, first out, from Linux 5.16 to 6.12; before and after that it is first in, first out.
    struct PlugOrder {
        std::int32_t tid = -1;                // of the last step: whose,
        std::uint64_t request = 0, step = 0;  // of which request, and when
        std::uint64_t last_first = 0, first_first = 0;
        void note(std::int32_t thread, std::uint64_t made, std::uint64_t now) {
            if (thread == tid && made < step && made != request) ++(made < request ? last_first : first_first);
            *this = {thread, made, now, last_first, first_first};
        }
    };
    PlugOrder issues_{}, inserts_{};

    const bool pointers_;
    bool has_rq_bio_ = false;  // the capture names the further bios of a request at its issue
    const BlockModel::Hooks *hooks_;
    std::uint64_t now_ = 0;  // ordinal of the event at hand
    std::int64_t last_ns_ = kNoTime, first_ns_ = kNoTime;
    std::uint64_t next_bio_ = 1, next_request_ = 1;
    Conclusion said_;
    bool concludes_ = false;

    Pool<BioRec> bios_;
    Pool<ReqRec> requests_;
    Pool<RemapRec> remaps_;
    Places places_, remapped_to_;
    Chain<BioRec, &BioRec::place, &PlaceEnds::bios> bio_places_{places_};
    Chain<ReqRec, &ReqRec::by_start, &PlaceEnds::starts> request_starts_{places_};
    Chain<ReqRec, &ReqRec::by_end, &PlaceEnds::ends> request_ends_{places_};  // empty before the first merge
    bool has_merges_ = false;
    std::uint64_t next_look_ = 0;  // the event at which give_up_missing looks again
    bool has_contested_ = false;   // some request had a completion that fitted another as well
    std::uint64_t end_orders_ = 0;
    Chain<RemapRec, &RemapRec::place, &PlaceEnds::bios> remap_places_{remapped_to_};
    Ends bio_age_, request_age_, remap_age_;
    FlatMap<std::uint64_t, Index> by_bio_, by_rq_;
    struct KnownDevice {
        std::uint32_t dev = 0;
        Device *device = nullptr;
    };
    std::array<KnownDevice, 16> known_devices_{};  // of devices_
    FlatMap<std::uint32_t, std::unique_ptr<Device>> devices_;
    std::vector<Index> scratch_;
    // The last event of each CPU where a flush has completed, by ordinal, and that of this event's CPU before it.
    std::vector<std::uint64_t> last_on_cpu_;
    std::uint64_t before_ = 0;
    std::deque<Waiting> served_;  // bios of bio-based devices whose children are done, without their own completion yet
};

constexpr std::size_t kOpenLimit = std::size_t{1} << 20;  // bios, and requests; beyond: the oldest is given up
constexpr std::size_t kRemapLimit = std::size_t{1} << 16;
constexpr std::size_t kMostStuck = 64;  // requests that a device leaves behind while it completes many others
constexpr std::size_t kMostCpus = std::size_t{1} << 12;
constexpr std::size_t kFlushBioLimit = std::size_t{1} << 12;
constexpr std::int64_t kServedLinger_ns = 1'000'000'000;
// An open request that so many later ones of its device have overtaken is given up. The deepest queues in use (NVMe)
// have 1024 entries.
constexpr std::uint64_t kOvertaken = 16'384;
constexpr unsigned kChainLimit = 256;  // candidates looked at in one place

}  // namespace opline::block_model
