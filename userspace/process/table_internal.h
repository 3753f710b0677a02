/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the process table: table.c looks up and evicts, table_entry.c holds
 * the entries and their questions to the host, table_apply.c applies the
 * side-band, table_identity.c requests identities, table_maps.c mappings,
 * table_scan.c all of /proc at once, files.c holds the mapped files,
 * files_open.c opens them.
 * One rule for all: a question may be answered before host_ask returns, so
 * nothing may be held across the call that an answer could free.
 */
#ifndef OTP_PROCESS_TABLE_INTERNAL_H
#define OTP_PROCESS_TABLE_INTERNAL_H

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "process/identity.h"
#include "process/table.h"

/*
 * A sample's start may be so much later than that of /proc/PID/stat, which is
 * cut to ticks. A sampler in userspace takes it from the fork's record, whose
 * time is a little later than the start itself.
 */
#define START_EXACT_NS (NSEC_PER_SEC / 100 + NSEC_PER_MSEC)

struct entry;

/* Work for table_find; 0: its fast path. */
enum entry_todo {
	TODO_WORKLOAD = 1, /* make the preliminary workload */
	TODO_IDENTITY = 2, /* request it */
	TODO_MAPS = 4,     /* request them: none are known */
	TODO_EXITED = 8,   /* the leader exited: find out whether the process still runs */
};

struct entry {
	struct process p;
	struct entry *newer, *older; /* in one of two lists: living by use, dead by exit */
	struct entry_list *list;
	uint64_t born_ns;       /* FORK seen then; 0: not */
	uint64_t start_tick_ns; /* start by /proc, cut to ticks; 0: unknown */
	uint64_t last_ns;       /* last event or sample */
	uint64_t used_ns;       /* when it moved to the front of its list */
	uint32_t epoch;         /* of the losses that its maps have been read after */
	uint8_t todo;           /* enum entry_todo */
	bool sampled;
	bool exec_id_known;
	uint64_t exec_id_ns; /* time of the sample that set exec_id; 0: counted up since */
	bool maps_gone;     /* /proc no longer lists the process */
	bool identity_own;  /* read of this process, not inherited, and of this exec */
	bool cgroup_stale;  /* identity is from before a move to another cgroup */
	bool name_pending;  /* the next mapped file is the program itself */
	uint8_t identity_tries;
	struct identity *identity; /* owned; its parent's until its own is read; NULL: unknown */
	struct str *script;        /* owned; a guess until the identity is known */
	struct question *maps_question, *identity_question; /* borrowed */
	struct space *newer_maps;                           /* owned; mapped since the question */
	uint64_t rescan_after_ns, rescan_wait_ns;
	uint64_t identity_after_ns;
};

struct entry_list {
	struct entry *newest, *oldest;
};

/* One question to the host. */
struct question {
	struct process_table *t;
	struct question *next, **link; /* all open ones */
	struct question *later;        /* the host was busy */
	uint64_t asked_ns;
	uint32_t epoch;
	struct entry *e;          /* borrowed; the question is cancelled before the entry is freed */
	struct mapped_file *file; /* owned */
	struct binary *found;     /* owned: the file's, unless the host holds a better one; NULL: not opened yet */
	uint32_t pid, ppid, alternate, attempt;
	bool of_host; /* whether the host's root has found's better */
	uint64_t pid_start_ns, start, end;
	uint64_t group; /* the cgroup of the process for which it is asked, also where another root is searched */
};

/* The identity of one process of a cgroup, for others of the same cgroup. */
struct cgroup_note {
	struct identity *identity; /* owned */
	uint32_t pid;              /* seen there last */
};

/* At most per_second a second, with bursts of as many. */
struct rate {
	uint64_t due_ns;
	uint32_t per_second;
};

struct files {
	struct map by_key; /* chains of struct mapped_file, one reference each */
	uint32_t count;
	size_t bytes; /* of paths */
	struct question *later, **later_end;
	uint32_t later_count;
	uint64_t swept_ns;
	bool pumping;
};

