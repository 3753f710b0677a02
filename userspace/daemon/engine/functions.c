// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static struct map shared; /* functions by the hash of their content; of two with one hash the second is not shared */
static size_t bytes;

/* --- shared functions --- */

/* With its texts, though others may share them: what one more costs at most. */
static size_t function_size(const struct function *f)
{
	return sizeof(*f) + f->nr_lines * sizeof(struct runtime_line) + (f->name ? sizeof(struct str) + f->name->len : 0) +
	       (f->file ? sizeof(struct str) + f->file->len : 0);
}

static uint64_t function_hash(const struct runtime_function *fn)
{
	const uint64_t numbers = 4ULL * fn->start_line + 2 * fn->is_bounded + fn->has_columns;
	uint64_t h = hash_bytes(fn->name, strlen(fn->name), hash_seed + numbers);

	h = hash_bytes(fn->file, strlen(fn->file), h);
	return hash_bytes(fn->lines, fn->nr_lines * sizeof(*fn->lines), h);
}

static bool function_is(const struct function *have, const struct runtime_function *fn)
{
	return !strcmp(have->name->s, fn->name) && !strcmp(str_c(have->file), fn->file) &&
	       have->start_line == fn->start_line && have->nr_lines == fn->nr_lines &&
	       have->has_columns == fn->has_columns && have->is_bounded == fn->is_bounded &&
	       !memcmp(have->lines, fn->lines, fn->nr_lines * sizeof(*fn->lines));
}

static struct function *function_put(struct function *f)
{
	if (!f || --f->refs)
		return NULL;
	if (map_find_ptr(&shared, f->hash) == f)
		map_remove(&shared, f->hash);
	bytes -= f->counted;
	str_put(f->name);
	str_put(f->file);
	free(f);
	return NULL;
}

static struct function *function_make(const struct runtime_function *fn, uint64_t hash)
{
	struct function *f = calloc(1, sizeof(*f) + fn->nr_lines * sizeof(struct runtime_line));

	if (!f)
		return NULL;
	*f = (struct function){.refs = 1, .start_line = fn->start_line, .hash = hash, .nr_lines = fn->nr_lines,
			       .has_columns = fn->has_columns, .is_bounded = fn->is_bounded};
	memcpy(f->lines, fn->lines, fn->nr_lines * sizeof(*fn->lines));
	f->name = str_get_c(fn->name);
	f->file = fn->file[0] ? str_get_c(fn->file) : NULL;
	f->counted = function_size(f);
	bytes += f->counted;
	if (!f->name)
		return function_put(f);
	if (!map_find(&shared, hash))
		map_put_ptr(&shared, hash, f);
	return f;
}

static struct function *function_get(const struct runtime_function *fn)
{
	uint64_t hash = function_hash(fn);
	struct function *have = map_find_ptr(&shared, hash);

	if (!have || !function_is(have, fn))
		return function_make(fn, hash);
	have->refs++;
	return have;
}

uint32_t function_line(const struct function *fn, uint32_t position, uint32_t *ret_column)
{
	const uint32_t n = ARRAY_COUNT_WHILE(fn->nr_lines, i, fn->lines[i].position <= position);

	*ret_column = n && fn->has_columns ? position - fn->lines[n - 1].position + 1 : 0;
	return n ? fn->lines[n - 1].line : 0;
}

/* --- a process' table --- */

/* The cookies that are part of what it is. */
static void entry_cookies(const struct runtime_frame *f, uint64_t to[RUNTIME_COOKIES])
{
	memcpy(to, f->cookie, sizeof(f->cookie));
	if (!(f->flags & RUNTIME_HINTED))
		return;
	to[RUNTIME_COOKIE_HINT] = 0;
	to[RUNTIME_COOKIE_EPOCH] &= RUNTIME_EPOCH_OF_HEAP;
}

static uint64_t entry_hash(uint64_t key, const uint64_t cookie[RUNTIME_COOKIES])
{
	return hash_bytes(cookie, RUNTIME_COOKIES * sizeof(*cookie), hash_seed ^ key);
}

struct function_entry *functions_find(const struct functions *t, const struct runtime_frame *f)
{
	uint64_t cookie[RUNTIME_COOKIES];
	struct function_entry *e;

	entry_cookies(f, cookie);
	e = map_find_ptr(&t->by_hash, entry_hash(f->key, cookie));
	while (e && (e->key != f->key || !e->hinted != !(f->flags & RUNTIME_HINTED) ||
		     memcmp(e->cookie, cookie, sizeof(cookie)) != 0))
		e = e->next;
	return e;
}

