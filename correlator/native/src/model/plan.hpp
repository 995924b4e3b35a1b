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
// A soft begin makes an op only if no key names an op yet; a soft end ends only ops without a hard begin.
enum class Role : std::uint8_t { kNone, kBegin, kEnd, kSoftBegin, kSoftEnd };
enum class ThreadRule : std::uint8_t { kNone, kEnter, kLeave, kSwitch };
// kOpenOrWork, kOpenOrJoin: open a batch if the thread has no open batch. kLeave: the op no longer waits for a batch,
// and the batch of the thread closes.
enum class BatchDo : std::uint8_t { kNone, kOpen, kOpenOrWork, kJoin, kOpenOrJoin, kWork, kClose, kLeave };
enum class IoWindow : std::uint8_t { kNone, kBegin, kEnd };
// The act of a point on a message between hosts.
enum class MessageDo : std::uint8_t { kNone, kSend, kReceive };
enum class Direction : std::uint8_t { kUnknown, kRead, kWrite };

struct KeySpace {
    std::string name;
    KeyScope scope;
    bool by_order = false;     // ops waiting under the key are met in order: right as a rule, without proof
    std::uint64_t spaces = 0;  // a bit for this space, and for each space always held together with this space
};

constexpr std::int32_t kNoFact = -1;

struct KeyUse {
    std::uint32_t space;
    std::vector<std::string> fields;
    std::vector<std::int32_t> facts;  // per field: the fact for its value, or kNoFact
    // For `release`: all keys of the op in this space, instead of fields of the event.
    bool of_op() const { return fields.size() == 1 && fields.front() == "*"; }
};

// The meaning of a field's value, from an earlier event: the two ports of a descriptor.
struct FactSpec {
    std::string name;
    KeyScope scope;
    std::string of;                  // the field with the value
    std::vector<std::string> value;  // the fields of the meaning
    bool unordered = false;          // {a, b} is {b, a}: the same for both ends
};

struct Predicate {
    std::string field;
    std::vector<std::variant<std::int64_t, std::string>> any;
};

// The act of a system call on I/Os that outlive the call: queue them, wait for their completion, or return.
struct IosSpec {
    std::optional<KeyUse> submit, wait;  // the queue that names the I/Os
    bool ring = false;                   // the application can take completions without a call
    std::string count;                   // number of I/Os in the call
    std::string least;                   // number of completions awaited by the call
    std::string submitted, reaped;       // number of queued I/Os, of taken I/Os; "*": all done I/Os
    std::string names;                   // the application's numbers of the queued or taken I/Os
    IoWindow told = IoWindow::kNone;     // an event about one I/O: its begin, its completion
    std::string taken, posted;           // completions taken before; all completions with this one
    explicit operator bool() const {
        return submit || wait || !submitted.empty() || !reaped.empty() || told != IoWindow::kNone;
    }
    bool of_call() const { return submit || wait || !submitted.empty() || !reaped.empty(); }
};

// Bios (or requests) of threads with these names become ops, if the threads work for no op.
struct BiosSpec {
    std::string op_class;
    std::vector<std::string> threads, except;  // globs
};

// The mark of a thread returning from a wait for work.
constexpr const char *kAwakeMark = "awake";

// Lists of keys of a point: in the plan, and bound to an event class. A new list is a member, a name in the plan, and
// its use.
template <class Key>
struct KeyLists {
    std::vector<Key> find, bind, release;
    std::vector<Key> wait;      // the op waits under these keys for another op
    std::vector<Key> meet;      // finds the op that has waited longest under these keys
    std::vector<Key> sole;      // finds the only op that waits under these keys
    std::vector<Key> identity;  // of a message: the same at both ends

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

// Fields of the event needed by a point: names in the plan ("": none), and slots in an event class. A new field is a
// member, a place in the plan, and its use.
template <class Field>
struct PointFields {
    Field name{};  // the field for "{}" in the point's name
    Field op_class{}, object{}, offset{}, length{}, file{};
    Field members{};  // at the close of a batch: its number of members
    // A place in an order (of a log): the op joins the first batch reaching the needed place, among batches with the
    // same value of `among`.
    Field needs{}, reaches{}, among{};

