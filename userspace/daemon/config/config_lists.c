// SPDX-License-Identifier: Apache-2.0
/*
 * Lists, to which each value adds: targets, headers, resource attributes.
 */
#include "daemon/config/config_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "process/target.h"

#define WORD_MAX 1024
#define PID_LAST 4194304

/* Targets. The field is the whole configuration; min is 0 for include, 1 for exclude. */

static bool is_cgroup_path(const char *s)
{
	return s[0] && strcmp(s, "..") && strncmp(s, "../", 3) && !strstr(s, "/../");
}

static bool only(const char *s, const char *also)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	for (; *s; s++)
		if (!strchr(plain, *s) && !strchr(also, *s))
			return false;
	return true;
}

static bool is_unit(const char *s)
{
	return s[0] && only(s, "@:\\*?");
}

static bool is_container(const char *s)
{
	return s[0] && only(s, "*?");
}

/* A name, or an absolute path; both may be patterns. */
static bool is_exe(const char *s)
{
	return s[0] && (s[0] == '/' || !strchr(s, '/'));
}

static bool is_user(const char *s)
{
	return s[0] && s[0] != '-' && only(s, "$");
}

static bool is_pid(const char *s)
{
	uint64_t pid;

	return !value_u64(s, &pid) && pid >= 1 && pid <= PID_LAST;
}

static const struct {
	const char *prefix;
	bool (*is_good)(const char *s);
	const char *expected;
} kinds[] = {
	[TARGET_CGROUP] = {"cgroup:", is_cgroup_path, "cgroup:PATH below the hierarchy's root, without .."},
	[TARGET_UNIT] = {"unit:", is_unit, "unit:NAME of a systemd unit"},
	[TARGET_CONTAINER] = {"container:", is_container, "container:ID or container:NAME"},
	[TARGET_EXE] = {"exe:", is_exe, "exe:NAME or exe:/ABSOLUTE/PATH"},
	[TARGET_USER] = {"user:", is_user, "user:NAME or user:NUMBER"},
	[TARGET_PID] = {"pid:", is_pid, "pid:NUMBER from 1 to 4194304"},
};

static char *unit_name(const char *s)
{
	char *name;

	return asprintf(&name, "%s%s", s, target_unit_suffix(s)) < 0 ? NULL : name;
}

static int add_target(struct config *c, enum target_kind kind, bool exclude, const char *text, char *what)
{
	struct config_target t = {.kind = kind, .exclude = exclude};
	uint64_t pid;

	if (c->nr_targets >= CONFIG_TARGETS_MAX) {
		snprintf(what, CONFIG_WHAT_MAX, "expected at most %u targets", CONFIG_TARGETS_MAX);
		return -EINVAL;
	}
	if (kind == TARGET_PID)
		t.pid = value_u64(text, &pid) ? 0 : (uint32_t)pid;
	else if (!(t.text = kind == TARGET_UNIT ? unit_name(text) : strdup(text)))
		return -ENOMEM;
	c->targets[c->nr_targets++] = t;
	return 0;
}

/* The kind of a word; -EINVAL and what was expected. */
static int target_kind_of(const char *word, char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].prefix);

		if (strncmp(word, kinds[i].prefix, n))
			continue;
		return strlen(word) > WORD_MAX || !kinds[i].is_good(word + n) ? config_expected(what, kinds[i].expected) :
										(int)i;
	}
	return config_expected(what, "unit:NAME, container:ID, cgroup:PATH, exe:NAME, user:NAME or pid:NUMBER, "
				     "separated by spaces");
}

static int target_word(const struct config_key *k, void *field, const char *word, char *what)
{
	int kind = target_kind_of(word, what);

	return kind < 0 ? kind : add_target(field, (enum target_kind)kind, k->min != 0, word + strlen(kinds[kind].prefix), what);
}

/* A process by number is no workload: its number is another's after its end. */
int config_target_live(const char *word, struct config_target *ret, char *what)
{
	int kind = target_kind_of(word, what);
	const char *text;

	if (kind < 0)
		return kind;
	if (kind == TARGET_PID)
		return config_expected(what, "no pid: a selection names units, containers, cgroups, programs or users");
	text = word + strlen(kinds[kind].prefix);
	*ret = (struct config_target){.kind = (enum target_kind)kind, .live = true};
	ret->text = kind == TARGET_UNIT ? unit_name(text) : strdup(text);
	return ret->text ? 0 : -ENOMEM;
}

static int parse_targets(const struct config_key *k, void *field, const char *value, char *what)
{
	return config_each_word(k, field, value, what, target_word);
}

static void print_targets(const struct config_key *k, const void *field, struct buf *to)
{
	const struct config *c = field;
	const char *sep = "";

	for (uint32_t i = 0; i < c->nr_targets; i++) {
		const struct config_target *t = &c->targets[i];

		if (t->live || t->exclude != (k->min != 0))
			continue;
		/* One target a line, since the length of a line is bounded. */
		buf_add_str(to, sep);
		if (t->kind == TARGET_PID)
			buf_printf(to, "pid:%u", t->pid);
		else
			buf_printf(to, "%s%s", kinds[t->kind].prefix, t->text);
		sep = k->min ? "\nexclude = " : "\ninclude = ";
	}
}

