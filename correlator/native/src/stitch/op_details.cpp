// SPDX-License-Identifier: MIT
#include "stitch/op_details.hpp"

#include "stitch/key_builder.hpp"

namespace opline {

OpDetails::OpDetails(Stitching &s, OpLives &lives) : s_(s), lives_(lives) {
    for (const auto &f : s.plan.files)
        file_names_.map({f.host != 0 ? f.host : FileNames::kAnyHost, f.dev, f.inode},
                        {f.generation, s.strings.intern(f.path)});
}

// The point's name, with the field's value inserted.
std::uint32_t OpDetails::point_name(BoundPoint &bp, const PointSpec &spec, const Slot &value) {
    const bool is_text = value.kind == Slot::Kind::kString;
    if (is_text)
        for (const auto &[text, id] : bp.names)
            if (text == value.str()) return id;
    const std::string text = is_text ? std::string(value.str()) : std::to_string(value.i);
    std::string name = spec.name;
    const auto hole = name.find("{}");
    if (hole == std::string::npos) name += text;
    else name.replace(hole, 2, text);
    const auto id = s_.strings.intern(name);
    if (is_text && bp.names.size() < 16) bp.names.emplace_back(text, id);
    return id;
}

void OpDetails::decorate(Op &op, const Passage &p) {
    const BoundPoint &bp = p.bp;
    const Event &ev = p.ev;
    if (bp.class_id != 0) op.op_class = bp.class_id;
    if (bp.slot.op_class != kNoSlot && ev.slots[bp.slot.op_class].kind == Slot::Kind::kString)
        op.op_class = s_.strings.intern(ev.slots[bp.slot.op_class].str());
    if (bp.slot.object != kNoSlot && with_objects_) {
        const Slot &s = ev.slots[bp.slot.object];
        if (s.kind == Slot::Kind::kString) op.object.assign(s.str());
        else if (s.is_number()) op.object = std::to_string(s.u);
    }
    if (bp.slot.offset != kNoSlot && ev.slots[bp.slot.offset].is_number()) {
        op.offset_bytes = ev.slots[bp.slot.offset].i;
        op.has_offset = op.offset_bytes >= 0;  // negative: the file has no places (a pipe, a socket)
    }
    if (bp.slot.length != kNoSlot && ev.slots[bp.slot.length].is_number()) {
        const std::int64_t bytes = ev.slots[bp.slot.length].i;
        op.failed = op.failed || (bytes < 0 && p.spec.role == Role::kEnd);  // negative: the error returned by the call
        if (bytes >= 0) op.length_bytes = bytes;
        op.has_length = (op.has_length || bytes >= 0) && !op.failed;
    }
    if (p.spec.direction != Direction::kUnknown) op.direction = p.spec.direction;
    if (bp.of_files) decorate_with_file(op, p);
}

// Owner and object of the op, from facts told until now: a recorder tells the running processes only after the
// recording's begin.
void OpDetails::name_late(Op &op, std::int64_t first_tid) {
    if (op.cgroup == 0) op.cgroup = s_.identities.cgroups.of_thread(op.host, op.pid, first_tid);
    if (!with_objects_ || !op.object.empty() || op.inode == 0) return;
    const FileNumber file{op.target_host, op.file_dev, op.inode};
    if (const auto path = file_names_.path(file, op.file)) op.object = s_.strings.at(path);
}

void OpDetails::decorate_with_file(Op &op, const Passage &p) {
    const BoundPoint &bp = p.bp;
    const PointSpec &spec = p.spec;
    const Event &ev = p.ev;
    const std::int32_t pid = p.who.pid;
    if (bp.slot.file != kNoSlot && ev.slots[bp.slot.file].present()) {
        const Slot &s = ev.slots[bp.slot.file];
        KeyBuilder b(thread_key(op.host, pid));
        if (s.kind == Slot::Kind::kString) {
            op.file_name.assign(s.str());
            b.add(s.str());
        } else {
            b.add(s.bits());
        }
        op.target = b.lo;
        op.target_host = p.who.host;
    } else if (spec.field.file.empty() && (spec.in_flight == IoWindow::kBegin || spec.sync == IoWindow::kBegin) &&
               op.target == thread_key(op.host, op.pid)) {
        op.target = thread_key(op.host, pid);  // an op may begin in another process
        op.target_host = p.who.host;
    }
    if (bp.inode_slot != kNoSlot && bp.file_dev_slot != kNoSlot && ev.slots[bp.inode_slot].bits() != 0) {
        op.inode = ev.slots[bp.inode_slot].bits();
        op.file_dev = static_cast<std::uint32_t>(ev.slots[bp.file_dev_slot].bits());
        op.file = file_names_.told({p.who.host, op.file_dev, op.inode});
        KeyBuilder b(thread_key(op.host, pid));
        b.add(op.file_dev);
        b.add(op.inode);
        b.add(op.file.generation);
        op.target = b.lo;
        op.target_host = p.who.host;
    }
    if (spec.in_flight == IoWindow::kBegin && !op.io_open &&
        op.has_offset) {  // the length may be the return value of the call
        lives_.open_io_window(op, p.who.host);
    } else if (spec.in_flight == IoWindow::kEnd && op.io_open) {
        lives_.close_io_window(op);
        s_.hooks.wrote(op, ev.ts_ns);
    }
    if (spec.sync == IoWindow::kBegin && op.sync_ns == kNoTime && op.state == OpState::kOpen) {
        lives_.leave_sync(p.ts, op);
        p.ts.syncing = op_ref(op);
        op.sync_ns = ev.ts_ns;
        op.synced = true;
        s_.hooks.sync_begun(op, p.who.tid, ev.ts_ns);
    } else if (spec.sync == IoWindow::kEnd) {
        lives_.end_sync(op, ev.ts_ns);
    }
}

}  // namespace opline
