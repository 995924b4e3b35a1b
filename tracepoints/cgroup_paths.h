// SPDX-License-Identifier: MIT
// The paths of cgroups that BPF tells by number. Part of the bridges that pass block events on.
//
// The number is the file handle of the cgroup's directory (kernfs_fh_to_dentry(), fs/kernfs/mount.c: type 0xfe, eight
// bytes), so the kernel itself finds the directory; a cgroup that is gone by then has no path any more. What is asked
// for once is kept.
#pragma once
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path_table.h"

#define CGROUP_IN_V1 (UINT64_C(1) << 63)
#define KERNFS_HANDLE 0xfe  // FILEID_KERNFS, include/linux/exportfs.h

static struct {
    struct path_table paths;
    bool looked;
    int mounts[2];  // of cgroup2, and of the memory controller's hierarchy of version 1; negative: none
    char roots[2][PATH_MAX];
} cgroups;

// Where the two hierarchies are mounted: /proc/self/mountinfo, Documentation/filesystems/proc.rst, 3.5.
static void find_cgroup_mounts(void) {
    char line[3 * PATH_MAX], at[PATH_MAX], type[64], options[256];
    cgroups.looked = true;
    cgroups.mounts[0] = cgroups.mounts[1] = -1;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && fgets(line, sizeof(line), mounts)) {
        const char *behind = strstr(line, " - ");
        if (!behind || sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1 ||
            sscanf(behind, " - %63s %*s %255s", type, options) != 2)
            continue;
        const int which = strcmp(type, "cgroup2") == 0                               ? 0
                          : strcmp(type, "cgroup") == 0 && strstr(options, "memory") ? 1
                                                                                     : -1;
        if (which < 0 || cgroups.mounts[which] >= 0) continue;
        cgroups.mounts[which] = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        strcpy(cgroups.roots[which], at);
    }
    if (mounts) fclose(mounts);
}

// The caller frees it. NULL: no cgroup has that number (any more).
static char *look_cgroup_up(uint64_t number) {
    const int which = number & CGROUP_IN_V1 ? 1 : 0;
    const uint64_t inode = number & ~CGROUP_IN_V1;
    char link[64], path[PATH_MAX];
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + sizeof(inode)];
    } of;
    if (!cgroups.looked) find_cgroup_mounts();
    of.handle.handle_bytes = sizeof(inode);
    of.handle.handle_type = KERNFS_HANDLE;
    memcpy(of.handle.f_handle, &inode, sizeof(inode));
    const int directory =
        cgroups.mounts[which] < 0 ? -1 : open_by_handle_at(cgroups.mounts[which], &of.handle, O_PATH | O_CLOEXEC);
    if (directory < 0) return NULL;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    close(directory);
    if (length <= 0) return NULL;
    path[length] = 0;
    const size_t root = strlen(cgroups.roots[which]);
    if (strncmp(path, cgroups.roots[which], root) != 0) return NULL;
    return strdup(path[root] ? path + root : "/");
}

// NULL: no memory, or 0.
static struct known_path *cgroup_by_number(uint64_t number) {
    struct known_path *c = path_entry(&cgroups.paths, 0, number);
    if (c && c->tries == 0) path_found(&cgroups.paths, c, look_cgroup_up(number));
    return c;
}

// The cgroup that the record calls by its number; 0: none.
static inline uint64_t cgroup_named_in(const struct block_event *e) {
    const bool of_thread = e->kind == KIND_THREAD || e->kind == KIND_CGROUP;
    return e->kind == KIND_BIO_QUEUE ? e->other : of_thread ? e->args[5] : 0;
}

// That cgroup, if its path is to be told now: once, before the record.
static inline const struct known_path *cgroup_to_tell(const struct block_event *e) {
    return path_to_tell(&cgroups.paths, cgroup_by_number(cgroup_named_in(e)));
}
