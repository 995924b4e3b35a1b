// SPDX-License-Identifier: MIT
// The short way through frames against the parser's state machine: `frames SEED ROUNDS` makes streams of frames, cuts
// them into calls and these into vectors, takes each call both ways, and ends with status 1 where they differ. What is
// lost is lost to both: some streams are damaged. Prints how many messages the short way took, and how many it left to
// the other.
#include <sys/uio.h>

#include "../../../tracepoints/ceph/frames.h"
#include "wire.h"

static uint64_t random_state, short_count, left_count;

static uint64_t draw(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

// What was said of messages, in order.
struct said {
    char *text;
    size_t n, room;
};

static void say(struct said *s, const struct msgr_message *given, const char *what) {
    struct msgr_message m = *given;
    char object[MSGR_OBJECT_BYTES];
    if (s->n + 512 > s->room) s->text = realloc(s->text, s->room = 2 * s->room + 512);
    if (m.front) msgr_look(&m, object);
    s->n += (size_t)snprintf(s->text + s->n, 512,
                             "%s %llu tid %llu seq %llu type %u v%u %u bytes op %u %llu+%llu %s of %llu:%llu\n", what,
                             (unsigned long long)m.index, (unsigned long long)m.tid, (unsigned long long)m.seq, m.type,
                             m.version, m.flen, m.op, (unsigned long long)m.offset, (unsigned long long)m.length,
                             m.object, (unsigned long long)m.client, (unsigned long long)m.client_tid);
}

static void begun(void *context, const struct msgr_message *m, bool whole) {
    say(context, m, whole ? "whole" : "begun");
}
static void ended(void *context, const struct msgr_message *m) { say(context, m, "ended"); }

static void message(struct bytes *out, int rev1, uint64_t tid) {
    static const unsigned types[] = {42, 42, 43, 112, 113, 4, 15};
    struct bytes front = {0}, middle = {0}, data = {0};
    unsigned type = types[draw(7)], version = 8 + (unsigned)draw(2);
    if (type == 42 && draw(8)) {
        char object[300];
        snprintf(object, sizeof object, "object.%llu.%0*d", (unsigned long long)tid, 1 + (int)draw(draw(4) ? 40 : 280),
                 0);
        add_osd_op(&front, version, object, (int)draw(2), 0x2201, draw(1 << 20), draw(1 << 20));
        add_zero(&front, draw(4) ? 0 : draw(1500));
        static const size_t lengths[] = {2, 38, 89};  // of a form that is not known
        if (draw(6) == 0) front.p[draw(2) ? lengths[draw(3)] : draw(front.n)] ^= (uint8_t)(1 + draw(255));
    } else if (type >= 112 && draw(2)) {
        add_repop(&front, draw(9), draw(1 << 20));
        add_zero(&front, draw(200));
    } else {
        add_zero(&front, draw(3) ? draw(200) : 0);
    }
    if (draw(4) == 0) add_zero(&middle, draw(100));
    if (draw(2)) add_zero(&data, draw(3000));
    size_t begin = out->n;
    add_message(out, rev1,
                &(struct wire_message){.type = type,
                                       .version = version,
                                       .tid = tid,
                                       .seq = tid + 7,
                                       .front = &front,
                                       .middle = &middle,
                                       .data = &data});
    if (draw(40) == 0) {  // says that it is compressed
        out->p[begin + 26] |= 1;
        uint32_t crc = crc32c(0, out->p + begin, 28);
        memcpy(out->p + begin + 28, &crc, 4);
    }
    free(front.p), free(middle.p), free(data.p);
}

static int cut(struct iovec *v, int most, uint8_t *p, size_t n) {
    int count = 0;
    for (; n > 0 && count < most - 1; count++) {
        static const size_t usual[] = {32, 41, 4, 73, 77, 0};  // as Ceph has them, and an empty one
        size_t part = draw(3) ? usual[draw(6)] : draw(n + 1);
        v[count] = (struct iovec){p, part < n ? part : n};
        p += v[count].iov_len;
        n -= v[count].iov_len;
    }
    v[count++] = (struct iovec){p, n};
    return count;
}

static int differs(const struct msgr_parser *a, const struct msgr_parser *b) {
    return a->phase != b->phase || a->messages != b->messages || a->compressed != b->compressed ||
           a->con_mode != b->con_mode || a->banner != b->banner ||
           (a->phase < MSGR_BODY && (a->have != b->have || a->need != b->need)) ||
           (a->phase == MSGR_BODY && a->left != b->left);
}

static int round_of(uint64_t seed) {
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    static struct msgr_parser slow, fast;
    struct said of_slow = {0}, of_fast = {0};
    struct bytes out = {0};
    int rev1 = (int)draw(2), pieces = draw(4) > 0;
    msgr_reset(&slow), msgr_reset(&fast);
    slow.peer_features = fast.peer_features = (uint64_t)rev1;
    slow.details = fast.details = draw(5) > 0;
    size_t ends[200];
    int frames = 0;
    add_banner(&out, 1);
    ends[frames++] = out.n;
    add_auth_done(&out, rev1, 4001, 1);
    for (uint64_t i = 0, n = draw(60); i < n; i++) {
        ends[frames++] = out.n;
        if (draw(4) == 0) add_control(&out, rev1, draw(2) ? T_KEEPALIVE2 : T_ACK, "12345678", draw(9));
        if (draw(30) == 0) add_auth_done(&out, rev1, 4001 + draw(3), 1 + (draw(20) == 0));
        message(&out, rev1, i);
    }
    ends[frames++] = out.n;
    if (draw(5) == 0) out.p[26 + draw(out.n - 26)] ^= 1;
    int wrong = 0;
    for (size_t at = 0; at < out.n && !wrong;) {
        // mostly a call ends where a frame does
        size_t n = 1 + draw(draw(2) ? 9000 : 400);
        if (draw(3)) {
            int next = 0;
            while (ends[next] <= at) next++;
            next += (int)draw(4);
            n = ends[next < frames ? next : frames - 1] - at;
        }
        if (n > out.n - at) n = out.n - at;
        struct iovec v[24];
        cut(v, 1 + (int)draw(24), out.p + at, n);
        struct msgr_bytes bytes = {v, 0, n};
        uint64_t before = fast.messages;
        msgr_feed(&slow, bytes, &(struct msgr_sink){begun, ended, &of_slow});
        if (pieces && msgr_ends(&fast, &bytes)) {
            say(&of_fast, &fast.message, "ended");
            fast.message.front = NULL;
        }
        if (msgr_between_frames(&fast)) {
            enum msgr_found found;
            while (bytes.left > 0 && (found = msgr_next(&fast, &bytes, pieces)) != MSGR_NOTHING) {
                say(&of_fast, &fast.message, found == MSGR_WHOLE ? "whole" : "begun");
                if (found == MSGR_WHOLE) say(&of_fast, &fast.message, "ended");
            }
            short_count += fast.messages - before;
            before = fast.messages;
        }
        msgr_feed(&fast, bytes, &(struct msgr_sink){begun, ended, &of_fast});
        left_count += fast.messages - before;
        at += n;
        wrong = differs(&slow, &fast) || of_slow.n != of_fast.n ||
                memcmp(of_slow.text ? of_slow.text : "", of_fast.text ? of_fast.text : "", of_slow.n) != 0;
    }
    if (wrong)
        printf("seed %llu: phases %d %d\n--- the state machine\n%.*s--- the short way\n%.*s", (unsigned long long)seed,
               slow.phase, fast.phase, (int)of_slow.n, of_slow.text ? of_slow.text : "", (int)of_fast.n,
               of_fast.text ? of_fast.text : "");
    free(of_slow.text), free(of_fast.text), free(out.p);
    return wrong;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    for (uint64_t i = 0; i < rounds; i++) {
        if (round_of(seed + i)) return 1;
    }
    printf("%llu %llu\n", (unsigned long long)short_count, (unsigned long long)left_count);
    return 0;
}
