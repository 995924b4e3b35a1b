// SPDX-License-Identifier: MIT
// librados: the calls that begin an operation and their completions, in C and, by their mangled names, in C++
// (librados.hpp, namespace v14_2_0: Nautilus and later; bufferlists of namespace v15_2_0: Octopus and later).
#include <stdlib.h>
#include <time.h>

#include "shim.h"

#define LIBRADOS(result, name, parameters) REAL_IN("librados.so.2", NULL, result, name, parameters)

// std::string of libstdc++'s C++11 ABI: where its characters are comes first, and they end with 0.
struct cxx_string {
    const char *data;
};

// -- completions ------------------------------------------------------------------------------------------------------

typedef void (*callback)(void *completion, void *argument);

// Stands for the application's argument. It is freed after the callbacks; a completion that is thrown away unused keeps
// its own.
struct stand_in {
    callback complete, safe;
    void *argument;
    const void *completion;  // as the application names it
    int waiting;             // callbacks that have not run
    bool cxx;
};

static void called_back(struct stand_in *s, callback f, void *impl) {
    if (s->cxx) {
        TRACE(radoscxx_completion_cb, s->completion, s->argument);
    } else {
        TRACE(rados_completion_cb, s->completion, s->argument);
    }
    f(impl, s->argument);
    if (__atomic_sub_fetch(&s->waiting, 1, __ATOMIC_ACQ_REL) == 0) free(s);
}

static void call_complete(void *impl, void *argument) {
    struct stand_in *s = argument;
    called_back(s, s->complete, impl);
}

static void call_safe(void *impl, void *argument) {
    struct stand_in *s = argument;
    called_back(s, s->safe, impl);
}

// librados may make a completion through another of these functions, which comes here as well.
static __thread bool inside __attribute__((tls_model("initial-exec")));

static struct stand_in *stand_in(callback complete, callback safe, void *argument, bool cxx) {
    struct stand_in *s = !inside && (complete || safe) ? malloc(sizeof *s) : NULL;
    if (s) *s = (struct stand_in){complete, safe, argument, NULL, (complete != NULL) + (safe != NULL), cxx};
    return s;
}

LIBRADOS(int, rados_aio_create_completion, (void *, callback, callback, void **))
EXPORT int rados_aio_create_completion(void *argument, callback complete, callback safe, void **completion) {
    struct stand_in *s = stand_in(complete, safe, argument, false);
    if (!s) return real_rados_aio_create_completion()(argument, complete, safe, completion);
    inside = true;
    int result =
        real_rados_aio_create_completion()(s, complete ? call_complete : NULL, safe ? call_safe : NULL, completion);
    inside = false;
    s->completion = *completion;
    return result;
}

LIBRADOS(int, rados_aio_create_completion2, (void *, callback, void **))
EXPORT int rados_aio_create_completion2(void *argument, callback complete, void **completion) {
    struct stand_in *s = stand_in(complete, NULL, argument, false);
    if (!s) return real_rados_aio_create_completion2()(argument, complete, completion);
    inside = true;
    int result = real_rados_aio_create_completion2()(s, call_complete, completion);
    inside = false;
    s->completion = *completion;
    return result;
}

#define CXX(result, name, symbol, parameters)                                                                          \
    REAL_SYMBOL("librados.so.2", NULL, symbol, result, name, parameters)                                               \
    EXPORT result name parameters __asm__(symbol);

#define CALLBACK "PFvS2_S2_E"  // void (*)(void *, void *)

CXX(void *, cxx_create, "_ZN8librados7v14_2_05Rados21aio_create_completionEPv" CALLBACK,
    (void *argument, callback complete))
void *cxx_create(void *argument, callback complete) {
    struct stand_in *s = stand_in(complete, NULL, argument, true);
    if (!s) return real_cxx_create()(argument, complete);
    inside = true;
    void *completion = real_cxx_create()(s, call_complete);
    inside = false;
    s->completion = completion;
    return completion;
}

CXX(void *, cxx_create_safe, "_ZN8librados7v14_2_05Rados21aio_create_completionEPv" CALLBACK "S4_",
    (void *argument, callback complete, callback safe))
