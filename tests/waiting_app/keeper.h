// SPDX-License-Identifier: MIT
// Faults of faults.c in which another thread holds a lock and waits for its I/O. A part of that file.
#pragma once

// The thread "keeper" holds a lock while its I/O can't be done: the loop device's worker waits.
static sem_t keep_begins, keep_ended;
static void (*keep)(void);
static int kept = -1;
static void *keeps(void *unused) {
    prctl(PR_SET_NAME, "keeper");
    for (uint64_t key = 1ull << 32; sem_wait(&keep_begins) == 0; ++key) {
        OPLINE_BEGIN(key, "kept", "keeps", 0, 0);
        keep();
        OPLINE_END(key, 0);
        sem_post(&keep_ended);
    }
    return unused;
}
static void plant_kept(void) {
    freeze();
    sem_post(&keep_begins);
    await_worker();
}
static void lift_kept(void) {
    thaw();
    sem_wait(&keep_ended);
}

// Of the inode: a write with O_DIRECT that makes the file longer holds it alone.
static void keep_inode(void) {
    static long at;
    write_page(kept, at++);
}
static void prepare_inode(void) {
    keep = keep_inode;
    kept = open_in(inner, "inode", O_DIRECT);
    fd = open_in(inner, "inode", 0);
}
static void act_inode(void) { write_page(fd, 0); }

// Of the open file: a write without an offset holds its position.
static void keep_position(void) { check(write(fd, pages, PAGE) == PAGE, "write"); }
static void prepare_mutex(void) {
    keep = keep_position;
    fd = open_in(inner, "mutex", O_DIRECT);
}
static void act_mutex(void) { check(lseek(fd, 0, SEEK_CUR) >= 0, "lseek"); }

// Of the program itself.
static void keep_synced(void) {
    pthread_mutex_lock(&mutex);
    write_page(fd, 0);
    check(fsync(fd) == 0, "fsync");
    pthread_mutex_unlock(&mutex);
}
static void prepare_synced(void) {
    keep = keep_synced;
    fd = open_in(inner, "synced", 0);
}
