// SPDX-License-Identifier: Apache-2.0
/*
 * Who created a goroutine, and its labels (runtime/pprof: Do, SetGoroutineLabels):
 * g.gopc, the return address of the call that the go statement is, and g.labels.
 * Both are copied in the tick, labels with the bytes of their keys and values:
 * they never change, but the memory is collected and holds other labels then.
 *
 * The main goroutine has no creator, as in Go's own tracebacks: its go statement is
 * in the assembly code that a program begins with (asm_amd64.s, rt0_go, which calls
 * newproc, since Go 1.17 by a wrapper of that name).
 * Where the fields are stands in the program's own code: printcreatedby begins
 * with a load of gopc (Go, src/runtime/traceback.go), runtime_setProfLabel has a
 * store to labels (proflabel.go). A program that links no runtime_setProfLabel
 * never sets any. Read from compiled programs of Go 1.15 to 1.27.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/go.h"

/* Behind g's fixed part, before what may follow its labels. */
enum { GO_FIELD_MIN = 152, GO_FIELD_MAX = 768 };

/* A string's pointer and length. */
enum { STRING_AT, STRING_LEN, STRING_WORDS };

/* Go 1.24 on (runtime/pprof/label.go): struct { list []label }, of struct { key, value string }. */
enum { LIST_AT = 0, LIST_LEN = 8, LABEL_SIZE = 32, LABEL_WORDS = 2 * STRING_WORDS };
/*
 * Before: map[string]string; of struct hmap (runtime/map.go) the buckets, of a bucket 8 bytes, 8 keys, 8 values. A map of
 * up to 8 has one bucket; of a larger one the first bucket has some of its pairs.
 */
enum { MAP_BUCKETS = 16, BUCKET_KEYS = 8, BUCKET_PAIRS = 8, STRING_SIZE = 8 * STRING_WORDS };

#define KEY_WORDS   (RUNTIME_LABEL_KEY / 8)
#define VALUE_WORDS (RUNTIME_LABEL_VALUE / 8)

/* --- where the fields are --- */

static bool go_is_field(int32_t at)
{
	return at >= GO_FIELD_MIN && at <= GO_FIELD_MAX && at % 8 == 0;
}

/* mov disp32(%rax),%rax, or to %rcx: the first one of printcreatedby. 0: not found. */
static int32_t go_find_creator(const struct go_attaching *g)
{
	struct go_code c;
	int64_t to_rax, to_rcx, at;

	if (!g->created.end)
		return 0;
	go_code_read(g->file->binary, &g->created, &c);
	to_rax = GO_FIND(&c, 0, 4, 0x48, 0x8b, 0x80);
	to_rcx = GO_FIND(&c, 0, 4, 0x48, 0x8b, 0x88);
	at = to_rax >= 0 && (to_rcx < 0 || to_rax < to_rcx) ? to_rax : to_rcx;
	return at >= 0 && go_is_field(go_code_s32(&c, (uint32_t)at + 3)) ? go_code_s32(&c, (uint32_t)at + 3) : 0;
}

/* mov %rax,disp32(%rcx), or disp32(%r14). 0: not found. */
static int32_t go_find_labels(const struct go_attaching *g)
{
	struct go_code c;
	int64_t at;

	if (!g->set_labels.end)
		return 0;
	go_code_read(g->file->binary, &g->set_labels, &c);
	at = GO_FIND(&c, 0, 4, 0x48, 0x89, 0x81);
	if (at < 0)
		at = GO_FIND(&c, 0, 4, 0x49, 0x89, 0x86);
	return at >= 0 && go_is_field(go_code_s32(&c, (uint32_t)at + 3)) ? go_code_s32(&c, (uint32_t)at + 3) : 0;
}

/* The form of labels changed with Go 1.24, within a format of the table: the version has to say which it is. */
static enum go_labels go_labels_form(const struct go_attaching *g, const char *version)
{
	char *end;
	long major, minor;

