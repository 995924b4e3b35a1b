// SPDX-License-Identifier: MIT
// Meets COUNT files, and one file after each 500 of them; says what the table holds then.
#include "path_table.h"

#include <stdio.h>

static struct path_table table;

static size_t held(const struct path_generation *g, size_t *bytes) {
    size_t paths = 0;
    for (size_t i = 0; i < g->room; ++i)
        if (g->known[i].path) {
            ++paths;
            *bytes += strlen(g->known[i].path) + 1;
        }
    return paths;
}

static int meet(uint64_t number, size_t length) {
    struct known_path *p = path_entry(&table, 7, number);
    if (!p->path) {
        char *path = malloc(length + 1);
        snprintf(path, length + 1, "/%0*llu", (int)length - 1, (unsigned long long)number);
        path_found(&table, p, path);
    }
    return path_to_tell(&table, p) != NULL;
}

int main(int argc, char **argv) {
    const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, length = argc > 2 ? strtoul(argv[2], NULL, 10) : 40;
    size_t told = 0, told_often = 0, bytes = 0;
    for (uint64_t n = 1; n <= count; ++n) {
        told += (size_t)meet(1000 + n, length);
        if (n % 500 == 0) told_often += (size_t)meet(1, length);
    }
    const size_t young = held(&table.young, &bytes), paths = young + held(&table.old, &bytes);
    const char *last = path_of(&table, 7, 1000 + count);
    const int wrong = !last || strtoull(last + 1, NULL, 10) != 1000 + count, first = path_of(&table, 7, 1001) != NULL;
    printf(
        "{\"told\": %zu, \"told_often\": %zu, \"paths\": %zu, \"bytes\": %zu, \"first\": %d, \"wrong\": %d, "
        "\"told_again\": %d}\n",
        told, told_often, paths, bytes, first, wrong, meet(1001, length));
    return 0;
}
