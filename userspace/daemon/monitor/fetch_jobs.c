// SPDX-License-Identifier: Apache-2.0
/*
 * Debug files from debuginfod servers, the monitor's part: a file that the
 * indexer did not find is queued, fetched by a process for one file at a
 * time, cached, and the indexes that lacked it are made anew. Nothing waits.
 * A file that no server has is not requested again for retry_after; where no
 * server can be reached, all requests pause for a growing time. Bounded:
 * files in the queue, indexes that wait for one, requests a minute, bytes of
 * one file and of all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "daemon/monitor/fetch_jobs_internal.h"

#define TRIES_MAX	4 /* for a failure of one file */
#define TRIES_SERVER	10
#define PAUSE_FIRST_NS	(5 * NSEC_PER_SEC)
#define PAUSE_LONGEST_NS (900 * NSEC_PER_SEC)
#define PATIENCE_NS	(10 * NSEC_PER_SEC) /* the monitor's, beyond the timeouts of the fetcher's requests */

static uint32_t fetch_jobs_servers(const char *urls)
{
	uint32_t n = 0;

	for (; *(urls += strspn(urls, " ")); urls += strcspn(urls, " "))
		n++;
	return n;
}

/* --- life, and changes of the configuration --- */

static void fetch_jobs_drop_tasks(struct fetch_jobs *j)
{
	while (j->first) {
		struct fetch_task *t = j->first;

		j->first = t->next;
		free(t);
	}
	j->last = &j->first;
	j->count = 0;
}

static void fetch_jobs_turn_off(struct monitor *m)
{
	struct fetch_jobs *j = m->fetch;

	worker_kill(&m->workers.fetcher);
	fetch_jobs_drop_tasks(j);
	free(j->urls);
	disk_cache_close(&j->cache);
	closep(&j->fd);
	j->fd = -1;
	j->urls = NULL;
	j->pause_ns = j->pause_until_ns = 0;
}

/* Indexes that were made without debug files may be better now, also those that the engine already has. */
static void fetch_jobs_retry_poor(struct monitor *m)
{
	const struct ipc_debuginfod all = {.state = FETCH_FETCHED, .all = 1};

	index_jobs_forget_poor(m);
	worker_send(&m->workers.engine, IPC_DEBUGINFOD, 0, &all, sizeof(all), -1);
}

static void fetch_jobs_set_limits(struct monitor *m)
{
	const struct config_debuginfod *c = &m->config->debuginfod;

	fetch_cache_limit(&m->fetch->cache, c->cache_bytes, c->retry_after_ns / NSEC_PER_SEC);
}

static int fetch_jobs_turn_on(struct monitor *m, bool other_servers)
{
	struct fetch_jobs *j = m->fetch;
	char path[1200], why[SAFE_PATH_WHY];

	snprintf(path, sizeof(path), "%s/debuginfod", index_jobs_path(m));
	j->urls = strdup(m->config->debuginfod.urls);
	if (!j->urls)
		return -ENOMEM;
	if (fetch_cache_open(path, why, &j->cache)) {
		log_warn("%s cannot be used (%s): nothing is fetched by debuginfod", path, why);
		return 0;
	}
	if (other_servers)
		fetch_cache_forget_refusals(&j->cache);
	fetch_jobs_set_limits(m);
	log_info("debuginfod: build-ids of files without debug information are sent to %s", j->urls);
	fetch_jobs_retry_poor(m);
	return 0;
}

int fetch_jobs_open(struct monitor *m)
{
	struct fetch_jobs *j = m->index ? calloc(1, sizeof(*j)) : NULL;

	if (!m->index && m->config->debuginfod.urls)
		log_warn("debuginfod: nothing is fetched, because no indexes are kept ([symbols] cache_dir, cache_bytes)");
	if (!j)
		return m->index ? -ENOMEM : 0;
	j->cache.dir = j->fd = -1;
	j->last = &j->first;
	m->fetch = j;
	return m->config->debuginfod.urls ? fetch_jobs_turn_on(m, false) : 0;
}

void fetch_jobs_close(struct monitor *m)
{
	if (!m->fetch)
		return;
	fetch_jobs_turn_off(m);
	free(m->fetch);
	m->fetch = NULL;
}

