/* SPDX-License-Identifier: MIT */
/* A closable first-in-first-out queue between threads, and a last-in-first-out free list. Both are intrusive. */
#ifndef DEMO_QUEUE_H
#define DEMO_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct node {
    struct node *next;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t nonempty;
    struct node *head, *tail;
    int depth;
    bool closed;
};

void queue_init(struct queue *q);
void queue_destroy(struct queue *q);
/* How many are in it right now; a hint, taken without the lock. */
int queue_depth(struct queue *q);
void queue_push(struct queue *q, struct node *n);
/* Blocks; NULL once the queue is closed and empty. */
struct node *queue_pop(struct queue *q);
/* Blocks for the first; takes all that are there, linked in order. NULL once closed and empty. */
struct node *queue_take_all(struct queue *q);
void queue_close(struct queue *q);

/* Last in, first out: the pointer that was given back last is the next one handed out. */
struct pool {
    pthread_mutex_t lock;
    struct node *free;
};

void pool_init(struct pool *p);
void pool_destroy(struct pool *p);
/* NULL if nothing was given back: the caller allocates. */
struct node *pool_get(struct pool *p);
void pool_put(struct pool *p, struct node *n);

#endif
