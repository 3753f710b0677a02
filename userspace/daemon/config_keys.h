/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the configuration: one table that parsing, printing and error
 * texts share. A new key is a field in struct config (or export_config) and
 * one line in the table.
 *
 * Private to config*.c.
 */
#ifndef OTP_DAEMON_CONFIG_KEYS_H
#define OTP_DAEMON_CONFIG_KEYS_H

#include <stddef.h>

#include "daemon/config.h"

#define CONFIG_WHAT_MAX  256
#define CONFIG_VALUE_MAX 4000
#define CONFIG_KEYS_MAX  64

enum config_section {
	SECTION_SAMPLER,
	SECTION_PROFILE,
	SECTION_TARGETS,
	SECTION_EXPORTER,
	SECTION_RESOURCE,
	SECTION_METRICS,
	SECTION_LIMITS,
	SECTION_DAEMON,
	SECTION_NR,
	SECTION_NONE = SECTION_NR,
};

struct buf;
struct config_key;

/*
 * A type of value. parse writes the field, or says in what (of CONFIG_WHAT_MAX
 * bytes) what was expected and returns -EINVAL; -ENOMEM without memory. print
 * adds the value as parse takes it, or nothing where there is none.
 */
struct config_type {
	int (*parse)(const struct config_key *k, void *field, const char *value, char *what);
	void (*print)(const struct config_key *k, const void *field, struct buf *to);
};

struct config_key {
	enum config_section section;
	const char *name;
	const struct config_type *type;
	size_t offset; /* in struct config, or struct export_config */
	uint64_t min, max;
	bool repeats; /* may be given more than once: values add up */
};

extern const struct config_key config_keys[];
extern const size_t config_keys_nr;
extern const char *const config_section_names[SECTION_NR];

const struct config_key *config_key_find(enum config_section section, const char *name);
/* The known key that name is probably meant to be, or NULL. */
const char *config_key_nearest(enum config_section section, const char *name);
enum config_section config_section_find(const char *name, size_t len);

/* Values. 0 or -EINVAL. */
int value_u64(const char *s, uint64_t *ret);
int value_size(const char *s, uint64_t *ret);     /* 4096, 4K, 4M, 1G */
int value_duration(const char *s, uint64_t *ret); /* 500ms, 5s, 2m, 1h */
int value_milli(const char *s, uint64_t *ret);    /* thousandths: 2, 2.5, 0.125 */
int value_bool(const char *s, bool *ret);
bool value_is_text(const char *s);  /* UTF-8 without control characters */
bool value_is_cpu_list(const char *s);
int value_endpoint(const char *s, const char **ret_what);
bool value_is_loopback(const char *s); /* host:port of this host only */

/* Lists: each adds to what is there. */
int config_add_resource(struct config *c, const char *key, const char *value);
int config_add_header(struct export_config *e, const char *header);

/* Exporters by name: an existing one, or a new one with defaults; NULL when all places are taken. */
struct export_config *config_exporter_find(struct config *c, const char *name);
struct export_config *config_exporter_add(struct config *c, const char *name);

/* Overrides from the environment; errors name the variable. -EINVAL, -ENOMEM. */
int config_from_environment(struct config *c, config_error_fn *error, void *ctx);

#endif
