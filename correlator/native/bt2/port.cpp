// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "sink.hpp"

namespace opline::bt2 {
namespace {

std::string env_text(const bt_trace *trace, const char *name) {
    const bt_value *v = bt_trace_borrow_environment_entry_value_by_name_const(trace, name);
    return v && bt_value_is_string(v) ? bt_value_string_get(v) : "";
}

std::string uuid_text(bt_uuid uuid) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    for (int i = 0; uuid && i < 16; ++i) {
        out += digits[uuid[i] >> 4];
        out += digits[uuid[i] & 15];
    }
    return out;
}

}  // namespace

void Clocks::add(const bt_clock_class *clock, const std::string &stream) {
    const std::string uuid = uuid_text(bt_clock_class_get_uuid(clock));
    if (uuid.empty()) return;
    if (uuid_.empty()) {
        uuid_ = uuid;
        stream_ = stream;
    }
    if (uuid != uuid_)
        throw SinkError("the streams " + stream_ + " and " + stream +
                        " have different clocks (another boot, or another host): "
                        "their raw times don't compare. Read the traces one by one");
}

// The most specific cause on one line; the error is released.
std::string first_cause(const bt_error *error) {
    std::string line = error && bt_error_get_cause_count(error) > 0
                           ? bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0))
                           : "no cause was given";
    if (error) bt_error_release(error);
    for (auto &c : line)
        if (c == '\n') c = ' ';
    return line;
}

Upstream::~Upstream() {
    while (at_ < count_) bt_message_put_ref(messages_[at_++]);
    bt_message_iterator_put_ref(iterator_);
    if (error_) bt_error_release(error_);
}

Upstream::Status Upstream::fill() {
    if (at_ < count_) return Status::kMessages;
    at_ = count_ = 0;
    if (error_) return Status::kError;
    switch (bt_message_iterator_next(const_cast<bt_message_iterator *>(iterator_), &messages_, &count_)) {
    case BT_MESSAGE_ITERATOR_NEXT_STATUS_OK:
        // source.ctf.fs of babeltrace 2.0 says OK when it met an error after it had some messages, and leaves the
        // error to the thread, where the library's next function would abort because of it.
        error_ = bt_current_thread_take_error();
        return Status::kMessages;
    case BT_MESSAGE_ITERATOR_NEXT_STATUS_END: return Status::kEnd;
    case BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN: return Status::kAgain;
    default:
        count_ = 0;
        error_ = bt_current_thread_take_error();
        return Status::kError;
    }
}

Port::~Port() { release_current(); }

void Port::release_current() {
    if (current_) bt_message_put_ref(current_);
    current_ = nullptr;
}

std::int64_t Port::to_ns(const bt_clock_snapshot *snapshot, const StreamState &s) const {
    const std::uint64_t cycles = bt_clock_snapshot_get_value(snapshot);
    if (s.frequency == 1'000'000'000) return static_cast<std::int64_t>(cycles);
    return static_cast<std::int64_t>(static_cast<unsigned __int128>(cycles) * 1'000'000'000 / s.frequency);
}

StreamState &Port::stream_of(const bt_stream *stream) {
    auto found = streams_.find(reinterpret_cast<std::uintptr_t>(stream));
    if (found) return **found;
    stream_beginning(stream);
    return **streams_.find(reinterpret_cast<std::uintptr_t>(stream));
}

void Port::stream_beginning(const bt_stream *stream) {
    auto state = std::make_unique<StreamState>();
    const bt_trace *trace = bt_stream_borrow_trace_const(stream);
    StreamDecl &d = state->decl;
    d.host = env_text(trace, "hostname");
    if (d.host.empty()) d.host = env_text(trace, "host");  // perf's own conversion to CTF calls it so
    d.domain = env_text(trace, "domain") == "kernel" ? Domain::kKernel : Domain::kUst;
    if (const char *name = bt_stream_get_name(stream)) d.path = name;
    d.channel = channel_of(d.path);
    d.instance = bt_stream_get_id(stream);
    const bt_clock_class *clock =
        bt_stream_class_borrow_default_clock_class_const(bt_stream_borrow_class_const(stream));
    if (!clock) throw SinkError("the stream " + d.path + " has no clock: its events can't be ordered");
    state->frequency = bt_clock_class_get_frequency(clock);
    clocks_.add(clock, d.path);
    state->number = consumer_.add_stream(d);
    // All of its classes, whether they occur or not: what a model never meets can be told from what is not there.
    const bt_stream_class *stream_class = bt_stream_borrow_class_const(stream);
    for (std::uint64_t i = 0; i < bt_stream_class_get_event_class_count(stream_class); ++i)
        class_of(bt_stream_class_borrow_event_class_by_index_const(stream_class, i), d.domain);
    if (!stream_) stream_ = state.get();
    streams_.put(reinterpret_cast<std::uintptr_t>(stream), std::move(state));
}

EventClassState &Port::class_of(const bt_event_class *cls, Domain domain) {
    auto found = classes_.find(reinterpret_cast<std::uintptr_t>(cls));
    if (found) return **found;
    auto state = std::make_unique<EventClassState>(declare(cls, domain, consumer_));
    EventClassState &out = *state;
    classes_.put(reinterpret_cast<std::uintptr_t>(cls), std::move(state));
    return out;
}

void Port::discarded(const bt_message *m, bool packets) {
    const bt_stream *stream = packets ? bt_message_discarded_packets_borrow_stream_const(m)
                                      : bt_message_discarded_events_borrow_stream_const(m);
    StreamState &s = stream_of(stream);
    std::uint64_t count = 0;
    const bool known =
        (packets ? bt_message_discarded_packets_get_count(m, &count)
                 : bt_message_discarded_events_get_count(m, &count)) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
    std::int64_t begin = kNoTime, end = kNoTime;
    const bt_stream_class *cls = bt_stream_borrow_class_const(stream);
    const bool clocked = packets ? bt_stream_class_discarded_packets_have_default_clock_snapshots(cls)
                                 : bt_stream_class_discarded_events_have_default_clock_snapshots(cls);
    if (clocked) {
        begin = to_ns(packets ? bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(m)
                              : bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(m),
                      s);
        end = to_ns(packets ? bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(m)
                            : bt_message_discarded_events_borrow_end_default_clock_snapshot_const(m),
                    s);
    }
    consumer_.gap({s.number,
                   packets ? Gap::Kind::kPackets : Gap::Kind::kEvents,
                   begin,
                   end,
                   known ? credible_count(count) : 0,
                   {}});
}

// The rest of some packets was cut off, as no reader can decode it.
void Port::packet_ends(const bt_message *m) {
    if (damage_.rests.empty()) return;
    const bt_stream *stream = bt_packet_borrow_stream_const(bt_message_packet_end_borrow_packet_const(m));
    const StreamState &s = stream_of(stream);
    const auto cut = damage_.rests.find(s.decl.path);
    if (cut == damage_.rests.end() ||
        std::find(cut->second.begin(), cut->second.end(), s.packets - 1) == cut->second.end())
        return;
    const bool timed = bt_stream_class_packets_have_end_default_clock_snapshot(bt_stream_borrow_class_const(stream));
    const std::int64_t end_ns =
        timed ? to_ns(bt_message_packet_end_borrow_default_clock_snapshot_const(m), s) : kNoTime;
    consumer_.gap({s.number, Gap::Kind::kEvents, s.packet_ns, std::max(s.packet_ns, end_ns), 0, {}});
}

void Port::message(const bt_message *m) {
    switch (bt_message_get_type(m)) {
    case BT_MESSAGE_TYPE_STREAM_BEGINNING: stream_of(bt_message_stream_beginning_borrow_stream_const(m)); break;
    case BT_MESSAGE_TYPE_PACKET_BEGINNING: {
        const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(m);
        StreamState &s = stream_of(bt_packet_borrow_stream_const(packet));
        s.cpu = kNoCpu;
        const bt_field *context = bt_packet_borrow_context_field_const(packet);
        const bt_field *cpu =
            context ? bt_field_structure_borrow_member_field_by_name_const(context, "cpu_id") : nullptr;
        if (cpu && bt_field_class_type_is(bt_field_get_class_type(cpu), BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER))
            s.cpu = static_cast<std::uint32_t>(bt_field_integer_unsigned_get_value(cpu));
        ++s.packets;
        const bool timed = bt_stream_class_packets_have_beginning_default_clock_snapshot(
            bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet)));
        s.packet_timed = timed;
        s.packet_ns = timed ? to_ns(bt_message_packet_beginning_borrow_default_clock_snapshot_const(m), s) : kNoTime;
        break;
    }
    case BT_MESSAGE_TYPE_PACKET_END: packet_ends(m); break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS: discarded(m, false); break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS: discarded(m, true); break;
    default: break;
    }
}

