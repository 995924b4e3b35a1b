// SPDX-License-Identifier: MIT
// The block models of a run: one for all, or of a joined run one for each host. Their bios and requests have one count.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "block/block.hpp"

namespace opline {

class HostBlocks {
  public:
    // `several`: of a joined run. `hooks`: of each model.
    HostBlocks(BlockMatch match, bool several, BlockModel::Hooks hooks)
        : match_(match), several_(several), hooks_(std::move(hooks)) {
        if (!several) add(0);
    }
    HostBlocks(const HostBlocks &) = delete;

    // The model of a host (pool id).
    BlockModel &here(std::uint32_t host) {
        if (!several_) return *models_.front().second;
        for (auto &[of, model] : models_)
            if (of == host) return *model;
        return add(host);
    }
    // The trace has block events, or could have block events. `converted`: some are perf's; perf's completions differ
    // from the issues (another length, no flushes).
    void expect(bool converted) {
        expected_ = true;
        converted_ = converted_ || converted;
    }
    bool expected() const { return expected_; }
    bool converted() const { return converted_; }
    void expect_wakes() { shared_.has_wakes = true; }
    // A completion is not assigned yet: wake-ups and ends of ops decide.
    bool any_undecided() const { return shared_.undecided != 0; }
    // Collectors deliver whole requests, known before the first event. In a joined run hosts differ.
    void whole() {
        if (!several_) models_.front().second->whole();
    }
    template <class Function>  // void(std::uint32_t host, BlockModel &); host 0: of all
    void each(Function function) const {
        for (const auto &[host, model] : models_) function(host, *model);
    }
    BlockCounts counts() const {
        BlockCounts sum;
        for (const auto &[host, model] : models_) sum.add(model->counts());
        return sum;
    }

  private:
    BlockModel &add(std::uint32_t host) {
        return *models_.emplace_back(host, std::make_unique<BlockModel>(match_, hooks_, &shared_)).second;
    }
    BlockMatch match_;
    bool several_, expected_ = false, converted_ = false;
    BlockModel::Hooks hooks_;
    BlockShared shared_;
    std::vector<std::pair<std::uint32_t, std::unique_ptr<BlockModel>>> models_;
};

}  // namespace opline
