// SPDX-License-Identifier: Apache-2.0
/* Who a process is: guessed until the host answers, and where it cannot. */
#include <string.h>

#include "process/service.h"
#include "process/table_internal.h"

#define IDENTITY_TRIES     3
#define IDENTITY_RETRY_NS  (2 * NSEC_PER_SEC)
#define CGROUP_NOTES_MAX   4096
#define COMM_MAX           15
/*
 * Id of the root cgroup. Where cgroups are of version 1 it is every process'
 * id, and says nothing about whose neighbour one is.
 */
#define CGROUP_ROOT        1

struct cgroup_note *cgroup_note_find(const struct process_table *t, uint64_t id)
{
	return id > CGROUP_ROOT ? map_find_ptr(&t->cgroups, id) : NULL;
}

void cgroup_notes_clear(struct process_table *t)
{
	map_for_each(&t->cgroups, slot) {
		struct cgroup_note *n = (struct cgroup_note *)(uintptr_t)slot->value;

		identity_put(n->identity);
		free(n);
	}
	map_done(&t->cgroups);
}

static struct cgroup_note *cgroup_note_get(struct process_table *t, uint64_t id)
{
	struct cgroup_note *n = cgroup_note_find(t, id);

	if (n || id <= CGROUP_ROOT)
		return n;
	/* They come back with the next samples; an order of use is not worth its upkeep. */
	if (t->cgroups.count >= CGROUP_NOTES_MAX)
		cgroup_notes_clear(t);
	n = calloc(1, sizeof(*n));
	if (n && map_put_ptr(&t->cgroups, id, n) < 0) {
		free(n);
		return NULL;
	}
	return n;
}

/* Remember who lives in a cgroup, and what it is where that was read. */
static void cgroup_note_write(struct process_table *t, const struct entry *e)
{
	struct cgroup_note *n = cgroup_note_get(t, e->p.cgroup_id);

	if (!n)
		return;
	if (!e->p.exit_time_ns)
		n->pid = e->p.pid;
	if (e->identity_own && n->identity != e->identity) {
		identity_put(n->identity);
		n->identity = identity_ref(e->identity);
	}
}

static void set_identity(struct entry *e, struct identity *id)
{
	identity_put(e->identity);
	e->identity = id;
}

static void set_workload(struct entry *e, struct workload *w)
{
	workload_put(e->p.workload);
	e->p.workload = w;
}

/* Pid 0 stands for interrupts that an idle CPU served. */
static struct workload *kernel_workload_of(const struct process_table *t, const struct entry *e)
{
	return e->p.pid ? t->kernel_workload : t->interrupts_workload;
}

void identity_set_kernel(struct process_table *t, struct entry *e)
{
	question_cancel(e->identity_question);
	e->identity_question = NULL;
	e->p.identity_pending = false;
	set_identity(e, identity_ref(e->p.pid ? t->kernel : t->interrupts));
	set_workload(e, workload_ref(kernel_workload_of(t, e)));
	e->p.kernel = e->p.identity_known = e->p.maps_known = true;
	e->todo &= (uint8_t)~(TODO_WORKLOAD | TODO_IDENTITY | TODO_MAPS);
}

void identity_inherit(struct process_table *t, struct entry *child, const struct entry *parent)
{
	set_identity(child, identity_ref(parent->identity));
	set_workload(child, workload_ref(parent->p.workload));
	child->p.kernel = parent->p.kernel;
	child->cgroup_stale = parent->cgroup_stale;
	child->identity_own = false;
	child->p.identity_known = parent->p.identity_known;
	child->todo &= (uint8_t)~(TODO_WORKLOAD | TODO_IDENTITY);
	child->todo |= parent->todo & TODO_WORKLOAD;
	if (!parent->p.identity_known)
		child->todo |= TODO_IDENTITY;
}

/* The name that the kernel cut to comm, where the file's own begins with it. */
static bool comm_is_file(const char *comm, const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);
	size_t n = strlen(comm);

	if (slash) {
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	return n <= len && (n == len || n == COMM_MAX) && !memcmp(path, comm, n);
}

/*
 * After exec, the first file that is mapped is the program; comm is the name
 * it was started under, and the script's where the program is its interpreter.
 */
void identity_name_program(struct entry *e, const char *path, size_t len)
{
	const char *comm = str_c(e->p.comm);
	bool same = comm_is_file(comm, path, len);
	struct service_input in = {
		.exe = path,
		.exe_len = len,
		.cmdline = comm,
		.cmdline_len = same ? 0 : strlen(comm),
		.comm = comm,
	};
	struct service_names names;

	service_names(&in, &names);
	str_put(e->p.exe);
	str_put(e->script);
	e->p.exe = names.exe[0] ? str_get_c(names.exe) : NULL;
	e->script = names.script[0] ? str_get_c(names.script) : NULL;
}

void identity_preliminary(struct process_table *t, struct entry *e)
{
	struct cgroup_note *note = cgroup_note_find(t, e->p.cgroup_id);
	const struct identity *cgroup = e->cgroup_stale ? NULL : e->identity;
	struct workload *w;
	struct identity *id;

	if (note && note->identity)
		cgroup = note->identity;
	if (identity_guess(e->identity, cgroup, e->p.exe ? e->p.exe->s : str_c(e->p.comm), str_c(e->script), &id) < 0)
		return;
	if (identity_workload(id, t->cfg.resource, t->cfg.nr_resource, &w) == 0) {
		set_workload(e, w);
		e->todo &= (uint8_t)~TODO_WORKLOAD;
	}
	identity_put(id);
}

