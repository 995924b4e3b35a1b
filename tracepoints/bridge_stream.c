// SPDX-License-Identifier: MIT
#include "bridge_stream.h"

#define EXPORT __attribute__((visibility("default")))

struct ctf_stream bridge_stream;
const struct block_event tp_blank;

static struct tp_output output;
static uint8_t stream_uuid[16];

// An event that comes late, after a later one, has the later one's time, as streams are in order; its field `ktime` has
// its own.
struct tp_output *tp_begin(const struct tp_event *event, uint64_t time_ns) {
    struct ctf_stream *s = &bridge_stream;
    if (time_ns < s->end_ns) time_ns = s->end_ns;
    output.at = ctf_event(s, (uint32_t)(event - __start_tp_events), time_ns, TP_EVENT_MOST);
    return &output;
}

void tp_end(struct tp_output *tp) { ctf_end(&bridge_stream, tp->at); }

// The event classes of the metadata, behind what opline/capture/bpf/ctf_metadata.py writes. False: no memory.
EXPORT bool bridge_describe(char **text, size_t *bytes) {
    struct tp_output to = {.metadata = open_memstream(text, bytes)};
    if (!to.metadata) return false;
    for (const struct tp_event *e = __start_tp_events; e != __stop_tp_events; ++e) {
        fprintf(to.metadata, "\nevent {\n\tname = \"%s\";\n\tid = %d;\n\tstream_id = 0;\n\tloglevel = 13;\n", e->name,
                (int)(e - __start_tp_events));
        fputs("\tfields := struct {\n", to.metadata);
        e->describe(&to);
        fputs("\t};\n};\n", to.metadata);
    }
    return fclose(to.metadata) == 0;
}

// The stream `block_0` in the open folder, its index in the open folder `index`. False with errno set if that is not
// possible.
EXPORT bool bridge_open(int folder, int index, const uint8_t uuid[16]) {
    memcpy(stream_uuid, uuid, sizeof(stream_uuid));
    return ctf_open(&bridge_stream, folder, index, "block", 0, 0, stream_uuid);
}

// The same in the next chunk's folders.
EXPORT bool bridge_open_next(int folder, int index) { return ctf_open_next(&bridge_stream, folder, index, "block"); }

// It will go on there, and has not yet.
EXPORT bool bridge_goes_on(void) { return ctf_goes_on(&bridge_stream); }

// After bridge_finish(): write what is left; how many packets could not be written.
EXPORT uint64_t bridge_close(void) {
    ctf_close(&bridge_stream);
    return bridge_stream.unwritten;
}