	if (g->table->format < GO_1_20)
		return GO_LABELS_MAP;
	major = strtol(version, &end, 10);
	if (major != 1 || *end != '.')
		return GO_LABELS_NONE;
	minor = strtol(end + 1, &end, 10);
	if (minor < 20 || *end == ' ')
		return GO_LABELS_NONE; /* the words for a format */
	return minor < 24 ? GO_LABELS_MAP : GO_LABELS_LIST;
}

/* --- the plan --- */

static void go_plan_list(struct otp_walk *w)
{
	w->first.at = w->last.at = LIST_AT;
	w->last.count_at = LIST_LEN;
	w->last.scale = LABEL_SIZE;
	w->last.bias = -LABEL_SIZE;
	w->stride = LABEL_SIZE;
	w->keep = (1u << LABEL_WORDS) - 1;
	w->frames_max = RUNTIME_LABELS;
	w->nr_subs = 2;
	w->sub[0] = (struct otp_walk_sub){.at = STRING_AT, .keep = (1u << KEY_WORDS) - 1};
	w->sub[1] = (struct otp_walk_sub){.at = STRING_WORDS + STRING_AT, .keep = (1u << VALUE_WORDS) - 1};
}

static void go_plan_map(struct otp_walk *w)
{
	w->chain[w->nr_chain++] = 0; /* the labels are a pointer to the map, which is one itself */
	w->first.at = w->last.at = MAP_BUCKETS;
	w->first.bias = BUCKET_KEYS;
	w->last.bias = BUCKET_KEYS + (2 * BUCKET_PAIRS - 1) * STRING_SIZE;
	w->stride = STRING_SIZE;
	w->keep = (1u << STRING_WORDS) - 1;
	w->frames_max = 2 * BUCKET_PAIRS;
	w->nr_subs = 1;
	w->sub[0] = (struct otp_walk_sub){.at = STRING_AT, .keep = (1u << VALUE_WORDS) - 1};
}

/* The root alone: g's first word, which never changes, is taken for an array that ends before it begins. */
static void go_plan_none(struct otp_walk *w)
{
	w->first.bias = 8;
	w->stride = 8;
	w->frames_max = 1;
}

void go_attach_context(const struct go_attaching *g, struct runtime_attached *ret)
{
	int32_t creator = go_find_creator(g), labels = go_find_labels(g);
	enum go_labels form = labels ? go_labels_form(g, ret->version) : GO_LABELS_NONE;
	struct otp_walk *w = &ret->more;

	if (!g->goexit.end || (!creator && form == GO_LABELS_NONE))
		return;
	*w = (struct otp_walk){.start = OTP_WALK_TLS, .step = OTP_WALK_ARRAY, .base = g->walk->base,
			       .nr_chain = g->walk->nr_chain, .root_at = g->walk->root_at, .root_off = creator,
			       .root_keep = creator ? 1 : 0};
	memcpy(w->chain, g->walk->chain, sizeof(w->chain));
	if (form != GO_LABELS_NONE)
		w->chain[w->nr_chain++] = labels;
	if (form == GO_LABELS_LIST)
		go_plan_list(w);
	else if (form == GO_LABELS_MAP)
		go_plan_map(w);
	else
		go_plan_none(w);
	ret->param[GO_LABELS] = form;
	for (uint32_t i = 0; i < g->nr_begins; i++) {
		ret->param[GO_BEGINS + 2 * i] = g->file->bias + g->begins[i].start;
		ret->param[GO_BEGINS + 2 * i + 1] = g->file->bias + g->begins[i].end;
	}
	ret->param[GO_EXIT] = g->file->bias + g->goexit.start;
	ret->param[GO_EXIT_END] = g->file->bias + g->goexit.end;
}

/* --- what was copied --- */

