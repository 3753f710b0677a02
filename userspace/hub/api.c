// SPDX-License-Identifier: Apache-2.0
/* The way of a request to its handler, and what all handlers need. */
#include "hub/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "hub/api_internal.h"

#define MESSAGE_MAX 256
#define ID_DIGITS   16

/* {} in a path is the id of a workload. */
static const struct route {
	const char *method, *path;
	api_handler *handler;
} routes[] = {
	{"GET", "/status", api_get_status},
	{"GET", "/workloads", api_get_workloads},
	{"GET", "/workloads/{}", api_get_workload},
	{"GET", "/workloads/{}/slot", api_get_slot},
	{"PUT", "/workloads/{}/slot", api_put_slot},
	{"DELETE", "/workloads/{}/slot", api_delete_slot},
	{"DELETE", "/workloads/{}/samples", api_delete_samples},
	{"GET", "/workloads/{}/tree", api_get_tree},
	{"GET", "/workloads/{}/timeline", api_get_timeline},
	{"GET", "/workloads/{}/snapshot", api_get_snapshot},
	{"GET", "/diff", api_get_diff},
	{"GET", "/slots", api_get_slots},
	{"GET", "/limits", api_get_limits},
	{"PATCH", "/limits", api_patch_limits},
	{"GET", "/selection", api_get_selection},
	{"PUT", "/selection", api_put_selection},
	{"DELETE", "/selection", api_delete_selection},
};

/* --- replies --- */

void api_reply_done(struct api_reply *r)
{
	buf_done(&r->body);
}

void api_fail(struct api_reply *r, unsigned int status, const char *reason, const char *field, const char *fmt, ...)
{
	struct jsonw j = {.to = &r->body};
	char message[MESSAGE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	utf8_clean_str(message);
	buf_done(&r->body);
	*r = (struct api_reply){.status = status, .type = "application/json"};
	jsonw_open(&j, NULL);
	jsonw_open(&j, "error");
	jsonw_number(&j, "status", status);
	jsonw_text(&j, "reason", reason);
	if (field)
		jsonw_text(&j, "field", field);
	jsonw_text(&j, "message", message);
	jsonw_close(&j);
	jsonw_close(&j);
}

void api_fail_errno(struct api_work *w, int err)
{
	if (err == -ENOMEM || err == -E2BIG || err == -ENOSPC)
		api_fail(w->reply, 503, "overload", NULL, "the answer needs more memory than the hub may use");
	else
		api_fail(w->reply, 500, "internal", NULL, "%s", strerror(-err));
}

struct jsonw api_begin(struct api_work *w, unsigned int status)
{
	w->reply->status = status;
	w->reply->type = "application/json";
	return (struct jsonw){.to = &w->reply->body};
}

void api_end(struct api_work *w)
{
	if (w->reply->body.failed)
		api_fail_errno(w, -ENOMEM);
}

void api_id_json(struct jsonw *j, const char *name, uint64_t id)
{
	char text[ID_DIGITS + 1];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	jsonw_text(j, name, text);
}

void api_gone_json(struct jsonw *j, const char *name, const struct gone *g)
{
	jsonw_open(j, name);
	api_id_json(j, "workload", g->workload);
	jsonw_text(j, "name", g->name);
	jsonw_text(j, "reason", gone_reason_text(g->reason));
	jsonw_number(j, "at_ms", g->at_ns / MS);
	jsonw_close(j);
}

/* --- parameters --- */

bool api_type_is(const char *type, const char *want)
{
	size_t n = strlen(want);

	return type && strncasecmp(type, want, n) == 0 && (!type[n] || type[n] == ';' || type[n] == ' ');
}

const char *api_param(const struct api_call *c, const char *name)
{
	for (uint32_t i = 0; i < c->nr_params; i++)
		if (strcmp(c->params[i].name, name) == 0)
			return c->params[i].value;
	return NULL;
}

bool api_signed_param(struct api_work *w, const char *name, int64_t *ret, bool *ret_given)
{
	const char *s = api_param(w->call, name);
	char *end;
	long long n;

	*ret_given = s;
	if (!s)
		return true;
	errno = 0;
	n = strtoll(s, &end, 10);
	if (end == s || *end || errno || (*s != '-' && (*s < '0' || *s > '9')) || n > INT64_MAX / (int64_t)MS ||
	    n < -(INT64_MAX / (int64_t)MS)) {
		api_fail(w->reply, 422, "bad_value", name, "%s is a whole number of milliseconds", name);
		return false;
	}
	*ret = n;
	return true;
}

bool api_number_param(struct api_work *w, const char *name, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *s = api_param(w->call, name);
	char *end;
	unsigned long long n;

	if (!s)
		return true;
	errno = 0;
	n = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno || n < min || n > max) {
		api_fail(w->reply, 422, "bad_value", name, API_RANGE, name, min, max);
		return false;
	}
	*ret = n;
	return true;
}

