// SPDX-License-Identifier: MIT
// What an op is about, as its points say: class, object, file, place, length; its bytes in flight and its syncs.
#pragma once
#include "identity/file_names.hpp"
#include "stitch/op_lives.hpp"

namespace opline {

class OpDetails {
  public:
    OpDetails(Stitching &, OpLives &);

    void skip_objects() { with_objects_ = false; }
    void keep_objects() { with_objects_ = true; }
    // From now on the file has this path (pool id).
    void name_file(std::uint32_t host, std::uint32_t dev, std::uint64_t inode, std::uint32_t path) {
        file_names_.name(host, dev, inode, path);
    }
    std::uint32_t point_name(BoundPoint &, const PointSpec &, const Slot &value);
    void decorate(Op &, const Passage &);
    void name_late(Op &, std::int64_t first_tid);  // for a settling op

  private:
    void decorate_with_file(Op &, const Passage &);

    Stitching &s_;
    OpLives &lives_;
    FileNames file_names_;
    bool with_objects_ = true;
};

}  // namespace opline
