// SPDX-License-Identifier: MIT
// What a front end (babeltrace2 or native) hands to the core: event classes once, then events.
// A front end knows bytes and nothing of models; the core knows models and nothing of bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opline {

constexpr std::uint32_t kNoCpu = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// kIntegers: an array or a sequence of integers, each of more than 8 bits; a slot holds the last integer.
enum class FieldType : std::uint8_t { kUnsigned, kSigned, kReal, kString, kIntegers, kOther };
enum class FieldScope : std::uint8_t { kPayload, kContext };  // kContext: event common or specific context

struct FieldDecl {
    std::string name;  // without the leading underscore of LTTng's metadata
    FieldType type;
    FieldScope scope;
};

// Tie-break of the merge, after the time: host, then domain (UST before kernel), channel name,
// stream instance, ordinal in the stream.
enum class Domain : std::uint8_t { kUst = 0, kKernel = 1 };

class ClockMap;

// One CTF data stream (LTTng: one CPU of one channel).
struct StreamDecl {
    std::string host;
    Domain domain = Domain::kUst;
    std::string channel;  // "" if unknown to the reader
    std::string path;     // for messages
    std::uint64_t instance = 0;
    std::shared_ptr<const ClockMap> clock;  // map already applied to the times; nullptr: the host's own times
};

struct ClassDecl {
    std::string name;  // "lab:io_begin", "block_rq_issue"
    Domain domain = Domain::kUst;
    std::vector<FieldDecl> fields;
};

// The core's answer to a class: the fields to decode, and their slots.
struct ClassPlan {
    std::uint32_t id = 0;               // the event's `cls` from now on
    std::vector<std::uint32_t> wanted;  // slot k holds field wanted[k] of the declaration
    std::int32_t time_slot = -1;        // slot with the event's own time (BPF's ktime), else -1
};

// One decoded field. A string is valid until EventSink::events() returns.
struct Slot {
    enum class Kind : std::uint8_t { kAbsent, kUnsigned, kSigned, kReal, kString };
    union {
        std::uint64_t u;
        std::int64_t i;
        double r;
        const char *s;
    };
    std::uint32_t size = 0;  // of the string
    Kind kind = Kind::kAbsent;

    Slot() : u(0) {}
    static Slot of(std::uint64_t v) {
        Slot x;
        x.u = v;
        x.kind = Kind::kUnsigned;
        return x;
    }
    static Slot of(std::int64_t v) {
        Slot x;
        x.i = v;
        x.kind = Kind::kSigned;
        return x;
    }
    static Slot of(double v) {
        Slot x;
        x.r = v;
        x.kind = Kind::kReal;
        return x;
    }
    static Slot of(std::string_view v) {
        Slot x;
        x.s = v.data();
        x.size = static_cast<std::uint32_t>(v.size());
        x.kind = Kind::kString;
        return x;
    }
    bool present() const { return kind != Kind::kAbsent; }
    bool is_number() const { return kind == Kind::kUnsigned || kind == Kind::kSigned; }
    std::string_view str() const { return {s, size}; }
    // Integers keep their 64 bits, signed or not.
    std::uint64_t bits() const { return u; }
};

struct Event {
    std::uint32_t cls;          // ClassPlan::id
    std::uint32_t thread_name;  // number of the name (thread_names.hpp); 0: no name, or not looked up
    std::uint32_t stream;       // Core::add_stream()'s answer
    std::uint32_t cpu;          // kNoCpu: unknown
    std::int64_t ts_ns;         // raw value of the monotonic clock, in ns; BPF block events: the kernel's own time
    const Slot *slots;          // one per ClassPlan::wanted
};

// A key's identity: 128 hashed bits of (space, scope, field values). Collisions: 2^-64 for 2^32 keys in memory.
struct Key {
    std::uint64_t lo = 0, hi = 0;
    bool operator==(const Key &o) const { return lo == o.lo && hi == o.hi; }
};

constexpr std::int32_t kNoSlot = -1;

// The integer in a slot of an event.
inline std::int64_t number_in(const Event &ev, std::int32_t slot, std::int64_t otherwise) {
    return slot == kNoSlot || !ev.slots[slot].is_number() ? otherwise : ev.slots[slot].i;
}

// The number of missing items between two numbers of a tracer's counter, or 0 (unknown) for a wrong counter: the
// counter went down (the difference wraps around), or the difference is impossible (2^48 is one per nanosecond for
// three days).
inline std::uint64_t credible_count(std::uint64_t difference) {
    return difference < std::uint64_t{1} << 48 ? difference : 0;
}

// A missing part of a stream in [begin_ns, end_ns]; kNoTime if unknown.
struct Gap {
    enum class Kind : std::uint8_t {
        kEvents,   // discarded by the tracer
        kPackets,  // so many packets are lost
        kDamage    // the bytes after begin_ns cannot be decoded, as told by `why`
    };
    std::uint32_t stream = 0;
    Kind kind = Kind::kEvents;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t count = 0;  // 0: unknown
    std::string_view why;     // one line; valid during the call
};

// A receiver of events: the core, or a printer of raw events. Calls come from one thread, except name_threads(); events
// come in merge order.
class EventSink {
  public:
    virtual ~EventSink() = default;
    // Classes of equal name and domain may come several times (one per trace): each gets an id.
    virtual ClassPlan add_class(const ClassDecl &) = 0;
    virtual std::uint32_t add_stream(const StreamDecl &) = 0;
    // Called during decoding, perhaps in another thread and before the merge, with events of one stream, each once and
    // in order: gives the events numbers for their threads' names.
    virtual void name_threads(Event * /*first*/, Event * /*past*/) {}
    // At least one event. The events stay in place until the call returns.
    virtual void events(const Event *first, const Event *past) = 0;
    virtual void gap(const Gap &) = 0;
    // No events are left. False: call again, after taking the ready rows.
    virtual bool finish() = 0;
};

}  // namespace opline
