// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config_keys.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/config/config_types.h"

const char *const config_section_names[SECTION_NR] = {
	[SECTION_SAMPLER] = "sampler",   [SECTION_PROFILE] = "profile", [SECTION_TARGETS] = "targets",
	[SECTION_EXPORTER] = "exporter", [SECTION_RESOURCE] = "resource", [SECTION_METRICS] = "metrics",
	[SECTION_HUB] = "hub",
	[SECTION_LIMITS] = "limits",   [SECTION_SYMBOLS] = "symbols", [SECTION_RUNTIMES] = "runtimes",
	[SECTION_DEBUGINFOD] = "debuginfod",
	[SECTION_DAEMON] = "daemon",
};

/* The table. */

#define K(sec, key, kind, field, ...) \
	{.section = SECTION_##sec, .name = key, .type = &config_type_##kind, .offset = offsetof(struct config, field), ##__VA_ARGS__}
#define E(key, kind, field, ...)                                     \
	{.section = SECTION_EXPORTER, .name = key, .type = &config_type_##kind, \
	 .offset = offsetof(struct export_config, field), ##__VA_ARGS__}
#define RANGE(from, to) .min = (from), .max = (to)
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

const struct config_key config_keys[] = {
	K(SAMPLER, "mode", mode, mode, .restart = true),
	K(SAMPLER, "frequency_hz", u32, frequency_hz, RANGE(1, 10000)),
	K(SAMPLER, "ring_size", buffer, ring_bytes, RANGE(64 * KIB, GIB), .restart = true),
	K(SAMPLER, "sideband_size", buffer, sideband_bytes, RANGE(4 * KIB, 64 * MIB), .restart = true),
	K(SAMPLER, "stack_bytes", size32, stack_bytes, RANGE(512, OTP_STACK_LIMIT)),
	K(SAMPLER, "stack_max_bytes", size32, stack_max_bytes, RANGE(512, OTP_STACK_LIMIT)),
	K(SAMPLER, "stack_rate", size64, stack_rate_bytes, RANGE(0, 64 * GIB)),
	K(SAMPLER, "kernel_threads", bool, kernel_threads),
	K(SAMPLER, "hardware_events", bool, hardware, .restart = true),
	K(SAMPLER, "events", events, events, .restart = true),
	K(SAMPLER, "cpus", cpus, cpus, .restart = true),
	K(PROFILE, "interval", duration, interval_ns, RANGE(100 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC)),
	K(PROFILE, "sample_attributes", attributes, sample_attributes),
	K(PROFILE, "request_max_size", size64, request_max_bytes, RANGE(64 * KIB, 64 * MIB)),
	/* Zero offset: the type fills a list of the whole configuration. */
	{.section = SECTION_TARGETS, .name = "include", .type = &config_type_targets, .min = 0, .repeats = true},
	{.section = SECTION_TARGETS, .name = "exclude", .type = &config_type_targets, .min = 1, .repeats = true},
	E("endpoint", endpoint, endpoint),
	E("endpoint_is_full", bool, endpoint_is_full),
	E("protocol", protocol, protocol),
	E("compression", compression, compression),
	E("profile", preset, preset),
	E("interval", interval, interval_ns, RANGE(100 * NSEC_PER_MSEC, 1800 * NSEC_PER_SEC)),
	{.section = SECTION_EXPORTER, .name = "headers", .type = &config_type_header, .repeats = true, .secret = true},
	E("headers_file", path, headers_file),
	E("tls_ca_file", path, tls_ca),
	E("tls_cert_file", path, tls_cert),
	E("tls_key_file", path, tls_key),
	E("tls_insecure", bool, tls_insecure),
	E("timeout", duration, timeout_ns, RANGE(100 * NSEC_PER_MSEC, 600 * NSEC_PER_SEC)),
	E("retry_initial", duration, retry_initial_ns, RANGE(10 * NSEC_PER_MSEC, 600 * NSEC_PER_SEC)),
	E("retry_max", duration, retry_max_ns, RANGE(10 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC)),
	E("retry_max_elapsed", duration, retry_elapsed_ns, RANGE(0, 86400 * NSEC_PER_SEC)),
	E("queue_size", size64, queue_bytes, RANGE(64 * KIB, 4 * GIB)),
	E("metrics", bool, metrics),
	E("metrics_endpoint", endpoint, metrics_endpoint),
	E("spool", size64, spool_bytes, RANGE(0, 1024 * GIB)),
	E("spool_age", duration, spool_age_ns, RANGE(NSEC_PER_SEC, 720 * 3600 * NSEC_PER_SEC)),
	E("keep_files", u32, file_keep, RANGE(0, 100000000)),
	K(METRICS, "listen", listen, metrics_listen),
	K(METRICS, "interval", duration, metrics_interval_ns, RANGE(NSEC_PER_SEC, 3600 * NSEC_PER_SEC)),
	K(HUB, "listen", hub_listen, hub_listen),
	K(HUB, "names", names, hub_names),
	K(HUB, "token", bool, hub_token),
	K(HUB, "tls_cert_file", path, hub_tls_cert),
	K(HUB, "tls_key_file", path, hub_tls_key),
	K(HUB, "receive", bool, hub_receive),
	K(HUB, "receive_max_size", size64, hub_receive_bytes, RANGE(64 * KIB, 64 * MIB)),
	K(HUB, "selection", bool, hub_selection),
	K(HUB, "max_slots", u64, hub.max_slots, RANGE(HUB_MAX_SLOTS_MIN, HUB_MAX_SLOTS_MAX)),
	K(HUB, "slot_ttl_seconds", u64, hub.slot_ttl_seconds, RANGE(HUB_TTL_MIN, HUB_TTL_MAX)),
	K(HUB, "slot_max_bytes", size64, hub.slot_max_bytes, RANGE(HUB_MAX_BYTES_MIN, HUB_MAX_BYTES_MAX)),
	K(HUB, "cleanup_interval_seconds", u64, hub.cleanup_interval_seconds, RANGE(HUB_CLEANUP_MIN, HUB_CLEANUP_MAX)),
	K(LIMITS, "cpu_percent", percent, cpu_percent_milli, RANGE(0, 100000)),
	K(LIMITS, "memory", limit, memory_limit_bytes, RANGE(16 * MIB, 1024 * GIB)),
	K(SYMBOLS, "inline", bool, symbols_inline, .restart = true),
	K(SYMBOLS, "lines", bool, symbols_lines, .restart = true),
	K(SYMBOLS, "clones", clones, symbols_show_clones, .restart = true),
	K(SYMBOLS, "debug_dirs", dirs, symbols_debug_dirs, .restart = true),
	K(SYMBOLS, "cache_dir", path, symbols_cache_dir, .restart = true),
	K(SYMBOLS, "cache_bytes", size64, symbols_cache_bytes, RANGE(0, 64 * GIB)),
	K(RUNTIMES, "walk", bool, runtimes_walk, .restart = true),
	K(RUNTIMES, "loops", bool, runtimes_loops),
	K(RUNTIMES, "creators", bool, runtimes_creators),
	K(DEBUGINFOD, "urls", urls, debuginfod.urls),
	K(DEBUGINFOD, "timeout", duration, debuginfod.timeout_ns, RANGE(NSEC_PER_SEC, 3600 * NSEC_PER_SEC)),
	K(DEBUGINFOD, "max_file_bytes", size64, debuginfod.file_bytes, RANGE(64 * KIB, 4 * GIB)),
	K(DEBUGINFOD, "cache_bytes", size64, debuginfod.cache_bytes, RANGE(MIB, 1024 * GIB)),
	K(DEBUGINFOD, "retry_after", duration, debuginfod.retry_after_ns, RANGE(NSEC_PER_SEC, 720 * 3600 * NSEC_PER_SEC)),
	K(DEBUGINFOD, "requests_per_minute", u32, debuginfod.requests_per_minute, RANGE(1, 600)),
	/* The address of a socket in this directory has 107 bytes at most. */
	K(DAEMON, "runtime_dir", path, runtime_dir, RANGE(0, 95), .restart = true),
	K(DAEMON, "spool_dir", path, spool_dir, .restart = true),
	K(DAEMON, "engine_user", user, engine_user, .restart = true),
	K(DAEMON, "net_user", user, net_user, .restart = true),
	K(DAEMON, "hub_user", user, hub_user, .restart = true),
	K(DAEMON, "processes_max", u32, processes_max, RANGE(256, 1048576), .restart = true),
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

/* A header, or a URL with a password or a query. */
bool config_value_is_secret(const struct config_key *k, const char *value)
{
	return k->secret || (strstr(value, "://") && strpbrk(value, "@?"));
}

enum config_section config_section_find(const char *name, size_t len)
{
	for (int i = 0; i < SECTION_NR; i++)
		if (strlen(config_section_names[i]) == len && !memcmp(name, config_section_names[i], len))
			return i;
	return SECTION_NONE;
}

/* Levenshtein's distance over two rows; both strings are short keys. */
static unsigned int config_name_distance(const char *a, const char *b)
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

/* The most edits of a misspelling; a name farther away is not suggested. */
static unsigned int config_name_distance_max(const char *name)
{
	return MAX(2, (unsigned int)(strlen(name) + 2) / 3);
}

static bool config_name_is_part(const char *name, const char *of)
{
	return strlen(name) >= 3 && strstr(of, name);
}

const char *config_key_nearest(enum config_section section, const char *name)
{
	unsigned int best = config_name_distance_max(name) + 1, d;
	const char *nearest = NULL;

	for (size_t i = 0; i < config_keys_nr; i++) {
		if (config_keys[i].section != section)
			continue;
		d = config_name_distance(name, config_keys[i].name);
		if (d >= best && (nearest || !config_name_is_part(name, config_keys[i].name)))
			continue;
		best = MIN(best, d);
		nearest = config_keys[i].name;
	}
	return nearest;
}

const char *config_section_nearest(const char *name)
{
	unsigned int best = config_name_distance_max(name) + 1, d;
	const char *nearest = NULL;

	for (int i = 0; i < SECTION_NR; i++) {
		d = config_name_distance(name, config_section_names[i]);
		if (d >= best)
			continue;
		best = d;
		nearest = config_section_names[i];
	}
	return nearest;
}

enum config_section config_key_elsewhere(enum config_section section, const char *name)
{
	for (size_t i = 0; i < config_keys_nr; i++)
		if (config_keys[i].section != section && !strcmp(config_keys[i].name, name))
			return config_keys[i].section;
	return SECTION_NONE;
}
