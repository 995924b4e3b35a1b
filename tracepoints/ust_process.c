// SPDX-License-Identifier: MIT
// libopline-ust.so: preloaded into the recorded command, it keeps LTTng-UST right in processes that fork, close all
// descriptors, or run in another time namespace. It does nothing in a program without LTTng-UST, and needs no library
// of it: liblttng-ust-fork and liblttng-ust-fd, which do the first two, load LTTng-UST, with its threads, into every
// program that they are preloaded into.
//
//   fork     without exec: LTTng-UST's threads are not in the child, and what it remembers of the process is the
//            parent's. Before and after each fork it is told so (lttng/ust-fork.h), by handlers of pthread_atfork(3),
//            which also run in daemon(3). vfork and posix_spawn need nothing: an exec follows.
//   close    LTTng-UST's own descriptors stay open in a program that closes all (lttng_ust_safe_close_fd() of
//            liblttng-ust-common 2.13, which liblttng-ust-fd uses).
//   clock    in a time namespace CLOCK_MONOTONIC is another one. Events get the clock of the recorder's namespace, to
//            the nanosecond: this library is LTTng-UST's clock plugin as well (LTTNG_UST_CLOCK_PLUGIN).
//            OPLINE_CLOCK_OFFSET_NS is what the recorder's own namespace adds to the root's clock.
//
// By dlsym(3), when LTTng-UST is there. A program that loads it later (dlopen) has the first and third.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// A library of the process, whose file is called `name` or `name`.VERSION; `path` is where dlopen() finds it again. By
// its name alone dlopen() reads the file, with RTLD_NOLOAD too, in a call that would count as the program's.
struct wanted_library {
    const char *name;
    char path[4096];
};

static int is_wanted(struct dl_phdr_info *info, size_t bytes, void *to) {
    (void)bytes;
    struct wanted_library *wanted = to;
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
    const size_t length = strlen(wanted->name), path_length = strlen(info->dlpi_name);
    if (strncmp(file, wanted->name, length) != 0 || (file[length] != 0 && file[length] != '.')) return 0;
    if (path_length >= sizeof(wanted->path)) return 0;
    memcpy(wanted->path, info->dlpi_name, path_length + 1);
    return 1;
}

static bool has_library(const char *name) {
    struct wanted_library wanted = {.name = name};
    return dl_iterate_phdr(is_wanted, &wanted) != 0;
}

// Of LTTng-UST, also where a module that keeps its names to itself has loaded it (RTLD_LOCAL). A library that exports
// opline_sees_to_forks has loaded it for itself and sees to its forks.
static void *function_of(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found || dlsym(RTLD_DEFAULT, "opline_sees_to_forks")) return found;
    struct wanted_library wanted = {.name = "liblttng-ust.so"};
    if (!dl_iterate_phdr(is_wanted, &wanted)) return NULL;
    void *handle = dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return NULL;
    found = dlsym(handle, name);
    dlclose(handle);
    return found;
}

// ---- fork ----------------------------------------------------------------------------------------------------------

// Looked up before the fork: in a child the dynamic linker's lock may be held by a thread that is not there.
typedef void (*of_fork)(sigset_t *);
static __thread sigset_t saved_signals;
static __thread of_fork in_parent, in_child;

static void before_fork(void) {
    in_parent = in_child = NULL;
    const of_fork before = (of_fork)function_of("lttng_ust_before_fork");
    if (!before) return;
    in_parent = (of_fork)function_of("lttng_ust_after_fork_parent");
    in_child = (of_fork)function_of("lttng_ust_after_fork_child");
    if (!in_parent || !in_child) in_parent = in_child = NULL;
    else before(&saved_signals);
}

static void after_fork_in_parent(void) {
    if (in_parent) in_parent(&saved_signals);
}
static void after_fork_in_child(void) {
    if (in_child) in_child(&saved_signals);
}

// ---- close ---------------------------------------------------------------------------------------------------------

static int (*safe_close)(int, int (*)(int));
static int (*safe_close_all_from)(int, int (*)(int));

static int next_close(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "close");
    return next(fd);
}

EXPORT int close(int fd) { return safe_close ? safe_close(fd, next_close) : next_close(fd); }

