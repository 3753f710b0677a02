// SPDX-License-Identifier: Apache-2.0
/*
 * Opens mapped files: requested from the host once for all processes that map
 * the file, through another process where its own has ended, and verified
 * before use.
 *
 * One process' answer serves all, and a process can lie: below a path of the
 * host its mount namespace may hold a file of the user's own that claims the
 * same build-id, and what is mapped may change before it is opened. So where
 * the answer may be such a file, the host's root is searched for that path, and
 * the host's file is preferred if it is a proven one.
 */
#include <string.h>

#include "process/table_internal.h"

#define LATER_MAX        1024
#define RETRY_GONE_NS    (50 * NSEC_PER_MSEC) /* where the asker has ended, doubled up to the next: others are cut until then */
#define RETRY_FIRST_NS   NSEC_PER_SEC
#define RETRY_LONGEST_NS (64 * NSEC_PER_SEC)
#define ATTEMPTS         3

/* Worth another attempt later, perhaps through another process. */
static bool files_is_transient(int err)
{
	return err != -EPERM && err != -ENOEXEC && err != -ESTALE && err != -EIO;
}

static bool files_request(struct question *q);

/* Processes of a moment may be the first to map a file, and leave no root to search: that says nothing of the file. */
static bool files_asker_is_gone(const struct question *q)
{
	struct entry *e = entry_get(q->t, q->pid);

	return !e || e->p.exit_time_ns || entry_start(e) != q->pid_start_ns;
}

static uint64_t files_retry_wait(const struct mapped_file *f, bool gone)
{
	const uint64_t next = 2 * f->retry_wait_ns;

	if (gone)
		return MIN(MAX(next, RETRY_GONE_NS), RETRY_FIRST_NS);
	return MIN(MAX(next, RETRY_FIRST_NS), RETRY_LONGEST_NS);
}

static void files_settle(struct question *q, int err)
{
	struct process_table *t = q->t;
	struct mapped_file *f = mapped_file_ref(q->file);
	bool gone = files_asker_is_gone(q);

	f->binary = steal_ptr(&q->found);
	if (f->binary)
		err = 0;
	question_free(q);
	f->state = err < 0 ? MAPPED_FAILED : MAPPED_READY;
	f->error = err;
	if (err < 0 && files_is_transient(err)) {
		f->retry_wait_ns = files_retry_wait(f, gone);
		f->retry_ns = t->now_ns + f->retry_wait_ns;
	}
	if (t->cfg.file_settled)
		t->cfg.file_settled(t->cfg.ctx, f);
	mapped_file_put(f);
}

/*
 * Whether it is the file that the mapping names. The host has compared the
 * inode where the request contained one; the build-id is compared here.
 */
static bool files_verify(const struct mapped_file *f, const struct binary *b)
{
	return !f->build_id_len ||
	       (b->build_id_len == f->build_id_len && !memcmp(b->build_id, f->build_id, f->build_id_len));
}

/* A descriptor, or, in a replay, the place of the file's pages in the capture. */
static int files_open_answer(const struct mapped_file *f, int fd, const void *data, size_t len, struct binary **ret)
{
	if (fd >= 0)
		return binary_open(fd, f->path->s, ret);
	return data && len == sizeof(struct binary_replay) ? binary_open_replay(data, f->path->s, ret) : -EIO;
}

static int files_take_answer(struct question *q, int fd, const void *data, size_t len)
{
	struct mapped_file *f = q->file;
	struct binary *b;
	int r = files_open_answer(f, fd, data, len, &b);

	if (r < 0)
		return r;
	if (!files_verify(f, b)) {
		binary_put(b);
		return -ESTALE;
	}
	if (fd >= 0 && len == sizeof(b->ticket))
		memcpy(&b->ticket, data, sizeof(b->ticket));
	binary_put(q->found);
	q->found = b;
	return 0;
}

/*
 * The last resort for a process that has ended with its root: a file of the
 * same build-id, opened for another process of its container. Any container
 * can claim a build-id.
 */
static void files_use_twin(struct question *q)
{
	q->found = binary_ref(files_find_twin(q->t, q->file));
}

/* --- the host's own file --- */

/* Beyond doubt: the kernel reported this inode. */
static bool files_is_mapped_inode(const struct mapped_file *f, const struct binary *b)
{
	return f->ino && b->dev == f->dev && b->ino == f->ino;
}

/* Where the kernel reported a build-id only, whoever is root in a container may replace its files anyway. */
static bool files_is_doubtful(const struct question *q)
{
	const struct mapped_file *f = q->file;

	return f->ino ? !files_is_mapped_inode(f, q->found) : !q->found->root_only;
}

static void files_ask_host(struct question *q)
{
	q->of_host = true;
	q->pid = HOST_PID;
	q->pid_start_ns = 0;
	q->alternate = 0;
	q->start = q->end = 0;
	files_request(q);
}

static int files_take_hosts(struct question *q, int fd, const void *data, size_t len)
{
	struct binary *found = steal_ptr(&q->found);
	int r = files_take_answer(q, fd, data, len);

	if (r == 0 && q->file->ino && !files_is_mapped_inode(q->file, q->found))
		q->found = binary_put(q->found);
	if (q->found)
		binary_put(found);
	else
		q->found = found;
	return r;
}

