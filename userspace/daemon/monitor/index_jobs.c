// SPDX-License-Identifier: Apache-2.0
/*
 * Address indexes of files: the engine's question passes the file's ticket; a
 * cached index is sent at once, any other is made by an indexer, a process for
 * one file at a time, to which the engine then sends the file itself. The engine
 * does not wait for the answer. Owners of files take turns (index_turns.h). A
 * file that kills the indexer, or takes too long, is tried once more with the
 * symbol tables alone, and if that fails not again for a day. Where the disk is
 * full, no failure is recorded for the file, and no index is tried for a minute.
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
#include "daemon/monitor/index_turns.h"
#include "daemon/monitor/monitor.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "symbol/index.h"
#include "symbol/index_build.h"

#define NO_DISK_NS  (60 * NSEC_PER_SEC)
#define DISK_LOG_NS (3600 * NSEC_PER_SEC) /* on a nearly full disk small files can be made, and large ones not */

struct index_task {
	struct index_task *next;
	uint64_t tag;
	bool wanted; /* the engine that asked is alive */
	bool symbols_only;
	uint64_t owner; /* as index_turns_owner says */
	struct ticket file;
	uint32_t pid;
	uint64_t pid_start_ns; /* 0: unknown */
	uint64_t content[2];
	char key[INDEX_KEY_MAX];
	char path[];
};

struct index_jobs {
	struct disk_cache cache;
	char path[1100];
	char settings[1200]; /* the settings that an index depends on besides its file */
	struct index_task *first, **last; /* the indexer, if it runs, has the first */
	struct index_turns turns;
	uint64_t host_devices[INDEX_HOST_DEVICES]; /* 0: unknown */
	uint64_t started_ns;
	bool late; /* the indexer was killed */
	int index_fd, scratch_fd; /* of the indexer's; -1 */
	struct ipc_indexed result;
	bool has_result;
	int new_err;	     /* no file could be made for the indexer */
	int disk_err;	     /* of the last index; 0: it was stored */
	uint64_t disk_retry_ns, disk_logged_ns;
	bool disk_logged; /* and its end is not logged yet */
};

/* Where otprofd runs in a container, the host's root is that of the first process; an ordinary user may not see it. */
static uint64_t index_jobs_device(const char *path, const char *otherwise)
{
	struct stat st;

	return stat(path, &st) < 0 && stat(otherwise, &st) < 0 ? 0 : st.st_dev;
}

int index_jobs_open(struct monitor *m)
{
	const struct config *c = m->config;
	struct index_jobs *j;
	char path[1100], why[SAFE_PATH_WHY];
	struct disk_cache cache;
	int err;

	if (!c->symbols_cache_bytes)
		return 0;
	snprintf(path, sizeof(path), "%s", c->symbols_cache_dir);
	err = index_cache_open(path, why, &cache);
	/* An ordinary user has no such directory, and a recording needs it only while it runs. */
	if (err && sandbox_ordinary()) {
		snprintf(path, sizeof(path), "%s/symbols", c->runtime_dir);
		err = index_cache_open(path, why, &cache);
	}
	if (err) {
		log_warn("%s cannot be used (%s): no inlined calls and no lines, names from symbol tables only",
			 c->symbols_cache_dir, why);
		return 0;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		disk_cache_close(&cache);
		return -ENOMEM;
	}
	j->cache = cache;
	memcpy(j->path, path, sizeof(j->path));
	j->last = &j->first;
	j->host_devices[0] = index_jobs_device("/proc/1/root/", "/");
	j->host_devices[1] = index_jobs_device("/proc/1/root/usr/", "/usr/");
	j->index_fd = j->scratch_fd = -1;
	snprintf(j->settings, sizeof(j->settings), "%d.%d %d %d %s", INDEX_VERSION, INDEX_MAKER, c->symbols_inline,
		 c->symbols_lines, c->symbols_debug_dirs);
	disk_cache_limit(&j->cache, c->symbols_cache_bytes);
	m->index = j;
	return 0;
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
		free(t);
	}
	index_jobs_close_files(j);
	disk_cache_close(&j->cache);
	free(j);
	m->index = NULL;
}

