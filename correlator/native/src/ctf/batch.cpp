// SPDX-License-Identifier: MIT
#include "ctf/batch.hpp"

namespace opline::ctf {

void Batch::replay(Consumer &consumer) const {
    const Event *done = events.data();
    auto give = [&](std::size_t until) {
        const Event *const past = events.data() + until;
        if (done != past) consumer.events(done, past);
        done = past;
    };
    for (const Note &note : notes) {
        give(note.before);
        if (note.is_damage) consumer.damaged(note.stream, note.begin_ns, note.why);
        else consumer.discarded(note.stream, note.begin_ns, note.end_ns, note.count, note.packets);
    }
    give(count);
}

}  // namespace opline::ctf
