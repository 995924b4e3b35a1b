// SPDX-License-Identifier: MIT
#include "link/processes.hpp"

#include <algorithm>
#include <array>

namespace opline {
namespace {

constexpr std::array<std::string_view, 36> kKernelNames = {
    "kworker/",     "kthreadd", "ksoftirqd/",    "swapper/",   "kswapd",   "kcompactd",  "khugepaged",  "jbd2/",
    "ext4lazyinit", "kmmpd-",   "xfsaild/",      "btrfs-",     "f2fs_gc-", "f2fs_ckpt-", "f2fs_flush-", "f2fs_discard-",
    "segctord",     "gfs2_",    "nfsd",          "txg_",       "z_wr_",    "z_rd_",      "arc_",        "dmcrypt_",
    "kcryptd",      "kcopyd",   "dm-",           "dm_",        "raid5wq",  "bcache_",    "bch_",        "drbd_",
    "scsi_eh_",     "io_wqe_",  "io_wq_manager", "io_uring-sq"};

constexpr std::string_view kDigits = "0123456789";

// loop0, md127_raid1: the base, a number, and the rest.
bool numbered(std::string_view name, std::string_view base, std::string_view behind) {
    if (name.substr(0, base.size()) != base) return false;
    name.remove_prefix(base.size());
    const auto past = name.find_first_not_of(kDigits);
    const auto rest = past == name.npos ? std::string_view() : name.substr(past);
    return past != 0 && !name.empty() && (behind.empty() ? rest.empty() : rest.substr(0, behind.size()) == behind);
}

}  // namespace

bool Processes::kernel_name(std::string_view name) {
    return numbered(name, "loop", "") || numbered(name, "md", "_") ||
           std::any_of(kKernelNames.begin(), kKernelNames.end(),
                       [name](std::string_view begin) { return name.substr(0, begin.size()) == begin; });
}

}  // namespace opline
