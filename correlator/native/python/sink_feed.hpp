// SPDX-License-Identifier: MIT
// The slow way into a consumer of events, for text formats and tests: one call per event, fields as Python values.
// What the methods take stands where core_type.cpp lists them.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <vector>

#include "event/event.hpp"

namespace opline::python {

struct SinkFeed {
    explicit SinkFeed(EventSink &consumer) : to(consumer) {}
    EventSink &to;
    std::vector<std::size_t> wanted;  // per class that came through feed_class(): how many values an event has
    std::size_t streams = 0;
};

PyObject *feed_class(SinkFeed &, PyObject *args);
PyObject *feed_stream(SinkFeed &, PyObject *args);
PyObject *feed_event(SinkFeed &, PyObject *args);
PyObject *feed_discarded(SinkFeed &, PyObject *args);

// One of these as a method of an object that has such a feed.
template <SinkFeed &(*feed_of)(PyObject *), PyObject *(*feed)(SinkFeed &, PyObject *)>
PyObject *fed(PyObject *self, PyObject *args) {
    return feed(feed_of(self), args);
}

}  // namespace opline::python