void index_jobs_reload(struct monitor *m)
{
	struct index_jobs *j = m->index;

	if (j && j->cache.max_bytes != m->config->symbols_cache_bytes)
		disk_cache_limit(&j->cache, m->config->symbols_cache_bytes);
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
	_cleanup_(closep) int fd = index_cache_find(&m->index->cache, key, (uint64_t)time(NULL));

	if (fd == -ENOENT)
		return false;
	index_jobs_answer(m, tag, fd < 0 ? fd : 0, fd);
	return true;
}

/* Behind the question. */
static const struct ticket *index_jobs_ticket(const struct ipc_message *msg)
{
	return (const void *)(msg->data + sizeof(struct ipc_ask));
}

/* The owners of all tasks, in order. */
static size_t index_jobs_queue(const struct index_jobs *j, uint64_t ret[INDEX_QUEUE])
{
	size_t n = 0;

	for (const struct index_task *t = j->first; t && n < INDEX_QUEUE; t = t->next)
		ret[n++] = t->owner;
	return n;
}

static int index_jobs_add_task(struct index_jobs *j, struct ipc_message *msg, const char *key)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	const struct ticket *file = index_jobs_ticket(msg);
	uint64_t owner = index_turns_owner(file->file.uid, file->file.dev, j->host_devices), queue[INDEX_QUEUE];
	struct index_task *t;

	if (!index_turns_admit(queue, index_jobs_queue(j, queue), owner))
		return -EBUSY;
	t = calloc(1, sizeof(*t) + ask->path_len + 1);
	if (!t)
		return -EBUSY;
	*t = (struct index_task){.tag = msg->head.tag, .wanted = true, .owner = owner, .file = *file, .pid = ask->pid,
				 .pid_start_ns = ask->pid_start_ns, .content = {ask->start, ask->end}};
	memcpy(t->key, key, sizeof(t->key));
	memcpy(t->path, file + 1, ask->path_len);
	*j->last = t;
	j->last = &t->next;
	return 0;
}

static bool index_jobs_ask_is_sound(const struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	const struct ticket *file = index_jobs_ticket(msg);
	const size_t fixed = sizeof(*ask) + sizeof(*file);

	return msg->head.len >= fixed && ask->path_len < HOST_PATH_MAX && msg->head.len == fixed + ask->path_len &&
	       ticket_is_good(file, m->ticket_key);
}