struct process_table {
	struct process_table_config cfg;
	struct map by_pid;
	struct map cgroups; /* id to struct cgroup_note */
	struct entry_list live, dead;
	struct files files;
	struct question *questions;
	struct question *scan;   /* NULL: no scan is under way */
	uint32_t scan_from;      /* the next partial scan begins above this pid */
	struct entry *pinned;    /* in use further up: not to be evicted */
	struct identity *kernel, *interrupts; /* owned */
	struct workload *kernel_workload, *interrupts_workload, *unknown_workload; /* owned */
	uint64_t now_ns, forgot_ns;
	uint32_t epoch; /* counts losses of the side-band */
	struct rate rescans, first_reads, identities;
	struct process_stats stats;
};

static inline void table_advance(struct process_table *t, uint64_t now_ns)
{
	if (now_ns > t->now_ns)
		t->now_ns = now_ns;
}

/* When the process started, to tell it from another one with its pid; 0: unknown. */
static inline uint64_t entry_start(const struct entry *e)
{
	return e->p.start_ns ? e->p.start_ns : e->start_tick_ns;
}

/* table.c */
int table_make_workloads(struct process_table *t); /* of the kernel, and of unknown processes */

/* table_entry.c */
bool rate_take(struct rate *r, uint64_t now_ns);
struct entry *entry_get(const struct process_table *t, uint32_t pid); /* NULL if unknown */
struct entry *entry_new(struct process_table *t, uint32_t pid); /* makes room; NULL without memory */
void entry_drop(struct process_table *t, struct entry *e);
void entry_touch(struct process_table *t, struct entry *e, uint64_t time_ns);
void entry_revive(struct process_table *t, struct entry *e);
void entry_die(struct process_table *t, struct entry *e, uint64_t time_ns);
/* The program was replaced: resets all but what exec keeps. */
void entry_renew(struct process_table *t, struct entry *e, struct space *empty);
void entry_set_comm(struct entry *e, const char *comm, size_t len);
void table_make_room(struct process_table *t); /* for mappings */
int question_new(struct process_table *t, struct entry *e, struct question **ret);
struct question *question_free(struct question *q); /* NULL */
void question_cancel(struct question *q);

/* table_identity.c */
void identity_request(struct process_table *t, struct entry *e);
void identity_preliminary(struct process_table *t, struct entry *e);
void identity_name_program(struct entry *e, const char *path, size_t len);
void identity_inherit(struct process_table *t, struct entry *child, const struct entry *parent);
void identity_set_kernel(struct process_table *t, struct entry *e);
void identity_set_cgroup(struct process_table *t, struct entry *e, uint64_t cgroup_id);
/* Applies an answer of the host, also from a scan. */
int identity_take(struct process_table *t, struct entry *e, const void *data, size_t len);
struct cgroup_note *cgroup_note_find(const struct process_table *t, uint64_t id);
void cgroup_notes_clear(struct process_table *t);

/* table_maps.c */
bool maps_request(struct process_table *t, struct entry *e, struct rate *rate);
void maps_add(struct process_table *t, struct entry *e, const struct proc_event *ev);
/* Maps text read after asked_ns replaces what was known before. true: something changed. */
bool maps_take(struct process_table *t, struct entry *e, const char *text, size_t len);
void maps_forget_newer(struct entry *e);

/* files.c */
struct file_name {
	const char *path;
	size_t path_len;
	const uint8_t *build_id;
	uint8_t build_id_len;
	uint64_t dev, ino, ino_generation, container;
};
int files_init(struct process_table *t);
void files_done(struct process_table *t);
/* The file of this name, made if unknown; owned. NULL: no memory, or too many. */
struct mapped_file *files_get(struct process_table *t, const struct file_name *name);
void files_sweep(struct process_table *t);
void files_drop_idle(struct process_table *t, uint64_t keep_ns); /* at once with 0 */
/* A binary of the same build-id in the same container, which only root may write; borrowed, NULL: none. */
struct binary *files_find_twin(const struct process_table *t, const struct mapped_file *of);

/* files_open.c */
void files_pump(struct process_table *t);

#endif
