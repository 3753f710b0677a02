// SPDX-License-Identifier: Apache-2.0
/*
 * The files behind mappings: one object for each that is meant, opened once,
 * on demand, through the host. The registry holds a reference to each file,
 * so that a program that comes and goes is opened once.
 */
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "process/table_internal.h"

#define FILES_MAX       16384
#define FILES_BYTES_MAX (8u << 20)
#define LATER_MAX       1024
#define IDLE_KEEP_NS    (60 * NSEC_PER_SEC)
#define SWEEP_EVERY_NS  (5 * NSEC_PER_SEC)
#define RETRY_FIRST_NS  NSEC_PER_SEC
#define RETRY_LONGEST_NS (64 * NSEC_PER_SEC)
#define ATTEMPTS        3
#define VDSO_BYTES_MAX  65536u
#define DELETED         " (deleted)"

struct classified {
	enum mapped_kind kind;
	const char *path;
	size_t len;
	bool deleted;
};

static bool begins(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

static bool is(const char *s, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(s, what, len);
}

/* Shared memory, device memory and the like have names, but no file of code. */
static bool is_anonymous(const char *s, size_t len)
{
	return !len || s[0] != '/' || begins(s, len, "//anon") || begins(s, len, "/dev/zero") ||
	       begins(s, len, "/SYSV") || begins(s, len, "/anon_hugepage") || begins(s, len, "/[aio]");
}

static struct classified classify(const char *path, size_t len)
{
	struct classified c = {MAPPED_FILE, path, len, false};
	size_t n = sizeof(DELETED) - 1;

	if (is(path, len, "[vdso]"))
		c.kind = MAPPED_VDSO;
	else if (is(path, len, "[vsyscall]"))
		c.kind = MAPPED_VSYSCALL;
	else if (is_anonymous(path, len))
		c.kind = MAPPED_ANON;
	else if (begins(path, len, "/memfd:"))
		c.kind = MAPPED_MEMFD;
	if (c.kind == MAPPED_ANON && !is(path, len, "[stack]") && !is(path, len, "[heap]")) {
		c.path = "//anon";
		c.len = strlen(c.path);
	}
	if ((c.kind == MAPPED_FILE || c.kind == MAPPED_MEMFD) && len > n && !memcmp(path + len - n, DELETED, n)) {
		c.len -= n;
		c.deleted = true;
	}
	return c;
}

static bool has_file(const struct classified *c)
{
	return c->kind == MAPPED_FILE || c->kind == MAPPED_MEMFD;
}

/* A path means the same file only within a container; device and inode do everywhere. */
static uint64_t scope_of(const struct file_name *n)
{
	return n->ino ? 0 : n->container;
}

static uint64_t key_of(const struct classified *c, const struct file_name *n)
{
	const uint64_t ids[] = {n->dev, n->ino, n->ino_generation, scope_of(n), c->deleted};
	uint64_t key = hash_bytes(c->path, c->len, c->kind);

	if (!has_file(c))
		return key;
	key = hash_bytes(ids, sizeof(ids), key);
	return hash_bytes(n->build_id, n->build_id_len, key);
}

static bool same_file(const struct mapped_file *f, const struct classified *c, const struct file_name *n)
{
	if (f->kind != c->kind || f->path->len != c->len || memcmp(f->path->s, c->path, c->len) != 0)
		return false;
	if (!has_file(c))
		return true;
	return f->dev == n->dev && f->ino == n->ino && f->ino_generation == n->ino_generation &&
	       f->deleted == c->deleted && (f->ino || f->container == n->container) &&
	       f->build_id_len == n->build_id_len &&
	       (!n->build_id_len || !memcmp(f->build_id, n->build_id, n->build_id_len));
}

static void fail(struct mapped_file *f, int err)
{
	f->state = MAPPED_FAILED;
	f->error = err;
}

static struct mapped_file *file_make(const struct classified *c, const struct file_name *n)
{
	struct mapped_file *f = mapped_file_new(c->kind, c->path, c->len);

	if (!f)
		return NULL;
	f->deleted = c->deleted;
	f->container = n->container;
	if (has_file(c)) {
		f->dev = n->dev;
		f->ino = n->ino;
		f->ino_generation = n->ino_generation;
		f->build_id_len = n->build_id_len;
		if (n->build_id_len)
			memcpy(f->build_id, n->build_id, n->build_id_len);
	} else {
		fail(f, -ENOENT);
	}
	return f;
}

static int registry_add(struct files *files, uint64_t key, struct mapped_file *f)
{
	f->next = map_find_ptr(&files->by_key, key);
	if (map_put_ptr(&files->by_key, key, f) < 0)
		return -ENOMEM;
	files->count++;
	files->bytes += f->path->len;
	return 0;
}

static struct mapped_file *registry_find(const struct files *files, uint64_t key, const struct classified *c,
					 const struct file_name *n)
{
	struct mapped_file *f = map_find_ptr(&files->by_key, key);

	while (f && !same_file(f, c, n))
		f = f->next;
	return f;
}

static void registry_release(struct files *files, struct mapped_file *f)
{
	files->count--;
	files->bytes -= f->path->len;
	mapped_file_put(f);
}

/* Nobody else holds it, so no sample waits for it and no question is open. */
static bool is_idle(const struct mapped_file *f)
{
	return f->refs == 1 && (f->kind == MAPPED_FILE || f->kind == MAPPED_MEMFD);
}

static bool note_idle(struct mapped_file *f, uint64_t now_ns, uint64_t keep_ns)
{
	if (!is_idle(f)) {
		f->idle_since_ns = 0;
		return false;
	}
	if (!f->idle_since_ns)
		f->idle_since_ns = now_ns;
	return now_ns - f->idle_since_ns >= keep_ns;
}

/* Lets go of the files that have been idle for so long; keys that end up without one go too. */
static void registry_sweep(struct process_table *t, uint64_t keep_ns)
{
	struct map keep = {0};

	map_for_each(&t->files.by_key, slot) {
		struct mapped_file *f = (struct mapped_file *)(uintptr_t)slot->value, *next, *left = NULL;

		for (; f; f = next) {
			next = f->next;
			if (note_idle(f, t->now_ns, keep_ns)) {
				registry_release(&t->files, f);
			} else {
				f->next = left;
				left = f;
			}
		}
		/* Without memory for the new map the files stay, unfindable, until their last mapping goes. */
		if (left && map_put_ptr(&keep, slot->key, left) < 0)
			for (; left; left = next) {
				next = left->next;
				registry_release(&t->files, left);
			}
	}
	map_done(&t->files.by_key);
	t->files.by_key = keep;
}

void files_sweep(struct process_table *t)
{
	if (t->now_ns - t->files.swept_ns < SWEEP_EVERY_NS)
		return;
	t->files.swept_ns = t->now_ns;
	registry_sweep(t, IDLE_KEEP_NS);
}

static bool registry_full(const struct files *files, size_t len)
{
	return files->count >= FILES_MAX || files->bytes + len > FILES_BYTES_MAX;
}

struct mapped_file *files_get(struct process_table *t, const struct file_name *name)
{
	struct classified c = classify(name->path, name->path_len);
	uint64_t key = key_of(&c, name);
	struct mapped_file *f = registry_find(&t->files, key, &c, name);

	if (f)
		return mapped_file_ref(f);
	if (registry_full(&t->files, c.len))
		registry_sweep(t, 0);
	if (registry_full(&t->files, c.len))
		return NULL;
	f = file_make(&c, name);
	if (!f)
		return NULL;
	if (registry_add(&t->files, key, f) < 0)
		return mapped_file_put(f);
	return mapped_file_ref(f);
}

/* Our own vDSO: the kernel gives every process the same one. */
static int open_own_vdso(struct binary **ret)
{
	const Elf64_Ehdr *head = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t len;

	if (!head)
		return -ENOENT;
	/* The section table ends the image. */
	len = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
	return len <= VDSO_BYTES_MAX ? binary_open_memory(head, len, "[vdso]", ret) : -E2BIG;
}

int files_init(struct process_table *t)
{
	static const struct file_name vdso = {.path = "[vdso]", .path_len = 6};
	struct mapped_file *f = files_get(t, &vdso);
	int r;

	t->files.later_end = &t->files.later;
	if (!f)
		return -ENOMEM;
	f->binary = binary_ref(t->cfg.vdso);
	r = f->binary ? 0 : open_own_vdso(&f->binary);
	f->state = r < 0 ? MAPPED_FAILED : MAPPED_READY;
	f->error = r;
	mapped_file_put(f);
	return 0;
}

void files_done(struct process_table *t)
{
	map_for_each(&t->files.by_key, slot) {
		struct mapped_file *f = (struct mapped_file *)(uintptr_t)slot->value, *next;

		for (; f; f = next) {
			next = f->next;
			mapped_file_put(f);
		}
	}
	map_done(&t->files.by_key);
}

/* Worth another try later, perhaps through another process. */
static bool is_passing(int err)
{
	return err != -EPERM && err != -ESTALE && err != -EIO;
}

static void settle(struct question *q, int err)
{
	struct process_table *t = q->t;
	struct mapped_file *f = mapped_file_ref(q->file);

	question_free(q);
	if (err < 0)
		fail(f, err);
	else
		f->state = MAPPED_READY;
	if (err < 0 && is_passing(err)) {
		f->retry_wait_ns = f->retry_wait_ns ? MIN(2 * f->retry_wait_ns, RETRY_LONGEST_NS) : RETRY_FIRST_NS;
		f->retry_ns = t->now_ns + f->retry_wait_ns;
	}
	if (t->cfg.file_settled)
		t->cfg.file_settled(t->cfg.ctx, f);
	mapped_file_put(f);
}

/*
 * Is it the file that the mapping names? What came by the process itself is
 * the host's word; what may have come by another's root must show an
 * identity. Devices differ between /proc and stat (overlay, btrfs), inodes do
 * not.
 */
static bool verify(const struct question *q, const struct binary *b)
{
	const struct mapped_file *f = q->file;

	if (f->build_id_len)
		return b->build_id_len == f->build_id_len && !memcmp(b->build_id, f->build_id, f->build_id_len);
	return !q->alternate || b->ino == f->ino;
}

static int take_fd(struct question *q, int fd)
{
	struct mapped_file *f = q->file;
	struct binary *b;
	int r = binary_open(fd, f->path->s, &b);

	if (r < 0)
		return r;
	if (!verify(q, b)) {
		binary_put(b);
		return -ESTALE;
	}
	f->binary = b;
	return 0;
}

/* The last resort of a process that is gone with its root: the same build, open for somebody else. */
static bool take_twin(struct mapped_file *f)
{
	f->binary = binary_ref(binary_find_build_id(f->build_id, f->build_id_len));
	return f->binary != NULL;
}

static uint32_t cgroup_neighbour(const struct process_table *t, const struct question *q)
{
	const struct cgroup_note *note = cgroup_note_find(t, q->file->container);
	const struct entry *e = note && note->pid != q->pid ? entry_get(t, note->pid) : NULL;

	return e && !e->p.exit_time_ns && e->p.cgroup_id == q->file->container ? e->p.pid : 0;
}

static bool has_proof(const struct mapped_file *f)
{
	return f->build_id_len || f->ino;
}

/*
 * Whose root to look into besides the process' own: somebody of its cgroup,
 * then its parent, then the host's first process.
 */
static uint32_t alternate_for(const struct process_table *t, const struct question *q)
{
	if (!has_proof(q->file))
		return 0;
	switch (q->attempt) {
	case 0:
		return cgroup_neighbour(t, q);
	case 1:
		return q->ppid;
	}
	return 1;
}

static bool next_attempt(const struct process_table *t, struct question *q)
{
	uint32_t last = q->alternate;

	if (!has_proof(q->file))
		return false;
	while (++q->attempt < ATTEMPTS) {
		q->alternate = alternate_for(t, q);
		if (q->alternate && q->alternate != last && q->alternate != q->pid)
			return true;
	}
	return false;
}

static bool is_elsewhere(int err)
{
	return err == -ESRCH || err == -ENOENT || err == -ESTALE || err == -EACCES;
}

static void ask(struct question *q);

static void on_opened(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct question *q = ctx;
	struct process_table *t = q->t;

	if (err == 0)
		err = fd >= 0 ? take_fd(q, fd) : -EIO;
	else
		closep(&fd);
	if (err < 0 && is_elsewhere(err)) {
		if (next_attempt(t, q)) {
			ask(q);
			return;
		}
		if (take_twin(q->file))
			err = 0;
	}
	settle(q, err);
	files_pump(t);
}

static void put_off(struct question *q)
{
	struct files *files = &q->t->files;

	if (files->later_count >= LATER_MAX) {
		settle(q, -EBUSY);
		return;
	}
	q->later = NULL;
	*files->later_end = q;
	files->later_end = &q->later;
	files->later_count++;
}

static int host_open(struct question *q)
{
	const struct mapped_file *f = q->file;
	struct host_request req = {
		.kind = HOST_OPEN_MAPPED,
		.pid = q->pid,
		.start = q->start,
		.end = q->end,
		.dev = f->dev,
		.ino = f->ino,
		.alternate_pid = q->alternate,
		.path = f->path->s,
	};

	return host_ask(q->t->cfg.host, &req, on_opened, q);
}

/* Afterwards q may be gone: answered, or settled. */
static void ask(struct question *q)
{
	int r = q->t->files.later ? -EBUSY : host_open(q);

	if (r == -EBUSY)
		put_off(q);
	else if (r < 0)
		settle(q, r);
}

void files_pump(struct process_table *t)
{
	struct files *files = &t->files;

	if (files->pumping)
		return;
	files->pumping = true;
	while (files->later) {
		struct question *q = files->later;
		int r;

		/* Out of the queue first: the answer may come in the call. */
		files->later = q->later;
		if (!files->later)
			files->later_end = &files->later;
		files->later_count--;
		r = host_open(q);
		if (r == -EBUSY) {
			q->later = files->later;
			files->later = q;
			if (!q->later)
				files->later_end = &q->later;
			files->later_count++;
			break;
		}
		if (r < 0)
			settle(q, r);
	}
	files->pumping = false;
}

static bool room_for_another(struct process_table *t)
{
	if (binary_count() < t->cfg.limits.files)
		return true;
	registry_sweep(t, 0);
	return binary_count() < t->cfg.limits.files;
}

static bool begin(struct process_table *t, struct process *p, const struct mapping *m)
{
	struct mapped_file *f = m->file;
	struct question *q;

	if (question_new(t, NULL, &q) < 0)
		return false;
	q->pid = p->pid;
	q->ppid = p->ppid;
	q->start = m->start;
	q->end = m->end;
	q->file = mapped_file_ref(f);
	q->alternate = alternate_for(t, q);
	f->state = MAPPED_OPENING;
	if (room_for_another(t))
		ask(q);
	else
		settle(q, -EMFILE);
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
	return begin(t, p, m);
}
