// SPDX-License-Identifier: Apache-2.0
#include "process/binary.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "process/elf_parse.h"
#include "process/page_cache.h"
#include "process/sha256.h"

#define HTL_PART 4096u

/* A binary and the source of its bytes: a file, memory, or a capture. */
struct binary_file {
	struct binary b;
	int fd;
	void *image; /* owned */
	struct binary_replay replay;
	struct page_source source;
	bool listed;
	struct binary_file *next_same; /* same hash of identity */
};

/*
 * All open binaries, one object per file. The map belongs to the process: caches compare binaries by pointer and by
 * id, so a second map would make two of one file. One thread opens and reads binaries.
 */
static struct map by_identity;
static uint32_t open_count;
static uint32_t last_id;
/* A capture records every page that is read, whoever reads it; so there is one hook, set before the first read. */
static binary_page_hook_fn *page_hook;
static void *page_hook_ctx;

static struct binary_file *file_of(struct binary *b)
{
	return container_of(b, struct binary_file, b);
}

static uint64_t binary_identity_hash(const struct binary *b)
{
	const uint64_t id[] = {b->dev, b->ino, b->size, b->ctime_ns, (uintptr_t)b->path};

	return hash_bytes(id, sizeof(id), 1);
}

/* As it was when both were opened. */
static bool binary_has_same_inode(const struct binary *a, const struct binary *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->ctime_ns == b->ctime_ns;
}

bool binary_is_same_file(const struct binary *a, const struct binary *b)
{
	return a == b || (a->ino && binary_has_same_inode(a, b));
}

static bool binary_identity_equal(const struct binary *a, const struct binary *b)
{
	return binary_has_same_inode(a, b) && a->path == b->path;
}

static struct binary_file *binary_find_same(const struct binary *b)
{
	struct binary_file *f = map_find_ptr(&by_identity, binary_identity_hash(b));

	while (f && !binary_identity_equal(&f->b, b))
		f = f->next_same;
	return f;
}

/* true: another reference to the object that has this identity and path. */
static bool binary_get_open(struct binary *id, const char *path, struct binary **ret)
{
	struct binary_file *same;

	id->path = str_get_c(path);
	same = binary_find_same(id);
	id->path = str_put(id->path);
	if (same)
		*ret = binary_ref(&same->b);
	return same;
}

static int binary_list_add(struct binary_file *f)
{
	uint64_t hash = binary_identity_hash(&f->b);

	f->next_same = map_find_ptr(&by_identity, hash);
	if (map_put_ptr(&by_identity, hash, f) < 0)
		return -ENOMEM;
	f->listed = true;
	return 0;
}

static void binary_list_remove(struct binary_file *f)
{
	uint64_t hash = binary_identity_hash(&f->b);
	struct binary_file *at = map_find_ptr(&by_identity, hash);

	if (at != f) {
		while (at->next_same != f)
			at = at->next_same;
		at->next_same = f->next_same;
	} else if (f->next_same) {
		*map_find(&by_identity, hash) = (uint64_t)(uintptr_t)f->next_same;
	} else {
		map_remove(&by_identity, hash);
	}
	if (!by_identity.count)
		map_done(&by_identity);
}

