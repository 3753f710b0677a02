/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the configuration: one table that parsing, printing and error
 * texts share. A new key is a field in struct config (or export_config) and
 * one line in the table.
 *
 * Private to config*.c. Pure, but for config_files; one thread.
 */
#ifndef OTP_DAEMON_CONFIG_CONFIG_KEYS_H
#define OTP_DAEMON_CONFIG_CONFIG_KEYS_H

#include <stddef.h>

#include "daemon/config/config.h"

#define CONFIG_WHAT_MAX  256
#define CONFIG_VALUE_MAX 4000
#define CONFIG_KEYS_MAX  96

enum config_section {
	SECTION_SAMPLER,
	SECTION_PROFILE,
	SECTION_TARGETS,
	SECTION_EXPORTER,
	SECTION_RESOURCE,
	SECTION_METRICS,
	SECTION_HUB,
	SECTION_LIMITS,
	SECTION_SYMBOLS,
	SECTION_RUNTIMES,
	SECTION_DEBUGINFOD,
	SECTION_DAEMON,
	SECTION_NR,
	SECTION_NONE = SECTION_NR,
};

struct buf;
struct config_key;

/*
 * A type of value. parse writes the field; -EINVAL: the value is wrong, and what
 * (CONFIG_WHAT_MAX bytes) says what was expected; -ENOMEM. print appends the
 * value in the form that parse reads, or nothing where there is none.
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
	bool secret;  /* the value may be a secret: no error shows it */
	bool restart; /* takes effect with the next start only */
};

/* Error lines: a place and a text each; bounded, since after many errors more do not help. */
struct config_errors {
	config_error_fn *fn; /* may be NULL */
	void *ctx;
	unsigned int count;
};
struct config_place {
	const char *name; /* borrowed from the text that is read */
	unsigned int line; /* 0: the whole text */
};
__attribute__((format(printf, 3, 4))) void config_complain(struct config_errors *e, const struct config_place *at,
							   const char *fmt, ...);
bool config_errors_enough(const struct config_errors *e);

/* Reads one text after the other into one configuration, which it borrows, as it borrows errors. */
struct config_parser;
int config_parser_new(struct config *c, struct config_errors *errors, struct config_parser **ret);
struct config_parser *config_parser_free(struct config_parser *p); /* NULL */
int config_parser_read(struct config_parser *p, const struct config_text *text); /* -EINVAL, -ENOMEM */
/* Where a key, or an exporter's section, was given last; line 0 if nowhere. */
struct config_place config_parser_key(const struct config_parser *p, const struct config_key *k);
struct config_place config_parser_exporter(const struct config_parser *p, const struct export_config *e);

/* Files (config_files.c). */
struct config_files {
	struct config_text *texts; /* owned, their names and texts too */
	size_t n;
};
int config_files_read(const char *path, bool optional, struct config_errors *errors, struct config_files *ret);
void config_files_done(struct config_files *f);
/* Reads headers_file and checks the TLS files. at: place of the exporter's section. */
int config_files_exporter(struct export_config *e, struct config_errors *errors, const struct config_place *at);

extern const struct config_key config_keys[];
extern const size_t config_keys_nr;
extern const char *const config_section_names[SECTION_NR];

const struct config_key *config_key_find(enum config_section section, const char *name);
bool config_value_is_secret(const struct config_key *k, const char *value); /* no error shows it */
/* The key, or section, that name is probably a misspelling of, static; NULL: none. */
const char *config_key_nearest(enum config_section section, const char *name);
const char *config_section_nearest(const char *name);
/* Another section that has a key of this name, or SECTION_NONE. */
enum config_section config_key_elsewhere(enum config_section section, const char *name);
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
/* http:// and https:// only, separated by spaces or commas; ret_what: what was expected, static. */
int value_urls(const char *s, const char **ret_what);
#define URLS_BETWEEN	      " ,\t"
#define URLS_FROM_ENVIRONMENT "environment"
bool value_is_loopback(const char *s); /* host:port of this host only */

/* Lists: each call adds an entry. */
int config_add_resource(struct config *c, const char *key, const char *value); /* -EINVAL, -EEXIST, -ENOSPC, -ENOMEM */
int config_replace_resource(struct config *c, const char *key, const char *value); /* of an existing one: -ENOENT */
int config_add_header(struct export_config *e, const char *header);
/* A word of a selection as a target, whose text is the caller's. -EINVAL and what was expected, -ENOMEM. */
int config_target_live(const char *word, struct config_target *ret, char *what);
/* A header of the environment, in place of those of its name that the file has. */
int config_replace_header(struct export_config *e, const char *header);
/* Whether the environment has a header of the same name. */
bool config_header_is_replaced(const struct export_config *e, const char *header);
bool config_is_header(const char *s);
bool config_header_is_secret(const char *header); /* by its name, or the look of its value */

/* An existing exporter, or a new one with defaults; NULL: no such one, or all places are taken. Borrowed from c. */
struct export_config *config_exporter_find(struct config *c, const char *name);
struct export_config *config_exporter_add(struct config *c, const char *name);
void config_exporter_remove(struct config *c, uint32_t i);
/* Makes a URL of a gRPC endpoint that has no scheme; all others stay. scheme: with its "://". -ENOMEM. */
int config_exporter_complete(struct export_config *e, const char *scheme);

/* Overrides from the environment; errors name the variable. -EINVAL, -ENOMEM. */
int config_from_environment(struct config *c, config_error_fn *error, void *ctx);

#endif
