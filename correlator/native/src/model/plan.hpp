// SPDX-License-Identifier: MIT
// The compiled op model, as `opline.model.compile` writes it (docs/internals/stitching.md, "The plan").
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "event/providers.hpp"
namespace opline {

enum class KeyScope : std::uint8_t { kGlobal, kProcess, kThread };
// A soft begin makes an op only where no key names one yet; a soft end ends an op only if no begin made it.
enum class Role : std::uint8_t { kNone, kBegin, kEnd, kSoftBegin, kSoftEnd };
enum class ThreadRule : std::uint8_t { kNone, kEnter, kLeave, kSwitch };
// kOpenOrWork, kOpenOrJoin: they open the batch where their thread has none open. kLeave: the op no longer waits for a
// batch that reaches what it needs, and its thread's own is closed.
enum class BatchDo : std::uint8_t { kNone, kOpen, kOpenOrWork, kJoin, kOpenOrJoin, kWork, kClose, kLeave };
enum class IoWindow : std::uint8_t { kNone, kBegin, kEnd };
// What a point does to a message between hosts.
enum class MessageDo : std::uint8_t { kNone, kSend, kReceive };
enum class Direction : std::uint8_t { kUnknown, kRead, kWrite };

struct KeySpace {
    std::string name;
    KeyScope scope;
    bool by_order = false;     // ops that wait under it are met in order: right as a rule, proven by nothing
    std::uint64_t spaces = 0;  // a bit for itself and for each space that whoever has this key in hand has as well
};

constexpr std::int32_t kNoFact = -1;

struct KeyUse {
    std::uint32_t space;
    std::vector<std::string> fields;
    std::vector<std::int32_t> facts;  // per field: the fact that its value is looked up in, or kNoFact
    // Of `release`: no field of the event, but whatever names the op.
    bool of_op() const { return fields.size() == 1 && fields.front() == "*"; }
};

// What a field's value stands for, as an event told: a descriptor's two ports.
struct FactSpec {
    std::string name;
    KeyScope scope;
    std::string of;                  // the field that is looked up
    std::vector<std::string> value;  // the fields of what it stands for
    bool unordered = false;          // {a, b} is {b, a}: the same seen from both ends
};

struct Predicate {
    std::string field;
    std::vector<std::variant<std::int64_t, std::string>> any;
};

// What a system call does to I/Os that outlive it: queues them, waits for their completion, or returns from that.
struct IosSpec {
    std::optional<KeyUse> submit, wait;  // the queue that names the I/Os
    bool ring = false;                   // completions can be taken without a call
    std::string count;                   // how many I/Os the call announces
    std::string least;                   // how many completions it waits for
    std::string submitted, reaped;       // how many it queued, how many it took; "*": all that are done
    std::string names;                   // by which numbers the application knows the I/Os that it queues, or took
    IoWindow told = IoWindow::kNone;     // the event is about one I/O: it begins, its completion is there
    std::string taken, posted;           // completions that the application took before this; that there are with this
    explicit operator bool() const {
        return submit || wait || !submitted.empty() || !reaped.empty() || told != IoWindow::kNone;
    }
    bool of_call() const { return submit || wait || !submitted.empty() || !reaped.empty(); }
};

// Bios of threads that work for no op, and whose name fits, are ops of their own. Or requests.
struct BiosSpec {
    std::string op_class;
    std::vector<std::string> threads, except;  // globs
};

// The mark of a thread that returns from waiting for something to do.
constexpr const char *kAwakeMark = "awake";

// Lists of keys of a point: in the plan, and bound to an event class. A new one stands here, by its name in the plan,
// and where it is used.
template <class Key>
struct KeyLists {
    std::vector<Key> find, bind, release;
    std::vector<Key> wait;      // the op waits under them to be met
    std::vector<Key> meet;      // the op is the one that waits longest under them
    std::vector<Key> sole;      // the op is the only one that waits under them
    std::vector<Key> identity;  // of a message: the same at both of its ends

    using Lists = KeyLists;
    using Named = std::pair<const char *, std::vector<Key> Lists::*>;
    static constexpr std::array<Named, 7> kLists{{{"find", &Lists::find},
                                                  {"bind", &Lists::bind},
                                                  {"release", &Lists::release},
                                                  {"wait", &Lists::wait},
                                                  {"meet", &Lists::meet},
                                                  {"sole", &Lists::sole},
                                                  {"identity", &Lists::identity}}};
};

// The event's fields that a point looks at: their names in the plan ("": none), and their slots in an event class. A
// new one stands here, by its place in the plan, and where it is used.
template <class Field>
struct PointFields {
    Field name{};  // its value stands for the "{}" of the point's name
    Field op_class{}, object{}, offset{}, length{}, file{};
    Field members{};  // of a batch, at its close: how many it has
    // A place in an order (of a log): the op is a member of the first batch that reaches what it needs, of those with
    // the same value of `among`.
    Field needs{}, reaches{}, among{};

