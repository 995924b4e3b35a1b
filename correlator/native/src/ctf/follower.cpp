// SPDX-License-Identifier: MIT
#include "ctf/follower.hpp"

#include <algorithm>
#include <filesystem>

#include "ctf/merging.hpp"

namespace opline::ctf {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStep = 512u << 10;  // a stream's bytes are given back in no smaller pieces

}  // namespace

struct Follower::Impl : Merging {
    // A file of events and its packets read so far.
    struct GrowingFile {
        std::size_t trace;
        std::string path;
        std::size_t taken = 0;     // bytes
        Stream *stream = nullptr;  // nullptr: no packet so far
        bool damaged = false;      // no packet follows; the stream has reported the damage
    };
    std::vector<GrowingFile> growing;
    std::vector<std::uint64_t> metadata_bytes;  // by trace
    std::int64_t until_ns = kNoTime;            // all earlier events have been pushed

    // Looks for new files of a trace. False: the metadata has grown.
    bool look_for_files(std::size_t number) {
        const Trace &trace = *traces[number];
        if (fs::file_size(fs::path(trace.path) / "metadata") != metadata_bytes[number]) return false;
        for (const std::string &path : files_of(trace.path))
            if (std::none_of(growing.begin(), growing.end(), [&](const GrowingFile &s) { return s.path == path; }))
                growing.push_back({number, path});
        return true;
    }

    // The end of the whole packets in a window. Bytes without a packet header belong to the window: the stream reports
    // the damage.
    static std::size_t end_of_packets(const MappedFile &window, const PacketLayout &layout, bool &damaged) {
        std::size_t at = 0;
        PacketInfo info;
        std::string why;
        while (at < window.size() && read_packet(window, at, layout, info, why)) {
            if (info.packet_bits / 8 > window.size() - at) return at;  // the packet is still being written
            at += static_cast<std::size_t>(info.packet_bits / 8);
        }
        damaged = at < window.size() && why != kCutOff;
        return damaged ? window.size() : at;
    }

    // The new packets of a file: a window with these packets, or nullptr.
    std::shared_ptr<MappedFile> take(GrowingFile &file) {
        if (file.damaged) return nullptr;
        const std::size_t size = fs::file_size(file.path);
        if (size <= file.taken) return nullptr;
        auto window = std::make_shared<MappedFile>(file.path, file.taken, size);
        window->end_at(end_of_packets(*window, traces[file.trace]->layout, file.damaged));
        file.taken += window->size();
        return window->size() == 0 ? nullptr : window;
    }

    // The stream of a file's first packets.
    void begin(GrowingFile &file, std::shared_ptr<MappedFile> window) {
        const Trace &trace = *traces[file.trace];
        PacketInfo info;
        std::string why;
        if (!read_packet(*window, 0, trace.layout, info, why)) throw Malformed(file.path + ": " + why);
        StreamDecl decl;
        decl.host = trace.host();
        decl.domain = trace.domain();
        decl.path = file.path;
        decl.channel = channel_of(decl.path);
        decl.instance = info.has_instance ? info.instance : growing.size();
        for (const auto &other : streams)
            if (other->stream_id == info.stream_id && other->decl.instance == decl.instance &&
                fs::path(other->decl.path).parent_path() == fs::path(decl.path).parent_path())
                throw Unsupported(file.path + ": a stream in several files");
        add(std::make_unique<Stream>(std::vector<Packets::File>{{std::move(window), {}}}, trace.layout, std::move(decl),
                                     info.stream_id, trace.frequency),
            file.trace);
        file.stream = streams.back().get();
        Merging::begin(streams.size() - 1, kStep);
    }

    // Whether a newly decoded event should have been pushed before.
    bool any_late(const std::vector<const Feed *> &waiting) const {
        return std::any_of(waiting.begin(), waiting.end(),
                           [&](const Feed *feed) { return !feed->ended && feed->at->ts_ns < until_ns; });
    }
};

Follower::Follower(const std::vector<std::string> &paths) : impl_(std::make_unique<Impl>()) {
    for (const auto &path : paths) {
        // before reading: bytes written meanwhile count as growth
        impl_->metadata_bytes.push_back(fs::file_size(fs::path(path) / "metadata"));
        impl_->traces.push_back(load_trace(path));
    }
}

Follower::~Follower() = default;

void Follower::open(EventSink &consumer) {
    Impl &m = *impl_;
    m.consumer = &consumer;
    for (std::size_t i = 0; i < m.traces.size(); ++i) m.declare_classes(i, true);
    m.prepare();
}

bool Follower::grow() {
    Impl &m = *impl_;
    for (std::size_t i = 0; i < m.traces.size(); ++i)
        if (!m.look_for_files(i)) return false;
    for (Impl::GrowingFile &file : m.growing) {
        auto window = m.take(file);
        if (!window) continue;
        if (file.stream) file.stream->go_on(std::move(window));
        else m.begin(file, std::move(window));
    }
    std::vector<const Feed *> waiting;
    for (const auto &feed : m.feeds)
        if (feed.ended) waiting.push_back(&feed);
    m.go_on();
    m.hand_on();
    return !m.any_late(waiting);
}

bool Follower::run(std::int64_t until_ns, std::uint64_t max_events) {
    Impl &m = *impl_;
    m.until_ns = until_ns;
    while (max_events > 0) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(max_events, EventBatch::kMost));
        m.merge_into(m.batch, most, until_ns);
        const std::size_t count = m.batch.count;
        m.hand_on();
        if (count == 0) return false;
        max_events -= count;
    }
    return true;
}

}  // namespace opline::ctf
