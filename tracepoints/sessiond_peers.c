// SPDX-License-Identifier: MIT
// libopline-sessiond.so: preloaded into a private session daemon, it lets applications of other containers register.
//
// LTTng's daemon knows an application by the PID in the credentials of its socket. The kernel gives 0 for a process
// in a PID namespace that is no descendant of the daemon's, and the daemon then closes the connection (lttng-ust 2.13,
// src/lib/lttng-ust-ctl/ustctl.c, get_cred()). The daemon only needs a number that both sockets of the process have,
// and no other process: events carry the PID of the application's own namespace (context `vpid`). This is the inode of
// the process's pidfd, a number of its own from Linux 6.9 on (fs/pidfs.c). Before, the PID stays 0.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { OF_PEER_PIDFD = 77 };           // SO_PEERPIDFD, Linux 6.5: include/uapi/asm-generic/socket.h
enum { PIDFS = 0x50494446 };           // PIDFS_MAGIC, Linux 6.9: include/uapi/linux/magic.h
enum { ABOVE_ALL_PIDS = 0x40000000 };  // PID_MAX_LIMIT is 0x400000

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes) {
    static int (*next)(int, int, int, void *, socklen_t *);
    if (!next) next = (int (*)(int, int, int, void *, socklen_t *))dlsym(RTLD_NEXT, "getsockopt");
    const int result = next(fd, level, name, value, bytes);
    if (result != 0 || level != SOL_SOCKET || name != SO_PEERCRED || *bytes < sizeof(struct ucred)) return result;
    struct ucred *peer = value;
    int pidfd;
    socklen_t length = sizeof(pidfd);
    if (peer->pid != 0 || next(fd, SOL_SOCKET, OF_PEER_PIDFD, &pidfd, &length) != 0) return result;
    struct stat about;
    struct statfs system;
    if (fstatfs(pidfd, &system) == 0 && system.f_type == PIDFS && fstat(pidfd, &about) == 0)
        peer->pid = (pid_t)(ABOVE_ALL_PIDS | (about.st_ino & (ABOVE_ALL_PIDS - 1)));
    close(pidfd);
    return result;
}
