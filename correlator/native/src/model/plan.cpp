// SPDX-License-Identifier: MIT
#include "model/plan.hpp"

#include <algorithm>
#include <fnmatch.h>

#include <map>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace opline {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string &where, const std::string &what) {
    throw std::runtime_error("Cannot use the plan: " + where + ": " + what);
}

std::string text_or_empty(const json &object, const char *name, const std::string &where) {
    auto it = object.find(name);
    if (it == object.end() || it->is_null()) return {};
    if (!it->is_string()) fail(where + "." + name, "a string or null is wanted");
    return it->get<std::string>();
}

std::vector<std::string> texts(const json &object, const char *name, const std::string &where) {
    auto it = object.find(name);
    if (it == object.end() || it->is_null()) return {};
    if (!it->is_array()) fail(where + "." + name, "a list of strings is wanted");
    std::vector<std::string> out;
    for (const auto &x : *it) {
        if (!x.is_string()) fail(where + "." + name, "a list of strings is wanted");
        out.push_back(x.get<std::string>());
    }
    return out;
}

template <class E>
E choice(const json &object, const char *name, const std::string &where,
         std::initializer_list<std::pair<const char *, E>> choices, E otherwise) {
    std::string value = text_or_empty(object, name, where);
    if (value.empty()) return otherwise;
    for (const auto &[word, e] : choices)
        if (value == word) return e;
    fail(where + "." + name, "\"" + value + "\" is none of its words");
}

KeyScope scope_of(const json &object, const std::string &where) {
    return choice<KeyScope>(
        object, "scope", where,
        {{"global", KeyScope::kGlobal}, {"process", KeyScope::kProcess}, {"thread", KeyScope::kThread}},
        KeyScope::kProcess);
}

struct Names {
    std::size_t spaces, facts;
};

KeyUse key_use(const json &k, const std::string &where, const Names &names) {
    KeyUse use{k.at("space").get<std::uint32_t>(), texts(k, "fields", where), {}};
    if (auto f = k.find("facts"); f != k.end() && !f->is_null()) use.facts = f->get<std::vector<std::int32_t>>();
    use.facts.resize(use.fields.size(), kNoFact);
    for (auto fact : use.facts)
        if (fact != kNoFact && (fact < 0 || static_cast<std::size_t>(fact) >= names.facts)) fail(where, "no such fact");
    if (use.space >= names.spaces) fail(where, "no such key space");
    if (use.fields.empty()) fail(where, "a key needs a field");
    return use;
}

std::vector<KeyUse> key_uses(const json &point, const char *name, const std::string &where, const Names &names) {
    std::vector<KeyUse> out;
    auto it = point.find(name);
    if (it == point.end() || it->is_null()) return out;
    for (const auto &k : *it) out.push_back(key_use(k, where + "." + name, names));
    return out;
}

IosSpec ios_spec(const json &p, const std::string &where, const Names &names) {
    IosSpec out;
    auto it = p.find("ios");
    if (it == p.end() || it->is_null()) return out;
    if (auto k = it->find("submit"); k != it->end() && !k->is_null())
        out.submit = key_use(*k, where + ".submit", names);
    if (auto k = it->find("wait"); k != it->end() && !k->is_null()) out.wait = key_use(*k, where + ".wait", names);
    out.ring = it->value("ring", false);
    out.count = text_or_empty(*it, "count", where);
    out.least = text_or_empty(*it, "least", where);
    out.submitted = text_or_empty(*it, "submitted", where);
    out.reaped = text_or_empty(*it, "reaped", where);
    out.names = text_or_empty(*it, "names", where);
    out.taken = text_or_empty(*it, "taken", where);
    out.posted = text_or_empty(*it, "posted", where);
    out.told =
        choice<IoWindow>(*it, "told", where, {{"begin", IoWindow::kBegin}, {"end", IoWindow::kEnd}}, IoWindow::kNone);
    return out;
}

