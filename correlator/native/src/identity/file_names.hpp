// SPDX-License-Identifier: MIT
// The paths of files that system calls name by file system and inode: as the recorder told them, or by the map of the
// file (extents.json).
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"

namespace opline {

class FileNames {
  public:
    static constexpr std::uint32_t kAnyHost = ~std::uint32_t{0};

    // `path`: pool id.
    void name(std::uint32_t host, std::uint32_t dev, std::uint64_t inode, std::uint32_t path) {
        if (inode != 0) paths_.put({inode, host_key(host, dev)}, path);
    }
    // Pool id of the path; 0: not known.
    std::uint32_t path(std::uint32_t host, std::uint32_t dev, std::uint64_t inode) const {
        if (paths_.empty()) return 0;
        const std::uint32_t *known = paths_.find({inode, host_key(host, dev)});
        if (!known) known = paths_.find({inode, host_key(kAnyHost, dev)});
        return known ? *known : 0;
    }

  private:
    struct FileInode {
        std::uint64_t number = 0, host_and_dev = 0;
        bool operator==(const FileInode &o) const { return number == o.number && host_and_dev == o.host_and_dev; }
    };
    struct FileInodeHash {
        std::uint64_t operator()(const FileInode &i) const { return mix64(i.number ^ mix64(i.host_and_dev)); }
    };
    FlatMap<FileInode, std::uint32_t, FileInodeHash> paths_;
};

}  // namespace opline
