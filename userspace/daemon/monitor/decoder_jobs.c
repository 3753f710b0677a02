// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/decoder_jobs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/decode.h"
#include "daemon/monitor/monitor.h"
#include "process/beside.h"
#include "process/host.h"

/* --- questions --- */

static void decoder_jobs_answer(struct monitor *m, uint64_t tag, int err, uint64_t id, int fd)
{
	const struct {
		struct ipc_answer head;
		struct decode_opened opened;
	} a = {.head.err = err, .opened.id = id};
	size_t len = err ? sizeof(a.head) : sizeof(a);

	if (m->workers.engine.sock >= 0 && worker_send(&m->workers.engine, IPC_ANSWER, tag, &a, len, fd))
		worker_kill(&m->workers.engine);
}

/* The engine has no path to say; the file is known by its ticket. */
static bool decoder_jobs_ask_is_sound(const struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;

	return msg->head.len == sizeof(*ask) + sizeof(struct ticket) && !ask->path_len && !ask->len && ask->pid &&
	       ask->pid_start_ns && ask->start < ask->end && ticket_is_good((const void *)(ask + 1), m->ticket_key);
}

void decoder_jobs_ask(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	struct decoder_jobs *j = &m->decoders;
	struct decoder_job *job;

	if (!decoder_jobs_ask_is_sound(m, msg)) {
		log_warn("engine sent a malformed question: it is killed");
		worker_kill(&m->workers.engine);
		return;
	}
	if (j->waiting == DECODER_QUEUE) {
		j->refused++;
		decoder_jobs_answer(m, msg->head.tag, -EBUSY, 0, -1);
		return;
	}
	job = &j->queue[j->waiting++];
	*job = (struct decoder_job){.tag = msg->head.tag, .pid = ask->pid, .pid_start_ns = ask->pid_start_ns,
				    .start = ask->start, .end = ask->end};
	memcpy(&job->file, ask + 1, sizeof(job->file));
}

static struct decoder_job decoder_jobs_take(struct decoder_jobs *j)
{
	struct decoder_job job = j->queue[0];

	j->waiting--;
	memmove(&j->queue[0], &j->queue[1], j->waiting * sizeof(job));
	return job;
}

/* Nothing of what it asks for outlives the engine. */
void decoder_jobs_engine_died(struct monitor *m)
{
	m->decoders.waiting = 0;
	for (int i = 0; i < DECODERS; i++) {
		m->decoders.slot[i].answered = true;
		worker_kill(&m->workers.decoder[i]);
	}
}

void decoder_jobs_end(struct monitor *m, const struct ipc_message *msg)
{
	uint64_t id;

	if (!ipc_fits(msg, sizeof(id), 0))
		return;
	memcpy(&id, msg->data, sizeof(id));
	for (int i = 0; i < DECODERS; i++)
		if (id && m->decoders.slot[i].id == id)
			worker_kill(&m->workers.decoder[i]);
}

/* --- processes --- */

/* Each takes some 2.5 MiB: where memory is limited, fewer run at a time. */
static uint32_t decoder_jobs_most(const struct monitor *m)
{
	uint64_t limit = m->guard.memory_limit;

	return limit ? (uint32_t)MIN(MAX(limit / DECODER_SHARE, 1ull), (unsigned long long)DECODERS) : DECODERS;
}

bool decoder_jobs_wait(const struct monitor *m)
{
	uint32_t live = 0;

	for (int i = 0; i < DECODERS; i++)
		live += m->decoders.slot[i].id != 0;
	return m->decoders.waiting && live < decoder_jobs_most(m);
}

void decoder_jobs_cannot_start(struct monitor *m)
{
	if (m->decoders.waiting)
		decoder_jobs_answer(m, decoder_jobs_take(&m->decoders).tag, -EIO, 0, -1);
}

/* The engine's end of the socket is its answer; what it sends waits there for the decoder. */
static int decoder_jobs_connect(struct monitor *m, struct decoder_slot *s, struct worker *w)
{
	const struct ipc_decoder job = {.file = s->job.file.shown, .uid = m->decoders.user.uid, .gid = m->decoders.user.gid};
	int pair[2], err = ipc_pair(pair);

	if (err)
		return err;
	err = worker_send(w, IPC_DECODER, 0, &job, sizeof(job), pair[0]);
	if (!err)
		err = worker_send(w, IPC_START, 0, NULL, 0, -1);
	if (!err) {
		decoder_jobs_answer(m, s->job.tag, 0, s->id, pair[1]);
		s->answered = true;
	}
	close(pair[0]);
	close(pair[1]);
	return err;
}

