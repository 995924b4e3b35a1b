// SPDX-License-Identifier: MIT
// The component class `source.opline.lttng` and its message iterator.
//
// Parameter: inputs, a list of folders; every CTF trace at or below them is read. One output port per data stream,
// called TRACE/STREAM CLASS/STREAM. Messages: packets with their context, events with all fields, discarded events and
// packets. A stream that can't be read to its end is an error when the message iterator comes there.
#include "source.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <filesystem>

namespace opline::bt2 {
namespace {

namespace fs = std::filesystem;

struct Source {
    std::vector<std::unique_ptr<SourceTrace>> traces;
};

Source &source_of(bt_self_component *self) { return *static_cast<Source *>(bt_self_component_get_data(self)); }

struct Input {
    fs::path given, trace;
    std::string place() const { return given == trace ? std::string() : trace.lexically_relative(given).string(); }
};

std::vector<Input> inputs_of(const bt_value *params) {
    const bt_value *inputs = bt_value_map_borrow_entry_value_const(params, "inputs");
    if (!inputs || !bt_value_is_array(inputs) || bt_value_array_is_empty(inputs))
        throw SourceError("parameter inputs is wanted: a list of folders");
    std::vector<Input> found;
    for (std::uint64_t i = 0; i < bt_value_array_get_length(inputs); ++i) {
        const bt_value *input = bt_value_array_borrow_element_by_index_const(inputs, i);
        if (!bt_value_is_string(input)) throw SourceError("parameter inputs is wanted: a list of folders");
        const fs::path path = bt_value_string_get(input);
        std::error_code error;
        const std::size_t before = found.size();
        if (fs::is_regular_file(path / "metadata", error)) found.push_back({path, path});
        for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
            if (at->path().filename() == "metadata" && at->path().parent_path() != path)
                found.push_back({path, at->path().parent_path()});
        if (error) throw SourceError("cannot read " + path.string() + ": " + error.message());
        if (found.size() == before)
            throw SourceError(path.string() + " is not a CTF trace: no file `metadata` at or below it");
    }
    std::sort(found.begin(), found.end(), [](const Input &a, const Input &b) { return a.trace < b.trace; });
    return found;
}

template <class Status, class F>
Status guarded(bt_self_component *self, Status failed, F &&f) {
    try {
        return f();
    } catch (const std::exception &e) {
        BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(self, "%s", e.what());
    }
    return failed;
}

class Iterator : public ctf::StreamNotes {
  public:
    Iterator(bt_self_message_iterator *self, const SourceTrace::Output &output)
        : self_(self), output_(output), stream_(*output.stream) {}
    ~Iterator() override { clear(); }
    Iterator(const Iterator &) = delete;
    Iterator &operator=(const Iterator &) = delete;

    // False: that was all. Throws SourceError.
    bool next(bt_message_array_const messages, std::uint64_t capacity, std::uint64_t &count) {
        count = 0;
        while (count < capacity) {
            if (!ready_.empty()) {
                messages[count++] = ready_.front();
                ready_.pop_front();
            } else if (!began_) {
                began_ = true;
                push(bt_message_stream_beginning_create(self_, output_.ir));
            } else if (!failed_.empty()) {
                if (count > 0) return true;
                throw SourceError(failed_);
            } else if (ended_) {
                return count > 0;
            } else if (stream_.next(*this)) {
                event();
            } else if (failed_.empty()) {
                push(bt_message_stream_end_create(self_, output_.ir));
                ended_ = true;
            }
        }
        return true;
    }
    void seek_beginning() {
        clear();
        stream_ = *output_.stream;
        began_ = ended_ = false;
        failed_.clear();
    }

    void packet_begins(const ctf::PacketInfo &info) override {
        packet_ = bt_packet_create(output_.ir);
        if (!packet_) throw SourceError("cannot make a packet");
        last_ = info.begin;
        if (bt_field *context = bt_packet_borrow_context_field(packet_)) fill_context(info, context);
        push(output_.shape->begin_times
                 ? bt_message_packet_beginning_create_with_default_clock_snapshot(self_, packet_, info.begin)
                 : bt_message_packet_beginning_create(self_, packet_));
    }
    void packet_ends(const ctf::PacketInfo &info) override {
        if (!packet_) return;
        push(output_.shape->end_times
                 ? bt_message_packet_end_create_with_default_clock_snapshot(self_, packet_, std::max(info.end, last_))
                 : bt_message_packet_end_create(self_, packet_));
        bt_packet_put_ref(packet_);
        packet_ = nullptr;
    }
    void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) override {
        if (!(packets ? output_.shape->discarded_packets : output_.shape->discarded_events)) return;
        const std::uint64_t from = std::min(begin, end);
        bt_message *m =
            packets ? bt_message_discarded_packets_create_with_default_clock_snapshots(self_, output_.ir, from, end)
                    : bt_message_discarded_events_create_with_default_clock_snapshots(self_, output_.ir, from, end);
        if (m && count > 0) {
            if (packets) bt_message_discarded_packets_set_count(m, count);
            else bt_message_discarded_events_set_count(m, count);
        }
        push(m);
    }
    void damaged(std::int64_t, const std::string &) override {}  // said by lost()
    void lost(ctf::Loss loss, const std::string &message) override {
        if (loss != ctf::Loss::kPacketOutOfOrder && failed_.empty()) failed_ = message;
    }