static bool api_parse_id(const char *s, size_t len, uint64_t *ret)
{
	char text[ID_DIGITS + 1];

	if (len != ID_DIGITS || strspn(s, "0123456789abcdef") < ID_DIGITS)
		return false;
	memcpy(text, s, ID_DIGITS);
	text[ID_DIGITS] = '\0';
	*ret = strtoull(text, NULL, 16);
	return true;
}

struct workload *api_find(struct api_work *w, const char *field, const char *id)
{
	struct workload *of;
	uint64_t n;

	if (!api_parse_id(id, strcspn(id, "/"), &n)) {
		api_fail(w->reply, 422, "bad_value", field, "an id of a workload has 16 hexadecimal digits");
		return NULL;
	}
	of = store_find(w->api->store, n);
	if (!of)
		api_fail(w->reply, 404, "unknown_workload", field, "no such workload was seen in the last minutes");
	return of;
}

static void api_fail_gone(struct api_work *w, const struct workload *of)
{
	static const char *const why[] = {
		[GONE_EXPIRED] = "nobody asked for it for a while",
		[GONE_EVICTED] = "another workload's slot needed its place",
		[GONE_CLOSED] = "it was closed by a request",
	};
	struct jsonw j = {.to = &w->reply->body, .comma = true};

	api_fail(w->reply, 410, "slot_gone", NULL, "the slot is closed: %s", why[of->gone.reason]);
	/* One more member of the error, which ends in two brackets. */
	w->reply->body.len -= 2;
	api_gone_json(&j, "gone", &of->gone);
	buf_add_str(&w->reply->body, "}}");
}

struct slot *api_slot(struct api_work *w, struct workload *of)
{
	if (of->slot)
		store_touch(of, w->call->now_ns);
	else if (of->was_gone)
		api_fail_gone(w, of);
	else
		api_fail(w->reply, 404, "no_slot", NULL, "the workload has no slot: PUT .../slot opens one");
	return of->slot;
}

/* --- routing --- */

/* The id in a path of the route's form: its start; "" where the form has none; NULL: another form. */
static const char *api_match(const char *form, const char *path)
{
	const char *hole = strstr(form, "{}"), *id;
	size_t n = hole ? (size_t)(hole - form) : strlen(form);

	if (!hole)
		return strcmp(form, path) == 0 ? "" : NULL;
	if (strncmp(form, path, n) != 0)
		return NULL;
	id = path + n;
	n = strcspn(id, "/");
	return n && strcmp(id + n, hole + 2) == 0 ? id : NULL;
}

static const struct route *api_find_route(const char *method, const char *path, const char **ret_id, bool *ret_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		const char *id = api_match(routes[i].path, path);

		*ret_path |= id != NULL;
		*ret_id = id;
		if (id && (strcmp(method, routes[i].method) == 0 ||
			   (strcmp(method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0)))
			return &routes[i];
	}
	return NULL;
}

static const char *api_allowed(const char *path)
{
	static const char *const lists[] = {"GET, HEAD", "GET, HEAD, PUT, DELETE", "DELETE", "GET, HEAD, PATCH"};
	const char *id;
	bool known = false, get = api_find_route("GET", path, &id, &known);

	if (api_find_route("PUT", path, &id, &known))
		return lists[1];
	if (api_find_route("PATCH", path, &id, &known))
		return lists[3];
	return get ? lists[0] : lists[2];
}

static void api_refuse_route(const struct api_call *c, const char *path, bool known, struct api_reply *ret)
{
	if (!known) {
		api_fail(ret, 404, "unknown_path", NULL, "no such path");
		return;
	}
	api_fail(ret, 405, "method", NULL, "%.16s is not a method of this path", c->method);
	ret->allow = api_allowed(path);
}

void api_serve(const struct api *api, const struct api_call *c, struct api_reply *ret)
{
	const char *path = c->path + strlen(API_PREFIX), *id;
	struct api_work w = {.api = api, .call = c, .reply = ret};
	const struct route *route;
	bool known = false;

	*ret = (struct api_reply){0};
	route = api_find_route(c->method, path, &id, &known);
	if (!route) {
		api_refuse_route(c, path, known, ret);
		return;
	}
	if (*id && !(w.workload = api_find(&w, "id", id)))
		return;
	route->handler(&w);
}

bool api_events(const struct api *api, const struct api_call *call, struct workload **ret, const char **ret_type,
		struct api_reply *refusal)
{
	struct api_work w = {.api = api, .call = call, .reply = refusal};
	const char *id = api_param(call, "workload"), *type = api_param(call, "type");

	*refusal = (struct api_reply){0};
	*ret_type = type ? type : "";
	*ret = id ? api_find(&w, "workload", id) : NULL;
	return *ret || !id;
}
