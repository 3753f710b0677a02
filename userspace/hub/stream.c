// SPDX-License-Identifier: Apache-2.0
#include "hub/stream.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "hub/api_internal.h"

#define BLOCK 16384 /* of the server: what a reader is given at once */

static const char reset_text[] = "event: reset\ndata: {\"workload\":null,\"reason\":\"lagged\"}\n\n";

/* --- readers --- */

static void stream_wake(struct stream *s)
{
	if (!s->suspended)
		return;
	s->suspended = false;
	MHD_resume_connection(s->connection);
}

static ssize_t stream_read(void *ctx, uint64_t pos, char *to, size_t max)
{
	struct stream *s = ctx;
	size_t n = MIN(s->waiting.len - s->read, max);

	if (!n && s->all->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!n) {
		/* A reader that returns nothing would be asked again at once, for ever. */
		buf_reset(&s->waiting);
		s->read = 0;
		s->suspended = true;
		MHD_suspend_connection(s->connection);
		return 0;
	}
	memcpy(to, s->waiting.data + s->read, n);
	s->read += n;
	s->moved_ns = clock_now_ns();
	if (s->read == s->waiting.len) {
		buf_reset(&s->waiting);
		s->read = 0;
		s->lagging = false;
	}
	return (ssize_t)n;
}

static void stream_free(void *ctx)
{
	struct stream *s = ctx;
	struct workload *w = s->workload ? store_find(s->all->store, s->workload) : NULL;

	for (struct stream **link = &s->all->first; *link; link = &(*link)->next)
		if (*link == s) {
			*link = s->next;
			break;
		}
	s->all->count--;
	if (w) {
		w->streams--;
		store_touch(w, clock_read_ns(CLOCK_REALTIME));
	}
	buf_done(&s->waiting);
	free(s);
}

struct MHD_Response *stream_new(struct streams *all, struct MHD_Connection *c, int fd, struct workload *w,
				const char *type)
{
	struct stream *s = all->count < STREAMS_MAX ? calloc(1, sizeof(*s)) : NULL;
	struct MHD_Response *r = NULL;

	if (s)
		r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, s, stream_free);
	if (!r) {
		free(s);
		return NULL;
	}
	*s = (struct stream){.next = all->first, .all = all, .connection = c, .fd = fd, .moved_ns = clock_now_ns()};
	s->ping_ns = s->moved_ns + STREAM_PING_NS;
	buf_init(&s->waiting, STREAM_BYTES_MAX + sizeof(reset_text));
	snprintf(s->type, sizeof(s->type), "%s", type);
	if (w) {
		s->workload = w->id;
		w->streams++;
		store_touch(w, clock_read_ns(CLOCK_REALTIME));
	}
	all->first = s;
	all->count++;
	/* Headers are sent with the first bytes. */
	buf_add_str(&s->waiting, ": otprof\n\n");
	return r;
}

/* --- events --- */

/* What was read already makes room. */
static void stream_pack(struct stream *s)
{
	if (!s->read)
		return;
	memmove(s->waiting.data, s->waiting.data + s->read, s->waiting.len - s->read);
	s->waiting.len -= s->read;
	s->read = 0;
}

/* All that waits goes, but the rest of an event that is read in part. */
static void stream_reset_waiting(struct stream *s)
{
	const char *end = memmem(s->waiting.data, s->waiting.len, "\n\n", 2);

	s->waiting.len = end ? (size_t)(end + 2 - (const char *)s->waiting.data) : 0;
	buf_add(&s->waiting, reset_text, sizeof(reset_text) - 1);
	s->lagging = true;
}

static void stream_push(struct stream *s, const char *data, size_t len)
{
	if (s->lagging)
		return;
	stream_pack(s);
	if (s->waiting.len + len > STREAM_BYTES_MAX)
		stream_reset_waiting(s);
	else
		buf_add(&s->waiting, data, len);
	s->ping_ns = clock_now_ns() + STREAM_PING_NS;
	stream_wake(s);
}