    struct Named {
        const char *place;  // a JSON pointer
        Field PointFields::*field;
        bool needed;  // the point does not match a class without the field
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
    std::string name;   // with "{}" for the value of field.name
    std::string event;  // glob
    PointFields<std::string> field;
    std::vector<Predicate> when;
    Role role = Role::kNone;
    std::vector<std::string> end_of;  // ends only ops of these classes; empty: of all
    bool optional = false;            // skipped if nothing finds an op
    bool child = false;               // begins a child of the found op; the bound keys name the child
    std::int32_t learn = kNoFact;
    std::string mark, at;  // marks the thread's time; has the time of the thread's mark
    ThreadRule thread = ThreadRule::kNone;
    BatchDo batch_do = BatchDo::kNone;
    std::string batch_space;
    std::string class_text;                // "": none, or from field.op_class
    IoWindow in_flight = IoWindow::kNone;  // begin and end of the op's bytes in flight
    IosSpec ios;
    IoWindow sync = IoWindow::kNone;  // in between the op waits until earlier writes are on the disk
    Direction direction = Direction::kUnknown;
    MessageDo message = MessageDo::kNone;
    bool aside = false;
    std::vector<std::string> after;
    std::uint32_t quorum = 0;  // number of children of `after` that the op waits for; 0: all
};

struct StageSpec {
    std::string name, from, to, kind;  // kind empty: `wait` between two threads, else `work`
    bool behind = false;  // a wait, cut by the work of its ending thread for the batch before, or for other ops
};

// The place of a file on disk, in sectors; physical sectors count from start_sector of the disk.
struct FileSpec {
    struct Extent {
        std::uint64_t logical, physical, sectors;
    };
    std::string path;
    std::optional<std::uint32_t> disk;  // kernel-internal number
    std::uint32_t dev = 0;              // of the file system; with the inode (0: unknown) the identity of the file
    std::uint64_t inode = 0;
    std::uint32_t generation = 0;  // of the inode; 0: not known
    std::uint64_t start_sector = 0;
    bool changed = false;
    std::vector<Extent> extents;
    std::string host_name;   // of a joined run; "": the only host
    std::uint32_t host = 0;  // its pool id
};

// A loss that the recorder knows; no time: from the begin, or to the end.
struct LostSpec {
    std::string why;
    std::optional<std::int64_t> begin_ns, end_ns;
};

// Facts about a block device, from sysfs of the recording machine.
struct DeviceSpec {
    std::uint32_t host = 0;  // pool id; 0: of a run of one host
    std::uint32_t dev = 0;
    std::vector<std::vector<std::uint32_t>> queues;  // CPUs of each hardware queue, by its number
    std::optional<bool> fua;                         // the device takes FUA writes
};

// The meaning of a kernel stack of the recording, in words; "": none.
struct StackSpec {
    std::int32_t number = -1;
    std::string cause;       // why a thread sleeps with this stack
    bool vague = false;      // such a sleep has many ends: the waker's stack tells more
    std::string end;         // the wait that a waker with this stack ends
    std::uint32_t host = 0;  // pool id; 0: of a run of one host
};

// A host of a joined run, with the parts of its own plan.
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
    std::vector<BiosSpec> bios, requests;  // the first that fits a thread counts
    std::vector<FileSpec> files;
    std::vector<LostSpec> lost;
    std::vector<DeviceSpec> devices;
    std::vector<StackSpec> stacks;
    std::vector<std::int32_t> population;  // recorded processes; their children belong to the population, too
    std::vector<std::int32_t> commands;    // the ones that the recorder forked
    bool tells_processes = true;           // the recording has processes, if the trace has such classes of events
    Providers providers;                   // of applications' collectors
    // For a cluster, in order: from each time on, the error of a time between two hosts.
    std::vector<std::pair<std::int64_t, std::int64_t>> clock_bounds;
    AbsentHost absent;            // no name: none, or several are possible
    std::vector<HostSpec> hosts;  // of a joined run; empty: of one host
    bool threads_work = false;    // a point has a thread rule
    bool behind = false;          // a stage is cut by the work of threads for others
};

// The clocks' bound at a time: 0 of one host.
std::int64_t clock_bound_at(const Plan &, std::int64_t ns);

// Applications' collectors of a JSON object: `relayed` (collector → shim) and `timed`; both may be absent.
Providers providers_of(const nlohmann::json &);

// Throws std::runtime_error with the JSON path of the first mistake.
Plan parse_plan(const std::string &json_text);

// fnmatch(3) without special treatment of slashes: * ? [..].
bool glob_match(const std::string &pattern, std::string_view text);

}  // namespace opline