void index_jobs_ask(struct monitor *m, struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	const uint64_t content[2] = {ask->start, ask->end};
	char key[INDEX_KEY_MAX];
	int err;

	if (!index_jobs_ask_is_sound(m, msg)) {
		log_warn("engine sent a malformed question: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	if (!m->index) {
		index_jobs_answer(m, msg->head.tag, -ENOSYS, -1);
		return;
	}
	index_cache_key(&index_jobs_ticket(msg)->file, content, m->index->settings, key);
	if (index_jobs_answer_at_once(m, msg->head.tag, key))
		return;
	err = m->index->disk_err && clock_now_ns() < m->index->disk_retry_ns ? m->index->disk_err :
									      index_jobs_add_task(m->index, msg, key);
	if (err)
		index_jobs_answer(m, msg->head.tag, err, -1);
}

/* Without their engine nobody has the files. The indexer that runs may have its own already. */
void index_jobs_engine_died(struct monitor *m)
{
	struct index_jobs *j = m->index;
	struct index_task **slot = j ? &j->first : NULL, *t;

	if (!j)
		return;
	if (j->first && m->workers.indexer.pid) {
		j->first->wanted = false;
		slot = &j->first->next;
	}
	while ((t = *slot)) {
		*slot = t->next;
		free(t);
	}
	j->last = slot;
}

/* --- the indexer --- */

bool index_jobs_wait(const struct monitor *m)
{
	return m->index && m->index->first;
}

static int index_jobs_send_job(struct monitor *m, const struct index_task *t, int from_engine)
{
	struct {
		struct ipc_index head;
		char text[HOST_PATH_MAX + 1024];
	} msg;
	const char *dirs = m->config->symbols_debug_dirs;
	size_t path_len = strlen(t->path), dirs_len = strlen(dirs);
	const int fds[3] = {m->index->index_fd, m->index->scratch_fd, from_engine};

	msg.head = (struct ipc_index){.path_len = (uint32_t)path_len, .dirs_len = (uint32_t)dirs_len,
				      .symbols_only = t->symbols_only, .file = t->file.shown};
	memcpy(msg.text, t->path, path_len);
	memcpy(msg.text + path_len, dirs, dirs_len);
	return ipc_send(m->workers.indexer.sock, IPC_INDEX, 0, &msg, sizeof(msg.head) + path_len + dirs_len, fds, 3);
}

/* The engine sends the file to the indexer, by a socket of their own. */
static int index_jobs_connect(struct monitor *m, const struct index_task *t)
{
	int pair[2], err = ipc_pair(pair);

	if (err)
		return err;
	err = index_jobs_send_job(m, t, pair[0]);
	if (!err && worker_send(&m->workers.engine, IPC_FILE_WANTED, t->tag, NULL, 0, pair[1]))
		log_debug("%s: the engine is not there to send it", t->path);
	close(pair[0]);
	close(pair[1]);
	return err;
}

/* The task whose turn it is becomes the first. */
static void index_jobs_choose(struct index_jobs *j, uint64_t now)
{
	struct index_task **slot = &j->first, *t;
	uint64_t queue[INDEX_QUEUE];

	for (size_t i = index_turns_next(&j->turns, queue, index_jobs_queue(j, queue), now); i; i--)
		slot = &(*slot)->next;
	t = *slot;
	*slot = t->next;
	if (j->last == &t->next)
		j->last = slot;
	t->next = j->first;
	j->first = t;
	if (!t->next)
		j->last = &t->next;
}

int index_jobs_hand_over(struct monitor *m)
{
	struct index_jobs *j = m->index;
	int err = index_cache_new(&j->cache, &j->index_fd, &j->scratch_fd);
	uint64_t now = clock_now_ns();

	index_jobs_choose(j, now);

	fetch_jobs_index_begins(m, j->first->key);
	j->new_err = err;
	j->has_result = j->late = false;
	j->started_ns = now;
	if (!err)
		err = worker_send(&m->workers.indexer, IPC_CONFIG, 0, NULL, 0, m->public_config_fd);
	if (!err)
		err = index_jobs_connect(m, j->first);
	return err ? err : worker_send(&m->workers.indexer, IPC_START, 0, NULL, 0, -1);
}

/* Behind the path and a NUL; where both are too long, the question is for no file. */
static void index_jobs_add_path(struct ipc_message *msg, const char *program)
{
	struct ipc_ask *ask = (void *)msg->data;
	char *path = (char *)(ask + 1);
	size_t len = strnlen(path, ask->path_len), more = strlen(program) + 1;

	ask->path_len = 0;
	if (len + more < HOST_PATH_MAX) {
		path[len] = '\0';
		memcpy(path + len + 1, program, more - 1);
		ask->path_len = (uint32_t)(len + more);
	}
	msg->head.len = (uint32_t)sizeof(*ask) + ask->path_len;
}

static struct ipc_program index_jobs_program(const struct ticket_file *f)
{
	return (struct ipc_program){.dev = f->dev, .ino = f->ino, .uid = f->uid, .gid = f->gid, .mode = f->mode};
}

/* The indexer may choose neither the process nor the program: it names a root and a path. */
void index_jobs_set_root(const struct monitor *m, struct ipc_message *msg)
{
	const struct index_task *t = m->index ? m->index->first : NULL;
	struct ipc_ask *ask = (void *)msg->data;

	if (msg->head.len < sizeof(*ask))
		return;
	ask->pid = ask->len == INDEX_ROOT_TARGET && t ? t->pid : 1;
	ask->pid_start_ns = t && ask->pid == t->pid ? t->pid_start_ns : 0;
	ask->alternate_pid = 0;
	ask->len = 0;
	ask->program = t ? index_jobs_program(&t->file.file) : (struct ipc_program){0};
	if (t && msg->head.len == sizeof(*ask) + ask->path_len && ask->path_len < HOST_PATH_MAX)
		index_jobs_add_path(msg, t->path);
}

void index_jobs_indexed(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_indexed *result = (const void *)msg->data;

	if (!m->index || !ipc_fits(msg, sizeof(*result), 0) || result->err > 0)
		return;
	m->index->result = *result;
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
		if (t->wanted && (err || !index_jobs_answer_at_once(m, t->tag, key)))
			index_jobs_answer(m, t->tag, err ? err : -ENOENT, -1);
		free(t);
	}
	j->last = slot;
}

