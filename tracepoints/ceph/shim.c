// SPDX-License-Identifier: MIT
// Looking up what is behind the wrappers; when tracing begins and ends in a process.
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
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

// -- life -------------------------------------------------------------------------------------------------------------

// A child that no exec follows has LTTng's memory and none of its threads: it is not traced. (Ceph's monitor forks like
// that, and closes every descriptor; LTTng's own way of following a fork ends the process then.) But LTTng's locks must
// be free in it, or the child hangs when it exits: the thread that forks holds them meanwhile (lttng/ust-fork.h). What
// gives them back in the parent does so in the child; what LTTng has for the child would begin to trace it. Where the
// program itself has LTTng-UST, libopline-ust or liblttng-ust-fork see to its forks.
EXPORT extern const char opline_sees_to_forks;
const char opline_sees_to_forks = 1;  // for libopline-ust
static void (*before)(sigset_t *), (*after)(sigset_t *);
static __thread sigset_t signals_before;
static __thread bool held;

static void before_fork(void) {
    held = before && after && !dlsym(RTLD_DEFAULT, "lttng_ust_before_fork");
    if (held) before(&signals_before);
}
static void in_parent(void) {
    if (held) after(&signals_before);
    held = false;
}
static void in_child(void) {
    in_parent();
    shim_ended = true;
}

// Words in the environment: "now" loads the provider at once, "direct" lets every thread call LTTng-UST itself.
static bool asked(const char *word) {
    const char *words = getenv("OPLINE_CEPH_SHIM");
    return words && strstr(words, word);
}

// The probes, and LTTng-UST with its threads and descriptors: not before they are needed. A shell that starts Ceph, a
// daemon that is about to fork into the background, stay as they are.
void shim_load(void) {
    static int loaded;
    if (__atomic_exchange_n(&loaded, 1, __ATOMIC_ACQ_REL)) return;
    int errno_before = errno;
    Dl_info self;
    char path[4096];
    const char *name = dladdr((void *)(uintptr_t)&shim_load, &self) ? self.dli_fname : "";
    int folder = (int)(strrchr(name, '/') ? strrchr(name, '/') - name + 1 : 0);
    snprintf(path, sizeof path, "%.*slibopline-ceph-tp.so", folder, name);
    pthread_atfork(before_fork, in_parent, in_child);
    net_resolve();
    disk_resolve();
    ring_begin_process(asked("direct"));
    void *provider = dlopen(path, RTLD_NOW | RTLD_NODELETE);
    if (!provider) shim_say("no events: %s", dlerror());
    if (provider) before = (void (*)(sigset_t *))dlsym(provider, "lttng_ust_before_fork");
    if (provider) after = (void (*)(sigset_t *))dlsym(provider, "lttng_ust_after_fork_parent");
    errno = errno_before;
}

__attribute__((constructor)) static void begin(void) {
    if (asked("now")) shim_load();
}

__attribute__((destructor)) static void end(void) { shim_ended = true; }
