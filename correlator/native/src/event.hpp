// SPDX-License-Identifier: MIT
// What a front end (babeltrace2 or native) hands to the core: event classes once, then events.
// A front end knows bytes and nothing of models; the core knows models and nothing of bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opline {

constexpr std::uint32_t kNoCpu = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

enum class FieldType : std::uint8_t { kUnsigned, kSigned, kReal, kString, kOther };
enum class FieldScope : std::uint8_t { kPayload, kContext };  // kContext: event common or specific context

struct FieldDecl {
    std::string name;  // without the leading underscore that LTTng's metadata adds
    FieldType type;
    FieldScope scope;
};

// Tie-break of the merge, after the time: host, then domain (UST before kernel), channel name,
// stream instance, ordinal in the stream.
enum class Domain : std::uint8_t { kUst = 0, kKernel = 1 };

// One CTF data stream (LTTng: one CPU of one channel).
struct StreamDecl {
    std::string host;
    Domain domain = Domain::kUst;
    std::string channel;       // "" where the reader can't know it
    std::string path;          // for messages
    std::uint64_t instance = 0;
};

struct ClassDecl {
    std::string name;  // "lab:io_begin", "block_rq_issue"
    Domain domain = Domain::kUst;
    std::vector<FieldDecl> fields;
};

// The core's answer to a class: which of its fields to decode, in which slot order.
struct ClassPlan {
    std::uint32_t id = 0;                // the event's `cls` from now on
    std::vector<std::uint32_t> wanted;   // slot k holds field wanted[k] of the declaration
    std::int32_t time_slot = -1;         // slot that holds the event's own time (BPF's ktime), else -1
    std::uint32_t again = 0;             // what Event::hint is first where the slots are those of the event before it, of a class with the same
    std::uint32_t alike = 0;             // number here
    bool along = false;                  // one with the slots of the event before it may be among its Alongs
};

// One decoded field. A string is valid until Consumer::event() returns.
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
    static Slot of(std::uint64_t v) { Slot x; x.u = v; x.kind = Kind::kUnsigned; return x; }
    static Slot of(std::int64_t v) { Slot x; x.i = v; x.kind = Kind::kSigned; return x; }
    static Slot of(double v) { Slot x; x.r = v; x.kind = Kind::kReal; return x; }
    static Slot of(std::string_view v) {
        Slot x; x.s = v.data(); x.size = static_cast<std::uint32_t>(v.size()); x.kind = Kind::kString; return x;
    }
    bool present() const { return kind != Kind::kAbsent; }
    bool is_number() const { return kind == Kind::kUnsigned || kind == Kind::kSigned; }
    std::string_view str() const { return {s, size}; }
    // Integers keep their 64 bits, whatever the signedness.
    std::uint64_t bits() const { return u; }
};

// What is the same in many events, together.
struct EventKind {
    std::uint32_t cls;   // ClassPlan::id
    std::uint32_t hint;  // what the consumer's survey() leaves here; before it ClassPlan::again or, with slots of its own, how many events behind it have the same; and kAlongs
};
struct EventSource {
    std::uint32_t stream;  // Core::add_stream()'s answer
    std::uint32_t cpu;     // kNoCpu: unknown
};
struct Event : EventKind, EventSource {
    std::int64_t ts_ns;  // raw value of the monotonic clock, in ns; BPF block events: the kernel's own time
    const Slot *slots;   // one per ClassPlan::wanted; perhaps those of an event before it, which are the same
};

// Events that go along with one before them in their stream, whose slots they have: no more than their classes and times are wanted of them. They are no Events, and
// have no places of their own in merge order, where that one and the stream's next Event are, neither before the one nor behind the other.
// Of which classes they are is a trail's end: the same classes in the same order end in the same trail.
struct Trail {
    const Trail *before = nullptr;  // without the last one
    std::uint32_t cls = 0;          // the last one's
    std::uint32_t count = 0;        // how many they are; 0: none
    std::uint32_t number = 0;       // among all trails of a reader
};
// Behind the slots of an event with kAlongs in its hint, in the room of some more.
struct alignas(Slot) Alongs {
    static constexpr std::uint32_t kMost = 14;
    const Trail *trail;
    std::uint32_t after_ns[kMost];  // trail->count of them are there: each one's time since the one before it

    static constexpr std::size_t slots(std::size_t count) { return (8 + 4 * count + sizeof(Slot) - 1) / sizeof(Slot); }
};
static_assert(offsetof(Alongs, after_ns) == 8 && sizeof(Slot) == 16 && sizeof(Alongs) == 64);
// Of which class each is, the first of them first.
inline std::array<std::uint32_t, Alongs::kMost> classes_of(const Trail &trail) {
    std::array<std::uint32_t, Alongs::kMost> out;
    for (const Trail *t = &trail; t->count != 0; t = t->before) out[t->count - 1] = t->cls;
    return out;
}
constexpr std::uint32_t kAlongs = 1u << 7;
inline bool has_alongs(const Event &ev) { return (ev.hint & kAlongs) != 0; }
// `slots`: how many the event has.
inline const Alongs &alongs_of(const Event &ev, std::size_t slots) { return *reinterpret_cast<const Alongs *>(ev.slots + slots); }

