// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config_keys.h"
#include "profile/profile.h"

#define LINE_LIMIT   4096 /* with its newline */
#define ERRORS_LIMIT 20   /* after so many the rest is noise */
#define NAME_LIMIT   48   /* inih cuts longer keys without a word */

/*
 * inih splits lines into keys and values; what it would pass over in silence
 * (long lines, binary bytes, repeated sections) is seen by the reader that
 * feeds it, which also knows the line number.
 */
struct parser {
	struct config *config;
	const char *name;
	const char *text, *end;
	config_error_fn *error;
	void *ctx;
	unsigned int line;
	unsigned int errors;
	bool no_memory, stopped;
	enum config_section section;
	struct export_config *exporter; /* of this section */
	bool skip_section;              /* unknown: said once */
	bool sections_seen[SECTION_NR];
	unsigned int exporter_line[LEDGER_DESTINATIONS_MAX];
	unsigned int key_line[CONFIG_KEYS_MAX]; /* by key, of this section: where it was given */
};

__attribute__((format(printf, 2, 3))) static void complain(struct parser *p, const char *fmt, ...)
{
	char text[768], line[1024];
	va_list ap;

	if (p->errors++ >= ERRORS_LIMIT || !p->error)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->line)
		snprintf(line, sizeof(line), "%s:%u: %s", p->name, p->line, text);
	else
		snprintf(line, sizeof(line), "%s: %s", p->name, text);
	p->error(p->ctx, line);
}

/* Sections. */

static bool is_exporter_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n && !s[n] && n < EXPORT_NAME_MAX;
}

struct export_config *config_exporter_find(struct config *c, const char *name)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		if (!strcmp(c->exporters[i].name, name))
			return &c->exporters[i];
	return NULL;
}

struct export_config *config_exporter_add(struct config *c, const char *name)
{
	struct export_config *e;

	if (c->nr_exporters == LEDGER_DESTINATIONS_MAX)
		return NULL;
	e = &c->exporters[c->nr_exporters++];
	*e = (struct export_config){
		.gzip = true,
		.timeout_ns = 5 * NSEC_PER_SEC,
		.retry_initial_ns = 5 * NSEC_PER_SEC,
		.retry_max_ns = 30 * NSEC_PER_SEC,
		.retry_elapsed_ns = 300 * NSEC_PER_SEC,
		.queue_bytes = 32u << 20,
	};
	snprintf(e->name, sizeof(e->name), "%s", name);
	return e;
}

static void exporter_begin(struct parser *p, const char *name)
{
	if (!is_exporter_name(name)) {
		complain(p, "[exporter %.64s]: bad name, expected [exporter NAME] with letters, digits, - and _", name);
		p->skip_section = true;
	} else if (config_exporter_find(p->config, name)) {
		complain(p, "[exporter %s]: this section is there twice", name);
		p->skip_section = true;
	} else if (!(p->exporter = config_exporter_add(p->config, name))) {
		complain(p, "[exporter %s]: too many exporters, expected at most %u", name, LEDGER_DESTINATIONS_MAX);
		p->skip_section = true;
	} else {
		p->exporter_line[p->config->nr_exporters - 1] = p->line;
	}
}

static void section_named(struct parser *p, const char *name)
{
	size_t len = strcspn(name, " \t");

	p->section = config_section_find(name, len);
	p->exporter = NULL;
	p->skip_section = false;
	memset(p->key_line, 0, sizeof(p->key_line));
	if (p->section == SECTION_EXPORTER) {
		exporter_begin(p, name + len + strspn(name + len, " \t"));
	} else if (p->section == SECTION_NONE || name[len]) {
		complain(p, "[%.64s]: unknown section, expected sampler, profile, targets, exporter NAME, "
			 "resource, metrics, limits or daemon", name);
		p->skip_section = true;
	} else if (p->sections_seen[p->section]) {
		complain(p, "[%s]: this section is there twice", name);
		p->skip_section = true;
	} else {
		p->sections_seen[p->section] = true;
	}
}

/* Keys. */

static void key_title(const struct parser *p, const char *key, char *to, size_t size)
{
	snprintf(to, size, "%s%s%s.%.64s", config_section_names[p->section], p->exporter ? " " : "",
		 p->exporter ? p->exporter->name : "", key);
}

