// SPDX-License-Identifier: MIT
// Functions with the names and the arguments of ceph-osd's (Ceph 16.2), which do nothing: for tests of its probes. On
// SIGUSR1 it plays OPS operations through them, on one thread, and says what it has passed; on SIGTERM it ends.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#define NOINLINE __attribute__((noipa))  // the caller may not know that nothing is read
#define BODY __asm__ volatile("" ::: "memory")

namespace boost {
template <class T>
struct intrusive_ptr {
    T *p;
    explicit intrusive_ptr(T *q) : p(q) {}
    ~intrusive_ptr() {}  // so it is passed by its address
};
}  // namespace boost
namespace ceph {
namespace common {
struct PerfCounters;
}
namespace os {
struct Transaction;
}
}  // namespace ceph

struct __attribute__((packed)) Header {  // ceph_msg_header, as far as it is read
    uint64_t seq, tid;
    uint16_t type, priority, version;
    uint32_t front_len, middle_len, data_len;
    uint16_t data_off;
    uint8_t src_type;
    uint64_t src_num;
};
struct Message {
    uint64_t vtable, nref, cct;
    Header header;
};
struct OpTracker {};
struct utime_t {
    uint32_t sec, nsec;
};
struct TrackedOp {
    uint64_t fields[30];
    NOINLINE void mark_event(std::string_view, utime_t) { BODY; }
};
struct OpRequest : TrackedOp {
    NOINLINE OpRequest(Message *, OpTracker *);
};
OpRequest::OpRequest(Message *, OpTracker *) { BODY; }
struct pg_t {
    uint64_t pool;
    uint32_t seed;
};
struct spg_t {
    pg_t pgid;
    int8_t shard;
};  // 24 bytes: passed on the stack
struct OSD {
    NOINLINE void ms_fast_dispatch(Message *) { BODY; }
    NOINLINE void enqueue_op(spg_t, boost::intrusive_ptr<OpRequest> &&, unsigned) { BODY; }
};
struct PrimaryLogPG {
    struct OpContext {
        boost::intrusive_ptr<OpRequest> op;
    };
    struct RepGather {
        uint64_t fields[32];
    };
    NOINLINE void execute_ctx(OpContext *) { BODY; }
    NOINLINE void issue_repop(RepGather *, OpContext *) { BODY; }
    NOINLINE void eval_repop(RepGather *) { BODY; }
};
struct ReplicatedBackend {
    struct InProgressOp {
        uint64_t fields[11];
        OpRequest *op;
    };
    NOINLINE void op_commit(const boost::intrusive_ptr<InProgressOp> &) { BODY; }
};
struct BlueStore {
    struct TransContext {
        uint64_t fields[100];
    };
    struct BlueStoreThrottle {
        NOINLINE uint64_t log_state_latency(TransContext &, ceph::common::PerfCounters *, int) {
            BODY;
            return 0;
        }
    };
    NOINLINE void _txc_add_transaction(TransContext *, ceph::os::Transaction *) { BODY; }
};
struct KernelDevice {
    NOINLINE int flush() {
        usleep(100);
        return 0;
    }
};

static volatile sig_atomic_t asked, ending;

static void play(int ops) {
    OSD osd;
    PrimaryLogPG pg;
    ReplicatedBackend backend;
    BlueStore store;
    BlueStore::BlueStoreThrottle throttle;
    KernelDevice device;
    for (int i = 1; i <= ops; ++i) {
        Message message{};
        message.header.tid = 100 + i;
        message.header.type = 42;
        message.header.src_num = 4711;
        osd.ms_fast_dispatch(&message);
        OpRequest op(&message, nullptr);
        osd.enqueue_op({}, boost::intrusive_ptr<OpRequest>(&op), 7);
        op.mark_event("queued_for_pg", {});
        op.mark_event("a name of more than thirty-one characters", {});
        PrimaryLogPG::OpContext context{boost::intrusive_ptr<OpRequest>(&op)};
        PrimaryLogPG::RepGather repop{};
        BlueStore::TransContext txc{};
        pg.execute_ctx(&context);
        pg.issue_repop(&repop, &context);
        store._txc_add_transaction(&txc, nullptr);
        throttle.log_state_latency(txc, nullptr, 732430 + 5);
        device.flush();
        ReplicatedBackend::InProgressOp progress{};
        progress.op = &op;
        backend.op_commit(boost::intrusive_ptr<ReplicatedBackend::InProgressOp>(&progress));
        pg.eval_repop(&repop);
        printf("%d %p %p %p %p\n", i, (void *)&message, (void *)&op, (void *)&repop, (void *)&txc);
    }
}

int main(int argc, char **argv) {
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    signal(SIGUSR1, [](int) { asked = 1; });
    signal(SIGTERM, [](int) { ending = 1; });
    (void)argc;
    puts("ready");
    fflush(stdout);
    while (!ending) {
        sigsuspend(&before);
        if (asked) {
            asked = 0;
            play(atoi(argv[1]));
            puts("done");
            fflush(stdout);
        }
    }
}
