// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_keys.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/profile.h"

#define WORD_MAX 1024

const char *const config_section_names[SECTION_NR] = {
	[SECTION_SAMPLER] = "sampler",   [SECTION_PROFILE] = "profile", [SECTION_TARGETS] = "targets",
	[SECTION_EXPORTER] = "exporter", [SECTION_RESOURCE] = "resource", [SECTION_METRICS] = "metrics",
	[SECTION_LIMITS] = "limits",   [SECTION_DAEMON] = "daemon",
};

static int expected(char *what, const char *text)
{
	snprintf(what, CONFIG_WHAT_MAX, "expected %s", text);
	return -EINVAL;
}

/* Numbers. */

static int parse_u32(const struct config_key *k, void *field, const char *value, char *what)
{
	uint64_t n;

	if (value_u64(value, &n) || n < k->min || n > k->max) {
		snprintf(what, CONFIG_WHAT_MAX, "expected a number from %" PRIu64 " to %" PRIu64, k->min, k->max);
		return -EINVAL;
	}
	*(uint32_t *)field = (uint32_t)n;
	return 0;
}

static void print_u32(const struct config_key *k, const void *field, struct buf *to)
{
	buf_printf(to, "%u", *(const uint32_t *)field);
}

static const struct config_type type_u32 = {parse_u32, print_u32};

/* Sizes, printed with the largest unit that keeps them whole. */

static void size_text(uint64_t n, char to[24])
{
	static const char units[] = "KMG";
	int unit = 0;

	while (unit < 3 && n && !(n & 1023)) {
		n >>= 10;
		unit++;
	}
	snprintf(to, 24, unit ? "%" PRIu64 "%c" : "%" PRIu64, n, unit ? units[unit - 1] : 0);
}

static int parse_bytes(const struct config_key *k, const char *value, bool power, uint64_t *ret, char *what)
{
	char min[24], max[24];
	uint64_t n;
	bool ok = !value_size(value, &n) && n >= k->min && n <= k->max && (!power || !(n & (n - 1)));

	if (!ok) {
		size_text(k->min, min);
		size_text(k->max, max);
		snprintf(what, CONFIG_WHAT_MAX, "expected a size from %s to %s%s, such as 64K or 4M", min, max,
			 power ? ", a power of two" : "");
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int parse_size32(const struct config_key *k, void *field, const char *value, char *what)
{
	uint64_t n;
	int err = parse_bytes(k, value, false, &n, what);

	if (!err)
		*(uint32_t *)field = (uint32_t)n;
	return err;
}

static int parse_buffer(const struct config_key *k, void *field, const char *value, char *what)
{
	uint64_t n;
	int err;

	if (!strcmp(value, "auto"))
		n = 0;
	else if ((err = parse_bytes(k, value, true, &n, what)))
		return err;
	*(uint32_t *)field = (uint32_t)n;
	return 0;
}

static int parse_size64(const struct config_key *k, void *field, const char *value, char *what)
{
	return parse_bytes(k, value, false, field, what);
}

static void print_bytes(uint64_t n, struct buf *to)
{
	char text[24];

	size_text(n, text);
	buf_add_str(to, text);
}

static void print_size32(const struct config_key *k, const void *field, struct buf *to)
{
	print_bytes(*(const uint32_t *)field, to);
}

static void print_size64(const struct config_key *k, const void *field, struct buf *to)
{
	print_bytes(*(const uint64_t *)field, to);
}

static void print_buffer(const struct config_key *k, const void *field, struct buf *to)
{
	if (*(const uint32_t *)field)
		print_size32(k, field, to);
	else
		buf_add_str(to, "auto");
}

static const struct config_type type_size32 = {parse_size32, print_size32};
static const struct config_type type_size64 = {parse_size64, print_size64};
static const struct config_type type_buffer = {parse_buffer, print_buffer};

/* Durations. */

static void duration_text(uint64_t ns, char to[24])
{
	if (ns % NSEC_PER_SEC)
		snprintf(to, 24, "%" PRIu64 "ms", (uint64_t)(ns / NSEC_PER_MSEC));
	else
		snprintf(to, 24, "%" PRIu64 "s", (uint64_t)(ns / NSEC_PER_SEC));
}

static int parse_duration(const struct config_key *k, void *field, const char *value, char *what)
{
	char min[24], max[24];
	uint64_t n;

	if (value_duration(value, &n) || n < k->min || n > k->max) {
		duration_text(k->min, min);
		duration_text(k->max, max);
		snprintf(what, CONFIG_WHAT_MAX, "expected a time from %s to %s with its unit, such as 500ms, 5s or 2m",
			 min, max);
		return -EINVAL;
	}
	*(uint64_t *)field = n;
	return 0;
}

static void print_duration(const struct config_key *k, const void *field, struct buf *to)
{
	char text[24];

	duration_text(*(const uint64_t *)field, text);
	buf_add_str(to, text);
}

static const struct config_type type_duration = {parse_duration, print_duration};

/* A share in percent, kept in thousandths of one. */

static int parse_percent(const struct config_key *k, void *field, const char *value, char *what)
{
	uint64_t n;

	if (value_milli(value, &n) || n < k->min || n > k->max)
		return expected(what, "a percentage from 0 to 100, such as 2 or 0.5");
	*(uint32_t *)field = (uint32_t)n;
	return 0;
}

static void print_percent(const struct config_key *k, const void *field, struct buf *to)
{
	uint32_t n = *(const uint32_t *)field;

	buf_printf(to, n % 1000 ? "%u.%03u" : "%u", n / 1000, n % 1000);
}

static const struct config_type type_percent = {parse_percent, print_percent};

/* A size, or what is found out when it is needed. */

static int parse_limit(const struct config_key *k, void *field, const char *value, char *what)
{
	if (strcmp(value, "auto"))
		return parse_bytes(k, value, false, field, what);
	*(uint64_t *)field = 0;
	return 0;
}

static void print_limit(const struct config_key *k, const void *field, struct buf *to)
{
	if (*(const uint64_t *)field)
		print_size64(k, field, to);
	else
		buf_add_str(to, "auto");
}

static const struct config_type type_limit = {parse_limit, print_limit};

/* Words. */

static int parse_bool(const struct config_key *k, void *field, const char *value, char *what)
{
	return value_bool(value, field) ? expected(what, "yes or no") : 0;
}

static void print_bool(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, *(const bool *)field ? "yes" : "no");
}

static const struct config_type type_bool = {parse_bool, print_bool};

static int replace(void *field, const char *value)
{
	char **slot = field, *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*slot);
	*slot = copy;
	return 0;
}

