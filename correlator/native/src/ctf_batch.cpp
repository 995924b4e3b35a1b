// SPDX-License-Identifier: MIT
#include "ctf_batch.hpp"

namespace opline::ctf {

void Batch::replay(Consumer &consumer) const {
    std::size_t done = 0;
    auto give = [&](std::size_t until) {
        if (until > done) consumer.events(events.data() + done, until - done);
        done = until;
    };
    for (const Note &note : notes) {
        give(note.before);
        if (note.is_damage) consumer.damaged(note.stream, note.begin_ns, note.why);
        else consumer.discarded(note.stream, note.begin_ns, note.end_ns, note.count, note.packets);
    }
    give(count);
}

}  // namespace opline::ctf
