// SPDX-License-Identifier: MIT
// What is known of things that BPF tells by number and that have a path: cgroups, files. Part of the bridges that pass
// block events on.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct known_path {
    uint64_t number;
    uint32_t dev, tries;  // of what file system; how often the path was asked for
    char *path;           // NULL: not known (yet)
    bool told;
};

struct path_table {
    struct known_path *known;  // a power of two of places, number 0: free
    size_t room, count;
    uint64_t told;
};

static struct known_path *path_place(const struct path_table *t, uint32_t dev, uint64_t number) {
    size_t i = ((number ^ (uint64_t)dev << 40) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->room - 1);
    while (t->known[i].number != 0 && (t->known[i].number != number || t->known[i].dev != dev))
        i = (i + 1) & (t->room - 1);
    return &t->known[i];
}

// The entry, a new one if there is none. NULL: no memory, or the number is 0.
static struct known_path *path_entry(struct path_table *t, uint32_t dev, uint64_t number) {
    if (number == 0) return NULL;
    if (t->count * 2 >= t->room) {
        const size_t before = t->room, room = before ? before * 2 : 256;
        struct known_path *old = t->known, *more = calloc(room, sizeof(*more));
        if (!more) return NULL;
        t->known = more;
        t->room = room;
        for (size_t i = 0; i < before; ++i)
            if (old[i].number) *path_place(t, old[i].dev, old[i].number) = old[i];
        free(old);
    }
    struct known_path *p = path_place(t, dev, number);
    if (p->number == 0) {
        ++t->count;
        p->number = number;
        p->dev = dev;
    }
    return p;
}

// The stream goes on in another part, which has the path of whatever it names.
static inline void paths_to_tell_again(struct path_table *t) {
    for (size_t i = 0; i < t->room; ++i) t->known[i].told = false;
}

// The entry, if its path is to be told now: once in a part of the stream. `p` may be NULL.
static inline const struct known_path *path_to_tell(struct path_table *t, struct known_path *p) {
    if (!p || !p->path || p->told) return NULL;
    ++t->told;
    p->told = true;
    return p;
}