static ssize_t pread_all(int fd, uint64_t offset, void *to, size_t len)
{
	ssize_t n;

	do
		n = pread(fd, to, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Below the page cache: reads a page from the source. */
static ssize_t binary_source_read(void *ctx, uint64_t offset, void *to, size_t len)
{
	struct binary_file *f = ctx;
	ssize_t n;

	if (f->fd < 0)
		return f->replay.read(f->replay.ctx, offset, to, len);
	n = pread_all(f->fd, offset, to, len);
	if (n > 0 && page_hook)
		page_hook(page_hook_ctx, &f->b, offset, to, (size_t)n);
	return n;
}

static struct binary *file_free(struct binary_file *f)
{
	struct binary *b = &f->b;

	for (int i = 0; i < BINARY_SLOT_NR; i++)
		if (b->slot[i] && b->slot_free[i])
			b->slot_free[i](b->slot[i]);
	if (f->listed)
		binary_list_remove(f);
	page_cache_drop(&f->source);
	closep(&f->fd);
	free(f->image);
	free(b->segments);
	free(b->sections);
	str_put(b->path);
	free(f);
	open_count--;
	return NULL;
}

static void file_freep(struct binary_file **f)
{
	if (*f)
		file_free(*f);
}

static struct binary_file *file_new(const char *path)
{
	struct binary_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	open_count++;
	f->fd = -1;
	f->b.refs = 1;
	f->b.id = ++last_id;
	f->b.path = str_get_c(path);
	f->source = (struct page_source){.id = f->b.id, .read = binary_source_read, .ctx = f};
	return f->b.path ? f : (struct binary_file *)file_free(f);
}

static void htlhash_add_part(struct binary *b, struct sha256 *h, uint64_t offset)
{
	uint8_t part[HTL_PART];
	ssize_t n = binary_read(b, offset, part, sizeof(part));

	if (n > 0)
		sha256_add(h, part, (size_t)n);
}

static void hash_head_tail_length(struct binary *b)
{
	uint8_t digest[SHA256_LEN];
	uint64_t be = __builtin_bswap64(b->size);
	struct sha256 h;

	sha256_init(&h);
	htlhash_add_part(b, &h, 0);
	htlhash_add_part(b, &h, b->size > HTL_PART ? b->size - HTL_PART : 0);
	sha256_add(&h, &be, sizeof(be));
	sha256_end(&h, digest);
	memcpy(b->htlhash, digest, sizeof(b->htlhash));
}

/* The last step of all three ways to open. */
static int file_finish(struct binary_file *f)
{
	int r = elf_parse(&f->b);

	if (r < 0)
		return r;
	hash_head_tail_length(&f->b);
	return 0;
}

/* A new file joins the list, where its identity finds it. On success *f is *ret's. */
static int binary_publish(struct binary_file **f, struct binary **ret)
{
	int r = binary_list_add(*f);

	if (r == 0)
		r = file_finish(*f);
	if (r < 0)
		return r;
	*ret = &steal_ptr(f)->b;
	return 0;
}

static int binary_set_identity(struct binary *b, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EIO;
	b->dev = st.st_dev;
	b->ino = st.st_ino;
	b->size = (uint64_t)st.st_size;
	b->root_only = !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
	b->ctime_ns = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	return 0;
}

int binary_open(int fd, const char *path, struct binary **ret)
{
	_cleanup_(closep) int own = fd;
	_cleanup_(file_freep) struct binary_file *f = NULL;
	struct binary id = {0};
	int r;

	r = binary_set_identity(&id, fd);
	if (r < 0)
		return r;
	if (binary_get_open(&id, path, ret))
		return 0;
	f = file_new(path);
	if (!f)
		return -ENOMEM;
	binary_set_identity(&f->b, fd);
	f->fd = steal_fd(&own);
	return binary_publish(&f, ret);
}

int binary_open_memory(const void *image, size_t len, const char *name, struct binary **ret)
{
	_cleanup_(file_freep) struct binary_file *f = file_new(name);
	int r;

	if (!f || !(f->image = malloc(len ? len : 1)))
		return -ENOMEM;
	memcpy(f->image, image, len);
	f->b.size = len;
	r = file_finish(f);
	if (r < 0)
		return r;
	*ret = &steal_ptr(&f)->b;
	return 0;
}

int binary_open_replay(const struct binary_replay *replay, const char *path, struct binary **ret)
{
	_cleanup_(file_freep) struct binary_file *f = NULL;
	struct binary id = {.dev = replay->dev, .ino = replay->ino, .size = replay->size,
			    .ctime_ns = replay->ctime_ns};

	if (binary_get_open(&id, path, ret))
		return 0;
	f = file_new(path);
	if (!f)
		return -ENOMEM;
	f->b.dev = id.dev;
	f->b.ino = id.ino;
	f->b.size = id.size;
	f->b.ctime_ns = id.ctime_ns;
	f->b.root_only = true;
	f->replay = *replay;
	return binary_publish(&f, ret);
}

int binary_fd(const struct binary *b)
{
	return container_of(b, struct binary_file, b)->fd;
}

struct binary *binary_ref(struct binary *b)
{
	if (b)
		b->refs++;
	return b;
}

struct binary *binary_put(struct binary *b)
{
	if (b && --b->refs == 0)
		file_free(file_of(b));
	return NULL;
}

static ssize_t binary_image_read(const struct binary_file *f, uint64_t offset, void *to, size_t len)
{
	if (offset >= f->b.size)
		return 0;
	len = MIN(len, f->b.size - offset);
	memcpy(to, (const uint8_t *)f->image + offset, len);
	return (ssize_t)len;
}

ssize_t binary_read(struct binary *b, uint64_t offset, void *to, size_t len)
{
	struct binary_file *f = file_of(b);

	return f->image ? binary_image_read(f, offset, to, len) : page_cache_read(&f->source, offset, to, len);
}

ssize_t binary_read_vaddr(struct binary *b, uint64_t vaddr, void *to, size_t len)
{
	for (uint16_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];
		uint64_t in = vaddr - s->vaddr;

		if (vaddr >= s->vaddr && in < s->filesz)
			return binary_read(b, s->offset + in, to, MIN(len, s->filesz - in));
	}
	return -EFAULT;
}

const struct binary_section *binary_section(const struct binary *b, const char *name)
{
	for (uint16_t i = 0; i < b->nr_sections; i++)
		if (!strncmp(b->sections[i].name, name, sizeof(b->sections[i].name) - 1))
			return &b->sections[i];
	return NULL;
}

static const struct binary_segment *binary_segment_of_offset(const struct binary *b, uint64_t offset, uint32_t flags)
{
	for (uint16_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];

		if ((s->flags & flags) == flags && offset >= s->offset && offset - s->offset < s->filesz)
			return s;
	}
	return NULL;
}

/*
 * The kernel maps whole pages, so two segments may show the same bytes: an
 * executable segment is preferred, as code is looked up.
 */
bool binary_offset_to_vaddr(const struct binary *b, uint64_t offset, uint64_t *ret_vaddr)
{
	const struct binary_segment *s = binary_segment_of_offset(b, offset, PF_X);

	if (!s)
		s = binary_segment_of_offset(b, offset, 0);
	if (!s)
		return false;
	*ret_vaddr = s->vaddr + (offset - s->offset);
	return true;
}

bool binary_is_code(const struct binary *b, uint64_t vaddr)
{
	for (uint16_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];

		if (s->flags & PF_X && vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
			return true;
	}
	return false;
}

uint32_t binary_count(void)
{
	return open_count;
}

void binary_cache_limit(size_t bytes)
{
	page_cache_limit(bytes);
}

size_t binary_cache_used(void)
{
	return page_cache_used();
}

void binary_set_page_hook(binary_page_hook_fn *fn, void *ctx)
{
	page_hook = fn;
	page_hook_ctx = ctx;
}
