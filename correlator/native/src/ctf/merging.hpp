// SPDX-License-Identifier: MIT
// The streams of some traces on their way into a EventSink: decoded block by block, merged, in batches. What a reader
// of whole traces and one of traces that grow have in common. Private to them.
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctf/batch.hpp"
#include "ctf/losses.hpp"
#include "ctf/stream.hpp"
#include "ctf/trace.hpp"
#include "event/event.hpp"
#include "event/merge.hpp"

namespace opline::ctf {

// A stream with its decoded events not merged yet.
struct Feed {
    Stream *stream = nullptr;
    EventBlock block;
    Slot *room = nullptr;  // memory of the block's slots
    const Event *at = nullptr, *end = nullptr;
    bool ended = false;
    const ClockMap *map = nullptr;  // of the stream's trace; nullptr: times stay unchanged
    std::size_t knot = 0;           // of the map, where the last event was
};
// The end of a packet that cannot be decoded.
struct UnreadRest {
    const Stream *stream;
    std::string path;  // of the file
    std::size_t file_bytes;
    std::uint64_t ordinal;  // of the packet in the stream
    PacketInfo packet;
    std::uint64_t bits;  // bits of the packet that can be decoded
    bool counted;
    // events are lost in this interval; kNoTime: from the stream's begin, or to the stream's end
    std::int64_t begin_ns, end_ns;
};

// Puts the notes of the stream being read into a batch, at the current place.
class BatchNotes final : public StreamNotes {
  public:
    // The stream and the batch of the following notes.
    void of(const Feed &feed) { feed_ = &feed; }
    void into(EventBatch &batch) { filling_ = &batch; }
    EventBatch &filling() { return *filling_; }

    void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) override;
    void rest_unread(const PacketInfo &, std::uint64_t ordinal, std::uint64_t bits, bool counted, std::int64_t from_ns,
                     std::int64_t until_ns) override;
    void damaged(std::int64_t from_ns, const std::string &why) override;
    void lost(Loss loss, const std::string &message) override { losses.add(loss, message); }

    ReadLosses losses;
    std::vector<UnreadRest> rests;
    std::map<std::string, std::string> damages;  // why a stream ends too early, by path; if wanted
    bool damages_wanted = false;

  private:
    void note(Gap gap);

    const Feed *feed_ = nullptr;
    EventBatch *filling_ = nullptr;
};

class Merging {
  public:
    static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

    void add(std::unique_ptr<Stream> stream, std::size_t trace) {
        streams.push_back(std::move(stream));
        trace_of.push_back(trace);
    }
    // Declares to the consumer the classes of a trace: of channels with streams, or of all channels.
    void declare_classes(std::size_t trace, bool all);
    // Once the classes are declared, and before any stream is begun: how large the blocks are.
    void prepare();
    // Declares a stream to the consumer. `mapped`: limit of read bytes that stay mapped.
    void begin(std::size_t number, std::size_t mapped);
    // For new streams, and for streams with more bytes after their end: decodes the next events and orders these
    // streams.
    void go_on();
    // Adds events in merge order to the batch, until the batch has `most` events (or too many blocks with few events
    // each), or the next event is at or after `until_ns`; false: no events are left.
    bool merge_into(EventBatch &, std::size_t most, std::int64_t until_ns = kAll);
    // Sends the batch to the consumer, and empties the batch.
    void hand_on();
    bool empty() const { return merge_.empty(); }
    std::uint64_t bytes_read() const;
    std::uint64_t aligned_count() const;

    std::vector<std::shared_ptr<Trace>> traces;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::size_t> trace_of;  // by stream
    std::deque<Feed> feeds;             // by stream
    BatchNotes notes;
    EventSink *consumer = nullptr;
    std::optional<SlotPool> pool;
    EventBatch batch;  // for a consumer that also decodes

  private:
    void refill(Feed &);

    Merge<Feed> merge_;
    std::size_t block_events_ = 1;
    std::uint64_t event_ids_ = 0;  // in all stream classes of all traces
};

}  // namespace opline::ctf
