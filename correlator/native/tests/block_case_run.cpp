// SPDX-License-Identifier: MIT
#include "block_case_run.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace opline::test {

namespace {

std::uint64_t number(std::string_view text, std::string_view what) {
    const bool minus = !text.empty() && text.front() == '-';
    if (minus) text.remove_prefix(1);
    int base = 10;
    if (text.substr(0, 2) == "0x") {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size())
        throw std::runtime_error("not a number: " + std::string(what) + "=" + std::string(text));
    return minus ? ~value + 1 : value;
}

std::uint32_t device(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return static_cast<std::uint32_t>(number(text, "dev"));
    const auto major = number(text.substr(0, colon), "dev"), minor = number(text.substr(colon + 1), "dev");
    return static_cast<std::uint32_t>(major << 20 | minor);
}

bool is_digit(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }

std::string dev_text(std::uint32_t dev) { return std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff); }

const char *kind_text(IoKind kind) { return io_kind_name(kind).data(); }

std::vector<std::string_view> words(std::string_view line) {
    std::vector<std::string_view> out;
    for (std::size_t i = 0; i < line.size();) {
        const auto end = std::min(line.find(' ', i), line.size());
        if (end > i) out.push_back(line.substr(i, end - i));
        i = end + 1;
    }
    return out;
}

void put_time(std::ostream &out, const char *name, std::int64_t t) {
    if (t != kNoTime) out << ' ' << name << '=' << t;
}
void put_if(std::ostream &out, const char *name, std::uint64_t v) {
    if (v != 0) out << ' ' << name << '=' << v;
}

template <class T, class Text>
void put_list(std::ostream &out, const char *name, const std::vector<T> &list, Text text) {
    if (list.empty()) return;
    out << ' ' << name << '=';
    for (std::size_t i = 0; i < list.size(); ++i) out << (i ? "," : "") << text(list[i]);
}

std::string owner_text(const Owner &o) { return o.batch ? "batch" + std::to_string(o.batch) : std::to_string(o.op); }

void put(std::ostream &out, const Request &r) {
    out << "request " << r.id << ' ' << dev_text(r.dev) << ' ';
    if (r.sector == kNoSector) out << '-';
    else out << r.sector << '+' << r.nr_sectors;
    out << ' ' << BlockModel::rwbs_letters(r.rwbs) << ' ' << kind_text(r.kind);
    put_time(out, "q", r.queue_ns);
    put_time(out, "g", r.getrq_ns);
    put_time(out, "i", r.insert_ns);
    if (r.first_issue_ns != r.issue_ns) put_time(out, "d1", r.first_issue_ns);
    put_time(out, "d", r.issue_ns);
    put_time(out, "c", r.complete_ns);
    if (r.end_ns != r.complete_ns) put_time(out, "end", r.end_ns);
    if (r.queue_tid >= 0) out << " qtid=" << r.queue_tid;
    if (r.issue_tid >= 0) out << " dtid=" << r.issue_tid;
    put_list(out, "bios", r.bios, [](std::uint64_t id) { return std::to_string(id); });
    put_list(out, "op", r.owners, owner_text);
    put_if(out, "merges", r.merges);
    put_if(out, "requeues", r.requeues);
    put_if(out, "in_flight", r.in_flight);
    if (r.error != 0) out << " error=" << r.error;
    put_if(out, "absorbed_by", r.absorbed_by);
    put_if(out, "flushed_by", r.flushed_by);
    if (r.ambiguous) out << " ambiguous";
    if (r.reused) out << " reused";
    if (r.complete_ns == kNoTime && !r.reused && r.absorbed_by == 0) out << " open";
    out << '\n';
}

void put(std::ostream &out, const Bio &b) {
    out << "bio " << b.id << ' ' << dev_text(b.dev) << ' ' << b.sector << '+' << b.nr_sectors << ' '
        << kind_text(b.kind);
    put_time(out, "q", b.queue_ns);
    put_time(out, "c", b.complete_ns);
    put_if(out, "request", b.request);
    put_if(out, "parent", b.parent);
    put_if(out, "split_from", b.split_from);
    if (b.merged) out << " merged";
    put_time(out, "at", b.merge_ns);
    if (b.owner) out << " op=" << owner_text(b.owner);
    out << '\n';
}

template <class List>
void put_counts(std::ostream &out, const char *name, const List &list) {
    bool any = false;
    for (const auto &[key, value] : list) {
        if (value == 0) continue;
        out << (any ? " " : std::string(name) + " ") << key << '=' << value;
        any = true;
    }
    if (any) out << '\n';
}

using Counts = std::vector<std::pair<const char *, std::uint64_t>>;

Counts losses_of(const BlockCounts &c) {
    return {{"unmatched_getrq", c.unmatched_getrq},
            {"unmatched_merge", c.unmatched_merge},
            {"unmatched_insert", c.unmatched_insert},
            {"unmatched_issue", c.unmatched_issue},
            {"unmatched_complete", c.unmatched_complete},
            {"unmatched_requeue", c.unmatched_requeue},
            {"unmatched_split", c.unmatched_split},
            {"unmatched_bio_complete", c.unmatched_bio_complete},
            {"unmatched_rq_bio", c.unmatched_rq_bio},
            {"pointer_reuse", c.pointer_reuse},
            {"evicted", c.evicted},
            {"incomplete_at_end", c.incomplete_at_end},
            {"size_differs", c.size_differs},
            {"lost_bios", c.lost_bios},
            {"presumed_lost", c.presumed_lost}};
}

