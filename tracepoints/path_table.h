// SPDX-License-Identifier: MIT
// What is known of things that BPF tells by number and that have a path: cgroups, files. Part of the bridges that pass
// block events on.
//
// A recording may last for days and meet millions of files. So the entries are in two generations: what is asked for is
// in the young one, or comes there from the old one. When the young one is full, the old one is forgotten, and the
// young one is the old one from then on. What is forgotten is asked for, and told, once more when it is met again.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Of a generation.
#define MOST_PATHS 32768
#define MOST_PATH_BYTES (4 << 20)

struct known_path {
    uint64_t number;
    uint64_t space;  // of a file: the generation of the inode << 32, and the number of the file system
    char *path;      // NULL: not known (yet)
    uint32_t tries;  // how often the path was asked for
    bool told, told_unknown;
};

struct path_generation {
    struct known_path *known;  // a power of two of places, number 0: free
    size_t room, count, bytes;
};

struct path_table {
    struct path_generation young, old;
    uint64_t told;
};

static struct known_path *path_place(const struct path_generation *g, uint64_t space, uint64_t number) {
    size_t i = ((number ^ space << 40 ^ space >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (g->room - 1);
    while (g->known[i].number != 0 && (g->known[i].number != number || g->known[i].space != space))
        i = (i + 1) & (g->room - 1);
    return &g->known[i];
}

static struct known_path *path_within(const struct path_generation *g, uint64_t space, uint64_t number) {
    struct known_path *p = g->room ? path_place(g, space, number) : NULL;
    return p && p->number ? p : NULL;
}

static bool has_path_room(struct path_generation *g) {
    if (g->count * 2 < g->room) return true;
    const size_t before = g->room, room = before ? before * 2 : 256;
    struct known_path *old = g->known, *more = calloc(room, sizeof(*more));
    if (!more) return false;
    g->known = more;
    g->room = room;
    for (size_t i = 0; i < before; ++i)
        if (old[i].number) *path_place(g, old[i].space, old[i].number) = old[i];
    free(old);
    return true;
}

static void forget_old_paths(struct path_table *t) {
    struct path_generation emptied = t->old;
    for (size_t i = 0; i < emptied.room; ++i) free(emptied.known[i].path);
    if (emptied.room) memset(emptied.known, 0, emptied.room * sizeof(*emptied.known));
    emptied.count = emptied.bytes = 0;
    t->old = t->young;
    t->young = emptied;
}

// The entry, a new one if there is none; it stays where it is until the next call. NULL: no memory, or the number is 0.
static struct known_path *path_entry(struct path_table *t, uint64_t space, uint64_t number) {
    struct known_path *p = path_within(&t->young, space, number);
    if (p || number == 0) return p;
    if (t->young.count >= MOST_PATHS || t->young.bytes >= MOST_PATH_BYTES) forget_old_paths(t);
    if (!has_path_room(&t->young)) return NULL;
    struct known_path *before = path_within(&t->old, space, number);
    p = path_place(&t->young, space, number);
    if (before) {
        *p = *before;
        before->path = NULL;
        t->young.bytes += p->path ? strlen(p->path) + 1 : 0;
    }
    p->number = number;
    p->space = space;
    ++t->young.count;
    return p;
}

// Gives the entry of the last call of path_entry its path (NULL: none), which the table frees.
static void path_found(struct path_table *t, struct known_path *p, char *path) {
    ++p->tries;
    p->path = path;
    t->young.bytes += path ? strlen(path) + 1 : 0;
}

// The path, if it is known; changes nothing.
static inline const char *path_of(const struct path_table *t, uint64_t space, uint64_t number) {
    const struct known_path *p = path_within(&t->young, space, number);
    if (!p) p = path_within(&t->old, space, number);
    return p ? p->path : NULL;
}

// The stream goes on in another part, which has the path of whatever it names.
static inline void paths_to_tell_again(struct path_table *t) {
    for (size_t i = 0; i < t->young.room; ++i) t->young.known[i].told = t->young.known[i].told_unknown = false;
    for (size_t i = 0; i < t->old.room; ++i) t->old.known[i].told = t->old.known[i].told_unknown = false;
}

// The entry, if its path is to be told now: once in a part of the stream. `p` may be NULL.
static inline const struct known_path *path_to_tell(struct path_table *t, struct known_path *p) {
    if (!p || !p->path || p->told) return NULL;
    ++t->told;
    p->told = true;
    return p;
}

// The entry, if it is to be told now that its path is not known: once in a part of the stream.
static inline const struct known_path *path_to_miss(struct path_table *t, struct known_path *p) {
    if (!p || p->path || p->told_unknown) return NULL;
    ++t->told;
    p->told_unknown = true;
    return p;
}