EXPORT void closefrom(int first) {
    if (safe_close_all_from) safe_close_all_from(first, next_close);
    else ((void (*)(int))dlsym(RTLD_NEXT, "closefrom"))(first);
}

EXPORT int close_range(unsigned first, unsigned last, int flags) {
    if (!safe_close || flags != 0 || first > last)  // CLOSE_RANGE_CLOEXEC closes at the exec, as all else ends
        return ((int (*)(unsigned, unsigned, int))dlsym(RTLD_NEXT, "close_range"))(first, last, flags);
    const long most = sysconf(_SC_OPEN_MAX);
    for (unsigned fd = first; fd <= last && (most < 0 || fd < (unsigned)most); ++fd) safe_close((int)fd, next_close);
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    if (!has_library("liblttng-ust-fork.so")) pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    if (has_library("liblttng-ust-fd.so")) return;
    safe_close_all_from = (int (*)(int, int (*)(int)))dlsym(RTLD_DEFAULT, "lttng_ust_safe_closefrom_fd");
    safe_close = (int (*)(int, int (*)(int)))dlsym(RTLD_DEFAULT, "lttng_ust_safe_close_fd");
}

// ---- clock ---------------------------------------------------------------------------------------------------------

static int64_t clock_offset_ns;  // of this process' clock from the recorder's
static char boot_id[37];

static uint64_t read_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - (uint64_t)clock_offset_ns;
}
static uint64_t clock_frequency(void) { return 1000000000; }
static int clock_uuid(char *to) {  // as LTTng-UST's own: of the boot
    memcpy(to, boot_id, sizeof(boot_id));
    return boot_id[0] ? 0 : -EINVAL;
}
static const char *clock_name(void) { return "monotonic"; }
static const char *clock_description(void) { return "Monotonic Clock"; }

static bool same_link(const char *one, const char *other) {
    char a[64] = "", b[64] = "";
    return readlink(one, a, sizeof(a) - 1) > 0 && readlink(other, b, sizeof(b) - 1) > 0 && strcmp(a, b) == 0;
}

// What this process' time namespace adds to CLOCK_MONOTONIC: time_namespaces(7). The file has the children's namespace.
static bool own_offset(int64_t *ns) {
    if (!same_link("/proc/self/ns/time", "/proc/self/ns/time_for_children")) return false;
    FILE *file = fopen("/proc/self/timens_offsets", "re");
    if (!file) return false;
    char line[128];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) {
        long long seconds, nanoseconds;
        found = sscanf(line, "monotonic %lld %lld", &seconds, &nanoseconds) == 2;
        if (found) *ns = seconds * 1000000000 + nanoseconds;
    }
    fclose(file);
    return found;
}

// LTTng-UST calls it when it starts, lttng/ust-clock.h. Without an offset its own clock stays, which is faster.
EXPORT void lttng_ust_clock_plugin_init(void) {
    const char *recorders = getenv("OPLINE_CLOCK_OFFSET_NS");
    int64_t own = 0;
    if (!recorders || !own_offset(&own)) return;
    clock_offset_ns = own - strtoll(recorders, NULL, 10);
    FILE *file = clock_offset_ns != 0 ? fopen("/proc/sys/kernel/random/boot_id", "re") : NULL;
    if (!file) return;
    if (!fgets(boot_id, sizeof(boot_id), file)) boot_id[0] = 0;
    fclose(file);
    int (*set_clock)(uint64_t(*)(void)) = function_of("lttng_ust_trace_clock_set_read64_cb");
    int (*set_frequency)(uint64_t(*)(void)) = function_of("lttng_ust_trace_clock_set_freq_cb");
    int (*set_uuid)(int (*)(char *)) = function_of("lttng_ust_trace_clock_set_uuid_cb");
    int (*set_name)(const char *(*)(void)) = function_of("lttng_ust_trace_clock_set_name_cb");
    int (*set_description)(const char *(*)(void)) = function_of("lttng_ust_trace_clock_set_description_cb");
    int (*enable)(void) = function_of("lttng_ust_enable_trace_clock_override");
    if (set_clock && set_frequency && set_uuid && set_name && set_description && enable && !set_clock(read_clock) &&
        !set_frequency(clock_frequency) && !set_uuid(clock_uuid) && !set_name(clock_name) &&
        !set_description(clock_description))
        enable();
}