static void print_string(const struct config_key *k, const void *field, struct buf *to)
{
	const char *s = *(char *const *)field;

	if (s)
		buf_add_str(to, s);
}

static int parse_path(const struct config_key *k, void *field, const char *value, char *what)
{
	if (value[0] != '/' || !value_is_text(value) || strstr(value, "/../") || strlen(value) > 1000)
		return expected(what, "an absolute path");
	return replace(field, value);
}

static const struct config_type type_path = {parse_path, print_string};

static bool is_user_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && !s[n] && n <= 32 && s[0] != '-';
}

static int parse_user(const struct config_key *k, void *field, const char *value, char *what)
{
	return is_user_name(value) ? replace(field, value) : expected(what, "a user name");
}

static const struct config_type type_user = {parse_user, print_string};

static int parse_cpus(const struct config_key *k, void *field, const char *value, char *what)
{
	return value_is_cpu_list(value) ? replace(field, value) : expected(what, "a list of CPUs, such as 0-3,8");
}

static const struct config_type type_cpus = {parse_cpus, print_string};

static int parse_listen(const struct config_key *k, void *field, const char *value, char *what)
{
	if (!value_is_loopback(value))
		return expected(what, "a loopback address with a port, such as 127.0.0.1:9464");
	return replace(field, value);
}

static const struct config_type type_listen = {parse_listen, print_string};

static int parse_endpoint(const struct config_key *k, void *field, const char *value, char *what)
{
	const char *text;

	if (value_endpoint(value, &text)) {
		snprintf(what, CONFIG_WHAT_MAX, "%s", text);
		return -EINVAL;
	}
	return replace(field, value);
}

static const struct config_type type_endpoint = {parse_endpoint, print_string};

