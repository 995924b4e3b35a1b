/* SPDX-License-Identifier: MIT */
/*
 * demo-bench: keeps `--qd` ops in flight against the demo store and reports what it saw, like `rados bench`.
 *
 * Spawns the server (which ends with it) unless --socket names one that runs already.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "truth.h"
#include "wire.h"

#define CHUNK 65536u
#define CHUNKS 4096u
#define POINTS_PER_OP 32u

struct slot { /* one op in flight */
    struct node node;
    void *buf;
    struct op_log *log;
    uint64_t block;
};

static volatile sig_atomic_t interrupted;
struct bench bench;

static void on_signal(int sig) {
    if (!interrupted) interrupted = sig;
}

static int fail(const char *what, const char *which, int err) {
    fprintf(stderr, "demo-bench: cannot %s: path=\"%s\", reason=\"%s\"\n", what, which, strerror(err));
    return 1;
}

/* ---- One op ---- */

static void op_done(void *arg, int32_t result) {
    struct slot *slot = arg;

    slot->log->result = result;
    __atomic_store_n(&bench.busy[slot->block], 0, __ATOMIC_RELEASE);
    pool_put(&bench.slots, &slot->node);
    sem_post(&bench.free_slots);
}

static uint64_t random_u64(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int op_start(uint64_t id, uint64_t *random) {
    uint64_t blocks_per_object = bench.object_size / bench.block_size;
    struct slot *slot = container_of(pool_get(&bench.slots), struct slot, node);
    struct op_log *log = run_log_entry(&bench.log, id);
    char oid[WIRE_OID_MAX];

    do slot->block = random_u64(random) % (blocks_per_object * bench.object_count);
    while (__atomic_load_n(&bench.busy[slot->block], __ATOMIC_ACQUIRE));
    bench.busy[slot->block] = 1;
    slot->log = log;
    log->object = (uint32_t)(slot->block / blocks_per_object);
    log->offset = slot->block % blocks_per_object * bench.block_size;
    log->length = (uint32_t)bench.block_size;
    log->is_read = random_u64(random) % 100 < bench.read_percent;
    snprintf(oid, sizeof oid, OBJECT_FORMAT, log->object);
    struct demo_completion *comp = demo_completion_get(bench.client, op_done, slot, &log->times, id);
    if (!comp) return -ENOMEM;
    return log->is_read ? demo_aio_read(bench.client, comp, oid, slot->buf, log->length, log->offset)
                        : demo_aio_write(bench.client, comp, oid, slot->buf, log->length, log->offset);
}

/* In pieces, so that a signal ends it. 0 where the time has not come. */
static int wait_until(int64_t due_ns) {
    int64_t left = due_ns - now_ns();

    if (due_ns && left > 0) delay_ns(left < 50000000 ? left : 50000000);
    return left <= 50000000;
}

static int run_ops(void) {
    uint64_t random = bench.seed;
    int64_t start_ns = now_ns(), deadline_ns = bench.seconds > 0 ? start_ns + (int64_t)(bench.seconds * 1e9) : 0;
    uint64_t n = 0;

    bench.log.begin_ns = start_ns;
    while (!interrupted && (!bench.op_limit || n < bench.op_limit) && (!deadline_ns || now_ns() < deadline_ns)) {
        int64_t due_ns = bench.rate > 0 ? start_ns + (int64_t)((double)n * 1e9 / bench.rate) : 0;
        if (!wait_until(due_ns) || sem_wait(&bench.free_slots)) continue;
        if (n == (uint64_t)CHUNK * CHUNKS || !run_log_reserve(&bench.log, n)) {
            sem_post(&bench.free_slots);
            fprintf(stderr, "demo-bench: no memory for the log: stopped after %" PRIu64 " ops\n", n);
            break;
        }
        run_log_entry(&bench.log, n)->due_ns = due_ns;
        int err = op_start(n, &random);
        if (err) return fail("start an op on", bench.device_path ? bench.device_path : bench.socket_path, -err);
        n++;
    }
    for (unsigned i = 0; i < bench.queue_depth; i++)
        while (sem_wait(&bench.free_slots))
            ;
    bench.log.end_ns = now_ns();
    bench.log.count = n;
    return 0;
}

static int slots_make(void) {
    uint64_t random = ~bench.seed;

    pool_init(&bench.slots);
    sem_init(&bench.free_slots, 0, bench.queue_depth);
    bench.busy = calloc(bench.object_size / bench.block_size * bench.object_count, 1);
    for (unsigned i = 0; i < bench.queue_depth; i++) {
        struct slot *slot = calloc(1, sizeof *slot);
        if (!slot || !bench.busy || posix_memalign(&slot->buf, 4096, bench.block_size))
            return fail("get memory", "buffers", ENOMEM);
        for (uint64_t w = 0; w < bench.block_size / 8; w++) ((uint64_t *)slot->buf)[w] = random_u64(&random);
        pool_put(&bench.slots, &slot->node);
    }
    return 0;
}

static void slots_free(void) {
    struct node *n;

    while ((n = pool_get(&bench.slots))) {
        struct slot *slot = container_of(n, struct slot, node);
        free(slot->buf);
        free(slot);
    }
    pool_destroy(&bench.slots);
    sem_destroy(&bench.free_slots);
    free(bench.busy);
}

/* ---- The server ---- */

static char *server_points_path(void) {
    static char path[4096];

    snprintf(path, sizeof path, "%s.server", bench.points_path);
    return path;
}

static int server_spawn(char *own_path) {
    static char program[4096], object_size[32], capacity[32];
    const char *argv[64], *slash = strrchr(own_path, '/');
    int n = 0;
    extern char **environ;

    snprintf(program, sizeof program, "%.*sdemo-server", slash ? (int)(slash - own_path + 1) : 0, own_path);
    snprintf(object_size, sizeof object_size, "%" PRIu64, bench.object_size);
    snprintf(capacity, sizeof capacity, "%" PRIu64, (bench.op_limit ? bench.op_limit : 1000000) * POINTS_PER_OP);
    snprintf(bench.own_socket, sizeof bench.own_socket, "@demo-store.%d", (int)getpid());
    bench.socket_path = bench.own_socket;
    const char *fixed[] = {program,           "--with-parent", "--socket",    bench.socket_path, "--device",
                           bench.device_path, "--backend",     bench.backend, "--object-size",   object_size,
                           "--shards",        bench.shards,    "--workers",   bench.workers};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) argv[n++] = fixed[i];
    for (int i = 0; i < bench.server_inject_count; i++) {
        argv[n++] = "--inject";
        argv[n++] = bench.server_injects[i];
    }
    for (int i = 0; i < bench.server_fault_count; i++) {
        argv[n++] = "--fault";
        argv[n++] = bench.server_faults[i];
    }
    if (bench.points_path) {
        const char *points[] = {"--log-points", server_points_path(), "--log-capacity", capacity};
        for (int i = 0; i < 4; i++) argv[n++] = points[i];
    }
    if (bench.faults_path) {
        argv[n++] = "--log-faults";
        argv[n++] = bench.faults_path;
    }
    argv[n] = NULL;

    /* Its own process group: Ctrl-C ends the benchmark, which lets the ops in flight finish and then ends the server.
     * */
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    int err = posix_spawn(&bench.server, program, NULL, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attr);
    return err ? fail("start the server", program, err) : 0;
}

