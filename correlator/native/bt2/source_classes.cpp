// SPDX-License-Identifier: MIT
// A trace's metadata as trace IR: trace, clock, stream and event classes, streams.
#include <algorithm>

#include "source.hpp"

#include "ctf/survey.hpp"

namespace opline::bt2 {
namespace {

using ctf::FieldRole;
using ctf::Type;

template <class T>
T *made(T *object, const char *what) {
    if (!object) throw SourceError(std::string("cannot make ") + what);
    return object;
}

const ctf::Compiler::SlotOf kNothing = [](const Type &, bool) { return -1; };

bool has_role(const Type &t, FieldRole role) {
    if (t.roles & ctf::bit(role)) return true;
    for (const auto &m : t.members)
        if (has_role(*m.type, role)) return true;
    return false;
}

// Any of the members' meanings belong to babeltrace2's messages, not to fields.
bool is_field(const Type &t) {
    for (unsigned r = 0; r < static_cast<unsigned>(FieldRole::kCount); ++r)
        if (static_cast<FieldRole>(r) != FieldRole::kCpu && has_role(t, static_cast<FieldRole>(r))) return false;
    return true;
}

}  // namespace

SourceTrace::SourceTrace(const std::string &path, const std::string &place, bt_self_component *self)
    : trace_(ctf::load_trace(path)) {
    trace_class_ = made(bt_trace_class_create(self), "a trace class");
    bt_trace_class_set_assigns_automatic_stream_class_id(trace_class_, BT_FALSE);
    make_clock(self);
    for (const auto &[id, s] : trace_->meta.streams) make_stream_class(s);
    for (const auto &e : trace_->meta.events) make_event_class(e);
    ir_ = made(bt_trace_create(trace_class_), "a trace");
    make_environment(place);
    make_streams();
}

SourceTrace::~SourceTrace() {
    for (auto s : streams_) bt_stream_put_ref(s);
    for (auto &[id, shape] : shapes_) bt_stream_class_put_ref(shape.cls);
    bt_trace_put_ref(ir_);
    bt_clock_class_put_ref(clock_);
    bt_trace_class_put_ref(trace_class_);
}

void SourceTrace::make_clock(bt_self_component *self) {
    const ctf::ClockDecl &c = trace_->clock();
    clock_ = made(bt_clock_class_create(self), "a clock class");
    if (!c.name.empty()) bt_clock_class_set_name(clock_, c.name.c_str());
    if (!c.description.empty()) bt_clock_class_set_description(clock_, c.description.c_str());
    bt_clock_class_set_frequency(clock_, c.frequency);
    bt_clock_class_set_precision(clock_, c.precision);
    // LTTng's CTF 1.8 does not say that its clocks count from the Unix epoch; source.ctf.fs knows it by the tracer,
    // too.
    const bool lttng = trace_->env("tracer_name").rfind("lttng-", 0) == 0;
    bt_clock_class_set_origin_is_unix_epoch(clock_, c.unix_epoch || lttng ? BT_TRUE : BT_FALSE);
    const auto frequency = static_cast<std::int64_t>(c.frequency);
    std::int64_t seconds = c.offset / frequency, cycles = c.offset % frequency;
    if (cycles < 0) {
        cycles += frequency;
        --seconds;
    }
    bt_clock_class_set_offset(clock_, c.offset_s + seconds, static_cast<std::uint64_t>(cycles));
    if (const auto uuid = ctf::parse_uuid(c.uuid)) bt_clock_class_set_uuid(clock_, uuid->data());
}

void SourceTrace::make_environment(const std::string &place) {
    for (const auto &[name, value] : trace_->meta.env) {
        if (value.is_number) bt_trace_set_environment_entry_integer(ir_, name.c_str(), std::stoll(value.text));
        else bt_trace_set_environment_entry_string(ir_, name.c_str(), value.text.c_str());
    }
    if (const auto uuid = ctf::parse_uuid(trace_->meta.uuid)) bt_trace_set_uuid(ir_, uuid->data());
    // as source.ctf.fs calls it
    const std::string host = trace_->env("hostname"),
                      name = host.empty() || place.empty() ? host + place : host + "/" + place;
    if (!name.empty()) bt_trace_set_name(ir_, name.c_str());
}

void SourceTrace::make_stream_class(const ctf::StreamClassDecl &decl) {
    StreamShape &shape = shapes_[decl.id];
    shape.cls = made(bt_stream_class_create_with_id(trace_class_, decl.id), "a stream class");
    bt_stream_class_set_assigns_automatic_event_class_id(shape.cls, BT_FALSE);
    bt_stream_class_set_assigns_automatic_stream_id(shape.cls, BT_FALSE);
    bt_stream_class_set_default_clock_class(shape.cls, clock_);
    if (decl.packet_context) {
        const Type &context = *decl.packet_context;
        shape.begin_times = has_role(context, FieldRole::kBegin);
        shape.end_times = has_role(context, FieldRole::kEnd);
        shape.discarded_events = has_role(context, FieldRole::kDiscarded) && shape.begin_times && shape.end_times;
        shape.discarded_packets = has_role(context, FieldRole::kSequence) && shape.begin_times && shape.end_times;
    }
    bt_stream_class_set_supports_packets(shape.cls, BT_TRUE, shape.begin_times ? BT_TRUE : BT_FALSE,
                                         shape.end_times ? BT_TRUE : BT_FALSE);
    bt_stream_class_set_supports_discarded_events(shape.cls, shape.discarded_events ? BT_TRUE : BT_FALSE,
                                                  shape.discarded_events ? BT_TRUE : BT_FALSE);
    bt_stream_class_set_supports_discarded_packets(shape.cls, shape.discarded_packets ? BT_TRUE : BT_FALSE,
                                                   shape.discarded_packets ? BT_TRUE : BT_FALSE);
    if (decl.packet_context) {
        for (const auto &m : decl.packet_context->members) shape.in_context.push_back(is_field(*m.type));
        Lengths lengths;
        bt_field_class *fc =
            structure_of(trace_class_, trace_->layout.context_walks.at(decl.id), shape.in_context, lengths);
        bt_stream_class_set_packet_context_field_class(shape.cls, fc);
        bt_field_class_put_ref(fc);
    }
    if (decl.event_context) {
        ctf::Compiler compiler;
        ctf::Walk walk;
        compiler.add(decl.event_context, ctf::Location::Root::kCommonContext, kNothing, &walk);
        Lengths lengths;
        bt_field_class *fc = field_class_of(trace_class_, walk, lengths);
        bt_stream_class_set_event_common_context_field_class(shape.cls, fc);
        bt_field_class_put_ref(fc);
    }
}

void SourceTrace::make_event_class(const ctf::EventDecl &decl) {
    const ctf::StreamClassDecl &stream = trace_->stream_class(decl);
    StreamShape &shape = shapes_.at(decl.stream_id);
    if (shape.events.count(decl.id)) throw SourceError("two event classes with the id " + std::to_string(decl.id));
    EventShape &event = shape.events[decl.id];
    // The program that steps over such an event, and the tree that decodes it.
    ctf::Compiler compiler;
    compiler.add(stream.event_context, ctf::Location::Root::kCommonContext, kNothing, &event.common);
    compiler.add(decl.context, ctf::Location::Root::kSpecificContext, kNothing, &event.specific);
    compiler.add(decl.payload, ctf::Location::Root::kPayload, kNothing, &event.payload);
    ctf::EventClass &place = trace_->place(decl, event_ids_);
    place.cls = static_cast<std::uint32_t>(decl.id);
    place.program = compiler.take();
    event.registers = place.program.registers;
    ctf::StreamClass &cls = trace_->classes[decl.stream_id];
    cls.registers = std::max(cls.registers, event.registers);

    Lengths lengths;
    bt_event_class *ir = made(bt_event_class_create_with_id(shape.cls, decl.id), "an event class");
    event.cls = ir;
    if (!decl.name.empty()) bt_event_class_set_name(ir, decl.name.c_str());
    if (!decl.emf_uri.empty()) bt_event_class_set_emf_uri(ir, decl.emf_uri.c_str());
    if (decl.log_level && *decl.log_level >= 0 && *decl.log_level <= BT_EVENT_CLASS_LOG_LEVEL_DEBUG)
        bt_event_class_set_log_level(ir, static_cast<bt_event_class_log_level>(*decl.log_level));
    if (decl.context) {
        bt_field_class *fc = field_class_of(trace_class_, event.specific, lengths);
        bt_event_class_set_specific_context_field_class(ir, fc);
        bt_field_class_put_ref(fc);
    }
    if (decl.payload) {
        bt_field_class *fc = field_class_of(trace_class_, event.payload, lengths);
        bt_event_class_set_payload_field_class(ir, fc);
        bt_field_class_put_ref(fc);
    }
    bt_event_class_put_ref(ir);  // the stream class has it
}

void SourceTrace::make_streams() {
    ctf::ReadLosses losses;
    for (auto &stream : ctf::Survey().streams_of(*trace_, losses)) {
        StreamShape &shape = shapes_.at(stream->stream_id);
        stream->cls = &trace_->classes.at(stream->stream_id);
        stream->prepare();
        bt_stream *ir = made(bt_stream_create_with_id(shape.cls, ir_, stream->decl.instance), "a stream");
        bt_stream_set_name(ir, stream->decl.path.c_str());
        streams_.push_back(ir);
        outputs.push_back({trace_.get(), &shape, std::move(stream), ir});
    }
    complaints_ = losses.messages;
}

}  // namespace opline::bt2