    struct Named {
        const char *place;  // a JSON pointer
        Field PointFields::*field;
        bool needed;  // a class without the field is none of the point's; else it only says less
    };
    static constexpr std::array<Named, 10> kFields{{{"/name_field", &PointFields::name, true},
                                                    {"/class/field", &PointFields::op_class, true},
                                                    {"/object", &PointFields::object, false},
                                                    {"/offset", &PointFields::offset, false},
                                                    {"/length", &PointFields::length, false},
                                                    {"/file_by", &PointFields::file, false},
                                                    {"/batch/count", &PointFields::members, false},
                                                    {"/batch/needs", &PointFields::needs, true},
                                                    {"/batch/reaches", &PointFields::reaches, true},
                                                    {"/batch/among", &PointFields::among, true}}};
};

struct PointSpec : KeyLists<KeyUse> {
    std::string name;   // "{}" stands for the value of field.name
    std::string event;  // glob
    PointFields<std::string> field;
    std::vector<Predicate> when;
    Role role = Role::kNone;
    std::vector<std::string> end_of;  // an end only of ops of these classes; empty: of all
    bool optional = false;            // passed over where nothing finds an op
    bool child = false;               // begins a child of the op that it finds; what it binds names the child
    std::int32_t learn = kNoFact;
    std::string mark, at;  // marks the thread's time; is stamped with the thread's mark
    ThreadRule thread = ThreadRule::kNone;
    BatchDo batch_do = BatchDo::kNone;
    std::string batch_space;
    std::string class_text;                // "": none, or field.op_class says it
    IoWindow in_flight = IoWindow::kNone;  // between them the op's bytes are
    IosSpec ios;
    IoWindow sync = IoWindow::kNone;  // between them the op waits until what was written is on the disk
    Direction direction = Direction::kUnknown;
    MessageDo message = MessageDo::kNone;
    bool aside = false;
    std::vector<std::string> after;
    std::uint32_t quorum = 0;  // how many children of `after` the op waits for; 0: all
};

struct StageSpec {
    std::string name, from, to, kind;  // kind empty: `wait` between two threads, else `work`
    bool behind = false;  // a wait: cut by what the thread that ends it did for the batch before, or for other ops
};

// Where a file lies on disk. All in sectors; physical ones count from start_sector of the disk.
struct FileSpec {
    struct Extent {
        std::uint64_t logical, physical, sectors;
    };
    std::string path;
    std::optional<std::uint32_t> disk;  // kernel-internal number
    std::uint32_t dev = 0;              // of the file system; with the inode (0: unknown) it says which file it is
    std::uint64_t inode = 0;
    std::uint64_t start_sector = 0;
    bool changed = false;
    std::vector<Extent> extents;
    std::string host_name;   // of a joined run; "": the only one
    std::uint32_t host = 0;  // its pool id
};

// The recorder knows that something is missing there; no time: from the begin, or to the end.
struct LostSpec {
    std::string why;
    std::optional<std::int64_t> begin_ns, end_ns;
};

// What the recorder read in sysfs of a block device.
struct DeviceSpec {
    std::uint32_t host = 0;  // pool id; 0: of a run of one host
    std::uint32_t dev = 0;
    std::vector<std::vector<std::uint32_t>> queues;  // CPUs of each hardware queue, by its number
    std::optional<bool> fua;                         // it takes FUA writes
};

// What a kernel stack of the recording tells, in words; "": nothing.
struct StackSpec {
    std::int32_t number = -1;
    std::string cause;       // what a thread that sleeps in it waits for
    bool vague = false;      // many things end such a sleep: what ends it tells more
    std::string end;         // what a context that wakes a thread in it ends
    std::uint32_t host = 0;  // pool id; 0: of a run of one host
};

// A host of a joined run, and what its own plan would say.
struct HostSpec {
    std::string name;
    std::vector<std::int32_t> population, commands;
    std::vector<DeviceSpec> devices;
    std::vector<StackSpec> stacks;
};

// The only host of a joined run that has no recording, and the time in which all other hosts have one.
struct AbsentHost {
    std::string name;
    std::int64_t begin_ns = 0, end_ns = -1;
};

struct Plan {
    std::string model;
    std::vector<std::string> claims;
    std::int64_t linger_ns = 100'000'000;
    bool match_by_sector = false;
    std::vector<KeySpace> key_spaces;  // at most 64
    std::vector<FactSpec> facts;
    std::vector<PointSpec> points;
    std::vector<StageSpec> stages;
    std::vector<BiosSpec> bios, requests;  // the first one that a thread fits counts
    std::vector<FileSpec> files;
    std::vector<LostSpec> lost;
    std::vector<DeviceSpec> devices;
    std::vector<StackSpec> stacks;
    std::vector<std::int32_t> population;  // processes that the recording is about; they fork more
    std::vector<std::int32_t> commands;    // of them, those that the recorder forked
    bool tells_processes = true;           // the recording tells of processes, if the trace has such classes of events
    Providers providers;                   // of applications' collectors
    // Of a cluster: from each time on, how far times of two hosts may be apart from what they seem, in order.
    std::vector<std::pair<std::int64_t, std::int64_t>> clock_bounds;
    AbsentHost absent;            // no name: there is none, or it is not known which of several it would be
    std::vector<HostSpec> hosts;  // of a joined run; empty: of one host
    bool threads_work = false;    // a point says for which op its thread works
    bool behind = false;          // a stage is cut by what threads did for others
};

// The clocks' bound at a time: 0 of one host.
std::int64_t clock_bound_at(const Plan &, std::int64_t ns);

// What a JSON object says of applications' collectors: `relayed` (collector → shim) and `timed`; both may be absent.
Providers providers_of(const nlohmann::json &);

// Throws std::runtime_error with the JSON path of the first thing that is wrong.
Plan parse_plan(const std::string &json_text);

// fnmatch(3) without special treatment of slashes: * ? [..].
bool glob_match(const std::string &pattern, std::string_view text);

}  // namespace opline
