// SPDX-License-Identifier: Apache-2.0
/*
 * Parses lines into a configuration. inih splits them into keys and values;
 * errors that it would ignore (long lines, binary bytes, repeated sections)
 * are found by the reader that feeds it, which also counts the lines.
 */
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/config/config_keys.h"

#define LINE_LIMIT   4096 /* with its newline */
#define ERRORS_LIMIT 20   /* later errors are mostly consequences */
#define NAME_LIMIT   256

struct config_parser {
	struct config *config;
	struct config_errors *errors;
	bool no_memory, stopped;
	struct config_place keys[CONFIG_KEYS_MAX]; /* by key; not those of exporters */
	struct config_place exporters[LEDGER_DESTINATIONS_MAX];
	const struct config_text *resources[CONFIG_RESOURCES_MAX]; /* the text that set it */
	/* of the present text */
	const struct config_text *text;
	const char *pos, *end;
	struct config_place at;
	unsigned int errors_before;
	bool sections_seen[SECTION_NR];
	/* of the section */
	enum config_section section;
	struct export_config *exporter;
	bool skip_section; /* unknown: logged once */
	unsigned int key_line[CONFIG_KEYS_MAX];
};

void config_complain(struct config_errors *e, const struct config_place *at, const char *fmt, ...)
{
	char text[800], line[1024];
	va_list ap;

	if (e->count++ >= ERRORS_LIMIT || !e->fn)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (at->line)
		snprintf(line, sizeof(line), "%.200s:%u: %s", at->name, at->line, text);
	else
		snprintf(line, sizeof(line), "%.200s: %s", at->name, text);
	e->fn(e->ctx, line);
}

bool config_errors_enough(const struct config_errors *e)
{
	return e->count > ERRORS_LIMIT;
}

#define complain(p, ...) config_complain((p)->errors, &(p)->at, __VA_ARGS__)

/* Sections. */

static bool is_exporter_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n && !s[n] && n < EXPORT_NAME_MAX;
}

/* A section of an earlier text may continue; twice in one text is an error. */
static void exporter_begin(struct config_parser *p, const char *name)
{
	struct export_config *e = config_exporter_find(p->config, name);

	p->skip_section = true;
	if (!is_exporter_name(name)) {
		complain(p, "[exporter %.64s]: bad name, expected [exporter NAME] with letters, digits, - and _", name);
		return;
	}
	if (e && p->exporters[e - p->config->exporters].name == p->text->name) {
		complain(p, "[exporter %s]: this section is there twice, first in line %u", name,
			 p->exporters[e - p->config->exporters].line);
		return;
	}
	if (!e)
		e = config_exporter_add(p->config, name);
	if (!e) {
		complain(p, "[exporter %s]: too many exporters, expected at most %u", name, LEDGER_DESTINATIONS_MAX);
		return;
	}
	p->exporters[e - p->config->exporters] = p->at;
	p->exporter = e;
	p->skip_section = false;
}

static void section_list(char *to, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < SECTION_NR && n < size; i++)
		n += (size_t)snprintf(to + n, size - n, "%s%s%s", !i ? "" : i + 1 == SECTION_NR ? " or " : ", ",
				      config_section_names[i], i == SECTION_EXPORTER ? " NAME" : "");
}

static void unknown_section(struct config_parser *p, const char *name)
{
	const char *nearest = config_section_nearest(name);
	char list[160];

	section_list(list, sizeof(list));
	complain(p, "[%.64s]: unknown section, expected %s%s%s%s", name, list, nearest ? ", did you mean [" : "",
		 nearest ? nearest : "", nearest ? "]?" : "");
	p->skip_section = true;
}

static void section_named(struct config_parser *p, const char *name)
{
	size_t len = strcspn(name, " \t");

	p->section = config_section_find(name, len);
	p->exporter = NULL;
	p->skip_section = false;
	memset(p->key_line, 0, sizeof(p->key_line));
	if (p->section == SECTION_EXPORTER) {
		exporter_begin(p, name + len + strspn(name + len, " \t"));
	} else if (p->section == SECTION_NONE || name[len]) {
		unknown_section(p, name);
	} else if (p->sections_seen[p->section]) {
		complain(p, "[%s]: this section is there twice", name);
		p->skip_section = true;
	} else {
		p->sections_seen[p->section] = true;
	}
}

/* Keys. */

static void key_title(const struct config_parser *p, const char *key, char *to, size_t size)
{
	snprintf(to, size, "%s%s%s.%.64s", config_section_names[p->section], p->exporter ? " " : "",
		 p->exporter ? p->exporter->name : "", key);
}

