// SPDX-License-Identifier: MIT
#include "print_ops.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <stdexcept>

namespace opline::bt2 {
namespace {

const Column &column(const Table &t, const char *name) {
    for (const auto &c : t.columns)
        if (c.name == name) return c;
    throw std::runtime_error(std::string("no column ") + name + " in table " + t.name);
}

std::string text(const Column &c, std::size_t row) { return c.present(row) ? std::string(c.get_text(row)) : "-"; }

}  // namespace

OpPrinter::OpPrinter(const std::string &path) : file_(stdout), owned_(!path.empty()) {
    if (owned_) file_ = std::fopen(path.c_str(), "w");
    if (!file_) throw std::runtime_error("cannot write \"" + path + "\": " + std::strerror(errno));
}

OpPrinter::~OpPrinter() {
    if (owned_) std::fclose(file_);
    else std::fflush(file_);
}

void OpPrinter::print(Core &core) {
    for (auto &s : core.take_new_strings()) strings_.push_back(std::move(s));
    const Table *ops = nullptr, *transitions = nullptr;
    for (auto &t : core.tables()) {
        if (t.name == "ops") ops = &t;
        if (t.name == "transitions") transitions = &t;
    }
    if (ops && transitions && ops->rows() > 0) {
        const Column &id = column(*ops, "op_id"), &cls = column(*ops, "class"), &object = column(*ops, "object"),
                     &latency = column(*ops, "latency_ns"), &begin = column(*ops, "begin_ns");
        const Column &owner = column(*transitions, "op_id"), &ts = column(*transitions, "ts_ns"),
                     &point = column(*transitions, "point"), &tid = column(*transitions, "tid");
        std::size_t t = 0;
        for (std::size_t row = 0; row < ops->rows(); ++row) {
            const auto op = id.get<std::int64_t>(row);
            const auto begin_ns = begin.get<std::int64_t>(row);
            std::fprintf(file_, "op %" PRId64 " %s %s", op,
                         cls.present(row) ? strings_[cls.get<std::uint32_t>(row)].c_str() : "-",
                         text(object, row).c_str());
            if (latency.present(row)) std::fprintf(file_, " latency_ns=%" PRId64 "\n", latency.get<std::int64_t>(row));
            else std::fprintf(file_, " incomplete\n");
            for (; t < transitions->rows() && owner.get<std::int64_t>(t) == op; ++t)
                std::fprintf(file_, "  %12" PRId64 " %-32s %" PRId64 "\n", ts.get<std::int64_t>(t) - begin_ns,
                             strings_[point.get<std::uint32_t>(t)].c_str(), tid.get<std::int64_t>(t));
        }
    }
    for (auto &table : core.tables()) table.clear();
}

}  // namespace opline::bt2