static void stream_event(struct buf *b, uint64_t seq, const char *name)
{
	buf_reset(b);
	buf_printf(b, "id: %" PRIu64 "\nevent: %s\ndata: ", seq, name);
}

static void streams_push(struct streams *all, uint64_t workload, struct buf *b)
{
	buf_add_str(b, "\n\n");
	for (struct stream *s = all->first, *next; s && !b->failed; s = next) {
		next = s->next;
		if (!workload || s->workload == workload)
			stream_push(s, (const char *)b->data, b->len);
	}
}

static void streams_slot(struct streams *all, const struct workload *w, const char *state, const char *reason)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct jsonw j = {.to = &b};

	stream_event(&b, all->store->seq, "slot");
	jsonw_open(&j, NULL);
	api_id_json(&j, "workload", w->id);
	jsonw_text(&j, "state", state);
	jsonw_number(&j, "generation", w->slot ? w->slot->generation : 0);
	jsonw_text_or_null(&j, "reason", reason);
	jsonw_close(&j);
	streams_push(all, 0, &b);
}

static void streams_reset(struct streams *all, const struct workload *w, const char *reason)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct jsonw j = {.to = &b};

	stream_event(&b, all->store->seq, "reset");
	jsonw_open(&j, NULL);
	api_id_json(&j, "workload", w->id);
	jsonw_text(&j, "reason", reason);
	jsonw_close(&j);
	streams_push(all, w->id, &b);
}

/* The event of one type is written once for all of its readers. */
static void streams_grew(struct streams *all, const struct workload *w)
{
	_cleanup_(buf_done) struct buf b = {0};
	const char *written = NULL;

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (s->workload != w->id)
			continue;
		if (!written || strcmp(written, s->type) != 0) {
			stream_event(&b, all->store->seq, "increment");
			if (api_increment(w, s->type, w->slot->seq - 1, &b) < 0)
				continue;
			buf_add_str(&b, "\n\n");
			written = s->type;
		}
		if (!b.failed)
			stream_push(s, (const char *)b.data, b.len);
	}
}

void streams_changed(struct streams *all, const struct workload *w, enum store_change change)
{
	if (!all->first)
		return;
	switch (change) {
	case STORE_GREW:
		streams_grew(all, w);
		return;
	case STORE_OPENED:
		streams_slot(all, w, "opened", "");
		return;
	case STORE_CLOSED:
		streams_slot(all, w, "closed", gone_reason_text(w->gone.reason));
		streams_reset(all, w, "closed");
		return;
	case STORE_CLEARED:
	case STORE_PRUNED:
		streams_slot(all, w, change == STORE_CLEARED ? "cleared" : "pruned", "");
		streams_reset(all, w, "generation");
		return;
	}
}

void streams_workloads(struct streams *all, uint64_t now_ns)
{
	_cleanup_(buf_done) struct buf b = {0};

	if (!all->first)
		return;
	stream_event(&b, all->store->seq, "workloads");
	buf_printf(&b, "{\"seq\":%" PRIu64 ",\"now_ms\":%" PRIu64 "}", all->store->seq, (uint64_t)(now_ns / MS));
	streams_push(all, 0, &b);
}

void streams_run(struct streams *all)
{
	uint64_t now = clock_now_ns();

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		/* Everything was read: nothing is to be moved. */
		if (!s->waiting.len)
			s->moved_ns = now;
		if (now - s->moved_ns > STREAM_STALL_NS)
			shutdown(s->fd, SHUT_RDWR);
		if (now >= s->ping_ns)
			stream_push(s, ": \n\n", 4);
	}
}

uint64_t streams_next_ns(const struct streams *all)
{
	uint64_t next = UINT64_MAX;

	for (const struct stream *s = all->first; s; s = s->next)
		next = MIN(next, s->lagging ? s->moved_ns + STREAM_STALL_NS + 1 : s->ping_ns);
	return next;
}

void streams_end(struct streams *all)
{
	all->ending = true;
	for (struct stream *s = all->first; s; s = s->next)
		stream_wake(s);
}
