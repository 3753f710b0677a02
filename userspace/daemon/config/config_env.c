// SPDX-License-Identifier: Apache-2.0
/*
 * The OpenTelemetry environment variables. Those of the exporter set the only
 * HTTP or gRPC exporter of the configuration, or the one named "otlp", which is added
 * where there is none at all or an endpoint is set. OTEL_SERVICE_NAME is not
 * read here: as of every process, it is read from our environment when our
 * own workload is named.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/config/config_keys.h"

#define PREFIX	   "OTEL_EXPORTER_OTLP_"
#define PROFILES   "PROFILES_"
#define NAME_LIMIT 64
#define TEXT(x)	   #x
#define LIMIT(x)   TEXT(x)

struct environment {
	struct config *config;
	struct export_config *exporter; /* NULL: none to set */
	config_error_fn *error;
	void *ctx;
	int err;
};

/* value NULL: it may be a secret. */
static void complain(struct environment *env, const char *variable, const char *value, const char *what)
{
	char line[512];

	env->err = -EINVAL;
	if (value)
		snprintf(line, sizeof(line), "environment: %s: bad value \"%.128s\", %s", variable, value, what);
	else
		snprintf(line, sizeof(line), "environment: %s: bad value, %s", variable, what);
	if (env->error)
		env->error(env->ctx, line);
}

/* The variable for profiles alone wins over the one for all signals. */
static const char *variable(const char *name, char title[NAME_LIMIT])
{
	const char *value;

	snprintf(title, NAME_LIMIT, PREFIX PROFILES "%s", name);
	value = getenv(title);
	if (value && *value)
		return value;
	snprintf(title, NAME_LIMIT, PREFIX "%s", name);
	value = getenv(title);
	return value && *value ? value : NULL;
}

static bool is_network(const struct export_config *e)
{
	return e->endpoint && strncmp(e->endpoint, "file:", 5) != 0;
}

static struct export_config *only_network(struct config *c)
{
	struct export_config *found = NULL;

	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		if (!is_network(&c->exporters[i]))
			continue;
		if (found)
			return NULL;
		found = &c->exporters[i];
	}
	return found;
}

/* Without any exporter the default one will be added: the variables set it as well. */
static struct export_config *choose_exporter(struct config *c, bool endpoint)
{
	struct export_config *e = only_network(c);

	if (!e)
		e = config_exporter_find(c, "otlp");
	if (!e && (endpoint || !c->nr_exporters))
		e = config_exporter_add(c, "otlp");
	return e;
}

/* Sets a key from a value in the configuration file's form; errors name the variable. */
static void set_key(struct environment *env, const char *title, const char *key, const char *value)
{
	const struct config_key *k = config_key_find(SECTION_EXPORTER, key);
	char what[CONFIG_WHAT_MAX] = "";
	int err;

	err = k->type->parse(k, (char *)env->exporter + k->offset, value, what);
	if (err == -ENOMEM)
		env->err = err;
	else if (err)
		complain(env, title, config_value_is_secret(k, value) ? NULL : value, what);
}

static void set_from(struct environment *env, const char *name, const char *key)
{
	char title[NAME_LIMIT];
	const char *value = variable(name, title);

	if (value)
		set_key(env, title, key, value);
}

static void set_endpoint(struct environment *env)
{
	char title[NAME_LIMIT];
	const char *value = variable("ENDPOINT", title);

	if (!value)
		return;
	set_key(env, title, "endpoint", value);
	/* The endpoint for profiles is used as it is, the common one is a base (OTLP exporter specification). */
	env->exporter->endpoint_is_full = !strncmp(title, PREFIX PROFILES, strlen(PREFIX PROFILES));
}

static void set_timeout(struct environment *env)
{
	char title[NAME_LIMIT];
	const char *value = variable("TIMEOUT", title);
	uint64_t ms;

	if (!value)
		return;
	if (value_u64(value, &ms) || ms < 100 || ms > 600000)
		complain(env, title, value, "expected milliseconds from 100 to 600000");
	else
		env->exporter->timeout_ns = ms * NSEC_PER_MSEC;
}

/*
 * Keys that the specification has no variable for, so that there is none for all signals either. Times are in
 * milliseconds, as in its own variables.
 */