static void key_list(enum config_section section, char *to, size_t size)
{
	const char *sep = "";
	size_t n = 0;

	to[0] = '\0';
	for (size_t i = 0; i < config_keys_nr && n < size; i++) {
		if (config_keys[i].section != section)
			continue;
		n += (size_t)snprintf(to + n, size - n, "%s%s", sep, config_keys[i].name);
		sep = ", ";
	}
}

static void unknown_key(struct config_parser *p, const char *title, const char *key)
{
	const char *nearest = config_key_nearest(p->section, key);
	enum config_section other = config_key_elsewhere(p->section, key);
	char list[400];

	if (nearest) {
		complain(p, "%s: unknown key, expected one of [%s], did you mean %s?", title,
			 config_section_names[p->section], nearest);
	} else if (other != SECTION_NONE) {
		complain(p, "%s: unknown key, expected one of [%s], did you mean %.64s in [%s]?", title,
			 config_section_names[p->section], key, config_section_names[other]);
	} else {
		key_list(p->section, list, sizeof(list));
		complain(p, "%s: unknown key, expected one of %s", title, list);
	}
}

static void *key_field(struct config_parser *p, const struct config_key *k)
{
	char *base = p->exporter ? (char *)p->exporter : (char *)p->config;

	return base + k->offset;
}

static bool may_hold_secrets(struct config_parser *p, const struct config_key *k, const char *title, const char *value)
{
	if (!k->secret || !p->text->open || !config_header_is_secret(value))
		return true;
	complain(p, "%s: a secret in a file that others may read or change, expected a file of mode 0600 that root owns; "
		 "or put it into one and name that as headers_file", title);
	return false;
}

/* A comment in other formats; here it would be part of the value. */
static bool has_comment(const char *value)
{
	while ((value = strpbrk(value, " \t")))
		if (*(value += strspn(value, " \t")) == '#' || *value == ';')
			return true;
	return false;
}

static void key_value(struct config_parser *p, const struct config_key *k, const char *title, const char *value)
{
	unsigned int *line = &p->key_line[k - config_keys];
	char what[CONFIG_WHAT_MAX] = "";
	int err;

	if (*line && !k->repeats) {
		complain(p, "%s: given twice, first in line %u", title, *line);
		return;
	}
	*line = p->at.line;
	if (!p->exporter)
		p->keys[k - config_keys] = p->at;
	if (!may_hold_secrets(p, k, title, value))
		return;
	err = k->type->parse(k, key_field(p, k), value, what);
	if (err == -ENOMEM)
		p->no_memory = true;
	else if (err && config_value_is_secret(k, value))
		complain(p, "%s: bad value, %s", title, what);
	else if (err)
		complain(p, "%s: bad value \"%.128s\", %s%s", title, value, what,
			 has_comment(value) ? ", and no comment behind it" : "");
}

static struct config_resource *resource_find(struct config *c, const char *key)
{
	for (uint32_t i = 0; i < c->nr_resources; i++)
		if (!strcmp(c->resources[i].key, key))
			return &c->resources[i];
	return NULL;
}

/* Set by an earlier text: this one wins. */
static int set_resource(struct config_parser *p, const char *key, const char *value)
{
	const struct config_resource *have = resource_find(p->config, key);
	int err;

	if (have && p->resources[have - p->config->resources] == p->text)
		return -EEXIST;
	err = have ? config_replace_resource(p->config, key, value) : config_add_resource(p->config, key, value);
	if (!err)
		p->resources[resource_find(p->config, key) - p->config->resources] = p->text;
	return err;
}

static void resource_value(struct config_parser *p, const char *title, const char *key, const char *value)
{
	int err = set_resource(p, key, value);

	if (err == -ENOMEM)
		p->no_memory = true;
	else if (err == -EEXIST)
		complain(p, "%s: given twice", title);
	else if (err == -ENOSPC)
		complain(p, "%s: too many attributes, expected at most %u", title, CONFIG_RESOURCES_MAX);
	else if (err)
		complain(p, "%s: bad attribute, expected a name of letters, digits, '.', '_', '-', '/' and a value", title);
}

static int on_pair(void *user, const char *section, const char *key, const char *value)
{
	struct config_parser *p = user;
	const struct config_key *k;
	char title[192];

	if (p->skip_section || p->stopped)
		return 1;
	if (p->section == SECTION_NONE) {
		complain(p, "%.64s: before any section, expected [sampler] or another one first", key);
		return 1;
	}
	key_title(p, key, title, sizeof(title));
	k = config_key_find(p->section, key);
	if (!*key)
		complain(p, "expected \"key = value\"");
	else if (strlen(key) >= NAME_LIMIT)
		complain(p, "%s...: key too long, expected at most %u characters", title, NAME_LIMIT - 1);
	else if (p->section == SECTION_RESOURCE && *value)
		resource_value(p, title, key, value);
	else if (p->section != SECTION_RESOURCE && !k)
		unknown_key(p, title, key);
	else if (!*value)
		complain(p, "%s: no value, expected one behind the =, or no such line", title);
	else
		key_value(p, k, title, value);
	return 1;
}

