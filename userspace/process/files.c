// SPDX-License-Identifier: Apache-2.0
/*
 * The files behind mappings: one object for each that is meant. The registry
 * holds a reference to each, so that a program that comes and goes is opened
 * once.
 */
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "process/table_internal.h"

#define FILES_MAX       16384
#define FILES_BYTES_MAX (8u << 20)
#define IDLE_KEEP_NS    (60 * NSEC_PER_SEC)
#define SWEEP_EVERY_NS  (5 * NSEC_PER_SEC)
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
void files_drop_idle(struct process_table *t, uint64_t keep_ns)
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
	files_drop_idle(t, IDLE_KEEP_NS);
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
		files_drop_idle(t, 0);
	if (registry_full(&t->files, c.len))
		return NULL;
	f = file_make(&c, name);
	if (!f)
		return NULL;
	if (registry_add(&t->files, key, f) < 0)
		return mapped_file_put(f);
	return mapped_file_ref(f);
}

static bool is_twin(const struct mapped_file *f, const struct mapped_file *of)
{
	const struct binary *b = f->state == MAPPED_READY ? f->binary : NULL;

	return b && b->root_only && f->container == of->container && b->build_id_len == of->build_id_len &&
	       !memcmp(b->build_id, of->build_id, of->build_id_len);
}

struct binary *files_find_twin(const struct process_table *t, const struct mapped_file *of)
{
	if (!of->build_id_len)
		return NULL;
	map_for_each(&t->files.by_key, slot)
		for (struct mapped_file *f = (struct mapped_file *)(uintptr_t)slot->value; f; f = f->next)
			if (is_twin(f, of))
				return f->binary;
	return NULL;
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
