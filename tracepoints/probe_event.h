// SPDX-License-Identifier: MIT
// Uprobes on ceph-osd: which functions, what each one's arguments name, and the record that a hit hands to the bridge.
// One list, from which the BPF programs, the UST events and opline/capture/ceph/osd_probes.py are made.
//
// The symbols are those of Ceph 16.2 (C++ names with their arguments: another signature is another symbol, so a probe
// never reads arguments that it does not know). Where a build lacks one, that event is not there. x86-64 only:
// arguments in rdi, rsi, rdx, rcx, r8.
//
// Shapes, all by the System V ABI and Ceph 16.2.15's headers; a class with a destructor (intrusive_ptr) is passed by
// its address:
//   THREAD      nothing: the event belongs to what its thread works for
//   MESSAGE     rsi is a Message *
//   REQUEST     rdi is an OpRequest *, rsi its Message *: the constructor, where the two meet
//   OP(R)       register R is an OpRequest * (TrackedOp is its only base)
//   OP_AT(R)    R points to an OpRequest *: a reference to an intrusive_ptr, or an OpContext, whose first member is one
//   ISSUE       rsi is a RepGather *, rdx an OpContext *
//   REPOP       rsi is a RepGather *
//   COMMIT      rsi points to an InProgressOp *, which has its OpRequest * at 0x58 (op_commit() itself reads it there)
//   TXC(R)      R is a BlueStore::TransContext *
//   STATE       rsi is a TransContext *, ecx the counter of the state that ends
//   MARK        rdi is an OpRequest *, rsi and rdx length and address of a text
//
// A Message: RefCountedObject (virtual table, count, context: 24 bytes), then ceph_msg_header, packed: seq, tid (8
// bytes each), type (2), …, at 36 the sender's type (1) and number (8); include/msgr.h. ms_fast_dispatch() itself reads
// the type at 0x28 = 24 + 16.
#pragma once

#define MESSAGE_TID 32
#define MESSAGE_TYPE 40
#define MESSAGE_CLIENT 61
#define IN_PROGRESS_OP 0x58
#define FIRST_COUNTER 732430 /* l_bluestore_first: states are given relative to it */