/* Lines. */

static void section_line(struct config_parser *p, const char *line)
{
	const char *end = strchr(line, ']');
	char name[160];

	if (!end) {
		complain(p, "section without its end, expected [NAME]");
		p->skip_section = true;
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)MIN(end - line - 1, (ptrdiff_t)sizeof(name) - 1), line + 1);
	end++;
	end += strspn(end, " \t\r\n");
	if (*end && *end != '#' && *end != ';')
		complain(p, "text after the section's name, expected the end of the line");
	section_named(p, name);
}

static bool line_is_sound(struct config_parser *p, const char *line, size_t len)
{
	char text[LINE_LIMIT];

	if (len >= LINE_LIMIT - 2) {
		complain(p, "line too long, expected at most %u bytes", LINE_LIMIT - 3);
		return false;
	}
	for (size_t i = 0; i < len; i++)
		text[i] = line[i] == '\t' ? ' ' : line[i];
	if (len && text[len - 1] == '\r')
		len--;
	text[len] = '\0';
	if (strlen(text) != len || !value_is_text(text)) {
		complain(p, "bytes that are no text, expected UTF-8 without control characters");
		return false;
	}
	return true;
}

/* The kind of a line, before inih reads it. */
static void look_at(struct config_parser *p, const char *line)
{
	line += strspn(line, " \t");
	if (*line == '[')
		section_line(p, line);
	else if (*line && !strchr("#;\r\n", *line) && !strpbrk(line, "=:"))
		complain(p, "expected [SECTION], \"key = value\" or a comment");
}

static void skip_bom(struct config_parser *p)
{
	static const char bom[] = "\xef\xbb\xbf";

	if (p->end - p->pos >= 3 && !memcmp(p->pos, bom, 3))
		p->pos += 3;
}

/* fgets over the text, for inih. Returns an empty line in place of a refused one. */
static char *next_line(char *to, int size, void *stream)
{
	struct config_parser *p = stream;
	const char *newline;
	size_t len;

	if (p->pos == p->end || p->stopped)
		return NULL;
	p->at.line++;
	newline = memchr(p->pos, '\n', (size_t)(p->end - p->pos));
	len = (size_t)((newline ? newline : p->end) - p->pos);
	to[0] = '\0';
	if (line_is_sound(p, p->pos, len) && len + 2 <= (size_t)size) {
		memcpy(to, p->pos, len);
		memcpy(to + len, "\n", 2);
		look_at(p, to);
	}
	p->pos += len + (newline != NULL);
	p->stopped = config_errors_enough(p->errors) || p->no_memory;
	return to;
}

static void inih_settings(void)
{
	/* Our lines are up to LINE_LIMIT; values may hold ';'; an indented key is a key. */
	ini_use_stack = false;
	ini_max_line = LINE_LIMIT;
	ini_initial_alloc = LINE_LIMIT;
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_allow_bom = true;
	ini_stop_on_first_error = false;
}

int config_parser_read(struct config_parser *p, const struct config_text *text)
{
	p->text = text;
	p->pos = text->text;
	p->end = text->text + text->len;
	p->at = (struct config_place){.name = text->name};
	p->section = SECTION_NONE;
	p->skip_section = false;
	p->errors_before = p->errors->count;
	memset(p->sections_seen, 0, sizeof(p->sections_seen));
	skip_bom(p);
	inih_settings();
	if (ini_parse_stream(next_line, p, on_pair, p) == -2)
		p->no_memory = true;
	if (p->no_memory)
		return -ENOMEM;
	return p->errors->count > p->errors_before ? -EINVAL : 0;
}

struct config_place config_parser_key(const struct config_parser *p, const struct config_key *k)
{
	return p->keys[k - config_keys];
}

struct config_place config_parser_exporter(const struct config_parser *p, const struct export_config *e)
{
	return p->exporters[e - p->config->exporters];
}

int config_parser_new(struct config *c, struct config_errors *errors, struct config_parser **ret)
{
	struct config_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->config = c;
	p->errors = errors;
	*ret = p;
	return 0;
}

struct config_parser *config_parser_free(struct config_parser *p)
{
	free(p);
	return NULL;
}
