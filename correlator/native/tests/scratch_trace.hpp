// SPDX-License-Identifier: MIT
// A folder in memory (/dev/shm, else /tmp) that holds one trace: written by a test, removed at its end.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace opline {

class ScratchTrace {
  public:
    ScratchTrace() {
        const bool shm = std::filesystem::is_directory("/dev/shm");
        std::string name = shm ? "/dev/shm/opline-ctf-XXXXXX" : "/tmp/opline-ctf-XXXXXX";
        if (!::mkdtemp(name.data())) throw std::runtime_error("no folder for a trace");
        path_ = name;
    }
    ~ScratchTrace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchTrace(const ScratchTrace &) = delete;
    ScratchTrace &operator=(const ScratchTrace &) = delete;
    void write(const std::string &name, std::string_view bytes) const {
        std::ofstream out(path_ / name, std::ios::binary | std::ios::trunc);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

}  // namespace opline
