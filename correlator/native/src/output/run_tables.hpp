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
#include "output/row_words.hpp"
#include "output/tcp_rows.hpp"
#include "output/wait_rows.hpp"
#include "stages/settled_op.hpp"

namespace opline {

class RunTables final : public OpSink {
  public:
    RunTables(StringPool &strings, const std::vector<std::string> &key_space_names, const Hosts &);

    void op(const SettledOp &) override;
    void link(const LinkRow &, const BatchBio &) override;
    // `has_population`: the recording says which processes it is about.
    void request(const Request &, const Flush *, const Served &, bool has_population);
    void bio(const Bio &, const BioLink *, bool has_population, bool of_population);
    void deferred(const DeferredRow &, const Bio &, const BioLink &, const std::string &file);
    void batch(const Batch &);
    void message(const Transition &, std::uint32_t host, MessageDo, const Key &identity);
    void tcp(const TcpCall &);
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
    bool keeps_requests() const;                                                        // or bios
    bool kept(int index) const { return kept_[static_cast<std::size_t>(index)] != 0; }  // the table has rows
    // What threads did in the stages is wanted: keep() names "sched" besides "stages", or the table states, or was not
    // called.
    bool keeps_states() const;
    bool keeps_state_parts() const;
    bool keeps_waits() const;
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
    StringPool &strings_;
    const Hosts &hosts_;
    std::array<std::uint32_t, 5> evidence_{};  // per Evidence, pool id
    std::array<std::uint32_t, 4> states_{};    // per StateKind, pool id
    WaitWords wait_words_;
    std::vector<std::uint32_t> key_evidence_;  // per key space, pool id of key:SPACE
    std::vector<Table> tables_;
    std::vector<char> kept_;  // per table
    bool with_sched_ = true;
    RowWords words_{strings_};
    TcpRows tcp_rows_{strings_};
};

}  // namespace opline
