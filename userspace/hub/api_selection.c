// SPDX-License-Identifier: Apache-2.0
/* What is sampled for a while: shown to everybody, changed where the monitor lets the hub ask. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/api_internal.h"

/* --- how a selection names a workload --- */

/* The kinds that a line of [targets] can name, with its prefix. */
static const char *selection_prefix(enum workload_kind kind)
{
	switch (kind) {
	case WORKLOAD_UNIT:
		return "unit:";
	case WORKLOAD_CONTAINER:
		return "container:";
	case WORKLOAD_EXECUTABLE:
		return "exe:";
	default:
		return NULL;
	}
}

static bool selection_is_name(const char *name)
{
	/* Wildcards would select others. */
	return *name && !name[strcspn(name, " \t*?/")];
}

void api_target_json(struct jsonw *j, const char *name, const struct workload *of)
{
	const char *prefix = of->near ? selection_prefix(of->kind) : NULL;
	const char *as = of->kind == WORKLOAD_EXECUTABLE ? of->executable : of->name;
	char text[STORE_TEXT + 16];

	if (!prefix || !selection_is_name(as)) {
		jsonw_null(j, name);
		return;
	}
	snprintf(text, sizeof(text), "%s%s", prefix, as);
	jsonw_text(j, name, text);
}

/* --- what is in force --- */

static const char *selection_impossible(const struct api *api)
{
	if (!api->sampler)
		return "there is no sampler beside this hub";
	if (!api->select || !api->may_select || !*api->may_select)
		return "[hub] selection is off: 'otprof select' does it, for root and the group of otprofd's sockets";
	return NULL;
}

static void selection_number(struct jsonw *j, const char *name, uint64_t n)
{
	if (n)
		jsonw_number(j, name, n);
	else
		jsonw_null(j, name);
}

static void selection_targets(struct jsonw *j, const char *words)
{
	char word[SELECTION_WORDS_MAX];
	size_t n;

	jsonw_open_list(j, "targets");
	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		jsonw_text(j, NULL, word);
	}
	jsonw_close_list(j);
}

static void selection_json(struct api_work *w, unsigned int status)
{
	static const struct selection_shown none;
	const struct selection_shown *s = w->api->shown ? w->api->shown : &none;
	const char *impossible = selection_impossible(w->api);
	struct jsonw j = api_begin(w, status);

	jsonw_open(&j, NULL);
	jsonw_bool(&j, "possible", !impossible);
	jsonw_text_or_null(&j, "impossible", impossible ? impossible : "");
	jsonw_text_or_null(&j, "refused", w->api->refused ? w->api->refused : "");
	jsonw_bool(&j, "on", s->since_ns);
	selection_targets(&j, s->since_ns ? s->what.targets : "");
	selection_number(&j, "frequency_hz", s->since_ns ? s->what.hz : 0);
	selection_number(&j, "stack_bytes", s->since_ns ? s->what.stack_bytes : 0);
	selection_number(&j, "since_ms", s->since_ns / MS);
	selection_number(&j, "until_ms", s->since_ns ? s->until_ns / MS : 0);
	jsonw_text_or_null(&j, "by", s->since_ns ? s->by : "");
	jsonw_close(&j);
	api_end(w);
}

void api_get_selection(struct api_work *w)
{
	selection_json(w, 200);
}

/* --- changes --- */

static bool selection_take_targets(struct api_work *w, struct selection *s, const json_t *list)
{
	char why[SELECTION_WHY];
	json_t *one;
	size_t i;

	if (!json_is_array(list)) {
		api_fail(w->reply, 422, "bad_value", "targets", "targets is a list of texts");
		return false;
	}
	json_array_foreach((json_t *)(uintptr_t)list, i, one) {
		const char *text = json_string_value(one);

		if (text && !selection_add(s, text, json_string_length(one), why))
			continue;
		api_fail(w->reply, 422, "bad_value", "targets", "%s", text ? why : "targets is a list of texts");
		return false;
	}
	return true;
}

static bool selection_take_number(struct api_work *w, const char *name, const json_t *value, uint64_t min, uint64_t max,
				  uint32_t *ret)
{
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < (json_int_t)min || n > (json_int_t)max) {
		api_fail(w->reply, 422, "bad_value", name, API_RANGE, name, min, max);
		return false;
	}
	*ret = (uint32_t)n;
	return true;
}

static bool selection_take(struct api_work *w, struct selection *s, const char *key, const json_t *value)
{
	if (strcmp(key, "targets") == 0)
		return selection_take_targets(w, s, value);
	if (strcmp(key, "frequency_hz") == 0)
		return selection_take_number(w, key, value, 1, SELECTION_HZ_MAX, &s->hz);
	if (strcmp(key, "stack_bytes") == 0)
		return selection_take_number(w, key, value, 512, 1u << 20, &s->stack_bytes);
	if (strcmp(key, "seconds") == 0)
		return selection_take_number(w, key, value, 1, SELECTION_SECONDS_MAX, &s->seconds);
	api_fail(w->reply, 422, "unknown_field", key, "no such field");
	return false;
}

static bool selection_take_all(struct api_work *w, struct selection *s, json_t *from)
{
	const char *key;
	json_t *value;

	json_object_foreach(from, key, value)
		if (!selection_take(w, s, key, value))
			return false;
	if (s->nr_targets || s->hz || s->stack_bytes)
		return true;
	api_fail(w->reply, 422, "bad_value", "targets", "it names neither targets nor frequency_hz nor stack_bytes");
	return false;
}

/* The monitor puts it in force in a moment: GET shows it then, or why it was refused. */
static void selection_ask(struct api_work *w, const struct selection *s)
{
	char why[SELECTION_WHY] = "";
	int r = w->api->select(w->api->select_ctx, s, why);

	if (r == -EINVAL)
		api_fail(w->reply, 422, "bad_value", "targets", "%s", why);
	else if (r < 0)
		api_fail(w->reply, 503, "overload", NULL, "the monitor takes no request now");
	else
		selection_json(w, 202);
}

static bool selection_may(struct api_work *w)
{
	const char *impossible = selection_impossible(w->api);

	if (impossible)
		api_fail(w->reply, 403, "selection_off", NULL, "%s", impossible);
	return !impossible;
}

void api_put_selection(struct api_work *w)
{
	struct selection s = {.seconds = SELECTION_SECONDS};
	json_t *from;

	if (!selection_may(w) || !(from = api_json_body(w)))
		return;
	if (selection_take_all(w, &s, from))
		selection_ask(w, &s);
	json_decref(from);
}

void api_delete_selection(struct api_work *w)
{
	if (selection_may(w))
		selection_ask(w, NULL);
}