PointSpec point_spec(const json &p, const std::string &where, const Names &names) {
    PointSpec out;
    out.name = p.at("name").get<std::string>();
    out.event = p.at("event").get<std::string>();
    if (auto it = p.find("when"); it != p.end() && !it->is_null()) {
        for (const auto &w : *it) {
            Predicate predicate{w.at("field").get<std::string>(), {}};
            for (const auto &v : w.at("any")) {
                if (v.is_string()) predicate.any.emplace_back(v.get<std::string>());
                else predicate.any.emplace_back(v.get<std::int64_t>());
            }
            out.when.push_back(std::move(predicate));
        }
    }
    out.role = choice<Role>(
        p, "role", where,
        {{"begin", Role::kBegin}, {"end", Role::kEnd}, {"soft_begin", Role::kSoftBegin}, {"soft_end", Role::kSoftEnd}},
        Role::kNone);
    out.end_of = texts(p, "end_of", where);
    for (const auto &[name, list] : PointSpec::kLists) out.*list = key_uses(p, name, where, names);
    for (const auto &field : PointFields<std::string>::kFields) {
        const json::json_pointer place(field.place);
        const auto outer = place.parent_pointer();
        if (p.contains(outer) && p.at(outer).is_object())
            out.field.*field.field = text_or_empty(p.at(outer), place.back().c_str(), where + outer.to_string());
    }
    if (out.role == Role::kSoftBegin && out.find.empty()) fail(where, "a soft begin needs a key");
    out.optional = p.value("optional", false);
    out.child = p.value("child", false);
    if (auto it = p.find("learn"); it != p.end() && !it->is_null()) {
        out.learn = it->get<std::int32_t>();
        if (out.learn < 0 || static_cast<std::size_t>(out.learn) >= names.facts) fail(where + ".learn", "no such fact");
    }
    out.mark = text_or_empty(p, "mark", where);
    out.at = text_or_empty(p, "at", where);
    out.thread = choice<ThreadRule>(
        p, "thread", where,
        {{"enter", ThreadRule::kEnter}, {"leave", ThreadRule::kLeave}, {"switch", ThreadRule::kSwitch}},
        ThreadRule::kNone);
    if (auto it = p.find("batch"); it != p.end() && !it->is_null()) {
        out.batch_do = choice<BatchDo>(*it, "do", where + ".batch",
                                       {{"open", BatchDo::kOpen},
                                        {"open_or_work", BatchDo::kOpenOrWork},
                                        {"join", BatchDo::kJoin},
                                        {"open_or_join", BatchDo::kOpenOrJoin},
                                        {"work", BatchDo::kWork},
                                        {"close", BatchDo::kClose},
                                        {"leave", BatchDo::kLeave}},
                                       BatchDo::kNone);
        out.batch_space = text_or_empty(*it, "space", where + ".batch");
    }
    if (auto it = p.find("class"); it != p.end() && !it->is_null())
        out.class_text = text_or_empty(*it, "text", where + ".class");
    const auto windows = {std::pair{"begin", IoWindow::kBegin}, {"end", IoWindow::kEnd}};
    out.in_flight = choice<IoWindow>(p, "in_flight", where, windows, IoWindow::kNone);
    out.sync = choice<IoWindow>(p, "sync", where, windows, IoWindow::kNone);
    out.ios = ios_spec(p, where + ".ios", names);
    out.direction = choice<Direction>(p, "direction", where, {{"read", Direction::kRead}, {"write", Direction::kWrite}},
                                      Direction::kUnknown);
    out.message = choice<MessageDo>(p, "message", where, {{"send", MessageDo::kSend}, {"receive", MessageDo::kReceive}},
                                    MessageDo::kNone);
    if (out.message != MessageDo::kNone && out.identity.size() != 1)
        fail(where + ".message", "a message needs one key");
    out.aside = p.value("aside", false);
    out.after = texts(p, "after", where);
    out.quorum = p.value("quorum", 0u);
    return out;
}

