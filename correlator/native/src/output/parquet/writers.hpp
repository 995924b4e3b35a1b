// SPDX-License-Identifier: MIT
// Row groups that threads of their own encode, compress and write while the core goes on. A file's row groups are
// written one after the other in the order in which they came, so a file has the same bytes whoever writes it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "output/parquet/file.hpp"

namespace opline::parquet {

// A file, perhaps with row groups still to be written.
class PendingFile {
  public:
    PendingFile(int fd, std::vector<File::ColumnSpec> columns, std::string arrow_schema)
        : file_(fd, std::move(columns), std::move(arrow_schema)), error_(file_.error()) {}

    // Waits until all row groups are written.
    File &settled();
    // File::add(), now.
    void add(const Table &, const StringPool &);
    // As File::error(), for the bytes written so far.
    int error() const { return error_; }

  private:
    friend class Writers;
    void expect();
    void write(const Table &, const StringPool &, std::size_t known);

    File file_;
    std::atomic<int> error_;
    std::mutex mutex_;
    std::condition_variable written_;
    std::size_t expected_ = 0;
    bool busy_ = false;  // the Writers'
};

class Writers {
  public:
    // Throws std::system_error if not a single thread can start.
    explicit Writers(unsigned threads);
    // Once all is written.
    ~Writers();
    Writers(const Writers &) = delete;
    Writers &operator=(const Writers &) = delete;

    // The table's rows become a row group of the file; the table is emptied at once. With too many waiting rows, the
    // caller writes some of these rows. The strings' pool must outlive the Writers.
    void add(const std::shared_ptr<PendingFile> &, Table &, const StringPool &);

  private:
    static constexpr std::size_t kMostRows = 1u << 18;  // limit of rows waiting or being written
    struct RowGroup {
        std::shared_ptr<PendingFile> file;
        Table table;
        const StringPool *strings;
        std::size_t known;  // strings
    };
    void run();
    Table spare_of(const Table &);
    // False: no row group is waiting, or only row groups of files in use by other writers.
    bool write_one(std::unique_lock<std::mutex> &);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<RowGroup> waiting_;
    std::vector<Table> spare_;  // empty tables, kept for their memory
    std::size_t rows_ = 0;
    bool ended_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace opline::parquet
