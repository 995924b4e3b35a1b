/* SPDX-License-Identifier: MIT */
#include "queue.h"

void queue_init(struct queue *q) {
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->nonempty, NULL);
    q->head = q->tail = NULL;
    q->depth = 0;
    q->closed = false;
}

void queue_destroy(struct queue *q) {
    pthread_cond_destroy(&q->nonempty);
    pthread_mutex_destroy(&q->lock);
}

int queue_depth(struct queue *q) { return __atomic_load_n(&q->depth, __ATOMIC_RELAXED); }

void queue_push(struct queue *q, struct node *n) {
    n->next = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->tail) q->tail->next = n;
    else q->head = n;
    q->tail = n;
    __atomic_store_n(&q->depth, q->depth + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&q->lock);
    pthread_cond_signal(&q->nonempty);
}

static bool wait_nonempty(struct queue *q) {
    while (!q->head && !q->closed) pthread_cond_wait(&q->nonempty, &q->lock);
    return q->head != NULL;
}

struct node *queue_pop(struct queue *q) {
    struct node *n = NULL;

    pthread_mutex_lock(&q->lock);
    if (wait_nonempty(q)) {
        n = q->head;
        q->head = n->next;
        if (!q->head) q->tail = NULL;
        __atomic_store_n(&q->depth, q->depth - 1, __ATOMIC_RELAXED);
        n->next = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return n;
}

struct node *queue_take_all(struct queue *q) {
    struct node *n = NULL;

    pthread_mutex_lock(&q->lock);
    if (wait_nonempty(q)) {
        n = q->head;
        q->head = q->tail = NULL;
        __atomic_store_n(&q->depth, 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&q->lock);
    return n;
}

void queue_close(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
    pthread_cond_broadcast(&q->nonempty);
}

void pool_init(struct pool *p) {
    pthread_mutex_init(&p->lock, NULL);
    p->free = NULL;
}

void pool_destroy(struct pool *p) { pthread_mutex_destroy(&p->lock); }

struct node *pool_get(struct pool *p) {
    pthread_mutex_lock(&p->lock);
    struct node *n = p->free;
    if (n) p->free = n->next;
    pthread_mutex_unlock(&p->lock);
    return n;
}

void pool_put(struct pool *p, struct node *n) {
    pthread_mutex_lock(&p->lock);
    n->next = p->free;
    p->free = n;
    pthread_mutex_unlock(&p->lock);
}
