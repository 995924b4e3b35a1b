// SPDX-License-Identifier: MIT
// A plan (model/plan.hpp) made of bytes: whatever the language of models can say, most of it nonsense. All references
// are in range, as the compiler of models makes them.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/plan.hpp"

namespace opline {

// Bytes, one after the other; zeros where they have ended.
class RandomBytes {
  public:
    RandomBytes(const std::uint8_t *data, std::size_t size) : at_(data), end_(data + size) {}
    bool empty() const { return at_ == end_; }
    std::uint32_t next() { return at_ == end_ ? 0 : *at_++; }
    bool once_in(std::uint32_t n) { return next() % n == n - 1; }
    template <class E>
    E one_of(std::initializer_list<E> choices) {
        return choices.begin()[next() % choices.size()];
    }

  private:
    const std::uint8_t *at_, *end_;
};

class RandomPlan {
  public:
    static constexpr std::array<const char *, 8> kEvents = {"a:e0", "a:e1", "a:e2", "a:e3",
                                                            "a:e4", "a:e5", "a:e6", "a:e7"};

    explicit RandomPlan(RandomBytes &bytes) : bytes_(bytes) {
        plan_.model = "random";
        plan_.claims = {"a:*"};
        plan_.linger_ns = bytes_.one_of<std::int64_t>({100, 1000, 100'000'000});
        plan_.match_by_sector = bytes_.once_in(2);
        make_spaces();
        const std::uint32_t facts = bytes_.next() % 3;
        for (std::uint32_t i = 0; i < facts; ++i) {
            const KeyScope scope = scope_of();
            plan_.facts.push_back({"fact" + std::to_string(i), scope, field(), {field(), field()}, bytes_.once_in(2)});
        }
        const std::uint32_t points = 2 + bytes_.next() % 7;
        for (std::uint32_t i = 0; i < points; ++i) plan_.points.push_back(point(i));
        if (!bytes_.once_in(4)) begin_and_end();
        for (PointSpec &p : plan_.points)
            if (bytes_.once_in(6)) p.after.push_back(plan_.points[bytes_.next() % points].name);
        plan_.threads_work = std::any_of(plan_.points.begin(), plan_.points.end(),
                                         [](const PointSpec &p) { return p.thread != ThreadRule::kNone; });
        for (std::uint32_t i = bytes_.next() % 3; i > 0; --i) {
            const std::string from = plan_.points[bytes_.next() % points].name,
                              to = plan_.points[bytes_.next() % points].name;
            plan_.stages.push_back({"stage" + std::to_string(i), from, to, "wait", bytes_.once_in(2)});
        }
        if (bytes_.once_in(4)) plan_.bios = {{"bio", {"k*"}, {}}};
        if (bytes_.once_in(4))
            plan_.files.push_back(
                {"file", std::uint32_t{8} << 20, 0, 0, 0, 0, bytes_.once_in(2), {{0, 8, 8}, {8, 24, 16}}, ""});
        if (bytes_.once_in(6)) plan_.lost.push_back({"lost", 1000, 1100});
    }
    const Plan &plan() const { return plan_; }

  private:
    void make_spaces() {
        const std::uint32_t spaces = 1 + bytes_.next() % 4;
        for (std::uint32_t i = 0; i < spaces; ++i) {
            const KeyScope scope = scope_of();
            const bool by_order = bytes_.once_in(4);
            const std::uint64_t with = bytes_.once_in(4) ? bytes_.next() % (1u << spaces) : 0;
            plan_.key_spaces.push_back({"space" + std::to_string(i), scope, by_order, std::uint64_t{1} << i | with});
        }
        for (std::uint32_t i = 0; i < spaces; ++i)  // as parse_plan() does
            for (KeySpace &space : plan_.key_spaces)
                if ((space.spaces >> i & 1) != 0) space.spaces |= plan_.key_spaces[i].spaces;
    }
    KeyScope scope_of() { return bytes_.one_of({KeyScope::kGlobal, KeyScope::kProcess, KeyScope::kThread}); }
    std::string field() { return "f" + std::to_string(bytes_.next() % 4); }
    KeyUse key() {
        const auto space = static_cast<std::uint32_t>(bytes_.next() % plan_.key_spaces.size());
        const std::string name = field();
        const bool by_fact = !plan_.facts.empty() && bytes_.once_in(4);
        return {space, {name}, {by_fact ? static_cast<std::int32_t>(bytes_.next() % plan_.facts.size()) : kNoFact}};
    }
    std::vector<KeyUse> keys(std::uint32_t once_in) {
        std::vector<KeyUse> out;
        if (bytes_.once_in(once_in)) out.push_back(key());
        if (!out.empty() && bytes_.once_in(4)) out.push_back(key());
        return out;
    }

