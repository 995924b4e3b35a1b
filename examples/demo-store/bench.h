/* SPDX-License-Identifier: MIT */
/* What demo-bench is asked for, and its state. */
#pragma once
#include <semaphore.h>
#include <stdint.h>
#include <sys/types.h>

#include "client.h"
#include "fault.h"
#include "queue.h"
#include "report.h"

struct bench {
    /* options */
    const char *socket_path, *device_path, *backend, *json_path, *log_path, *points_path, *faults_path, *shards,
        *workers;
    const char *server_injects[INJECT_COUNT * 4], *server_faults[FAULT_COUNT];
    int server_inject_count, server_fault_count;
    unsigned queue_depth, read_percent, object_count;
    uint64_t block_size, object_size, op_limit, seed;
    double seconds, rate;
    struct injector injectors[INJECT_COUNT];

    char own_socket[64];
    pid_t server;
    struct demo_client *client;
    sem_t free_slots;
    struct pool slots;
    uint8_t *busy; /* per block: an op on it is in flight */
    struct run_log log;
};

extern struct bench bench;

/* Fills in the options. 0, or an exit status after a line on stderr; ends the program for --help. */
int parse_options(int argc, char **argv);
