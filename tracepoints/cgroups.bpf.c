// SPDX-License-Identifier: MIT
// In which cgroup a thread is, and whose the pages are that a bio writes. Compiled before block.bpf.c.
//
// A cgroup is told by its number: the inode of its directory in the cgroup2 file system, which is also its file handle.
// The bridge finds the path (cgroup_paths.h). A thread in the root of cgroup2, on a machine whose memory controller is
// in a hierarchy of version 1, is told by its cgroup there, with CGROUP_V1 set: container runtimes of such machines
// make no others.
//
// A write of the page cache is queued by whoever writes back. Whose it is says
//   - where the memory controller is in cgroup2: the page's own memory cgroup (folio->memcg_data);
//   - elsewhere: who dirtied a page of the file last (writeback_dirty_folio). 0, not known, if that was before the
//     recording began.

#define CGROUP_V1 (1ull << 63)
#define ROOT_CGROUP 1  // the first inode of a kernfs (kernfs_create_root(), fs/kernfs/dir.c)

#ifdef O_TASK_CGROUPS

static inline u64 cgroup_number(u64 cgroup) {
    u64 node = cgroup ? pointer_at(cgroup + O_CGROUP_NODE) : 0;
    return node ? pointer_at(node + O_NODE_ID) : 0;
}

static inline u64 cgroup_of(u64 css) { return css ? cgroup_number(pointer_at(css + O_CSS_CGROUP)) : 0; }

// `known`: its number in cgroup2.
static inline u64 with_memory_v1(u64 task, u64 known) {
#ifdef MEMORY_V1
    if (known != ROOT_CGROUP) return known;
    u64 id = cgroup_of(pointer_at(pointer_at(task + O_TASK_CGROUPS) + O_SET_MEMORY));
    if (id > ROOT_CGROUP) return id | CGROUP_V1;
#endif
    return known;
}

static inline u64 cgroup_of_task(u64 task) {
    return with_memory_v1(task, cgroup_number(pointer_at(pointer_at(task + O_TASK_CGROUPS) + O_SET_DEFAULT)));
}

#ifdef TYPED
static inline u64 number_of_cgroup(u64 cgroup) {
    u64 node = cgroup ? MEMBER(u64, cgroup, O_CGROUP_NODE) : 0;
    return node ? MEMBER(u64, node, O_NODE_ID) : 0;
}

// As cgroup_of_task() of the current one.
static inline u64 current_cgroup(void) {
    u64 set = MEMBER(u64, this_task(), O_TASK_CGROUPS);
    if (!set) return 0;
    u64 known = number_of_cgroup(MEMBER(u64, set, O_SET_DEFAULT));
#ifdef MEMORY_V1
    if (known != ROOT_CGROUP) return known;
    u64 memory = MEMBER(u64, set, O_SET_MEMORY);
    u64 id = memory ? number_of_cgroup(MEMBER(u64, memory, O_CSS_CGROUP)) : 0;
    if (id > ROOT_CGROUP) return id | CGROUP_V1;
#endif
    return known;
}
#else
static inline u64 current_cgroup(void) { return with_memory_v1(bpf_get_current_task(), bpf_get_current_cgroup_id()); }
#endif

#ifndef MEMORY_V2
BPF_TABLE("lru_hash", u64, u64, dirtied_by, 65536);  // address spaces of files

#ifdef A_dirty_mapping
int on_writeback_dirty(struct bpf_raw_tracepoint_args *ctx) {
    u64 mapping = ctx->args[A_dirty_mapping];
    if (!wanted(KIND_BIO_QUEUE) && !wanted(KIND_REQUEST)) return 0;
    u64 id = current_cgroup(), *before = dirtied_by.lookup(&mapping);
    if (!before || *before != id) dirtied_by.update(&mapping, &id);
    return 0;
}
#endif
#endif

// Of a page of the page cache; ~0 of another one, the program's own memory.
static inline u64 cgroup_of_page(u64 page) {
    u64 head = pointer_at(page + O_PAGE_HEAD);
    if (head & 1) page = head - 1;  // the tail of a compound page (PageTail())
    u64 mapping = pointer_at(page + O_PAGE_MAPPING);
    if (!mapping || mapping & 3) return ~0ull;  // anonymous, or the kernel's (PAGE_MAPPING_FLAGS)
#ifdef MEMORY_V2
    u64 owner = pointer_at(page + O_PAGE_OWNER);
    return owner & 3 ? 0 : cgroup_of(owner & ~7ull);  // MEMCG_DATA_OBJEXTS, MEMCG_DATA_KMEM
#else
    u64 *by = dirtied_by.lookup(&mapping);
    return by ? *by : 0;
#endif
}

// When it is queued. Metadata (REQ_META) is of whoever queues it: a journal has no pages of a program's.
static inline u64 cgroup_of_bio(u64 bio, u32 opf, u32 bytes) {
    if ((opf & 0xff) == REQ_OP_WRITE && !(opf >> REQ_META & 1) && bytes) {
#ifdef BIO_PAGE_PINNED
        u64 flags = pointer_at(bio + O_BIO_FLAGS) >> BIO_PAGE_PINNED & 1;  // direct I/O from the program's memory
#else
        u64 flags = 0;
#endif
        u64 vector = flags ? 0 : pointer_at(bio + O_BIO_VECTOR);
        u64 owner = vector ? cgroup_of_page(pointer_at(vector)) : ~0ull;
        if (owner != ~0ull) return owner;
    }
    u64 id = current_cgroup();
#ifdef IO_V2
    // What the kernel's own threads queue for a cgroup: loop devices, device mapper, encryption.
    u64 group = id == ROOT_CGROUP ? pointer_at(bio + O_BIO_GROUP) : 0;
    u64 owner = group ? pointer_at(group + O_GROUP_CONTROLLER) : 0;
    u64 of = owner ? cgroup_of(owner + O_CONTROLLER_CSS) : 0;
    if (of) return of;
#endif
    return id;
}

#else
static inline u64 cgroup_of_task(u64 task) { return 0; }
static inline u64 cgroup_of_bio(u64 bio, u32 opf, u32 bytes) { return 0; }
#endif