    PointSpec point(std::uint32_t number) {
        PointSpec p;
        p.name = "p" + std::to_string(number);
        p.event = bytes_.once_in(8) ? "a:*" : kEvents[number % kEvents.size()];
        if (bytes_.once_in(8)) {
            p.name += ".{}";
            p.field.name = field();
        }
        if (bytes_.once_in(6)) p.when.push_back({field(), {std::int64_t{1}, std::int64_t{3}}});
        p.role = bytes_.one_of({Role::kNone, Role::kBegin, Role::kNone, Role::kEnd, Role::kNone, Role::kSoftBegin,
                                Role::kSoftEnd, Role::kBegin});
        if (bytes_.once_in(8)) p.end_of.push_back("c1");
        p.find = keys(2);
        p.bind = keys(3);
        p.release = keys(8);
        p.wait = keys(8);
        p.meet = keys(8);
        p.sole = keys(10);
        p.optional = bytes_.once_in(6);
        p.child = bytes_.once_in(8);
        if (!plan_.facts.empty() && bytes_.once_in(4))
            p.learn = static_cast<std::int32_t>(bytes_.next() % plan_.facts.size());
        if (bytes_.once_in(8)) p.mark = "mark";
        if (bytes_.once_in(8)) p.at = "mark";
        p.thread = bytes_.one_of(
            {ThreadRule::kNone, ThreadRule::kEnter, ThreadRule::kNone, ThreadRule::kLeave, ThreadRule::kSwitch});
        if (bytes_.once_in(3)) batch(p);
        what_it_does(p);
        obey(p);
        return p;
    }

    // The first point begins ops that the last one finds: else few would ever be complete.
    void begin_and_end() {
        PointSpec &first = plan_.points.front(), &last = plan_.points.back();
        for (PointSpec *p : {&first, &last}) {
            p->when.clear();
            p->end_of.clear();
            p->learn = kNoFact;
            p->mark.clear();
            p->child = false;
            p->ios = {};
            p->batch_do = BatchDo::kNone;
        }
        first.event = kEvents.front();
        first.role = Role::kBegin;
        first.bind.insert(first.bind.begin(), KeyUse{0, {"f0"}, {kNoFact}});
        last.event = kEvents[plan_.points.size() - 1];
        last.role = Role::kEnd;
        last.find.insert(last.find.begin(), KeyUse{0, {"f0"}, {kNoFact}});
    }

    void batch(PointSpec &p) {
        p.batch_do = bytes_.one_of({BatchDo::kOpen, BatchDo::kOpenOrWork, BatchDo::kJoin, BatchDo::kOpenOrJoin,
                                    BatchDo::kWork, BatchDo::kClose});
        p.batch_space = bytes_.once_in(3) ? "batches" : "batch";
        if (bytes_.once_in(4)) p.field.members = field();
        if (p.batch_space != "batches") return;
        // Batches of an order; without bytes of their own, so that all other inputs mean what they did.
        const bool works = p.batch_do == BatchDo::kWork || p.batch_do == BatchDo::kClose;
        (works ? p.field.reaches : p.field.needs) = "f1";
        p.field.among = "f2";
    }

    void what_it_does(PointSpec &p) {
        if (bytes_.once_in(3)) p.class_text = "c1";
        else if (bytes_.once_in(6)) p.field.op_class = field();
        if (bytes_.once_in(4)) p.field.object = field();
        if (bytes_.once_in(3)) p.field.offset = field(), p.field.length = field();
        p.in_flight = bytes_.one_of({IoWindow::kNone, IoWindow::kNone, IoWindow::kBegin, IoWindow::kEnd});
        p.sync = bytes_.one_of(
            {IoWindow::kNone, IoWindow::kNone, IoWindow::kNone, IoWindow::kNone, IoWindow::kBegin, IoWindow::kEnd});
        p.direction = bytes_.one_of({Direction::kUnknown, Direction::kRead, Direction::kWrite});
        if (bytes_.once_in(6)) p.field.file = field();
        if (bytes_.once_in(6)) {
            if (bytes_.once_in(2)) p.ios.submit = key();
            if (bytes_.once_in(2)) p.ios.wait = key();
            p.ios.ring = bytes_.once_in(2);
            if (bytes_.once_in(2)) p.ios.count = field();
            if (bytes_.once_in(2)) p.ios.submitted = field();
            if (bytes_.once_in(2)) p.ios.reaped = bytes_.once_in(2) ? "*" : field();
            if (bytes_.once_in(2)) p.ios.names = field();
        }
        p.aside = bytes_.once_in(8);
    }

    // What the language refuses (opline/model/lint.py).
    static void obey(PointSpec &p) {
        const bool ends = p.role == Role::kEnd || p.role == Role::kSoftEnd;
        if (!ends) p.end_of.clear();
        if (p.role == Role::kSoftBegin && p.find.empty()) p.role = Role::kBegin;
        if (p.role == Role::kBegin || p.role == Role::kSoftBegin || p.bind.empty()) p.child = false;
        if (!p.ios) return;
        if (p.role == Role::kBegin && p.ios.submit) {
            p.thread = ThreadRule::kSwitch;
        } else {
            p.role = Role::kNone;
            p.end_of.clear();
            p.ios.submit.reset();
            p.ios.ring = false;
            p.ios.count.clear();
        }
        if (p.ios.submit || p.ios.wait) p.ios.submitted = p.ios.reaped = "";
        if (!p.ios.submit && (p.ios.reaped.empty() || p.ios.reaped == "*")) p.ios.names.clear();
        if (p.ios.submit && p.ios.wait) p.ios.wait->space = p.ios.submit->space;
    }

    RandomBytes &bytes_;
    Plan plan_;
};

}  // namespace opline
