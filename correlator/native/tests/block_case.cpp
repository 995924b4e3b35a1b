// SPDX-License-Identifier: MIT
// block_case FILE.case …            compare each case with what the block model concludes; status 1 if one differs
// block_case --regen FILE.case …    write the conclusions into the files
// block_case --events [--match=sector] FILE …    a whole trace's block events, one per line: counts only; "-": stdin
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include "block_case_run.hpp"

namespace {

using namespace opline;

int compare(const std::string &path, bool regen) {
    const test::Case c = test::parse_case(test::read_file(path));
    const std::string actual = test::conclude_both(c.events);
    if (regen) {
        std::ofstream(path, std::ios::binary) << test::text_of(c, actual);
        return 0;
    }
    if (actual == c.expected) return 0;
    std::cout << path << ": differs\n--- expected\n" << c.expected << "--- actual\n" << actual;
    return 1;
}

void summarize(const std::string &path, BlockMatch match, bool print) {
    std::vector<test::CaseEvent> events;
    std::string text = path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : test::read_file(path);
    for (std::size_t i = 0; i < text.size();) {
        const auto end = std::min(text.find('\n', i), text.size());
        if (end > i) events.push_back(test::parse_event(std::string_view(text).substr(i, end - i)));
        i = end + 1;
    }
    if (print) {
        std::cout << test::conclude(events, match);
        return;
    }
    std::uint64_t requests = 0, complete = 0, whole = 0, ambiguous = 0, bios = 0, homeless = 0, chained = 0;
    BlockModel::Hooks hooks;
    hooks.request_done = [&](const Request &r) {
        ++requests;
        const bool flush = r.kind == IoKind::kFlush;
        complete += r.complete_ns != kNoTime;
        ambiguous += r.ambiguous;
        whole += r.complete_ns != kNoTime && (flush || (r.queue_ns != kNoTime && r.issue_ns != kNoTime));
    };
    hooks.bio_done = [&](const Bio &b) {
        ++bios;
        chained += b.parent != 0;
        homeless += b.request == 0 && b.complete_ns == kNoTime;
    };
    BlockModel model(match, hooks);
    FateCounts fates{};
    const auto begin = std::chrono::steady_clock::now();
    for (const auto &e : events) ++fates[static_cast<std::size_t>(model.event(e.event))];
    const auto open = model.open_requests();
    model.finish();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::cout << path << ": " << events.size() << " events, " << took.count() / static_cast<double>(events.size())
              << " ns each\nrequests " << requests << " complete " << complete << " Q..C " << whole << " open_at_end "
              << open << " ambiguous " << ambiguous << "\nbios " << bios << " with_parent " << chained
              << " without_request " << homeless << "\nfates";
    for (std::size_t i = 0; i < fates.size(); ++i)
        if (fates[i]) std::cout << ' ' << kFateNames[i] << '=' << fates[i];
    std::cout << '\n' << test::text_of(model.counts());
}

}  // namespace

int main(int argc, char **argv) {
    bool regen = false, events = false, print = false;
    BlockMatch match = BlockMatch::kPointer;
    int status = 0;
    try {
        for (int i = 1; i < argc; ++i) {
            const std::string_view arg = argv[i];
            if (arg == "--regen") regen = true;
            else if (arg == "--events") events = true;
            else if (arg == "--print") events = print = true;
            else if (arg == "--match=sector") match = BlockMatch::kSector;
            else if (arg == "--match=pointer") match = BlockMatch::kPointer;
            else if (arg.size() > 1 && arg.front() == '-') {
                std::cerr << "block_case: unknown option " << arg << "\n";
                return 2;
            } else if (events) summarize(argv[i], match, print);
            else status |= compare(argv[i], regen);
        }
    } catch (const std::exception &e) {
        std::cerr << "block_case: " << e.what() << "\n";
        return 1;
    }
    return status;
}
