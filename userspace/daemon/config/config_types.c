// SPDX-License-Identifier: Apache-2.0
/*
 * The types of values: each parses a value, and prints it in the form that it
 * parses.
 */
#include "daemon/config/config_types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/profile.h"

#define PATH_LIMIT 1000

int config_expected(char *what, const char *text)
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

const struct config_type config_type_u32 = {parse_u32, print_u32};

static int parse_u64(const struct config_key *k, void *field, const char *value, char *what)
{
	uint32_t n;
	int err = parse_u32(k, &n, value, what);

	if (!err)
		*(uint64_t *)field = n;
	return err;
}

static void print_u64(const struct config_key *k, const void *field, struct buf *to)
{
	buf_printf(to, "%" PRIu64, *(const uint64_t *)field);
}

/* Of a range within 32 bits. */
const struct config_type config_type_u64 = {parse_u64, print_u64};

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

const struct config_type config_type_size32 = {parse_size32, print_size32};
const struct config_type config_type_size64 = {parse_size64, print_size64};
const struct config_type config_type_buffer = {parse_buffer, print_buffer};

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

const struct config_type config_type_duration = {parse_duration, print_duration};

static void print_interval(const struct config_key *k, const void *field, struct buf *to)
{
	if (*(const uint64_t *)field)
		print_duration(k, field, to);
}

/* A duration, or 0 where none was given. */
const struct config_type config_type_interval = {parse_duration, print_interval};

/* A share in percent, kept in thousandths of one. */

static int parse_percent(const struct config_key *k, void *field, const char *value, char *what)
{
	uint64_t n;

	if (value_milli(value, &n) || n < k->min || n > k->max)
		return config_expected(what, "a percentage from 0 to 100, such as 2 or 0.5");
	*(uint32_t *)field = (uint32_t)n;
	return 0;
}

static void print_percent(const struct config_key *k, const void *field, struct buf *to)
{
	uint32_t n = *(const uint32_t *)field;

	buf_printf(to, n % 1000 ? "%u.%03u" : "%u", n / 1000, n % 1000);
}

const struct config_type config_type_percent = {parse_percent, print_percent};

/* A size, or "auto": determined at run time. */

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

const struct config_type config_type_limit = {parse_limit, print_limit};

/* Words. */

static int parse_bool(const struct config_key *k, void *field, const char *value, char *what)
{
	return value_bool(value, field) ? config_expected(what, "yes or no") : 0;
}

static void print_bool(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, *(const bool *)field ? "yes" : "no");
}

const struct config_type config_type_bool = {parse_bool, print_bool};

int config_replace(void *field, const char *value)
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

/* A blank and # start a comment, which is not allowed here. */
static int parse_path(const struct config_key *k, void *field, const char *value, char *what)
{
	size_t max = k->max ? k->max : PATH_LIMIT;

	if (value[0] != '/' || !value_is_text(value) || strstr(value, "/../") || strstr(value, " #"))
		return config_expected(what, "an absolute path");
	if (strlen(value) <= max)
		return config_replace(field, value);
	snprintf(what, CONFIG_WHAT_MAX, "expected a path of at most %zu bytes", max);
	return -EINVAL;
}

const struct config_type config_type_path = {parse_path, print_string};

/* Absolute paths, separated by spaces. */
static int parse_dirs(const struct config_key *k, void *field, const char *value, char *what)
{
	for (const char *at = value; *(at += strspn(at, " ")); at += strcspn(at, " "))
		if (*at != '/')
			return config_expected(what, "absolute paths, separated by spaces");
	if (!value_is_text(value) || strlen(value) > PATH_LIMIT)
		return config_expected(what, "absolute paths, separated by spaces");
	return config_replace(field, value);
}

const struct config_type config_type_dirs = {parse_dirs, print_string};

static int parse_clones(const struct config_key *k, void *field, const char *value, char *what)
{
	if (strcmp(value, "show") != 0 && strcmp(value, "fold") != 0)
		return config_expected(what, "fold or show");
	*(bool *)field = value[0] == 's';
	return 0;
}

