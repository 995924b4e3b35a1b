// SPDX-License-Identifier: MIT
// Writes the core's results into the run's tables. The columns are those of opline/store/schema.py, in its order;
// a test compares both.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "stages/settled_op.hpp"

namespace opline {

class RunTables final : public OpSink {
  public:
    RunTables(StringPool &strings, const std::vector<std::string> &key_space_names);

    void op(const SettledOp &) override;
    void link(const LinkRow &, const BatchBio &) override;
    void request(const Request &, const Flush *, const Served &);
    void bio(const Bio &, const BioLink *);
    void deferred(const DeferredRow &, const Bio &, const BioLink &, const std::string &file);
    void batch(const Batch &);
    void loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count);
    void fate(std::uint32_t event_name, std::string_view fate, std::uint64_t count);
    void discarded(std::string_view stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                   bool packets);
    // Events of a block device, or of a collector, that are not in the trace, as others show.
    void missed(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count);

    // Only these tables get rows from now on: for a run that is made for one question and forgotten. Throws
    // std::runtime_error for a name that is none.
    void keep(const std::vector<std::string> &names);
    // Tables have what op() writes.
    bool keeps_ops() const;
    bool keeps_transitions() const;
    bool keeps_requests() const;  // or bios
    bool keeps_links() const;
    // What threads did in the stages is wanted: keep() names "sched" besides "stages", or the table states, or was not
    // called.
    bool keeps_states() const;
    bool keeps_state_parts() const;
    // Rows of the fullest table.
    std::size_t pending_rows() const;
    std::vector<Table> &tables() { return tables_; }

  private:
    void transitions(const SettledOp &);
    void stages(const SettledOp &);
    void states(const SettledOp &);
    void members(const Op &);
    void op_row(const SettledOp &);
    std::uint32_t evidence_name(const TransitionKind &) const;
    Table &table(int index) { return tables_[static_cast<std::size_t>(index)]; }
    bool kept(int index) const { return kept_[static_cast<std::size_t>(index)] != 0; }
    StringPool &strings_;
    std::array<std::uint32_t, 5> evidence_{};  // per Evidence, pool id
    std::array<std::uint32_t, 4> states_{};    // per StateKind, pool id
    std::vector<std::uint32_t> key_evidence_;  // per key space, pool id of key:SPACE
    std::vector<Table> tables_;
    std::vector<char> kept_;  // per table
    bool with_sched_ = true;
    std::vector<std::uint32_t> rules_names_;  // per set of rules, pool id
    std::vector<std::uint32_t> rwbs_names_;   // per mask, pool id + 1
    std::uint32_t rwbs_name(std::uint32_t rwbs);
    std::uint32_t kind_name(IoKind);
    // A word that is written again and again, its pool id + 1 being kept in `known`.
    std::uint32_t word(std::uint32_t &known, std::string_view text) {
        if (known == 0) known = strings_.intern(text) + 1;
        return known - 1;
    }
    std::array<std::uint32_t, 6> kind_names_{};
    std::array<std::uint32_t, 4> outcomes_{};     // absorbed, reused, completed, open
    std::array<std::uint32_t, 2> matches_{};      // by sector, by pointer
    std::array<std::uint32_t, 3> confidences_{};  // low, medium, high
    std::uint32_t rules_name(std::uint32_t rules);
    std::uint32_t confidence_name(std::uint32_t rules, bool ambiguous, bool doubtful);
};

// blkparse's letters, in the order of the kernel's blk_fill_rwbs (kernel/trace/blktrace.c).
std::string rwbs_letters(std::uint32_t rwbs);

}  // namespace opline