static size_t entry_bytes(const struct function_entry *e)
{
	return sizeof(*e) + sizeof(struct map_slot) + (e->hinted ? sizeof(*e->hinted) : 0);
}

static struct function_entry *entry_free(struct function_entry *e)
{
	if (e)
		free(e->hinted);
	free(e);
	return NULL;
}

static struct function_entry *entry_new(const struct runtime_frame *f)
{
	struct function_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->key = f->key;
	entry_cookies(f, e->cookie);
	if (!(f->flags & RUNTIME_HINTED))
		return e;
	e->hinted = calloc(1, sizeof(*e->hinted));
	return e->hinted ? e : entry_free(e);
}

struct function_entry *functions_add(struct functions *t, const struct runtime_frame *f)
{
	struct function_entry *e = t->count < FUNCTIONS_MAX ? entry_new(f) : NULL;
	uint64_t hash;

	if (!e)
		return NULL;
	hash = entry_hash(e->key, e->cookie);
	e->next = map_find_ptr(&t->by_hash, hash);
	if (map_put_ptr(&t->by_hash, hash, e) < 0)
		return entry_free(e);
	t->count++;
	t->bytes += entry_bytes(e);
	bytes += entry_bytes(e);
	return e;
}

bool function_holds(const struct function *fn, const struct runtime_frame *f)
{
	if (!fn->is_bounded || !fn->nr_lines || !f->position || f->flags & RUNTIME_LINE)
		return true;
	return f->position >= fn->lines[0].position && f->position < fn->lines[fn->nr_lines - 1].position;
}

static bool function_wants(const struct function_entry *e, const struct runtime_frame *f, uint64_t after_ns, uint64_t now_ns)
{
	if (e->state == FUNCTION_ASKED)
		return false;
	if (e->function && !function_holds(e->function, f) && now_ns >= e->read_ns + FUNCTION_OTHER_NS)
		return true;
	return e->read_ns < after_ns || (e->state == FUNCTION_UNKNOWN && now_ns >= e->again_ns);
}

bool functions_want(struct functions *t, const struct runtime_frame *f, uint64_t after_ns, uint64_t now_ns)
{
	struct function_entry *e = functions_find(t, f);

	if (e && !function_wants(e, f, after_ns, now_ns))
		return false;
	e = e ? e : functions_add(t, f);
	if (!e)
		return false;
	e->state = FUNCTION_ASKED;
	e->asked_ns = now_ns;
	return true;
}

bool function_is_pending(const struct function_entry *e, uint64_t after_ns)
{
	return e && e->state == FUNCTION_ASKED && !function_after(e, after_ns);
}

const struct function *function_after(const struct function_entry *e, uint64_t after_ns)
{
	return e && e->read_ns >= after_ns ? e->function : NULL;
}

/* What lies there is no such function, and never will be: all else is a failure of the moment. */
static uint64_t functions_again_ns(int err, uint64_t now_ns)
{
	switch (err) {
	case -EBUSY:
		return 0;
	case -ESTALE:
	case -EFAULT:
	case -EBADMSG:
	case -E2BIG:
		return UINT64_MAX;
	default:
		return now_ns + FUNCTION_RETRY_NS;
	}
}

/* --- functions that are found by what is gone soon --- */

static bool hinted_has_epochs(const struct function_hinted *h, const struct functions_when *when)
{
	return h->since_epoch && when->epoch;
}

/* Whether the sample is older than all that the last answer may say. */
static bool hinted_is_later(const struct function_entry *e, const struct functions_when *when)
{
	const struct function_hinted *h = e->hinted;

	if (!e->function)
		return false;
	return hinted_has_epochs(h, when) ? when->epoch - when->begins < h->since_epoch : when->time_ns < h->since_ns;
}

/* What is read during a collection may be of the epoch before: it says nothing of the one that it begins. */
static bool hinted_was_read_for(const struct function_entry *e, const struct functions_when *when)
{
	if (when->begins || when->epoch != e->hinted->read_epoch)
		return when->epoch <= e->hinted->read_epoch;
	return when->ran_ns && e->read_ns >= when->ran_ns;
}

const struct function *function_hinted(const struct function_entry *e, const struct runtime_frame *f,
				       const struct functions_when *when)
{
	const struct function_hinted *h = e ? e->hinted : NULL;

	if (!h || !e->function || hinted_is_later(e, when))
		return NULL;
	if (hinted_has_epochs(h, when))
		return hinted_was_read_for(e, when) ? e->function : NULL;
	if (e->read_ns >= when->time_ns || (e->read_ns >= when->after_ns && h->hint == f->cookie[RUNTIME_COOKIE_HINT]))
		return e->function;
	return NULL;
}

