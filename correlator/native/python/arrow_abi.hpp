// SPDX-License-Identifier: MIT
// Arrow's C data interface and C stream interface: the three structures as their specification has them
// (https://arrow.apache.org/docs/format/CDataInterface.html), so that columns pass between DuckDB and the core without a
// package in between.
#pragma once

#include <cstdint>

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema **children;
    ArrowSchema *dictionary;
    void (*release)(ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;  // -1: not counted
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void **buffers;
    ArrowArray **children;
    ArrowArray *dictionary;
    void (*release)(ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *);
    int (*get_next)(ArrowArrayStream *, ArrowArray *);
    const char *(*get_last_error)(ArrowArrayStream *);
    void (*release)(ArrowArrayStream *);
    void *private_data;
};

namespace opline::python {

constexpr std::int64_t kArrowNullable = 2;                  // ARROW_FLAG_NULLABLE
constexpr const char *kArrowStream = "arrow_array_stream";  // name of a capsule with a stream

}  // namespace opline::python
