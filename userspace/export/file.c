// SPDX-License-Identifier: Apache-2.0
/*
 * file:///DIR: every request becomes one file, otprof-<unix ms>-<id>.otlp,
 * written under a temporary name and renamed, so that readers of the directory
 * see whole files only. Not synced: a crash of the host may lose what the page
 * cache held, a crash of the process does not. A write blocks the loop for as
 * long as the disk takes.
 *
 * With file_keep, the names of existing files are held in memory, oldest first;
 * they are read from the directory once, when it is opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "export/transport.h"

#define FILE_NAME_MAX 64
#define FILE_MODE     0640

/* Bounds the memory of kept names: 16 MiB. */
#define FILE_KEEP_MAX (1u << 20)

struct file_key { /* the numbers in a file's name; ordered by age */
	uint64_t ms, id;
};

struct file {
	struct transport base;
	const struct export_config *cfg;
	int dir;
	struct file_key *kept; /* ring, oldest at first */
	uint32_t first, count, room;
};

struct file_keys {
	struct file_key *keys; /* owned */
	uint32_t n, cap;
};

static const char *file_path_of(const struct export_config *cfg)
{
	return cfg->endpoint + strlen(transport_file.scheme);
}

static void file_name_of(const struct file_key *key, char name[FILE_NAME_MAX])
{
	snprintf(name, FILE_NAME_MAX, "otprof-%013llu-%08llu.otlp", (unsigned long long)key->ms,
		 (unsigned long long)key->id);
}

/* Only names that we would make ourselves are ours: such a name is printed from its key again. */
static bool file_is_ours(const char *name, struct file_key *ret)
{
	unsigned long long ms, id;
	char again[FILE_NAME_MAX];

	if (sscanf(name, "otprof-%19llu-%19llu", &ms, &id) != 2)
		return false;
	*ret = (struct file_key){.ms = ms, .id = id};
	file_name_of(ret, again);
	return !strcmp(name, again);
}

/* A temporary name of file_replace, left by a process that ended in between. */
static bool file_is_leftover(const char *name)
{
	size_t n = strlen(name);

	return n > 12 && !strncmp(name, ".otprof-", 8) && !strcmp(name + n - 4, ".tmp");
}