static void set_own_keys(struct environment *env)
{
	static const struct {
		const char *title, *key;
		bool is_time;
	} own[] = {
		{PREFIX PROFILES "PROFILE", "profile", false},
		{PREFIX PROFILES "INTERVAL", "interval", true},
		{PREFIX PROFILES "SPOOL", "spool", false},
		{PREFIX PROFILES "SPOOL_AGE", "spool_age", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		const char *value = getenv(own[i].title);
		char time[32];
		uint64_t ms;

		if (!value || !*value)
			continue;
		if (own[i].is_time && value_u64(value, &ms)) {
			complain(env, own[i].title, value, "expected milliseconds");
			continue;
		}
		if (own[i].is_time)
			snprintf(time, sizeof(time), "%" PRIu64 "ms", ms);
		set_key(env, own[i].title, own[i].key, own[i].is_time ? time : value);
	}
}

/* Of an endpoint without a scheme. Anything but true is false, as the specification has it of variables. */
static void set_insecure(struct environment *env)
{
	char title[NAME_LIMIT];
	const char *value = variable("INSECURE", title);

	if (value && !strcasecmp(value, "true") && config_exporter_complete(env->exporter, "http://") < 0)
		env->err = -ENOMEM;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent decoding in place; a NUL or half an escape is -EINVAL. */
static int percent_decode(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		int hi = *s == '%' ? hex_digit(s[1]) : 0, lo = *s == '%' && hi >= 0 ? hex_digit(s[2]) : 0;

		*to = *s;
		if (*s != '%')
			continue;
		if (hi < 0 || lo < 0 || !(hi | lo))
			return -EINVAL;
		*to = (char)(hi << 4 | lo);
		s += 2;
	}
	*to = '\0';
	return 0;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	n = strlen(s);
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
	return s;
}

/* -ENOSPC: too many attributes. */
typedef int pair_fn(struct environment *env, const char *key, const char *value);

/*
 * "key=value,key=value", values percent-encoded (W3C baggage, as specified). secret holds for the whole list: no
 * error shows it then.
 */
static void each_pair(struct environment *env, const char *title, const char *list, bool secret, const char *bound,
		      pair_fn *fn)
{
	_cleanup_(freep) char *copy = strdup(list);
	char *save = NULL, *value;
	int err = copy ? 0 : -ENOMEM;

	for (char *pair = copy ? strtok_r(copy, ",", &save) : NULL; pair && !err; pair = strtok_r(NULL, ",", &save)) {
		value = strchr(pair, '=');
		if (!value) {
			err = -EINVAL;
			break;
		}
		*value++ = '\0';
		err = percent_decode(value);
		if (!err)
			err = fn(env, trim(pair), trim(value));
	}
	if (err == -ENOMEM)
		env->err = err;
	else if (err == -ENOSPC)
		complain(env, title, NULL, bound);
	else if (err)
		complain(env, title, secret ? NULL : list, "expected key=value,key=value with percent-encoded values");
}

static int add_header(struct environment *env, const char *key, const char *value)
{
	char header[CONFIG_VALUE_MAX];

	if (snprintf(header, sizeof(header), "%s: %s", key, value) >= (int)sizeof(header))
		return -EINVAL;
	return config_is_header(header) ? config_replace_header(env->exporter, header) : -EINVAL;
}

static int add_resource(struct environment *env, const char *key, const char *value)
{
	/* service.name would name every workload, not ours. Attributes without a value are skipped. */
	if (!strcmp(key, "service.name") || !*value)
		return 0;
	if (config_replace_resource(env->config, key, value) == 0)
		return 0;
	return config_add_resource(env->config, key, value);
}

/* OTEL_METRICS_EXPORTER names exporters of metrics; those of other names than otlp are none of ours. */
static void set_metrics(struct environment *env)
{
	static const char endpoint[] = PREFIX "METRICS_ENDPOINT", kind[] = "OTEL_METRICS_EXPORTER";
	const char *value = getenv(endpoint);

	if (value && *value)
		set_key(env, endpoint, "metrics_endpoint", value);
	value = getenv(kind);
	if (value && *value)
		env->exporter->metrics = !strcmp(value, "otlp");
}

/* Milliseconds, as the specification has it. */
static void metrics_interval(struct environment *env)
{
	static const char title[] = "OTEL_METRIC_EXPORT_INTERVAL";
	const char *value = getenv(title);
	uint64_t ms;

	if (!value || !*value)
		return;
	if (value_u64(value, &ms) || ms < 1000 || ms > 3600000)
		complain(env, title, value, "expected milliseconds from 1000 to 3600000");
	else
		env->config->metrics_interval_ns = ms * NSEC_PER_MSEC;
}

static void exporter_variables(struct environment *env)
{
	char title[NAME_LIMIT];
	const char *headers;

	env->exporter = choose_exporter(env->config, variable("ENDPOINT", title) != NULL);
	if (!env->exporter)
		return;
	set_endpoint(env);
	set_timeout(env);
	set_from(env, "COMPRESSION", "compression");
	set_from(env, "PROTOCOL", "protocol");
	set_own_keys(env);
	set_metrics(env);
	set_insecure(env);
	set_from(env, "CERTIFICATE", "tls_ca_file");
	set_from(env, "CLIENT_CERTIFICATE", "tls_cert_file");
	set_from(env, "CLIENT_KEY", "tls_key_file");
	headers = variable("HEADERS", title);
	if (headers)
		each_pair(env, title, headers, true, "expected at most " LIMIT(EXPORT_HEADERS_MAX) " headers, the exporter's own included",
			  add_header);
}

/*
 * The servers of debuginfod's own clients, used only where the configuration says so, because the requests reveal
 * which programs run here. Other words of the variable (ima:enforcing) are ignored.
 */
static void debuginfod_servers(struct environment *env)
{
	static const char title[] = "DEBUGINFOD_URLS";
	const struct config_key *k = config_key_find(SECTION_DEBUGINFOD, "urls");
	const char *value = getenv(title);
	_cleanup_(buf_done) struct buf urls = {0};
	char what[CONFIG_WHAT_MAX];

	if (!env->config->debuginfod.urls || strcmp(env->config->debuginfod.urls, URLS_FROM_ENVIRONMENT))
		return;
	buf_init(&urls, CONFIG_VALUE_MAX);
	for (value = value ? value : ""; *(value += strspn(value, URLS_BETWEEN)); value += strcspn(value, URLS_BETWEEN))
		if (!strncmp(value, "http", 4))
			buf_printf(&urls, "%.*s ", (int)strcspn(value, URLS_BETWEEN), value);
	if (k->type->parse(k, &env->config->debuginfod.urls, urls.len ? buf_cstr(&urls) : "off", what))
		complain(env, title, config_value_is_secret(k, getenv(title)) ? NULL : getenv(title), what);
}

/* Variables that users of other hubs know; their ranges are those of the keys of [hub]. */
static void hub_limits(struct environment *env)
{
	static const struct {
		const char *title, *key;
	} variables[] = {
		{"PROFILES_MAX_SLOTS", "max_slots"},
		{"PROFILES_SLOT_TTL_SECONDS", "slot_ttl_seconds"},
		{"PROFILES_SLOT_MAX_BYTES", "slot_max_bytes"},
		{"PROFILES_CLEANUP_INTERVAL_SECONDS", "cleanup_interval_seconds"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct config_key *k = config_key_find(SECTION_HUB, variables[i].key);
		const char *value = getenv(variables[i].title);
		char what[CONFIG_WHAT_MAX] = "";

		if (value && *value && k->type->parse(k, (char *)env->config + k->offset, value, what))
			complain(env, variables[i].title, value, what);
	}
}

int config_from_environment(struct config *c, config_error_fn *error, void *ctx)
{
	struct environment env = {.config = c, .error = error, .ctx = ctx};
	const char *resources = getenv("OTEL_RESOURCE_ATTRIBUTES");

	exporter_variables(&env);
	metrics_interval(&env);
	debuginfod_servers(&env);
	hub_limits(&env);
	if (resources && *resources)
		each_pair(&env, "OTEL_RESOURCE_ATTRIBUTES", resources, false,
			  "expected at most " LIMIT(CONFIG_RESOURCES_MAX) " attributes, those of [resource] included", add_resource);
	return env.err;
}