// Upstream has failed.
Port::Status Port::fail() {
    const bt_error *error = upstream_.take_error();
    if (damage_.tolerant && stream_) return end_damaged(first_cause(error));
    if (error) bt_current_thread_move_error(error);
    throw SinkError("the upstream component failed");
}

// What came before stands, and so do the other streams.
Port::Status Port::end_damaged(const std::string &why) {
    auto known = damage_.known.find(stream_->decl.path);
    consumer_.gap({stream_->number, Gap::Kind::kDamage, stream_->last_ns, kNoTime, 0,
                   known != damage_.known.end() ? known->second : why});
    return Status::kEnd;
}

Port::Status Port::advance() {
    release_current();
    for (;;) {
        switch (upstream_.fill()) {
        case Upstream::Status::kMessages: break;
        case Upstream::Status::kEnd:
            return stream_ && damage_.known.count(stream_->decl.path) ? end_damaged("") : Status::kEnd;
        case Upstream::Status::kAgain: return Status::kAgain;
        case Upstream::Status::kError: return fail();
        }
        const bt_message *m = upstream_.take();
        if (bt_message_get_type(m) != BT_MESSAGE_TYPE_EVENT) {
            struct Release {
                const bt_message *m;
                ~Release() { bt_message_put_ref(m); }
            } release{m};
            message(m);
            continue;
        }
        current_ = m;
        event_ = bt_message_event_borrow_event_const(m);
        stream_ = &stream_of(bt_event_borrow_stream_const(event_));
        class_ = &class_of(bt_event_borrow_class_const(event_), stream_->decl.domain);
        if (slots_.size() < class_->paths.size() + 1) slots_.resize(class_->paths.size() + 1);
        time_ns = to_ns(bt_message_event_borrow_default_clock_snapshot_const(m), *stream_);
        slots_read_ = false;
        if (class_->plan.time_slot >= 0) {
            read_slots(*class_, event_, slots_.data());
            slots_read_ = true;
            time_ns = stream_->own_ns = slots_[static_cast<std::size_t>(class_->plan.time_slot)].i;
        } else if (stream_->own_ns != kNoTime) {
            time_ns = stream_->own_ns;  // sent on later than it happened, as its neighbours
        }
        stream_->last_ns = time_ns;
        if (!stream_->packet_timed) stream_->packet_ns = time_ns;
        return Status::kEvent;
    }
}

Event Port::event() {
    if (!slots_read_) read_slots(*class_, event_, slots_.data());
    slots_read_ = true;
    return Event{class_->plan.id, 0, stream_->number, stream_->cpu, time_ns, slots_.data()};
}

}  // namespace opline::bt2
