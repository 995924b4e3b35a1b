// SPDX-License-Identifier: MIT
// The rows of `opline csv`: one per op with a cell per stage, or one per interval. The only thing that writes them: the
// core feeds it while ops settle, Python the columns of a run. Rows come out when all is known, by their ops' place.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/spool.hpp"
#include "event/event.hpp"
#include "stages/op_attributes.hpp"
#include "statistics/stage_stats.hpp"

namespace opline {

class OpCsv {
  public:
    enum class Rows { kOps, kStages };  // a row per op, or per interval

    // fd: an empty file for rows that exceed the memory; the caller closes fd.
    OpCsv(Rows form, int fd) : form_(form), spool_(fd) {}
    Rows form() const { return form_; }

    // kNoTime, 0 and empty: absent.
    struct Op {
        std::int64_t op_id = 0;
        std::string_view op_class, object, host, comm, reason;
        std::int64_t pid = kNoTime, begin_tid = kNoTime, end_tid = kNoTime;
        std::int64_t begin_ns = 0, end_ns = kNoTime, latency_ns = kNoTime, bytes = kNoTime, dev = kNoTime;
        bool complete = false, tainted = false, has_sector = false;
        std::uint64_t sector = 0;
        std::int64_t unattributed_ns = kNoTime;
        OpAttributes attributes;
    };
    struct StageRow {
        std::string_view stage, kind, from, to;
        std::uint32_t seq = 0;
        std::int64_t begin_ns = 0, duration_ns = 0, tid = kNoTime, request_id = kNoTime;
    };
    // The row of the place, form kOps.
    void op(std::uint64_t place, const Op &);
    // The client's own figure for the op, and the kind of a bio (the first bio's kind is shown). Form kOps.
    void client(std::uint64_t place, std::int64_t client_ns);
    void bio(std::uint64_t place, std::uint64_t bio_id, std::string_view kind);

    // The number of a stage, for the calls below.
    std::uint32_t stage_number(std::string_view name);
    // Every interval of every op, the rows of one op together, in order of seq: for the order of the stages.
    void met(std::uint32_t stage, std::uint64_t op_id, std::uint32_t seq) {
        order_.stage(stage, 0, op_id, seq, 0, false);
    }
    // Intervals of the op at the place: (number, duration), or in form kStages whole rows.
    void durations(std::uint64_t place, const std::vector<std::pair<std::uint32_t, std::int64_t>> &);
    void stage_rows(std::uint64_t place, std::int64_t op_id, const std::vector<StageRow> &);

    // Names of the stages with a column, in the order of the columns: the order in which an op meets the stages. After
    // the last row.
    std::vector<std::string> stages_in_order();
    // More rows, only whole rows; empty: the end. Valid until the next call.
    std::string_view rows();
    int error() const { return spool_.error(); }  // of the file, as in Spool

  private:
    enum RecordKind : std::uint32_t { kOp, kPairs, kClient, kBio, kRows };
    template <class T>
    static char *put(char *at, T v) {
        std::memcpy(at, &v, sizeof v);
        return at + sizeof v;
    }
    // A row of form kOps, built from the records so far.
    struct OpRow {
        bool has_op = false;
        std::string head, tail;  // cells before and behind the client's
        OpAttributes attributes;
        std::int64_t client_ns = kNoTime, unattributed_ns = kNoTime;
        std::uint64_t first_bio = 0;
        std::string first_bio_kind;
        std::vector<std::int64_t> cells;  // of stages; kNoTime: empty
    };
    void one_place(const Spool::Record &);
    void write_row();

    Rows form_;
    Spool spool_;
    StageStatistics order_;
    std::vector<std::string> names_;  // by number
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::string text_;

    // while rows come out
    bool started_ = false, more_ = false;
    Spool::Record record_;
    std::vector<std::uint32_t> column_;  // by number
    OpRow row_;                          // of the place at hand
    std::string out_;
};

}  // namespace opline