/* The answer tells when its process started: a pid that was reused meanwhile shows. */
static bool answer_fits(const struct entry *e, const struct host_identity_text *head)
{
	if (!head->start_ns)
		return true;
	if (!e->p.start_ns)
		return !e->born_ns || head->start_ns <= e->born_ns;
	return e->p.start_ns >= head->start_ns && e->p.start_ns - head->start_ns < START_EXACT_NS;
}

int identity_take(struct process_table *t, struct entry *e, const void *data, size_t len)
{
	struct host_identity_text head;
	struct identity *id;
	struct workload *w;
	int r;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	if (!answer_fits(e, &head))
		return -ESRCH;
	r = identity_parse(data, len, str_c(e->p.comm), &id);
	if (r < 0)
		return r;
	if (id->kernel) {
		identity_put(id);
		identity_set_kernel(t, e);
		return 0;
	}
	r = identity_workload(id, t->cfg.resource, t->cfg.nr_resource, &w);
	if (r < 0) {
		identity_put(id);
		return r;
	}
	set_identity(e, id);
	set_workload(e, w);
	if (id->exe) {
		str_put(e->p.exe);
		e->p.exe = str_ref(id->exe);
	}
	e->start_tick_ns = head.start_ns;
	e->cgroup_stale = false;
	e->identity_own = true;
	e->p.identity_known = true;
	e->todo &= (uint8_t)~(TODO_WORKLOAD | TODO_IDENTITY);
	cgroup_note_write(t, e);
	return 0;
}

/* In vain: for good where the process is gone, else some more tries. */
static void identity_failed(struct process_table *t, struct entry *e, int err)
{
	if (err == -ESRCH || err == -ENOENT || ++e->identity_tries >= IDENTITY_TRIES)
		return;
	e->identity_after_ns = t->now_ns + IDENTITY_RETRY_NS;
	e->todo |= TODO_IDENTITY;
}

static void on_identity(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct question *q = ctx;
	struct process_table *t = q->t;
	struct entry *e = q->e;

	closep(&fd);
	question_free(q);
	e->identity_question = NULL;
	e->p.identity_pending = false;
	if (err == 0)
		err = identity_take(t, e, data, len);
	if (err < 0)
		identity_failed(t, e, err);
	if (t->cfg.process_settled)
		t->cfg.process_settled(t->cfg.ctx, &e->p);
}

/* Asked once, and again with the next sample where the host or the rate says no. */
void identity_request(struct process_table *t, struct entry *e)
{
	struct host_request req = {.kind = HOST_READ_IDENTITY, .pid = e->p.pid, .pid_start_ns = entry_start(e),
				   .group = e->p.cgroup_id};
	struct question *q;

	if (e->identity_question || t->now_ns < e->identity_after_ns || !rate_take(&t->identities, t->now_ns))
		return;
	if (question_new(t, e, &q) < 0)
		return;
	e->identity_question = q;
	e->p.identity_pending = true;
	e->todo &= (uint8_t)~TODO_IDENTITY;
	if (host_ask(t->cfg.host, &req, on_identity, q) < 0) {
		question_free(q);
		e->identity_question = NULL;
		e->p.identity_pending = false;
		e->todo |= TODO_IDENTITY;
	}
}

/* One whose identity is not known gets its workload, a guess, with its next sample. */
static int renew_workload(struct process_table *t, struct entry *e)
{
	struct workload *w;
	int r;

	if (e->p.kernel) {
		set_workload(e, workload_ref(kernel_workload_of(t, e)));
		return 0;
	}
	if (!e->identity || !e->p.identity_known) {
		set_workload(e, workload_ref(t->unknown_workload));
		e->todo |= TODO_WORKLOAD;
		return 0;
	}
	r = identity_workload(e->identity, t->cfg.resource, t->cfg.nr_resource, &w);
	if (r == 0)
		set_workload(e, w);
	return r;
}

int table_set_resource(struct process_table *t, const struct attribute *resource, size_t nr_resource)
{
	int r, each;

	t->cfg.resource = resource;
	t->cfg.nr_resource = nr_resource;
	r = table_make_workloads(t);
	map_for_each(&t->by_pid, slot) {
		each = renew_workload(t, (struct entry *)(uintptr_t)slot->value);
		r = r ? r : each;
	}
	return r;
}

void identity_set_cgroup(struct process_table *t, struct entry *e, uint64_t cgroup_id)
{
	bool moved = e->p.cgroup_id != 0;

	e->p.cgroup_id = cgroup_id;
	if (moved && !e->p.kernel) {
		/* A service manager forks, moves the child, then execs: it is somebody else's from here on. */
		e->p.identity_known = e->identity_own = false;
		e->cgroup_stale = true;
		e->identity_tries = 0;
		e->todo |= TODO_WORKLOAD | TODO_IDENTITY;
	} else if (!e->identity_own && !e->p.kernel) {
		/* Its parent's, from we do not know which cgroup: good until it is asked itself. */
		e->todo |= TODO_IDENTITY;
	}
	cgroup_note_write(t, e);
}