static int parse_mode(const struct config_key *k, void *field, const char *value, char *what)
{
	enum sampler_mode *mode = field;

	if (!strcmp(value, "auto"))
		*mode = SAMPLER_AUTO;
	else if (!strcmp(value, "bpf"))
		*mode = SAMPLER_BPF;
	else if (!strcmp(value, "kmod"))
		*mode = SAMPLER_KMOD;
	else if (!strcmp(value, "perf"))
		return expected(what, "auto, bpf or kmod: this version has no other sampler");
	else
		return expected(what, "auto, bpf or kmod");
	return 0;
}

static void print_mode(const struct config_key *k, const void *field, struct buf *to)
{
	static const char *const names[] = {[SAMPLER_AUTO] = "auto", [SAMPLER_BPF] = "bpf", [SAMPLER_KMOD] = "kmod"};

	buf_add_str(to, names[*(const enum sampler_mode *)field]);
}

static const struct config_type type_mode = {parse_mode, print_mode};

/* There is one protocol, so there is no field for it yet. */
static int parse_protocol(const struct config_key *k, void *field, const char *value, char *what)
{
	if (!strcmp(value, "http") || !strcmp(value, "http/protobuf"))
		return 0;
	return expected(what, "http: this version has no other protocol");
}

static void print_protocol(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, "http");
}

static const struct config_type type_protocol = {parse_protocol, print_protocol};

static int parse_compression(const struct config_key *k, void *field, const char *value, char *what)
{
	bool gzip = !strcmp(value, "gzip");

	if (!gzip && strcmp(value, "none"))
		return expected(what, "gzip or none");
	*(bool *)field = gzip;
	return 0;
}

static void print_compression(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, *(const bool *)field ? "gzip" : "none");
}

static const struct config_type type_compression = {parse_compression, print_compression};

static const struct {
	const char *name;
	uint32_t level;
} levels[] = {{"error", LOG_LEVEL_ERROR},
	      {"warn", LOG_LEVEL_WARN},
	      {"notice", LOG_LEVEL_NOTICE},
	      {"info", LOG_LEVEL_INFO},
	      {"debug", LOG_LEVEL_DEBUG}};

static int parse_level(const struct config_key *k, void *field, const char *value, char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		if (strcmp(value, levels[i].name))
			continue;
		*(uint32_t *)field = levels[i].level;
		return 0;
	}
	return expected(what, "error, warn, notice, info or debug");
}

static void print_level(const struct config_key *k, const void *field, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (levels[i].level == *(const uint32_t *)field)
			buf_add_str(to, levels[i].name);
}

static const struct config_type type_level = {parse_level, print_level};

/* Lists of words. */

typedef int word_fn(const struct config_key *k, void *field, const char *word, char *what);

static int each_word(const struct config_key *k, void *field, const char *value, char *what, word_fn *fn)
{
	_cleanup_(freep) char *copy = strdup(value);
	char *save = NULL;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	for (char *w = strtok_r(copy, " \t", &save); w && !err; w = strtok_r(NULL, " \t", &save))
		err = fn(k, field, w, what);
	return err;
}

static const char *const attribute_names[] = {
#define X(NAME, name, type) [SAMPLE_ATTRIBUTE_##NAME] = name,
	SAMPLE_ATTRIBUTES(X)
#undef X
};

static int attribute_word(const struct config_key *k, void *field, const char *word, char *what)
{
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(attribute_names); i++) {
		if (strcmp(word, attribute_names[i]))
			continue;
		*(uint32_t *)field |= 1u << i;
		return 0;
	}
	n = (size_t)snprintf(what, CONFIG_WHAT_MAX, "expected none, or some of");
	for (size_t i = 0; i < ARRAY_SIZE(attribute_names) && n < CONFIG_WHAT_MAX; i++)
		n += (size_t)snprintf(what + n, CONFIG_WHAT_MAX - n, " %s", attribute_names[i]);
	return -EINVAL;
}

static int parse_attributes(const struct config_key *k, void *field, const char *value, char *what)
{
	uint32_t bits = 0;
	int err = strcmp(value, "none") ? each_word(k, &bits, value, what, attribute_word) : 0;

	if (!err)
		*(uint32_t *)field = bits;
	return err;
}

