// SPDX-License-Identifier: MIT
// A client and a server of msgr2 for the test of the shim for Ceph: `peers SEED LOG`. Several threads make connections,
// one after the other, and send real frames over them in random pieces by every call there is. Standard output is a
// check sum of everything that the calls gave, the same whoever is preloaded. LOG is the truth, one line per call and
// per frame (`C` and `M` below); the test works out from it what the shim must have seen.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"
#include "wire.h"

enum { THREADS = 4, CONNECTIONS = 12, BATCHES = 12 };

// Its line: end, first byte, behind the last, type, tid, seq, bytes of the front; of an OSD_OP op, offset, length,
// name; of a replica's the client's number (0: the connection's) and its message's.
static void message(struct worker *w, struct bytes *out, struct end *e, int rev1, uint64_t *seq, uint64_t tid) {
    static const unsigned types[] = {42, 43, 42, 43, 112, 113, 4, 15, 41};
    struct bytes front = {0}, middle = {0}, data = {0};
    unsigned type = types[draw(w, 9)], version = 8 + (unsigned)draw(w, 2), code = 0;
    uint64_t offset = 0, length = 0, begin = e->sent + out->n, client = 0,
             client_tid = type == 42 || type == 43 ? tid : 0;
    char object[64] = "-";
    if (type == 42) {
        static const unsigned codes[] = {0x2201, 0x2202, 0x1201};
        code = codes[draw(w, 3)];
        offset = draw(w, 1u << 22);
        length = draw(w, 20000);
        snprintf(object, sizeof object, "object.%llu.%.*s", (unsigned long long)tid, (int)draw(w, 30),
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        add_osd_op(&front, version, object, (int)draw(w, 2), code, offset, length);
        if (code != 0x1201) add_zero(&data, length);
    } else {
        if (type >= 112 && draw(w, 2))
            add_repop(&front, client = 4000 + draw(w, 9), client_tid = 1 + draw(w, 1u << 20));
        add_zero(&front, draw(w, 3) ? draw(w, 400) : 0);
        if (draw(w, 5) == 0) add_zero(&middle, draw(w, 100));
        if (draw(w, 5) == 0) add_zero(&data, draw(w, 30000));
    }
    for (size_t i = 0; i < data.n; i++) data.p[i] = (uint8_t)draw(w, 256);
    struct wire_message m = {
        .type = type, .version = version, .tid = tid, .seq = ++*seq, .front = &front, .middle = &middle, .data = &data};
    add_message(out, rev1, &m);
    SAY("M %d %llu %llu %u %llu %llu %zu %u %llu %llu %s %llu %llu\n", e->name, (unsigned long long)begin,
        (unsigned long long)(e->sent + out->n), type, (unsigned long long)tid, (unsigned long long)*seq, front.n, code,
        (unsigned long long)offset, (unsigned long long)length, object, (unsigned long long)client,
        (unsigned long long)client_tid);
    free(front.p), free(middle.p), free(data.p);
}

// Both ends' banners and authentication; the line: client's end, server's, the client's number, 1 for msgr2.1, 1 crc or
// 2 secure.
static int handshake(struct worker *w, struct end *client, struct end *server, unsigned features[2], unsigned mode) {
    struct bytes out = {0};
    int rev1 = features[0] & features[1] & 1;
    unsigned long long global_id = 4000ull + (unsigned)client->name;
    SAY("S %d %d %llu %d %u\n", client->name, server->name, global_id, rev1, mode);
    add_banner(&out, features[0]);
    transfer(w, client, server, &out);
    add_banner(&out, features[1]);
    if (draw(w, 2)) add_control(&out, rev1, T_HELLO, "hello from the server", 21);  // behind the banner, in one call
    transfer(w, server, client, &out);
    client->whole = server->whole = false;
    add_control(&out, rev1, T_HELLO, "hello from the client", 21);
    add_control(&out, rev1, T_AUTH_REQUEST, "authorizer", 10);
    transfer(w, client, server, &out);
    add_auth_done(&out, rev1, global_id, mode);
    transfer(w, server, client, &out);
    free(out.p);
    return rev1;
}

static void converse(struct worker *w, enum kind kind) {
    struct end client, server;
    struct bytes out = {0};
    unsigned features[2] = {draw(w, 4) ? 3 : 0, draw(w, 4) ? 1 : 2};
    uint64_t seq[2] = {0, 0}, tid = 1;
    open_pair(w, kind, &client, &server);
    client.whole = server.whole = kind == UNIX;  // a descriptor that nobody connected is known by a banner in one piece
    int rev1 = handshake(w, &client, &server, features, 1);
    for (int batch = 0; batch < BATCHES; batch++) {
        int back = (int)draw(w, 2);
        struct end *from = back ? &server : &client;
        for (uint64_t i = draw(w, 6) + 1; i > 0; i--) {
            if (draw(w, 4) == 0) add_control(&out, rev1, draw(w, 2) ? T_KEEPALIVE2 : T_ACK, "12345678", 8);
            message(w, &out, from, rev1, &seq[back], tid++);
        }
        transfer(w, from, back ? &client : &server, &out);
        if (draw(w, 8) == 0 && from->twin < 0) {  // the same connection by another number
            from->twin = draw(w, 2) ? dup(from->fd) : fcntl(from->fd, F_DUPFD_CLOEXEC, 100);
            must(from->twin >= 0, "dup");
            if (draw(w, 2)) noted(w, close(from->fd)), from->fd = from->twin, from->twin = -1;
        }
    }
    shut(w, &client);
    shut(w, &server);
    free(out.p);
}

static void whisper(struct worker *w) {
    struct end client, server;
    struct bytes out = {0};
    open_pair(w, TCP, &client, &server);
    handshake(w, &client, &server, (unsigned[]){1, 1}, 2);
    for (int batch = 0; batch < BATCHES; batch++) {
        int back = (int)draw(w, 2);
        // what is encrypted looks like this
        for (uint64_t i = draw(w, 3000) + 32; i > 0; i--) add_le(&out, draw(w, 256), 1);
        transfer(w, back ? &server : &client, back ? &client : &server, &out);
    }
    shut(w, &client);
    shut(w, &server);
    free(out.p);
}

// Connections that are none of the shim's business. Their lines begin with N.
static void stranger(struct worker *w) {
    static const char *const begins[] = {"GET / HTTP/1.1\r\n\r\n", "ceph v027 the old protocol",
                                         "ceph v2 without its end of line", ""};
    struct end client, server;
    struct bytes out = {0};
    open_pair(w, draw(w, 2) ? TCP : UNIX, &client, &server);
    SAY("N %d %d\n", client.name, server.name);
    const char *begin = begins[draw(w, 4)];
    add(&out, begin, strlen(begin));
    for (uint64_t i = draw(w, 3000) + 32; i > 0; i--) add_le(&out, draw(w, 200) + 1, 1);
    client.whole = server.whole = true;
    transfer(w, &client, &server, &out);
    client.whole = server.whole = false;
    for (uint64_t i = draw(w, 3000) + 32; i > 0; i--) add_le(&out, draw(w, 256), 1);
    transfer(w, &server, &client, &out);
    shut(w, &client);
    shut(w, &server);
    free(out.p);
}

// Both directions at once, four threads on two descriptors.
struct lane {
    struct worker w;
    struct end *end;
    struct bytes bytes;
};

static void *send_lane(void *at) {
    struct lane *l = at;
    transfer(&l->w, l->end, NULL, &l->bytes);
    return NULL;
}
static void *receive_lane(void *at) {
    struct lane *l = at;
    receive_all(&l->w, l->end, l->bytes.n);
    return NULL;
}

static void duplex(struct worker *w) {
    struct end client, server;
    uint64_t seq[2] = {0, 0};
    open_pair(w, TCP, &client, &server);
    handshake(w, &client, &server, (unsigned[]){1, 1}, 1);
    // client to server, server to client
    struct lane lanes[4] = {{*w, &client, {0}}, {*w, &server, {0}}, {*w, &server, {0}}, {*w, &client, {0}}};
    for (int i = 0; i < 120; i++)
        message(w, &lanes[i & 1 ? 2 : 0].bytes, i & 1 ? &server : &client, 1, &seq[i & 1], (uint64_t)i);
    lanes[1].bytes.n = lanes[0].bytes.n, lanes[3].bytes.n = lanes[2].bytes.n;
    for (int i = 0; i < 4; i++) {
        lanes[i].w.sum = 0;
        lanes[i].w.cuts = draw(w, 1u << 30) + 1;
        must(pthread_create(&lanes[i].w.thread, NULL, i & 1 ? receive_lane : send_lane, &lanes[i]) == 0,
             "pthread_create");
    }
    for (int i = 0; i < 4; i++) pthread_join(lanes[i].w.thread, NULL);
    note(w, &lanes[1].w.sum, 8);
    note(w, &lanes[3].w.sum, 8);
    free(lanes[0].bytes.p), free(lanes[2].bytes.p);
    shut(w, &client);
    shut(w, &server);
}

static void *work(void *at) {
    struct worker *w = at;
    socklen_t length = sizeof w->address;
    w->listener = socket(AF_INET, SOCK_STREAM, 0);
    w->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(bind(w->listener, (struct sockaddr *)&w->address, length) == 0 && listen(w->listener, 8) == 0, "listen");
    must(getsockname(w->listener, (struct sockaddr *)&w->address, &length) == 0, "getsockname");
    for (int i = 0; i < CONNECTIONS; i++) {
        uint64_t what = draw(w, 8);
        if (what == 0) {
            whisper(w);
        } else if (what == 1) {
            stranger(w);
        } else if (what == 2) {
            duplex(w);
        } else {
            converse(w, what == 3 ? UNIX : TCP);
        }
    }
    noted(w, close(w->listener));
    return NULL;
}

static struct worker begin(uint64_t seed, int number) {
    seed = seed * 10 + (unsigned)number;
    return (struct worker){
        .names = number * 1000, .random = seed * 0x9e3779b97f4a7c15u + 1, .cuts = seed * 0xbf58476d1ce4e5b9u + 1};
}

// Interrupts whatever is being done, and traces.
static volatile sig_atomic_t alarms;
static int alarm_file;

static void on_alarm(int signal) {
    (void)signal;
    int before = errno;
    (void)!pwrite(alarm_file, "x", 1, 7);
    alarms++;
    errno = before;
}

int main(int argc, char **argv) {
    must(argc == 3, "usage: peers SEED LOG");
    uint64_t seed = strtoull(argv[1], NULL, 10);
    must((log_file = fopen(argv[2], "w")) != NULL, argv[2]);
    must((alarm_file = open("/dev/null", O_WRONLY)) >= 0, "/dev/null");
    SAY("P %d\n", getpid());
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = begin(seed, i);
        must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        printf("%016llx\n", (unsigned long long)workers[i].sum);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    SAY("A %d %d\n", alarm_file, (int)alarms);
    fflush(NULL);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        struct worker w = begin(seed, 9);
        SAY("P %d\n", getpid());
        work(&w);
        printf("%016llx\n", (unsigned long long)w.sum);
        return 0;
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0, "the child");
    // as Ceph's monitor tries a crush map
    child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        for (int fd = 3; fd < 4096; fd++) close(fd);
        pid_t again = fork();
        if (again == 0) _exit(7);
        _exit(waitpid(again, &status, 0) == again && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "the hermit's child");
    return 0;
}