const struct config_type config_type_targets = {parse_targets, print_targets};

/* Headers of an exporter, one a line: the key repeats. */

int config_add_header(struct export_config *e, const char *header)
{
	char *copy;

	if (e->nr_headers == EXPORT_HEADERS_MAX)
		return -ENOSPC;
	copy = strdup(header);
	if (!copy)
		return -ENOMEM;
	e->headers[e->nr_headers++] = copy;
	return 0;
}

static void free_header(char *header)
{
	explicit_bzero(header, strlen(header));
	free(header);
}

static bool headers_have_one_name(const char *a, const char *b)
{
	size_t n = strcspn(a, ":");

	return n == strcspn(b, ":") && !strncasecmp(a, b, n);
}

static void remove_headers_of_name(struct export_config *e, const char *header)
{
	uint32_t kept = 0, env = e->nr_headers - e->nr_headers_env;

	for (uint32_t i = 0; i < e->nr_headers; i++) {
		if (!headers_have_one_name(e->headers[i], header)) {
			e->headers[kept++] = e->headers[i];
			continue;
		}
		e->nr_headers_env -= i >= env;
		free_header(e->headers[i]);
	}
	e->nr_headers = kept;
}

int config_replace_header(struct export_config *e, const char *header)
{
	int err;

	remove_headers_of_name(e, header);
	err = config_add_header(e, header);
	e->nr_headers_env += !err;
	return err;
}

bool config_header_is_replaced(const struct export_config *e, const char *header)
{
	uint32_t last = e->nr_headers - e->nr_headers_file;

	for (uint32_t i = last - e->nr_headers_env; i < last; i++)
		if (headers_have_one_name(e->headers[i], header))
			return true;
	return false;
}

/* A token (RFC 9110, 5.6.2), a colon, a value. */
bool config_is_header(const char *s)
{
	size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return n && s[n] == ':' && value_is_text(s);
}

/* Values that are secrets under any name: a scheme of RFC 7235, a URL with a user. */
static bool is_credential(const char *value)
{
	value += strspn(value, ": \t");
	return !strncasecmp(value, "Bearer ", 7) || !strncasecmp(value, "Basic ", 6) ||
	       (strstr(value, "://") && strchr(strstr(value, "://"), '@'));
}

/*
 * Vendors' names of the header that holds a key: Authorization, X-Api-Key, DD-API-KEY, x-honeycomb-team, uptrace-dsn
 * ...
 */
bool config_header_is_secret(const char *header)
{
	static const char *const parts[] = {"auth",   "key",    "token",   "secret", "passw",
					    "cookie", "apikey", "session", "-team",  "license", "credential", "dsn"};
	size_t len = strcspn(header, ":");
	char name[64];

	if (is_credential(header + len))
		return true;
	snprintf(name, sizeof(name), "%.*s", (int)len, header);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

static int parse_header(const struct config_key *k, void *field, const char *value, char *what)
{
	int err;

	if (!config_is_header(value))
		return config_expected(what, "one \"Name: value\"; give the key again for the next");
	err = config_add_header(field, value);
	if (err != -ENOSPC)
		return err;
	snprintf(what, CONFIG_WHAT_MAX, "expected at most %u headers", EXPORT_HEADERS_MAX);
	return -EINVAL;
}

static void print_header(const struct config_key *k, const void *field, struct buf *to)
{
	const struct export_config *e = field;

	for (uint32_t i = 0; i < e->nr_headers; i++)
		buf_printf(to, "%s%s%s%s", i ? "\n" : "", i ? k->name : "", i ? " = " : "", e->headers[i]);
}

const struct config_type config_type_header = {parse_header, print_header};

/* Resource attributes. */

static bool is_resource_value(const char *s)
{
	return *s && strlen(s) <= WORD_MAX && value_is_text(s);
}

int config_add_resource(struct config *c, const char *key, const char *value)
{
	struct config_resource r;

	if (!*key || !only(key, "/") || !is_resource_value(value))
		return -EINVAL;
	for (uint32_t i = 0; i < c->nr_resources; i++)
		if (!strcmp(c->resources[i].key, key))
			return -EEXIST;
	if (c->nr_resources == CONFIG_RESOURCES_MAX)
		return -ENOSPC;
	r = (struct config_resource){strdup(key), strdup(value)};
	if (!r.key || !r.value) {
		free(r.key);
		free(r.value);
		return -ENOMEM;
	}
	c->resources[c->nr_resources++] = r;
	return 0;
}

int config_replace_resource(struct config *c, const char *key, const char *value)
{
	for (uint32_t i = 0; i < c->nr_resources; i++) {
		if (strcmp(c->resources[i].key, key))
			continue;
		return is_resource_value(value) ? config_replace(&c->resources[i].value, value) : -EINVAL;
	}
	return -ENOENT;
}
