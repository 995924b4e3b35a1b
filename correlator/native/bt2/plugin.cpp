// SPDX-License-Identifier: MIT
// The babeltrace2 plug-in `opline`: component classes `source.opline.lttng` (source.cpp) and `sink.opline.ops`.
//
// Parameters of the sink:
//   core      address of an opline::EventSink made by the same build (integer), with
//   cookie    the build's cookie (string): what comes out is the owner's business;
//   plan      a compiled op model (string, `opline model compile`), instead of `core`: the component has a core of its
//             own and prints every op's transition list to
//   path      a file (string; default: standard output);
//   tolerant  true: a stream that can't be read to its end is counted, and the others are read on (boolean; default:
//             false);
//   damaged   streams that are known to end too early: a map of stream name to reason;
//   rests     packets of which the end was cut off: a map of stream name to a list of their numbers, from 0.
//
// Connect one output port of source.ctf.fs to each input port: the component merges by the raw clock itself. Behind a
// muxer it works too, but then events come in the muxer's order.
#include <cstdio>
#include <exception>

#include "base/cookie.hpp"
#include "core/core.hpp"
#include "print_ops.hpp"
#include "sink.hpp"
#include "source.hpp"

namespace {

using opline::bt2::Port;
using opline::bt2::SinkError;

constexpr std::uint64_t kEventsPerConsume = 16384;

struct Sink {
    opline::EventSink *consumer = nullptr;
    std::unique_ptr<opline::Core> own_core;
    std::unique_ptr<opline::bt2::OpPrinter> printer;
    std::vector<std::unique_ptr<Port>> ports;
    std::vector<Port *> waiting;  // not yet at an event
    opline::Merge<Port> merge;
    std::vector<std::uint32_t> ranks;
    std::uint64_t inputs = 0;
    opline::bt2::Clocks clocks;
    opline::bt2::Classes classes;
    opline::bt2::Damage damage;
    bool started = false;