std::vector<BiosSpec> own_ios(const json &doc, const char *name) {
    std::vector<BiosSpec> out;
    if (const auto it = doc.find(name); it != doc.end())
        for (const auto &one : *it)
            out.push_back(
                {one.at("class").get<std::string>(), texts(one, "threads", name), texts(one, "except", name)});
    return out;
}

FileSpec file_spec(const json &f) {
    FileSpec out;
    if (const auto &path = f.at("path"); path.is_string()) out.path = path.get<std::string>();
    else
        for (const auto &byte : path) out.path += static_cast<char>(byte.get<std::uint8_t>());  // not UTF-8
    if (const auto &disk = f.at("disk"); !disk.is_null()) out.disk = disk.get<std::uint32_t>();
    if (const auto inode = f.find("inode"); inode != f.end() && !inode->is_null()) {
        out.inode = inode->get<std::uint64_t>();
        out.dev = f.at("dev").get<std::uint32_t>();
        out.generation = f.value("generation", 0u);
    }
    out.start_sector = f.at("start_sector").get<std::uint64_t>();
    out.changed = f.at("changed").get<bool>();
    out.host_name = f.value("host", std::string());
    for (const auto &e : f.at("extents"))
        out.extents.push_back(
            {e.at(0).get<std::uint64_t>(), e.at(1).get<std::uint64_t>(), e.at(2).get<std::uint64_t>()});
    return out;
}

std::vector<DeviceSpec> device_specs(const json &object) {
    std::vector<DeviceSpec> out;
    if (auto it = object.find("devices"); it != object.end())
        for (const auto &d : *it) {
            DeviceSpec &spec = out.emplace_back();
            d.at("dev").get_to(spec.dev);
            d.at("queues").get_to(spec.queues);
            if (auto fua = d.find("fua"); fua != d.end()) spec.fua = fua->get<bool>();
        }
    return out;
}

std::vector<StackSpec> stack_specs(const json &object) {
    std::vector<StackSpec> out;
    if (auto it = object.find("stacks"); it != object.end())
        for (const auto &s : *it) {
            StackSpec &spec = out.emplace_back();
            s.at("number").get_to(spec.number);
            spec.cause = s.value("cause", std::string());
            spec.vague = s.value("vague", false);
            spec.end = s.value("end", std::string());
        }
    return out;
}

std::optional<std::int64_t> time_or_none(const json &time) {
    if (time.is_null()) return std::nullopt;
    return time.get<std::int64_t>();
}

}  // namespace

