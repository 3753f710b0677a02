// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config_keys.h"
#include "profile/profile.h"
#include "source/source.h"

const struct config_transports *config_transports;

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
		.compression = EXPORT_CODING_GZIP,
		.timeout_ns = 5 * NSEC_PER_SEC,
		.retry_initial_ns = 5 * NSEC_PER_SEC,
		.retry_max_ns = 30 * NSEC_PER_SEC,
		.retry_elapsed_ns = 300 * NSEC_PER_SEC,
		.queue_bytes = 32u << 20,
		.spool_age_ns = 24 * 3600 * NSEC_PER_SEC,
	};
	snprintf(e->name, sizeof(e->name), "%s", name);
	return e;
}

static int config_endpoint_complete(char **endpoint, const char *scheme)
{
	char *url;

	if (!*endpoint || strstr(*endpoint, "://"))
		return 0;
	if (asprintf(&url, "%s%s", scheme, *endpoint) < 0)
		return -ENOMEM;
	free(*endpoint);
	*endpoint = url;
	return 0;
}

int config_exporter_complete(struct export_config *e, const char *scheme)
{
	int err = 0;

	if (e->protocol == EXPORT_PROTOCOL_GRPC)
		err = config_endpoint_complete(&e->endpoint, scheme);
	if (!err && e->protocol == EXPORT_PROTOCOL_GRPC)
		err = config_endpoint_complete(&e->metrics_endpoint, scheme);
	return err;
}

static int config_new(struct config **ret)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct config){
		.mode = SAMPLER_AUTO,
		.frequency_hz = SOURCE_HZ_DEFAULT,
		.stack_bytes = 4 * OTP_HEAD_STACK,
		.stack_max_bytes = OTP_STACK_LIMIT,
		.stack_rate_bytes = 64u << 20,
		.kernel_threads = true,
		.interval_ns = 5 * NSEC_PER_SEC,
		/*
		 * Stores that make labels of attributes then hold one series a program; one for each thread or pid
		 * would be too many.
		 */
		.sample_attributes = PROFILE_ATTRIBUTES_DEFAULT,
		.request_max_bytes = 4u << 20,
		.metrics_interval_ns = 60 * NSEC_PER_SEC,
		.cpu_percent_milli = 2000,
		.processes_max = 16384,
		.log_level = LOG_LEVEL_INFO,
		.symbols_inline = true,
		.symbols_lines = true,
		.runtimes_walk = true,
		.runtimes_creators = true,
		.symbols_debug_dirs = strdup("/usr/lib/debug"),
		.symbols_cache_dir = strdup("/var/lib/otprof/symbols"),
		.symbols_cache_bytes = 256u << 20,
		.debuginfod = {.timeout_ns = 90 * NSEC_PER_SEC, .file_bytes = 256u << 20, .cache_bytes = 1u << 30,
			       .retry_after_ns = 24 * 3600 * NSEC_PER_SEC, .requests_per_minute = 30},
		.runtime_dir = strdup("/run/otprof"),
		.spool_dir = strdup("/var/lib/otprof/spool"),
		.engine_user = strdup("otprof-engine"),
		.net_user = strdup("otprof-net"),
		.hub_user = strdup("otprof-hub"),
		.hub_token = true,
		.hub_receive_bytes = 16u << 20,
		.hub = hub_limits_default,
	};
	if (!c->runtime_dir || !c->engine_user || !c->net_user || !c->hub_user || !c->symbols_debug_dirs ||
	    !c->symbols_cache_dir || !c->spool_dir) {
		config_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

static void config_free_secret(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void config_exporter_done(struct export_config *e)
{
	free(e->endpoint);
	free(e->metrics_endpoint);
	free(e->headers_file);
	free(e->tls_ca);
	free(e->tls_cert);
	free(e->tls_key);
	if (e->file_dir > 0)
		close(e->file_dir);
	for (uint32_t i = 0; i < e->nr_headers; i++)
		config_free_secret(e->headers[i]);
}

void config_exporter_remove(struct config *c, uint32_t i)
{
	config_exporter_done(&c->exporters[i]);
	c->nr_exporters--;
	memmove(&c->exporters[i], &c->exporters[i + 1], (c->nr_exporters - i) * sizeof(c->exporters[0]));
}

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; i < c->nr_targets; i++)
		free(c->targets[i].text);
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		config_exporter_done(&c->exporters[i]);
	for (uint32_t i = 0; i < c->nr_resources; i++) {
		free(c->resources[i].key);
		free(c->resources[i].value);
	}
	free(c->cpus);
	free(c->metrics_listen);
	free(c->hub_listen);
	free(c->hub_names);
	free(c->hub_tls_cert);
	free(c->hub_tls_key);
	free(c->hub_user);
	free(c->symbols_debug_dirs);
	free(c->symbols_cache_dir);
	free(c->debuginfod.urls);
	free(c->runtime_dir);
	free(c->spool_dir);
	free(c->engine_user);
	free(c->net_user);
	free(c);
	return NULL;
}

