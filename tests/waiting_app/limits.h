// SPDX-License-Identifier: MIT
// Faults of faults.c that a limit, another writer or a worker of io_uring is behind. A part of that file.
#pragma once

#include <linux/io_uring.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

// A cgroup of version 1 with a limit. It is left before the fault ends.
static char group[96];
static void put(const char *folder, const char *file, const char *text) {
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    const int to = open(path, O_WRONLY);
    check(to >= 0 && write(to, text, strlen(text)) > 0, path);
    close(to);
}
// `tasks`: the thread alone; `cgroup.procs`: the process.
static void join_group(const char *controller, const char *file, const char *limit, const char *members) {
    snprintf(group, sizeof(group), "/sys/fs/cgroup/%s/opline-faults-%d", controller, getpid());
    check(mkdir(group, 0700) == 0, group);
    put(group, file, limit);
    put(group, members, "0");
}
static void leave_group(void) {
    if (group[0]) rmdir(group);
    group[0] = 0;
}

// A tenth of a second, in which the kernel counts (throtl_slice), has room for less than one page.
static void prepare_throttle(void) {
    char limit[64];
    struct stat of;
    fd = open_device();
    check(fstat(fd, &of) == 0, device);
    snprintf(limit, sizeof(limit), "%u:%u 36000", major(of.st_rdev), minor(of.st_rdev));
    join_group("blkio", "blkio.throttle.write_bps_device", limit, "tasks");
    for (long i = 0; i < 2; ++i) write_page(fd, i);  // the first one may be free
}

// Pages that are written make room for others, and the device of their file does not write.
enum { LIMIT = 16 << 20, LIMITED_PAGES = 2 * LIMIT / PAGE };
static void prepare_reclaim(void) {
    char limit[16];
    fd = open_in(inner, "reclaim", 0);
    for (long i = 0; i < LIMITED_PAGES; ++i) write_page(fd, i);
    check(fsync(fd) == 0, "fsync");
    snprintf(limit, sizeof(limit), "%d", LIMIT);
    join_group("memory", "memory.limit_in_bytes", limit, "cgroup.procs");
}
static void again_reclaim(void) {
    check(fsync(fd) == 0, "fsync");
    check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
}
// This process may not do it: all of its memory is limited.
static void plant_reclaim(void) {
    for (shared->wanted = FREEZE; !shared->frozen;) nap(100000);
}
static void lift_reclaim(void) {
    while (shared->wanted) nap(100000);
}
static void end_reclaim(void) { put("/sys/fs/cgroup/memory", "cgroup.procs", "0"); }
static void act_reclaim(void) {
    for (long i = 0; i < LIMITED_PAGES; ++i) write_page(fd, i);
}

// A second writer beside one whose writes are done when they are on the disk.
static volatile int seconding;
static void *seconds(void *unused) {
    prctl(PR_SET_NAME, "second");
    const int to = open_in(inner, "second", 0);
    for (long at = 0; seconding; ++at) {
        write_page(to, at % PAGES);
        check(fsync(to) == 0, "fsync");
    }
    close(to);
    return unused;
}
static pthread_t second;
static void prepare_odsync(void) {
    fd = open_in(inner, "odsync", O_DSYNC);
    for (long i = 0; i < PAGES; ++i) write_page(fd, i);
    seconding = 1;
    check(pthread_create(&second, NULL, seconds, NULL) == 0, "thread");
}
static void act_odsync(void) {
    static long at;
    write_page(fd, at++ % PAGES);
}
static void end_odsync(void) {
    seconding = 0;
    pthread_join(second, NULL);
}

// A write that a worker of io_uring does, as the file system is frozen.
static int uring = -1;
static char *queue, *completions;
static struct io_uring_sqe *entries;
static struct io_uring_params params;
static void *ring_part(size_t size, off_t at) {
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, uring, at);
    check(found != MAP_FAILED, "mmap");
    return found;
}
static void prepare_punt(void) {
    fd = open_in(outer, "punt", 0);
    uring = syscall(SYS_io_uring_setup, 1, &params);
    check(uring >= 0, "io_uring_setup");
    queue = ring_part(params.sq_off.array + params.sq_entries * sizeof(int), IORING_OFF_SQ_RING);
    completions = ring_part(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    entries = ring_part(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
}
static void act_punt(void) {
    entries[0] = (struct io_uring_sqe){
        .opcode = IORING_OP_WRITE, .flags = IOSQE_ASYNC, .fd = fd, .addr = (uintptr_t)pages, .len = PAGE};
    __atomic_fetch_add((unsigned *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    check(syscall(SYS_io_uring_enter, uring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
    __atomic_fetch_add((unsigned *)(completions + params.cq_off.head), 1, __ATOMIC_RELEASE);
}
static void end_punt(void) { close(uring); }
