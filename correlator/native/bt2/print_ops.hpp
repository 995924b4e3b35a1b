// SPDX-License-Identifier: MIT
// Transition lists as text, for a sink that has a core of its own.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "core/core.hpp"

namespace opline::bt2 {

class OpPrinter {
  public:
    // "": standard output. Throws std::runtime_error if the file can't be written.
    explicit OpPrinter(const std::string &path);
    ~OpPrinter();
    OpPrinter(const OpPrinter &) = delete;
    OpPrinter &operator=(const OpPrinter &) = delete;
    // Prints the ops that the core has ready, and empties its tables.
    void print(Core &);

  private:
    std::FILE *file_;
    bool owned_;
    std::vector<std::string> strings_;
};

}  // namespace opline::bt2
