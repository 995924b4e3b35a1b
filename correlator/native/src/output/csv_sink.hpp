// SPDX-License-Identifier: MIT
// `opline csv` of a trace: feeds the rows' writer while ops settle.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "output/csv/op_csv.hpp"
#include "stages/settled_op.hpp"

namespace opline {

class CsvSink final : public OpSink {
  public:
    // `csv` must outlive the sink; incomplete ops only with `all`.
    CsvSink(const StringPool &strings, OpCsv &csv, bool all) : strings_(strings), csv_(csv), all_(all) {}
    void op(const SettledOp &) override;
    void link(const LinkRow &, const BatchBio &) override;

  private:
    void row(const SettledOp &);
    void stages(const SettledOp &);

    const StringPool &strings_;
    OpCsv &csv_;
    bool all_;
    std::vector<std::uint32_t> numbers_;  // of stages, by pool id, plus 1
    std::vector<std::pair<std::uint32_t, std::int64_t>> durations_;
    std::vector<OpCsv::StageRow> rows_;
};

}  // namespace opline
