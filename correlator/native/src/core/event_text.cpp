// SPDX-License-Identifier: MIT
#include <charconv>
#include <cstdio>

#include "base/utf8.hpp"
#include "core/event_form.hpp"

namespace opline {
namespace {

template <class T>
void number(std::string &out, T v, int base = 10) {
    char b[72];
    auto end = std::to_chars(b, b + sizeof b, v, base).ptr;
    out.append(b, end);
}

void value(std::string &out, const Slot &s) {
    switch (s.kind) {
    case Slot::Kind::kUnsigned:
        if (s.u >= 1ull << 40) {  // a pointer or a mask, to the eye
            out += "0x";
            number(out, s.u, 16);
        } else {
            number(out, s.u);
        }
        return;
    case Slot::Kind::kSigned: number(out, s.i); return;
    case Slot::Kind::kReal: {
        char b[40];
        out.append(b, static_cast<std::size_t>(std::snprintf(b, sizeof b, "%.9g", s.r)));
        return;
    }
    case Slot::Kind::kString:
        out += '"';
        {
            std::string quoted;
            for (char c : s.str()) {
                if (c == '"' || c == '\\') quoted += '\\';
                quoted += c;
            }
            append_shown(out, quoted);  // one event, one line
        }
        out += '"';
        return;
    case Slot::Kind::kAbsent: out += "(compound)"; return;
    }
}

void fields(std::string &out, const std::vector<WrittenField> &all, const Slot *values) {
    out += '{';
    for (const auto &field : all) {
        out += &field == all.data() ? " " : ", ";
        out += field.label;
        value(out, field.in(values));
    }
    out += all.empty() ? "}" : " }";
}

class TextForm final : public EventForm {
  public:
    std::string label(const std::string &field) const override {
        std::string shown;
        append_shown(shown, field);
        return shown + " = ";
    }

    void event(std::string &out, const WrittenClass &cls, const StreamDecl &stream, const Event &ev) override {
        number(out, ev.ts_ns);
        place(out, stream);
        if (ev.cpu != kNoCpu) {
            out += " cpu ";
            number(out, ev.cpu);
        }
        out += ' ';
        append_shown(out, cls.name);
        out += ": ";
        fields(out, cls.contexts, ev.slots);
        out += ", ";
        fields(out, cls.payload, ev.slots);
        out += '\n';
    }

    void gap(std::string &out, const StreamDecl &stream, const Gap &gap) override {
        const bool damage = gap.kind == Gap::Kind::kDamage;
        out += '#';
        if (!damage) {
            out += ' ';
            number(out, gap.count);
        }
        out += damage                            ? " not readable:"
               : gap.kind == Gap::Kind::kPackets ? " packets discarded:"
                                                 : " events discarded:";
        place(out, stream);
        out += " stream ";
        number(out, stream.instance);
        if (damage && gap.begin_ns != kNoTime) {
            out += " after ";
            number(out, gap.begin_ns);
        }
        if (!damage && gap.begin_ns != kNoTime && gap.end_ns != kNoTime) {
            out += " from ";
            number(out, gap.begin_ns);
            out += " to ";
            number(out, gap.end_ns);
        }
        if (damage) {
            out += ": ";
            append_shown(out, gap.why);
        }
        out += '\n';
    }

  private:
    static void place(std::string &out, const StreamDecl &stream) {
        for (const std::string *text : {&stream.host, &stream.channel}) {
            out += ' ';
            if (text->empty()) out += '-';
            else append_shown(out, *text);
        }
    }
};

}  // namespace

std::unique_ptr<EventForm> text_form() { return std::make_unique<TextForm>(); }

}  // namespace opline