static int file_compare_age(const void *a, const void *b)
{
	const struct file_key *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Adds the newest file; the oldest is removed for it. */
static void file_keep(struct file *f, const struct file_key *key)
{
	char name[FILE_NAME_MAX];

	if (!f->room)
		return;
	if (f->count == f->room) {
		file_name_of(&f->kept[f->first], name);
		unlinkat(f->dir, name, 0);
		f->first = (f->first + 1) % f->room;
		f->count--;
	}
	f->kept[(f->first + f->count++) % f->room] = *key;
}

static int file_keys_add(struct file_keys *k, const struct file_key *key)
{
	if (k->n == FILE_KEEP_MAX)
		return 0;
	if (array_reserve(&k->keys, k->n, &k->cap, sizeof(*k->keys)) < 0)
		return -ENOMEM;
	k->keys[k->n++] = *key;
	return 0;
}

/* Removes files that an earlier process left half written; counts those that it finished. */
static int file_scan(struct file *f, DIR *dir, struct file_keys *keys)
{
	struct dirent *entry;
	struct file_key key;
	int rc = 0;

	while (!rc && (entry = readdir(dir))) {
		if (file_is_leftover(entry->d_name))
			unlinkat(f->dir, entry->d_name, 0);
		else if (f->room && file_is_ours(entry->d_name, &key))
			rc = file_keys_add(keys, &key);
	}
	return rc;
}

static int file_scan_dir(struct file *f)
{
	int rc, fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct file_keys keys = {0};

	if (!dir) {
		rc = -errno;
		closep(&fd);
		return rc;
	}
	rc = file_scan(f, dir, &keys);
	closedir(dir);
	if (keys.n)
		qsort(keys.keys, keys.n, sizeof(*keys.keys), file_compare_age);
	for (size_t i = 0; i < keys.n; i++)
		file_keep(f, &keys.keys[i]);
	free(keys.keys);
	return rc;
}

/* By the path first: the directory there may have been made anew. */
static int file_open_path(const struct export_config *cfg)
{
	int fd = open(file_path_of(cfg), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES && cfg->file_dir > 0)
		fd = openat(cfg->file_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int file_open_dir(struct file *f)
{
	int rc;

	if (f->dir >= 0)
		return 0;
	f->dir = file_open_path(f->cfg);
	if (f->dir < 0)
		return f->dir;
	f->first = f->count = 0;
	rc = file_scan_dir(f);
	if (rc < 0)
		close(steal_fd(&f->dir));
	return rc;
}

static int file_deliver(struct file *f, const struct body *body)
{
	struct file_key key = {.ms = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_MSEC, .id = body->id};
	char name[FILE_NAME_MAX];
	int rc = file_open_dir(f);

	if (rc < 0)
		return rc;
	file_name_of(&key, name);
	rc = file_replace(f->dir, name, FILE_MODE, body->data, body->len, NULL, NULL);
	if (!rc)
		file_keep(f, &key);
	else if (rc == -ENOENT || rc == -ESTALE) /* removed, and perhaps made again: opened anew */
		close(steal_fd(&f->dir));
	return rc;
}

static int file_send(struct transport *t, const struct body *body, struct outcome *ret_outcome)
{
	struct file *f = container_of(t, struct file, base);
	char text[RESPONSE_TEXT];
	int rc = file_deliver(f, body);

	*ret_outcome = (struct outcome){.kind = OUTCOME_DELIVERED};
	if (rc < 0) {
		snprintf(text, sizeof(text), "writing to %.60s: %s", file_path_of(f->cfg), strerrordesc_np(-rc));
		outcome_retry(ret_outcome, false, text);
	}
	return 1;
}

static bool file_abort(struct transport *t)
{
	return false; /* send has ended when it returns */
}

static void file_close(struct transport *t)
{
	struct file *f = container_of(t, struct file, base);

	closep(&f->dir);
	free(f->kept);
	free(f);
}

static int file_open(const struct export_config *cfg, struct transport_host *host, outcome_fn *done, void *ctx,
		     struct transport **ret)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	*f = (struct file){.base.ops = &transport_file, .cfg = cfg, .dir = -1};
	f->room = MIN(cfg->file_keep, FILE_KEEP_MAX);
	if (f->room && !(f->kept = calloc(f->room, sizeof(*f->kept)))) {
		free(f);
		return -ENOMEM;
	}
	/* A directory that does not exist is tried again with each request. */
	file_open_dir(f);
	*ret = &f->base;
	return 0;
}

/* Without file_dir: the descriptor is read from the configuration only when the path cannot be opened. */
static bool file_same(const struct export_config *a, const struct export_config *b)
{
	return !strcmp(a->endpoint, b->endpoint) && a->file_keep == b->file_keep;
}

static int file_check(const struct export_config *cfg, char why[EXPORT_WHY])
{
	if (file_path_of(cfg)[0] != '/')
		snprintf(why, EXPORT_WHY, "bad directory, expected file:///DIR with an absolute path");
	else if (cfg->file_keep > FILE_KEEP_MAX)
		snprintf(why, EXPORT_WHY, "keep_files is too large, expected at most %u", FILE_KEEP_MAX);
	else
		return 0;
	return -EINVAL;
}

const struct transport_ops transport_file = {
	.scheme = EXPORT_FILE_SCHEME,
	.local = true,
	.expired = OTP_LOSS_WRITE,
	.stopped = OTP_LOSS_WRITE,
	.check = file_check,
	.open = file_open,
	.same = file_same,
	.close = file_close,
	.send = file_send,
	.abort = file_abort,
};