static void config_freep(struct config **c)
{
	config_free(*c);
}

static void config_parser_freep(struct config_parser **p)
{
	config_parser_free(*p);
}

/* Also completes the section [exporter otlp] of the shipped file, whose endpoint is commented out. */
static int config_add_default_exporter(struct config *c)
{
	struct export_config *e = c->nr_exporters == 1 ? config_exporter_find(c, "otlp") : NULL;

	if (!c->nr_exporters)
		e = config_exporter_add(c, "otlp");
	if (!e || e->endpoint)
		return 0;
	e->endpoint = strdup(e->protocol == EXPORT_PROTOCOL_GRPC ? "http://127.0.0.1:4317" : "http://127.0.0.1:4318");
	c->exporter_is_default = true;
	return e->endpoint ? 0 : -ENOMEM;
}

/* As in gRPC's own libraries, an endpoint is secure unless something else is said. */
static int config_complete_exporters(struct config *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->nr_exporters && !err; i++)
		err = config_exporter_complete(&c->exporters[i], "https://");
	return err;
}

/* Checks of more than one key. */

static void config_check_exporter(const struct export_config *e, struct config_errors *errors,
				  const struct config_place *at)
{
	char why[EXPORT_WHY];

	if (!e->endpoint)
		config_complain(errors, at, "exporter %s.endpoint: missing, expected http://HOST:PORT or file:///DIR", e->name);
	else if (config_transports && config_transports->check(e, why) < 0)
		config_complain(errors, at, "exporter %s: %s", e->name, why);
	if (e->endpoint && e->metrics && export_directory(e))
		config_complain(errors, at, "exporter %s.metrics: they are not written as files, "
				"expected an endpoint of http:// or https://", e->name);
	if (!e->tls_cert != !e->tls_key)
		config_complain(errors, at, "exporter %s.%s: missing, expected both or neither of tls_cert_file and tls_key_file",
				e->name, e->tls_cert ? "tls_key_file" : "tls_cert_file");
	if (e->interval_ns % e->engine_interval_ns)
		config_complain(errors, at, "exporter %s.interval: no multiple of profile.interval, expected one",
				e->name);
	if (e->spool_bytes && e->spool_bytes < CONFIG_SPOOL_MIN)
		config_complain(errors, at, "exporter %s.spool: too small, expected 0 or a size from 1M", e->name);
	if (e->retry_initial_ns > e->retry_max_ns)
		config_complain(errors, at, "exporter %s.retry_initial: above retry_max, expected it at or below", e->name);
}

/* Where a key was given, else where the other, conflicting one was; else the whole file. */
static struct config_place config_place_of(const struct config_parser *p, enum config_section section, const char *name,
					   const char *other, const char *whole)
{
	struct config_place at = config_parser_key(p, config_key_find(section, name));

	if (!at.line)
		at = config_parser_key(p, config_key_find(section, other));
	return at.line ? at : (struct config_place){.name = whole};
}

/* Off loopback, others read what is sent, and others may ask. */
static void config_check_hub(const struct config *c, const struct config_parser *p, struct config_errors *errors,
			     const char *name)
{
	bool network = c->hub_listen && config_hub_address(c->hub_listen) == ADDRESS_NETWORK;
	struct config_place at = config_place_of(p, SECTION_HUB, "listen", "tls_cert_file", name);

	if (!c->hub_tls_cert != !c->hub_tls_key)
		config_complain(errors, &at,
				"hub.%s: missing, expected both or neither of tls_cert_file and tls_key_file",
				c->hub_tls_cert ? "tls_key_file" : "tls_cert_file");
	if (network && !c->hub_token)
		config_complain(errors, &at, "hub.listen: not on this host alone, expected token = yes with it");
	if (network && !c->hub_tls_cert && !c->hub_tls_key)
		config_complain(errors, &at, "hub.listen: not on this host alone, expected tls_cert_file and "
					     "tls_key_file with it");
	if (c->hub_listen && c->hub_tls_cert && config_hub_address(c->hub_listen) == ADDRESS_UNIX)
		config_complain(errors, &at,
				"hub.tls_cert_file: listen is a UNIX socket, expected no TLS with it");
	if (c->mode == SAMPLER_NONE && !c->hub_listen) {
		at = config_place_of(p, SECTION_SAMPLER, "mode", "mode", name);
		config_complain(errors, &at,
				"sampler.mode: none without a hub does nothing, expected listen in [hub]");
	}
}