void fetch_jobs_reload(struct monitor *m)
{
	const struct config_debuginfod *c = &m->config->debuginfod;
	struct fetch_jobs *j = m->fetch;
	bool was_on = j && j->urls;

	if (!j || (was_on && c->urls && !strcmp(j->urls, c->urls))) {
		if (fetch_is_on(m))
			fetch_jobs_set_limits(m);
		return;
	}
	fetch_jobs_turn_off(m);
	if (c->urls && fetch_jobs_turn_on(m, was_on))
		log_error("reload: nothing is fetched by debuginfod: no memory");
}

/* --- the fetcher --- */

bool fetch_jobs_wait(const struct monitor *m)
{
	const struct fetch_jobs *j = m->fetch;

	return fetch_is_on(m) && j->first && clock_now_ns() >= j->pause_until_ns && j->tokens_milli >= 1000;
}

void fetch_jobs_fetched(struct monitor *m, const struct ipc_message *msg)
{
	struct fetch_jobs *j = m->fetch;

	if (!j || msg->head.type != IPC_FETCHED || !ipc_fits(msg, sizeof(j->result), 0))
		return;
	memcpy(&j->result, msg->data, sizeof(j->result));
	j->result.text[sizeof(j->result.text) - 1] = '\0';
	/* The text may be the server's. */
	utf8_clean_str(j->result.text);
	j->has_result = j->result.state > FETCH_WAITING && j->result.state < FETCH_STATE_NR;
}

/* The fetcher is not trusted: the monitor checks the size itself. */
static enum fetch_state fetch_jobs_outcome(struct monitor *m)
{
	const struct config_debuginfod *c = &m->config->debuginfod;
	struct fetch_jobs *j = m->fetch;
	struct stat st;
	int err;

	if (!j->has_result) {
		j->result = (struct ipc_fetched){.requests = 1};
		return j->late ? FETCH_TIMEOUT : FETCH_DIED;
	}
	if (j->result.state != FETCH_FETCHED)
		return j->result.state;
	if (fstat(j->fd, &st) < 0 || (uint64_t)st.st_size > c->file_bytes)
		return FETCH_TOO_LARGE;
	err = fetch_cache_keep(&j->cache, j->first->id);
	j->result.bytes = (uint64_t)st.st_size;
	return !err ? FETCH_FETCHED : err == -EFBIG ? FETCH_TOO_LARGE : FETCH_LOCAL;
}

static void fetch_jobs_report(struct monitor *m, const struct fetch_task *t, enum fetch_state state)
{
	for (uint32_t i = 0; i < t->nr_users; i++) {
		if (state == FETCH_FETCHED)
			index_jobs_forget(m, t->users[i].key);
		fetch_send_state(m, t->users[i].content, state);
	}
}

static struct fetch_task *fetch_jobs_take_first(struct fetch_jobs *j)
{
	struct fetch_task *t = j->first;

	j->first = t->next;
	if (!j->first)
		j->last = &j->first;
	j->count--;
	return t;
}

static void fetch_jobs_put_last(struct fetch_jobs *j, struct fetch_task *t)
{
	t->next = NULL;
	*j->last = t;
	j->last = &t->next;
	j->count++;
}

/* The cause is not the file, but a server, the network, or our disk. */
static bool fetch_jobs_concerns_all(enum fetch_state state)
{
	return state == FETCH_SERVER || state == FETCH_UNREACHABLE || state == FETCH_LOCAL;
}

/* Without a network the queue is kept. */
static uint32_t fetch_jobs_tries(enum fetch_state state)
{
	if (state == FETCH_SERVER)
		return TRIES_SERVER;
	return fetch_jobs_concerns_all(state) ? UINT32_MAX : TRIES_MAX;
}

static void fetch_jobs_set_pause(struct fetch_jobs *j, enum fetch_state state)
{
	if (!fetch_jobs_concerns_all(state)) {
		j->pause_ns = j->pause_until_ns = 0;
		return;
	}
	if (!j->pause_ns)
		log_notice("debuginfod: %s; tried again later", j->last_error);
	j->pause_ns = j->pause_ns ? MIN(2 * j->pause_ns, PAUSE_LONGEST_NS) : PAUSE_FIRST_NS;
	j->pause_until_ns = clock_now_ns() + j->pause_ns;
}

static void fetch_jobs_charge(struct fetch_jobs *j)
{
	j->figures.requests += j->result.requests;
	j->tokens_milli -= MIN(j->tokens_milli, 1000ull * MAX(j->result.requests, 1u));
}

