// SPDX-License-Identifier: MIT
// The paths of files that system calls name by file system and inode: as the recorder told them, or by the map of the
// file (extents.json). The inode number of a removed file goes to a new file, with another generation.
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"
#include "identity/file_name.hpp"

namespace opline {

// What a system call says of its file.
struct FileNumber {
    std::uint32_t host = 0, dev = 0;
    std::uint64_t inode = 0;
};

class FileNames {
  public:
    static constexpr std::uint32_t kAnyHost = ~std::uint32_t{0};

    // The file that has this number from here on. A path that was told of the same file stays.
    void tell(const FileNumber &n, const FileName &name) {
        if (n.inode != 0 && (name.path != 0 || told(n).generation != name.generation)) told_.put(key(n, 0), name);
    }
    // By its map. A map without a generation is of any file with this number; of two such files neither is known.
    void map(const FileNumber &n, const FileName &name) {
        if (n.inode == 0) return;
        const FileKey any = key(n, 0);
        mapped_.put(any, mapped_.find(any) ? 0 : name.path);
        if (name.generation != 0) mapped_.put(key(n, name.generation), name.path);
    }
    // The file that has this number now; empty: nothing is told.
    FileName told(const FileNumber &n) const {
        const FileName *found = told_.empty() ? nullptr : told_.find(key(n, 0));
        return found ? *found : FileName{};
    }
    // Pool id of the path; 0: not known. `then`: what was told of the file when the op began.
    std::uint32_t path(const FileNumber &n, const FileName &then) const {
        if (then.path != 0) return then.path;
        const FileName now = told(n);
        if (now.generation == then.generation && now.path != 0) return now.path;
        const std::uint32_t *known = mapped_.empty() ? nullptr : mapped_.find(key(n, then.generation));
        if (!known && !mapped_.empty()) known = mapped_.find(key({kAnyHost, n.dev, n.inode}, then.generation));
        return known ? *known : 0;
    }

  private:
    struct FileKey {
        std::uint64_t number = 0, host_and_dev = 0;
        std::uint32_t generation = 0;
        bool operator==(const FileKey &o) const {
            return number == o.number && host_and_dev == o.host_and_dev && generation == o.generation;
        }
    };
    struct FileKeyHash {
        std::uint64_t operator()(const FileKey &k) const {
            return mix64(k.number ^ mix64(k.host_and_dev ^ k.generation));
        }
    };
    static FileKey key(const FileNumber &n, std::uint32_t generation) {
        return {n.inode, host_key(n.host, n.dev), generation};
    }
    FlatMap<FileKey, FileName, FileKeyHash> told_;
    FlatMap<FileKey, std::uint32_t, FileKeyHash> mapped_;
};

}  // namespace opline
