// SPDX-License-Identifier: MIT
#include "senders.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_USERS = 64,
    MOST_GENERATIONS = 64,  // between the recorder and whom it has started
};

static pid_t recorder;
static uid_t users[MOST_USERS];
static size_t user_count;

bool senders_begin(pid_t of_recorder, char **uids) {
    recorder = of_recorder;
    users[user_count++] = 0;
    users[user_count++] = geteuid();
    for (; *uids; uids++) {
        char *end;
        unsigned long uid = strtoul(*uids, &end, 10);
        if (end == *uids || *end || user_count == MOST_USERS) return false;
        users[user_count++] = (uid_t)uid;
    }
    return true;
}

// The process' parent, 0: not known.
static pid_t parent_of(pid_t pid) {
    char path[32], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (n <= 0) return 0;
    stat[n] = 0;
    const char *name_end = strrchr(stat, ')');  // the name may have brackets
    int parent = 0;
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool is_welcome(const struct ucred *who) {
    for (size_t i = 0; i < user_count; i++) {
        if (users[i] == who->uid) return true;
    }
    pid_t pid = who->pid;
    for (int i = 0; i < MOST_GENERATIONS && pid > 1; i++) {
        pid = parent_of(pid);
        if (pid == recorder) return true;
    }
    return false;
}
