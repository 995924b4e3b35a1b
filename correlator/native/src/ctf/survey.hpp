// SPDX-License-Identifier: MIT
// What the headers of all packets, LTTng's index and the names of the files say of some traces' data streams: which
// packets of which file are read, in which order, and what is missing. Decided here, before the first event, for both
// readers.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ctf/losses.hpp"
#include "ctf/stream.hpp"
#include "ctf/trace.hpp"

namespace opline::ctf {

// A missing part of a trace, as far as known.
struct Missing {
    std::string stream;  // name of the file
    Domain domain = Domain::kUst;
    Loss loss = Loss::kStreamMissing;
    std::int64_t begin_ns = kNoTime, end_ns = kNoTime;  // kNoTime: since, or until, whenever
    std::uint64_t packets = 0;                          // 0: not known how many
};

// Changes to a file that let babeltrace2 read the same as the native reader.
struct Mending {
    struct Patch {
        std::uint64_t at = 0, value = 0;  // byte; number of so many bytes
        std::uint32_t bytes = 0;
        bool big_endian = false;
    };
    std::size_t keep = 0;  // bytes; 0: the file is left out
    std::vector<Patch> patches;
    // [begin, end) of the packets in the order of reading; empty: in file order
    std::vector<std::pair<std::size_t, std::size_t>> order;
};

class Survey {
  public:
    // A trace's data streams: the files of one stream together, in order of time. Packets found twice, in this trace or
    // an earlier trace, are read once. `huge`: as MappedFile. Throws Malformed.
    std::vector<std::unique_ptr<Stream>> streams_of(const Trace &, ReadLosses &, bool huge = false);
    // After the call of streams_of() for all traces, and before reading: finds missing parts, and streams continued
    // from another trace. `cpus`: number of the machine's CPUs, from the recording; 0: unknown.
    void find_missing(ReadLosses &, std::uint32_t cpus);
    const std::vector<Missing> &missing() const { return missing_; }
    // By path; files without an entry are read unchanged.
    std::map<std::string, Mending> mendings;
    // The CPUs of all kernel streams, per host.
    const std::map<std::string, std::set<std::uint32_t>> &kernel_cpus() const { return kernel_cpus_; }

  private:
    struct Packet {
        std::size_t at, past;  // bytes
        std::uint64_t begin, end, sequence, content_bits, discarded;
        bool has_times, has_sequence;
    };
    struct File {
        std::shared_ptr<MappedFile> bytes;
        std::vector<Packet> packets;  // in file order, then in the order of reading
        std::size_t past = 0;         // the first unreadable byte; the file's size: none
        std::uint64_t begin = 0;      // of the first packet
        std::uint32_t cpu = kNoCpu;
        bool as_they_lie = true, cut = false;
    };
    struct PacketId {
        std::uint64_t sequence, begin, end, content_bits, discarded = 0;
        const Trace *trace = nullptr;
        bool operator<(const PacketId &o) const { return sequence < o.sequence; }
        // The same packet, although one of the two times may be damaged in a copy.
        bool same_packet(const PacketId &o) const {
            return sequence == o.sequence && content_bits == o.content_bits && (begin == o.begin || end == o.end);
        }
    };
    struct Place {
        PacketId id;
        std::size_t file, packet;
    };
    static bool by_number(const Place &a, const Place &b) { return a.id < b.id; }
    // One stream of one trace, after all packets are known.
    struct FilePart {
        std::string path;
        PacketId first;
        std::int64_t begin_ns;
        const Trace *trace;
        Stream *stream;
    };
    struct Known {
        std::vector<PacketId> packets;  // sorted
        std::vector<FilePart> parts;
    };
    struct Cpus {
        std::string folder, host;
        bool kernel = false;
        std::map<std::uint64_t, std::set<std::uint32_t>> by_class;
        std::map<std::uint64_t, std::string> channels;  // names, by class
        std::set<std::string> gone;                     // names of files known to be missing
    };
    using Group = std::vector<File>;

    static void look_through(const Trace &, File &);
    static void drop_doubles_by_time(const Group &, std::vector<Place> &kept, std::vector<Place> &doubles);
    static void drop_doubles(const Trace &, Known &, Group &, ReadLosses &);
    static void order(File &, ReadLosses &);
    void compare_with_index(const Trace &, const File &, ReadLosses &);
    void find_gone(const Trace &, const std::set<std::string> &empty, ReadLosses &);
    void find_cpus_without_stream(ReadLosses &, std::uint32_t recorded);
    void note_cpus(const Trace &, const std::map<std::pair<std::uint64_t, std::uint64_t>, Group> &,
                   const std::set<std::string> &empty);
    void mend(const Trace &, const File &);
    void lose(ReadLosses &, Missing, const std::string &why);

    // by trace's uuid, stream class and instance
    std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, Known> known_;
    std::vector<Cpus> cpus_;
    std::map<std::string, std::set<std::uint32_t>> kernel_cpus_;
    std::vector<Missing> missing_;
};

// The place of the number with a role in a packet, with the context at bit `context_at`; nullopt: no number of fixed
// size, or not at a byte.
std::optional<Mending::Patch> place_of(const Type &context, std::uint64_t context_at, FieldRole);

}  // namespace opline::ctf
