// SPDX-License-Identifier: MIT
#include "base/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opline {
namespace {

constexpr std::size_t kReadTogether = std::size_t{8} << 20;  // of all pieces while they are merged
constexpr std::size_t kReadLeast = 4096;

}  // namespace

void Spool::make_room(std::size_t size) {
    if (used_ != 0) spill();
    if (kHeader + size > buffer_.size()) buffer_.resize(std::max(piece_, kHeader + size));
}

void Spool::end(std::uint64_t place, std::uint32_t kind, const char *to) {
    char *record = buffer_.data() + used_;
    const auto size = static_cast<std::uint32_t>(to - record - static_cast<std::ptrdiff_t>(kHeader));
    std::memcpy(record, &place, 8);
    std::memcpy(record + 8, &size, 4);
    std::memcpy(record + 12, &kind, 4);
    in_order_ = in_order_ && (index_.empty() || index_.back().first <= place);
    index_.emplace_back(place, used_);
    used_ += kHeader + size;
}

void Spool::sort() {
    if (in_order_) return;
    std::sort(index_.begin(), index_.end());
    sorted_.resize(used_);
    char *to = sorted_.data();
    for (const auto &[place, at] : index_) {
        std::uint32_t size;
        std::memcpy(&size, buffer_.data() + at + 8, 4);
        std::memcpy(to, buffer_.data() + at, kHeader + size);
        to += kHeader + size;
    }
    sorted_.resize(buffer_.size());
    buffer_.swap(sorted_);
}

void Spool::spill() {
    sort();
    for (std::size_t at = 0; at < used_ && error_ == 0;) {
        const auto n = ::write(fd_, buffer_.data() + at, used_ - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) error_ = n == 0 ? ENOSPC : errno;
        else at += static_cast<std::size_t>(n);
    }
    pieces_.push_back((pieces_.empty() ? 0 : pieces_.back()) + used_);
    used_ = 0;
    index_.clear();
    in_order_ = true;
}

void Spool::start() {
    reading_ = true;
    if (pieces_.empty()) {
        sort();
        sources_.emplace_back();
        sources_[0].buffer.swap(buffer_);
        sources_[0].end = used_;
    } else {
        if (used_ != 0) spill();
        read_size_ = std::max(kReadLeast, kReadTogether / pieces_.size());
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            sources_.emplace_back();
            sources_[i].file_at = i == 0 ? 0 : pieces_[i - 1];
            sources_[i].file_end = pieces_[i];
        }
    }
    buffer_ = {};
    sorted_ = {};
    index_ = {};
    for (std::size_t i = 0; i < sources_.size(); ++i)
        if (advance(sources_[i])) heap_.push_back(i);
    const auto later = [this](std::size_t a, std::size_t b) { return comes_before(b, a); };
    std::make_heap(heap_.begin(), heap_.end(), later);
}

// The source's next record; false: it has no more.
bool Spool::advance(Source &s) {
    for (std::size_t wanted = kHeader;;) {
        if (s.end - s.at >= wanted) {
            std::uint32_t size;
            std::memcpy(&size, s.buffer.data() + s.at + 8, 4);
            wanted = kHeader + size;
            if (s.end - s.at >= wanted) break;
        }
        if (s.file_at == s.file_end) return false;
        if (s.at != 0) std::memmove(s.buffer.data(), s.buffer.data() + s.at, s.end - s.at);
        s.end -= s.at;
        s.at = 0;
        if (s.buffer.size() < std::max(read_size_, wanted)) s.buffer.resize(std::max(read_size_, wanted));
        const auto room = std::min<std::uint64_t>(s.buffer.size() - s.end, s.file_end - s.file_at);
        const auto n = ::pread(fd_, s.buffer.data() + s.end, room, static_cast<off_t>(s.file_at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            error_ = n == 0 ? EIO : errno;
            return false;
        }
        s.end += static_cast<std::size_t>(n);
        s.file_at += static_cast<std::uint64_t>(n);
    }
    const char *record = s.buffer.data() + s.at;
    std::uint32_t size;
    std::memcpy(&s.record.place, record, 8);
    std::memcpy(&size, record + 8, 4);
    std::memcpy(&s.record.kind, record + 12, 4);
    s.record.data = {record + kHeader, size};
    s.at += kHeader + size;
    return true;
}

bool Spool::next(Record &out) {
    if (!reading_) start();
    const auto later = [this](std::size_t a, std::size_t b) { return comes_before(b, a); };
    if (any_) {
        any_ = advance(sources_[current_]);
        if (!any_) sources_[current_].buffer = {};
    }
    if (!heap_.empty() && (!any_ || comes_before(heap_.front(), current_))) {
        const std::size_t first = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        if (any_) {
            heap_.push_back(current_);
            std::push_heap(heap_.begin(), heap_.end(), later);
        }
        current_ = first;
        any_ = true;
    }
    if (!any_ || error_ != 0) return false;
    out = sources_[current_].record;
    return true;
}

}  // namespace opline