// A key's identity: 128 hashed bits of (space, scope, field values). Collisions: 2^-64 for 2^32 keys in memory.
struct Key {
    std::uint64_t lo = 0, hi = 0;
    bool operator==(const Key &o) const { return lo == o.lo && hi == o.hi; }
};

// Whom an event is about and who did it.
struct Lead {
    Key key;
    std::int64_t tid = 0;
    std::int32_t pid = 0;
    bool known = false;           // they are numbers
    const Slot *slots = nullptr;  // the event's, where more of them is looked at
};

// Events in merge order, with what Consumer::find_leads() found in them.
struct Events {
    const Event *first, *past;
    const Lead *leads, *past_leads;
};

constexpr std::int32_t kNoSlot = -1;

// The slot that is so many bytes behind the first.
inline const Slot &slot_at(const Event &ev, std::uint32_t bytes) {
    return *reinterpret_cast<const Slot *>(reinterpret_cast<const char *>(ev.slots) + bytes);
}

// Whether three slots hold the same numbers (or the same bytes as text) as three others, and `others` is 0.
[[gnu::always_inline]] inline bool same_numbers(const std::array<const Slot *, 3> &a, const std::array<const Slot *, 3> &b, std::uint64_t others) {
#ifdef __SSE2__
    static_assert(sizeof(Slot) == 16 && offsetof(Slot, u) == 0 && offsetof(Slot, kind) == 12);
    auto whole = [](const Slot *s) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(s)); };
    __m128i differ = _mm_xor_si128(whole(a[0]), whole(b[0]));
    for (int i = 1; i < 3; ++i) differ = _mm_or_si128(differ, _mm_xor_si128(whole(a[i]), whole(b[i])));
    differ = _mm_or_si128(_mm_and_si128(differ, _mm_set_epi32(0xff, 0, -1, -1)), _mm_cvtsi64_si128(static_cast<long long>(others)));
    return _mm_movemask_epi8(_mm_cmpeq_epi32(differ, _mm_setzero_si128())) == 0xffff;
#else
    for (int i = 0; i < 3; ++i) others |= (a[i]->u ^ b[i]->u) | static_cast<std::uint64_t>(a[i]->kind != b[i]->kind);
    return others == 0;
#endif
}

inline bool all_numbers(const Slot &a, const Slot &b, const Slot &c) {
    static_assert(static_cast<int>(Slot::Kind::kUnsigned) == 1 && static_cast<int>(Slot::Kind::kSigned) == 2);
    auto less_one = [](const Slot &s) { return static_cast<unsigned>(s.kind) - 1; };
    return (less_one(a) | less_one(b) | less_one(c)) <= 1;
}

// The integer in a slot of an event.
inline std::int64_t number_in(const Event &ev, std::int32_t slot, std::int64_t otherwise) {
    return slot == kNoSlot || !ev.slots[slot].is_number() ? otherwise : ev.slots[slot].i;
}

// Who takes the events: the core, or a printer of raw events. Calls come from one thread, but survey() and find_leads(), events in merge order.
class Consumer {
  public:
    virtual ~Consumer() = default;
    // Classes of equal name and domain may come several times (one per trace): each gets an id.
    virtual ClassPlan add_class(const ClassDecl &) = 0;
    virtual std::uint32_t add_stream(const StreamDecl &) = 0;
    // Where they are decoded, perhaps in another thread and some time before they are merged: events of one stream, each once and in its order.
    virtual void survey(Event * /*first*/, Event * /*past*/) {}
    // Where they are merged, in the thread that survey() was called in, and some time before events(): what is found in them is written to `out`, where there
    // is room for one Lead of each. Returns past the last.
    virtual Lead *find_leads(const Event * /*first*/, const Event * /*past*/, Lead *out) { return out; }
    virtual void event(const Event &) = 0;
    // One after the other: who wants may look ahead. All stay where they are until the call returns.
    virtual void events(const Events &all) {
        for (const Event *ev = all.first; ev != all.past; ++ev) event(*ev);
    }
    // Discarded by the tracer in [begin_ns, end_ns] of that stream; kNoTime where unknown. count 0: unknown number.
    virtual void discarded(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                           bool packets) = 0;
    // What follows from_ns on that stream (kNoTime: all of it) can't be decoded; `why` is one line.
    virtual void damaged(std::uint32_t /*stream*/, std::int64_t /*from_ns*/, std::string_view /*why*/) {}
    // There are no more. False: to be called again, once what is ready has been taken.
    virtual bool finish() = 0;
    // Where another thread decodes: it has time, now and then. From now on it calls help(), as does the consumer's own while it waits for events.
    virtual void expect_help() {}
    // From any thread: does a piece of the consumer's work that can be done beside its other calls. False: there is none now.
    virtual bool help() { return false; }
};

}  // namespace opline
