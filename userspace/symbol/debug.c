// SPDX-License-Identifier: Apache-2.0
#include "symbol/debug.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbol/resolver.h"

#define RETRY_FIRST_NS	 (60 * NSEC_PER_SEC)
#define RETRY_LONGEST_NS (3600 * NSEC_PER_SEC)
#define BUSY_NS		 (5 * NSEC_PER_SEC)

enum state { NEW, ASKED, READY, REFUSED };

/* The binary's slot. */
struct indexed {
	struct indexed *next, **link;
	struct debug_indexes *all;
	struct binary *binary; /* borrowed: it outlives its slot */
	struct index *index;   /* owned, when READY */
	enum state state;
	bool again;  /* READY: a better one may be available */
	bool renews; /* READY: a better one is requested */
	uint32_t made; /* indexes received so far */
	uint32_t fetch; /* the host's state of downloading debug files */
	bool has_symtab;
	int error; /* of the last refusal */
	bool has_names; /* all that exist, unless a separate file has more */
	uint64_t first_ns, asked_ns, retry_ns, pause_ns;
};

void debug_indexes_init(struct debug_indexes *all, const struct symbol_limits *limits)
{
	*all = (struct debug_indexes){
		.host = limits->host,
		.options = {.inlines = limits->inlines, .lines = limits->lines, .show_clones = limits->show_clones},
		.wait_ns = limits->wait_ns,
		.settled = limits->index_settled,
		.ctx = limits->ctx,
	};
}

/* Also called when the binary is freed. */
static void indexed_free(void *slot)
{
	struct indexed *e = slot;

	if (!e)
		return;
	if (e->state == ASKED || e->renews) {
		host_cancel(e->all->host, e);
		e->all->asked--;
	}
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	index_free(e->index);
	free(e);
}

void debug_indexes_done(struct debug_indexes *all)
{
	while (all->first) {
		struct binary *b = all->first->binary;

		b->slot[BINARY_SLOT_DEBUG] = NULL;
		indexed_free(all->first);
	}
}