static void print_clones(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, *(const bool *)field ? "show" : "fold");
}

const struct config_type config_type_clones = {parse_clones, print_clones};

static bool is_user_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && !s[n] && n <= 32 && s[0] != '-';
}

static int parse_user(const struct config_key *k, void *field, const char *value, char *what)
{
	return is_user_name(value) ? config_replace(field, value) : config_expected(what, "a user name");
}

const struct config_type config_type_user = {parse_user, print_string};

static int parse_cpus(const struct config_key *k, void *field, const char *value, char *what)
{
	return value_is_cpu_list(value) ? config_replace(field, value) : config_expected(what, "a list of CPUs, such as 0-3,8");
}

const struct config_type config_type_cpus = {parse_cpus, print_string};

/* The sampled events: "cpu-clock, page-faults/period=100/". */
static int parse_events(const struct config_key *k, void *field, const char *value, char *what)
{
	_Static_assert(EVENT_WHY <= CONFIG_WHAT_MAX, "what is wrong with a list fits an error's text");
	return event_list_parse(value, field, what);
}

static void print_events(const struct config_key *k, const void *field, struct buf *to)
{
	event_list_print(field, to);
}

const struct config_type config_type_events = {parse_events, print_events};

static int parse_listen(const struct config_key *k, void *field, const char *value, char *what)
{
	if (!value_is_loopback(value))
		return config_expected(what, "a loopback address with a port, such as 127.0.0.1:9464");
	return config_replace(field, value);
}

const struct config_type config_type_listen = {parse_listen, print_string};

static int parse_hub_listen(const struct config_key *k, void *field, const char *value, char *what)
{
	if (config_hub_address(value) == ADDRESS_BAD)
		return config_expected(what, "an address with a port, such as 127.0.0.1:4380, or unix:/ABSOLUTE/PATH");
	return config_replace(field, value);
}

const struct config_type config_type_hub_listen = {parse_hub_listen, print_string};

static int parse_names(const struct config_key *k, void *field, const char *value, char *what)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.- ";

	if (strlen(value) > PATH_LIMIT || value[strspn(value, of_names)])
		return config_expected(what, "names of hosts without ports, separated by spaces");
	return config_replace(field, value);
}

const struct config_type config_type_names = {parse_names, print_string};

/* The transports' own parser, so that a URL that they reject is reported at the line of its key. */
static bool endpoint_is_url(const char *value)
{
	return !strstr(value, "://") || !strncmp(value, "file:", 5) || !config_transports ||
	       config_transports->is_url(value);
}

static int parse_endpoint(const struct config_key *k, void *field, const char *value, char *what)
{
	const char *text;

	/* A password would be shown wherever the endpoint is. */
	if (strstr(value, "://") && memchr(strstr(value, "://") + 3, '@', strcspn(strstr(value, "://") + 3, "/?#")))
		return config_expected(what, "no user and password in it; authenticate by a header of headers_file");
	if (value_endpoint(value, &text) || !endpoint_is_url(value)) {
		snprintf(what, CONFIG_WHAT_MAX, "%s", text);
		return -EINVAL;
	}
	return config_replace(field, value);
}

const struct config_type config_type_endpoint = {parse_endpoint, print_string};

/* "off", "environment", which config_from_environment resolves, or URLs; printed with spaces between them. */
static int parse_urls(const struct config_key *k, void *field, const char *value, char *what)
{
	_cleanup_(freep) char *plain = strdup(value);
	const char *text, *from = value;
	char *to = plain;

	if (!plain)
		return -ENOMEM;
	if (!strcmp(value, "off")) {
		free(*(char **)field);
		*(char **)field = NULL;
		return 0;
	}
	if (strcmp(value, URLS_FROM_ENVIRONMENT) && value_urls(value, &text))
		return config_expected(what, text);
	for (from += strspn(from, URLS_BETWEEN); *from; from += strspn(from, URLS_BETWEEN)) {
		size_t len = strcspn(from, URLS_BETWEEN);

		if (to > plain)
			*to++ = ' ';
		memcpy(to, from, len);
		to += len;
		from += len;
	}
	*to = '\0';
	return config_replace(field, plain);
}