static void print_attributes(const struct config_key *k, const void *field, struct buf *to)
{
	uint32_t bits = *(const uint32_t *)field;
	const char *sep = "";

	if (!bits)
		buf_add_str(to, "none");
	for (size_t i = 0; i < ARRAY_SIZE(attribute_names); i++) {
		if (!(bits & 1u << i))
			continue;
		buf_printf(to, "%s%s", sep, attribute_names[i]);
		sep = " ";
	}
}

static const struct config_type type_attributes = {parse_attributes, print_attributes};

/* Targets. The field is the whole configuration; min tells include (0) from exclude (1). */

static bool is_cgroup_path(const char *s)
{
	return s[0] && strlen(s) <= WORD_MAX && strcmp(s, "..") && strncmp(s, "../", 3) && !strstr(s, "/../");
}

static int target_word(const struct config_key *k, void *field, const char *word, char *what)
{
	struct config *c = field;
	struct config_target t = {.exclude = k->min != 0};
	uint64_t pid = 0;

	if (!strncmp(word, "pid:", 4) && !value_u64(word + 4, &pid) && pid >= 1 && pid <= 4194304)
		t.kind = TARGET_PID;
	else if (!strncmp(word, "cgroup:", 7) && is_cgroup_path(word + 7))
		t.kind = TARGET_CGROUP;
	else
		return expected(what, "cgroup:PATH or pid:NUMBER, separated by spaces");
	if (c->nr_targets == CONFIG_TARGETS_MAX) {
		snprintf(what, CONFIG_WHAT_MAX, "expected at most %u targets", CONFIG_TARGETS_MAX);
		return -EINVAL;
	}
	t.pid = (uint32_t)pid;
	if (t.kind == TARGET_CGROUP && !(t.cgroup = strdup(word + 7)))
		return -ENOMEM;
	c->targets[c->nr_targets++] = t;
	return 0;
}

static int parse_targets(const struct config_key *k, void *field, const char *value, char *what)
{
	return each_word(k, field, value, what, target_word);
}

static void print_targets(const struct config_key *k, const void *field, struct buf *to)
{
	const struct config *c = field;
	const char *sep = "";

	for (uint32_t i = 0; i < c->nr_targets; i++) {
		const struct config_target *t = &c->targets[i];

		if (t->exclude != (k->min != 0))
			continue;
		if (t->kind == TARGET_PID)
			buf_printf(to, "%spid:%u", sep, t->pid);
		else
			buf_printf(to, "%scgroup:%s", sep, t->cgroup);
		sep = " ";
	}
}

static const struct config_type type_targets = {parse_targets, print_targets};

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

/* A token (RFC 9110, 5.6.2), a colon, a value. */
static bool is_header(const char *s)
{
	size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return n && s[n] == ':' && value_is_text(s);
}

