// SPDX-License-Identifier: MIT
#include "base/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opline {
namespace {

constexpr std::size_t kReadTogether = std::size_t{8} << 20;  // of all pieces during the merge
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
        merge_.sources.emplace_back();
        merge_.sources[0].buffer.swap(buffer_);
        merge_.sources[0].end = used_;
    } else {
        if (used_ != 0) spill();
        merge_.read_size = std::max(kReadLeast, kReadTogether / pieces_.size());
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            merge_.sources.emplace_back();
            merge_.sources[i].file_at = i == 0 ? 0 : pieces_[i - 1];
            merge_.sources[i].file_end = pieces_[i];
        }
    }
    buffer_ = {};
    sorted_ = {};
    index_ = {};
    for (std::size_t i = 0; i < merge_.sources.size(); ++i)
        if (advance(merge_.sources[i])) merge_.heap.push_back(i);
    const auto later = [this](std::size_t a, std::size_t b) { return comes_before(b, a); };
    std::make_heap(merge_.heap.begin(), merge_.heap.end(), later);
}

// The source's next record; false: none left.
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
        if (s.buffer.size() < std::max(merge_.read_size, wanted)) s.buffer.resize(std::max(merge_.read_size, wanted));
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
    if (merge_.any) {
        merge_.any = advance(merge_.sources[merge_.current]);
        if (!merge_.any) merge_.sources[merge_.current].buffer = {};
    }
    if (!merge_.heap.empty() && (!merge_.any || comes_before(merge_.heap.front(), merge_.current))) {
        const std::size_t first = merge_.heap.front();
        std::pop_heap(merge_.heap.begin(), merge_.heap.end(), later);
        merge_.heap.pop_back();
        if (merge_.any) {
            merge_.heap.push_back(merge_.current);
            std::push_heap(merge_.heap.begin(), merge_.heap.end(), later);
        }
        merge_.current = first;
        merge_.any = true;
    }
    if (!merge_.any || error_ != 0) return false;
    out = merge_.sources[merge_.current].record;
    return true;
}

}  // namespace opline