static bool hinted_is_wanted(const struct function_entry *e, const struct runtime_frame *f, const struct functions_when *when,
			     uint64_t now_ns)
{
	return e->state != FUNCTION_ASKED && now_ns >= e->again_ns && when->time_ns > e->hinted->failed_ns &&
	       !hinted_is_later(e, when) && !function_hinted(e, f, when);
}

static void functions_ask_for_epoch(const struct function_entry *e, const struct functions_when *when,
				    struct runtime_frame *question)
{
	uint64_t *epoch = &question->cookie[RUNTIME_COOKIE_EPOCH];

	*epoch = when->epoch ? when->epoch : (when->bound ? when->bound : e->cookie[RUNTIME_COOKIE_EPOCH]);
	if (!when->epoch && when->bound)
		question->flags |= RUNTIME_BOUND;
}

bool functions_want_hinted(struct functions *t, const struct runtime_frame *f, const struct functions_when *when,
			   uint64_t now_ns, struct runtime_frame *question)
{
	struct function_entry *e = functions_find(t, f);
	struct function_hinted *h;

	if (e && !hinted_is_wanted(e, f, when, now_ns))
		return false;
	e = e ? e : functions_add(t, f);
	if (!e)
		return false;
	h = e->hinted;
	e->state = FUNCTION_ASKED;
	e->asked_ns = now_ns;
	h->asked_hint = f->cookie[RUNTIME_COOKIE_HINT];
	h->asked_for_ns = when->time_ns;
	h->asked_epoch = when->epoch;
	*question = *f;
	functions_ask_for_epoch(e, when, question);
	return true;
}

bool function_hinted_is_pending(const struct function_entry *e, const struct runtime_frame *f,
				const struct functions_when *when)
{
	if (!e || !e->hinted || e->state != FUNCTION_ASKED || function_hinted(e, f, when))
		return false;
	return when->time_ns > e->hinted->failed_ns && !hinted_is_later(e, when);
}

/* What failed says nothing of samples before the last answer: that function stays. */
static void functions_settle_hinted(struct functions *t, struct function_entry *e, int err, const struct runtime_function *fn,
				    uint64_t now_ns)
{
	struct function_hinted *h = e->hinted;
	struct function *found = err ? NULL : function_get(fn);

	e->state = e->function || found ? FUNCTION_KNOWN : FUNCTION_UNKNOWN;
	if (!found) {
		h->failed_ns = err == -EBUSY ? h->failed_ns : h->asked_for_ns;
		e->again_ns = err == -EBUSY || functions_again_ns(err, now_ns) == UINT64_MAX ? 0 : now_ns + FUNCTION_RETRY_NS;
		return;
	}
	if (found != e->function)
		h->since_ns = h->asked_for_ns;
	/* Where epochs are not known any more, as of several isolates, time decides. */
	if (found != e->function || !h->since_epoch || (h->asked_epoch && !fn->epoch))
		h->since_epoch = fn->epoch;
	if (found != e->function || fn->epoch)
		h->read_epoch = fn->epoch;
	t->bytes += found->counted - (e->function ? e->function->counted : 0);
	function_put(e->function);
	e->function = found;
	e->read_ns = e->asked_ns;
	h->hint = h->asked_hint;
}

void functions_settle(struct functions *t, struct function_entry *e, int err, const struct runtime_function *fn,
		      uint64_t now_ns)
{
	if (e->hinted) {
		functions_settle_hinted(t, e, err, fn, now_ns);
		return;
	}
	t->bytes -= e->function ? e->function->counted : 0;
	e->function = function_put(e->function);
	if (!err)
		e->function = function_get(fn);
	t->bytes += e->function ? e->function->counted : 0;
	e->again_ns = functions_again_ns(err, now_ns);
	e->read_ns = e->asked_ns;
	e->state = e->function ? FUNCTION_KNOWN : FUNCTION_UNKNOWN;
}

static void functions_free_chain(struct function_entry *e)
{
	while (e) {
		struct function_entry *next = e->next;

		function_put(e->function);
		bytes -= entry_bytes(e);
		entry_free(e);
		e = next;
	}
}

void functions_done(struct functions *t)
{
	map_for_each(&t->by_hash, slot)
		functions_free_chain((void *)(uintptr_t)slot->value);
	map_done(&t->by_hash);
	t->count = 0;
	t->bytes = 0;
	if (!shared.count)
		map_done(&shared);
}

size_t functions_bytes(void)
{
	return bytes;
}
