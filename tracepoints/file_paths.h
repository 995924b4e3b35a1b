// SPDX-License-Identifier: MIT
// The paths of files that system calls name by a descriptor. Part of the bridge into a session.
//
// A call's record has the process, the descriptor, and what the descriptor was open on: the number of the file system,
// the inode, and the inode's generation. The bridge asks /proc/PID/fd for the path when it meets a file for the first
// time, within some milliseconds; `ino` of /proc/PID/fdinfo (Linux 5.14) and the generation in the file's handle must
// be the record's: the descriptor may be another file's by then. If the program has closed it, the next calls on that
// file are tried.
//
// A file system gives the number of a removed file to a new one, with another generation.
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "block_event.h"
#include "calls.h"
#include "path_table.h"

#define FILE_TRIES 8
#define ROOT_PID_NS 0xEFFFFFFCu  // PROC_PID_INIT_INO, include/linux/proc_ns.h

static struct {
    struct path_table paths;  // by inode
    int root;                 // the numbers of processes are those of /proc; 0: not asked yet
} files;

enum { INO32_GENERATION = 1, XFS_INO64_GENERATION = 0x81 };  // types of handles: linux/exportfs.h, fs/xfs/xfs_export.h

// Is this a file of that generation? Also where its file system does not say: a handle has no fixed form.
static bool has_generation(const char *name, uint32_t generation) {
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } of;
    int mount;
    uint32_t words[3];
    of.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, name, &of.handle, &mount, AT_SYMLINK_FOLLOW) != 0) return true;
    memcpy(words, of.handle.f_handle, sizeof(words));
    switch (of.handle.handle_type) {
    case INO32_GENERATION: return of.handle.handle_bytes != 8 || words[1] == generation;
    case XFS_INO64_GENERATION: return of.handle.handle_bytes != 12 || words[2] == generation;
    default: return true;
    }
}

// The kernel says so behind the path of a removed file.
static void without_removed(const char *name, char *path) {
    static const char removed[] = " (deleted)";
    const size_t length = strlen(path), end = sizeof(removed) - 1;
    struct stat file;
    if (length <= end || strcmp(path + length - end, removed) != 0) return;
    if (stat(name, &file) == 0 && file.st_nlink == 0) path[length - end] = 0;
}

// The path of what the process has open under this number, into `path`; false: it is not the record's file, is closed,
// or has no path: a pipe, a socket.
static bool path_behind(const struct block_event *e, int fd, char path[PATH_MAX]) {
    char name[64], text[256];
    snprintf(name, sizeof(name), "/proc/%u/fd/%d", e->pid, fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length <= 0 || path[0] != '/') return false;
    path[length] = 0;
    without_removed(name, path);
    if (!has_generation(name, e->old_dev)) return false;
    snprintf(name, sizeof(name), "/proc/%u/fdinfo/%d", e->pid, fd);
    const int about = open(name, O_RDONLY | O_CLOEXEC);
    if (about < 0) return false;
    length = read(about, text, sizeof(text) - 1);
    close(about);
    text[length > 0 ? length : 0] = 0;
    const char *inode = strstr(text, "\nino:");
    uint64_t number = 0;
    return inode && sscanf(inode, "\nino: %" SCNu64, &number) == 1 && number == e->inode;
}

// Of a file that is registered with an io_uring: the descriptor by which the process had it registered, if it is open
// still. Inodes of several file systems have one number, so the file system must be the same; a block device's is not.
static bool path_of_registered(const struct block_event *e, char path[PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof(name), "/proc/%u/fd", e->pid);
    DIR *const folder = opendir(name);
    bool found = false;
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        struct stat file;
        if (entry->d_name[0] == '.' || !path_behind(e, atoi(entry->d_name), path)) continue;
        found = fstatat(dirfd(folder), entry->d_name, &file, 0) == 0 &&
                (S_ISBLK(file.st_mode) || (major(file.st_dev) << 20 | minor(file.st_dev)) == e->dev);
    }
    if (folder) closedir(folder);
    return found;
}

// Of a record that names a file by a descriptor: which; -1: by a number of an io_uring's; -2: the record names none.
static inline int descriptor_in(const struct block_event *e) {
    if (e->kind == KIND_URING) return e->call == URING_SUBMIT ? (int)e->args[4] : -2;
    if (e->kind != KIND_CALL_ENTRY) return -2;
    switch (e->call) {
    case CALL_io_submit: return (int)(e->args[1] >> 32);
    case CALL_copy_file_range:
    case CALL_splice: return (int)e->args[2];
    default: return (int)e->args[0];
    }
}

// The caller frees it. NULL: it is not found.
static char *look_file_up(const struct block_event *e) {
    char path[PATH_MAX];
    if (files.root == 0) {
        struct stat space;
        files.root = stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == ROOT_PID_NS ? 1 : -1;
    }
    const int fd = descriptor_in(e);
    if (files.root < 0) return NULL;
    return (fd < 0 ? path_of_registered(e, path) : path_behind(e, fd, path)) ? strdup(path) : NULL;
}

static inline struct known_path *file_named_in(const struct block_event *e) {
    return path_entry(&files.paths, (uint64_t)e->old_dev << 32 | e->dev, e->inode);
}

// Asks for the path of the record's file where it is not known yet.
static inline void meet_file(const struct block_event *e) {
    if (descriptor_in(e) == -2) return;
    struct known_path *f = file_named_in(e);
    if (!f || f->path || f->tries >= FILE_TRIES) return;
    path_found(&files.paths, f, look_file_up(e));
}

// The file of the record, if its path is to be told now: once, before the record. `path` NULL: it is not known, and the
// inode may have been another file's.
static inline const struct known_path *file_to_tell(const struct block_event *e) {
    if (descriptor_in(e) == -2) return NULL;
    struct known_path *f = file_named_in(e);
    if (f && !f->path) return e->old_dev != 0 ? path_to_miss(&files.paths, f) : NULL;
    return path_to_tell(&files.paths, f);
}
