// SPDX-License-Identifier: MIT
#include "ctf/batch.hpp"

namespace opline::ctf {

void EventBatch::replay(EventSink &sink) const {
    const Event *done = events.data();
    auto give = [&](std::size_t until) {
        const Event *const past = events.data() + until;
        if (done != past) sink.events(done, past);
        done = past;
    };
    for (const Note &note : notes) {
        give(note.before);
        Gap gap = note.gap;
        gap.why = note.why;
        sink.gap(gap);
    }
    give(count);
}

}  // namespace opline::ctf
