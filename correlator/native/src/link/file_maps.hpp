// SPDX-License-Identifier: MIT
// Where files lie on disk (docs/internals/stitching.md, "Extents"): from sectors of a disk to sectors of a file.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "identity/hosts.hpp"
#include "model/plan.hpp"

namespace opline {

// A run of sectors on a device, as in block events.
struct Sectors {
    std::uint32_t dev = 0;
    std::uint64_t first = 0;
    std::uint32_t count = 0;
};

// Part of a bio in one extent of one file.
struct MappedPart {
    std::uint32_t file = 0;
    std::uint64_t in_bio = 0;   // the bio's sectors before the part
    std::uint64_t in_file = 0;  // first sector of the file
    std::uint32_t sectors = 0;
};

constexpr std::uint32_t kNoFile = ~std::uint32_t{0};  // unknown file
constexpr std::uint32_t kNoMap = kNoFile - 1;         // known file without a map

class FileMaps {
  public:
    // `hosts`: for a joined run, where each file belongs to one host.
    explicit FileMaps(const std::vector<FileSpec> &, const Hosts *hosts = nullptr);

    bool empty() const { return extents_[0].empty() && extents_[1].empty(); }
    std::size_t size() const { return files_.size(); }
    // The host's only file with a map; kNoFile: none, or several.
    std::uint32_t sole(std::uint32_t host) const;
    // The parts of the run in files, in order. `within`: the same run inside its partition; equal to the run without a
    // known partition. `out` is overwritten.
    void find(const Sectors &run, const Sectors &within, std::vector<MappedPart> &out) const;
    // Whether the file has the sector; kNoFile: whether any file has the sector.
    bool has(std::uint32_t file, std::uint64_t in_file) const;
    // The file with this path on the host; kNoMap: none.
    std::uint32_t by_path(std::uint32_t host, std::string_view path) const;
    // The file with this file system, inode and generation of the inode (0: unknown). kNoMap: a file without a map;
    // kNoFile: unknown, as some maps have no inode.
    std::uint32_t by_inode(std::uint32_t host, std::uint32_t dev, std::uint64_t inode, std::uint32_t generation) const;
    // A file of the file system with number `dev` has a map.
    bool any_of(std::uint32_t host, std::uint32_t dev) const;
    bool changed(std::uint32_t file) const { return files_[file].changed; }
    const std::string &path(std::uint32_t file) const { return files_[file].path; }
    // An op's data was seen on the device. A file without a named disk counts as on the disk with most of its data.
    void seen(std::uint32_t file, std::uint32_t dev);
    // No disk was named for the file, and several disks had its data.
    bool doubtful(std::uint32_t file) const { return files_[file].votes.size() > 1; }

  private:
    using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // of a file, [first, last), none overlap
    static Ranges merged(Ranges);
    struct Extent {
        std::uint32_t disk;
        std::uint32_t file;
        std::uint64_t physical, in_file, sectors;
    };
    struct File {
        std::string path;
        std::uint32_t host = 0;  // pool id; 0: run with one host
        std::uint32_t dev = 0;
        std::uint64_t inode = 0;
        std::uint32_t generation = 0;
        bool of(std::uint32_t some_host) const { return host == 0 || host == some_host; }
        bool changed = false, has_disk = false;
        std::vector<std::pair<std::uint32_t, std::uint64_t>> votes;  // (device, how often)
        Ranges ranges;
    };
    bool fits(const File &, std::uint32_t dev) const;
    void find_in(const std::vector<Extent> &, const Sectors &, bool by_disk, std::vector<MappedPart> &) const;

    const Hosts *hosts_;
    std::vector<File> files_;
    Ranges any_;                      // of any file
    std::vector<Extent> extents_[2];  // [0]: with a known disk; [1]: without, disk is 0. By (disk, physical)
};

}  // namespace opline
