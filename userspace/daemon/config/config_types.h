/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of values that the table of keys is made of, and what they share.
 *
 * Private to config*.c.
 */
#ifndef OTP_DAEMON_CONFIG_CONFIG_TYPES_H
#define OTP_DAEMON_CONFIG_CONFIG_TYPES_H

#include "daemon/config/config_keys.h"

/* config_types.c */
extern const struct config_type config_type_u32, config_type_size32, config_type_size64, config_type_buffer, config_type_duration, config_type_percent, config_type_limit, config_type_bool, config_type_path, config_type_user, config_type_cpus, config_type_events, config_type_listen, config_type_clones, config_type_dirs, config_type_endpoint, config_type_mode, config_type_protocol, config_type_compression, config_type_level, config_type_attributes, config_type_urls;
/* config_lists.c: the field is the whole configuration, or exporter */
extern const struct config_type config_type_targets, config_type_header;

int config_expected(char *what, const char *text); /* "expected TEXT"; -EINVAL */
int config_replace(void *field, const char *value); /* a string; -ENOMEM */

typedef int config_word_fn(const struct config_key *k, void *field, const char *word, char *what);
int config_each_word(const struct config_key *k, void *field, const char *value, char *what, config_word_fn *fn);

#endif
