// SPDX-License-Identifier: Apache-2.0
/*
 * The differences of two configurations, in the form in which values are
 * printed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/config/config_keys.h"

struct changes {
	const struct config *from;
	struct config *to;
	config_change_fn *fn;
	void *ctx;
};

static int print_value(const struct config_key *k, const void *base, struct buf *to)
{
	buf_init(to, CONFIG_FILE_MAX);
	k->type->print(k, (const char *)base + k->offset, to);
	return to->failed ? -ENOMEM : 0;
}

/* 1: the same, 0: not, -ENOMEM. */
static int is_same(const struct config_key *k, const void *a, const void *b)
{
	_cleanup_(buf_done) struct buf one, two;
	int err = print_value(k, a, &one), err2 = print_value(k, b, &two);

	if (err || err2)
		return -ENOMEM;
	return one.len == two.len && (!one.len || !memcmp(one.data, two.data, one.len));
}

/* Only strings without a value print nothing. */
static int keep_value(const struct config_key *k, const struct config *from, struct config *to)
{
	_cleanup_(buf_done) struct buf value;
	char **field = (char **)((char *)to + k->offset), what[CONFIG_WHAT_MAX];
	int err = print_value(k, from, &value);

	if (err)
		return err;
	if (value.len)
		return k->type->parse(k, field, buf_cstr(&value), what);
	free(*field);
	*field = NULL;
	return 0;
}

static int compare_key(const struct changes *c, const struct config_key *k)
{
	int same = is_same(k, c->from, c->to);
	char title[80];

	if (same)
		return MIN(same, 0);
	snprintf(title, sizeof(title), "%s.%s", config_section_names[k->section], k->name);
	c->fn(c->ctx, title, k->restart);
	return k->restart ? keep_value(k, c->from, c->to) : 0;
}

static int compare_keys(const struct changes *c)
{
	int err = 0;

	for (size_t i = 0; i < config_keys_nr && !err; i++)
		if (config_keys[i].section != SECTION_EXPORTER)
			err = compare_key(c, &config_keys[i]);
	return err;
}

static int exporter_is_same(const struct export_config *a, const struct export_config *b)
{
	int same = 1;

	for (size_t i = 0; i < config_keys_nr && same == 1; i++)
		if (config_keys[i].section == SECTION_EXPORTER)
			same = is_same(&config_keys[i], a, b);
	return same;
}

static void tell_exporter(const struct changes *c, const struct export_config *e)
{
	char title[EXPORT_NAME_MAX + 16];

	snprintf(title, sizeof(title), "exporter %s", e->name);
	c->fn(c->ctx, title, false);
}

static int compare_exporters(const struct changes *c)
{
	struct config *from = (struct config *)c->from;

	for (uint32_t i = 0; i < c->to->nr_exporters; i++) {
		const struct export_config *old = config_exporter_find(from, c->to->exporters[i].name);
		int same = old ? exporter_is_same(old, &c->to->exporters[i]) : 0;

		if (same < 0)
			return same;
		if (!same)
			tell_exporter(c, &c->to->exporters[i]);
	}
	for (uint32_t i = 0; i < from->nr_exporters; i++)
		if (!config_exporter_find(c->to, from->exporters[i].name))
			tell_exporter(c, &from->exporters[i]);
	return 0;
}

static bool resources_are_same(const struct config *a, const struct config *b)
{
	if (a->nr_resources != b->nr_resources)
		return false;
	for (uint32_t i = 0; i < a->nr_resources; i++)
		if (strcmp(a->resources[i].key, b->resources[i].key) || strcmp(a->resources[i].value, b->resources[i].value))
			return false;
	return true;
}

int config_changes(const struct config *from, struct config *to, config_change_fn *fn, void *ctx)
{
	const struct changes c = {.from = from, .to = to, .fn = fn, .ctx = ctx};
	int err = compare_keys(&c);

	if (!err)
		err = compare_exporters(&c);
	if (!err && !resources_are_same(from, to))
		fn(ctx, "resource", false);
	return err;
}
