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

// What was there, as far as can be told, and is not any more.
struct Missing {
    std::string stream;  // the name of its file
    Domain domain = Domain::kUst;
    Loss loss = Loss::kStreamMissing;
    std::int64_t begin_ns = kNoTime, end_ns = kNoTime;  // kNoTime: since, or until, whenever
    std::uint64_t packets = 0;                          // 0: not known how many
};

// What babeltrace2 needs done to a file before it reads what the native reader does.
struct Mending {
    struct Patch {
        std::uint64_t at = 0, value = 0;  // byte; number of so many bytes
        std::uint32_t bytes = 0;
        bool big_endian = false;
    };
    std::size_t keep = 0;  // bytes; 0: the file is left out
    std::vector<Patch> patches;
    // [begin, end) of its packets in the order of reading; empty: as they lie
    std::vector<std::pair<std::size_t, std::size_t>> order;
};

class Survey {
  public:
    // A trace's data streams: files of one stream instance together, in the order of their times. Packets that lie
    // there twice, in this trace or one before, are read once. `huge`: MappedFile's. Throws Malformed.
    std::vector<std::unique_ptr<Stream>> streams_of(const Trace &, ReadLosses &, bool huge = false);
    // Once that was called for all traces, and before they are read: what is missing of which, and which stream
    // goes on from another trace's. `cpus`: how many the machine had, as far as the
    // recording says; 0: it does not.
    void find_missing(ReadLosses &, std::uint32_t cpus);
    const std::vector<Missing> &missing() const { return missing_; }
    // By path; files without are read as they are.
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
        std::vector<Packet> packets;  // as they lie, then in the order of reading
        std::size_t past = 0;         // where what can't be read begins; the file's size: nowhere
        std::uint64_t begin = 0;      // of its first packet
        std::uint32_t cpu = kNoCpu;
        bool as_they_lie = true, cut = false;
    };
    struct PacketId {
        std::uint64_t sequence, begin, end, content_bits, discarded = 0;
        const Trace *trace = nullptr;
        bool operator<(const PacketId &o) const { return sequence < o.sequence; }
        // The same packet, though one of its two times may be damaged in a copy.
        bool same_packet(const PacketId &o) const {
            return sequence == o.sequence && content_bits == o.content_bits && (begin == o.begin || end == o.end);
        }
    };
    struct Place {
        PacketId id;
        std::size_t file, packet;
    };
    static bool by_number(const Place &a, const Place &b) { return a.id < b.id; }
    // One stream of one trace, when all its packets are known.
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
        std::set<std::string> gone;                     // names of files that are known to be
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

// Where the number with a role lies in a packet whose context begins at that bit; nullopt: not among numbers of fixed
// size, or not at a byte.
std::optional<Mending::Patch> place_of(const Type &context, std::uint64_t context_at, FieldRole);

}  // namespace opline::ctf
