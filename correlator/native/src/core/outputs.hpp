// SPDX-License-Identifier: MIT
// Where the core's results go: tables, statistics, CSV.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/common.hpp"
#include "core/held_links.hpp"
#include "output/columns.hpp"
#include "output/csv_sink.hpp"
#include "output/run_tables.hpp"
#include "statistics/op_statistics.hpp"

namespace opline {

class Outputs {
  public:
    explicit Outputs(Common &common) : tables(common.strings, common.space_names(), common.hosts()), common_(common) {}
    Outputs(const Outputs &) = delete;

    RunTables tables;
    std::optional<OpStatistics> statistics;

    void keep_tables(const std::vector<std::string> &names) {
        tables.keep(names);
        links_wanted_ = tables.kept(columns::kLinks);
    }
    void keep_statistics(bool tainted, std::vector<std::string> classes, std::vector<std::string> without) {
        statistics.emplace(common_.strings, tainted, std::move(classes), std::move(without));
        sinks_.push_back(&*statistics);
    }
    // No table is kept.
    void write_csv(OpCsv &csv, bool all) {
        csv_.emplace(common_.strings, csv, all);
        sinks_.push_back(&*csv_);
        links_wanted_ = csv.form() == OpCsv::Rows::kOps;
    }
    bool links_wanted() const { return links_wanted_; }  // by one of the sinks

    // Tables have all ops, with their program; statistics and CSV have only the ops that count.
    void op(bool counts, const SettledOp &settled) {
        for (OpSink *sink : sinks_)
            if (counts || sink == &tables) sink->op(settled);
    }
    // CSV counts the links of an op before the op's end; the table has each link's confidence.
    void link(bool counts, const LinkRow &row, const BatchBio &bio, std::int64_t since_ns, std::int64_t until_ns) {
        for (OpSink *sink : sinks_)
            if (sink == &tables) held_.hold(row, bio, since_ns, until_ns);
            else if (counts) sink->link(row, bio);
    }
    // Links of finished ops go into the table.
    template <class Over>  // bool(ref of an op)
    void tell_links(const LostIntervals &lost, Over over) {
        held_.tell(lost, over, [this](const LinkRow &row, const BatchBio &bio) { tables.link(row, bio); });
    }

  private:
    Common &common_;
    std::optional<CsvSink> csv_;
    std::vector<OpSink *> sinks_{&tables};
    bool links_wanted_ = true;
    HeldLinks held_;
};

}  // namespace opline
