// SPDX-License-Identifier: MIT
#include "link/file_maps.hpp"

#include <algorithm>
#include <tuple>

namespace opline {

FileMaps::FileMaps(const std::vector<FileSpec> &specs, const Hosts *hosts) : hosts_(hosts) {
    for (const auto &spec : specs) {
        const auto file = static_cast<std::uint32_t>(files_.size());
        File &f = files_.emplace_back();
        f.path = spec.path;
        f.host = spec.host;
        f.dev = spec.dev;
        f.inode = spec.inode;
        f.generation = spec.generation;
        f.changed = spec.changed;
        f.has_disk = spec.disk.has_value();
        for (const auto &e : spec.extents) {
            extents_[f.has_disk ? 0 : 1].push_back(
                {spec.disk.value_or(0), file, spec.start_sector + e.physical, e.logical, e.sectors});
            f.ranges.emplace_back(e.logical, e.logical + e.sectors);
        }
        any_.insert(any_.end(), f.ranges.begin(), f.ranges.end());
        f.ranges = merged(std::move(f.ranges));
    }
    any_ = merged(std::move(any_));
    for (auto &extents : extents_)
        std::sort(extents.begin(), extents.end(), [](const Extent &a, const Extent &b) {
            return std::tie(a.disk, a.physical, a.file) < std::tie(b.disk, b.physical, b.file);
        });
}

FileMaps::Ranges FileMaps::merged(Ranges ranges) {
    std::sort(ranges.begin(), ranges.end());
    Ranges out;
    for (const auto &r : ranges)
        if (!out.empty() && r.first <= out.back().second) out.back().second = std::max(out.back().second, r.second);
        else out.push_back(r);
    return out;
}

bool FileMaps::fits(const File &f, std::uint32_t dev) const {
    if (f.has_disk) return true;
    if (hosts_ && !f.of(hosts_->of_device(dev))) return false;
    std::uint64_t most = 0, here = 0;
    for (const auto &[device, count] : f.votes) {
        most = std::max(most, count);
        if (device == dev) here = count;
    }
    return here * 4 >= most;
}

void FileMaps::find_in(const std::vector<Extent> &extents, const Sectors &run, bool by_disk,
                       std::vector<MappedPart> &out) const {
    const std::uint32_t disk = by_disk ? run.dev : 0;
    const std::uint64_t last = run.first + run.count;
    auto it = std::upper_bound(extents.begin(), extents.end(), std::make_pair(disk, run.first),
                               [](const auto &at, const Extent &e) { return at < std::make_pair(e.disk, e.physical); });
    if (it != extents.begin() && std::prev(it)->disk == disk) --it;
    for (; it != extents.end() && it->disk == disk && it->physical < last; ++it) {
        const std::uint64_t from = std::max(run.first, it->physical), to = std::min(last, it->physical + it->sectors);
        if (from >= to || !fits(files_[it->file], run.dev)) continue;
        out.push_back(
            {it->file, from - run.first, it->in_file + (from - it->physical), static_cast<std::uint32_t>(to - from)});
    }
}

void FileMaps::find(const Sectors &run, const Sectors &within, std::vector<MappedPart> &out) const {
    out.clear();
    if (run.count == 0) return;
    find_in(extents_[0], run, true, out);
    if (out.empty()) find_in(extents_[1], within, false, out);
}

bool FileMaps::has(std::uint32_t file, std::uint64_t in_file) const {
    if (file == kNoMap) return false;
    const Ranges &ranges = file == kNoFile ? any_ : files_[file].ranges;
    auto it = std::upper_bound(ranges.begin(), ranges.end(), std::make_pair(in_file, ~std::uint64_t{0}));
    return it != ranges.begin() && in_file < std::prev(it)->second;
}

std::uint32_t FileMaps::sole(std::uint32_t host) const {
    std::uint32_t found = kNoFile;
    for (std::uint32_t i = 0; i < files_.size(); ++i)
        if (files_[i].of(host)) {
            if (found != kNoFile) return kNoFile;
            found = i;
        }
    return found;
}

std::uint32_t FileMaps::by_path(std::uint32_t host, std::string_view path) const {
    for (std::uint32_t i = 0; i < files_.size(); ++i)
        if (files_[i].path == path && files_[i].of(host)) return i;
    return kNoMap;
}

std::uint32_t FileMaps::by_inode(std::uint32_t host, std::uint32_t dev, std::uint64_t inode,
                                 std::uint32_t generation) const {
    std::uint32_t otherwise = kNoMap;
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
        if (!files_[i].of(host)) continue;
        const bool other = generation != 0 && files_[i].generation != 0 && files_[i].generation != generation;
        if (files_[i].inode == inode && files_[i].dev == dev && !other) return i;
        if (files_[i].inode == 0) otherwise = kNoFile;
    }
    return otherwise;
}

bool FileMaps::any_of(std::uint32_t host, std::uint32_t dev) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const File &f) { return f.inode != 0 && f.dev == dev && f.of(host); });
}

void FileMaps::seen(std::uint32_t file, std::uint32_t dev) {
    File &f = files_[file];
    if (f.has_disk) return;
    for (auto &[device, count] : f.votes)
        if (device == dev) {
            ++count;
            return;
        }
    if (f.votes.size() < 8) f.votes.emplace_back(dev, 1);
}

}  // namespace opline