Counts steps_of(const BlockCounts &c) {
    return {{"remaps", c.remaps},
            {"splits", c.splits},
            {"back_merges", c.back_merges},
            {"front_merges", c.front_merges},
            {"rq_merges", c.rq_merges},
            {"issues", c.issues},
            {"requeues", c.requeues},
            {"flushes", c.flushes},
            {"completions", c.completions},
            {"partial_completions", c.partial_completions},
            {"second_completions", c.second_completions},
            {"corrected_merges", c.corrected_merges}};
}

void put_hop(std::ostream &out, const char *name, const HopAgreement &h) {
    put_counts(out, name,
               Counts{{"agree", h.agree},
                      {"differ", h.differ},
                      {"pointer_only", h.pointer_only},
                      {"sector_only", h.sector_only},
                      {"neither", h.neither},
                      {"ambiguous", h.ambiguous}});
}

}  // namespace

CaseEvent parse_event(std::string_view line) {
    const auto parts = words(line);
    if (parts.size() < 2) throw std::runtime_error("an event needs a time and a kind: " + std::string(line));
    CaseEvent out{};
    BlockEvent &e = out.event;
    e.ts_ns = static_cast<std::int64_t>(number(parts[0], "time"));
    e.kind = BlockModel::kind_by_name("block_" + std::string(parts[1]));
    e.cpu = kNoCpu;
    e.tid = -1;
    for (std::size_t i = 2; i < parts.size(); ++i) {
        const auto equals = parts[i].find('=');
        if (equals == std::string_view::npos) throw std::runtime_error("not key=value: " + std::string(parts[i]));
        const auto key = parts[i].substr(0, equals), value = parts[i].substr(equals + 1);
        const auto n = [&] { return number(value, key); };
        const auto n32 = [&] { return static_cast<std::uint32_t>(n()); };
        if (key == "cpu") e.cpu = n32();
        else if (key == "tid") e.tid = static_cast<std::int32_t>(n());
        else if (key == "comm") e.comm = 0;
        else if (key == "dev") e.dev = device(value);
        else if (key == "sector") e.sector = n();
        else if (key == "nr") e.nr_sectors = n32();
        else if (key == "bytes") continue;  // nr says it
        else if (key == "rwbs") e.rwbs = is_digit(value) ? n32() : BlockModel::rwbs_by_letters(value);
        else if (key == "error") e.error = static_cast<std::int32_t>(n());
        else if (key == "old_dev") e.old_dev = device(value);
        else if (key == "old_sector") e.old_sector = n();
        else if (key == "new_sector") e.new_sector = n();
        else if (key == "rq") e.rq = n();
        else if (key == "bio") e.bio = n();
        else if (key == "parent") e.parent = n();
        else if (key == "op") out.owner.op = n();
        else if (key == "batch") out.owner.batch = n();
        else throw std::runtime_error("unknown key: " + std::string(key));
    }
    return out;
}

Case parse_case(std::string_view text) {
    Case out;
    int part = 0;
    std::size_t line_number = 0;
    while (!text.empty()) {
        ++line_number;
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line == "---") {
            ++part;
            continue;
        }
        std::string &to = part == 0 ? out.title : part == 1 ? out.events_text : out.expected;
        to += line;
        to += '\n';
        if (part != 1 || line.empty() || line.front() == '#') continue;
        try {
            out.events.push_back(parse_event(line));
        } catch (const std::runtime_error &e) {
            throw std::runtime_error("line " + std::to_string(line_number) + ": " + e.what());
        }
    }
    return out;
}

std::string conclude(const std::vector<CaseEvent> &events, BlockMatch match) {
    std::ostringstream requests, bios, out;
    Owner owner;
    BlockModel::Hooks hooks;
    hooks.bio_queued = [&](const BlockEvent &, const Bio &) { return owner; };
    hooks.request_done = [&](const Request &r) { put(requests, r); };
    hooks.bio_done = [&](const Bio &b) { put(bios, b); };
    BlockModel model(match, hooks);
    FateCounts fates{};
    for (const auto &e : events) {
        owner = e.owner;
        ++fates[static_cast<std::size_t>(model.event(e.event))];
    }
    model.finish();
    out << requests.str() << bios.str();
    std::vector<std::pair<std::string_view, std::uint64_t>> named;
    for (std::size_t i = 0; i < fates.size(); ++i) named.emplace_back(kFateNames[i], fates[i]);
    put_counts(out, "fates", named);
    const BlockCounts &c = model.counts();
    put_counts(out, "losses", losses_of(c));
    put_hop(out, "hop bio_to_request", c.bio_to_request);
    put_hop(out, "hop request_to_issue", c.request_to_issue);
    put_hop(out, "hop request_to_complete", c.request_to_complete);
    return out.str();
}

std::string conclude_both(const std::vector<CaseEvent> &events) {
    const auto by_pointer = conclude(events, BlockMatch::kPointer), by_sector = conclude(events, BlockMatch::kSector);
    if (by_pointer == by_sector) return by_pointer;
    return "== pointers\n" + by_pointer + "== sectors\n" + by_sector;
}

std::string text_of(const Case &c, std::string_view conclusions) {
    return c.title + "---\n" + c.events_text + "---\n" + std::string(conclusions);
}

std::string text_of(const BlockCounts &c) {
    std::ostringstream out;
    put_counts(out, "steps", steps_of(c));
    put_counts(out, "losses", losses_of(c));
    put_hop(out, "hop bio_to_request", c.bio_to_request);
    put_hop(out, "hop request_to_issue", c.request_to_issue);
    put_hop(out, "hop request_to_complete", c.request_to_complete);
    return out.str();
}

std::string read_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace opline::test
