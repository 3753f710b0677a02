/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of values in the table of keys, and helpers that they share.
 *
 * Private to config*.c. Pure; the types are constants.
 */
#ifndef OTP_DAEMON_CONFIG_CONFIG_TYPES_H
#define OTP_DAEMON_CONFIG_CONFIG_TYPES_H

#include "daemon/config/config_keys.h"

/* config_types.c */
extern const struct config_type config_type_u32, config_type_u64, config_type_size32, config_type_size64, config_type_buffer, config_type_duration, config_type_percent, config_type_limit, config_type_bool, config_type_path, config_type_user, config_type_cpus, config_type_events, config_type_listen, config_type_hub_listen, config_type_names, config_type_clones, config_type_dirs, config_type_endpoint, config_type_mode, config_type_protocol, config_type_compression, config_type_preset, config_type_interval, config_type_level, config_type_attributes, config_type_urls;
/* config_lists.c: the field is the whole struct config, or export_config */
extern const struct config_type config_type_targets, config_type_header;

int config_expected(char *what, const char *text); /* writes "expected TEXT"; returns -EINVAL */
int config_replace(void *field, const char *value); /* of a string field, which owns a copy; -ENOMEM */

/* Calls fn for each word of value, until one fails. */
typedef int config_word_fn(const struct config_key *k, void *field, const char *word, char *what);
int config_each_word(const struct config_key *k, void *field, const char *value, char *what, config_word_fn *fn);

#endif
