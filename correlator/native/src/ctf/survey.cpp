// SPDX-License-Identifier: MIT
#include "ctf/survey.hpp"

#include <algorithm>

#include "event/merge.hpp"

namespace opline::ctf {
namespace {

// A damaged file may have one number thousands of times: limit of comparisons per packet.
constexpr std::ptrdiff_t kMostAlike = 64;

std::string name_of(const std::string &path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::optional<Mending::Patch> place_of(const Type &context, std::uint64_t context_at, FieldRole role) {
    auto aligned = [](std::uint64_t at, std::uint64_t bits) { return bits > 1 ? (at + bits - 1) / bits * bits : at; };
    std::uint64_t at = aligned(context_at, alignment(context));
    for (const Member &m : context.members) {
        const Type &t = *m.type;
        if (!t.is_integer() || t.variable_length) return std::nullopt;
        at = aligned(at, alignment(t));
        if (t.roles & bit(role)) {
            if (at % 8 != 0 || t.size_bits % 8 != 0 || t.size_bits > 64 || t.reversed) return std::nullopt;
            return Mending::Patch{at / 8, 0, t.size_bits / 8, t.big_endian};
        }
        at += t.size_bits;
    }
    return std::nullopt;
}

void Survey::lose(ReadLosses &losses, Missing missing, const std::string &why) {
    losses.add(missing.loss, missing.stream + ": " + why);
    missing.stream = name_of(missing.stream);
    missing_.push_back(std::move(missing));
}

// Reads the headers of all packets. Unreadable bytes end the list; the stream reports the damage.
void Survey::look_through(const Trace &trace, File &file) {
    MappedFile &bytes = *file.bytes;
    std::size_t at = 0;
    std::string why;
    for (PacketInfo info; at < bytes.size() && read_packet(bytes, at, trace.layout, info, why);) {
        const std::size_t left = bytes.size() - at;
        file.cut = info.packet_bits / 8 > left;
        const std::size_t past = at + std::min(left, static_cast<std::size_t>(info.packet_bits / 8));
        file.packets.push_back({at, past, info.begin, info.end, info.sequence, info.content_bits, info.discarded,
                                info.has_times, info.has_sequence});
        at = past;
        bytes.done_until(at);
    }
    bytes.rewind();
    file.past = at;
}

// Packets with equal times and bytes and different numbers: one is read if a number is damaged, that is, equal to
// another packet's number, or without a neighbouring number.
void Survey::drop_doubles_by_time(const Group &group, std::vector<Place> &kept, std::vector<Place> &doubles) {
    const auto times = [](const Place &place) { return std::tie(place.id.begin, place.id.end, place.id.content_bits); };
    const auto alike = [&](const Place &a, const Place &b) { return times(a) == times(b); };
    std::vector<Place> by_time = kept;
    std::stable_sort(by_time.begin(), by_time.end(),
                     [&](const Place &a, const Place &b) { return times(a) < times(b); });
    if (std::adjacent_find(by_time.begin(), by_time.end(), alike) == by_time.end()) return;
    const auto count = [&](std::uint64_t number) {
        const auto [first, past] =
            std::equal_range(kept.begin(), kept.end(), Place{{number, 0, 0, 0}, 0, 0}, by_number);
        return past - first;
    };
    const auto in_turn = [&](const Place &place) {
        const std::uint64_t number = place.id.sequence;
        return count(number) == 1 && count(number + 1) + count(number - 1) != 0;
    };
    const auto bytes = [&](const Place &place) {
        const File &file = group[place.file];
        const Packet &packet = file.packets[place.packet];
        return std::string_view(reinterpret_cast<const char *>(file.bytes->data()) + packet.at,
                                packet.past - packet.at);
    };
    const auto same = [&](const Place &a, const Place &b) {
        const std::string_view one = bytes(a), other = bytes(b);
        if (!alike(a, b) || one.size() != other.size()) return false;
        const auto differ =
            static_cast<std::size_t>(std::mismatch(one.begin(), one.end(), other.begin()).first - one.begin());
        const std::size_t behind = std::min(one.size(), differ + sizeof(std::uint64_t));
        return one.substr(behind) == other.substr(behind);
    };
    std::vector<Place> once;
    for (const Place &place : by_time) {
        if (once.empty() || !same(once.back(), place) || (in_turn(place) && in_turn(once.back()))) {
            once.push_back(place);
            continue;
        }
        doubles.push_back(place);
        if (in_turn(place)) std::swap(once.back(), doubles.back());
    }
    std::stable_sort(once.begin(), once.end(), by_number);
    kept = std::move(once);
}

// Among equal packets of a stream, the first is read.
void Survey::drop_doubles(const Trace &trace, Known &known, Group &group, ReadLosses &losses) {
    std::vector<Place> places;
    for (std::size_t f = 0; f < group.size(); ++f)
        for (std::size_t p = 0; p < group[f].packets.size(); ++p)
            if (const Packet &packet = group[f].packets[p]; packet.has_sequence)
                places.push_back(
                    {{packet.sequence, packet.begin, packet.end, packet.content_bits, packet.discarded, &trace}, f, p});
    std::stable_sort(places.begin(), places.end(), by_number);
    std::vector<Place> doubles, kept;
    for (const Place &place : places) {
        const auto same = [&place](const PacketId &other) { return other.same_packet(place.id); };
        const auto [first, past] = std::equal_range(known.packets.begin(), known.packets.end(), place.id);
        bool twice = std::any_of(first, first + std::min(past - first, kMostAlike), same);
        for (auto i = kept.rbegin(); !twice && i != kept.rend() && i->id.sequence == place.id.sequence; ++i) {
            if (i - kept.rbegin() == kMostAlike) break;
            twice = same(i->id);
        }
        (twice ? doubles : kept).push_back(place);
    }
    drop_doubles_by_time(group, kept, doubles);
    std::vector<PacketId> ids;
    for (const Place &place : kept) ids.push_back(place.id);
    const auto before = static_cast<std::ptrdiff_t>(known.packets.size());
    known.packets.insert(known.packets.end(), ids.begin(), ids.end());
    std::inplace_merge(known.packets.begin(), known.packets.begin() + before, known.packets.end());
    std::sort(doubles.begin(), doubles.end(),
              [](const Place &a, const Place &b) { return std::tie(a.file, a.packet) > std::tie(b.file, b.packet); });
    for (auto it = doubles.rbegin(); it != doubles.rend(); ++it) {
        const File &file = group[it->file];
        losses.add(Loss::kPacketDoubled, file.bytes->path() + ": packet at byte " +
                                             std::to_string(file.packets[it->packet].at) +
                                             ": it is there twice; it is read once");
    }
    for (const Place &place : doubles) {  // from behind
        File &file = group[place.file];
        file.packets.erase(file.packets.begin() + static_cast<std::ptrdiff_t>(place.packet));
        file.as_they_lie = false;
    }
}

void Survey::order(File &file, ReadLosses &losses) {
    std::uint64_t last_end = 0;
    const Packet *last = nullptr;
    bool sorted = true;
    for (const Packet &p : file.packets) {
        if (p.has_times && last) {
            if (p.begin < last_end)
                losses.add(
                    Loss::kPacketOutOfOrder,
                    file.bytes->path() + ": packet at byte " + std::to_string(p.at) +
                        ": it begins before the one before it ended; packets are read in the order of their times");
            sorted = sorted && p.begin >= last->begin;
        }
        last_end = p.end;
        last = &p;
    }
    if (sorted) return;
    file.as_they_lie = false;
    std::stable_sort(file.packets.begin(), file.packets.end(),
                     [](const Packet &a, const Packet &b) { return a.begin < b.begin; });
}

// The changes for babeltrace2: the packets that are read, in order; the last packet ends at the end of the file.
void Survey::mend(const Trace &trace, const File &file) {
    const bool ends_early = file.past < file.bytes->size();
    if (file.as_they_lie && !ends_early && !file.cut) return;
    Mending &m = mendings[file.bytes->path()];
    m.keep = file.packets.empty() ? 0 : file.past;
    const Packet *cut = nullptr;
    for (const Packet &p : file.packets)
        if (file.cut && p.past == file.bytes->size()) cut = &p;
    if (cut) {
        PacketInfo info;
        std::string why;
        read_packet(*file.bytes, cut->at, trace.layout, info, why);
        const std::uint64_t available = (cut->past - cut->at) * 8;
        const auto &context = trace.meta.streams.at(info.stream_id).packet_context;
        for (const FieldRole role : {FieldRole::kContentSize, FieldRole::kPacketSize})
            if (auto place = context ? place_of(*context, info.context_at, role) : std::nullopt) {
                place->at += cut->at;
                place->value = role == FieldRole::kPacketSize ? available : std::min(available, info.content_bits);
                m.patches.push_back(*place);
            }
    }
    if (!file.as_they_lie)
        for (const Packet &p : file.packets) m.order.emplace_back(p.at, p.past);
}

std::vector<std::unique_ptr<Stream>> Survey::streams_of(const Trace &trace, ReadLosses &losses, bool huge) {
    std::vector<std::unique_ptr<Stream>> out;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Group> groups;
    std::set<std::string> empty;
    for (const auto &file : trace.files) {
        const std::string path = file.path.string();
        File f;
        const std::string_view content(file.content, file.content ? file.bytes : 0);
        f.bytes = file.content ? std::make_shared<MappedFile>(path, content) : std::make_shared<MappedFile>(path, huge);
        if (f.bytes->size() == 0) {
            empty.insert(path);
            continue;
        }
        PacketInfo info;
        std::string why;
        if (!read_packet(*f.bytes, 0, trace.layout, info, why)) {
            losses.add(why == kCutOff ? Loss::kTruncatedPacket : Loss::kMalformedPacket,
                       path + ": first packet: " + why + "; the file is not read");
            mendings[path];
            continue;
        }
        f.begin = info.begin;
        f.cpu = info.cpu;
        look_through(trace, f);
        const std::uint64_t instance = info.has_instance ? info.instance : groups.size();
        groups[{info.stream_id, instance}].push_back(std::move(f));
    }
    note_cpus(trace, groups, empty);
    const bool has_index = !trace.path.empty();
    if (has_index) find_gone(trace, empty, losses);
    for (auto &[key, group] : groups) {
        const auto earlier = [](const File &a, const File &b) { return a.begin < b.begin; };
        std::stable_sort(group.begin(), group.end(), earlier);
        if (has_index)
            for (const File &file : group) compare_with_index(trace, file, losses);
        // Traces without a uuid are strangers to each other.
        Known &known = known_[{trace.meta.uuid.empty() ? trace.path : trace.meta.uuid, key.first, key.second}];
        drop_doubles(trace, known, group, losses);
        for (File &file : group) {
            order(file, losses);
            mend(trace, file);
            if (!file.packets.empty()) file.begin = file.packets.front().begin;
        }
        std::stable_sort(group.begin(), group.end(), earlier);
        std::vector<Packets::File> files;
        const Packet *first = nullptr;
        for (File &file : group) {
            if (file.packets.empty()) continue;
            if (!first) first = &file.packets.front();
            Packets::File &f = files.emplace_back(Packets::File{file.bytes, {}});
            if (file.as_they_lie) continue;
            for (const Packet &p : file.packets) f.order.push_back(p.at);
            if (file.past < file.bytes->size()) f.order.push_back(file.past);
        }
        if (!first) continue;
        StreamDecl decl;
        decl.host = trace.host();
        decl.clock = trace.map;
        decl.domain = trace.domain();
        decl.path = files.front().bytes->path();
        decl.channel = channel_of(decl.path);
        decl.instance = key.second;
        auto &stream = out.emplace_back(
            std::make_unique<Stream>(std::move(files), trace.layout, std::move(decl), key.first, trace.frequency));
        if (first->has_sequence)
            known.parts.push_back({stream->decl.path,
                                   {first->sequence, first->begin, first->end, first->content_bits},
                                   trace.time_ns(first->begin),
                                   &trace,
                                   stream.get()});
    }
    return out;
}

}  // namespace opline::ctf
