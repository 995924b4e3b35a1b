// SPDX-License-Identifier: MIT
// What is missing of data streams, and what says so: LTTng's index, the numbers of their packets, the streams of other
// CPUs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctf/survey.hpp"
#include "event/merge.hpp"

namespace opline::ctf {
namespace {

namespace fs = std::filesystem;

// lttng-tools 2.13, src/common/index/ctf-index.h: all numbers are big-endian.
constexpr std::uint32_t kIndexMagic = 0xc1f1dcc1;
constexpr std::size_t kIndexHeader = 16, kLeastRecord = 56;

constexpr std::uint32_t kMostCpus = 4096;  // limit of an undamaged trace

struct IndexRecord {
    std::uint64_t at, packet_bits;
};

template <class T>
T big_endian(const std::string &bytes, std::size_t at) {
    T out = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        out = static_cast<T>(out << 8 | static_cast<unsigned char>(bytes[at + i]));
    return out;
}

// Empty without an index, or with a senseless index.
std::vector<IndexRecord> read_index(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<IndexRecord> out;
    if (!in) return out;
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (bytes.size() < kIndexHeader || big_endian<std::uint32_t>(bytes, 0) != kIndexMagic) return out;
    const std::size_t size = big_endian<std::uint32_t>(bytes, 12);
    if (size < kLeastRecord || (bytes.size() - kIndexHeader) % size != 0) return out;
    for (std::size_t at = kIndexHeader; at < bytes.size(); at += size)
        out.push_back({big_endian<std::uint64_t>(bytes, at), big_endian<std::uint64_t>(bytes, at + 8)});
    return out;
}

fs::path index_of(const fs::path &file) { return file.parent_path() / "index" / (file.filename().string() + ".idx"); }

bool of_lttng(const Trace &trace) { return trace.env("tracer_name").rfind("lttng", 0) == 0; }

}  // namespace

// An index contradicting the existing packets is ignored.
void Survey::compare_with_index(const Trace &trace, const File &file, ReadLosses &losses) {
    if (file.cut || file.past < file.bytes->size()) return;
    const auto records = read_index(index_of(file.bytes->path()));
    if (records.size() <= file.packets.size()) return;
    for (std::size_t i = 0; i < file.packets.size(); ++i)
        if (records[i].at != file.packets[i].at ||
            records[i].packet_bits != (file.packets[i].past - file.packets[i].at) * 8)
            return;
    Missing missing;
    missing.stream = file.bytes->path();
    missing.domain = trace.domain();
    missing.loss = Loss::kPacketMissing;
    if (const Packet &last = file.packets.back(); last.has_times) missing.begin_ns = trace.time_ns(last.end);
    lose(losses, std::move(missing), "the file is shorter than its index says");
}

// Empty or missing files. LTTng leaves no file empty: when LTTng stops, every stream gets a packet, with or without
// events.
void Survey::find_gone(const Trace &trace, const std::set<std::string> &empty, ReadLosses &losses) {
    auto gone = [&](const std::string &path, const char *why) {
        const std::string name = path.substr(path.rfind('/') + 1), channel = channel_of(name);
        if (trace.domain() == Domain::kKernel && channel.size() + 1 < name.size() && channel.size() + 6 > name.size())
            kernel_cpus_[trace.env("hostname")].insert(
                static_cast<std::uint32_t>(std::strtoul(name.c_str() + channel.size() + 1, nullptr, 10)));
        Missing missing;
        missing.stream = path;
        missing.domain = trace.domain();
        lose(losses, std::move(missing), why);
    };
    for (const std::string &path : empty) {
        std::error_code error;
        const bool indexed = fs::exists(index_of(path), error);
        if (indexed ? !read_index(index_of(path)).empty() : of_lttng(trace))
            gone(path, indexed ? "the file is empty, and its index says that it had packets"
                               : "the file is empty, and those of other CPUs are not");
    }
    std::set<std::string> names;
    for (const auto &file : trace.files) names.insert(file.path.filename().string());
    std::error_code error;
    std::vector<fs::path> indexes;
    for (const auto &entry : fs::directory_iterator(fs::path(trace.path) / "index", error))
        if (entry.path().extension() == ".idx" && names.count(entry.path().stem().string()) == 0)
            indexes.push_back(entry.path());
    std::sort(indexes.begin(), indexes.end());
    for (const auto &index : indexes) {
        if (read_index(index).empty()) continue;
        const fs::path file = fs::path(trace.path) / index.stem();
        gone(file.string(), "the file is gone, and its index says that it had packets");
        if (!cpus_.empty()) cpus_.back().gone.insert(index.stem().string());
    }
}

void Survey::note_cpus(const Trace &trace, const std::map<std::pair<std::uint64_t, std::uint64_t>, Group> &groups,
                       const std::set<std::string> &empty) {
    if (!of_lttng(trace)) return;
    Cpus cpus;
    cpus.folder = trace.path;
    cpus.host = trace.env("hostname");
    cpus.kernel = trace.domain() == Domain::kKernel;
    for (const auto &[key, group] : groups)
        for (const File &file : group) {
            if (file.cpu == kNoCpu) continue;
            cpus.by_class[key.first].insert(file.cpu);
            cpus.channels[key.first] = channel_of(file.bytes->path());
            if (cpus.kernel) kernel_cpus_[cpus.host].insert(file.cpu);
        }
    for (const std::string &path : empty) cpus.gone.insert(path.substr(path.rfind('/') + 1));
    cpus_.push_back(std::move(cpus));
}

// A channel of LTTng has a stream for each CPU, used or not. So a channel must have (1) all CPUs of the other channels;
// (2) in user space all CPUs of the kernel (more can come); (3) as many CPUs as the recording counted; (4) numbers from
// 0 on. A number left out in between is another missing file, unless no two numbers are neighbours: then every second
// CPU (the second thread of its core) is off.
void Survey::find_cpus_without_stream(ReadLosses &losses, std::uint32_t recorded) {
    for (const Cpus &cpus : cpus_) {
        std::set<std::uint32_t> expected;
        for (const Cpus &other : cpus_)
            if (other.host == cpus.host && (other.kernel || !cpus.kernel))
                for (const auto &[id, numbers] : other.by_class) expected.insert(numbers.begin(), numbers.end());
        if (expected.empty()) continue;
        bool neighbours = false;
        for (const std::uint32_t n : expected) neighbours = neighbours || expected.count(n + 1) != 0;
        const std::uint32_t last = *expected.rbegin();
        if (last < kMostCpus)
            for (std::uint32_t n = 0; n < last && (neighbours || n == 0); ++n) expected.insert(n);
        for (std::uint32_t n = 0; expected.size() < recorded; ++n) expected.insert(n);
        // no other proof is needed
        if (cpus.kernel) kernel_cpus_[cpus.host].insert(expected.begin(), expected.end());
        for (const auto &[id, numbers] : cpus.by_class)
            for (const std::uint32_t n : expected) {
                const std::string name = cpus.channels.at(id) + "_" + std::to_string(n);
                if (numbers.count(n) != 0 || cpus.gone.count(name) != 0 || cpus.gone.count(name + "_0") != 0) continue;
                Missing missing;
                missing.stream = cpus.folder + "/" + name;
                missing.domain = cpus.kernel ? Domain::kKernel : Domain::kUst;
                lose(losses, std::move(missing),
                     "there is no such file, and other streams say that there was a CPU " + std::to_string(n));
            }
    }
}

void Survey::find_missing(ReadLosses &losses, std::uint32_t cpus) {
    find_cpus_without_stream(losses, std::min(cpus, kMostCpus));
    // Packets are numbered from 0. In a stream continued from another trace (a rotated session), numbers continue as
    // well.
    for (const auto &[key, known] : known_)
        for (const FilePart &part : known.parts) {
            if (part.first.sequence == 0) continue;
            const auto at =
                std::lower_bound(known.packets.begin(), known.packets.end(), PacketId{part.first.sequence, 0, 0, 0});
            const PacketId *before = at == known.packets.begin() ? nullptr : &*std::prev(at);
            // of one trace: damaged numbers, in an order different from the times
            if (before && before->trace != part.trace) part.stream->goes_on_from(before->end, before->discarded);
            const std::uint64_t numbers = part.first.sequence - (before ? before->sequence + 1 : 0);
            if (numbers == 0 || (!before && part.trace->goes_on)) continue;
            const std::uint64_t packets = std::max<std::uint64_t>(credible_count(numbers), 1);  // at least one
            Missing missing;
            missing.domain = part.trace->domain();
            missing.stream = part.path.substr(part.path.rfind('/') + 1);
            if (before) missing.begin_ns = part.trace->time_ns(before->end);
            missing.end_ns = part.begin_ns;
            missing.packets = packets;
            losses.say(part.path + ": its first packet is number " + std::to_string(part.first.sequence) + ": " +
                       std::to_string(packets) + " packets before it are not there");
            missing_.push_back(std::move(missing));
        }
    known_.clear();
}

}  // namespace opline::ctf
