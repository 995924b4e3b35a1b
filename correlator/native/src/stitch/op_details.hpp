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
    // From now on the file with this number has this name.
    void name_file(const FileNumber &n, const FileName &name) { file_names_.tell(n, name); }
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