static int server_stop(void) {
    int status;

    if (!bench.server) return 0;
    kill(bench.server, SIGTERM);
    while (waitpid(bench.server, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Waits for the server's socket, but not for one that has given up. */
static int server_connect(void) {
    int status, err = -ETIMEDOUT;

    for (int tries = 0; tries < 100; tries++) {
        err = demo_connect(&bench.client, bench.socket_path, 100, bench.injectors);
        if (!err) return 0;
        if (err != -ENOENT && err != -ECONNREFUSED) break;
        if (bench.server && waitpid(bench.server, &status, WNOHANG) == bench.server) {
            bench.server = 0;
            return 1; /* it has said why */
        }
    }
    return fail("reach the server", bench.socket_path, -err);
}

/* ---- Results ---- */

static int write_points(void) {
    uint64_t dropped;
    int err = truth_write(bench.points_path, &dropped);

    if (err) return fail("write the log", bench.points_path, -err);
    if (!bench.server) return 0;
    /* One file: the server's lines behind the client's, without their header. */
    FILE *in = fopen(server_points_path(), "r"), *out = fopen(bench.points_path, "a");
    char line[256];
    int first = 1;
    while (in && out && fgets(line, sizeof line, in)) {
        if (!first) fputs(line, out);
        first = 0;
    }
    int failed = !in || !out || ferror(in) || ferror(out);
    if (in) fclose(in);
    if (out && fclose(out)) failed = 1;
    unlink(server_points_path());
    return failed ? fail("write the log", bench.points_path, EIO) : 0;
}

static int report(void) {
    struct report_config config = {.backend = bench.server ? bench.backend : "unknown",
                                   .device = bench.device_path,
                                   .queue_depth = bench.queue_depth,
                                   .block_size = bench.block_size,
                                   .read_percent = bench.read_percent,
                                   .object_count = bench.object_count,
                                   .rate = bench.rate};

    report_text(stdout, &bench.log, &config);
    fflush(stdout);
    if (bench.log_path && report_log(bench.log_path, &bench.log)) return fail("write the log", bench.log_path, errno);
    if (bench.json_path && report_json(bench.json_path, &bench.log, &config))
        return fail("write the results", bench.json_path, errno);
    for (uint64_t i = 0; i < bench.log.count; i++) {
        const struct op_log *op = run_log_entry(&bench.log, i);
        if (op->result < 0) {
            fprintf(stderr, "demo-bench: %" PRIu64 " ops failed, the first with: %s\n", run_log_errors(&bench.log),
                    strerror(-op->result));
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = on_signal};
    int status = parse_options(argc, argv);

    if (status) return status;
    prctl(PR_SET_TIMERSLACK, 1); /* for exact delays */
    pthread_setname_np(pthread_self(), "demo-bench");
    if (bench.points_path && truth_start((bench.op_limit ? bench.op_limit : 1000000) * POINTS_PER_OP))
        return fail("get memory for the log", bench.points_path, ENOMEM);
    if (slots_make() || (bench.device_path && server_spawn(argv[0]))) return 1;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    status = server_connect();
    if (!status) {
        status = run_ops();
        demo_disconnect(bench.client);
    }
    int server_status = server_stop();
    if (!status && bench.log.count) {
        status = report();
        if (bench.points_path) status |= write_points();
    }
    if (!status) status = server_status;
    run_log_free(&bench.log);
    slots_free();
    return interrupted ? 128 + interrupted : status;
}