    std::uint32_t rank_of(const Port *port) const {
        for (std::size_t i = 0; i < ports.size(); ++i)
            if (ports[i].get() == port) return ranks[i];
        return 0;
    }
};

Sink &sink_of(bt_self_component_sink *self) {
    return *static_cast<Sink *>(bt_self_component_get_data(bt_self_component_sink_as_self_component(self)));
}

void add_port(bt_self_component_sink *self, Sink &sink) {
    const std::string name = "in" + std::to_string(sink.inputs++);
    if (bt_self_component_sink_add_input_port(self, name.c_str(), nullptr, nullptr) !=
        BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
        throw SinkError("cannot add the input port " + name);
}

std::string text_param(const bt_value *params, const char *name) {
    const bt_value *v = bt_value_map_borrow_entry_value_const(params, name);
    if (!v) return {};
    if (!bt_value_is_string(v)) throw SinkError(std::string("parameter ") + name + " is to be a string");
    return bt_value_string_get(v);
}

bt_value_map_foreach_entry_const_func_status add_known_damage(const char *name, const bt_value *why, void *damage) {
    if (bt_value_is_string(why)) static_cast<opline::bt2::Damage *>(damage)->known[name] = bt_value_string_get(why);
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
}

bt_value_map_foreach_entry_const_func_status add_rests(const char *name, const bt_value *packets, void *damage) {
    if (!bt_value_is_array(packets)) return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
    auto &rests = static_cast<opline::bt2::Damage *>(damage)->rests[name];
    for (std::uint64_t i = 0; i < bt_value_array_get_length(packets); ++i) {
        const bt_value *packet = bt_value_array_borrow_element_by_index_const(packets, i);
        if (bt_value_is_signed_integer(packet))
            rests.push_back(static_cast<std::uint64_t>(bt_value_integer_signed_get(packet)));
    }
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
}

void configure(Sink &sink, const bt_value *params) {
    if (const bt_value *tolerant = bt_value_map_borrow_entry_value_const(params, "tolerant")) {
        if (!bt_value_is_bool(tolerant)) throw SinkError("parameter tolerant is to be a boolean");
        sink.damage.tolerant = bt_value_bool_get(tolerant) == BT_TRUE;
    }
    if (const bt_value *damaged = bt_value_map_borrow_entry_value_const(params, "damaged")) {
        if (!bt_value_is_map(damaged)) throw SinkError("parameter damaged is to be a map");
        bt_value_map_foreach_entry_const(damaged, add_known_damage, &sink.damage);
    }
    if (const bt_value *rests = bt_value_map_borrow_entry_value_const(params, "rests")) {
        if (!bt_value_is_map(rests)) throw SinkError("parameter rests is to be a map");
        bt_value_map_foreach_entry_const(rests, add_rests, &sink.damage);
    }
    if (const bt_value *core = bt_value_map_borrow_entry_value_const(params, "core")) {
        if (text_param(params, "cookie") != opline::build_cookie())
            throw SinkError("the core was made by another build of opline: build anew");
        std::uint64_t address = 0;
        if (bt_value_is_unsigned_integer(core)) address = bt_value_integer_unsigned_get(core);
        else if (bt_value_is_signed_integer(core))
            address = static_cast<std::uint64_t>(bt_value_integer_signed_get(core));
        if (address == 0) throw SinkError("parameter core is to be an address");
        sink.consumer = reinterpret_cast<opline::EventSink *>(static_cast<std::uintptr_t>(address));
        return;
    }
    const std::string plan = text_param(params, "plan");
    if (plan.empty()) throw SinkError("parameter plan is wanted: the op model as `opline model compile` prints it");
    sink.own_core = std::make_unique<opline::Core>(plan);
    sink.consumer = sink.own_core.get();
    sink.printer = std::make_unique<opline::bt2::OpPrinter>(text_param(params, "path"));
}

// Runs f; what it throws becomes a cause of babeltrace2's error.
template <class Status, class F>
Status guarded(bt_self_component_sink *self, Status failed, F &&f) {
    try {
        return f();
    } catch (const std::exception &e) {
        BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(bt_self_component_sink_as_self_component(self), "%s",
                                                            e.what());
    }
    return failed;
}

bt_component_class_initialize_method_status ops_initialize(bt_self_component_sink *self,
                                                           bt_self_component_sink_configuration *,
                                                           const bt_value *params, void *) {
    return guarded(self, BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR, [&] {
        auto sink = std::make_unique<Sink>();
        configure(*sink, params);
        add_port(self, *sink);
        bt_self_component_set_data(bt_self_component_sink_as_self_component(self), sink.release());
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
    });
}

void ops_finalize(bt_self_component_sink *self) { delete &sink_of(self); }

// There is always one port more than is connected.
bt_component_class_port_connected_method_status ops_port_connected(bt_self_component_sink *self,
                                                                   bt_self_component_port_input *,
                                                                   const bt_port_output *) {
    return guarded(self, BT_COMPONENT_CLASS_PORT_CONNECTED_METHOD_STATUS_ERROR, [&] {
        add_port(self, sink_of(self));
        return BT_COMPONENT_CLASS_PORT_CONNECTED_METHOD_STATUS_OK;
    });
}

bt_component_class_sink_graph_is_configured_method_status ops_configured(bt_self_component_sink *self) {
    return guarded(self, BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_ERROR, [&] {
        Sink &sink = sink_of(self);
        for (std::uint64_t i = 0; i < sink.inputs; ++i) {
            auto port = bt_self_component_sink_borrow_input_port_by_index(self, i);
            if (!bt_port_is_connected(bt_port_input_as_port_const(bt_self_component_port_input_as_port_input(port))))
                continue;
            bt_message_iterator *iterator = nullptr;
            if (bt_message_iterator_create_from_sink_component(self, port, &iterator) !=
                BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK)
                throw SinkError("cannot create a message iterator");
            sink.ports.push_back(
                std::make_unique<Port>(iterator, *sink.consumer, sink.clocks, sink.classes, sink.damage));
        }
        if (sink.ports.empty()) throw SinkError("no input port is connected");
        for (auto &p : sink.ports) sink.waiting.push_back(p.get());
        return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
    });
}

// Brings every waiting port to an event. False: some upstream has nothing yet.
bool gather(Sink &sink) {
    std::vector<Port *> still, ready;
    for (Port *p : sink.waiting) {
        switch (p->advance()) {
        case Port::Status::kEvent: ready.push_back(p); break;
        case Port::Status::kAgain: still.push_back(p); break;
        case Port::Status::kEnd: break;
        }
    }
    sink.waiting = still;
    if (!sink.started && still.empty()) {
        static const opline::StreamDecl kNothing;
        std::vector<const opline::StreamDecl *> decls;
        for (auto &p : sink.ports) decls.push_back(p->decl() ? p->decl() : &kNothing);
        sink.ranks = opline::stream_ranks(decls);
        sink.started = true;
    }
    if (sink.ranks.empty()) sink.ranks.resize(sink.ports.size());
    for (Port *p : ready) sink.merge.add({p->time_ns, sink.rank_of(p), p});
    return still.empty();
}

void drain_own(Sink &sink) {
    if (sink.own_core && sink.own_core->take_ready()) sink.printer->print(*sink.own_core);
}

bt_component_class_sink_consume_method_status ops_consume(bt_self_component_sink *self) {
    return guarded(self, BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR, [&] {
        Sink &sink = sink_of(self);
        if (!sink.waiting.empty() && !gather(sink)) return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN;
        std::uint64_t left = kEventsPerConsume;
        while (left > 0 && !sink.merge.empty()) {
            auto &top = sink.merge.top();
            const auto *second = sink.merge.second();
            Port &port = *top.source;
            Port::Status status = Port::Status::kEvent;
            do {
                const opline::Event event = port.event();
                sink.consumer->events(&event, &event + 1);
                --left;
                status = port.advance();
                top.time_ns = port.time_ns;
            } while (status == Port::Status::kEvent && left > 0 && (!second || top < *second));
            if (status == Port::Status::kEvent) {
                sink.merge.settle(&top);
            } else {
                sink.merge.remove(&top);
                if (status == Port::Status::kAgain) {
                    sink.waiting.push_back(&port);
                    break;
                }
            }
        }
        const bool end = sink.merge.empty() && sink.waiting.empty() && sink.consumer->finish();
        drain_own(sink);
        return end ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END
                   : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
    });
}

}  // namespace

// What babeltrace2 looks for in the file; everything else stays hidden.
#pragma GCC visibility push(default)
extern "C" {
BT_PLUGIN_MODULE();
BT_PLUGIN(opline);
BT_PLUGIN_DESCRIPTION("Follows application operations from their tracepoints to the disk and back");
BT_PLUGIN_AUTHOR("the opline authors");
BT_PLUGIN_LICENSE("MIT");
BT_PLUGIN_SINK_COMPONENT_CLASS(ops, ops_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(ops, "Stitches events into ops by an op model, with their block requests.");
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(ops, ops_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(ops, ops_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_INPUT_PORT_CONNECTED_METHOD(ops, ops_port_connected);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(ops, ops_configured);
BT_PLUGIN_SOURCE_COMPONENT_CLASS(lttng, opline::bt2::lttng_next);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_DESCRIPTION(lttng, "Reads CTF traces as LTTng writes them: CTF 1.8 and CTF 2.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_HELP(lttng, "Parameter: inputs, a list of folders. One output port per data stream.");
BT_PLUGIN_SOURCE_COMPONENT_CLASS_INITIALIZE_METHOD(lttng, opline::bt2::lttng_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_FINALIZE_METHOD(lttng, opline::bt2::lttng_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(lttng,
                                                                          opline::bt2::lttng_iterator_initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(lttng, opline::bt2::lttng_iterator_finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHODS(lttng, opline::bt2::lttng_seek_beginning,
                                                                               opline::bt2::lttng_can_seek_beginning);
}
#pragma GCC visibility pop
