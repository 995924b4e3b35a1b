// SPDX-License-Identifier: MIT
// Events as data: nothing is lost, and whatever a field holds, what is written is well-formed.
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/utf8.hpp"
#include "core/event_form.hpp"
#include "output/csv/cells.hpp"

namespace opline {
namespace {

// JSON has no numbers for infinities and NaN: a text stands for these values.
void real(std::string &out, double v) {
    if (std::isnan(v)) out += "\"nan\"";
    else if (std::isinf(v)) out += v < 0 ? "\"-inf\"" : "\"inf\"";
    else {
        char b[40];
        const std::string_view text(b, static_cast<std::size_t>(std::to_chars(b, b + sizeof b, v).ptr - b));
        out += text;
        if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
    }
}

void json_value(std::string &out, const Slot &s) {
    switch (s.kind) {
    case Slot::Kind::kUnsigned: csv::add_number(out, s.u); return;
    case Slot::Kind::kSigned: csv::add_number(out, s.i); return;
    case Slot::Kind::kReal: real(out, s.r); return;
    case Slot::Kind::kString: append_json(out, s.str()); return;
    case Slot::Kind::kAbsent: out += "null"; return;
    }
}

void json_object(std::string &out, const std::vector<WrittenField> &fields, const Slot *values) {
    out += '{';
    for (const auto &field : fields) {
        if (&field != fields.data()) out += ", ";
        out += field.label;
        json_value(out, field.in(values));
    }
    out += '}';
}

std::string_view what_of(const Gap &gap) {
    switch (gap.kind) {
    case Gap::Kind::kEvents: return "events discarded";
    case Gap::Kind::kPackets: return "packets discarded";
    case Gap::Kind::kDamage: break;
    }
    return "not readable";
}

// The loss, since the row's own time.
void json_lost(std::string &out, const StreamDecl &stream, const Gap &gap) {
    const bool damage = gap.kind == Gap::Kind::kDamage;
    out += "{\"what\": ";
    append_json(out, what_of(gap));
    out += ", \"count\": ";
    if (damage || gap.count == 0) out += "null";
    else csv::add_number(out, gap.count);
    out += ", \"stream\": ";
    csv::add_number(out, stream.instance);
    out += ", \"end_ns\": ";
    if (damage || gap.end_ns == kNoTime) out += "null";
    else csv::add_number(out, gap.end_ns);
    if (damage) {
        out += ", \"why\": ";
        append_json(out, gap.why);
    }
    out += '}';
}

// Writes the members of a row, one after the other, each in the row's form.
class RowWriter {
  public:
    RowWriter(std::string &out, bool json) : out_(out), json_(json) {}
    void unknown(std::string_view name) {
        begin(name);
        if (json_) out_ += "null";
    }
    template <class T>
    void number(std::string_view name, T v) {
        begin(name);
        csv::add_number(out_, v);
    }
    void text(std::string_view name, std::string_view v) {
        begin(name);
        if (json_) append_json(out_, v);
        else csv::add_text(out_, v);
    }
    void text_if(std::string_view name, std::string_view v) { v.empty() ? unknown(name) : text(name, v); }
    void slot(std::string_view name, std::int32_t slot, const Slot *values) {
        if (slot == kNoSlot || !values[slot].present()) unknown(name);
        else if (values[slot].kind == Slot::Kind::kString) text(name, values[slot].str());
        else if (values[slot].kind == Slot::Kind::kSigned) number(name, values[slot].i);
        else number(name, values[slot].u);
    }
    // A nested document: in CSV the cell holds the document's text.
    template <class Put>
    void document(std::string_view name, Put &&put) {
        begin(name);
        if (json_) return put(out_);
        std::string text;
        put(text);
        csv::add_text(out_, text);
    }
    void end() { out_ += json_ ? "}\n" : "\n"; }

  private:
    void begin(std::string_view name) {
        if (json_) {
            out_ += first_ ? "{\"" : ", \"";
            out_ += name;
            out_ += "\": ";
        } else if (!first_) {
            out_ += ',';
        }
        first_ = false;
    }
    std::string &out_;
    bool json_, first_ = true;
};

class DataForm final : public EventForm {
  public:
    explicit DataForm(bool json) : json_(json) {}

    void head(std::string &out) override {
        if (!json_) out += "ts_ns,host,channel,cpu,event,comm,pid,tid,context,fields,lost\n";
    }

    std::string label(const std::string &field) const override {
        std::string quoted;
        append_json(quoted, field);
        return quoted + ": ";
    }

    void event(std::string &out, const WrittenClass &cls, const StreamDecl &stream, const Event &ev) override {
        RowWriter row(out, json_);
        row.number("ts_ns", ev.ts_ns);
        place(row, stream);
        if (ev.cpu == kNoCpu) row.unknown("cpu");
        else row.number("cpu", std::uint64_t{ev.cpu});
        row.text("event", cls.name);
        row.slot("comm", cls.comm_slot, ev.slots);
        row.slot("pid", cls.pid_slot, ev.slots);
        row.slot("tid", cls.tid_slot, ev.slots);
        row.document("context", [&](std::string &to) { json_object(to, cls.contexts, ev.slots); });
        row.document("fields", [&](std::string &to) { json_object(to, cls.payload, ev.slots); });
        row.unknown("lost");
        row.end();
    }

    void gap(std::string &out, const StreamDecl &stream, const Gap &gap) override {
        RowWriter row(out, json_);
        if (gap.begin_ns == kNoTime) row.unknown("ts_ns");
        else row.number("ts_ns", gap.begin_ns);
        place(row, stream);
        for (const char *name : {"cpu", "event", "comm", "pid", "tid", "context", "fields"}) row.unknown(name);
        row.document("lost", [&](std::string &to) { json_lost(to, stream, gap); });
        row.end();
    }

  private:
    static void place(RowWriter &row, const StreamDecl &stream) {
        row.text_if("host", stream.host);
        row.text_if("channel", stream.channel);
    }
    bool json_;
};

}  // namespace

std::unique_ptr<EventForm> json_form() { return std::make_unique<DataForm>(true); }
std::unique_ptr<EventForm> csv_form() { return std::make_unique<DataForm>(false); }

}  // namespace opline