static void unknown_key(struct parser *p, const char *title, const char *key)
{
	const char *nearest = config_key_nearest(p->section, key);

	if (nearest)
		complain(p, "%s: unknown key, the nearest is \"%s\"", title, nearest);
	else
		complain(p, "%s: unknown key", title);
}

static void *key_field(struct parser *p, const struct config_key *k)
{
	char *base = p->exporter ? (char *)p->exporter : (char *)p->config;

	return base + k->offset;
}

static void key_value(struct parser *p, const struct config_key *k, const char *title, const char *value)
{
	unsigned int *line = &p->key_line[k - config_keys];
	char what[CONFIG_WHAT_MAX] = "";
	int err;

	if (*line && !k->repeats) {
		complain(p, "%s: given twice, first in line %u", title, *line);
		return;
	}
	*line = p->line;
	err = k->type->parse(k, key_field(p, k), value, what);
	if (err == -ENOMEM)
		p->no_memory = true;
	else if (err)
		complain(p, "%s: bad value \"%.128s\", %s", title, value, what);
}

static void resource_value(struct parser *p, const char *title, const char *key, const char *value)
{
	int err = config_add_resource(p->config, key, value);

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
	struct parser *p = user;
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
	else if (!*value)
		complain(p, "%s: no value", title);
	else if (p->section == SECTION_RESOURCE)
		resource_value(p, title, key, value);
	else if (k)
		key_value(p, k, title, value);
	else
		unknown_key(p, title, key);
	return 1;
}

/* Lines. */

static void section_line(struct parser *p, const char *line)
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

static bool line_is_sound(struct parser *p, const char *line, size_t len)
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

/* What a line is, before inih sees it. */
static void look_at(struct parser *p, const char *line)
{
	line += strspn(line, " \t");
	if (*line == '[')
		section_line(p, line);
	else if (*line && !strchr("#;\r\n", *line) && !strpbrk(line, "=:"))
		complain(p, "expected [SECTION], \"key = value\" or a comment");
}

/* fgets over the text, for inih. A line that is refused is given as an empty one. */
static char *next_line(char *to, int size, void *stream)
{
	struct parser *p = stream;
	const char *newline;
	size_t len;

	if (p->text == p->end || p->stopped)
		return NULL;
	p->line++;
	newline = memchr(p->text, '\n', (size_t)(p->end - p->text));
	len = (size_t)((newline ? newline : p->end) - p->text);
	to[0] = '\0';
	if (line_is_sound(p, p->text, len) && len + 2 <= (size_t)size) {
		memcpy(to, p->text, len);
		memcpy(to + len, "\n", 2);
		look_at(p, to);
	}
	p->text += len + (newline != NULL);
	p->stopped = p->errors > ERRORS_LIMIT || p->no_memory;
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

static int parse_text(struct parser *p)
{
	inih_settings();
	if (ini_parse_stream(next_line, p, on_pair, p) == -2)
		p->no_memory = true;
	if (p->no_memory)
		return -ENOMEM;
	return p->errors ? -EINVAL : 0;
}

/* Whole configuration. */

int config_add_resource(struct config *c, const char *key, const char *value)
{
	size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/");
	struct config_resource r;

	if (!n || key[n] || !*value || strlen(value) > 1024 || !value_is_text(value))
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

static int config_new(struct config **ret)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct config){
		.mode = SAMPLER_AUTO,
		.frequency_hz = 20,
		.stack_bytes = OTP_STACK_DEFAULT,
		.stack_max_bytes = OTP_STACK_LIMIT,
		.stack_rate_bytes = 64u << 20,
		.kernel_threads = true,
		.interval_ns = 5 * NSEC_PER_SEC,
		/* One series a program in stores that make labels of these; threads and pids would explode. */
		.sample_attributes = 1u << SAMPLE_ATTRIBUTE_EXECUTABLE,
		.request_max_bytes = 4u << 20,
		.cpu_percent_milli = 2000,
		.processes_max = 16384,
		.log_level = LOG_LEVEL_INFO,
		.runtime_dir = strdup("/run/otprof"),
		.engine_user = strdup("otprof-engine"),
		.net_user = strdup("otprof-net"),
	};
	if (!c->runtime_dir || !c->engine_user || !c->net_user) {
		config_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

static void exporter_done(struct export_config *e)
{
	free(e->endpoint);
	free(e->tls_ca);
	free(e->tls_cert);
	free(e->tls_key);
	if (e->file_dir > 0)
		close(e->file_dir);
	for (uint32_t i = 0; i < e->nr_headers; i++)
		free(e->headers[i]);
}

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; i < c->nr_targets; i++)
		free(c->targets[i].cgroup);
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		exporter_done(&c->exporters[i]);
	for (uint32_t i = 0; i < c->nr_resources; i++) {
		free(c->resources[i].key);
		free(c->resources[i].value);
	}
	free(c->cpus);
	free(c->metrics_listen);
	free(c->runtime_dir);
	free(c->engine_user);
	free(c->net_user);
	free(c);
	return NULL;
}

