/* SPDX-License-Identifier: MIT */
/* Group commit: one thread makes the writes of all ops that wait for it durable with one fdatasync(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "server.h"
#include "truth.h"

static void commit(struct server *srv, struct node *members, int count) {
    int32_t ordinal = 0;
    int delayed = 0;

    POINT(TRUTH_NONE, commit_open, count);
    for (struct node *n = members; n; n = n->next) {
        struct op *op = container_of(n, struct op, node);
        POINT(op->req.truth_id, commit_join, op, ordinal++);
        struct injector *i = &srv->injectors[INJECT_COMMIT];
        delayed |= i->delay_ns && inject_due(i);
    }
    if (delayed) delay_ns(srv->injectors[INJECT_COMMIT].delay_ns);
    POINT(TRUTH_NONE, sync_begin, count);
    int err = fdatasync(srv->dev_fd) ? -errno : 0;
    POINT(TRUTH_NONE, sync_end, err);
    POINT(TRUTH_NONE, commit_close, count);
    ordinal = 0;
    while (members) {
        struct op *op = container_of(members, struct op, node);
        members = members->next;
        if (err) op->result = err;
        POINT(op->req.truth_id, commit_finish, op, ordinal++);
        op_finish(srv, op);
    }
}

void *commit_main(void *arg) {
    struct server *srv = arg;
    struct node *members;

    pthread_setname_np(pthread_self(), "demo-commit");
    while ((members = queue_take_all(&srv->commit_queue))) {
        int count = 0;
        for (struct node *n = members; n; n = n->next) count++;
        commit(srv, members, count);
    }
    return NULL;
}