static int parse_header(const struct config_key *k, void *field, const char *value, char *what)
{
	int err;

	if (!is_header(value))
		return expected(what, "one \"Name: value\"; give the key again for the next");
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

static const struct config_type type_header = {parse_header, print_header};

/* The table. */

#define K(sec, key, kind, field, ...) \
	{.section = SECTION_##sec, .name = key, .type = &type_##kind, .offset = offsetof(struct config, field), ##__VA_ARGS__}
#define E(key, kind, field, ...)                                     \
	{.section = SECTION_EXPORTER, .name = key, .type = &type_##kind, \
	 .offset = offsetof(struct export_config, field), ##__VA_ARGS__}
#define RANGE(from, to) .min = (from), .max = (to)
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

const struct config_key config_keys[] = {
	K(SAMPLER, "mode", mode, mode),
	K(SAMPLER, "frequency_hz", u32, frequency_hz, RANGE(1, 10000)),
	K(SAMPLER, "ring_size", buffer, ring_bytes, RANGE(64 * KIB, GIB)),
	K(SAMPLER, "sideband_size", buffer, sideband_bytes, RANGE(4 * KIB, 64 * MIB)),
	K(SAMPLER, "stack_bytes", size32, stack_bytes, RANGE(512, OTP_STACK_LIMIT)),
	K(SAMPLER, "stack_max_bytes", size32, stack_max_bytes, RANGE(512, OTP_STACK_LIMIT)),
	K(SAMPLER, "stack_rate", size64, stack_rate_bytes, RANGE(0, 64 * GIB)),
	K(SAMPLER, "kernel_threads", bool, kernel_threads),
	K(SAMPLER, "hardware_events", bool, hardware),
	K(SAMPLER, "cpus", cpus, cpus),
	K(PROFILE, "interval", duration, interval_ns, RANGE(100 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC)),
	K(PROFILE, "sample_attributes", attributes, sample_attributes),
	K(PROFILE, "request_max_size", size64, request_max_bytes, RANGE(64 * KIB, 64 * MIB)),
	/* Zero offset: the type fills a list of the whole configuration. */
	{.section = SECTION_TARGETS, .name = "include", .type = &type_targets, .min = 0, .repeats = true},
	{.section = SECTION_TARGETS, .name = "exclude", .type = &type_targets, .min = 1, .repeats = true},
	E("endpoint", endpoint, endpoint),
	E("endpoint_is_full", bool, endpoint_is_full),
	E("protocol", protocol, gzip),
	E("compression", compression, gzip),
	{.section = SECTION_EXPORTER, .name = "headers", .type = &type_header, .repeats = true},
	E("tls_ca_file", path, tls_ca),
	E("tls_cert_file", path, tls_cert),
	E("tls_key_file", path, tls_key),
	E("tls_insecure", bool, tls_insecure),
	E("timeout", duration, timeout_ns, RANGE(100 * NSEC_PER_MSEC, 600 * NSEC_PER_SEC)),
	E("retry_initial", duration, retry_initial_ns, RANGE(10 * NSEC_PER_MSEC, 600 * NSEC_PER_SEC)),
	E("retry_max", duration, retry_max_ns, RANGE(10 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC)),
	E("retry_max_elapsed", duration, retry_elapsed_ns, RANGE(0, 86400 * NSEC_PER_SEC)),
	E("queue_size", size64, queue_bytes, RANGE(64 * KIB, 4 * GIB)),
	E("keep_files", u32, file_keep, RANGE(0, 100000000)),
	K(METRICS, "listen", listen, metrics_listen),
	K(LIMITS, "cpu_percent", percent, cpu_percent_milli, RANGE(0, 100000)),
	K(LIMITS, "memory", limit, memory_limit_bytes, RANGE(16 * MIB, 1024 * GIB)),
	K(DAEMON, "runtime_dir", path, runtime_dir),
	K(DAEMON, "engine_user", user, engine_user),
	K(DAEMON, "net_user", user, net_user),
	K(DAEMON, "processes_max", u32, processes_max, RANGE(256, 1048576)),
	K(DAEMON, "log_level", level, log_level),
};
const size_t config_keys_nr = ARRAY_SIZE(config_keys);
_Static_assert(ARRAY_SIZE(config_keys) <= CONFIG_KEYS_MAX, "the parser has one slot a key");

const struct config_key *config_key_find(enum config_section section, const char *name)
{
	for (size_t i = 0; i < config_keys_nr; i++)
		if (config_keys[i].section == section && !strcmp(config_keys[i].name, name))
			return &config_keys[i];
	return NULL;
}

enum config_section config_section_find(const char *name, size_t len)
{
	for (int i = 0; i < SECTION_NR; i++)
		if (strlen(config_section_names[i]) == len && !memcmp(name, config_section_names[i], len))
			return i;
	return SECTION_NONE;
}

/* Levenshtein's distance over two rows; both strings are short keys. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[64], diagonal, above;
	size_t n = strlen(b);

	if (strlen(a) >= ARRAY_SIZE(row) || n >= ARRAY_SIZE(row))
		return ~0u;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= n; j++) {
			above = row[j];
			row[j] = MIN(MIN(above, row[j - 1]) + 1,
				     diagonal + (tolower((unsigned char)a[i - 1]) != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

const char *config_key_nearest(enum config_section section, const char *name)
{
	unsigned int best = ~0u, d;
	const char *nearest = NULL;

	for (size_t i = 0; i < config_keys_nr; i++) {
		if (config_keys[i].section != section)
			continue;
		d = distance(name, config_keys[i].name);
		if (d >= best)
			continue;
		best = d;
		nearest = config_keys[i].name;
	}
	return nearest;
}