static void config_freep(struct config **c)
{
	config_free(*c);
}

static int add_default_exporter(struct config *c)
{
	struct export_config *e;

	if (c->nr_exporters)
		return 0;
	e = config_exporter_add(c, "otlp");
	e->endpoint = strdup("http://127.0.0.1:4318");
	c->exporter_is_default = true;
	return e->endpoint ? 0 : -ENOMEM;
}

static void check_exporter(struct parser *p, const struct export_config *e)
{
	char why[EXPORT_WHY];

	if (!e->endpoint)
		complain(p, "exporter %s.endpoint: missing, expected http://HOST:PORT or file:///DIR", e->name);
	else if (export_config_check(e, why) < 0)
		complain(p, "exporter %s: %s", e->name, why);
	if (!e->tls_cert != !e->tls_key)
		complain(p, "exporter %s.%s: missing, expected both or neither of tls_cert_file and tls_key_file",
			 e->name, e->tls_cert ? "tls_key_file" : "tls_cert_file");
	if (e->retry_initial_ns > e->retry_max_ns)
		complain(p, "exporter %s.retry_initial: above retry_max, expected it at or below", e->name);
}

/* What single keys cannot tell. Lines are those of the section; 0 where it is not in the file. */
static int check_whole(struct parser *p)
{
	struct config *c = p->config;

	p->line = 0;
	if (c->stack_bytes > c->stack_max_bytes)
		complain(p, "sampler.stack_bytes: above stack_max_bytes, expected it at or below");
	if (!strcmp(c->engine_user, c->net_user))
		complain(p, "daemon.net_user: the same as engine_user, expected two users");
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		p->line = p->exporter_line[i];
		check_exporter(p, &c->exporters[i]);
	}
	return p->errors ? -EINVAL : 0;
}

static int parse(const char *name, const char *text, size_t len, bool environment, config_error_fn *error,
		 void *ctx, struct config **ret)
{
	_cleanup_(config_freep) struct config *c = NULL;
	struct parser p = {.name = name, .text = text, .end = text + len, .error = error, .ctx = ctx,
			   .section = SECTION_NONE};
	int err = config_new(&c);

	if (err)
		return err;
	p.config = c;
	err = parse_text(&p);
	if (!err && environment)
		err = config_from_environment(c, error, ctx);
	if (!err)
		err = add_default_exporter(c);
	if (!err)
		err = check_whole(&p);
	if (err)
		return err;
	*ret = steal_ptr(&c);
	return 0;
}

int config_parse(const char *name, const char *text, size_t len, config_error_fn *error, void *ctx, struct config **ret)
{
	return parse(name, text, len, false, error, ctx, ret);
}

static int read_file(const char *path, struct buf *b)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;
	void *to;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENODEV;
	do {
		to = buf_reserve(b, 4096);
		if (!to)
			return -EFBIG;
		n = read(fd, to, 4096);
		if (n < 0)
			return -errno;
		buf_commit(b, (size_t)n);
	} while (n > 0);
	return 0;
}

static const char *read_error_text(int err)
{
	switch (err) {
	case -EFBIG:
		return "larger than 1 MiB";
	case -ENODEV:
		return "no regular file";
	default:
		return strerror(-err);
	}
}

int config_load(const char *path, config_error_fn *error, void *ctx, struct config **ret)
{
	_cleanup_(buf_done) struct buf text;
	char line[1200];
	int err;

	buf_init(&text, CONFIG_FILE_MAX);
	if (path && (err = read_file(path, &text))) {
		snprintf(line, sizeof(line), "%.1000s: cannot be read: %s", path, read_error_text(err));
		if (error)
			error(ctx, line);
		return err;
	}
	return parse(path ? path : "environment", (const char *)text.data, text.len, true, error, ctx, ret);
}