static bool debug_has_symtab(const struct binary *b)
{
	for (uint32_t i = 0; i < b->nr_sections; i++)
		if (b->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* If an index may add lines and inlined calls, a function named by its symbol alone would be another node. */
static bool debug_has_names(const struct debug_indexes *all, const struct binary *b)
{
	bool more = all->options.inlines || all->options.lines;

	return debug_has_symtab(b) && !(more && binary_section(b, ".debug_info"));
}

static struct indexed *debug_index_get(struct debug_indexes *all, struct binary *b, uint64_t now)
{
	struct indexed *e = b->slot[BINARY_SLOT_DEBUG];

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->all = all;
	e->binary = b;
	e->first_ns = now;
	e->has_symtab = debug_has_symtab(b);
	e->has_names = debug_has_names(all, b);
	e->next = all->first;
	e->link = &all->first;
	if (e->next)
		e->next->link = &e->next;
	all->first = e;
	b->slot[BINARY_SLOT_DEBUG] = e;
	b->slot_free[BINARY_SLOT_DEBUG] = indexed_free;
	return e;
}

static int debug_index_open_answer(struct indexed *e, int fd, const void *data, size_t len)
{
	struct index *before = e->index;
	struct binary *file;
	int r;

	if (fd >= 0)
		r = binary_open(fd, "[index]", &file);
	else if (data && len == sizeof(struct binary_replay))
		r = binary_open_replay(data, "[index]", &file);
	else
		r = -EIO;
	if (r == 0)
		r = index_open(file, e->binary, &e->index);
	if (r == 0)
		index_free(before);
	return r;
}

static void debug_index_refuse(struct indexed *e, int err)
{
	e->state = REFUSED;
	e->error = err;
	e->pause_ns = e->pause_ns ? MIN(2 * e->pause_ns, RETRY_LONGEST_NS) : RETRY_FIRST_NS;
	e->retry_ns = e->asked_ns + (err == -EBUSY ? BUSY_NS : e->pause_ns);
}

static void debug_index_on_answer(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct indexed *e = ctx;
	struct debug_indexes *all = e->all;

	all->asked--;
	if (err == 0)
		err = debug_index_open_answer(e, fd, data, len);
	else
		closep(&fd);
	if (err == 0) {
		e->state = READY;
		e->made++;
	} else if (!e->renews) {
		debug_index_refuse(e, err);
	}
	e->renews = false;
	if (all->settled)
		all->settled(all->ctx);
}

static void debug_index_request(struct indexed *e, const struct symbol_asker *asker)
{
	struct debug_indexes *all = e->all;
	struct host_request req = {.kind = HOST_OPEN_INDEX, .pid = asker->pid,
				   .pid_start_ns = asker->pid_start_ns, .group = asker->cgroup_id,
				   .path = str_c(e->binary->path), .elf_fd = binary_fd(e->binary),
				   .ticket = &e->binary->ticket};

	memcpy(&req.start, e->binary->htlhash, sizeof(req.start));
	memcpy(&req.end, e->binary->htlhash + sizeof(req.start), sizeof(req.end));
	/* The present index stays in use until a better one arrives. */
	e->renews = e->state == READY;
	e->again = false;
	if (!e->renews)
		e->state = ASKED;
	all->asked++;
	/* The answer may arrive during the call. */
	if (host_ask(all->host, &req, debug_index_on_answer, e) < 0) {
		all->asked--;
		e->again = e->renews;
		if (!e->renews)
			e->state = NEW;
		e->renews = false;
	}
}

uint32_t debug_index_made(const struct binary *b)
{
	const struct indexed *e = b->slot[BINARY_SLOT_DEBUG];

	return e && e->state == READY ? e->made : 0;
}

static void debug_index_set_fetch(struct indexed *e, uint32_t fetch, bool again)
{
	e->fetch = fetch;
	e->again |= again && e->state == READY;
	if (again && e->state == REFUSED)
		e->retry_ns = 0;
}

/* Without htlhash: no state of one file, but files without debug information may have some now. */
void debug_indexes_set_fetch(struct debug_indexes *all, const uint8_t *htlhash, uint32_t fetch, bool again)
{
	for (struct indexed *e = all->first; e; e = e->next) {
		bool poor = e->state != READY || !(e->index->head.flags & INDEX_HAS_DWARF);

		if (!htlhash && poor)
			debug_index_set_fetch(e, 0, again);
		else if (htlhash && !memcmp(e->binary->htlhash, htlhash, sizeof(e->binary->htlhash)))
			debug_index_set_fetch(e, fetch, again);
	}
}

void debug_index_state(const struct debug_indexes *all, const struct binary *b, struct symbol_state *ret)
{
	static const enum symbol_index states[] = {[NEW] = SYMBOL_INDEX_NEW, [ASKED] = SYMBOL_INDEX_ASKED,
						   [READY] = SYMBOL_INDEX_READY, [REFUSED] = SYMBOL_INDEX_REFUSED};
	const struct indexed *e = b->slot[BINARY_SLOT_DEBUG];

	ret->index = !all->host ? SYMBOL_INDEX_OFF : e ? states[e->state] : SYMBOL_INDEX_NEW;
	if (!e)
		return;
	ret->error = e->state == REFUSED ? e->error : 0;
	ret->fetch = e->fetch;
	if (e->state != READY)
		return;
	ret->dwarf = e->index->head.flags & INDEX_HAS_DWARF;
	ret->go = e->index->head.flags & INDEX_HAS_GO;
	ret->debug_symbols = e->index->head.flags & INDEX_HAS_SYMBOLS;
	ret->packed = e->index->head.flags & INDEX_HAS_PACKED;
	ret->fetched = e->index->head.flags & INDEX_HAS_FETCHED;
	ret->incomplete = e->index->head.flags & (INDEX_CUT | INDEX_SPLIT_MISSING);
}

static bool debug_index_may_request(const struct indexed *e, uint64_t now)
{
	if (e->all->asked >= DEBUG_ASKED_MAX)
		return false;
	return e->state == NEW || (e->state == READY && e->again) || (e->state == REFUSED && now >= e->retry_ns);
}

static bool debug_index_is_waited_for(const struct indexed *e, uint64_t now)
{
	/* Refused for want of room: it is requested again soon. */
	bool busy = e->state == REFUSED && e->error == -EBUSY;

	return (e->state == NEW || e->state == ASKED || busy) && !e->has_names && now - e->first_ns < e->all->wait_ns;
}

bool debug_indexes_wait(const struct debug_indexes *all, uint64_t now)
{
	for (const struct indexed *e = all->first; e; e = e->next)
		if (debug_index_is_waited_for(e, now))
			return true;
	return false;
}

bool debug_index_want(struct debug_indexes *all, struct binary *b, const struct symbol_asker *asker)
{
	struct indexed *e;

	/* A file without an inode (the vDSO, or one made by a test) has no debug file: its symbols are final. */
	if (!all->host || (!b->dev && !b->ino))
		return false;
	e = debug_index_get(all, b, asker->now_ns);
	if (!e || (e->state == READY && !e->again))
		return false;
	if (e->has_symtab && !all->options.inlines && !all->options.lines)
		return false;
	if (debug_index_may_request(e, asker->now_ns)) {
		e->asked_ns = asker->now_ns;
		debug_index_request(e, asker);
	}
	return debug_index_is_waited_for(e, asker->now_ns);
}

static int debug_index_find(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	const struct indexed *e = b->slot[BINARY_SLOT_DEBUG];

	if (!e || e->state != READY || !binary_is_code(b, vaddr))
		return -ENOENT;
	return index_find(e->index, vaddr, &all->debug.options, ret);
}

const struct resolver resolver_index = {.name = "dwarf", .find = debug_index_find};
