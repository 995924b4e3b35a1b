// SPDX-License-Identifier: MIT
#include "ctf/merging.hpp"

#include <algorithm>
#include <set>

namespace opline::ctf {

namespace {

constexpr std::ptrdiff_t kLongRun = 8;  // so many events of one stream in a row: worth a look at the next stream's time
// of a stream are decoded at once so many events, and no more slots
constexpr std::size_t kBlock = 48, kBlockSlots = 2048;
// a batch with so many spent slots ends, as the batch keeps the slots from reuse
constexpr std::size_t kSpentSlots = 1u << 16;

// Times in order; the mark after a block's end (kNoTime) comes last.
std::uint64_t order_of(std::int64_t time_ns) {
    return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(kNoTime) - 1;
}

// Merges events of the first stream, at least one: until the stream has none left, or its next event is at or after
// `bound` (the second stream's time, or the end of the wanted time).
Event *merge_one(Feed &feed, std::uint64_t bound, Event *out, const Event *past) {
    const Event *x = feed.at;
    do {
        *out++ = *x++;
    } while (order_of(x->ts_ns) < bound && out != past);
    feed.at = x;
    return out;
}

// Merges events of the first two streams, at least one: until a stream has none left, or another stream's event or the
// end of the wanted time may come next. At equal times `fx` is first. The choice between both is computed without a
// branch: the processor cannot predict streams in turn.
Event *merge_two(Feed &fx, Feed &fy, std::uint64_t bound, Event *out, const Event *past) {
    const Event *x = fx.at, *y = fy.at;
    std::int64_t x_ns = x->ts_ns, y_ns = y->ts_ns;
    do {
        const bool take = y_ns < x_ns;
        *out++ = *(take ? y : x);
        y += take;
        x += 1 - static_cast<std::ptrdiff_t>(take);
        x_ns = x->ts_ns;
        y_ns = y->ts_ns;
    } while (order_of(std::min(x_ns, y_ns)) < bound && out != past);
    fx.at = x;
    fy.at = y;
    return out;
}

}  // namespace

void BatchNotes::note(Gap gap) {
    gap.begin_ns = time_of_run(feed_->map, gap.begin_ns);
    gap.end_ns = time_of_run(feed_->map, gap.end_ns);
    filling_->notes.push_back({filling_->count, gap, std::string(gap.why)});
}

void BatchNotes::discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) {
    const Stream &s = *feed_->stream;
    note({s.number, packets ? Gap::Kind::kPackets : Gap::Kind::kEvents, s.to_ns(begin), s.to_ns(end), count, {}});
}

void BatchNotes::rest_unread(const PacketInfo &packet, std::uint64_t ordinal, std::uint64_t bits, bool counted,
                             std::int64_t from_ns, std::int64_t until_ns) {
    const Stream &s = *feed_->stream;
    if (counted) note({s.number, Gap::Kind::kEvents, from_ns, std::max(from_ns, until_ns), 0, {}});
    const auto time_ns = [&](std::uint64_t cycles) {
        return packet.has_times ? time_of_run(feed_->map, s.to_ns(cycles)) : kNoTime;
    };
    rests.push_back({&s, s.packets().file().path(), s.packets().file().size(), ordinal, packet, bits, counted,
                     time_ns(packet.begin), time_ns(packet.end)});
}

void BatchNotes::damaged(std::int64_t from_ns, const std::string &why) {
    if (damages_wanted) damages[feed_->stream->decl.path] = why;
    note({feed_->stream->number, Gap::Kind::kDamage, from_ns, kNoTime, 0, why});
}

// The feed's block has been merged: on to the next.
void Merging::refill(Feed &feed) {
    EventBlock &block = feed.block;
    if (!feed.room || !pool->fits(feed.room, block.next_slots())) {
        if (feed.room) notes.filling().spent.push_back(feed.room);
        feed.room = pool->take();
        block.go_on_at(feed.room);
    }
    notes.of(feed);
    feed.ended = !feed.stream->fill(block, notes);
    if (feed.map)
        for (Event *event = block.begin(); event != block.end(); ++event)
            event->ts_ns = feed.map->at(event->ts_ns, feed.knot);
    consumer->name_threads(block.begin(), block.end());
    feed.at = block.begin();
    feed.end = block.end();
}

void Merging::prepare() {
    std::size_t most_slots = 0;
    for (const auto &trace : traces)
        for (const auto &[id, cls] : trace->classes) most_slots = std::max(most_slots, cls.slot_count);
    block_events_ = std::clamp<std::size_t>(kBlockSlots / (most_slots + 1), 1, kBlock);
    pool.emplace(block_events_ * most_slots + 1);
    notes.into(batch);
}

void Merging::begin(std::size_t number, std::size_t mapped) {
    Stream &s = *streams[number];
    s.cls = &traces[trace_of[number]]->classes.at(s.stream_id);
    s.number = consumer->add_stream(s.decl);
    s.prepare(mapped);
    feeds.push_back(Feed{&s, EventBlock(block_events_)});
    feeds.back().ended = true;  // in no order yet
    if (const ClockMap *map = traces[trace_of[number]]->map.get(); map && *map) feeds.back().map = map;
}

void Merging::go_on() {
    std::vector<const StreamDecl *> decls;
    for (const auto &s : streams) decls.push_back(&s->decl);
    const auto ranks = stream_ranks(decls);
    std::map<const Feed *, std::uint32_t> rank_of;
    for (std::size_t i = 0; i < feeds.size(); ++i) rank_of[&feeds[i]] = ranks[i];
    merge_.rank_anew([&](const Feed *feed) { return rank_of.at(feed); });  // new streams come between the known streams
    for (Feed &feed : feeds) {
        if (!feed.ended) continue;
        refill(feed);
        if (!feed.ended) merge_.add({feed.at->ts_ns, rank_of.at(&feed), &feed});
    }
}