int decoder_jobs_hand_over(struct monitor *m, int i)
{
	struct decoder_jobs *j = &m->decoders;
	struct decoder_slot *s = &j->slot[i];
	struct worker *w = &m->workers.decoder[i];
	int err;

	*s = (struct decoder_slot){.job = decoder_jobs_take(j), .id = ++j->last_id,
				   .deadline_ns = clock_now_ns() + DECODER_LIFE_NS};
	j->started++;
	err = worker_send(w, IPC_CONFIG, 0, NULL, 0, m->public_config_fd);
	return err ? err : decoder_jobs_connect(m, s, w);
}

/* It may have been taken over by the memory that it reads: the walk is for that process alone. */
static void decoder_jobs_vouch(struct monitor *m, int i, const struct ipc_message *msg)
{
	const struct decoder_job *job = &m->decoders.slot[i].job;
	struct otp_walk plan;

	if (!ipc_fits(msg, sizeof(plan), 0) || !m->decoders.slot[i].id) {
		worker_kill(&m->workers.decoder[i]);
		return;
	}
	memcpy(&plan, msg->data, sizeof(plan));
	vouched_add(&m->decoders.vouched, job->pid, job->pid_start_ns, &plan, clock_now_ns());
}

void decoder_jobs_close(struct monitor *m)
{
	vouched_done(&m->decoders.vouched);
}

/* Of a decoder that has closed its sandbox. */
static bool decoder_jobs_beside_is_sound(const struct monitor *m, int i, const struct ipc_message *msg)
{
	const struct decoder_slot *s = &m->decoders.slot[i];
	const struct ipc_beside *b = (const void *)msg->data;

	return s->id && m->workers.decoder[i].ready && s->files < BESIDE_FILES_MAX && ipc_nr_fds(msg) == 0 &&
	       msg->head.tag && msg->head.len > sizeof(*b) && b->address <= INT64_MAX &&
	       beside_name_is_sound((const char *)(b + 1), msg->head.len - sizeof(*b));
}

/* Of which process, the decoder does not say. */
static void decoder_jobs_beside(struct monitor *m, int i, const struct ipc_message *msg)
{
	const struct ipc_beside *b = (const void *)msg->data;
	struct decoder_slot *s = &m->decoders.slot[i];
	struct worker *w = &m->workers.decoder[i];
	struct ipc_ask ask = {.kind = HOST_OPEN_BESIDE, .pid = s->job.pid, .pid_start_ns = s->job.pid_start_ns};
	struct ipc_answer answer = {.err = 0};

	if (!decoder_jobs_beside_is_sound(m, i, msg)) {
		worker_kill(w);
		return;
	}
	s->files++;
	ask.start = b->address;
	ask.path_len = (uint32_t)(msg->head.len - sizeof(*b));
	answer.err = asks_add_beside(&m->asks, i, msg->head.tag, &ask, (const char *)(b + 1));
	if (answer.err && worker_send(w, IPC_ANSWER, msg->head.tag, &answer, sizeof(answer), -1))
		worker_kill(w);
}

/* READY: it has closed its sandbox, and the memory may come. */
void decoder_jobs_from(struct monitor *m, int i, const struct ipc_message *msg)
{
	const struct decoder_job *job = &m->decoders.slot[i].job;
	const struct ipc_ask ask = {.kind = HOST_OPEN_DECODER, .pid = job->pid, .pid_start_ns = job->pid_start_ns,
				    .start = job->start, .end = job->end,
				    .program = {.dev = job->file.file.dev, .ino = job->file.file.ino}};

	if (msg->head.type == IPC_WALKABLE)
		decoder_jobs_vouch(m, i, msg);
	if (msg->head.type == IPC_BESIDE)
		decoder_jobs_beside(m, i, msg);
	if (msg->head.type == IPC_READY && asks_add_decoder(&m->asks, i, &ask))
		worker_kill(&m->workers.decoder[i]);
}

void decoder_jobs_hangs(struct monitor *m, int i, uint64_t now)
{
	m->decoders.abandoned++;
	asks_decoder_hangs(&m->asks, i, m->workers.decoder[i].pid, now);
}

void decoder_jobs_ended(struct monitor *m, int i)
{
	struct decoder_slot *s = &m->decoders.slot[i];

	asks_asker_died(&m->asks, ASKER_DECODER + i);
	if (s->id && !s->answered)
		decoder_jobs_answer(m, s->job.tag, -EIO, 0, -1);
	*s = (struct decoder_slot){0};
}

void decoder_jobs_run(struct monitor *m, uint64_t now)
{
	for (int i = 0; i < DECODERS; i++) {
		struct decoder_slot *s = &m->decoders.slot[i];

		if (!s->id || now < s->deadline_ns)
			continue;
		m->decoders.overdue++;
		s->deadline_ns = UINT64_MAX;
		worker_kill(&m->workers.decoder[i]);
	}
}

uint64_t decoder_jobs_next_ns(const struct monitor *m)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < DECODERS; i++)
		if (m->decoders.slot[i].id)
			next = MIN(next, m->decoders.slot[i].deadline_ns);
	return next;
}
