/* SPDX-License-Identifier: MIT */
/*
 * demo-bench: keeps `--qd` ops in flight against the demo store and reports what it saw, like `rados bench`.
 *
 * Spawns the server (which ends with it) unless --socket names one that runs already.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "fault.h"
#include "queue.h"
#include "report.h"
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

struct bench {
    /* options */
    const char *socket_path, *device_path, *backend, *json_path, *log_path, *points_path, *shards, *workers;
    const char *server_injects[INJECT_COUNT * 4], *server_faults[FAULT_COUNT];
    int server_inject_count, server_fault_count;
    unsigned queue_depth, read_percent, object_count;
    uint64_t block_size, object_size, op_limit, seed;
    double seconds;
    struct injector injectors[INJECT_COUNT];

    char own_socket[64];
    pid_t server;
    struct demo_client *client;
    sem_t free_slots;
    struct pool slots;
    uint8_t *busy; /* per block: an op on it is in flight */
    struct run_log log;
};

static volatile sig_atomic_t interrupted;
static struct bench bench;

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

static int run_ops(void) {
    uint64_t random = bench.seed;
    int64_t start_ns = now_ns(), deadline_ns = bench.seconds > 0 ? start_ns + (int64_t)(bench.seconds * 1e9) : 0;
    uint64_t n = 0;

    bench.log.begin_ns = start_ns;
    while (!interrupted && (!bench.op_limit || n < bench.op_limit) && (!deadline_ns || now_ns() < deadline_ns)) {
        if (sem_wait(&bench.free_slots)) continue;
        if (n == (uint64_t)CHUNK * CHUNKS || !run_log_reserve(&bench.log, n)) {
            sem_post(&bench.free_slots);
            fprintf(stderr, "demo-bench: no memory for the log: stopped after %" PRIu64 " ops\n", n);
            break;
        }
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
                                   .object_count = bench.object_count};

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

/* ---- Options ---- */

static void usage(FILE *f) {
    fputs(
        "usage: demo-bench --device PATH | --socket PATH [options]\n"
        "  --backend NAME       pwrite (O_DIRECT), libaio, uring, buffered (with group commit); default pwrite\n"
        "  --qd N               ops in flight (default 1)\n"
        "  --ops N              stop after N ops (default 5000, unless --seconds)\n"
        "  --seconds S          stop after S seconds\n"
        "  --size BYTES         of an op (default 4096)\n"
        "  --read PERCENT       reads in the mix (default 0)\n"
        "  --objects N          names in use, each again and again (default 16)\n"
        "  --object-size BYTES  (default 4194304)\n"
        "  --shards N --workers N   server: shard queues, worker threads for each (default 2, 2)\n"
        "  --seed N             of the random offsets\n"
        "  --inject STAGE:DELAY_US:FRACTION   may recur; STAGE: client-queue shard-queue worker device commit\n"
        "  --fault KIND:US:WHAT   lock, writes, flushes: for US each WHAT us; thread, object: US for each op of WHAT\n"
        "  --json FILE          the results\n"
        "  --log FILE           CSV: a line per op with its begin, end and latency\n"
        "  --log-points FILE    CSV: a line per op and tracepoint, by the op's number, which is not in the trace\n",
        f);
}

static int parse_inject(const char *text) {
    struct injector parsed[INJECT_COUNT] = {0};

    if (inject_parse(text, parsed)) {
        fprintf(stderr, "demo-bench: not STAGE:DELAY_US:FRACTION: %s\n", text);
        return 2;
    }
    if (parsed[INJECT_CLIENT_QUEUE].delay_ns) {
        bench.injectors[INJECT_CLIENT_QUEUE] = parsed[INJECT_CLIENT_QUEUE];
        return 0;
    }
    if (parsed[INJECT_COMMIT].delay_ns && strcmp(bench.backend, "buffered")) {
        fprintf(stderr, "demo-bench: only --backend buffered has a commit to delay\n");
        return 2;
    }
    if (bench.server_inject_count == (int)(sizeof bench.server_injects / sizeof *bench.server_injects)) return 2;
    bench.server_injects[bench.server_inject_count++] = text;
    return 0;
}

static int check_options(void) {
    const char *wrong = NULL;

    if (!bench.device_path == !bench.socket_path)
        wrong = "give --device (the server is started) or --socket (it runs already)";
    else if (bench.block_size < 512 || bench.block_size % 512 || bench.block_size > WIRE_LENGTH_MAX)
        wrong = "--size must be a multiple of 512, at most 4194304";
    else if (bench.object_size % bench.block_size || bench.object_size % 4096 || !bench.object_size)
        wrong = "--object-size must be a multiple of --size and of 4096";
    else if (!bench.queue_depth || bench.queue_depth > 1024) wrong = "--qd must be 1 to 1024";
    else if (!bench.object_count || bench.object_size / bench.block_size * bench.object_count < 2 * bench.queue_depth)
        wrong = "too few blocks for that many ops in flight: more --objects or a larger --object-size";
    else if (bench.read_percent > 100) wrong = "--read is a percentage";
    else if ((bench.server_inject_count || bench.server_fault_count) && bench.socket_path)
        wrong = "the server's stages are delayed by the server's own --inject and --fault";
    if (!wrong) return 0;
    fprintf(stderr, "demo-bench: %s\n", wrong);
    return 2;
}

static int parse_options(int argc, char **argv) {
    enum {
        DEVICE = 256,
        SOCKET,
        BACKEND,
        QD,
        OPS,
        SECONDS,
        SIZE,
        READ,
        OBJECTS,
        OBJECT_SIZE,
        SHARDS,
        WORKERS,
        SEED,
        INJECT,
        FAULT,
        JSON,
        LOG,
        POINTS
    };
    static const struct option options[] = {{"device", 1, NULL, DEVICE},   {"socket", 1, NULL, SOCKET},
                                            {"backend", 1, NULL, BACKEND}, {"qd", 1, NULL, QD},
                                            {"ops", 1, NULL, OPS},         {"seconds", 1, NULL, SECONDS},
                                            {"size", 1, NULL, SIZE},       {"read", 1, NULL, READ},
                                            {"objects", 1, NULL, OBJECTS}, {"object-size", 1, NULL, OBJECT_SIZE},
                                            {"shards", 1, NULL, SHARDS},   {"workers", 1, NULL, WORKERS},
                                            {"seed", 1, NULL, SEED},       {"inject", 1, NULL, INJECT},
                                            {"fault", 1, NULL, FAULT},     {"json", 1, NULL, JSON},
                                            {"log", 1, NULL, LOG},         {"log-points", 1, NULL, POINTS},
                                            {"help", 0, NULL, 'h'},        {0}};
    const char *injects[INJECT_COUNT * 4];
    int option, inject_count = 0;

    bench.backend = "pwrite";
    bench.shards = bench.workers = "2";
    bench.queue_depth = 1;
    bench.block_size = 4096;
    bench.object_count = 16;
    bench.object_size = 4u << 20;
    bench.seed = 1;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case DEVICE: bench.device_path = optarg; break;
        case SOCKET: bench.socket_path = optarg; break;
        case BACKEND: bench.backend = optarg; break;
        case QD: bench.queue_depth = (unsigned)strtoul(optarg, NULL, 0); break;
        case OPS: bench.op_limit = strtoull(optarg, NULL, 0); break;
        case SECONDS: bench.seconds = strtod(optarg, NULL); break;
        case SIZE: bench.block_size = strtoull(optarg, NULL, 0); break;
        case READ: bench.read_percent = (unsigned)strtoul(optarg, NULL, 0); break;
        case OBJECTS: bench.object_count = (unsigned)strtoul(optarg, NULL, 0); break;
        case OBJECT_SIZE: bench.object_size = strtoull(optarg, NULL, 0); break;
        case SHARDS: bench.shards = optarg; break;
        case WORKERS: bench.workers = optarg; break;
        case SEED: bench.seed = strtoull(optarg, NULL, 0); break;
        case INJECT:
            if (inject_count == INJECT_COUNT * 4) return 2;
            injects[inject_count++] = optarg;
            break;
        case FAULT:
            if (bench.server_fault_count == FAULT_COUNT || fault_parse(optarg, (struct fault[FAULT_COUNT]){0})) {
                fprintf(stderr, "demo-bench: not KIND:US:WHAT of a fault: %s\n", optarg);
                return 2;
            }
            bench.server_faults[bench.server_fault_count++] = optarg;
            break;
        case JSON: bench.json_path = optarg; break;
        case LOG: bench.log_path = optarg; break;
        case POINTS: bench.points_path = optarg; break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "demo-bench: what is \"%s\"?\n", argv[optind]);
        return 2;
    }
    if (!bench.op_limit && !(bench.seconds > 0)) bench.op_limit = 5000;
    for (int i = 0; i < inject_count; i++)
        if (parse_inject(injects[i])) return 2;
    return check_options();
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
