/* SPDX-License-Identifier: MIT */
#include "extents.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static struct fiemap *ask(int fd, uint32_t room) {
    struct fiemap *map = calloc(1, sizeof *map + room * sizeof map->fm_extents[0]);

    if (!map) return NULL;
    map->fm_length = FIEMAP_MAX_OFFSET;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = room;
    if (ioctl(fd, FS_IOC_FIEMAP, map)) {
        free(map);
        return NULL;
    }
    return map;
}

struct fiemap *extents_read(int fd, int *is_device) {
    struct stat st;

    *is_device = !fstat(fd, &st) && S_ISBLK(st.st_mode);
    if (*is_device) return NULL;
    struct fiemap *count = ask(fd, 0);
    struct fiemap *map = count ? ask(fd, count->fm_mapped_extents) : NULL;
    free(count);
    return map;
}

uint64_t extents_find(const struct fiemap *map, uint64_t offset) {
    uint32_t low = 0, high = map ? map->fm_mapped_extents : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct fiemap_extent *e = &map->fm_extents[middle];
        if (offset < e->fe_logical) high = middle;
        else if (offset >= e->fe_logical + e->fe_length) low = middle + 1;
        else
            return e->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_NOT_ALIGNED)
                       ? EXTENTS_UNKNOWN
                       : e->fe_physical + offset - e->fe_logical;
    }
    return EXTENTS_UNKNOWN;
}