static void fetch_jobs_settle_first(struct monitor *m, enum fetch_state state)
{
	struct fetch_jobs *j = m->fetch;
	struct fetch_task *t = fetch_jobs_take_first(j);

	if (state == FETCH_FETCHED) {
		j->figures.fetched++;
		j->figures.bytes += j->result.bytes;
		log_info("debuginfod: %s: %llu bytes", t->id, (unsigned long long)j->result.bytes);
	} else {
		fetch_count_failure(j, t->id, state, j->result.text);
		log_debug("debuginfod: %s: %s (%s)", t->id, fetch_state_text(state), j->result.text);
		if (fetch_state_again(state) && ++t->tries < fetch_jobs_tries(state)) {
			fetch_jobs_report(m, t, state);
			fetch_jobs_put_last(j, t);
			return;
		}
		fetch_cache_refuse(&j->cache, t->id, state);
	}
	fetch_jobs_report(m, t, state);
	free(t);
}

int fetch_jobs_hand_over(struct monitor *m)
{
	const struct config_debuginfod *c = &m->config->debuginfod;
	struct fetch_jobs *j = m->fetch;
	struct ipc_fetch fetch = {0};
	int err;

	memcpy(fetch.id, j->first->id, sizeof(j->first->id));
	j->has_result = j->late = false;
	j->deadline_ns = clock_now_ns() + fetch_jobs_servers(j->urls) * c->timeout_ns + PATIENCE_NS;
	j->fd = fetch_cache_new(&j->cache);
	if (j->fd < 0) {
		err = j->fd;
		j->fd = -1;
		j->result = (struct ipc_fetched){0};
		fetch_jobs_settle_first(m, FETCH_LOCAL);
		fetch_jobs_set_pause(j, FETCH_LOCAL);
		return err;
	}
	err = worker_send(&m->workers.fetcher, IPC_CONFIG, 0, NULL, 0, m->public_config_fd);
	if (!err)
		err = worker_send(&m->workers.fetcher, IPC_FETCH, 0, &fetch, sizeof(fetch), j->fd);
	return err ? err : worker_send(&m->workers.fetcher, IPC_START, 0, NULL, 0, -1);
}

void fetch_jobs_fetcher_ended(struct monitor *m)
{
	struct fetch_jobs *j = m->fetch;
	enum fetch_state state;

	/* debuginfod was turned off meanwhile, and perhaps on again: the result is dropped. */
	if (!fetch_is_on(m) || j->fd < 0)
		return;
	state = fetch_jobs_outcome(m);
	fetch_jobs_charge(j);
	fetch_jobs_settle_first(m, state);
	fetch_jobs_set_pause(j, state);
	closep(&j->fd);
	j->fd = -1;
}

/* The file arrived while another index that lacks it was made. */
static void fetch_jobs_settle_cached(struct monitor *m)
{
	struct fetch_jobs *j = m->fetch;
	_cleanup_(closep) int fd = j->first && !m->workers.fetcher.pid ? fetch_cache_find(&j->cache, j->first->id) : -1;
	struct fetch_task *t;

	if (fd < 0)
		return;
	t = fetch_jobs_take_first(j);
	fetch_jobs_report(m, t, FETCH_FETCHED);
	free(t);
}

static void fetch_jobs_refill(struct fetch_jobs *j, uint64_t now, uint64_t per_minute)
{
	uint64_t more = (now - j->tokens_ns) / NSEC_PER_MSEC * per_minute / 60;

	j->tokens_milli = j->tokens_ns ? MIN(per_minute * 1000, j->tokens_milli + more) : per_minute * 1000;
	j->tokens_ns = now;
}

void fetch_jobs_run(struct monitor *m, uint64_t now)
{
	struct fetch_jobs *j = m->fetch;

	if (!fetch_is_on(m))
		return;
	if (!j->tokens_ns || now - j->tokens_ns >= NSEC_PER_SEC) {
		fetch_jobs_refill(j, now, m->config->debuginfod.requests_per_minute);
		fetch_jobs_settle_cached(m);
	}
	if (!m->workers.fetcher.pid || j->late || now < j->deadline_ns)
		return;
	j->late = true;
	worker_kill(&m->workers.fetcher);
}

void fetch_jobs_status(const struct monitor *m, struct status_debuginfod *ret)
{
	const struct fetch_jobs *j = m->fetch;

	*ret = (struct status_debuginfod){.last_error = ""};
	if (!j)
		return;
	*ret = j->figures;
	ret->on = fetch_is_on(m);
	ret->paused = j->pause_until_ns > clock_now_ns();
	ret->waiting = j->count;
	ret->cached_bytes = j->cache.bytes;
	ret->last_error = j->last_error;
}
