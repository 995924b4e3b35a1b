// SPDX-License-Identifier: MIT
#include "output/parquet/writers.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace opline::parquet {

File &PendingFile::settled() {
    std::unique_lock<std::mutex> lock(mutex_);
    written_.wait(lock, [this] { return expected_ == 0; });
    return file_;
}

void PendingFile::add(const Table &table, const StringPool &strings) {
    settled().add(table, strings, strings.size());
    error_ = file_.error();
}

void PendingFile::expect() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++expected_;
}

void PendingFile::write(const Table &table, const StringPool &strings, std::size_t known) {
    try {
        file_.add(table, strings, known);
    } catch (const std::bad_alloc &) {
        file_.fail(ENOMEM);
    }
    error_ = file_.error();
    const std::lock_guard<std::mutex> lock(mutex_);
    --expected_;
    written_.notify_all();
}

Writers::Writers(unsigned threads) {
    try {
        while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
    } catch (const std::system_error &) {
        if (threads_.empty()) throw;
    }
}

Writers::~Writers() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    for (auto &thread : threads_) thread.join();
}

Table Writers::spare_of(const Table &table) {
    const auto spare =
        std::find_if(spare_.begin(), spare_.end(), [&](const Table &other) { return other.name == table.name; });
    if (spare == spare_.end()) return table.like();
    Table out = std::move(*spare);
    spare_.erase(spare);
    return out;
}

void Writers::add(const std::shared_ptr<PendingFile> &file, Table &table, const StringPool &strings) {
    std::unique_lock<std::mutex> lock(mutex_);
    RowGroup group{file, spare_of(table), &strings, strings.size()};
    std::swap(group.table, table);
    rows_ += group.table.rows();
    file->expect();
    waiting_.push_back(std::move(group));
    changed_.notify_all();
    while (rows_ > kMostRows)
        if (!write_one(lock)) changed_.wait(lock);
}

bool Writers::write_one(std::unique_lock<std::mutex> &lock) {
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const RowGroup &g) { return !g.file->busy_; });
    if (next == waiting_.end()) return false;
    RowGroup group = std::move(*next);
    waiting_.erase(next);
    group.file->busy_ = true;
    lock.unlock();
    group.file->write(group.table, *group.strings, group.known);
    lock.lock();
    group.file->busy_ = false;
    rows_ -= group.table.rows();
    group.table.clear();
    spare_.push_back(std::move(group.table));
    changed_.notify_all();
    return true;
}

void Writers::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_ || !waiting_.empty())
        if (!write_one(lock)) changed_.wait(lock);
}

}  // namespace opline::parquet
