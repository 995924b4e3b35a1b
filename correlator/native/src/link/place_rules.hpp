// SPDX-License-Identifier: MIT
// Where the bytes of ops and the sectors of bios lie, and which bios an op can have because of that.
#pragma once
#include <vector>

#include "link/directions.hpp"
#include "link/page_owners.hpp"
#include "link/targets.hpp"

namespace opline {

enum class Overlap : std::uint8_t { kNone, kPart, kInside };

class PlaceRules {
  public:
    PlaceRules(Linking &l, Directions &directions) : l_(l), directions_(directions) {}

    // The parts of mapped files in the bio at hand.
    const std::vector<MappedPart> &parts() const { return parts_; }
    void no_parts() { parts_.clear(); }
    void find_parts(const Sectors &run, const Sectors &within) {
        parts_.clear();
        if (!l_.maps.empty()) l_.maps.find(run, within, parts_);
    }
    Target &target_of(const Op &);
    // The map of the op's file; kNoFile: any.
    std::uint32_t file_of(std::uint64_t ref) {
        const Op *op = l_.locator.find(ref);
        return op ? target_of(*op).file : kNoFile;
    }
    // Of a file whole pages reach the disk.
    static std::uint64_t bytes_in_flight(const Op &);
    std::uint64_t bytes_in(const Op &, const Sectors &within);
    Overlap overlap(const Op &op, const Sectors &within) { return overlap(op, target_of(op).file, within); }
    void find_in_flight(const Bio &, const Sectors &within, BioLink &);
    bool outside(const Bio &, const Sectors &within, Op &, BioLink &);
    void learn_amount(Op &);

  private:
    Overlap overlap(const Op &, std::uint32_t file, const Sectors &within);

    Linking &l_;
    Directions &directions_;
    Targets targets_;
    std::vector<MappedPart> parts_;
};

}  // namespace opline
