// SPDX-License-Identifier: MIT
// The library's own life: looking up what is behind the wrappers, fork, the end of the process.
#include "shim.h"

#include <dlfcn.h>
#include <lttng/ust-fork.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

__thread int shim_depth __attribute__((tls_model("initial-exec")));
bool shim_ended;

void shim_say(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int n = snprintf(text, sizeof text - 1, "opline-ceph: ");
    int m = vsnprintf(text + n, sizeof text - 1 - (size_t)n, format, arguments);
    va_end(arguments);
    if (m < 0) return;
    size_t bytes = strlen(text);
    text[bytes++] = '\n';
    int errno_before = errno;
    (void)!syscall(SYS_write, STDERR_FILENO, text, bytes);
    errno = errno_before;
}

void *shim_next(const char *name, const char *version, const char *library) {
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    if (!found) found = dlsym(RTLD_NEXT, name);
    if (!found && library) {
        // loaded by a module that keeps its names to itself (RTLD_LOCAL): a Python extension, an engine of fio
        void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        if (handle) found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
        if (!found && handle) found = dlsym(handle, name);
    }
    if (!found) {
        shim_say("%s is nowhere to be found: %s", name, dlerror());
        abort();
    }
    return found;
}

// LTTng-UST wants to be told of a fork that no exec follows (daemons): as liblttng-ust-fork.so does, unless it is there to do so.
REAL(pid_t, fork, (void))

EXPORT pid_t fork(void) {
    static int told_by_other = -1;
    if (told_by_other < 0) {
        Dl_info where;
        void *next = (void *)(uintptr_t)real_fork();
        told_by_other = dladdr(next, &where) && where.dli_fname && strstr(where.dli_fname, "lttng-ust-fork");
    }
    if (told_by_other || shim_ended) return real_fork()();
    sigset_t signals;
    lttng_ust_before_fork(&signals);
    pid_t pid = real_fork()();
    int errno_after = errno;
    if (pid == 0) {
        lttng_ust_after_fork_child(&signals);
    } else {
        lttng_ust_after_fork_parent(&signals);
    }
    errno = errno_after;
    return pid;
}

__attribute__((destructor)) static void end(void) { shim_ended = true; }
