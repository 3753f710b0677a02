// SPDX-License-Identifier: Apache-2.0
/*
 * Address indexes of files: the engine's question passes the file; a cached
 * index is sent at once, any other is made by an indexer, a process for one
 * file at a time. The engine does not wait for the answer. A file that kills
 * the indexer is tried once more with the symbol tables alone, and then not
 * again for a day. Where the disk is full, no failure is recorded for the
 * file, and no index is tried for a minute.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/cache/index_cache.h"
#include "daemon/monitor/monitor.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "source/pids.h"
#include "symbol/index.h"

#define JOBS_MAX     64
#define JOB_LIMIT_NS (600 * NSEC_PER_SEC)
#define NO_DISK_NS   (60 * NSEC_PER_SEC)
#define DISK_LOG_NS (3600 * NSEC_PER_SEC) /* on a nearly full disk small files can be made, and large ones not */

struct index_task {
	struct index_task *next;
	uint64_t tag;
	bool wanted; /* the engine that asked is alive */
	bool symbols_only;
	int fd; /* the ELF file */
	uint32_t pid;
	uint64_t content[2];
	char key[INDEX_KEY_MAX];
	char path[];
};

struct index_jobs {
	int dir;
	char path[1100];
	char settings[1200]; /* the settings that an index depends on besides its file */
	struct index_task *first, **last; /* the indexer, if it runs, has the first */
	uint32_t count;
	uint64_t deadline_ns;
	int index_fd, scratch_fd; /* of the indexer's; -1 */
	struct ipc_indexed result;
	bool has_result;
	int new_err;	     /* no file could be made for the indexer */
	int disk_err;	     /* of the last index; 0: it was stored */
	uint64_t disk_retry_ns, disk_logged_ns;
	bool disk_logged; /* and its end is not logged yet */
};

int index_jobs_open(struct monitor *m)
{
	const struct config *c = m->config;
	struct index_jobs *j;
	char path[1100];
	int dir;

	if (!c->symbols_cache_bytes)
		return 0;
	snprintf(path, sizeof(path), "%s", c->symbols_cache_dir);
	dir = index_cache_open(path);
	/* An ordinary user has no such directory, and a recording needs it only while it runs. */
	if (dir < 0 && sandbox_ordinary()) {
		snprintf(path, sizeof(path), "%s/symbols", c->runtime_dir);
		dir = index_cache_open(path);
	}
	if (dir < 0) {
		log_warn("%s cannot be used (%s): no inlined calls and no lines, names from symbol tables only",
			 c->symbols_cache_dir, strerror(-dir));
		return 0;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		close(dir);
		return -ENOMEM;
	}
	j->dir = dir;
	memcpy(j->path, path, sizeof(j->path));
	j->last = &j->first;
	j->index_fd = j->scratch_fd = -1;
	snprintf(j->settings, sizeof(j->settings), "%d.%d %d %d %s", INDEX_VERSION, INDEX_MAKER, c->symbols_inline,
		 c->symbols_lines, c->symbols_debug_dirs);
	disk_cache_trim(dir, c->symbols_cache_bytes);
	m->index = j;
	return 0;
}

static void index_jobs_task_free(struct index_task *t)
{
	close(t->fd);
	free(t);
}

static void index_jobs_close_files(struct index_jobs *j)
{
	closep(&j->index_fd);
	closep(&j->scratch_fd);
	j->index_fd = j->scratch_fd = -1;
}

void index_jobs_close(struct monitor *m)
{
	struct index_jobs *j = m->index;

	if (!j)
		return;
	while (j->first) {
		struct index_task *t = j->first;

		j->first = t->next;
		index_jobs_task_free(t);
	}
	index_jobs_close_files(j);
	close(j->dir);
	free(j);
	m->index = NULL;
}

/* --- questions and answers --- */

static void index_jobs_answer(struct monitor *m, uint64_t tag, int err, int fd)
{
	const struct ipc_answer a = {.err = err};

	/* If the engine's socket has no room, the engine asks again later. */
	if (m->workers.engine.sock >= 0 && worker_send(&m->workers.engine, IPC_ANSWER, tag, &a, sizeof(a), fd))
		worker_kill(&m->workers.engine);
}

/* The index is cached, or known to be impossible. */
static bool index_jobs_answer_at_once(struct monitor *m, uint64_t tag, const char *key)
{
	_cleanup_(closep) int fd = index_cache_find(m->index->dir, key, (uint64_t)time(NULL));

	if (fd == -ENOENT)
		return false;
	index_jobs_answer(m, tag, fd < 0 ? fd : 0, fd);
	return true;
}

