// SPDX-License-Identifier: MIT
#include "ctf_batch.hpp"

#include <utility>

namespace opline::ctf {

void Batch::find_leads(Consumer &consumer) {
    const Event *done = events.data();
    Lead *past = leads.data();
    auto find = [&](std::size_t until) { past = consumer.find_leads(std::exchange(done, events.data() + until), events.data() + until, past); };
    for (Note &note : notes) {
        find(note.before);
        note.leads_before = static_cast<std::size_t>(past - leads.data());
    }
    find(count);
    lead_count = static_cast<std::size_t>(past - leads.data());
}

void Batch::replay(Consumer &consumer) const {
    const Event *done = events.data();
    const Lead *done_leads = leads.data();
    auto give = [&](std::size_t until, std::size_t leads_until) {
        const Events all{done, events.data() + until, done_leads, leads.data() + leads_until};
        if (all.first != all.past) consumer.events(all);
        done = all.past;
        done_leads = all.past_leads;
    };
    for (const Note &note : notes) {
        give(note.before, note.leads_before);
        if (note.is_damage) consumer.damaged(note.stream, note.begin_ns, note.why);
        else consumer.discarded(note.stream, note.begin_ns, note.end_ns, note.count, note.packets);
    }
    give(count, lead_count);
}

}  // namespace opline::ctf
