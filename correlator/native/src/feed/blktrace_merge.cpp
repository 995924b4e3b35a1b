// SPDX-License-Identifier: MIT
#include "feed/blktrace_merge.hpp"

#include <algorithm>
#include <utility>

namespace opline::feed {

BlktraceMerge::BlktraceMerge(const std::vector<std::string_view> &files, bool unordered, Notes notes)
    : files_(files.begin(), files.end()), unordered_(unordered), notes_(std::move(notes)), next_(files.size()) {}

bool BlktraceMerge::after(std::size_t one, std::size_t other) const {
    if (next_[other].before(next_[one])) return true;
    return !next_[one].before(next_[other]) && one > other;
}

// The next event of a file; notes on the way are taken in.
bool BlktraceMerge::advance(std::size_t file) {
    while (files_[file].next(next_[file])) {
        if (!next_[file].is_note()) return true;
        notes_(next_[file], files_[file].swapped());
    }
    return false;
}

void BlktraceMerge::begin() {
    begun_ = true;
    for (std::size_t file = 0; file < files_.size(); ++file) {
        while (unordered_ && advance(file)) all_.push_back(next_[file]);
        if (!unordered_ && advance(file)) heap_.push_back(file);
    }
    std::stable_sort(all_.begin(), all_.end(),
                     [](const BlktraceRecord &a, const BlktraceRecord &b) { return a.before(b); });
}

const BlktraceRecord *BlktraceMerge::next() {
    const auto later = [this](std::size_t a, std::size_t b) { return after(a, b); };
    if (!begun_) {
        begin();
        std::make_heap(heap_.begin(), heap_.end(), later);
    } else if (!heap_.empty()) {  // the record of the last one has gone
        if (advance(heap_.back())) std::push_heap(heap_.begin(), heap_.end(), later);
        else heap_.pop_back();
    }
    for (const BlktraceFile &file : files_)
        if (file.other_version()) return nullptr;
    if (unordered_) return at_ == all_.size() ? nullptr : &all_[at_++];
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    return &next_[heap_.back()];
}

}  // namespace opline::feed