  private:
    void push(const bt_message *m) {
        if (!m) throw SourceError("cannot make a message");
        ready_.push_back(m);
    }
    void clear() {
        for (auto m : ready_) bt_message_put_ref(m);
        ready_.clear();
        if (packet_) bt_packet_put_ref(packet_);
        packet_ = nullptr;
    }
    void fill_context(const ctf::PacketInfo &info, bt_field *context) {
        const ctf::Walk &walk = output_.trace->layout.context_walks.at(info.stream_id);
        ctf::Cursor c{stream_.packets().bytes(), info.context_at, info.header_bits};
        registers_.resize(
            std::max<std::size_t>(registers_.size(), output_.trace->layout.contexts.at(info.stream_id).registers));
        std::uint64_t field = 0;
        for (std::size_t i = 0; i < walk.parts.size(); ++i)
            if (!fill(walk.parts[i], c,
                      output_.shape->in_context[i] ? bt_field_structure_borrow_member_field_by_index(context, field++)
                                                   : nullptr,
                      registers_))
                throw SourceError("a packet's context that ends too early");
    }
    void event() {
        const EventShape &shape = output_.shape->events.at(stream_.event_class()->cls);
        registers_.resize(std::max<std::size_t>(registers_.size(), shape.registers));
        last_ = stream_.clock();
        bt_message *m =
            bt_message_event_create_with_packet_and_default_clock_snapshot(self_, shape.cls, packet_, last_);
        push(m);
        bt_event *event = bt_message_event_borrow_event(m);
        ctf::Cursor c = stream_.fields();
        const bool whole =
            (!shape.common.type || fill(shape.common, c, bt_event_borrow_common_context_field(event), registers_)) &&
            (!shape.specific.type ||
             fill(shape.specific, c, bt_event_borrow_specific_context_field(event), registers_)) &&
            (!shape.payload.type || fill(shape.payload, c, bt_event_borrow_payload_field(event), registers_));
        if (!whole) throw SourceError("an event goes on past its packet's end");
    }

    bt_self_message_iterator *self_;
    const SourceTrace::Output &output_;
    ctf::Stream stream_;
    std::deque<const bt_message *> ready_;
    bt_packet *packet_ = nullptr;
    bool began_ = false, ended_ = false;
    std::string failed_;
    std::uint64_t last_ = 0;  // clock value of the last event
    std::vector<std::uint64_t> registers_;
};

Iterator &iterator_of(bt_self_message_iterator *self) {
    return *static_cast<Iterator *>(bt_self_message_iterator_get_data(self));
}
bt_self_component *component_of(bt_self_message_iterator *self) {
    return bt_self_message_iterator_borrow_component(self);
}

}  // namespace

bt_component_class_initialize_method_status lttng_initialize(bt_self_component_source *self,
                                                             bt_self_component_source_configuration *,
                                                             const bt_value *params, void *) {
    bt_self_component *component = bt_self_component_source_as_self_component(self);
    return guarded(component, BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR, [&] {
        auto source = std::make_unique<Source>();
        for (const auto &input : inputs_of(params)) {
            const std::string path = input.trace.string();
            source->traces.push_back(std::make_unique<SourceTrace>(path, input.place(), component));
            SourceTrace &trace = *source->traces.back();
            if (!trace.complaints().empty()) throw SourceError(trace.complaints().front());
            for (auto &output : trace.outputs) {
                const std::string name = path + "/" + std::to_string(output.stream->stream_id) + "/" +
                                         std::to_string(output.stream->decl.instance);
                if (bt_self_component_source_add_output_port(self, name.c_str(), &output, nullptr) !=
                    BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
                    throw SourceError("cannot add the output port " + name);
            }
        }
        bt_self_component_set_data(component, source.release());
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
    });
}

void lttng_finalize(bt_self_component_source *self) {
    delete &source_of(bt_self_component_source_as_self_component(self));
}

bt_message_iterator_class_initialize_method_status lttng_iterator_initialize(
    bt_self_message_iterator *self, bt_self_message_iterator_configuration *configuration,
    bt_self_component_port_output *port) {
    return guarded(component_of(self), BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_ERROR, [&] {
        auto output = static_cast<const SourceTrace::Output *>(
            bt_self_component_port_get_data(bt_self_component_port_output_as_self_component_port(port)));
        bt_self_message_iterator_configuration_set_can_seek_forward(configuration, BT_TRUE);
        bt_self_message_iterator_set_data(self, new Iterator(self, *output));
        return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
    });
}

void lttng_iterator_finalize(bt_self_message_iterator *self) { delete &iterator_of(self); }

bt_message_iterator_class_next_method_status lttng_next(bt_self_message_iterator *self, bt_message_array_const messages,
                                                        std::uint64_t capacity, std::uint64_t *count) {
    return guarded(component_of(self), BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR, [&] {
        return iterator_of(self).next(messages, capacity, *count) ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK
                                                                  : BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
    });
}

bt_message_iterator_class_seek_beginning_method_status lttng_seek_beginning(bt_self_message_iterator *self) {
    return guarded(component_of(self), BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_ERROR, [&] {
        iterator_of(self).seek_beginning();
        return BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_OK;
    });
}

bt_message_iterator_class_can_seek_beginning_method_status lttng_can_seek_beginning(bt_self_message_iterator *,
                                                                                    bt_bool *can) {
    *can = BT_TRUE;
    return BT_MESSAGE_ITERATOR_CLASS_CAN_SEEK_BEGINNING_METHOD_STATUS_OK;
}

}  // namespace opline::bt2
