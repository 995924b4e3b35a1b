/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "wire.h"

static void usage(FILE *f) {
    fputs(
        "usage: demo-bench --device PATH | --socket PATH|@NAME|tcp:ADDRESS:PORT [options]\n"
        "  --backend NAME       pwrite (O_DIRECT), libaio, uring, buffered (with group commit); default pwrite\n"
        "  --qd N               ops in flight (default 1)\n"
        "  --ops N              stop after N ops (default 5000, unless --seconds)\n"
        "  --seconds S          stop after S seconds\n"
        "  --rate N             begin N ops a second, each when it is due: late ones as soon as --qd allows\n"
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
        "  --log-points FILE    CSV: a line per op and tracepoint, by the op's number, which is not in the trace\n"
        "  --log-faults FILE    CSV: a line each time that a --fault acts\n",
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

enum {
    DEVICE = 256,
    SOCKET,
    BACKEND,
    QD,
    OPS,
    SECONDS,
    RATE,
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
    POINTS,
    FAULTS
};
static const struct option options[] = {{"device", 1, NULL, DEVICE},
                                        {"socket", 1, NULL, SOCKET},
                                        {"backend", 1, NULL, BACKEND},
                                        {"qd", 1, NULL, QD},
                                        {"ops", 1, NULL, OPS},
                                        {"seconds", 1, NULL, SECONDS},
                                        {"rate", 1, NULL, RATE},
                                        {"size", 1, NULL, SIZE},
                                        {"read", 1, NULL, READ},
                                        {"objects", 1, NULL, OBJECTS},
                                        {"object-size", 1, NULL, OBJECT_SIZE},
                                        {"shards", 1, NULL, SHARDS},
                                        {"workers", 1, NULL, WORKERS},
                                        {"seed", 1, NULL, SEED},
                                        {"inject", 1, NULL, INJECT},
                                        {"fault", 1, NULL, FAULT},
                                        {"json", 1, NULL, JSON},
                                        {"log", 1, NULL, LOG},
                                        {"log-points", 1, NULL, POINTS},
                                        {"log-faults", 1, NULL, FAULTS},
                                        {"help", 0, NULL, 'h'},
                                        {0}};

int parse_options(int argc, char **argv) {
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
        case RATE:
            bench.rate = strtod(optarg, NULL);
            if (!(bench.rate > 0 && bench.rate <= 1e9)) {
                fprintf(stderr, "demo-bench: not a rate in ops per second: %s\n", optarg);
                return 2;
            }
            break;
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
        case FAULTS: bench.faults_path = optarg; break;
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
