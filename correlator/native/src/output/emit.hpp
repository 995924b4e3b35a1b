// SPDX-License-Identifier: MIT
// Writes the core's results into the run's tables. The columns are those of opline/store/schema.py, in its order;
// a test compares both.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "link/linker.hpp"
#include "output/csv/op_csv.hpp"
#include "stages/attribution.hpp"

namespace opline {

class Emitter {
  public:
    Emitter(StringPool &strings, const std::vector<std::string> &key_space_names);

    struct OpFacts {
        bool complete = false, tainted = false;
        std::uint32_t reason = 0, no_request = 0;  // pool ids; 0: absent
    };
    void op(const Op &, const Attribution &, const OpFacts &);
    // The same for an op of a shape: with Attributor::times_of(), and what threads did in each stage (empty: unknown).
    void op_of_shape(const Op &, ShapeAttribution &, const OpFacts &, const std::int64_t *times,
                     const std::vector<StateSplit> &);
    void request(const Request &, const Flush *, const Served &);
    void bio(const Bio &, const BioLink *);
    void link(const LinkRow &, std::uint64_t bio, IoKind, std::uint64_t request, bool by_pointer);
    void deferred(const DeferredRow &, const Bio &, const BioLink &, const std::string &file);
    void batch(const Batch &);
    void loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count);
    void fate(std::uint32_t event_name, std::string_view fate, std::uint64_t count);
    void discarded(std::string_view stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                   bool packets);

    // Only these tables get rows from now on: for a run that is made for one question and forgotten. Throws
    // std::runtime_error for a name that is none.
    void keep(const std::vector<std::string> &names);
    // Feeds `csv` with what op() and link() are given, from now on; incomplete ops only with `all`.
    void feed(OpCsv &csv, bool all);
    // Tables have what op() writes.
    bool keeps_ops() const;
    // Somebody wants ops: tables, or `csv`.
    bool takes_ops() const { return keeps_ops() || csv_; }
    bool keeps_transitions() const;
    bool keeps_requests() const;  // or bios
    // Somebody wants what link() is given.
    bool takes_links() const;
    // What threads did in the stages is wanted: keep() names "states" besides "stages", or was not called.
    bool keeps_states() const;
    // Rows of the fullest table.
    std::size_t pending_rows() const;
    std::vector<Table> &tables() { return tables_; }

  private:
    // What a row of an op says besides the op's own fields.
    struct OpRow {
        std::uint32_t first_comm = 0, transitions = 0, late = 0, requests = 0;
        std::int64_t first_tid = -1, end_tid = -1, unattributed_ns = 0, unknown_ns = 0;
        const RequestCut *request = nullptr;  // the first
    };
    // What the rows of all ops of a shape have in common.
    struct ShapeRows {
        std::vector<std::uint32_t> seq, label, event, evidence;  // pool ids
        std::vector<std::uint8_t> aside, never;                  // flags
        std::vector<std::uint32_t> thread;                       // ordinals
        std::vector<std::uint32_t> stage, kind, from, to;
        bool has_event = true;  // all transitions have one
    };
    ShapeRows &rows_of(const TransitionList &, ShapeAttribution &);
    void transitions_of_shape(const Op &, const ShapeRows &);
    void stages_of_shape(const Op &, const ShapeAttribution &, const ShapeRows &, const std::int64_t *times,
                         const std::vector<StateSplit> &);
    std::uint32_t evidence_name(const TransitionKind &) const;
    void op_row(const Op &, const OpRow &, const OpFacts &);
    void feed_op(const Op &, const OpRow &, const OpFacts &);
    void feed_stages(const Op &, const Attribution &);
    OpCsv::Stage csv_stage(std::uint32_t stage, std::uint32_t kind, std::uint32_t from, std::uint32_t to,
                           std::uint32_t seq) const;
    Table &table(int index) { return tables_[static_cast<std::size_t>(index)]; }
    bool kept(int index) const { return kept_[static_cast<std::size_t>(index)] != 0; }
    StringPool &strings_;
    std::array<std::uint32_t, 5> evidence_{};  // per Evidence, pool id
    std::vector<std::uint32_t> key_evidence_;  // per key space, pool id of key:SPACE
    std::vector<Table> tables_;
    std::vector<char> kept_;  // per table
    bool with_states_ = true;
    std::vector<ShapeRows> shape_rows_;  // columns refer to what they hold
    OpCsv *csv_ = nullptr;
    bool csv_all_ = false;
    std::vector<std::uint32_t> csv_stages_;  // per pool id, number + 1
    std::vector<std::pair<std::uint32_t, std::int64_t>> csv_durations_;
    std::vector<OpCsv::Stage> csv_rows_;
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