// P(event, at: ENTRY or RETURN, shape, symbol)
#define PROBES(P)                                                                                                      \
    P(ms_fast_dispatch, ENTRY, MESSAGE, "_ZN3OSD16ms_fast_dispatchEP7Message")                                         \
    P(op_request, ENTRY, REQUEST, "_ZN9OpRequestC1EP7MessageP9OpTracker")                                              \
    P(enqueue_op, ENTRY, OP_AT(si), "_ZN3OSD10enqueue_opE5spg_tON5boost13intrusive_ptrI9OpRequestEEj")                 \
    P(dequeue_op, ENTRY, OP_AT(dx),                                                                                    \
      "_ZN3OSD10dequeue_opEN5boost13intrusive_ptrI2PGEENS1_I9OpRequestEERN10ThreadPool8TPHandleE")                     \
    P(dequeue_op_return, RETURN, THREAD,                                                                               \
      "_ZN3OSD10dequeue_opEN5boost13intrusive_ptrI2PGEENS1_I9OpRequestEERN10ThreadPool8TPHandleE")                     \
    P(do_request, ENTRY, OP_AT(si),                                                                                    \
      "_ZN12PrimaryLogPG10do_requestERN5boost13intrusive_ptrI9OpRequestEERN10ThreadPool8TPHandleE")                    \
    P(do_op, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG5do_opERN5boost13intrusive_ptrI9OpRequestEE")                         \
    P(find_object_context, ENTRY, THREAD,                                                                              \
      "_ZN12PrimaryLogPG19find_object_contextERK9hobject_tPSt10shared_ptrI13ObjectContextEbbPS0_")                     \
    P(execute_ctx, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG11execute_ctxEPNS_9OpContextE")                                 \
    P(prepare_transaction, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG19prepare_transactionEPNS_9OpContextE")                 \
    P(do_osd_ops, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG10do_osd_opsEPNS_9OpContextERSt6vectorI5OSDOpSaIS3_EE")          \
    P(do_read, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG7do_readEPNS_9OpContextER5OSDOp")                                   \
    P(finish_ctx, ENTRY, OP_AT(si), "_ZN12PrimaryLogPG10finish_ctxEPNS_9OpContextEii")                                 \
    P(complete_read_ctx, ENTRY, OP_AT(dx), "_ZN12PrimaryLogPG17complete_read_ctxEiPNS_9OpContextE")                    \
    P(issue_repop, ENTRY, ISSUE, "_ZN12PrimaryLogPG11issue_repopEPNS_9RepGatherEPNS_9OpContextE")                      \
    P(eval_repop, ENTRY, REPOP, "_ZN12PrimaryLogPG10eval_repopEPNS_9RepGatherE")                                       \
    P(repop_all_committed, ENTRY, REPOP, "_ZN12PrimaryLogPG19repop_all_committedEPNS_9RepGatherE")                     \
    P(op_commit, ENTRY, COMMIT, "_ZN17ReplicatedBackend9op_commitERKN5boost13intrusive_ptrINS_12InProgressOpEEE")      \
    P(mark_event, ENTRY, MARK, "_ZN9TrackedOp10mark_eventESt17basic_string_viewIcSt11char_traitsIcEE7utime_t")         \
    P(log_op_stats, ENTRY, OP(si), "_ZN12PrimaryLogPG12log_op_statsERK9OpRequestmm")                                   \
    P(unregister_op, ENTRY, OP(si), "_ZN9OpTracker22unregister_inflight_opEP9TrackedOp")                               \
    P(store_read, ENTRY, THREAD,                                                                                       \
      "_ZN9BlueStore4readERN5boost13intrusive_ptrIN11ObjectStore14CollectionImplEEERK10ghobject_"                      \
      "tmmRN4ceph6buffer7v15_2_04listEj")                                                                              \
    P(queue_transactions, ENTRY, OP_AT(cx),                                                                            \
      "_ZN9BlueStore18queue_transactionsERN5boost13intrusive_ptrIN11ObjectStore14CollectionImplEEERSt6vectorIN4"       \
      "ceph2os11TransactionESaIS9_EENS1_I9TrackedOpEEPN10ThreadPool8TPHandleE")                                        \
    P(queue_transactions_return, RETURN, THREAD,                                                                       \
      "_ZN9BlueStore18queue_transactionsERN5boost13intrusive_ptrIN11ObjectStore14CollectionImplEEERSt6vectorIN4"       \
      "ceph2os11TransactionESaIS9_EENS1_I9TrackedOpEEPN10ThreadPool8TPHandleE")                                        \
    P(txc_create, ENTRY, OP_AT(r8),                                                                                    \
      "_ZN9BlueStore11_txc_createEPNS_10CollectionEPNS_11OpSequencerEPNSt7__cxx114listIP7ContextSaIS7_EEEN5"           \
      "boost13intrusive_ptrI9TrackedOpEE")                                                                             \
    P(txc_add_transaction, ENTRY, TXC(si),                                                                             \
      "_ZN9BlueStore20_txc_add_transactionEPNS_12TransContextEPN4ceph2os11TransactionE")                               \
    P(store_write, ENTRY, TXC(si),                                                                                     \
      "_ZN9BlueStore6_writeEPNS_12TransContextERN5boost13intrusive_ptrINS_10CollectionEEERNS3_INS_"                    \
      "5OnodeEEEmmRN4ceph6buffer7v15_2_04listEj")                                                                      \
    P(do_alloc_write, ENTRY, TXC(si),                                                                                  \
      "_ZN9BlueStore15_do_alloc_writeEPNS_12TransContextEN5boost13intrusive_ptrINS_10CollectionEEERNS3_INS_"           \
      "5OnodeEEEPNS_12WriteContextE")                                                                                  \
    P(txc_calc_cost, ENTRY, TXC(si), "_ZN9BlueStore14_txc_calc_costEPNS_12TransContextE")                              \
    P(txc_write_nodes, ENTRY, TXC(si),                                                                                 \
      "_ZN9BlueStore16_txc_write_nodesEPNS_12TransContextESt10shared_ptrIN10KeyValueDB15TransactionImplEE")            \
    P(throttle_start, ENTRY, TXC(dx),                                                                                  \
      "_ZN9BlueStore17BlueStoreThrottle21try_start_transactionER10KeyValueDBRNS_12TransContextENSt6chrono10time_"      \
      "pointIN4ceph10mono_clockENS5_8durationImSt5ratioILl1ELl1000000000EEEEEE")                                       \
    P(txc_state_proc, ENTRY, TXC(si), "_ZN9BlueStore15_txc_state_procEPNS_12TransContextE")                            \
    P(txc_state_end, ENTRY, STATE,                                                                                     \
      "_ZN9BlueStore17BlueStoreThrottle17log_state_latencyERNS_12TransContextEPN4ceph6common12PerfCountersEi")         \
    P(device_aio_submit, ENTRY, THREAD, "_ZN12KernelDevice10aio_submitEP9IOContext")                                   \
    P(txc_finish_io, ENTRY, TXC(si), "_ZN9BlueStore14_txc_finish_ioEPNS_12TransContextE")                              \
    P(txc_apply_kv, ENTRY, TXC(si), "_ZN9BlueStore13_txc_apply_kvEPNS_12TransContextEb")                               \
    P(device_flush, ENTRY, THREAD, "_ZN12KernelDevice5flushEv")                                                        \
    P(device_flush_return, RETURN, THREAD, "_ZN12KernelDevice5flushEv")                                                \
    P(kv_submit_sync, ENTRY, THREAD,                                                                                   \
      "_ZN12RocksDBStore23submit_transaction_syncESt10shared_ptrIN10KeyValueDB15TransactionImplEE")                    \
    P(kv_submit_sync_return, RETURN, THREAD,                                                                           \
      "_ZN12RocksDBStore23submit_transaction_syncESt10shared_ptrIN10KeyValueDB15TransactionImplEE")                    \
    P(bluefs_fsync, ENTRY, THREAD, "_ZN6BlueFS5fsyncEPNS_10FileWriterE")                                               \
    P(txc_committed_kv, ENTRY, TXC(si), "_ZN9BlueStore17_txc_committed_kvEPNS_12TransContextE")                        \
    P(txc_finish, ENTRY, TXC(si), "_ZN9BlueStore11_txc_finishEPNS_12TransContextE")

#define PROBE_KIND(event, at, shape, symbol) PROBE_##event,
enum probe_kind { PROBES(PROBE_KIND) KIND_COUNT };

struct probe_event {
    __u64 ktime;    // CLOCK_MONOTONIC ns, read after the record was reserved: see bridge.c for why
    __u64 op;       // OpRequest *
    __u64 msg;      // Message *
    __u64 msg_tid;  // the message's number
    __u64 client;   // number of who sent the message
    __u64 repop;    // RepGather *
    __u64 txc;      // BlueStore::TransContext *
    __u32 msg_type;
    __s32 state;
    __u32 tid;  // in the collector's PID namespace; all ones: the task is not in it
    __u32 pid;
    __u32 lost;  // records of this CPU that found no room in the ring buffer so far
    __u16 cpu;
    __u8 kind;
    __u8 pad;
    char comm[16];
    char text[32];
};