static int config_check_whole(struct config *c, const struct config_parser *p, struct config_errors *errors,
			      const char *name)
{
	struct config_place at;

	if (c->stack_bytes > c->stack_max_bytes) {
		at = config_place_of(p, SECTION_SAMPLER, "stack_bytes", "stack_max_bytes", name);
		config_complain(errors, &at, "sampler.stack_bytes: above stack_max_bytes, expected it at or below");
	}
	if (!strcmp(c->engine_user, c->net_user)) {
		at = config_place_of(p, SECTION_DAEMON, "net_user", "engine_user", name);
		config_complain(errors, &at, "daemon.net_user: the same as engine_user, expected two users");
	}
	config_check_hub(c, p, errors, name);
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		at = config_parser_exporter(p, &c->exporters[i]);
		if (!at.line)
			at.name = name;
		config_check_exporter(&c->exporters[i], errors, &at);
	}
	return errors->count ? -EINVAL : 0;
}

/* The files that the exporters' keys name exist, and are safe. */
static int config_check_files(struct config *c, const struct config_parser *p, struct config_errors *errors,
			      const char *name)
{
	int err = 0;

	for (uint32_t i = 0; i < c->nr_exporters && err != -ENOMEM; i++) {
		struct config_place at = config_parser_exporter(p, &c->exporters[i]);

		if (!at.line)
			at.name = name;
		err = config_files_exporter(&c->exporters[i], errors, &at);
	}
	return err == -ENOMEM ? err : errors->count ? -EINVAL : 0;
}

/* real: also reads the environment and the files that keys name. */
static int config_parse_all(const char *name, const struct config_text *texts, size_t n, bool real,
			    struct config_errors *errors, struct config **ret)
{
	_cleanup_(config_parser_freep) struct config_parser *p = NULL;
	_cleanup_(config_freep) struct config *c = NULL;
	int err = config_new(&c);

	if (!err)
		err = config_parser_new(c, errors, &p);
	if (err)
		return err;
	for (size_t i = 0; i < n && err != -ENOMEM && !config_errors_enough(errors); i++)
		err = config_parser_read(p, &texts[i]);
	if (err != -ENOMEM && errors->count)
		err = -EINVAL;
	if (!err && real)
		err = config_from_environment(c, errors->fn, errors->ctx);
	if (!err)
		err = config_complete_exporters(c);
	if (!err)
		err = config_add_default_exporter(c);
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		c->exporters[i].engine_interval_ns = c->interval_ns;
	if (!err && real)
		err = config_check_files(c, p, errors, name);
	if (!err)
		err = config_check_whole(c, p, errors, name);
	if (err)
		return err;
	*ret = steal_ptr(&c);
	return 0;
}

int config_parse_texts(const struct config_text *texts, size_t n, config_error_fn *error, void *ctx, struct config **ret)
{
	struct config_errors errors = {.fn = error, .ctx = ctx};

	return config_parse_all(n ? texts[0].name : "defaults", texts, n, false, &errors, ret);
}

int config_parse(const char *name, const char *text, size_t len, config_error_fn *error, void *ctx, struct config **ret)
{
	const struct config_text one = {.name = name, .text = text, .len = len};

	return config_parse_texts(&one, 1, error, ctx, ret);
}

static int config_load_files(const char *path, bool usual, config_error_fn *error, void *ctx, struct config **ret)
{
	_cleanup_(config_files_done) struct config_files files = {0};
	struct config_errors errors = {.fn = error, .ctx = ctx};
	int err = path ? config_files_read(path, usual, &errors, &files) : 0;

	return err ? err : config_parse_all(path ? path : "environment", files.texts, files.n, true, &errors, ret);
}

int config_load(const char *path, config_error_fn *error, void *ctx, struct config **ret)
{
	return config_load_files(path, false, error, ctx, ret);
}

int config_load_usual(const char *path, config_error_fn *error, void *ctx, struct config **ret)
{
	return config_load_files(path, true, error, ctx, ret);
}
