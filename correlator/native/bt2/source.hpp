// SPDX-License-Identifier: MIT
// `source.opline.lttng`: the native reader as a babeltrace2 source, one output port per data stream, every field.
#pragma once
#include <babeltrace2/babeltrace.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ctf/trace.hpp"

namespace opline::bt2 {

struct SourceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An event class in trace IR, and how to decode its three structures.
struct EventShape {
    const bt_event_class *cls = nullptr;
    ctf::Walk common, specific, payload;  // type nullptr: none
    std::uint32_t registers = 0;
};

struct StreamShape {
    bt_stream_class *cls = nullptr;
    bool begin_times = false, end_times = false, discarded_events = false, discarded_packets = false;
    std::vector<bool> in_context;  // which members of the packet's context are fields of trace IR: those without a role
    std::map<std::uint64_t, EventShape> events;
};

// One trace, its classes, and its data streams as they are before the first event.
class SourceTrace {
  public:
    // `place`: where the trace lies below the folder that was given; "": it is that folder.
    SourceTrace(const std::string &path, const std::string &place, bt_self_component *self);
    ~SourceTrace();
    SourceTrace(const SourceTrace &) = delete;
    SourceTrace &operator=(const SourceTrace &) = delete;

    struct Output {
        const ctf::Trace *trace;
        const StreamShape *shape;
        std::unique_ptr<ctf::Stream> stream;
        const bt_stream *ir;
    };
    std::vector<Output> outputs;
    const std::vector<std::string> &complaints() const { return complaints_; }

  private:
    void make_clock(bt_self_component *self);
    void make_environment(const std::string &place);
    void make_stream_class(const ctf::StreamClassDecl &);
    void make_event_class(const ctf::EventDecl &);
    void make_streams();

    std::unique_ptr<ctf::Trace> trace_;
    std::map<std::uint64_t, StreamShape> shapes_;
    std::uint64_t event_ids_ = 0;
    bt_trace_class *trace_class_ = nullptr;
    bt_trace *ir_ = nullptr;
    bt_clock_class *clock_ = nullptr;
    std::vector<const bt_stream *> streams_;
    std::vector<std::string> complaints_;
};

// Integers met so far, by register: the lengths that arrays refer to.
using Lengths = std::map<std::int32_t, bt_field_class *>;
// A field class for a type; its reference is the caller's.
bt_field_class *field_class_of(bt_trace_class *, const ctf::Walk &, Lengths &);
// For a structure, with those of its members only that `wanted` says (empty: all).
bt_field_class *structure_of(bt_trace_class *, const ctf::Walk &, const std::vector<bool> &wanted, Lengths &);
// Decodes one field of that class; `field` nullptr: steps over it. False: the packet ends before.
bool fill(const ctf::Walk &, ctf::Cursor &, bt_field *field, std::vector<std::uint64_t> &registers);

// The component class's methods.
bt_component_class_initialize_method_status lttng_initialize(bt_self_component_source *,
                                                             bt_self_component_source_configuration *,
                                                             const bt_value *params, void *);
void lttng_finalize(bt_self_component_source *);
bt_message_iterator_class_initialize_method_status lttng_iterator_initialize(bt_self_message_iterator *,
                                                                             bt_self_message_iterator_configuration *,
                                                                             bt_self_component_port_output *);
void lttng_iterator_finalize(bt_self_message_iterator *);
bt_message_iterator_class_next_method_status lttng_next(bt_self_message_iterator *, bt_message_array_const,
                                                        std::uint64_t capacity, std::uint64_t *count);
bt_message_iterator_class_seek_beginning_method_status lttng_seek_beginning(bt_self_message_iterator *);
bt_message_iterator_class_can_seek_beginning_method_status lttng_can_seek_beginning(bt_self_message_iterator *,
                                                                                    bt_bool *);

}  // namespace opline::bt2