void *cxx_create_safe(void *argument, callback complete, callback safe) {
    struct stand_in *s = stand_in(complete, safe, argument, true);
    if (!s) return real_cxx_create_safe()(argument, complete, safe);
    inside = true;
    void *completion = real_cxx_create_safe()(s, complete ? call_complete : NULL, safe ? call_safe : NULL);
    inside = false;
    s->completion = completion;
    return completion;
}

CXX(int, cxx_set_complete, "_ZN8librados7v14_2_013AioCompletion21set_complete_callbackEPv" CALLBACK,
    (void *completion, void *argument, callback complete))
int cxx_set_complete(void *completion, void *argument, callback complete) {
    struct stand_in *s = stand_in(complete, NULL, argument, true);
    if (!s) return real_cxx_set_complete()(completion, argument, complete);
    s->completion = completion;
    return real_cxx_set_complete()(completion, s, call_complete);
}

#define WAITS(prefix, completion, call)                                                                                \
    do {                                                                                                               \
        TRACE(prefix##_wait_enter, completion);                                                                        \
        int result = call;                                                                                             \
        TRACE(prefix##_wait_exit, completion);                                                                         \
        return result;                                                                                                 \
    } while (0)

#define C_WAIT(name)                                                                                                   \
    LIBRADOS(int, name, (void *))                                                                                      \
    EXPORT int name(void *completion) { WAITS(rados, completion, real_##name()(completion)); }
C_WAIT(rados_aio_wait_for_complete)
C_WAIT(rados_aio_wait_for_complete_and_cb)
C_WAIT(rados_aio_wait_for_safe)
C_WAIT(rados_aio_wait_for_safe_and_cb)

#define CXX_WAIT(name, mangled)                                                                                        \
    CXX(int, name, "_ZN8librados7v14_2_013AioCompletion" mangled, (void *completion))                                  \
    int name(void *completion) { WAITS(radoscxx, completion, real_##name()(completion)); }
CXX_WAIT(cxx_wait_complete, "17wait_for_completeEv")
CXX_WAIT(cxx_wait_complete_cb, "24wait_for_complete_and_cbEv")
CXX_WAIT(cxx_wait_safe, "13wait_for_safeEv")
CXX_WAIT(cxx_wait_safe_cb, "20wait_for_safe_and_cbEv")

LIBRADOS(int, rados_aio_get_return_value, (void *))
EXPORT int rados_aio_get_return_value(void *completion) {
    int result = real_rados_aio_get_return_value()(completion);
    TRACE(rados_get_return_value, completion, result);
    return result;
}

CXX(int, cxx_return_value, "_ZN8librados7v14_2_013AioCompletion16get_return_valueEv", (void *completion))
int cxx_return_value(void *completion) {
    int result = real_cxx_return_value()(completion);
    TRACE(radoscxx_get_return_value, completion, result);
    return result;
}

// An application that takes the result otherwise (fio: from its callback) lets go of the completion when it has done
// so.
LIBRADOS(void, rados_aio_release, (void *))
EXPORT void rados_aio_release(void *completion) {
    TRACE(rados_release, completion);
    real_rados_aio_release()(completion);
}

CXX(void, cxx_release, "_ZN8librados7v14_2_013AioCompletion7releaseEv", (void *completion))
void cxx_release(void *completion) {
    TRACE(rados_release, completion);
    real_cxx_release()(completion);
}

// -- operations -------------------------------------------------------------------------------------------------------

#define OPERATE(object, completion, call)                                                                              \
    do {                                                                                                               \
        TRACE(radoscxx_aio_operate_enter, object, completion);                                                         \
        int result = call;                                                                                             \
        TRACE(radoscxx_aio_operate_exit, completion, result);                                                          \
        return result;                                                                                                 \
    } while (0)
#define ASYNC(what, object, completion, offset, length, call)                                                          \
    do {                                                                                                               \
        TRACE(rados_aio_enter, what, object, completion, offset, length);                                              \
        int result = call;                                                                                             \
        TRACE(rados_aio_exit, completion, result);                                                                     \
        return result;                                                                                                 \
    } while (0)
#define SYNC(what, object, offset, length, call)                                                                       \
    do {                                                                                                               \
        TRACE(rados_sync_enter, what, object, offset, length);                                                         \
        int result = call;                                                                                             \
        TRACE(rados_sync_exit, what, object, result);                                                                  \
        return result;                                                                                                 \
    } while (0)

// `given` are the parameters' names. io and the like are handed on unseen.
#define C_CALL(name, parameters, given, around, ...)                                                                   \
    LIBRADOS(int, name, parameters)                                                                                    \
    EXPORT int name parameters { around(__VA_ARGS__, real_##name() given); }

C_CALL(rados_aio_write, (void *io, const char *oid, void *c, const char *data, size_t bytes, uint64_t offset),
       (io, oid, c, data, bytes, offset), ASYNC, "write", oid, c, offset, bytes)
C_CALL(rados_aio_append, (void *io, const char *oid, void *c, const char *data, size_t bytes),
       (io, oid, c, data, bytes), ASYNC, "append", oid, c, 0, bytes)
C_CALL(rados_aio_write_full, (void *io, const char *oid, void *c, const char *data, size_t bytes),
       (io, oid, c, data, bytes), ASYNC, "write_full", oid, c, 0, bytes)
C_CALL(rados_aio_writesame,
       (void *io, const char *oid, void *c, const char *data, size_t bytes, size_t write_bytes, uint64_t offset),
       (io, oid, c, data, bytes, write_bytes, offset), ASYNC, "writesame", oid, c, offset, write_bytes)
C_CALL(rados_aio_remove, (void *io, const char *oid, void *c), (io, oid, c), ASYNC, "remove", oid, c, 0, 0)
C_CALL(rados_aio_read, (void *io, const char *oid, void *c, char *data, size_t bytes, uint64_t offset),
       (io, oid, c, data, bytes, offset), ASYNC, "read", oid, c, offset, bytes)
C_CALL(rados_aio_stat, (void *io, const char *oid, void *c, uint64_t *size, time_t *time), (io, oid, c, size, time),
       ASYNC, "stat", oid, c, 0, 0)
C_CALL(rados_aio_write_op_operate, (void *op, void *io, void *c, const char *oid, time_t *time, int flags),
       (op, io, c, oid, time, flags), ASYNC, "write_op", oid, c, 0, 0)
C_CALL(rados_aio_write_op_operate2, (void *op, void *io, void *c, const char *oid, struct timespec *time, int flags),
       (op, io, c, oid, time, flags), ASYNC, "write_op", oid, c, 0, 0)
C_CALL(rados_aio_read_op_operate, (void *op, void *io, void *c, const char *oid, int flags), (op, io, c, oid, flags),
       ASYNC, "read_op", oid, c, 0, 0)

C_CALL(rados_write, (void *io, const char *oid, const char *data, size_t bytes, uint64_t offset),
       (io, oid, data, bytes, offset), SYNC, "write", oid, offset, bytes)
C_CALL(rados_write_full, (void *io, const char *oid, const char *data, size_t bytes), (io, oid, data, bytes), SYNC,
       "write_full", oid, 0, bytes)
C_CALL(rados_append, (void *io, const char *oid, const char *data, size_t bytes), (io, oid, data, bytes), SYNC,
       "append", oid, 0, bytes)
C_CALL(rados_read, (void *io, const char *oid, char *data, size_t bytes, uint64_t offset),
       (io, oid, data, bytes, offset), SYNC, "read", oid, offset, bytes)
C_CALL(rados_remove, (void *io, const char *oid), (io, oid), SYNC, "remove", oid, 0, 0)
C_CALL(rados_stat, (void *io, const char *oid, uint64_t *size, time_t *time), (io, oid, size, time), SYNC, "stat", oid,
       0, 0)
C_CALL(rados_write_op_operate, (void *op, void *io, const char *oid, time_t *time, int flags),
       (op, io, oid, time, flags), SYNC, "write_op", oid, 0, 0)
C_CALL(rados_write_op_operate2, (void *op, void *io, const char *oid, struct timespec *time, int flags),
       (op, io, oid, time, flags), SYNC, "write_op", oid, 0, 0)
C_CALL(rados_read_op_operate, (void *op, void *io, const char *oid, int flags), (op, io, oid, flags), SYNC, "read_op",
       oid, 0, 0)

// -- the same in C++ --------------------------------------------------------------------------------------------------

#define IOCTX "_ZN8librados7v14_2_05IoCtx"
#define STRING "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define COMPLETION "PNS0_13AioCompletionE"
#define WRITE_OP "PNS0_20ObjectWriteOperationE"
#define READ_OP "PNS0_19ObjectReadOperationE"
#define LIST "N4ceph6buffer7v15_2_04listE"
#define SNAPS "RSt6vectorImSaImEE"
#define BLKIN "PK16blkin_trace_info"
#define EXTENTS "St3mapImmSt4lessImESaISt4pairIKmmEEE"

#define CXX_CALL(name, symbol, parameters, given, around, ...)                                                         \
    CXX(int, name, IOCTX symbol, parameters)                                                                           \
    int name parameters { around(__VA_ARGS__, real_##name() given); }
#define THIS void *io, const struct cxx_string *oid
#define AIO THIS, void *c

CXX_CALL(cxx_operate1, "11aio_operate" STRING COMPLETION WRITE_OP, (AIO, void *op), (io, oid, c, op), OPERATE,
         oid->data, c)
CXX_CALL(cxx_operate2, "11aio_operate" STRING COMPLETION WRITE_OP "i", (AIO, void *op, int flags),
         (io, oid, c, op, flags), OPERATE, oid->data, c)
CXX_CALL(cxx_operate3, "11aio_operate" STRING COMPLETION WRITE_OP "m" SNAPS, (AIO, void *op, uint64_t seq, void *snaps),
         (io, oid, c, op, seq, snaps), OPERATE, oid->data, c)
CXX_CALL(cxx_operate4, "11aio_operate" STRING COMPLETION WRITE_OP "m" SNAPS BLKIN,
         (AIO, void *op, uint64_t seq, void *snaps, void *trace), (io, oid, c, op, seq, snaps, trace), OPERATE,
         oid->data, c)
CXX_CALL(cxx_operate5, "11aio_operate" STRING COMPLETION WRITE_OP "m" SNAPS "i" BLKIN,
         (AIO, void *op, uint64_t seq, void *snaps, int flags, void *trace), (io, oid, c, op, seq, snaps, flags, trace),
         OPERATE, oid->data, c)
CXX_CALL(cxx_operate6, "11aio_operate" STRING COMPLETION READ_OP "P" LIST, (AIO, void *op, void *list),
         (io, oid, c, op, list), OPERATE, oid->data, c)
CXX_CALL(cxx_operate7, "11aio_operate" STRING COMPLETION READ_OP "iP" LIST, (AIO, void *op, int flags, void *list),
         (io, oid, c, op, flags, list), OPERATE, oid->data, c)
CXX_CALL(cxx_operate8, "11aio_operate" STRING COMPLETION READ_OP "iP" LIST BLKIN,
         (AIO, void *op, int flags, void *list, void *trace), (io, oid, c, op, flags, list, trace), OPERATE, oid->data,
         c)
CXX_CALL(cxx_operate9, "11aio_operate" STRING COMPLETION READ_OP "miP" LIST,
         (AIO, void *op, uint64_t snap, int flags, void *list), (io, oid, c, op, snap, flags, list), OPERATE, oid->data,
         c)

CXX_CALL(cxx_aio_read, "8aio_read" STRING COMPLETION "P" LIST "mm", (AIO, void *list, size_t bytes, uint64_t offset),
         (io, oid, c, list, bytes, offset), ASYNC, "read", oid->data, c, offset, bytes)
CXX_CALL(cxx_aio_read_snap, "8aio_read" STRING COMPLETION "P" LIST "mmm",
         (AIO, void *list, size_t bytes, uint64_t offset, uint64_t snap), (io, oid, c, list, bytes, offset, snap),
         ASYNC, "read", oid->data, c, offset, bytes)
CXX_CALL(cxx_aio_sparse, "15aio_sparse_read" STRING COMPLETION "P" EXTENTS "P" LIST "mm",
         (AIO, void *map, void *list, size_t bytes, uint64_t offset), (io, oid, c, map, list, bytes, offset), ASYNC,
         "sparse_read", oid->data, c, offset, bytes)
CXX_CALL(cxx_aio_write, "9aio_write" STRING COMPLETION "RK" LIST "mm", (AIO, void *list, size_t bytes, uint64_t offset),
         (io, oid, c, list, bytes, offset), ASYNC, "write", oid->data, c, offset, bytes)
CXX_CALL(cxx_aio_append, "10aio_append" STRING COMPLETION "RK" LIST "m", (AIO, void *list, size_t bytes),
         (io, oid, c, list, bytes), ASYNC, "append", oid->data, c, 0, bytes)
CXX_CALL(cxx_aio_write_full, "14aio_write_full" STRING COMPLETION "RK" LIST, (AIO, void *list), (io, oid, c, list),
         ASYNC, "write_full", oid->data, c, 0, 0)
CXX_CALL(cxx_aio_writesame, "13aio_writesame" STRING COMPLETION "RK" LIST "mm",
         (AIO, void *list, size_t bytes, uint64_t offset), (io, oid, c, list, bytes, offset), ASYNC, "writesame",
         oid->data, c, offset, bytes)
CXX_CALL(cxx_aio_remove, "10aio_remove" STRING COMPLETION, (AIO), (io, oid, c), ASYNC, "remove", oid->data, c, 0, 0)
CXX_CALL(cxx_aio_remove_flags, "10aio_remove" STRING COMPLETION "i", (AIO, int flags), (io, oid, c, flags), ASYNC,
         "remove", oid->data, c, 0, 0)
CXX_CALL(cxx_aio_stat, "8aio_stat" STRING COMPLETION "PmPl", (AIO, uint64_t *size, time_t *time),
         (io, oid, c, size, time), ASYNC, "stat", oid->data, c, 0, 0)

CXX_CALL(cxx_read, "4read" STRING "R" LIST "mm", (THIS, void *list, size_t bytes, uint64_t offset),
         (io, oid, list, bytes, offset), SYNC, "read", oid->data, offset, bytes)
CXX_CALL(cxx_write, "5write" STRING "R" LIST "mm", (THIS, void *list, size_t bytes, uint64_t offset),
         (io, oid, list, bytes, offset), SYNC, "write", oid->data, offset, bytes)
CXX_CALL(cxx_write_full, "10write_full" STRING "R" LIST, (THIS, void *list), (io, oid, list), SYNC, "write_full",
         oid->data, 0, 0)
CXX_CALL(cxx_append, "6append" STRING "R" LIST "m", (THIS, void *list, size_t bytes), (io, oid, list, bytes), SYNC,
         "append", oid->data, 0, bytes)
CXX_CALL(cxx_remove, "6remove" STRING, (THIS), (io, oid), SYNC, "remove", oid->data, 0, 0)
CXX_CALL(cxx_stat, "4stat" STRING "PmPl", (THIS, uint64_t *size, time_t *time), (io, oid, size, time), SYNC, "stat",
         oid->data, 0, 0)
CXX_CALL(cxx_operate_write, "7operate" STRING WRITE_OP, (THIS, void *op), (io, oid, op), SYNC, "write_op", oid->data, 0,
         0)
CXX_CALL(cxx_operate_write_flags, "7operate" STRING WRITE_OP "i", (THIS, void *op, int flags), (io, oid, op, flags),
         SYNC, "write_op", oid->data, 0, 0)
CXX_CALL(cxx_operate_read, "7operate" STRING READ_OP "P" LIST, (THIS, void *op, void *list), (io, oid, op, list), SYNC,
         "read_op", oid->data, 0, 0)
CXX_CALL(cxx_operate_read_flags, "7operate" STRING READ_OP "P" LIST "i", (THIS, void *op, void *list, int flags),
         (io, oid, op, list, flags), SYNC, "read_op", oid->data, 0, 0)