/* An index without debug information is made again later, when that may have been installed. */
static int index_jobs_keep(struct monitor *m, const struct index_task *t)
{
	struct index_jobs *j = m->index;
	bool comes = fetch_jobs_index_made(m, t->key, t->content);
	bool whole = (j->result.flags & (INDEX_HAS_DWARF | INDEX_SPLIT_MISSING)) == INDEX_HAS_DWARF && !comes;

	return index_cache_keep(&j->cache, t->key, !whole);
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

	index_cache_drop_new(&m->index->cache);
	while (m->index->first) {
		memcpy(key, m->index->first->key, sizeof(key));
		index_jobs_answer_all(m, key, err);
	}
}

void index_jobs_indexer_ended(struct monitor *m)
{
	struct index_jobs *j = m->index;
	struct index_task *t = j ? j->first : NULL;
	uint64_t now = clock_now_ns();
	char key[INDEX_KEY_MAX];
	int err;

	if (!t)
		return;
	index_turns_charge(&j->turns, t->owner, now - j->started_ns, now);
	index_jobs_close_files(j);
	err = j->has_result ? j->result.err : -EIO;
	if (index_jobs_disk_trouble(j, err)) {
		index_jobs_note_disk(j, index_jobs_disk_trouble(j, err));
		index_jobs_give_up_all(m, j->disk_err);
		return;
	}
	if (err == -EAGAIN || err == -ESTALE) { /* the engine did not send that file */
		memcpy(key, t->key, sizeof(key));
		index_jobs_answer_all(m, key, -EBUSY);
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
		index_cache_refuse(&j->cache, t->key);
	log_debug("%s: index of %llu bytes, %llu lines (%s)", t->path, (unsigned long long)j->result.index_bytes,
		  (unsigned long long)j->result.lines, err ? strerror(-err) : "made");
	memcpy(key, t->key, sizeof(key));
	index_jobs_answer_all(m, key, err);
}

/* Earlier as soon as a task of another owner waits. */
static uint64_t index_jobs_deadline(const struct index_jobs *j)
{
	uint64_t queue[INDEX_QUEUE];

	return j->late ? UINT64_MAX : j->started_ns + index_turns_limit_ns(queue, index_jobs_queue(j, queue));
}

void index_jobs_run(struct monitor *m, uint64_t now)
{
	struct index_jobs *j = m->index;

	if (!j || !m->workers.indexer.pid || now < index_jobs_deadline(j))
		return;
	log_warn("indexer (pid %d) did not finish %s in time: it is killed", m->workers.indexer.pid, j->first->path);
	j->late = true;
	worker_kill(&m->workers.indexer);
}

uint64_t index_jobs_next_ns(const struct monitor *m)
{
	return m->index && m->workers.indexer.pid ? index_jobs_deadline(m->index) : UINT64_MAX;
}

const char *index_jobs_path(const struct monitor *m)
{
	return m->index ? m->index->path : NULL;
}

void index_jobs_forget(struct monitor *m, const char *key)
{
	if (m->index)
		index_cache_forget(&m->index->cache, key);
}

void index_jobs_forget_poor(struct monitor *m)
{
	if (m->index)
		index_cache_forget_poor(&m->index->cache);
}