static uint32_t files_cgroup_neighbour(const struct process_table *t, const struct question *q)
{
	const struct cgroup_note *note = cgroup_note_find(t, q->file->container);
	const struct entry *e = note && note->pid != q->pid ? entry_get(t, note->pid) : NULL;

	return e && !e->p.exit_time_ns && e->p.cgroup_id == q->file->container ? e->p.pid : 0;
}

static bool files_has_proof(const struct mapped_file *f)
{
	return f->build_id_len || f->ino;
}

/*
 * The process whose root to search besides the process' own: one of its cgroup,
 * then its parent, then the host's first process.
 */
static uint32_t files_alternate_pid(const struct process_table *t, const struct question *q)
{
	if (!files_has_proof(q->file))
		return 0;
	switch (q->attempt) {
	case 0:
		return files_cgroup_neighbour(t, q);
	case 1:
		return q->ppid;
	}
	return HOST_PID;
}

static bool files_next_attempt(const struct process_table *t, struct question *q)
{
	uint32_t last = q->alternate;

	if (!files_has_proof(q->file))
		return false;
	while (++q->attempt < ATTEMPTS) {
		q->alternate = files_alternate_pid(t, q);
		if (q->alternate && q->alternate != last && q->alternate != q->pid)
			return true;
	}
	return false;
}

static bool files_is_elsewhere(int err)
{
	return err == -ESRCH || err == -ENOENT || err == -ESTALE || err == -EACCES;
}

/* false: the question is to be settled. */
static bool files_ask_again(struct question *q, int err)
{
	if (q->of_host)
		return false;
	if (err < 0 && files_is_elsewhere(err)) {
		if (files_next_attempt(q->t, q)) {
			files_request(q);
			return true;
		}
		files_use_twin(q);
		return false;
	}
	if (err < 0 || !files_is_doubtful(q))
		return false;
	files_ask_host(q);
	return true;
}

static void files_on_opened(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct question *q = ctx;
	struct process_table *t = q->t;

	if (err == 0)
		err = q->of_host ? files_take_hosts(q, fd, data, len) : files_take_answer(q, fd, data, len);
	else
		closep(&fd);
	if (files_ask_again(q, err))
		return;
	files_settle(q, err);
	files_pump(t);
}

static void files_defer(struct question *q)
{
	struct files *files = &q->t->files;

	if (files->later_count >= LATER_MAX) {
		files_settle(q, -EBUSY);
		return;
	}
	q->later = NULL;
	*files->later_end = q;
	files->later_end = &q->later;
	files->later_count++;
}

static int files_host_open(struct question *q)
{
	const struct mapped_file *f = q->file;
	struct host_request req = {
		.kind = HOST_OPEN_MAPPED,
		.pid = q->pid,
		.pid_start_ns = q->pid_start_ns,
		.start = q->start,
		.end = q->end,
		.ino = f->ino,
		.group = q->group,
		.alternate_pid = q->alternate,
		.path = f->path->s,
	};

	return host_ask(q->t->cfg.host, &req, files_on_opened, q);
}

/* Afterwards q may be freed: answered, or settled. false: the host has no room for this group, q is deferred. */
static bool files_request(struct question *q)
{
	int r = files_host_open(q);

	if (r == -EBUSY)
		files_defer(q);
	else if (r < 0)
		files_settle(q, r);
	return r != -EBUSY;
}

/* The list is taken over: an answer may arrive during a call, and lead to another question that is deferred. */
static struct question *files_take_deferred(struct files *files)
{
	struct question *first = files->later;

	files->later = NULL;
	files->later_end = &files->later;
	files->later_count = 0;
	return first;
}

/* In order, but a group for which the host has no room does not delay others. */
static void files_request_all(struct question *q)
{
	uint64_t refused = 0;
	bool room = true;

	for (struct question *next; q; q = next) {
		next = q->later;
		if (!room && q->group == refused) {
			files_defer(q);
			continue;
		}
		refused = q->group;
		room = files_request(q);
	}
}

void files_pump(struct process_table *t)
{
	struct files *files = &t->files;

	if (files->pumping || !files->later)
		return;
	files->pumping = true;
	files_request_all(files_take_deferred(files));
	files->pumping = false;
}

static bool files_may_open(struct process_table *t)
{
	if (binary_count() < t->cfg.limits.files)
		return true;
	files_drop_idle(t, 0);
	return binary_count() < t->cfg.limits.files;
}

static bool files_begin_open(struct process_table *t, struct process *p, const struct mapping *m)
{
	struct mapped_file *f = m->file;
	struct question *q;

	if (question_new(t, NULL, &q) < 0)
		return false;
	q->pid = p->pid;
	q->pid_start_ns = entry_start(container_of(p, struct entry, p));
	q->ppid = p->ppid;
	q->group = p->cgroup_id;
	q->start = m->start;
	q->end = m->end;
	q->file = mapped_file_ref(f);
	q->alternate = files_alternate_pid(t, q);
	f->state = MAPPED_OPENING;
	if (files_may_open(t))
		files_request(q);
	else
		files_settle(q, -EMFILE);
	return f->state == MAPPED_OPENING;
}

bool table_want_file(struct process_table *t, struct process *p, const struct mapping *m)
{
	struct mapped_file *f = m->file;

	if (f->state == MAPPED_OPENING)
		return true;
	if (f->state == MAPPED_READY)
		return false;
	if (f->state == MAPPED_FAILED && (!f->retry_ns || t->now_ns < f->retry_ns))
		return false;
	f->retry_ns = 0;
	return files_begin_open(t, p, m);
}