Plan parse_plan(const std::string &json_text) {
    try {
        json doc = json::parse(json_text);
        if (doc.at("version").get<int>() != 1) fail("version", "this core reads version 1");
        Plan plan;
        plan.model = doc.at("model").get<std::string>();
        plan.claims = texts(doc, "claims", "plan");
        plan.linger_ns = doc.value("linger_ns", plan.linger_ns);
        std::string match = doc.value("match", std::string("pointer"));
        if (match != "pointer" && match != "sector") fail("match", "pointer or sector is wanted");
        plan.match_by_sector = match == "sector";
        for (const auto &k : doc.at("key_spaces"))
            plan.key_spaces.push_back(
                {k.at("name").get<std::string>(), scope_of(k, "key_spaces"), k.value("by_order", false), 0});
        if (plan.key_spaces.size() > 64) fail("key_spaces", "at most 64 are possible");
        for (std::size_t i = 0; i < plan.key_spaces.size(); ++i) {
            plan.key_spaces[i].spaces = 1ull << i;
            const auto &written = doc.at("key_spaces")[i];
            if (auto with = written.find("with"); with != written.end())
                for (auto space : with->get<std::vector<std::uint32_t>>()) {
                    if (space >= plan.key_spaces.size()) fail("key_spaces.with", "no such key space");
                    plan.key_spaces[i].spaces |= 1ull << space;
                }
        }
        // a holder of this space holds those spaces, and the spaces held with those
        for (std::size_t i = 0; i < plan.key_spaces.size(); ++i)
            for (auto &space : plan.key_spaces)
                if ((space.spaces >> i & 1) != 0) space.spaces |= plan.key_spaces[i].spaces;
        if (auto it = doc.find("facts"); it != doc.end() && !it->is_null())
            for (const auto &f : *it) {
                plan.facts.push_back({f.at("name").get<std::string>(), scope_of(f, "facts"),
                                      f.at("of").get<std::string>(), texts(f, "value", "facts"),
                                      f.value("unordered", false)});
                if (plan.facts.back().value.empty()) fail("facts", "a fact needs a value");
            }
        const Names names{plan.key_spaces.size(), plan.facts.size()};
        std::size_t i = 0;
        for (const auto &p : doc.at("points"))
            plan.points.push_back(point_spec(p, "points[" + std::to_string(i++) + "]", names));
        plan.threads_work = std::any_of(plan.points.begin(), plan.points.end(),
                                        [](const PointSpec &p) { return p.thread != ThreadRule::kNone; });
        if (auto it = doc.find("stages"); it != doc.end())
            for (const auto &s : *it)
                plan.stages.push_back({s.at("name").get<std::string>(), s.at("from").get<std::string>(),
                                       s.at("to").get<std::string>(), s.value("kind", std::string()),
                                       s.value("behind", false)});
        plan.behind = std::any_of(plan.stages.begin(), plan.stages.end(), [](const StageSpec &s) { return s.behind; });
        plan.bios = own_ios(doc, "bios");
        plan.requests = own_ios(doc, "requests");
        if (auto it = doc.find("files"); it != doc.end())
            for (const auto &f : *it) plan.files.push_back(file_spec(f));
        if (auto it = doc.find("lost"); it != doc.end())
            for (const auto &l : *it)
                plan.lost.push_back(
                    {l.at("why").get<std::string>(), time_or_none(l.at("begin_ns")), time_or_none(l.at("end_ns"))});
        plan.providers = providers_of(doc);
        if (auto it = doc.find("clock_bounds"); it != doc.end()) it->get_to(plan.clock_bounds);
        if (auto it = doc.find("population"); it != doc.end()) {
            plan.tells_processes = !it->is_null();
            if (plan.tells_processes) it->get_to(plan.population);
        }
        if (auto it = doc.find("commands"); it != doc.end()) it->get_to(plan.commands);
        plan.devices = device_specs(doc);
        plan.stacks = stack_specs(doc);
        if (auto it = doc.find("hosts"); it != doc.end())
            for (const auto &h : *it)
                plan.hosts.push_back(
                    {h.at("name").get<std::string>(), h.value("population", std::vector<std::int32_t>()),
                     h.value("commands", std::vector<std::int32_t>()), device_specs(h), stack_specs(h)});
        if (auto it = doc.find("absent"); it != doc.end())
            plan.absent = {it->at("host").get<std::string>(), it->at("begin_ns").get<std::int64_t>(),
                           it->at("end_ns").get<std::int64_t>()};
        return plan;
    } catch (const json::exception &e) {
        throw std::runtime_error(std::string("Cannot use the plan: ") + e.what());
    }
}

Providers providers_of(const json &doc) {
    Providers out;
    for (const auto &[collector, shim] : doc.value("relayed", std::map<std::string, std::string>()))
        out.relayed.push_back({collector, shim});
    out.timed = doc.value("timed", out.timed);
    return out;
}

std::int64_t clock_bound_at(const Plan &plan, std::int64_t ns) {
    const auto &bounds = plan.clock_bounds;
    const auto behind = std::upper_bound(bounds.begin(), bounds.end(), ns,
                                         [](std::int64_t at_ns, const auto &bound) { return at_ns < bound.first; });
    return bounds.empty() ? 0 : behind == bounds.begin() ? behind->second : std::prev(behind)->second;
}

bool glob_match(const std::string &pattern, std::string_view text) {
    return fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

}  // namespace opline
