// SPDX-License-Identifier: MIT
// The requests of one matcher in memory: made, given bios and owners, found by place and pointer, closed and reported.
#pragma once
#include <vector>

#include "block/bios.hpp"

namespace opline::block_model {

// The places where open requests with sectors begin, and where requests that can still grow end.
class RequestPlaces {
  public:
    RequestPlaces(Places &places, Pool<ReqRec> &requests, const Ends &age)
        : requests_(requests), age_(age), starts_(places), ends_(places) {}

    Index first(const Place &place) const { return starts_.first(place); }
    // The first request ending at the place. Only merges ask: no ends are kept before the first merge.
    Index first_ending(const Place &place) {
        keep_ends();
        return ends_.first(place);
    }
    void enter(Index);
    void leave(Index);
    void rekey(Index, std::uint64_t start, std::uint32_t remaining);

  private:
    void leave_end(Index);
    void keep_ends();

    Pool<ReqRec> &requests_;
    const Ends &age_;
    Chain<ReqRec, &ReqRec::by_start, &PlaceEnds::starts> starts_;
    Chain<ReqRec, &ReqRec::by_end, &PlaceEnds::ends> ends_;  // empty before the first merge
    bool has_merges_ = false;
    std::uint64_t end_orders_ = 0;
};

class Requests {
  public:
    Requests(Matching &m, StepEvidence &evidence, Bios &bios) : m_(m), evidence_(evidence), bios_(bios) {}
    Requests(const Requests &) = delete;

    ReqRec &operator[](Index i) { return requests_[i]; }
    const ReqRec &operator[](Index i) const { return requests_[i]; }
    std::size_t live() const { return requests_.live(); }
    Index oldest() const { return age_.head; }
    // The open request with this pointer; nullptr: none. Valid until the next request comes or goes.
    Index *by_pointer(std::uint64_t pointer) { return by_rq_.find(pointer); }
    template <class Look>  // void(const Request &), in order of first sight
    void each_open(const Look &look) const {
        for (Index i = age_.head; i != kNil; i = requests_[i].age.next) look(requests_[i].r);
    }
    RequestPlaces &places() { return places_; }
    std::uint64_t unconfirmed_merges() const { return unconfirmed_merges_; }  // merged bios not confirmed by a pointer

    Index make(const BlockEvent &, std::uint64_t sector, std::uint32_t nr_sectors);
    void attach(Index bio, Index request, bool front, bool by_pointer);
    void detach(Index bio);
    static void add_owner(ReqRec &, const Owner &);
    void set_pointer(Index, std::uint64_t pointer);
    void reuse(Index);
    void begin_issue(const BlockEvent &, Index);
    void completed(const BlockEvent &, Index);
    // A completion that fitted it as well went to another one: the one that still waits may be the younger of the two.
    void doubt(Index);
    static void leave_device(ReqRec &);
    void close(Index);

    static Fate fate_of(const ReqRec &r) { return r.r.owners.empty() ? Fate::kBackground : Fate::kRequestStep; }
    // Whether the request at `place`, last issued by the event issue_ordinal, has the bio begun by the event
    // bio_ordinal.
    enum class Has : std::uint8_t { kNo, kYes, kAmbiguous, kNoRequest };
    Has has_bio(const Place &, std::uint64_t issue_ordinal, std::uint64_t bio_ordinal) const;

  private:
    void check_intervals(ReqRec &);

    Matching &m_;
    StepEvidence &evidence_;
    Bios &bios_;
    Pool<ReqRec> requests_;
    Ends age_;
    RequestPlaces places_{m_.places, requests_, age_};
    FlatMap<std::uint64_t, Index> by_rq_;
    std::uint64_t unconfirmed_merges_ = 0;
};

}  // namespace opline::block_model