static int index_jobs_add_task(struct index_jobs *j, struct ipc_message *msg, const char *key)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	struct index_task *t;

	if (j->count == JOBS_MAX)
		return -EBUSY;
	t = calloc(1, sizeof(*t) + ask->path_len + 1);
	if (!t)
		return -EBUSY;
	*t = (struct index_task){.tag = msg->head.tag, .wanted = true, .fd = ipc_take_fd(msg, 0), .pid = ask->pid,
				 .content = {ask->start, ask->end}};
	memcpy(t->key, key, sizeof(t->key));
	memcpy(t->path, ask + 1, ask->path_len);
	*j->last = t;
	j->last = &t->next;
	j->count++;
	return 0;
}

static bool index_jobs_ask_is_sound(const struct ipc_message *msg, struct stat *st)
{
	const struct ipc_ask *ask = (const void *)msg->data;

	return msg->head.len >= sizeof(*ask) && ipc_nr_fds(msg) == 1 && ask->path_len < HOST_PATH_MAX &&
	       msg->head.len == sizeof(*ask) + ask->path_len && fstat(msg->fds[0], st) == 0 && S_ISREG(st->st_mode);
}

void index_jobs_ask(struct monitor *m, struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	const uint64_t content[2] = {ask->start, ask->end};
	char key[INDEX_KEY_MAX];
	struct stat st;
	int err;

	if (!index_jobs_ask_is_sound(msg, &st)) {
		log_warn("engine sent a malformed question: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	if (!m->index) {
		index_jobs_answer(m, msg->head.tag, -ENOSYS, -1);
		return;
	}
	index_cache_key(&st, content, m->index->settings, key);
	if (index_jobs_answer_at_once(m, msg->head.tag, key))
		return;
	err = m->index->disk_err && clock_now_ns() < m->index->disk_retry_ns ? m->index->disk_err :
									      index_jobs_add_task(m->index, msg, key);
	if (err)
		index_jobs_answer(m, msg->head.tag, err, -1);
}

void index_jobs_engine_died(struct monitor *m)
{
	for (struct index_task *t = m->index ? m->index->first : NULL; t; t = t->next)
		t->wanted = false;
}

/* --- the indexer --- */

bool index_jobs_wait(const struct monitor *m)
{
	return m->index && m->index->first;
}

static int index_jobs_send_job(struct monitor *m, const struct index_task *t)
{
	struct {
		struct ipc_index head;
		char text[HOST_PATH_MAX + 1024];
	} msg;
	const char *dirs = m->config->symbols_debug_dirs;
	size_t path_len = strlen(t->path), dirs_len = strlen(dirs);
	const int fds[3] = {t->fd, m->index->index_fd, m->index->scratch_fd};

	msg.head = (struct ipc_index){.path_len = (uint32_t)path_len, .dirs_len = (uint32_t)dirs_len,
				      .symbols_only = t->symbols_only};
	memcpy(msg.text, t->path, path_len);
	memcpy(msg.text + path_len, dirs, dirs_len);
	return ipc_send(m->workers.indexer.sock, IPC_INDEX, 0, &msg, sizeof(msg.head) + path_len + dirs_len, fds, 3);
}

int index_jobs_hand_over(struct monitor *m)
{
	struct index_jobs *j = m->index;
	int err = index_cache_new(j->dir, &j->index_fd, &j->scratch_fd);

	fetch_jobs_index_begins(m);
	j->new_err = err;
	j->has_result = false;
	j->deadline_ns = clock_now_ns() + JOB_LIMIT_NS;
	if (!err)
		err = worker_send(&m->workers.indexer, IPC_CONFIG, 0, NULL, 0, m->public_config_fd);
	if (!err)
		err = index_jobs_send_job(m, j->first);
	return err ? err : worker_send(&m->workers.indexer, IPC_START, 0, NULL, 0, -1);
}

/* The process is gone; where it ran a file of the host's own, it saw the host's files. */
static bool index_jobs_left_the_host(const struct index_task *t)
{
	struct stat file, root;

	return pid_is_gone(t->pid) && fstat(t->fd, &file) == 0 && stat("/", &root) == 0 &&
	       file.st_dev == root.st_dev;
}

/* The indexer may not choose the debug directories. */
void index_jobs_set_root(const struct monitor *m, struct ipc_message *msg)
{
	const struct index_task *t = m->index ? m->index->first : NULL;
	struct ipc_ask *ask = (void *)msg->data;

	if (msg->head.len < sizeof(*ask))
		return;
	ask->pid = ask->len || !t || index_jobs_left_the_host(t) ? 1 : t->pid;
	ask->alternate_pid = 0;
	ask->len = 0;
}

void index_jobs_indexed(struct monitor *m, const struct ipc_message *msg)
{
	if (!m->index || !ipc_fits(msg, sizeof(m->index->result), 0))
		return;
	memcpy(&m->index->result, msg->data, sizeof(m->index->result));
	m->index->has_result = true;
}

/* Answers all questions for the same file. */
static void index_jobs_answer_all(struct monitor *m, const char *key, int err)
{
	struct index_jobs *j = m->index;
	struct index_task **slot = &j->first, *t;

	while ((t = *slot)) {
		if (strcmp(t->key, key) != 0) {
			slot = &t->next;
			continue;
		}
		*slot = t->next;
		j->count--;
		if (t->wanted && (err || !index_jobs_answer_at_once(m, t->tag, key)))
			index_jobs_answer(m, t->tag, err ? err : -ENOENT, -1);
		index_jobs_task_free(t);
	}
	j->last = slot;
}

/* An index without debug information is made again later, when that may have been installed. */
static int index_jobs_keep(struct monitor *m, const struct index_task *t)
{
	const struct index_jobs *j = m->index;
	bool comes = fetch_jobs_index_made(m, t->key, t->content);
	bool whole = (j->result.flags & (INDEX_HAS_DWARF | INDEX_SPLIT_MISSING)) == INDEX_HAS_DWARF && !comes;

	return index_cache_keep(j->dir, t->key, !whole, m->config->symbols_cache_bytes);
}

/* Errors that the disk causes for every file; 0: err is not one of these. */
static int index_jobs_disk_trouble(const struct index_jobs *j, int err)
{
	if (!j->new_err && err != -EDQUOT && err != -EROFS)
		return 0;
	err = j->new_err ? j->new_err : err;
	return err == -EDQUOT ? -ENOSPC : err;
}

/* Logs the start and the end of the trouble, at most once an hour. */
static void index_jobs_note_disk(struct index_jobs *j, int err)
{
	uint64_t now = clock_now_ns();

	j->disk_err = err;
	j->disk_retry_ns = now + NO_DISK_NS;
	if (!err && j->disk_logged) {
		log_notice("%s can be written again", j->path);
		j->disk_logged = false;
	} else if (err && (!j->disk_logged_ns || now - j->disk_logged_ns > DISK_LOG_NS)) {
		log_warn("%s: %s: programs that are new have no inlined calls and no lines until it can be written again",
			 j->path, strerror(-err));
		j->disk_logged = true;
		j->disk_logged_ns = now;
	}
}

static void index_jobs_give_up_all(struct monitor *m, int err)
{
	char key[INDEX_KEY_MAX];

	index_cache_drop_new(m->index->dir);
	while (m->index->first) {
		memcpy(key, m->index->first->key, sizeof(key));
		index_jobs_answer_all(m, key, err);
	}
}

void index_jobs_indexer_ended(struct monitor *m)
{
	struct index_jobs *j = m->index;
	struct index_task *t = j ? j->first : NULL;
	char key[INDEX_KEY_MAX];
	int err;

	if (!t)
		return;
	index_jobs_close_files(j);
	err = j->has_result ? j->result.err : -EIO;
	if (index_jobs_disk_trouble(j, err)) {
		index_jobs_note_disk(j, index_jobs_disk_trouble(j, err));
		index_jobs_give_up_all(m, j->disk_err);
		return;
	}
	if (err && fetch_jobs_blame(m))
		return;
	if (err == -EIO && !t->symbols_only) {
		log_info("%s: its debug information cannot be read, its symbols are", t->path);
		t->symbols_only = true;
		return;
	}
	if (!err) {
		err = index_jobs_keep(m, t);
		index_jobs_note_disk(j, index_jobs_disk_trouble(j, err));
	}
	if (err && !j->disk_err)
		index_cache_refuse(j->dir, t->key);
	log_debug("%s: index of %llu bytes, %llu lines (%s)", t->path, (unsigned long long)j->result.index_bytes,
		  (unsigned long long)j->result.lines, err ? strerror(-err) : "made");
	memcpy(key, t->key, sizeof(key));
	index_jobs_answer_all(m, key, err);
}

void index_jobs_run(struct monitor *m, uint64_t now)
{
	if (!m->index || !m->workers.indexer.pid || now < m->index->deadline_ns)
		return;
	log_warn("indexer (pid %d) did not finish %s in time: it is killed", m->workers.indexer.pid, m->index->first->path);
	m->index->deadline_ns = UINT64_MAX;
	worker_kill(&m->workers.indexer);
}

uint64_t index_jobs_next_ns(const struct monitor *m)
{
	return m->index && m->workers.indexer.pid ? m->index->deadline_ns : UINT64_MAX;
}

const char *index_jobs_path(const struct monitor *m)
{
	return m->index ? m->index->path : NULL;
}

void index_jobs_forget(struct monitor *m, const char *key)
{
	if (m->index)
		index_cache_forget(m->index->dir, key);
}

void index_jobs_forget_poor(struct monitor *m)
{
	if (m->index)
		index_cache_forget_poor(m->index->dir);
}