/* A whole key, without a NUL. */
static bool go_label_key(char to[RUNTIME_LABEL_KEY], const uint64_t *bytes, uint64_t len)
{
	if (len >= RUNTIME_LABEL_KEY || memchr(bytes, 0, len))
		return false;
	memcpy(to, bytes, len);
	return true;
}

/* A value, cut before a character of UTF-8 that does not fit. */
static bool go_label_value(char to[RUNTIME_LABEL_VALUE], const uint64_t *bytes, uint64_t len)
{
	const uint8_t *byte = (const uint8_t *)bytes;
	uint64_t n = MIN(len, (uint64_t)RUNTIME_LABEL_VALUE - 1);

	while (n && n < len && (byte[n] & 0xc0) == 0x80)
		n--;
	if (memchr(bytes, 0, n))
		return false;
	memcpy(to, bytes, n);
	return true;
}

struct go_string {
	const uint64_t *bytes; /* NULL: they could not be read */
	uint64_t len;
};

/* An empty string has no bytes to read. */
static void go_context_add(struct runtime_context *c, struct go_string key, struct go_string value)
{
	struct runtime_label *l = &c->label[c->nr_labels];

	if (!key.len)
		return;
	if (c->nr_labels == RUNTIME_LABELS || !key.bytes || (value.len && !value.bytes)) {
		c->labels_left++;
		return;
	}
	*l = (struct runtime_label){0};
	if (go_label_key(l->key, key.bytes, key.len) && (!value.len || go_label_value(l->value, value.bytes, value.len)))
		c->nr_labels++;
	else
		c->labels_left++;
}

static struct go_string go_string_of(const uint64_t *frame, unsigned word, unsigned sub, const uint64_t *bytes)
{
	return (struct go_string){.bytes = *frame & OTP_WALK_MISSING(sub) ? NULL : bytes, .len = frame[1 + word + STRING_LEN]};
}

static void go_context_list(const struct runtime_copied *w, struct runtime_context *ret)
{
	if (w->frame_words != 1 + LABEL_WORDS + KEY_WORDS + VALUE_WORDS)
		return;
	for (uint32_t i = 0; i < w->nr_frames; i++) {
		const uint64_t *frame = w->frames + (size_t)i * w->frame_words, *bytes = frame + 1 + LABEL_WORDS;

		go_context_add(ret, go_string_of(frame, 0, 0, bytes), go_string_of(frame, STRING_WORDS, 1, bytes + KEY_WORDS));
	}
	ret->labels_left += w->cut;
}

static void go_context_map(const struct runtime_copied *w, struct runtime_context *ret)
{
	size_t values = (size_t)BUCKET_PAIRS * w->frame_words;

	if (w->frame_words != 1 + STRING_WORDS + VALUE_WORDS || w->nr_frames != 2 * BUCKET_PAIRS)
		return;
	for (uint32_t i = 0; i < BUCKET_PAIRS; i++) {
		const uint64_t *key = w->frames + (size_t)i * w->frame_words, *value = key + values;

		go_context_add(ret, go_string_of(key, 0, 0, key + 1 + STRING_WORDS),
			       go_string_of(value, 0, 0, value + 1 + STRING_WORDS));
	}
}

static bool go_is_main(const struct runtime_attached *a, uint64_t creator)
{
	for (unsigned i = GO_BEGINS; i < GO_BEGINS_END; i += 2)
		if (creator >= a->param[i] && creator < a->param[i + 1])
			return true;
	return false;
}

void go_context(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret)
{
	if (w->nr_root == 1 && a->more.root_keep && !go_is_main(a, w->root[0]))
		ret->creator = w->root[0];
	if (a->param[GO_LABELS] == GO_LABELS_LIST)
		go_context_list(w, ret);
	else if (a->param[GO_LABELS] == GO_LABELS_MAP)
		go_context_map(w, ret);
}

bool go_is_end(const struct runtime_attached *a, uint64_t pc)
{
	return pc >= a->param[GO_EXIT] && pc < a->param[GO_EXIT_END];
}