void Merging::hand_on() {
    batch.replay(*consumer);
    pool->reclaim(batch);
}

bool Merging::merge_into(EventBatch &batch, std::size_t most, std::int64_t until_ns) {
    notes.into(batch);
    const std::uint64_t wanted = until_ns == kAll ? ~std::uint64_t{0} : order_of(until_ns);
    auto before = [wanted](const Merge<Feed>::Head *head) {
        return head ? std::min(order_of(head->time_ns), wanted) : wanted;
    };
    Event *out = batch.events.data() + batch.count;
    Event *const past = batch.events.data() + most;
    // A stream at the end of its block continues with its next block; the order of streams is repaired afterwards.
    auto go_on = [&](Feed &feed, std::int64_t &time_ns) {
        if (feed.at == feed.end) {
            batch.count = static_cast<std::size_t>(out - batch.events.data());
            refill(feed);
        }
        if (!feed.ended) time_ns = feed.at->ts_ns;
    };
    while (out != past && batch.spent.size() * pool->size() < kSpentSlots && !merge_.empty() &&
           order_of(merge_.top().time_ns) < wanted) {
        auto *a = &merge_.top(), *b = merge_.second();
        Feed &first = *a->source;
        if (!b || (first.end - first.at > kLongRun && first.at[kLongRun].ts_ns < b->time_ns)) {
            out = merge_one(first, before(b), out, past);
        } else {
            Feed &second = *b->source;
            const bool swap = b->rank < a->rank;
            out = merge_two(swap ? second : first, swap ? first : second, before(merge_.third()), out, past);
            go_on(second, b->time_ns);
            if (second.ended) merge_.remove(b);
            else merge_.settle(b);
        }
        go_on(first, a->time_ns);
        if (first.ended) merge_.remove(a);
        else merge_.settle(a);
    }
    batch.count = static_cast<std::size_t>(out - batch.events.data());
    batch.bytes_read = bytes_read();
    return !merge_.empty();
}

std::uint64_t Merging::aligned_count() const {
    std::uint64_t total = 0;
    for (const auto &s : streams) total += s->aligned_count();
    return total;
}

std::uint64_t Merging::bytes_read() const {
    std::uint64_t total = 0;
    for (const auto &s : streams) total += s->packets().bytes_read();
    return total;
}

void Merging::declare_classes(std::size_t number, bool all) {
    Trace &trace = *traces[number];
    std::set<std::uint64_t> read;
    if (all)
        for (const auto &[id, cls] : trace.classes) read.insert(id);
    for (std::size_t i = 0; i < streams.size(); ++i)
        if (trace_of[i] == number) read.insert(streams[i]->stream_id);
    for (const auto &e : trace.meta.events) {
        const StreamClassDecl &stream_class = trace.stream_class(e);
        if (read.count(e.stream_id) == 0 || trace.classes[e.stream_id].declared) continue;
        auto payload = leaves_of(e.payload, FieldScope::kPayload);
        auto common = leaves_of(stream_class.event_context, FieldScope::kContext);
        auto specific = leaves_of(e.context, FieldScope::kContext);
        ClassDecl decl;
        decl.name = e.name;
        decl.domain = trace.domain();
        for (const auto *part : {&payload, &common, &specific})
            for (const auto &leaf : *part)
                decl.fields.push_back(leaf.addressable ? leaf.decl
                                                       : FieldDecl{leaf.decl.name, FieldType::kOther, leaf.decl.scope});
        const ClassPlan plan = consumer->add_class(decl);
        std::vector<std::int32_t> slot_of(decl.fields.size(), -1);
        for (std::size_t k = 0; k < plan.wanted.size(); ++k) slot_of[plan.wanted[k]] = static_cast<std::int32_t>(k);
        auto part = [&](std::size_t begin, std::size_t size) {
            return std::vector<std::int32_t>(slot_of.begin() + static_cast<std::ptrdiff_t>(begin),
                                             slot_of.begin() + static_cast<std::ptrdiff_t>(begin + size));
        };
        Compiler compiler;
        trace.header_passed(compiler, stream_class);
        compiler.add(stream_class.event_context, Location::Root::kCommonContext, part(payload.size(), common.size()));
        compiler.add(e.context, Location::Root::kSpecificContext,
                     part(payload.size() + common.size(), specific.size()));
        compiler.add(e.payload, Location::Root::kPayload, part(0, payload.size()));
        EventClass &event = trace.place(e, event_ids_);
        event.cls = plan.id;
        event.slots = static_cast<std::uint32_t>(plan.wanted.size());
        event.time_slot = plan.time_slot;
        std::size_t field = 0;
        for (const auto *leaves : {&payload, &common, &specific})
            for (const auto &leaf : *leaves) {
                if (!leaf.addressable && slot_of[field] >= 0) event.absent.push_back(slot_of[field]);
                ++field;
            }
        event.program = compiler.take();
        event.aligned = AlignedProgram(event.program, 0) && event.absent.empty();
        StreamClass &cls = trace.classes[e.stream_id];
        cls.slot_count = std::max(cls.slot_count, plan.wanted.size());
        cls.registers = std::max(cls.registers, event.program.registers);
    }
    for (const std::uint64_t id : read) {
        StreamClass &cls = trace.classes[id];
        if (!cls.declared) cls.gather_aligned();
        cls.declared = true;
    }
}

}  // namespace opline::ctf