const struct config_type config_type_urls = {parse_urls, print_string};

/* The index of a name; nr: it is none of them. */
static size_t choice_of(const char *const names[], size_t nr, const char *value)
{
	size_t i = 0;

	while (i < nr && strcmp(value, names[i]))
		i++;
	return i;
}

static const char *const modes[] = {
	[SAMPLER_AUTO] = "auto", [SAMPLER_BPF] = "bpf", [SAMPLER_KMOD] = "kmod", [SAMPLER_PERF] = "perf",
	[SAMPLER_NONE] = "none"};

static int parse_mode(const struct config_key *k, void *field, const char *value, char *what)
{
	size_t i = choice_of(modes, ARRAY_SIZE(modes), value);

	if (i == ARRAY_SIZE(modes))
		return config_expected(what, "auto, bpf, kmod, perf or none");
	*(enum sampler_mode *)field = (enum sampler_mode)i;
	return 0;
}

static void print_mode(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, modes[*(const enum sampler_mode *)field]);
}

const struct config_type config_type_mode = {parse_mode, print_mode};

/* The first name of a protocol is printed; others are OpenTelemetry's for the same protocol. */
static const struct {
	const char *name;
	enum export_protocol protocol;
} protocols[] = {{"http", EXPORT_PROTOCOL_HTTP}, {"http/protobuf", EXPORT_PROTOCOL_HTTP},
		 {"grpc", EXPORT_PROTOCOL_GRPC}};

static int parse_protocol(const struct config_key *k, void *field, const char *value, char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (strcmp(value, protocols[i].name))
			continue;
		*(enum export_protocol *)field = protocols[i].protocol;
		return 0;
	}
	return config_expected(what, "http or grpc");
}

static void print_protocol(const struct config_key *k, const void *field, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (protocols[i].protocol != *(const enum export_protocol *)field)
			continue;
		buf_add_str(to, protocols[i].name);
		return;
	}
}

const struct config_type config_type_protocol = {parse_protocol, print_protocol};

static const char *const presets[] = {
#define X(NAME, name) [EXPORT_PRESET_##NAME] = name,
	EXPORT_PRESETS(X)
#undef X
};

static int parse_preset(const struct config_key *k, void *field, const char *value, char *what)
{
	size_t i = choice_of(presets, ARRAY_SIZE(presets), value);

	if (i == ARRAY_SIZE(presets))
		return config_expected(what, "otlp, pyroscope or minimal");
	*(enum export_preset *)field = (enum export_preset)i;
	return 0;
}

static void print_preset(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, presets[*(const enum export_preset *)field]);
}

const struct config_type config_type_preset = {parse_preset, print_preset};

static int parse_compression(const struct config_key *k, void *field, const char *value, char *what)
{
	size_t i = choice_of(export_coding_names, EXPORT_CODING_NR, value);

	if (i == EXPORT_CODING_NR)
		return config_expected(what, "gzip, zstd or none");
	*(enum export_coding *)field = (enum export_coding)i;
	return 0;
}

static void print_compression(const struct config_key *k, const void *field, struct buf *to)
{
	buf_add_str(to, export_coding_names[*(const enum export_coding *)field]);
}

const struct config_type config_type_compression = {parse_compression, print_compression};

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
	return config_expected(what, "error, warn, notice, info or debug");
}

static void print_level(const struct config_key *k, const void *field, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (levels[i].level == *(const uint32_t *)field)
			buf_add_str(to, levels[i].name);
}

const struct config_type config_type_level = {parse_level, print_level};

/* Lists of words. */

int config_each_word(const struct config_key *k, void *field, const char *value, char *what, config_word_fn *fn)
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
#define X(NAME, key, type, field) [SAMPLE_ATTRIBUTE_##NAME] = key,
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
	int err = strcmp(value, "none") ? config_each_word(k, &bits, value, what, attribute_word) : 0;

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

const struct config_type config_type_attributes = {parse_attributes, print_attributes};
